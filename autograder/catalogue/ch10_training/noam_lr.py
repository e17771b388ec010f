"""10.4: the learning rate of each step."""

import math
from itertools import product

import torch

from autograder.catalogue.ch10_training.shared import sections, the_number
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.training.schedule import noam_rate

(SCHEDULE,) = sections("schedule")


def noam_lr(step: int, d: int, warmup: int) -> float:
    """d^-.5 times the smaller of step^-.5 and step * warmup^-1.5, step counted from 1."""
    return noam_rate(step, d, warmup)


def some(g: torch.Generator, steps: tuple[int, int], warmups: tuple[int, int]) -> Case:
    """A step, a width and a length of the warm-up, drawn from ranges that leave out their ends."""
    step, d, warmup = (int(torch.randint(*ends, (), generator=g)) for ends in (steps, (20, 2000), warmups))
    return Case((step, d, warmup))


HALVED = "-1/2 (or -3/2) after ** has no brackets: Python computes the power of -1 (or -3) first, and divides by 2"
FLOORED = "-1 // 2 or -3 // 2 is a power: // rounds down, to -1 and -2"
UNSIGNED = "a power, or more than one, lacks its minus sign: all three have one"
ONE_DIVIDED = "the root of d divides only one of the two numbers. It divides whichever is smaller"


def slip_in_a_power(evidence: Evidence) -> str:
    """The slip in the powers that gives exactly this rate, as the end of "if ..."; "" where none does."""
    if not isinstance(evidence.got, (int, float)):
        return ""
    step, d, warmup = evidence.arguments
    falling, width, rising = step**-0.5, d**-0.5, warmup**-1.5
    variants = {
        HALVED: ((falling, step**-1 / 2), (width, d**-1 / 2), (rising, warmup**-3 / 2)),
        FLOORED: ((falling, step**-1), (width, d**-1), (rising, warmup**-2)),
        UNSIGNED: ((falling, 1 / falling), (width, 1 / width), (rising, 1 / rising)),
    }
    rates = {ONE_DIVIDED: [min(width * falling, step * rising), min(falling, width * step * rising)]} | {
        slip: [by * min(fall, step * rise) for fall, by, rise in product(*powers)][1:]
        for slip, powers in variants.items()
    }
    return next((slip for slip, found in rates.items()
                 if any(math.isclose(evidence.got, rate, rel_tol=1e-6) for rate in found)), "")  # fmt: skip


def rate_and_slip(evidence: Evidence) -> str:
    """The rate, the correct one, and the slip in the powers that gives it."""
    slip = slip_in_a_power(evidence)
    return f"{the_number(evidence)} That is what comes out if {slip}." if slip else the_number(evidence)


def rises_to_1(evidence: Evidence) -> bool:
    """Whether the line is step / warmup, up to where it meets the curve or up to the end of the warm-up."""
    step, d, warmup = evidence.arguments
    lines = [min(step / warmup, step**-0.5), *([step / warmup] if step <= warmup else [])]
    return any(math.isclose(evidence.got, d**-0.5 * line, rel_tol=1e-6) for line in lines)


RIGHT = answer("""
    def noam_lr(step, d, warmup):
        if step < 1:
            raise ValueError("steps count from 1")
        rising = step * warmup ** -1.5
        falling = step ** -0.5
        return d ** -0.5 * min(rising, falling)
""")
CHECK = 'if step < 1:\n        raise ValueError("steps count from 1")\n    '
RISING, FALLING, SMALLER, WIDTH = "step * warmup ** -1.5", "step ** -0.5", "min(rising, falling)", "d ** -0.5"
EXACT = dict(atol=0.0)  # the smallest rates are far below any absolute tolerance

