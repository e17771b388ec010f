"""02.4 embed."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch02_text_to_vectors.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, first, known, normal, right, sizes, turned

EMBED, SCALE = sections("embed scale")


def embed(ids: Tensor, W: Tensor, scale: bool = True) -> Tensor:
    """Row ids[b, t] of W at place (b, t), times the root of D if asked (Vaswani et al. 2017, section 3.4)."""
    vectors = torch.nn.functional.embedding(ids, W)
    return vectors * math.sqrt(W.shape[1]) if scale else vectors


TABLE = torch.tensor(
    [
        [0.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 2.0, 0.0],
        [0.5, -1.0, 0.0, 3.0],
        [2.0, 1.0, -1.0, 0.5],
        [0.0, 4.0, 1.0, -2.0],
        [1.5, 0.5, 0.0, 1.0],
    ]
)


def _ids(g: torch.Generator, vocabulary: int, *shape: int) -> Tensor:
    return torch.randint(vocabulary, shape, generator=g)


def _gradient_case(g: torch.Generator) -> Case:
    """Repeated ids, id 0 among them, and rows that nobody asks for."""
    ids = _ids(g, 7, 2, 5)
    ids[0, :3] = torch.tensor([0, 4, 0])
    return Case((ids, normal(g, 9, 6, dtype=torch.float64)))


_EMBED = """
def embed(ids, W, scale=True):
    vectors = {lookup}
    return {result}
