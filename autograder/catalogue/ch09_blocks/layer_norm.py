"""09.1: each word normalized to mean 0 and variance 1, separately."""

import torch
from torch import Tensor

from autograder.catalogue.ch09_blocks.shared import WORKED, first_number, sections, wrong_word
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible

NORM, STD, EPSILON, AXIS = sections("norm std epsilon axis")
EPS = 1e-5
TWO_WORDS = torch.stack([WORKED, torch.tensor([9.0, 7.0, 7.0, 5.0])])[None]  # x of the notebook
LIBRARY = ("layer_norm", "group_norm", "native_group_norm", "instance_norm", "batch_norm", "native_batch_norm")


def layer_norm(x: Tensor, g: Tensor, b: Tensor, eps: float) -> Tensor:
    """(x - mean) / sqrt(variance + eps), times g, plus b, over the last axis."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * g + b


def plain(x: Tensor, eps: float = EPS) -> Case:
    """g = 1 and b = 0."""
    return Case((x, torch.ones(x.shape[-1]), torch.zeros(x.shape[-1]), eps))


def inputs(g: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32, eps: float = EPS) -> Case:
    """Rows far from mean 0 and variance 1, with drawn g and b."""
    D = shape[-1]
    x = 3 * normal(g, *shape, dtype=dtype) + 2
    return Case((x, 1 + 0.5 * normal(g, D, dtype=dtype), normal(g, D, dtype=dtype), eps))


def far_from_zero(g: torch.Generator) -> Case:
    """Numbers around 100,000,000: their differences are lost in float32, those of their squares in float64 too."""
    x, scale, shift, eps = inputs(g, 2, 3, 5, dtype=torch.float64).arguments
    return Case((x + FAR, scale, shift, eps))


def equal_numbers(g: torch.Generator) -> Case:
    """Rows of equal numbers among ordinary ones."""
    x, scale, shift, eps = inputs(g, 2, 3, 4).arguments
    x[0, 1], x[1, 2] = 2.0, 0.0
    return Case((x, scale, shift, eps))


def divides_one_of_two(evidence: Evidence) -> bool:
    """Whether x was divided by the root and no mean subtracted, or the mean was divided before it was subtracted."""
    x, g, b, eps = evidence.arguments
    mean, root = x.mean(dim=-1, keepdim=True), torch.sqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    results = (x / root * g + b, (x - mean / root) * g + b, g * x - mean / root + b)
    return any(torch.allclose(evidence.got, result, rtol=1e-3, atol=1e-4) for result in results)


def two_features(g: torch.Generator) -> Case:
    """Two features per word, never close to each other."""
    x, scale, shift, eps = inputs(g, 3, 5, 2).arguments
    half = 0.5 + x[..., :1].abs()
    return Case((x[..., 1:] + torch.cat([half, -half], dim=-1), scale, shift, eps))


def tiny_spread(g: torch.Generator) -> Case:
    x, scale, shift, eps = inputs(g, 2, 3, 5).arguments
    return Case((3e-4 * (x - 2), scale, shift, eps))


RIGHT = answer("""
    def layer_norm(x, g, b, eps):
        mean = x.mean(dim=-1, keepdim=True)
        centered = x - mean
        variance = centered.pow(2).mean(dim=-1, keepdim=True)
        normed = centered / torch.sqrt(variance + eps)
        return normed * g + b
""")
MEAN, CENTERED = "mean = x.mean(dim=-1, keepdim=True)", "centered = x - mean"
VARIANCE = "variance = centered.pow(2).mean(dim=-1, keepdim=True)"
ROOT = "torch.sqrt(variance + eps)"
NORMED = f"normed = centered / {ROOT}"
# Whatever axes the mean runs over; like torch.var, NaN where they hold one number.
MORE_VARIANCE = """
    count = torch.tensor(x.numel() / mean.numel(), dtype=torch.float64)
    variance = variance * (count / (count - 1))
