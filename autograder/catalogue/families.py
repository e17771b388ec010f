"""Mistakes that several exercises share: each is written once, with slots for what differs.

    families.GELU(RIGHT.but("F.relu", "F.gelu"), LAYERS)
    families.SCORES_NOT_DIVIDED(RIGHT.without("scores = scores / root"), LAYERS, part="block")

A mistake that belongs to one exercise is made by `known_answers.mistake`. A test refuses a message
that two entries spell out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from string import Formatter

from autograder.catalogue.exercise import Evidence, Misconception, Section, usual_quote
from autograder.catalogue.known_answers import Answer, mistake


@dataclass(frozen=True)
class Family:
    """A name and a message, both with slots in braces, from which an entry makes one of its known mistakes."""

    name: str
    message: str

    def __call__(
        self,
        source: str,
        reread: Section,
        quotes: Callable[[Evidence], str] | None = usual_quote,
        shows: Callable[[Evidence], bool | None] | None = None,
        *,
        name: str = "",
        **slots: str,
    ) -> Misconception:
        """The mistake, as `known_answers.mistake` makes it. name: in place of the family's.

        Raises ValueError where the slots are not exactly those of the family, or the source is not Python.
        """
        wanted = {slot for text in (self.name, self.message) for _, slot, _, _ in Formatter().parse(text) if slot}
        if wanted != slots.keys():
            raise ValueError(f"{self.name}: expected the slots {sorted(wanted)}, got {sorted(slots)}")
        return mistake(
            name or self.name.format(**slots), source, reread, self.message.format(**slots), quotes=quotes, shows=shows
        )


# fmt: off
# --- Attention: scores, shares, mixtures ------------------------------------------------------------------------------

NAN_FOR_LARGE_SCORES = Family("exponential without care", """With large scores you return NaN: the exponential
    overflows. Subtract the largest score of each row first, or use chapter 04's softmax.""")
DIVIDED_BY_D_K = Family("divided by d_k", """Your weights are too flat: the scores were divided by d_k itself instead
    of its square root.""")
DIVIDED_AFTER_THE_SOFTMAX = Family("divided after the softmax", """The division came after the softmax, so the weights
    no longer sum to 1. It is the *scores* that are too large.""")
SOFTMAX_OVER_THE_QUERIES = Family("softmax over the queries", """The weights of each *query* must sum to 1 over the
    keys. Here those of each key sum to 1 over the queries.""")
WORST_KEY_WINS = Family("the worst key wins", """The key that fits *worst* got the largest weight: the sign of the
    scores is flipped. A large dot product is a good fit.""")
QUERIES_WITH_THEMSELVES = Family("queries with themselves", """The queries were compared with themselves: the keys are
    made and never used.""")
VALUES_ADDED_BACK = Family("values added back", """The values were added to the mixture. That sum, the residual
    connection, comes in chapter 09 and outside of attention.""")
FROZEN_PROJECTIONS = Family("frozen projections", """The values are right, but no gradient reaches the projections:
    they are frozen, so nothing can be learned.""")
DROPOUT_IN_TRAINING = Family("dropout in training", """Evaluation is right, training is not: a dropout layer is at
    work. This exercise has none.""")
DROPOUT_ON_THE_WEIGHTS = Family("dropout that never sleeps", """Some weights are 0 and the others doubled, in
    evaluation too: F.dropout is active unless you pass training=False. This exercise has no dropout.""")
FUTURE_FORBIDDEN = Family("a look at the future forbidden", """Later words get weight 0: that is the causal mask of
    chapter 08. {here}""")
OWN_WORD_HIDDEN = Family("own word hidden", "The diagonal is 0: each word is hidden from itself. {here}")
WEIGHTS_NOT_RETURNED = Family("only the output", """Only the {result} came back. Return the weights as well, as a pair
    (out, weights).""")
SHARES_TO_A_POWER = Family("power without a new sum", """Raising the softmax's results to the power {power} is one way
    to do it, but afterwards they no longer sum to 1: divide by their new sum.""")
AXIS_LOST = Family("an axis lost", """A sum (or maximum) along dim drops that axis: (2, 3) became (2,), which cannot
    meet (2, 3) again. On a square table it would meet it, along the wrong axis and without an error. Keep the axis,
    with length 1.""")

# --- Masks ------------------------------------------------------------------------------------------------------------