EXERCISE = Exercise(
    id="noam-lr", number="10.4", difficulty=1, minutes=10, visible_points=1, hidden_points=3,
    reference=noam_lr, section=SCHEDULE,
    probes=(
        visible("step 1, d = 512, warm-up 4,000", Case((1, 512, 4000)), **EXACT),
        visible("step 4,000, the peak", Case((4000, 512, 4000)), **EXACT),
        visible("step 16,000", Case((16_000, 512, 4000)), **EXACT),
        visible("step 0", Case((0, 512, 4000)), **EXACT),
        hidden("a step of the warm-up", some, (2, 900), (1000, 6000), announced_by=PROMISED, **EXACT),
        hidden("a step after it", some, (7000, 90_000), (1000, 6000), announced_by=PROMISED, **EXACT),
        hidden("the last step of the warm-up",
               lambda g: Case((step := int(torch.randint(50, 900, (), generator=g)), 300, step)),
               announced_by=PROMISED, **EXACT),
        hidden("a step of a quadrillion", Case((2**50, 96, 30)), announced_by="step: from 1, however large",
               **EXACT),
        hidden("a warm-up of one step", some, (2, 40), (1, 2), announced_by="1 or more", **EXACT),
        hidden("a step below 0", Case((-3, 64, 10)), announced_by="Raises ValueError for a step below 1", **EXACT),
        hidden("step 0, other sizes", some, (0, 1), (5, 90), announced_by="Raises ValueError for a step below 1",
               **EXACT),
        second_call(some, (2, 900), (1000, 6000), **EXACT),
    ),
    mistakes=(
        mistake("the larger one", RIGHT.but("min(", "max("), SCHEDULE,
            """You take the *larger* of the two, so the schedule begins with a huge rate and grows without end. The
            smaller one is the line that rises, and after the warm-up the curve that falls.""", quotes=the_number),
        mistake("the root of d, not over it", RIGHT.but(WIDTH, "d ** 0.5"), SCHEDULE,
            "The rate was multiplied by the root of d. It is *divided* by it: wider models take smaller steps.",
            quotes=the_number),
        mistake("divided by d", RIGHT.but(WIDTH, "d ** -1"), SCHEDULE,
            "The rate was divided by d itself. It is divided by its root.", quotes=the_number),
        mistake("d left out", RIGHT.but(f"{WIDTH} * ", ""), SCHEDULE,
            "The width d has no effect. The rate is divided by the root of d.", quotes=the_number),
        mistake("no warm-up", RIGHT.but(SMALLER, "falling"), SCHEDULE,
            """Nothing rises: step 1 has the largest rate of all, when the weights are still drawn at random. Is the
            sign of a power missing, or one of the two parts?""", quotes=the_number),
        mistake("it never falls", RIGHT.but(SMALLER, "rising"), SCHEDULE,
            "The rate rises for ever. After the warm-up it falls like 1 over the root of the step.", quotes=the_number),
        mistake("held at the peak", RIGHT.but(SMALLER, "min(rising, warmup ** -0.5)"), SCHEDULE,
            "After the warm-up the rate stays at its peak. It falls like 1 over the root of the step.",
            quotes=the_number),
        mistake("falls like a line",
                RIGHT.but(SMALLER, "(rising if step <= warmup else warmup ** -0.5 * max(0.0, 1 - (step - warmup) / "
                                   "(10 * warmup)))"),
            SCHEDULE, "After the warm-up the rate falls along a straight line. Here it falls like 1 over the root of "
                      "the step.", quotes=the_number),
        mistake("falls like 1 over the step", RIGHT.but(FALLING, "step ** -1 * warmup ** 0.5"), SCHEDULE,
            "After the warm-up the rate falls like 1 over the step. It falls like 1 over its root.", quotes=the_number),
        mistake("1 over the step", RIGHT.but(FALLING, "1 / step"), SCHEDULE,
            "The second part is 1 over the step. It is 1 over its *root*: step to the power of -.5."),
        mistake("falls from the end of the warm-up",
                RIGHT.but(SMALLER, "(rising if step <= warmup else (step - warmup) ** -0.5)"), SCHEDULE,
            "After the warm-up the steps were counted from 1 again. The curve falls with the root of the step "
            "itself."),
        mistake("falls from the end of the warm-up, and from the peak",
                RIGHT.but(SMALLER, "(rising if step <= warmup else warmup ** -0.5 * (step - warmup) ** -0.5)"),
                SCHEDULE,
            "The falling part begins at the peak and counts its steps from the end of the warm-up. Divide by the root "
            "of the step itself, which counts from the first one."),
        mistake("warm-up to the power -.5", RIGHT.but("-1.5", "-0.5"), SCHEDULE,
            "The line rises too fast: you used warmup to the power of -0.5. With -1.5 the two meet exactly at step "
            "= warmup.", quotes=the_number),
        mistake("warm-up to the power -1", RIGHT.but("-1.5", "-1"), SCHEDULE,
            "The line rises from 0 to 1, as a *fraction* of the peak. With the power -1.5 it meets the falling curve "
            "where the warm-up ends.",
            quotes=the_number, shows=rises_to_1),
        mistake("warm-up to the power -2/3", RIGHT.but("-1.5", "(-2 / 3)"), SCHEDULE,
            "The line rises too fast: warmup has the power -2/3, a fraction upside down. With -3/2 it meets the "
            "falling curve exactly at step = warmup.", quotes=the_number),
        mistake("a power without brackets", RIGHT.but(WIDTH, "d ** -1 / 2"), SCHEDULE,
            "Compare each power and each bracket of your formula with the one on the page.",
            quotes=rate_and_slip, shows=lambda evidence: bool(slip_in_a_power(evidence))),
        mistake("counted from 0", RIGHT.but(CHECK, 'if step < 0:\n        raise ValueError\n    step = step + 1\n    '),
                SCHEDULE,
            "Your steps are one further than they should be: 1 was added. Steps count from 1 here, and step "
            "0 is an error.", quotes=the_number),
        mistake("one step too few", RIGHT.but(RISING, "(step - 1) * warmup ** -1.5"), SCHEDULE,
            "The first step has a rate of 0: the line rises from step - 1. Steps count from 1.", quotes=the_number),
        mistake("step 0 divides by zero", RIGHT.but(CHECK, ""), SCHEDULE,
            "Step 0 stops with ZeroDivisionError, or a negative step gives a complex number. Steps count from 1: "
            "what is below raises ValueError."),
        mistake("step 0 gives 0", RIGHT.but('raise ValueError("steps count from 1")', "return 0.0"), SCHEDULE,
            "Step 0 gives 0. A training run that counts from 0 would silently lose its first step: raise ValueError."),
        mistake("step 0 taken for step 1",
                RIGHT.but('if step < 1:\n        raise ValueError("steps count from 1")', "step = max(step, 1)"),
                SCHEDULE,
            "Step 0 is taken for step 1. A training loop that counts from 0 would never notice: raise ValueError."),
        mistake("an assertion",
                RIGHT.but('if step < 1:\n        raise ValueError("steps count from 1")', "assert step >= 1"), SCHEDULE,
            "Step 0 raises AssertionError. A wrong argument is a ValueError; assert is for what cannot happen."),
        mistake("only step 0 refused", RIGHT.but("step < 1", "step == 0"), SCHEDULE,
            "Step 0 raises ValueError, and a step below it does not. Nothing below 1 is a step."),
        mistake("the product of both", RIGHT.but(SMALLER, "rising * falling"), SCHEDULE,
            "The two were multiplied. The smaller one counts.", quotes=the_number),
        mistake("the sum of both", RIGHT.but(SMALLER, "(rising + falling)"), SCHEDULE,
            "The two were added. The smaller one counts.", quotes=the_number),
        mistake("a share of the peak", RIGHT.but(f"{WIDTH} * {SMALLER}", "min(step / warmup, (warmup / step) ** 0.5)"),
                SCHEDULE,
            "This is the rate as a fraction of its peak, 1 at the end of the warm-up. Return the rate itself, the peak "
            "being 1 over the root of d * warmup.",
            quotes=the_number),
        mistake("twice the rate", RIGHT.but(f"{WIDTH} * ", f"2 * {WIDTH} * "), SCHEDULE,
            "The rate is twice what the formula gives. (Some recipes have such a factor in front; here there is none.)",
            quotes=the_number),
        mistake("4,000 and 512 written in", RIGHT.but("warmup ** -1.5", "4000 ** -1.5").but("d ** -0.5", "512 ** -0.5"),
                SCHEDULE,
            "The rate is the same whatever d and warmup are. They are the second and third argument."),
        mistake("4,000 written in", RIGHT.but("warmup ** -1.5", "4000 ** -1.5"), SCHEDULE,
            "The rate is the same whatever warmup is. It is the third argument."),
        mistake("512 written in", RIGHT.but("d ** -0.5", "512 ** -0.5"), SCHEDULE,
                "The rate is the same whatever d is. It is the second argument."),
        mistake("a tensor", RIGHT.ending_in(" + torch.zeros(())"), SCHEDULE,
                "A tensor came back. Return a plain Python number, a float."),
        mistake("rounded", RIGHT.but(f"return {WIDTH} * {SMALLER}", f"return round({WIDTH} * {SMALLER}, 6)"), SCHEDULE,
            "The rate was rounded. The first rates are tiny, 0.000000175, and rounding makes 0 of them.",
            quotes=the_number),
        mistake("d and warm-up exchanged",
                RIGHT.but("warmup ** -1.5", "d ** -1.5").but("d ** -0.5 *", "warmup ** -0.5 *"), SCHEDULE,
            "d and warmup are exchanged. The second argument is the width, the third the length of the warm-up.",
            quotes=the_number),
    ),
    correct=(
        correct("the smaller of two", RIGHT),
        correct("if and else", """
            def noam_lr(step, d, warmup):
                if step <= 0:
                    raise ValueError(f"step must be at least 1, got {step}")
                if step < warmup:
                    return step / (warmup * math.sqrt(warmup * d))
                return 1 / math.sqrt(step * d)
        """),
        correct("by way of tensors", """
            def noam_lr(t, d_model, warm):
                if t < 1:
                    raise ValueError("step")
                s = torch.tensor([t ** -0.5, t * warm ** -1.5], dtype=torch.float64)
                return (d_model ** -0.5 * s.min()).item()
        """),
        correct("share of the peak", """
            def noam_lr(step, d, warmup):
                if not step >= 1:
                    raise ValueError("step")
                peak = (d * warmup) ** -0.5
                return peak * min(step / warmup, (warmup / step) ** 0.5)
        """),
        correct("numbers' own powers", """
            def noam_lr(step, d, warmup):
                try:
                    if step < 0:
                        raise ValueError
                    return math.pow(d, -0.5) * min(1 / math.sqrt(step), step / math.pow(warmup, 1.5))
                except ZeroDivisionError:
                    raise ValueError("step 0")
        """),
        correct("logarithms", """
            def noam_lr(step, d, warmup):
                if step < 1:
                    raise ValueError("steps begin at 1")
                log_rate = min(-0.5 * math.log(step), math.log(step) - 1.5 * math.log(warmup)) - 0.5 * math.log(d)
                return math.exp(log_rate)
        """),
    ),
    omits={
        "a batch of one": "three numbers are given, no tensor",
        "a length of one": "three numbers are given, no tensor",
        "repeated items": "three numbers are given, no tensor",
    },
    hints=(
        "the rate follows the smaller of two numbers. One grows with the step, the other falls. Which of them is "
        "smaller at step 1, and which long after the warm-up?",
        "three numbers in, one plain float out. Both parts are equal where step = warmup.",
        "below 1: ValueError; the smaller of step to the power -.5 and step times warmup to the power -1.5; divided "
        "by the root of d.",
    ),
)  # fmt: skip
