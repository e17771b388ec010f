"""Sentences about a class whose parameters are not those that its exercise expects."""

import math
from collections.abc import Sequence

from autograder.catalogue.exercise import Block, Exercise
from autograder.feedback.values import cut
from autograder.judging.observation import Outcome, Structure
from autograder.judging.parameter_matching.blocks import Trouble

MOST_PARAMETERS = 400  # letters


def about_structure(exercise: Exercise, outcome: Outcome, shown: Structure) -> str:
    """Return which projections or blocks are missing or too many, and how a class says which parameter is which."""
    if not shown.module:
        return f"{exercise.names[0]} is not an nn.Module, so its weights cannot be found or trained."
    roles = exercise.roles(*outcome.case.construct)
    if isinstance(roles[0], Block):
        return _about_blocks(roles, shown)
    wanted = ", ".join(f"{role.name} {role.inputs} to {role.outputs}" for role in roles)
    looked = f"The check looked for these projections: {wanted}."
    if not shown.parameters:
        return f"{looked} No parameter is registered at all."
    found = ", ".join(f"{name} {shape}" for name, shape in shown.parameters)
    if sum(len(shape) > 1 for _, shape in shown.parameters) > len(roles):
        return f"{looked} It saw more than that: {found}. Which one is too many?"
    matrices = sum(math.prod(shape) for _, shape in shown.parameters if len(shape) > 1)
    if matrices < sum(role.inputs * role.outputs for role in roles):
        return (
            f"{looked} It saw fewer numbers than these have: {found}. Is one layer used for several of them, or one "
            "missing, or kept in a plain list or a plain tensor (nn.Parameter registers one)?"
        )
    example = ", ".join(f'"{role.name}": "..."' for role in roles)
    return (
        f"{looked} It saw: {found}. "
        f"If they are there under other names, say which is which in the class body: roles = {{{example}}}."
    )


def _but(trouble: Trouble) -> str:
    if trouble.shared:
        return " (one is used again)"
    return ", but of different sizes" if trouble.found == trouble.wanted else ""


def _about_blocks(wanted: Sequence[Block], shown: Structure) -> str:
    """The blocks that a layer or a model lacks or has in excess, and how to name its parameters."""
    if not shown.parameters:
        return "No parameter is registered at all."
    counted = "; ".join(
        f"{each.what}: {each.found} found, {each.wanted} expected{_but(each)}" for each in shown.troubles
    )
    found = cut(", ".join(f"{name} {shape}" for name, shape in shown.parameters), MOST_PARAMETERS)
    if all(each.found > each.wanted for each in shown.troubles) and shown.troubles:
        too_many = " and ".join(each.what for each in shown.troubles)
        return f"You have too many {too_many}. {counted[0].upper()}{counted[1:]}. Which are to go? There are: {found}."
    seen = f"The check saw: {found}{'' if found.endswith('...') else '.'}"
    if shown.troubles and all(each.found == each.wanted and not each.shared for each in shown.troubles):
        return f"Your parameters do not have the sizes that the task gives: {counted}. {seen}"
    begin = f"The check could not read your parameters. {counted or 'They fit no order of queries, keys and values'}."
    if shown.unused:
        idle = cut(", ".join(shown.unused), MOST_PARAMETERS)
        be, them = ("are", "them") if len(shown.unused) > 1 else ("is", "it")
        return f"{begin} {idle} {be} defined, but forward does not use {them}. {seen}"
    example = next(iter(wanted[-1].shapes()))
    lists = " Modules in a plain list are not seen." if any(each.found < each.wanted for each in shown.troubles) else ""
    roles = f'roles = {{"{example}": "...", ...}}'
    return f"{begin}{lists} {seen} If all are there, say which is which in the class body: {roles}."