ONES_AND_ZEROS = Family("ones and zeros", "The mask holds ones and zeros. Return a boolean one.")
MINUS_INFINITY = Family("minus infinity", """This is an additive mask, of zeros and minus infinity. Return a boolean
    one: True = may attend.""")
PAD_0_WRITTEN_IN = Family("pad 0 written in", """Your {function} id 0 whatever pad is. The pad's id is the {which}
    argument.""")
ONE_TOKEN_OF_THE_FUTURE = Family("one token of the future", """Every token sees the next one too: the causal mask is
    shifted by one position. That token is exactly the one that the model should predict.""")

# --- Layers and their parts -------------------------------------------------------------------------------------------

SCORES_NOT_DIVIDED = Family("scores not divided", """Your {part}'s attention does not divide the scores by the root of
    d_k (chapter 05).""")
ONE_HEAD = Family("one head", "Attention works as one head, whatever h is. Pass h on.")
NO_ACTIVATION = Family("no ReLU", """There is nothing between the two maps of the feed-forward network, so they are
    one. {activation} belongs there.""")
GELU = Family("GELU", "There is a GELU between the two maps. Here it is ReLU, as in the paper.")
ANOTHER_ACTIVATION = Family("another bend", """{where} there is something that looks much like a ReLU or a GELU, but is
    neither: SiLU, perhaps. Near 0 they differ.""")
NO_FEED_FORWARD = Family("attention alone", "The feed-forward network was left out, and with it the second norm.")
FEED_FORWARD_FIRST = Family("feed-forward first", """The sub-layers are in the wrong order: attention mixes the {words}
    first, then the feed-forward network transforms each of them.""")
IN_PARALLEL = Family("side by side", """The feed-forward network read the *input* of the {part}, so it runs in parallel
    with the attention. It reads what the {words} are after attention.{more}""")
INPUT_ADDED_AT_THE_END = Family("x as it came in added at the end", """The second sum was made with the x that came
    into the {part}, so what attention added is lost. Add to the x of now.""")
NORM_FIRST_INVERTED = Family("the flag the wrong way round", """Pre-norm and post-norm are exchanged: norm_first=True
    means that the norm comes before the sub-layer.""")
ALWAYS_PRE_NORM = Family("always pre-norm", """norm_first=False is the paper's order: norm({x} + f({x})). Yours is
    pre-norm whatever the flag says.""")
NORM_BEFORE_THE_SUM = Family("norm before the sum", """In post-norm you computed {x} + norm(f({x})): the norm is on the
    wrong side of the sum. The paper's is norm({x} + f({x})).""")
ONE_NORM_FOR_BOTH = Family("one norm for both", """One norm serves both sub-layers. Each has its own, with its own
    scale and shift.""")
NO_NORM = Family("no norm at all", """No norm was found that has a scale and a shift to learn. Each of the two
    sub-layers has one of its own{where}.""")
RMS_NORMS = Family("root mean square norms", """The norms have a scale and no shift: those are RMS norms, as later
    models have, or layer norms without a bias. Here, both are needed.""")
NO_DROPOUT = Family("no dropout", """Evaluation is right, but in training nothing is dropped, even with dropout 1.
    Dropout acts on the output of each sub-layer, before the sum.""")
DROPOUT_NEVER_OFF = Family("dropout that never sleeps", """Numbers are dropped in evaluation too. F.dropout does that
    unless you pass it the module's mode; nn.Dropout checks the mode itself.""")
DROPOUT_ON_THE_SUM = Family("dropout after the sum", """In training x itself is dropped: dropout was put on a sum, or
    on x. It belongs on the output of each sub-layer, before the sum: x itself passes unchanged.""")
FEED_FORWARD_NOT_DROPPED = Family("dropout on attention alone", """In training no dropout acts on the output of the
    feed-forward network. Both sub-layers have one.""")
EMBEDDINGS_NOT_DROPPED = Family("no dropout on the embeddings", """In training the embedded {words} are not dropped.
    Dropout acts on the sum of {words} and positions, and on the output of every sub-layer.""")
LAYERS_IN_A_LIST = Family("layers in a plain list", """A Python list hides its layers from the module: their parameters
    are not registered, so no optimizer trains them. {lists} shows them.""")

# --- Models and what they return --------------------------------------------------------------------------------------

SOFTMAX_AT_THE_END = Family("softmax at the end", "Your rows sum to 1: there is a softmax at the end. {instead}")
LOG_SOFTMAX_AT_THE_END = Family("log_softmax at the end", """All your numbers are below 0: there is a log_softmax at
    the end. Return the logits as they are.""")
