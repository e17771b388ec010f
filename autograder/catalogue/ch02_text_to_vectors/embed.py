"""02.4: a row of the table for every id, as long as the positions that will be added to it."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch02_text_to_vectors.shared import SMALL_PRINT, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, GRADIENTS, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import first, sizes

EMBED, SCALE = sections("embed scale")

TABLE = torch.tensor([
    [0.0, 0.0, 0.0, 0.0],
    [1.0, 0.0, 2.0, 0.0],
    [0.5, -1.0, 0.0, 3.0],
    [2.0, 1.0, -1.0, 0.5],
    [0.0, 4.0, 1.0, -2.0],
    [1.5, 0.5, 0.0, 1.0],
])


def embed(ids: Tensor, W: Tensor, scale: bool = True) -> Tensor:
    """Row ids[b, t] of W at place (b, t), times the root of D if scale is True (Vaswani et al. 2017, section 3.4)."""
    vectors = torch.nn.functional.embedding(ids, W)
    return vectors * math.sqrt(W.shape[1]) if scale else vectors


def inputs(g: torch.Generator, B: int, T: int, V: int, D: int, *scale: bool,
           dtype: torch.dtype = torch.float32) -> Case:
    return Case((torch.randint(V, (B, T), generator=g), normal(g, V, D, dtype=dtype), *scale))


def far_away(g: torch.Generator) -> Case:
    return Case((torch.randint(9, (2, 4), generator=g), normal(g, 9, 6, dtype=torch.float64) + FAR, False))


def drawn_table(g: torch.Generator, ids: list[list[int]], V: int, D: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((torch.tensor(ids), normal(g, V, D, dtype=dtype)))


def repeated_ids(g: torch.Generator) -> Case:
    """Repeated ids, including 0, the last row, and unused rows."""
    ids = torch.randint(7, (2, 5), generator=g)
    ids[0, :3] = torch.tensor([0, 8, 0])
    return Case((ids, normal(g, 9, 6, dtype=torch.float64)))


def norms(evidence: Evidence) -> str:
    got, wanted = (tensor.flatten(0, -2)[0].norm().item() for tensor in (evidence.got, evidence.expected))
    return f"The first vector's length came back as {got:.3f}; it should be {wanted:.3f}."


RIGHT = answer("""
    def embed(ids, W, scale=True):
        vectors = W[ids]
        root = W.shape[1] ** 0.5
        return vectors * root if scale else vectors
