"""15.3: what learns and what does not, by name."""

from typing import Any

import torch

from autograder.catalogue import families
from autograder.catalogue.ch15_pretrained.shared import listed, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import InWords, JudgedParts
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, second_call, visible
from transformer_ref.beyond.pretrained import freeze_except

(FREEZE,) = sections("freeze")
SEED = 1 << 20
LOOKED_AT = ("what learns", "moved by a step", "what is there", "changed by the call")  # in this order


def model(
    g: torch.Generator, layers: int, names: list[str], training: bool = True, frozen: tuple[str, ...] = (),
    stale: float = 0.0
) -> Case:
    """What the stage makes the model of, and the names."""
    seed = int(torch.randint(SEED, (), generator=g))
    return Case(({"layers": layers, "seed": seed, "training": training, "frozen": list(frozen), "stale": stale}, names))


def given(layers: int, names: list[str], **options: Any) -> Case:
    """The same model for everybody."""
    return model(torch.Generator().manual_seed(15), layers, names, **options)


def what_became(case: Case, result: Any) -> Any:
    """What the call made of the model; the names that came back in any order."""
    if not isinstance(result, dict) or "what came back" not in result:
        return result
    names, flags = result["what came back"], result.get("flags on modules")
    if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
        names = sorted(set(names))
    judged = {what: result.get(what) for what in LOOKED_AT}
    modes = [name or "the model itself" for name in result.get("other mode", ())]
    judged |= {"other mode": modes, "what came back": names}
    return JudgedParts({"in words": _in_words(case, judged)} | judged, {"flags": flags})


def _in_words(case: Case, judged: dict[str, Any]) -> str:
    """The first of what became of the model that is wrong, in words."""
    learns, moved, there, changed, modes, names = (value or [] for value in judged.values())
    named = [full for full in sorted({*learns, *moved, *there})
             if any(full == name or full.startswith(f"{name}.") for name in case.arguments[1])]  # fmt: skip

    def beyond(some: Any, others: Any) -> list[str]:
        return [name for name in some if name not in others]

    unnamed = isinstance(names, (list, tuple)) and not all(isinstance(name, str) for name in names)
    if unnamed or not isinstance(names, list):
        names = named  # if it is no list at all, its type is reported
    faults = (
        ("{}: requires_grad is True, but should be False", beyond(learns, named)),
        ("{}: requires_grad is False, but should be True", beyond(named, learns)),
        ("the next step of an optimizer still moved {}", beyond(moved, named)),
        ("the next step of an optimizer did not move {}", beyond(named, moved)),
        ("a new parameter has taken the place of {}", beyond(_own_names(case), there)),
        ("your function changed the values of {}", changed),
        ("no longer in the mode in which the model came: {}", modes),
        ("the list that came back holds {}; it should hold the full names of what learns", beyond(names, named)),
        ("the list that came back lacks {}", beyond(named, names)),
        ("the list that came back holds {}; it should hold full names", ["other things than texts"] * unnamed),
    )
    return next((InWords(told.format(listed(found))) for told, found in faults if found), "as expected")


def _own_names(case: Case) -> list[str]:
    """The names of a small classifier's parameters; none of a plain stack's."""
    layers = case.arguments[0]["layers"]
    return [*PARTS[:2], *encoder_names(layers), *PARTS[2:]] if layers else []


def encoder_names(layers: int) -> list[str]:
    """The names of the parameters in the encoder's layers."""
    return [
        f"encoder.layers.{n}.{part}.{kind}"
        for n in range(layers)
        for part in ("norm1", "query", "key", "value", "output", "norm2", "wide", "narrow")
        for kind in ("weight", "bias")
    ]


PARTS = (
    "encoder.words.weight", "encoder.places.weight", "encoder.norm.weight", "encoder.norm.bias",
    "head_norm.weight", "head_norm.bias", "head.weight", "head.bias",
)  # fmt: skip
BODY = (*PARTS[:2], *encoder_names(2), *PARTS[2:4])  # of the model with two layers, for cases that come frozen


def names_of(evidence: Evidence, what: str) -> tuple[list[str], list[str]]:
    """The value of a key, as it is and as it should be."""
    return evidence.got[what], evidence.expected[what]