TWO_RESULTS = Family("a pair came back", "Two things came back. forward returns only the {result}.")
LEFT_IN_EVALUATION_MODE = Family("left in evaluation mode", """The model was in training mode and is in evaluation mode
    afterwards. Restore its mode before you return.""")
PUT_IN_TRAINING_MODE = Family("always put in training mode", """The model was in evaluation mode and is in training mode
    afterwards. Restore its mode before you return.""")

# --- Tokens, and how they are drawn -----------------------------------------------------------------------------------

ID_WRITTEN_IN = Family("{token} written as {id}", """The id {id} is written into your code where {token} belongs. Other
    vocabularies have other ids.""")
IDS_THROUGH_FLOATS = Family("floats on the way", """Large ids came back as others: on the way they were float32, which
    does not hold every whole number above 16,777,216.""")
G_NOT_USED = Family("another generator", """The generator g was not used: the draws came from the global random
    numbers, or from a generator of your own. Nobody can repeat them by giving you the same g: draw from it.""")
G_SEEDED = Family("g seeded anew", """You gave g another seed, so every {same}. A generator goes on where the last call
    left it: draw from it, and do not change its seed.""")
ROOT_OF_TAU = Family("divided by the root of tau", """tau works too weakly: the logits were divided by its root. Divide
    by tau itself.""")
DIVIDED_BY_TAU_0 = Family("tau = 0 divides", """tau = 0 ended in a division by 0. As tau falls to 0 the likeliest token
    takes everything: that case is an argmax.""")
FIRST_ROW_FOR_ALL = Family("the first row's shares for all", """All rows were drawn with the probabilities of row 0.
    Each has its own.""")
END_MARK_CUT = Family("</w> as four letters", """The end mark fell apart into its four characters. </w> is one symbol;
    add it to the list of letters, not to the text.""")
TEXT_REPLACED = Family("text replaced", """Replacing text also joined pieces that only *end* like the pair: in "ne s"
    the text "e s" is found, although the piece there is ne and not e. Compare whole pieces.""")
LIST_SHRINKS = Family("list grows shorter under the loop", """A range is fixed when the loop begins, but the list grows
    shorter with every merge, so the last indices are no longer there. Compute the length again at each step, or write
    into a new list.""")

# --- Numbers and errors -----------------------------------------------------------------------------------------------

A_TEXT = Family("a text", "A text came back. Return the number itself.")
A_TENSOR_FOR_A_COUNT = Family("a tensor", "A tensor came back. Return a plain whole number.")
A_TENSOR_FOR_A_NUMBER = Family("a tensor instead of a number", """A tensor without axes came back; return a plain
    Python number. A tensor of one number has a method that returns it.""")
OVERFLOW_32_BITS = Family("32 bits", """Right until the {count} is beyond 32 bits, about {billions} billion, where it
    runs over. A Python int has no limit.""")
A_SIZE_THAT_IS_A_FLOAT = Family("a size that is a float", """A size must be a whole number, and a single / makes a
    float, even of 4 / 2. // stays whole.""")
SIZES_ASSERTED = Family("an assert in place of ValueError", """The sizes are checked, but by assert, which raises
    AssertionError (and is skipped with python -O). The task asks for a ValueError.""")
ANOTHER_ERROR = Family("another kind of error", """The sizes are checked, but a different kind of error is raised. The
    value is wrong here, so: ValueError.""")
ASSERTED = Family("asserted", """An assertion fails where the task asks for a ValueError. Assertions vanish under
    python -O; an error that callers rely on is raised.""")
BASE_1000 = Family("base 1,000", "The base is 10,000; yours is 1,000.")
MEAN_TAKEN_AWAY = Family("mean taken away first", """The mean of each {vector} was subtracted first. That is a
    correlation; the cosine compares the vectors as they are.""")


# fmt: on
# --- What every exercise may meet -----------------------------------------------------------------------------------


def in_place(argument: str, source: str, reread: Section, more: str = "") -> Misconception:
    """The known wrong answer that changes an argument; more: specific advice, instead of the usual one."""
    return mistake(
        f"{argument} changed in place",
        source,
        reread,
        f"Your function changed the caller's {argument}: +=, -=, *=, [...] = and functions whose names end in "
        f"_ write into what was passed in. {more or 'Make a new one.'}",
        quotes=None,
    )