""")
ROWS, ROOT, RESULT = "W[ids]", "W.shape[1] ** 0.5", "vectors * root if scale else vectors"

IN_PLACE = RIGHT.but(ROWS, "W").before("return " + RESULT, "if scale:\n    W *= root").but(RESULT, "W[ids]")

EXERCISE = Exercise(
    id="embed", number="02.4", difficulty=1, minutes=10, visible_points=1, hidden_points=3,
    reference=embed, section=EMBED,
    probes=(
        visible("three words, D = 4", Case((torch.tensor([[1, 4, 2]]), TABLE))),
        visible("without scale", Case((torch.tensor([[3, 1], [2, 3], [4, 4]]), TABLE, False))),
        visible("two sentences of three words, D = 9", drawn_table, [[4, 0, 2], [1, 1, 3]], 7, 9),
        *usual_probes(inputs, other=(3, 5, 11, 16), smallest=(1, 1, 5, 1), common=(2, 4, 9, 6), precise=far_away,
                      gradients=False),
        # a rounded root shows; so would a root in float32 in two digits more
        hidden("gradients", repeated_ids, checks=GRADIENTS, rtol=1e-6, announced_by="gradients flow back"),
        hidden("other sizes, without scale", inputs, 2, 7, 8, 5, False, announced_by="whether to multiply"),
        hidden("as many words as features", inputs, 2, 4, 6, 6, announced_by="(V, D)"),
        hidden("a wide table", inputs, 2, 3, 400, 512, announced_by="(V, D)"),
    ),
    mistakes=(
        mistake("divided by the root of D", RIGHT.but("* root", "/ root"), SCALE,
            """The vectors were divided by the root of D. The scores of chapter 05 are divided; embeddings are
            *multiplied*, so that they match the size of the positions added to them.""", quotes=norms),
        mistake("multiplied by D", RIGHT.but(ROOT, "W.shape[1]"), SCALE,
            "The vectors were multiplied by D itself. The root of D is what brings numbers of size 1/√D "
            "back to size 1.",
            quotes=norms),
        mistake("multiplied by the root of the vocabulary", RIGHT.but("W.shape[1]", "W.shape[0]"), SCALE,
            """The root is of the wrong size: you took the number of *rows*, V. A vector would grow when the vocabulary
            does. Its own number of features, D, counts.""", quotes=norms),
        mistake("multiplied by the root of the length", RIGHT.but("W.shape[1]", "ids.shape[1]"), SCALE,
            """The root is of the sentence's length. A word would get a different vector in a longer sentence. Its
            number of features, D, counts.""", quotes=norms),
        mistake("multiplied by the root of the batch", RIGHT.but("W.shape[1]", "ids.shape[0]"), SCALE,
            "The root is of the number of sentences. A word would get a different vector in a larger batch. Its number "
            "of features, D, counts."),
        mistake("half of D", RIGHT.but(ROOT, "W.shape[1] / 2"), SCALE,
            "The vectors were multiplied by half of D. At D = 4 the root and the half are both 2; at D = 9 they are 3 "
            "and 4.5.",
            quotes=norms),
        mistake("root of the root", RIGHT.but("** 0.5", "** 0.25"), SCALE,
            "The vectors were multiplied by the fourth root of D: a root was taken twice."),
        mistake("first word alone scaled",
                RIGHT.but(RESULT, "torch.cat([vectors[:, :1] * root, vectors[:, 1:]], dim=1) if scale else vectors"),
                SCALE,
            "Only the first word of each sentence was scaled. Every word's vector is multiplied."),
        mistake("root added", RIGHT.but("* root", "+ root"), SCALE,
            "The root of D was added to every number. It is a factor: it makes a vector longer and keeps its "
            "direction.",
            quotes=first),
        mistake("scale forgotten", RIGHT.but(RESULT, "vectors"), SCALE,
            "The rows are correct, but they are not scaled: scale = True multiplies them by the root of D.",
            quotes=first),
        mistake("always scaled", RIGHT.but(RESULT, "vectors * root"), SCALE,
            "With scale = False the vectors were scaled all the same. Then they are the rows of W as they are.",
            quotes=first),
        mistake("scale and no scale exchanged", RIGHT.but(RESULT, "vectors if scale else vectors * root"), SCALE,
            "The two cases are exchanged: scale = True returned the rows unchanged, scale = False multiplied them.",
            quotes=first),
        mistake("scale as a factor", RIGHT.but(RESULT, "vectors * root * scale"), SCALE,
            """With scale = False your result is all zeros: as a factor, False counts as 0. In that case, return the
            rows of W as they are.""", quotes=first),
        mistake("brought to length 1", RIGHT.but("vectors * root", "F.normalize(vectors, dim=-1) * root"), SCALE,
            """Every vector was first brought to length 1. How long a vector is says something too, and one factor for
            all keeps it.""", quotes=norms),
        mistake("columns instead of rows", RIGHT.but(ROWS, "W[:, ids].permute(1, 2, 0)"), EMBED,
            """You took columns of W, which stops with an error where W has fewer columns than an id needs. A column is
            one feature of *all* words; a word's vector is a row.""", quotes=None),
        mistake("columns, not even turned", RIGHT.but(ROWS, "W[:, ids]"), EMBED,
            """W[:, ids] takes columns, and puts the axis it kept in front. It stops with an error where W has fewer
            columns than an id needs. A word's vector is a *row* of W.""", quotes=None),
        mistake("ids counted from 1", RIGHT.but(ROWS, "W[ids - 1]"), EMBED,
            "Every word got the row before its own: id 1 came back as row 0. Ids count from 0, as rows do.",
            quotes=first),
        mistake("time before batch", RIGHT.but(ROWS, "W[ids.T]"), EMBED,
            "The two axes of ids changed places. They stay: the batch first, then the words.", quotes=sizes),
        mistake("batch flattened", RIGHT.but(ROWS, "W[ids.flatten()]"), EMBED,
            "All sentences became one long list of vectors. The two axes of ids stay: (B, T) becomes (B, T, D).",
            quotes=sizes),
        mistake("first sentence only", RIGHT.but(ROWS, "W[ids[0]]"), EMBED,
            "Only the first sentence was looked up, and the batch axis is gone: (B, T) becomes (B, T, D).",
            quotes=sizes),
        mistake("words averaged", RIGHT.but(ROWS, "W[ids].mean(dim=1)"), EMBED,
            "One vector for the whole sentence came back, the mean of its words. Here every word keeps its own.",
            quotes=sizes),
        mistake("one-hot without its width", RIGHT.but(ROWS, "F.one_hot(ids).to(W.dtype) @ W"), EMBED,
            "The one-hot rows are as wide as the largest id in this batch, plus one. They must have one column for "
            "every row of W."),
        mistake("one-hot of integers", RIGHT.but(ROWS, "F.one_hot(ids, W.shape[0]) @ W"), EMBED,
            "A product of integers (one-hot) with floats (W) is refused. Give both the same dtype."),
        mistake("a new table instead of W", RIGHT.but(ROWS, "nn.Embedding(W.shape[0], W.shape[1])(ids)"), EMBED,
            """Your result does not depend on W: a fresh table of random numbers was made and used. Use the W that was
            passed in.""", quotes=first),
        mistake("cut off from the gradient", RIGHT.but(ROWS, "W.data[ids]"), SMALL_PRINT,
            """The values are right, but no gradient reaches W: something on the way cut the graph (.data, .detach(),
            no_grad, numpy, torch.tensor around a tensor, or a layer that keeps a copy of W as a weight of its own).
            This table is the first thing that learns."""),
        mistake("row 0 frozen", RIGHT.but(ROWS, "F.embedding(ids, W, padding_idx=0)"), EMBED,
            """The values are right, but the gradient of W is not. A row gets one from every position that has its id,
            times the root of D if it was scaled. Does it miss the root (.detach()), some of the positions, or row 0
            (padding_idx = 0)? The task does not say which id is a pad."""),
        in_place("W", IN_PLACE.but("W *=", "with torch.no_grad(): W *="), SMALL_PRINT,
                 "Every call would make the table larger: scale what you looked up."),
        mistake("factor of the example", RIGHT.but(ROOT, "2"), SCALE,
            "The factor 2 is the root of D = 4. Here D is different: it is the last size of W."),
        mistake("factor of the paper's model", RIGHT.but(ROOT, "math.sqrt(512)"), SCALE,
            "The factor is the root of 512, the size in the paper's model. D is the last size of the W that was "
            "passed in.",
            quotes=norms),
        mistake("multiplied by D squared", RIGHT.but("** 0.5", "** 2"), SCALE,
            "The vectors were multiplied by the *square* of D. Return the root.", quotes=norms),
        mistake("row 0 taken for padding", RIGHT.but(ROWS, "W[ids] * (ids != 0).unsqueeze(-1)"), EMBED,
            "Row 0 came back as zeros. The task does not say which id is a pad: every id gets its row."),
        mistake("W changed in place, where gradients stop it", IN_PLACE, SCALE,
            """*= and mul_ write into the caller's W, and every call would make it larger; where W learns, torch forbids
            it with an error. Scale what you looked up."""),
        *usual_mistakes(RIGHT, arguments="W", float32=SMALL_PRINT, single=SMALL_PRINT,
                        squeezed=SMALL_PRINT, viewed=EMBED, quotes_size=sizes, rounded=SCALE, root=ROOT),
    ),
    correct=(
        correct("index", RIGHT),
        correct("F.embedding", """
            def embed(tokens, table, scaled=True):
                x = F.embedding(tokens, table)
                return x * math.sqrt(table.size(-1)) if scaled else x
        """),
        correct("one-hot product", """
            def embed(ids, W, scale=True):
                x = F.one_hot(ids, len(W)).to(W.dtype) @ W
                return W.shape[1] ** 0.5 * x if scale else x
        """),
        correct("index_select", """
            def embed(ids, W, scale=True):
                x = torch.index_select(W, 0, ids.reshape(-1)).reshape(*ids.shape, W.shape[1])
                return x * torch.tensor(W.shape[1]).sqrt() if scale else x
        """),
        correct("table scaled first",
                formula("embed(ids, W, scale=True)", "(W * W.shape[1] ** 0.5 if scale else W)[ids]")),
        correct("loops", """
            def embed(ids, W, scale=True):
                factor = math.sqrt(W.shape[1]) if scale else 1
                return torch.stack([torch.stack([W[i] * factor for i in row]) for row in ids])
        """),
        correct("nn.Embedding around W", """
            def embed(ids, W, scale=True):
                factor = W.shape[1] ** (0.5 if scale else 0)
                table = nn.Embedding.from_pretrained(W, freeze=False)
                return torch.func.functional_call(table, {"weight": W}, (ids,)) * factor
        """),
        correct("gather", """
            def embed(ids, W, scale=True):
                index = ids.reshape(-1, 1).expand(-1, W.size(1))
                return torch.gather(W, 0, index).view(*ids.shape, W.size(1)) * (W.size(1) ** 0.5 if scale else 1.0)
        """),
    ),
    hints=(
        "one word, one row: what do you get when you index a matrix with a tensor of ids?",
        "ids (B, T) choose rows of W (V, D): the result is (B, T, D). D is the last size of W.",
        "vectors = the rows of W at ids; if scale is True, multiply them by the root of D; return them.",
    ),
)
