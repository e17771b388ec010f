"""05.1: the values, mixed in the given shares."""

import math

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, hidden, normal, shares, usual_probes, visible
from autograder.catalogue.quotes import row, sizes
from transformer_ref.model import attention

MIX, PARAMETERS, SHAPES, WHICH_AXIS = sections("mix parameters shapes which-axis")

TABLE = torch.softmax(EMBEDDINGS @ EMBEDDINGS.T / math.sqrt(2), dim=-1)


def attend(W: Tensor, V: Tensor) -> Tensor:
    """A V: the weighted average of the values for every query."""
    return attention.attend(W, V)


def inputs(g: torch.Generator, B: int, Tq: int, Tk: int, d_v: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((shares(g, B, Tq, Tk, dtype=dtype), normal(g, B, Tk, d_v, dtype=dtype)))


def far_away(g: torch.Generator) -> Case:
    W, V = inputs(g, 2, 4, 6, 7, dtype=torch.float64).arguments
    return Case((W, V + FAR))


def equal_values(g: torch.Generator) -> Case:
    return Case((shares(g, 2, 4, 6), normal(g, 2, 1, 7).expand(2, 6, 7).contiguous()))


def one_hot(g: torch.Generator) -> Case:
    chosen = torch.randint(6, (2, 1), generator=g)  # one query, in two sentences
    return Case((torch.nn.functional.one_hot(chosen, 6).float(), normal(g, 2, 6, 7)))


def row_0(evidence: Evidence) -> str:
    got, expected = (row(value.flatten(0, -2)[0][:7]) for value in (evidence.got, evidence.expected))
    return f"Row 0 came back as {got}; it should be {expected}."


RIGHT = answer("""
    def attend(W, V):
        mixed = W @ V
        return mixed
""")

# fmt: off
FIRST_SENTENCE = Family("first sentence's {what} for all", """Sentence 1 was mixed {how} of sentence 0. Each sentence
    of the batch has its own.""")
ALL_AXES_REVERSED = Family("all axes of V reversed", """.T reverses *all* axes, including the batch. V has one row for
    each word, and W one for each query: neither needs transposing.""")
# fmt: on

EXERCISE = Exercise(
    id="attend", number="05.1", difficulty=1, minutes=6, visible_points=1, hidden_points=3,
    reference=attend, section=MIX,
    probes=(
        visible("four words", Case((TABLE[None], EMBEDDINGS[None]), WORDS)),
        visible("4 queries, 6 keys, 7 features", inputs, 2, 4, 6, 7),
        *usual_probes(inputs, other=(9, 6, 4, 3), smallest=(1, 3, 1, 7), common=(2, 4, 6, 7), precise=far_away),
        hidden("equal values come back", equal_values, announced_by="each times its weight"),
        hidden("a weight of 1 copies a value", one_hot, announced_by="each times its weight"),
    ),
    mistakes=(
        mistake("values on the left", RIGHT.but("W @ V", "V @ W"), SHAPES,
            """The values are on the left of the weights. A row of weights has one number for each *word*; it must
            meet the word axis of V."""),
        mistake("weights transposed", RIGHT.but("W @", "W.transpose(-2, -1) @"), MIX,
            "Output 0 was mixed with the weights of *column* 0. Row i of the weights belongs to query i.",
            quotes=row_0),
        mistake("weights transposed where the table is square",
                RIGHT.before("mixed = W @ V", "W = W.mT if W.shape[1] == W.shape[2] else W"), MIX,
            """Where there are as many queries as words, the weights are read by *columns*. The sizes decide nothing:
            row i belongs to query i.""", quotes=row_0),
        mistake("V reshaped", RIGHT.but("@ V", "@ V.reshape(V.shape[0], V.shape[2], V.shape[1]).mT"), SHAPES,
            """The shape is right, but V was cut into other rows first: reshape keeps the order of the numbers and not
            the rows, so a row is no longer one word's value. V has one row for each word as it is.""", quotes=row_0),
        ALL_AXES_REVERSED(RIGHT.but("@ V", "@ V.T"), SHAPES),
        ALL_AXES_REVERSED(RIGHT.but("W @ V", "(V.T @ W.T).T"), SHAPES, name="all axes of V and W reversed"),
        mistake("both transposed", RIGHT.but("W @ V", "V.transpose(-2, -1) @ W.transpose(-2, -1)"), SHAPES,
            """The values are correct but transposed: the result should have one row for each query and one column for
            each feature.""", quotes=sizes),
        mistake("normalized again", RIGHT.but("W @ V", "W @ V / W.shape[-1]"), MIX,
            """The mixture was divided once more by the number of words. The weights of a row already sum to 1, so a
            mixture of equal values must give back that value.""", quotes=row_0),
        mistake("softmax a second time", RIGHT.but("W @", "torch.softmax(W, dim=-1) @"), MIX,
            """The weights went through a softmax again, which makes them nearly equal. They already sum to 1: use them
            as they are.""", quotes=row_0),
        mistake("rescaled so that columns sum to 1", RIGHT.but("W @", "(W / W.sum(dim=-2, keepdim=True)) @"),
                WHICH_AXIS,
            "The weights were made to sum to 1 down the *columns*. They come with rows that sum to 1 and need nothing "
            "more.",
            quotes=row_0),
        mistake("plain mean of the values",
                RIGHT.but("W @ V", "V.mean(dim=-2, keepdim=True).expand(-1, W.shape[-2], -1)"), MIX,
            """Every query got the plain mean of the values, so the weights have no effect. The weights decide how much
            of each value enters."""),
        mistake("only the strongest word", RIGHT.but("mixed = W @ V", """
                  best = W.argmax(dim=-1)
                  mixed = torch.gather(V, 1, best[..., None].expand(-1, -1, V.shape[-1]))"""), MIX,
            """Each query copied the value of its strongest word. Attention mixes *all* values with the given weights;
            picking one cannot be learned by gradients."""),
        mistake("summed over the features", RIGHT.but("W @ V", "W * V.sum(dim=-1)[..., None, :]"), MIX,
            """The features of each value were added up, leaving one number per word. Sum over the *words*, and keep the
            features apart."""),
        mistake("summed over the queries", RIGHT.but("W @ V", "torch.einsum('bqk,bkd->bkd', W, V)"), MIX,
            "The weights were summed over the queries, giving one row for each key. Each query keeps its own mixture."),
        mistake("elementwise product", RIGHT.but("W @ V", "W * V"), MIX,
            "Weights and values were multiplied cell by cell. Every output is a *sum over the words* of weight times "
            "value."),
        mistake("first sentence only", RIGHT.but("W @ V", "W[0] @ V[0]"), SHAPES,
            "The batch axis is gone: only the first sentence was mixed.", quotes=sizes),
        FIRST_SENTENCE(RIGHT.but("@ V", "@ V[0]"), SHAPES, what="values", how="from the values"),
        FIRST_SENTENCE(RIGHT.but("W @", "W[0] @"), SHAPES, what="weights", how="with the weights"),
        mistake("first sentence for all", RIGHT.but("W @ V", "(W[0] @ V[0]).expand(W.shape[0], -1, -1)"), SHAPES,
            "Every sentence of the batch came back as sentence 0. Each has weights of its own and values of its own."),
        families.VALUES_ADDED_BACK(RIGHT.but("W @ V", "W @ V + V"), MIX),
        mistake("only the last word", RIGHT.but("mixed = W @ V", """
                  for k in range(V.shape[1]):
                      mixed = W[:, :, k, None] * V[:, None, k]"""), MIX,
            "Only the last word's part arrived: each turn of the loop wrote over the one before. Add up instead."),
        mistake("the first word left out", RIGHT.but("W @ V", "W[..., 1:] @ V[:, 1:]"), MIX,
            "The first word never entered the mixture: the sum runs over all words, from 0."),
        mistake("the last word left out", RIGHT.but("W @ V", "W[..., :-1] @ V[:, :-1]"), MIX,
            "The last word never entered the mixture: the sum runs over all Tk words."),
        mistake("small weights left out", RIGHT.but("W @", "(W * (W >= 0.1)) @"), MIX,
            "Small weights were set to 0, so they no longer sum to 1. Every word enters with its weight, however "
            "small."),
        mistake("values of all sentences added up", RIGHT.but("@ V", "@ V.sum(dim=0)"), SHAPES,
            "The values of all sentences of the batch were added up before they were mixed. Each sentence "
            "mixes its own."),
        mistake("weights of all sentences averaged", RIGHT.but("W @", "W.mean(dim=0) @"), SHAPES,
            "One table of weights, the mean over the batch, was used for all sentences. Each sentence has its own."),
        mistake("weights squared", RIGHT.but("W @", "W ** 2 @"), MIX,
            "The weights were squared, so they no longer sum to 1. They already sum to 1: use them as they are.",
            quotes=row_0),
        mistake("the largest part alone", RIGHT.but("W @ V", "(W[..., None] * V[:, None]).amax(dim=2)"), MIX,
            "Of the parts that the words contribute, the largest came back. They are *added*.", quotes=row_0),
        mistake("parts averaged", RIGHT.but("W @ V", "(W[..., None] * V[:, None]).mean(dim=1)"), MIX,
            "The parts were averaged over the *queries*. Each query keeps its own mixture, a sum over the words."),
        mistake("mixed with the plain mean", RIGHT.but("W @", "(W + 1 / W.shape[-1]) / 2 @"), MIX,
            "Half of your mixture is the plain mean of the values. Only the weights decide how much of each value "
            "enters.", quotes=row_0),
        mistake("mean of the values taken away", RIGHT.but("@ V", "@ (V - V.mean(dim=1, keepdim=True))"), MIX,
            "The mean of the values was subtracted before they were mixed. Mix them as they are.", quotes=row_0),
        mistake("each query with its own word alone", RIGHT.but("mixed = W @ V", """
                  own = torch.arange(W.shape[1]).clamp(max=W.shape[2] - 1)
                  mixed = W[:, torch.arange(W.shape[1]), own][..., None] * V[:, own]"""), MIX,
            "Each query got one value, that of the word at its own position, times its weight. All words are mixed: a "
            "sum over them."),
        *usual_mistakes(RIGHT, arguments="V W", detached=PARAMETERS, float32=SHAPES, single=SHAPES, squeezed=SHAPES,
                        viewed=SHAPES, quotes_size=sizes),
        mistake("divided by the row sums", RIGHT.but("W @", "W / W.sum(dim=-1, keepdim=True) @"), MIX,
            """The values are right, but the gradient that reaches W is not: a step that changes no value changes it.
            Perhaps rows were divided by their sums, which are 1 already, or numbers were rounded. Neither is
            needed."""),
    ),
    correct=(
        correct("at", formula("attend(weights, values)", "weights @ values")),
        correct("bmm", RIGHT.but("W @ V", "torch.bmm(W, V)")),
        correct("einsum", RIGHT.but("W @ V", "torch.einsum('bqk,bkv->bqv', W, V)")),
        correct("elementwise and sum", RIGHT.but("W @ V", "(W[..., None] * V[:, None]).sum(dim=2)")),
        correct("loops", """
            def attend(W, V):
                out = []
                for weights, values in zip(W, V):
                    out.append(torch.stack([sum(share * value for share, value in zip(row, values))
                        for row in weights]))
                return torch.stack(out)
        """),
        correct("transposed twice", RIGHT.but("W @ V", "(V.mT @ W.mT).mT")),
        correct("double inside", RIGHT.but("W @ V", "(W.double() @ V.double()).to(V.dtype)")),
    ),
    hints=(
        "one output is a sum over the words; which axis of W and which of V run over the words?",
        "(B, Tq, Tk) times (B, Tk, dv) gives (B, Tq, dv): the Tk in the middle is summed away.",
        "for each query: add up weight times value over the words. All at once, that is one matrix product.",
    ),
)