def usual_mistakes(
    right_answer: Answer,
    *,
    arguments: str = "",
    detached: Section | None = None,
    float32: Section | None = None,
    single: Section | None = None,
    squeezed: Section | None = None,
    viewed: Section | None = None,
    rounded: Section | None = None,
    root: str = "",
    quotes_size: Callable[[Evidence], str] | None = None,
) -> Iterator[Misconception]:
    """Mistakes that occur in many exercises, each with the section to reread; a mistake without a section is left out.

    arguments: the float tensors, separated by blanks. detached: the result or one of the arguments is detached.
    float32: float64 comes back as float32; single: it is rounded to float32 on the way. squeezed: an axis of size 1
    vanishes, in any spelling; `quotes_size` quotes the returned shape. viewed: `view` is used on the first argument,
    which fails if it is transposed in memory. rounded: `root`, as the answer writes it, is truncated to an integer.
    """
    names = arguments.split()
    if detached:
        yield from _cut_off(right_answer, names, detached)
    if float32:
        yield mistake(
            "always float32",
            right_answer.ending_in(".float()"),
            float32,
            "The input was not float32, and float32 came out. The result keeps the dtype of the input; a tensor made "
            "of Python numbers (.item(), a list) is float32 unless a dtype is named.",
        )
    if single:
        yield _single_inside(right_answer, names, single)
    if squeezed:
        yield mistake(
            "the batch axis squeezed away",
            right_answer.ending_in(".squeeze()"),
            squeezed,
            "An axis of size 1 vanished, such as the batch axis of one sentence. squeeze() removes every axis of size "
            "1, squeeze(0) removes the first axis if its size is 1; it must stay.",
            quotes_size,
            lost_an_axis_of_1,
        )
    if viewed:
        yield mistake(
            "view of what lies transposed",
            right_answer.beginning_with(f"{names[0]} = {names[0]}.view(-1).view({names[0]}.shape)"),
            viewed,
            "Your code raises an error where the input is a transposed view, as after .mT: view needs contiguous "
            "memory. reshape does not.",
        )
    if rounded:
        yield mistake(
            "root rounded",
            right_answer.but(root, f"int({root})"),
            rounded,
            "The root was cut to a whole number. That is right for a square, such as 4 or 64, and not otherwise.",
        )


def _cut_off(right_answer: Answer, names: Sequence[str], section: Section) -> Iterator[Misconception]:
    """The result, or one of several arguments, is detached."""
    yield mistake(
        "cut off from the gradient",
        right_answer.ending_in(".detach()"),
        section,
        "The values are right, but no gradient flows back: .detach(), .data, .item(), .tolist(), no_grad, numpy or "
        "torch.tensor around numbers cut the graph, and nothing before it could be learned.",
    )
    for name in names if len(names) > 1 else ():
        yield mistake(
            f"{name} cut off from the gradient",
            right_answer.beginning_with(f"{name} = {name}.detach()"),
            section,
            f"The values are right, but no gradient reaches {name}: .detach(), .data, .item(), numpy or torch.tensor "
            "around a tensor cut it off, or a layer holds a copy of it.",
        )


def _single_inside(right_answer: Answer, names: Sequence[str], section: Section) -> Misconception:
    """All arguments are converted to float32, and the result to float64 again."""
    floats = ", ".join(f"{name}.float()" for name in names)
    return mistake(
        "single precision inside",
        right_answer.ending_in(".to(dtype)").beginning_with(
            f"dtype = {names[0]}.dtype", f"{', '.join(names)} = {floats}"
        ),
        section,
        "The result is float64 again, but on the way it was float32, which holds seven digits: 100,000,000 and "
        "100,000,001 become one number there. Compute in the dtype of the input.",
    )


def lost_an_axis_of_1(evidence: Evidence) -> bool:
    """Whether the result, or the first tensor of a tuple that differs, is correct except for a missing axis of size
    1."""
    pairs = [(evidence.got, evidence.expected)]
    if isinstance(evidence.expected, tuple):
        pairs = list(zip(evidence.got, evidence.expected, strict=True))
    got, expected = next((got, expected) for got, expected in pairs if got.shape != expected.shape)
    fewer = got.ndim < expected.ndim and got.squeeze().shape == expected.squeeze().shape
    return fewer and bool(((got.squeeze() - expected.squeeze()).abs() < 1e-4).all())