"""


def _embed(lookup: str = "W[ids]", result: str = "vectors * W.shape[1] ** 0.5 if scale else vectors") -> str:
    return _EMBED.format(lookup=lookup, result=result)


def _norms(evidence: Evidence) -> str:
    got, wanted = (tensor.flatten(0, -2)[0].norm().item() for tensor in (evidence.got, evidence.expected))
    return f"The first vector's length came back as {got:.3f}; it should be {wanted:.3f}."


EXERCISE = Exercise(
    id="embed",
    number="02.4",
    visible_points=1,
    hidden_points=3,
    section=EMBED,
    reference=embed,
    probes=(
        Probe("three words, D = 4", lambda g: Case((torch.tensor([[1, 4, 2]]), TABLE)), hidden=False),
        Probe("without scale", lambda g: Case((torch.tensor([[3, 1], [2, 3], [4, 4]]), TABLE, False)), hidden=False),
        Probe(
            "two sentences of three words, D = 9",
            lambda g: Case((torch.tensor([[4, 0, 2], [1, 1, 3]]), normal(g, 7, 9))),
            hidden=False,
        ),
        Probe("other sizes", lambda g: Case((_ids(g, 11, 3, 5), normal(g, 11, 16)))),
        Probe("other sizes, without scale", lambda g: Case((_ids(g, 8, 2, 7), normal(g, 8, 5), False))),
        Probe("as many words as features", lambda g: Case((_ids(g, 6, 2, 4), normal(g, 6, 6)))),
        Probe("one word, D = 1", lambda g: Case((_ids(g, 5, 1, 1), normal(g, 5, 1)))),
        Probe("a wide table", lambda g: Case((_ids(g, 30, 2, 3), normal(g, 30, 512)))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case((turned(_ids(g, 9, 2, 4)), turned(normal(g, 9, 6, dtype=torch.float64)))),
        ),
        Probe("gradients", _gradient_case, also=GRADIENTS),
        Probe("nothing else is touched", lambda g: Case((_ids(g, 9, 2, 4), normal(g, 9, 5))), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "divided by the root of D",
            _embed(result="vectors / W.shape[1] ** 0.5 if scale else vectors"),
            "The vectors were divided by the root of D. The scores of chapter 05 are divided; embeddings are *multiplied*, to stand up to the positions added to them.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by D",
            _embed(result="vectors * W.shape[1] if scale else vectors"),
            "The vectors were multiplied by D itself. The root of D is what brings numbers of size 1/√D back to size 1.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by the root of the vocabulary",
            _embed(result="vectors * W.shape[0] ** 0.5 if scale else vectors"),
            "The root is of the wrong size: you took the number of *rows*, V. A vector would grow when the vocabulary does. Its own number of features, D, counts.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by the root of the length",
            _embed(result="vectors * ids.shape[1] ** 0.5 if scale else vectors"),
            "The root is of the sentence's length. A word would get another vector in a longer sentence. Its number of features, D, counts.",
            SCALE,
            _norms,
        ),
        known(
            "half of D",
            _embed(result="vectors * W.shape[1] / 2 if scale else vectors"),
            "The vectors were multiplied by half of D. At D = 4 the root and the half are both 2; at D = 9 they are 3 and 4.5.",
            SCALE,
            _norms,
        ),
        known(
            "root rounded",
            _embed(result="vectors * int(W.shape[1] ** 0.5) if scale else vectors"),
            "The root of D was cut to a whole number. That is right when D is a square, such as 4 or 9, and not otherwise.",
            SCALE,
        ),
        known(
            "root added",
            _embed(result="vectors + W.shape[1] ** 0.5 if scale else vectors"),
            "The root of D was added to every number. It is a factor: it makes a vector longer and keeps its direction.",
            SCALE,
            first,
        ),
        known(
            "scale forgotten",
            _embed(result="vectors"),
            "The rows are the right ones, and they are not scaled: scale = True multiplies them by the root of D.",
            SCALE,
            first,
        ),
        known(
            "always scaled",
            _embed(result="vectors * W.shape[1] ** 0.5"),
            "With scale = False the vectors were scaled all the same. Then they are the rows of W as they stand.",
            SCALE,
            first,
        ),
        known(
            "scale and no scale exchanged",
            _embed(result="vectors if scale else vectors * W.shape[1] ** 0.5"),
            "The two cases are exchanged: scale = True came back as it stands, scale = False was multiplied.",
            SCALE,
            first,
        ),
        known(
            "brought to length 1",
            _embed(result="F.normalize(vectors, dim=-1) * W.shape[1] ** 0.5 if scale else vectors"),
            "Every vector was first brought to length 1. How long a vector is says something too, and one factor for all keeps it.",
            SCALE,
            _norms,
        ),
        known(
            "columns instead of rows",
            _embed(lookup="W[:, ids].permute(1, 2, 0)"),
            "You took columns of W. A column is one feature of *all* words; a word's vector is a row.",
            EMBED,
            sizes,
        ),
        known(
            "columns, not even turned",
            _embed(lookup="W[:, ids]"),
            "W[:, ids] takes columns, and puts the axis it kept in front. A word's vector is a *row* of W.",
            EMBED,
            sizes,
        ),
        known(
            "ids counted from 1",
            _embed(lookup="W[ids - 1]"),
            "Every word got the row before its own: id 1 came back as row 0. Ids count from 0, as rows do.",
            EMBED,
            first,
        ),
        known(
            "time before batch",
            _embed(lookup="W[ids.T]"),
            "The two axes of ids changed places. They stay: the batch first, then the words.",
            EMBED,
            sizes,
        ),
        known(
            "batch flattened",
            _embed(lookup="W[ids.flatten()]"),
            "All sentences became one long list of vectors. The two axes of ids stay: (B, T) becomes (B, T, D).",
            EMBED,
            sizes,
        ),
        known(
            "first sentence only",
            _embed(lookup="W[ids[0]]"),
            "Only the first sentence was looked up, and the batch axis is gone: (B, T) becomes (B, T, D).",
            EMBED,
            sizes,
        ),
        known(
            "words averaged",
            _embed(lookup="W[ids].mean(dim=1)"),
            "One vector for the whole sentence came back, the mean of its words. Here every word keeps its own.",
            EMBED,
            sizes,
        ),
        known(
            "one-hot without its width",
            _embed(lookup="F.one_hot(ids).to(W.dtype) @ W"),
            "The one-hot rows are as wide as the largest id in this batch, plus one. They must have one place for every row of W.",
            EMBED,
        ),
        known(
            "one-hot of integers",
            _embed(lookup="F.one_hot(ids, W.shape[0]) @ W"),
            "A product of integers (one-hot) with floats (W) is refused. Give both the same dtype.",
            EMBED,
        ),
        known(
            "a new table instead of W",
            _embed(lookup="nn.Embedding(W.shape[0], W.shape[1])(ids)"),
            "Your result does not depend on W: a fresh table of random numbers was made and used. Use the W that was passed in.",
            EMBED,
            first,
        ),
        known(
            "cut off from the gradient",
            _embed(lookup="W.data[ids]"),
            """The values are right, but no gradient reaches W: something on the way cut the graph (.data, .detach(), no_grad,
            numpy, torch.tensor around a tensor, or a layer that keeps a copy of W as a weight of its own). This table is
            the first thing that learns.""",
            EMBED,
        ),
        known(
            "row 0 frozen",
            _embed(lookup="F.embedding(ids, W, padding_idx=0)"),
            "padding_idx = 0 keeps the gradient away from row 0. Which id is a pad was not said here; every row that was used learns.",
            EMBED,
        ),
        known(
            "always float32",
            _embed(lookup="W.float()[ids]"),
            "float64 went in and float32 came out. The result keeps the dtype of W.",
            EMBED,
        ),
        known(
            "W changed in place",
            """
            def embed(ids, W, scale=True):
                if scale:
                    with torch.no_grad():
                        W *= W.shape[1] ** 0.5
                return W[ids]
            """,
            "Your function changed the caller's W: *= writes into the table that was passed in, and every call would make it larger. Scale what you looked up.",
            SCALE,
        ),
        known(
            "factor of the example",
            _embed(result="vectors * 2 if scale else vectors"),
            "The factor 2 is the root of D = 4. Here D is another: it is the last size of W.",
            SCALE,
        ),
        known(
            "factor of the paper's model",
            _embed(result="vectors * math.sqrt(512) if scale else vectors"),
            "The factor is the root of 512, the size in the paper's model. D is the last size of the W that was passed in.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by D squared",
            _embed(result="vectors * W.shape[1] ** 2 if scale else vectors"),
            "The vectors were multiplied by the *square* of D. The root is wanted.",
            SCALE,
            _norms,
        ),
        known(
            "row 0 taken for padding",
            _embed(lookup="W[ids] * (ids != 0).unsqueeze(-1)"),
            "Row 0 came back as zeros. Which id is a pad was not said here: every id gets its row.",
            EMBED,
        ),
        known(
            "axes of size 1 lost",
            _embed(lookup="W[ids].squeeze()"),
            "squeeze throws away every axis of size 1. A batch of one sentence is still a batch: (1, T, D).",
            EMBED,
            sizes,
        ),
        known(
            "W changed in place, where gradients stop it",
            """
            def embed(ids, W, scale=True):
                if scale:
                    W *= W.shape[1] ** 0.5
                return W[ids]
            """,
            "*= and mul_ write into the caller's W, and every call would make it larger; where W learns, torch forbids it with an error. Scale what you looked up.",
            SCALE,
        ),
    ),
    right=(
        right("index", _embed()),
        right(
            "F.embedding",
            """
            def embed(tokens, table, scaled=True):
                x = F.embedding(tokens, table)
                return x * math.sqrt(table.size(-1)) if scaled else x
            """,
        ),
        right(
            "one-hot product",
            """
            def embed(ids, W, scale=True):
                x = F.one_hot(ids, len(W)).to(W.dtype) @ W
                return W.shape[1] ** 0.5 * x if scale else x
            """,
        ),
        right(
            "index_select",
            """
            def embed(ids, W, scale=True):
                x = torch.index_select(W, 0, ids.reshape(-1)).reshape(*ids.shape, W.shape[1])
                return x * torch.tensor(W.shape[1]).sqrt() if scale else x
            """,
        ),
        right(
            "table scaled first",
            "def embed(ids, W, scale=True):\n    return (W * W.shape[1] ** 0.5 if scale else W)[ids]\n",
        ),
        right(
            "loops",
            """
            def embed(ids, W, scale=True):
                factor = math.sqrt(W.shape[1]) if scale else 1
                return torch.stack([torch.stack([W[i] * factor for i in row]) for row in ids])
            """,
        ),
        right(
            "nn.Embedding around W",
            """
            def embed(ids, W, scale=True):
                factor = W.shape[1] ** (0.5 if scale else 0)
                table = nn.Embedding.from_pretrained(W, freeze=False)
                return torch.func.functional_call(table, {"weight": W}, (ids,)) * factor
            """,
        ),
        right(
            "gather",
            """
            def embed(ids, W, scale=True):
                index = ids.reshape(-1, 1).expand(-1, W.size(1))
                return torch.gather(W, 0, index).view(*ids.shape, W.size(1)) * (W.size(1) ** 0.5 if scale else 1.0)
            """,
        ),
    ),
    hints=(
        "one word, one row: what do you get when you index a matrix with a tensor of ids?",
        "ids (B, T) choose rows of W (V, D): the result is (B, T, D). D is the last size of W.",
        "vectors = the rows of W at ids; if scale is on, multiply them by the root of D; return them.",
    ),
)