def learns(evidence: Evidence) -> str:
    """What learns too much, or too little."""
    got, wanted = names_of(evidence, "what learns")
    more, less = [name for name in got if name not in wanted], [name for name in wanted if name not in got]
    if more:
        return f"With names = {evidence.arguments[1]}, this still learns: {listed(more)}."
    return (
        f"With names = {evidence.arguments[1]}, this should learn and does not: {listed(less)}." if less
        else moved(evidence)
    )


def moved(evidence: Evidence) -> str:
    """What the next step moves."""
    got, wanted = names_of(evidence, "moved by a step")
    more = [name for name in got if name not in wanted]
    if more:
        return f"With names = {evidence.arguments[1]}, the next step of an optimizer still moved {listed(more)}."
    return f"With names = {evidence.arguments[1]}, the next step moved {listed(got)}."


def came_back(evidence: Evidence) -> str:
    """What was returned."""
    got, wanted = names_of(evidence, "what came back")
    if isinstance(got, list) and all(isinstance(name, str) for name in got):
        return f"You return {listed(got)}; {listed(wanted)} would be right."
    return ""


def stays_frozen(evidence: Evidence) -> bool:
    """Whether all that should learn and does not came frozen."""
    less = set(evidence.expected["what learns"]) - set(evidence.got["what learns"])
    more = set(evidence.got["what learns"]) - set(evidence.expected["what learns"])
    return bool(less) and not more and less <= set(evidence.arguments[0]["frozen"])


def other_mode(evidence: Evidence) -> str:
    return (
        "The model was in training mode and is now in evaluation mode." if evidence.arguments[0]["training"]
        else "The model was in evaluation mode and is now in training mode."
    )


RIGHT = answer("""
    def freeze_except(model, names):
        parameters = dict(model.named_parameters())
        def chosen(full):
            return any(full == name or full.startswith(name + ".") for name in names)
        for name in names:
            if not any(full == name or full.startswith(name + ".") for full in parameters):
                raise ValueError(f"names: the model has no {name}")
        for full, parameter in parameters.items():
            parameter.requires_grad = chosen(full)
            if not chosen(full):
                parameter.grad = None
        return [full for full in parameters if chosen(full)]
""")
CHOSEN = 'return any(full == name or full.startswith(name + ".") for name in names)'
SET, FORGET = "parameter.requires_grad = chosen(full)", "parameter.grad = None"
KNOWN = 'if not any(full == name or full.startswith(name + ".") for full in parameters):'
RAISED = 'raise ValueError(f"names: the model has no {name}")'
RETURNED = "return [full for full in parameters if chosen(full)]"
IF_NOT = "if not chosen(full):"

# fmt: off
BEGINNING_OF_A_NAME = Family("the beginning of a name is enough", """Names that merely begin alike are taken for the
    same: `head_norm` begins with `head`, and `encoder.layers.10` with `encoder.layers.1`. After the name comes a dot,
    or nothing.""")
REFUSED_A_NAME = Family("a name refused that means something", """Your code raises ValueError for a name that selects
    something in this model. A name may have dots. It selects the parameter with exactly that name, and all parameters
    whose names begin with it and a dot; refuse only a name that selects nothing in this way.""")
FIRST_NAME = Family("the first name alone", """Only what the first name selects learns; the other names have no
    effect. A parameter learns if *any* name selects it.""")
LAST_NAME = Family("the last name alone", """Each name undoes the one before: only what the last of them selects
    learns. Every name counts, not only one of them.""")
# fmt: on