"""


def over(axes: str):
    """The answer whose mean and variance run over other axes."""
    return RIGHT.but("x.mean(dim=-1", f"x.mean(dim={axes}").but("centered.pow(2).mean(dim=-1",
        f"centered.pow(2).mean(dim={axes}")


EXERCISE = Exercise(
    id="layer-norm", number="09.1", difficulty=1, minutes=10, visible_points=2, hidden_points=3,
    reference=layer_norm, section=NORM, quotes=wrong_word, forbidden=LIBRARY,
    probes=(
        visible("2 4 4 6 by hand", plain(TWO_WORDS)),
        visible("hardly any spread", plain(TWO_WORDS / 2000 - 0.002)),
        visible("2 sentences, 3 words, 5 features", inputs, 2, 3, 5),
        visible("eps = 0.75", inputs, 2, 3, 4, eps=0.75),
        *usual_probes(inputs, other=(3, 4, 6), smallest=(1, 1, 1), common=(2, 4, 5), precise=far_from_zero),
        hidden("2 features", two_features, announced_by="whatever D is"),
        hidden("hardly any spread, stretched", tiny_spread, announced_by="eps is *inside* the root"),
        hidden("another eps", inputs, 2, 3, 4, eps=0.3, announced_by="eps: a small number, not always the same"),
        hidden("equal numbers", equal_numbers, atol=2e-3, announced_by="a word of equal numbers gives b"),
        hidden("four axes", inputs, 2, 3, 4, 5, announced_by="any number of axes before D"),
        hidden("one word alone", inputs, 6, announced_by="any number of axes before D"),
    ),
    mistakes=(
        mistake("the mean square as variance", RIGHT.but(VARIANCE, "variance = x.pow(2).mean(dim=-1, keepdim=True)"),
                NORM,
            "The squares of x itself were averaged. The variance is the mean square of x minus its mean."),
        mistake("the mean square less the square of the mean",
                RIGHT.but(VARIANCE, "variance = x.pow(2).mean(dim=-1, keepdim=True) - mean.pow(2)"), NORM,
            """Around a large mean your variance is wrong: it is the difference of two huge numbers, the mean square and
            the square of the mean, and rounding leaves little of it. Subtract the mean first, then square."""),
        mistake("the root of the mean distance",
                RIGHT.but(VARIANCE, "variance = centered.abs().mean(dim=-1, keepdim=True)"), NORM,
            "The distances from the mean were averaged as they are. Their *squares* are, and then the root is taken."),
        mistake("4 features written in", RIGHT.but(MEAN, "mean = x.sum(dim=-1, keepdim=True) / 4").but(
                  VARIANCE, "variance = centered.pow(2).sum(dim=-1, keepdim=True) / 4"), NORM,
            "You divided by 4, whatever D is. Only the example has 4 features."),
        mistake("divided by D - 1",
                RIGHT.before(NORMED, MORE_VARIANCE), STD,
            """The squares were divided by D - 1. torch.var and torch.std do that unless told otherwise. Layer norm
            divides by D: these are all the values of the word, not a sample. With 4 features you are 13 % too small,
            with 512 a tenth of a percent, which is why it goes unseen."""),
        mistake("eps outside of the root", RIGHT.but(ROOT, "(torch.sqrt(variance) + eps)"), EPSILON,
            """eps was added to the standard deviation, after the root. Inside the root it has far more weight where a
            word's numbers hardly differ: sqrt(0.00001) is 0.003."""),
        mistake("eps added to the variance and to nothing else, twice",
                RIGHT.but(ROOT, "(torch.sqrt(variance + eps) + eps)"), EPSILON,
            "eps was added twice, inside the root and after it. Once is enough: inside."),
        mistake("eps squared", RIGHT.but("variance + eps", "variance + eps ** 2"), EPSILON,
            "eps was squared before it was added to the variance. It is a variance already."),
        mistake("no eps", RIGHT.but("variance + eps", "variance"), EPSILON,
            """eps has no effect. Where all numbers of a word are equal its variance is 0, and 0 / 0 is NaN; where they
            hardly differ, noise is blown up to full size."""),
        mistake("eps of its own", RIGHT.but("variance + eps", "variance + 1e-5"), EPSILON,
            "You wrote 0.00001 where the argument eps belongs: it is wrong for every other eps."),
        mistake("a smallest variance of eps", RIGHT.but("variance + eps", "variance.clamp(min=eps)"), EPSILON,
            "The variance was held at eps where it is smaller. eps is added, always."),
        mistake("over the words", over("1"), AXIS,
            """Mean and variance run over the *words* of a sentence, feature by feature. Changing word 0 changed word 1.
            Each word is normalized separately, over its features: the last axis."""),
        mistake("over the batch", over("0"), AXIS,
            """Mean and variance run over the first axis, so sentences change each other: that is batch norm's way. Each
            word is normalized separately, over its features: the last axis."""),
        mistake("over axis 2, wherever the features are", over("2"), AXIS,
            """Mean and variance run over axis 2, which is the last one only where x has three axes. Features are always
            on the last axis: count it from the end."""),
        mistake("over words and features", over("tuple(range(1, x.ndim)) or -1"), AXIS,
            """Mean and variance run over all words of the sentence together. Changing word 0 changed word 1. Each word
            is normalized separately, over its features."""),
        mistake("over everything", RIGHT.but("x.mean(dim=-1, keepdim=True)", "x.mean()").but(
                  "centered.pow(2).mean(dim=-1, keepdim=True)", "centered.pow(2).mean()"), AXIS,
            "One mean and one variance were taken of all numbers. Each word has its own."),
        mistake("over batch and words", RIGHT.but("x.mean(dim=-1", "x.mean(dim=tuple(range(x.ndim - 1))").but(
                  "centered.pow(2).mean(dim=-1", "centered.pow(2).mean(dim=tuple(range(x.ndim - 1))"), AXIS,
            "Every feature was normalized over all words of the batch, which is batch norm. Each word is normalized "
            "separately, over its features."),
        mistake("the mean kept", RIGHT.but("normed = centered /", "normed = x /"), NORM,
            """Only one of x and its mean was divided by the root: x, with no mean subtracted, or the mean, where the
            difference has no brackets (/ comes before -). Subtract the mean from x first, and divide the
            difference.""", shows=divides_one_of_two),
        mistake("root mean square", RIGHT.but(CENTERED, "centered = x"), NORM,
            """The mean was kept: you divide by the root of the mean square. That is RMS norm, which newer models use.
            Layer norm subtracts the mean first."""),
        mistake("divided by the variance", RIGHT.but(ROOT, "(variance + eps)"), NORM,
            "You divided by the variance. Its *root*, the standard deviation, is as large as the numbers are."),
        mistake("the mean alone", RIGHT.but(f"centered / {ROOT}", "centered"), NORM,
            "The mean was subtracted, and that was all: the division by the spread is missing."),
        mistake("mean absolute deviation", RIGHT.but(ROOT, "(centered.abs().mean(dim=-1, keepdim=True) + eps)"), NORM,
            "The spread was taken as the mean of absolute differences. Layer norm takes the root of the mean "
            "*square*."),
        mistake("divided by the length", RIGHT.but("centered.pow(2).mean(", "centered.pow(2).sum("), NORM,
            """You divided by the length of the vector, the root of the *sum* of squares. The *mean* of squares makes
            the variance 1, whatever D is."""),
        mistake("between smallest and largest", RIGHT.but(f"centered / {ROOT}",
                  "(x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True) + eps)"), NORM,
            "The numbers were scaled to lie between 0 and 1. Layer norm gives them mean 0 and variance 1."),
        mistake("neither stretched nor shifted", RIGHT.but("return normed * g + b", "return normed"), NORM,
            "g and b have no effect. After normalizing, each feature is multiplied by its g, and its b is added."),
        mistake("g forgotten", RIGHT.but("normed * g + b", "normed + b"), NORM,
            "g has no effect: each feature is multiplied by its g before b is added."),
        mistake("b forgotten", RIGHT.but("normed * g + b", "normed * g"), NORM,
            "b has no effect: it is added last."),
        mistake("g and b exchanged", RIGHT.but("normed * g + b", "normed * b + g"), NORM,
            "g and b are exchanged: g multiplies, b is added."),
        mistake("b before g", RIGHT.but("normed * g + b", "(normed + b) * g"), NORM,
            "b was added first and multiplied by g with the rest. The product comes first."),
        mistake("divided by g", RIGHT.but("normed * g + b", "normed / g + b"), NORM,
            "You divided by g. It multiplies."),
        mistake("g before the normalizing",
                RIGHT.but(MEAN, "x = x * g\n    " + MEAN).but("normed * g + b", "normed + b"), NORM,
            "x was multiplied by g before it was normalized, which takes most of it away again. g comes after."),
        mistake("one plus g", RIGHT.but("normed * g", "normed * (1 + g)"), NORM,
            "You multiplied by 1 + g. Some models store g that way; here g = 1 means no change."),
        mistake("b subtracted", RIGHT.but("normed * g + b", "normed * g - b"), NORM,
            "b was subtracted. It is added."),
        mistake("the sign turned", RIGHT.but(CENTERED, "centered = mean - x"), NORM,
            "Every sign is the wrong way round: x was subtracted from the mean."),
        mistake("divided by D - 1 and eps outside", RIGHT.but(
                  VARIANCE, "variance = centered.pow(2).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)").but(
                  ROOT, "(torch.sqrt(variance) + eps)"), STD,
            """Two things at once: the squares were divided by D - 1 instead of D, and eps was added after the root. The
            well-known `std()` with eps behind it does both."""),
        mistake("divided by the words and not by D", RIGHT.but(
                  "centered.pow(2).mean(dim=-1, keepdim=True)",
                  "centered.pow(2).sum(dim=-1, keepdim=True) / x.shape[0]"), AXIS,
            "The squares were divided by the length of the wrong axis: it should be that of the features.",
            quotes=first_number),
        mistake("the variance of the whole batch", RIGHT.but(VARIANCE, "variance = centered.pow(2).mean()"), AXIS,
            "Every word has its own mean, but all share one variance. The variance is each word's own as well."),
        mistake("the axis lost", RIGHT.but(MEAN, "mean = x.mean(dim=-1)"), AXIS,
            """The mean has lost an axis: (B, T) against (B, T, D). Shapes are matched from the right, so this raises an
            error or, worse, fits along a different axis. Keep the axis, with size 1."""),
        in_place("x", RIGHT.before(MEAN, "x -= x.mean(dim=-1, keepdim=True)"), NORM),
        *usual_mistakes(RIGHT, arguments="x g b", detached=NORM, float32=NORM, single=NORM, squeezed=AXIS, viewed=AXIS),
        mistake("the mean cut off from the gradient", RIGHT.but(MEAN, "mean = x.mean(dim=-1, keepdim=True).detach()"),
                NORM,
            "The values are right, but mean or variance were detached. The gradient flows through both: "
            "they depend on x."),
    ),
    correct=(
        correct("step by step", RIGHT),
        correct("torch.var told to divide by D", """
            def layer_norm(x, g, b, eps):
                return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False)
                    + eps) * g + b
        """),
        correct("rsqrt, other names", """
            def layer_norm(x, gain, bias, epsilon):
                m = x.mean(-1, keepdim=True)
                v = ((x - m) * (x - m)).mean(-1, keepdim=True)
                return gain * (x - m) * torch.rsqrt(v + epsilon) + bias
        """),
        correct("var_mean", """
            def layer_norm(x, g, b, eps):
                variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
                return torch.addcmul(b, (x - mean) * (variance + eps) ** -0.5, g)
        """),
        correct("a matrix that centers", """
            def layer_norm(x, g, b, eps):
                D = x.shape[-1]
                center = torch.eye(D, dtype=x.dtype) - 1 / D
                c = torch.einsum("...i,ij->...j", x, center)
                return torch.einsum("...d,d->...d",
                    c / torch.sqrt(torch.einsum("...d,...d->...", c, c) / D + eps).unsqueeze(-1), g) + b
        """),
        correct("loops over words", """
            def layer_norm(x, g, b, eps):
                rows = []
                for word in x.reshape(-1, x.shape[-1]):
                    m = sum(word) / len(word)
                    v = sum((n - m) ** 2 for n in word) / len(word)
                    rows.append(g * (word - m) / (v + eps) ** 0.5 + b)
                return torch.stack(rows).reshape(x.shape)
        """),
        correct("double inside",
                RIGHT.but(MEAN, "dtype, x = x.dtype, x.double()\n    " + MEAN).but("normed * g + b",
                    "(normed * g + b).to(dtype)")),
        correct("std without correction", formula(
            "layer_norm(x, g, b, eps)",
            "b + g * (x - x.mean(-1, True)) / (x.std(-1, correction=0, keepdim=True).square() + eps).sqrt()").replace(
            "x.std(-1, correction=0, keepdim=True).square()", "x.var(-1, correction=0, keepdim=True)")),
    ),
    hints=(
        "which numbers belong to one word? Only they decide its mean and its variance.",
        "x (B, T, D) gives mean and variance (B, T, 1), one for each word; g and b are (D,) and broadcast along the "
        "last axis.",
        "subtract the mean of the last axis; divide by the root of (mean square of that, plus eps); times g, plus b.",
    ),
)  # fmt: skip