EXERCISE = Exercise(
    id="freeze-except", number="15.3", difficulty=2, minutes=30, visible_points=1, hidden_points=4,
    reference=freeze_except, normalize=what_became, harness="freezing", section=FREEZE, quotes=learns,
    probes=(
        visible("the head alone", given(2, ["head"])),
        visible("a whole layer, and one bias elsewhere",
                given(2, ["encoder.layers.1", "encoder.norm.bias"], training=False)),
        visible("gradients that were there before", given(2, ["head"], stale=2.0)),
        visible("another model, whose parts have numbers", given(0, ["0"])),
        visible("a name that the model does not have", given(2, ["hea"])),
        hidden("layer 1 of twelve", model, 12, ["encoder.layers.1", "head"],
               announced_by="`encoder.layers.1` does not select `encoder.layers.10`"),
        hidden("some of it comes frozen", model, 2, ["encoder", "head_norm"], frozen=BODY,
               announced_by="may come frozen"),
        hidden("nothing is named", model, 1, [], stale=-1.0, announced_by="With an empty list everything is frozen"),
        hidden("the whole of it is named", model, 1, ["encoder", "head_norm", "head"], training=False,
               announced_by="names: a list of names"),
        hidden("a norm, with old gradients", model, 2, ["encoder.norm", "encoder.layers.0.norm2.weight"], stale=0.5,
               announced_by="any parameter or part of the model"),
        hidden("a number, and a parameter by itself", model, 0, ["1", "factor", "1"], announced_by="any nn.Module"),
        hidden("a number that begins another", model, 0, ["10", "0"], training=False, announced_by="any nn.Module"),
        hidden("the beginning of a name", model, 2, ["head", "encoder.layers.1."],
               announced_by="a name that selects no parameter"),
        hidden("the end of a name", model, 2, ["norm"], announced_by="a name that selects no parameter"),
        second_call(model, 2, ["encoder.places", "head_norm.bias"], checks=UNTOUCHED, announced_by=PROMISED),
    ),
    mistakes=(
        mistake("an attribute of the module", RIGHT.but(SET, "pass").but(RETURNED, f"""
                  for name, module in model.named_modules():
                      module.requires_grad = chosen(name)
                  {RETURNED}"""), FREEZE,
            """requires_grad was set on a *module*, where it is a new attribute that has no effect. The flag belongs to
            the parameters; a module's own method for it ends in an underscore.""",
            shows=lambda evidence: bool(evidence.got.told["flags"])),
        mistake("only the gradients forgotten", RIGHT.without(SET), FREEZE,
            """Every parameter still has requires_grad = True. A gradient that is set to None, or a model in evaluation
            mode, freezes nothing: backward writes new gradients, and the step moves weights that should not move. If
            you set the flag, check its spelling: a misspelled attribute raises no error."""),
        mistake("norms go on learning", RIGHT.but(SET, 'parameter.requires_grad = chosen(full) or "norm" in full').but(
                  IF_NOT, 'if not chosen(full) and "norm" not in full:'), FREEZE,
            """The norms still learn, though they are not named. A norm has a weight and a bias as a linear layer has;
            whatever is not named is frozen."""),
        mistake("norms frozen though they are named",
                RIGHT.but(SET, 'parameter.requires_grad = chosen(full) and "norm" not in full'), FREEZE,
            "A norm that is named does not learn. It has parameters as any other part."),
        mistake("linear layers alone", RIGHT.but(RETURNED, """
                  for module in model.modules():
                      if not isinstance(module, nn.Linear):
                          for parameter in module.parameters(recurse=False):
                              parameter.requires_grad = True
                  return [full for full in parameters if chosen(full)]"""), FREEZE,
            """Linear layers were frozen and nothing else: embeddings and norms go on learning. Go through all
            parameters, whatever kind of layer they belong to."""),
        mistake("only the gradients forgotten, and named by the flags",
                RIGHT.without(SET).but("if chosen(full)]", "if parameters[full].requires_grad]"), FREEZE,
            """Every parameter still has requires_grad = True. What is not named has to be frozen: the flag becomes
            False. If you set it, check its spelling: a misspelled attribute raises no error, and the method whose name
            ends in an underscore has to be called, not assigned."""),
        mistake("old gradients kept", RIGHT.without(FORGET).without(IF_NOT), FREEZE,
            """requires_grad is off, but the frozen parameters still hold a gradient: the earlier one, or one of zeros.
            An optimizer that was made before moves whatever has a gradient, and with weight decay even zeros shrink the
            weights. Remove it: .grad becomes None.""", quotes=moved),
        mistake("old gradients set to zero", RIGHT.but(FORGET, "parameter.grad = torch.zeros_like(parameter)"), FREEZE,
            """What is frozen has a gradient of zeros now. That is not no gradient: an optimizer with weight decay still
            shrinks the weights, and one with momentum goes on in its old direction. Only None is passed over.""",
            quotes=moved),
        mistake("a part of a name is enough", RIGHT.but(CHOSEN, "return any(name in full for name in names)"), FREEZE,
            """A name was looked for anywhere in the parameter's name: `head` is found in `head_norm` too, and
            `encoder.layers.1` in `encoder.layers.10`. A name selects the parameter with exactly that name, and all
            whose names begin with it and a dot."""),
        BEGINNING_OF_A_NAME(RIGHT.but(CHOSEN, "return any(full.startswith(name) for name in names)"), FREEZE),
        mistake("a part of a name, even where nothing is meant",
                RIGHT.but(CHOSEN, "return any(name in full for name in names)").but(
                  KNOWN, "if not any(name in full for full in parameters):"), FREEZE,
            """A name was looked for anywhere in the parameter's name: `head` is found in `head_norm` too, and `norm`
            everywhere. A name selects the parameter with exactly that name, and all whose names begin with
            it and a dot."""),
        BEGINNING_OF_A_NAME(RIGHT.but(CHOSEN, "return any(full.startswith(name) for name in names)").but(
                  KNOWN, "if not any(full.startswith(name) for full in parameters):"),
            FREEZE, name="the beginning of a name, even where nothing is meant"),
        mistake("whole names alone", RIGHT.but(CHOSEN, "return full in names").but(KNOWN, "if False:"), FREEZE,
            """Only parameters that are named in full learn; `head`, which selects `head.weight` and `head.bias`, found
            nothing. A name selects its own parameter, and all whose names go on after it with a dot."""),
        mistake("parts alone", RIGHT.but(CHOSEN, 'return any(full.startswith(name + ".") for name in names)').but(
                  KNOWN, "if False:"), FREEZE,
            """A parameter that is named in full, such as `encoder.norm.bias`, does not learn: only names that go on
            after a dot were compared. A name also selects the parameter with exactly that name."""),
        mistake("the first part of a name alone",
                RIGHT.but(CHOSEN, 'return full.split(".")[0] in [name.split(".")[0] for name in names]').but(
                  KNOWN, 'if name.split(".")[0] not in [full.split(".")[0] for full in parameters]:'), FREEZE,
            "Names were compared up to their first dot, so one layer of the encoder meant all of it. Compare the "
            "whole name."),
        mistake("the other way round",
                RIGHT.but(SET, "parameter.requires_grad = not chosen(full)").but(IF_NOT, "if chosen(full):"), FREEZE,
            "The named parameters are frozen and the rest learns: it is the other way round."),
        mistake("the other way round, in the list too",
                RIGHT.but("return any(full == name", "return not any(full == name"), FREEZE,
            "The named parameters are frozen and the rest learns, in the returned list too: it is the other way "
            "round."),
        LAST_NAME(RIGHT.but(CHOSEN, """
                  return bool(names) and (full == names[-1] or full.startswith(names[-1] + "."))"""),
            FREEZE, name="the last name alone, in the list too"),
        LAST_NAME(RIGHT.but(SET, """
                  for name in names:
                      parameter.requires_grad = full == name or full.startswith(name + ".")
                  if not names:
                      parameter.requires_grad = False"""),
            FREEZE),
        FIRST_NAME(RIGHT.but(SET, """
                  parameter.requires_grad = bool(names) and (full == names[0] or full.startswith(names[0] + "."))"""),
                  FREEZE),
        FIRST_NAME(RIGHT.but(CHOSEN, """
                  return bool(names) and (full == names[0] or full.startswith(names[0] + "."))"""),
            FREEZE, name="the first name alone, in the list too"),
        mistake("everything frozen", RIGHT.but(SET, "parameter.requires_grad = False"), FREEZE,
            "No parameter is trainable any more. What is named should be."),
        mistake("frozen for ever", RIGHT.but(SET, "parameter.requires_grad = parameter.requires_grad and chosen(full)"),
                FREEZE,
            """What had been frozen before stays frozen, even where it is named: the call only freezes and never
            unfreezes. Afterwards exactly what is named is trainable, whatever was trainable
            before.""", shows=stays_frozen),
        mistake("names without a dot alone",
                RIGHT.but(CHOSEN, 'return full.split(".")[0] in names'), FREEZE,
            """Only the parts that the model itself has, up to the first dot, were compared with the names, so
            `encoder.layers.1` found nothing. A name may have dots of its own."""),
        # by what is visible, other ways to miss names with dots look alike, such as to compare up to the last dot
        REFUSED_A_NAME(RIGHT.but(CHOSEN, 'return any(name in full.split(".") for name in names)').but(
                  KNOWN, 'if not any(name in full.split(".") for full in parameters):'),
            FREEZE, name="one word between the dots"),
        mistake("evaluation mode", RIGHT.but(SET, "pass").but(FORGET, "model.eval()").but(IF_NOT, "if True:"), FREEZE,
            """The model was put into evaluation mode. That switches dropout off and freezes nothing: every weight still
            gets its gradient and moves."""),
        mistake("frozen, and in evaluation mode", RIGHT.before(RETURNED, "model.eval()"), FREEZE,
            """The model was put into evaluation mode as well. Whether it trains is another question: dropout belongs to
            the head that learns. Leave the mode as it is.""", quotes=other_mode),
        mistake("frozen, and in training mode", RIGHT.before(RETURNED, "model.train()"), FREEZE,
            "The model was put into training mode as well. Leave the mode as it is; the loop that trains sees to it.",
            quotes=other_mode),
        mistake("a name that means nothing goes by", RIGHT.but(KNOWN, "if False:"), FREEZE,
            """A misspelled name was accepted: everything was frozen, so training would run for hours and learn nothing.
            A name that selects no parameter raises ValueError."""),
        mistake("only if no name means anything", RIGHT.but(KNOWN, "if not any(map(chosen, parameters)):"), FREEZE,
            "One name of the list matches nothing, and was passed over because the others match. Each name has to "
            "match something."),
        REFUSED_A_NAME(RIGHT.but(CHOSEN, "return full in names").but(KNOWN, "if name not in parameters:"),
            FREEZE, name="only whole names, others refused"),
        families.ASSERTED(RIGHT.but(RAISED, "assert False"), FREEZE),
        mistake("stops with KeyError", RIGHT.but("raise ValueError", "raise KeyError"), FREEZE,
            "A name that matches nothing ends in a KeyError. Raise a ValueError, so that a caller can tell it from a "
            "bug in your code."),
        mistake("stops with AttributeError", RIGHT.but(RAISED, "model.get_parameter(name)"), FREEZE,
            """A name that matches nothing ends in torch's own AttributeError, which a slip in your code would raise as
            well. The task asks for a ValueError."""),
        mistake("nothing comes back", RIGHT.without(RETURNED), FREEZE,
            "The model is right, but nothing came back. Return the full names of what learns, such as `head.weight`."),
        mistake("the names as they were given", RIGHT.but(RETURNED, "return list(names)"), FREEZE,
            """The names came back as they were given. Return the *full* names of what learns: for `head`,
            `head.weight` and `head.bias`.""",
            quotes=came_back),
        mistake("the last words of the names", RIGHT.but("return [full for", 'return [full.split(".")[-1] for'), FREEZE,
            "Only the last words of the names came back, and many parameters are called `weight`. Return "
            "the full names.", quotes=came_back),
        mistake("the names of what is frozen", RIGHT.but("if chosen(full)]", "if not chosen(full)]"), FREEZE,
            "The names of what is frozen came back. Return the names of what learns.", quotes=came_back),
        mistake("all names", RIGHT.but(" if chosen(full)]", "]"), FREEZE,
            "The names of all parameters came back. Return the names of what learns.", quotes=came_back),
        mistake("the parameters themselves",
                RIGHT.but(RETURNED, "return [parameters[full] for full in parameters if chosen(full)]"), FREEZE,
            "The parameters themselves came back. Return their full names: they can be read, and counted."),
        mistake("the model", RIGHT.but(RETURNED, "return model"), FREEZE,
            "The model came back. Return the full names of what learns, such as `head.weight`."),
        mistake("names with their parameters",
                RIGHT.but(RETURNED, "return [(full, parameters[full]) for full in parameters if chosen(full)]"), FREEZE,
            "Pairs came back, of names and parameters. Return only the full names."),
        mistake("how many numbers learn",
                RIGHT.but(RETURNED, "return sum(parameters[full].numel() for full in parameters if chosen(full))"),
                FREEZE,
            "A number came back. Return the full names of what learns."),
        mistake("new parameters in their place", RIGHT.but(RETURNED, f"""
                  for full, parameter in parameters.items():
                      home, _, last = full.rpartition(".")
                      setattr(model.get_submodule(home), last, nn.Parameter(parameter.detach().clone(), chosen(full)))
                  {RETURNED}"""), FREEZE,
            """The model has new parameters instead of its own. An optimizer that was made before still holds the old
            ones and moves those. Change the flag of the parameters that are there.""", quotes=None),
        mistake("weights set to zero", RIGHT.but(FORGET, "parameter.grad = None\n            parameter.data.zero_()"),
                FREEZE,
            "The weights of what is frozen were overwritten. Frozen means that they stay as they are.", quotes=None),
        mistake("another mode", RIGHT.before(RETURNED, """
                  model.eval()
                  for module in model.modules():
                      if isinstance(module, nn.Linear):
                          module.train()"""), FREEZE,
            """Parts of the model are in a different mode than before the call, training or evaluation. Freezing is
            about what learns; leave the mode of every part as it is.""",
            quotes=None,
            shows=lambda evidence: bool(evidence.got["other mode"])
            and evidence.got["what learns"] == evidence.expected["what learns"]),
    ),
    correct=(
        correct("by full names", RIGHT),
        correct("all frozen first, then let go", """
            def freeze_except(model, names):
                for p in model.parameters():
                    p.requires_grad_(False)
                learning = []
                for wanted in names:
                    found = [(n, p) for n, p in model.named_parameters() if n == wanted or n.startswith(f"{wanted}.")]
                    if not found:
                        raise ValueError(f"nothing is called {wanted!r}")
                    for n, p in found:
                        p.requires_grad_(True)
                        learning.append(n)
                for p in model.parameters():
                    if not p.requires_grad:
                        p.grad = None
                return [n for n, _ in model.named_parameters() if n in learning]
        """),
        correct("paths as lists", """
            def freeze_except(model, names):
                def path(name):
                    return name.split(".")
                wanted = [path(name) for name in names]
                used = [False] * len(wanted)
                kept = []
                for name, weight in model.named_parameters():
                    hits = [path(name)[:len(w)] == w for w in wanted]
                    used = [a or b for a, b in zip(used, hits)]
                    weight.requires_grad = any(hits)
                    if any(hits):
                        kept.append(name)
                    else:
                        weight.grad = None
                if not all(used):
                    raise ValueError(names)
                return tuple(kept)
        """),
        correct("a regular expression", """
            import re

            class NoSuchName(ValueError):
                pass

            def freeze_except(module, keep):
                every = [n for n, _ in module.named_parameters()]
                chosen = set()
                for name in keep:
                    pattern = re.compile(re.escape(name) + r"(\\..*)?")
                    hits = [n for n in every if pattern.fullmatch(n)]
                    if len(hits) == 0:
                        raise NoSuchName(name)
                    chosen.update(hits)
                for n, p in module.named_parameters():
                    p.requires_grad = n in chosen
                    p.grad = p.grad if n in chosen else None
                return sorted(chosen)
        """),
        correct("module by module", """
            def freeze_except(model, names):
                model.requires_grad_(False)
                modules, weights = dict(model.named_modules()), dict(model.named_parameters())
                for name in names:
                    if name in modules:
                        modules[name].requires_grad_(True)
                    elif name in weights:
                        weights[name].requires_grad_(True)
                    else:
                        raise ValueError(name)
                for weight in weights.values():
                    if not weight.requires_grad:
                        weight.grad = None
                return {name for name, weight in weights.items() if weight.requires_grad}
        """),
        correct("with a dot behind every name", """
            def freeze_except(model, names):
                ends = tuple(n + "." for n in names)
                if not all(any((n + ".").startswith(e) for n, _ in model.named_parameters()) for e in ends):
                    raise ValueError("unknown name")
                for n, p in model.named_parameters():
                    p.requires_grad_((n + ".").startswith(ends))
                model_frozen = filter(lambda p: not p.requires_grad, model.parameters())
                for p in model_frozen:
                    p.grad = None
                return (n for n, p in model.named_parameters() if p.requires_grad)
        """),
    ),
    omits={"precision": "no number is computed"},
    hints=(
        "does `head` mean `head_norm`? And if a frozen parameter still holds a gradient, what does an optimizer "
        "do with that?",
        "the method `named_parameters` gives pairs of a full name and a parameter; each parameter gets one flag, and a "
        "frozen one no gradient; a list of names comes back.",
        "for each name: does any full name equal it or begin with it and a dot? If none, ValueError. For each "
        "parameter: requires_grad is "
        "whether any name selects it; if not, its grad becomes None. Return the full names of what learns.",
    ),
)  # fmt: skip
