"""05.4: every word through one and the same affine map."""

import torch
from torch import Tensor

from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, WORDS, sections
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.families import Family, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import sizes

PARAMETERS, PROJECT, SHAPES = sections("parameters project shapes")

W, SQUARE_W = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
TWO_BY_TWO = torch.tensor([[[1.0, 2.0], [0.0, 3.0]], [[2.0, -1.0], [4.0, 1.0]]])


def project(x: Tensor, W: Tensor, b: Tensor | None = None) -> Tensor:
    """The same affine map of every position of every sentence."""
    return x @ W if b is None else x @ W + b


def inputs(g: torch.Generator, B: int, T: int, D: int, d: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, B, T, D, dtype=dtype), normal(g, D, d, dtype=dtype), normal(g, d, dtype=dtype)))


def far_away(g: torch.Generator) -> Case:
    """Numbers around 100,000,000, which every column of W takes away again."""
    x, matrix, b = inputs(g, 2, 4, 6, 5, dtype=torch.float64).arguments
    return Case((x + FAR, matrix - matrix.mean(dim=0), b))


def no_bias(g: torch.Generator, *sizes: int | torch.dtype, said: bool, times: float = 1.0) -> Case:
    """said: whether None is passed for b, which is otherwise omitted. times: a factor of the words' numbers."""
    x, matrix, _ = inputs(g, *sizes).arguments
    x = times * x
    return Case((x, matrix, None) if said else (x, matrix))


RIGHT = answer("""
    def project(x, W, b=None):
        projected = x @ W
        if b is not None:
            projected = projected + b
        return projected
""")

# fmt: off
ELEMENTWISE = Family("elementwise product", """x and W were multiplied cell by cell. Every output is a *sum* over the D
    numbers of one word, each times its row of W; b, if there is one, is added to that.""")
# fmt: on

EXERCISE = Exercise(
    id="project", number="05.4", difficulty=1, minutes=6, visible_points=1, hidden_points=2,
    reference=project, section=PROJECT,
    probes=(
        visible("four words", Case((EMBEDDINGS[None], W), WORDS)),
        visible("four words and a bias", Case((EMBEDDINGS[None], W, torch.tensor([0.5, -1.0, 3.0])), WORDS)),
        visible("two sentences, square W", Case((TWO_BY_TWO, SQUARE_W, torch.tensor([0.0, 10.0])))),
        *usual_probes(inputs, other=(3, 4, 6, 5), smallest=(1, 3, 6, 1), common=(2, 4, 6, 5), precise=far_away),
        hidden("other sizes, b is None", no_bias, 5, 1, 6, 5, said=True, times=1e4, announced_by="or None"),
        hidden("other sizes, b left out", no_bias, 2, 4, 6, 5, torch.float64, said=False, announced_by="b=None"),
    ),
    mistakes=(
        mistake("W on the left", RIGHT.but("x @ W", "W @ x"), SHAPES,
            """W @ x mixes the *words* of a sentence with each other, and its shapes agree only where the number of
            words happens to equal D. Each word's row of D numbers should meet the D rows of W."""),
        mistake("W transposed", RIGHT.but("x @ W", "x @ W.T"), SHAPES,
            """You used W transposed. W is stored as (D, d), so it is applied as it is; nn.Linear stores (d, D),
            which is where the habit of transposing comes from. With a square W no shape error warns you."""),
        mistake("W transposed where it is square",
                RIGHT.but("x @ W", "x @ (W.T if W.shape[0] == W.shape[1] else W)"), SHAPES,
            """A square W was applied transposed. W is stored as (D, d), so it is applied as it is, whatever its sizes
            are."""),
        mistake("W transposed, on the left", RIGHT.but("x @ W", "W.T @ x"), SHAPES,
            """W is on the left, where it meets the axis of the *words*. It should meet the D numbers of each word,
            which are the last axis of x."""),
        ELEMENTWISE(RIGHT.but("x @ W", "x * W"), SHAPES),
        ELEMENTWISE(RIGHT.but("x @ W", "x * W").but("projected + b", "projected"),
            SHAPES, name="elementwise product, no bias"),
        mistake("bias forgotten", RIGHT.without("if b is not None:").without("projected = projected + b"), PROJECT,
            """The results with a bias equal those without: b is never added, or the sum is computed and not kept. It is
            one row of d numbers for every word."""),
        mistake("bias per position", RIGHT.but("+ b", "+ b[:, None]"), SHAPES,
            """b was spread along the words: word 0 got b[0] everywhere. b belongs to the *features*: every word gets
            the whole of b."""),
        mistake("bias subtracted", RIGHT.but("+ b", "- b"), PROJECT,
            "The bias arrives with the wrong sign: your numbers are below the product where they should be above it."),
        mistake("bias before the product", RIGHT.but("projected + b", "(x + b) @ W"), PROJECT,
            "b was added to x before the product. It has d numbers, one per *output* feature, so it comes after."),
        mistake("first sentence only", RIGHT.but("x @ W", "x[0] @ W"), SHAPES,
            """The batch axis is gone: only the first sentence was projected. The result has one row of d for every word
            of every sentence.""", quotes=sizes),
        mistake("first sentence for all", RIGHT.but("x @ W", "(x[0] @ W).expand(x.shape[0], -1, -1)"), SHAPES,
            "Sentence 1 came back as a copy of sentence 0. Every sentence of the batch is projected on its own."),
        mistake("words averaged", RIGHT.but("x @ W", "x.mean(dim=1, keepdim=True).expand_as(x) @ W"), PROJECT,
            """Every word of a sentence came back the same: the words were mixed. A projection treats each word by
            itself; mixing is attention's job."""),
        mistake("another W per position", RIGHT.but("projected = x @ W", """
                  matrices = torch.stack([torch.roll(W, t, dims=0) for t in range(x.shape[1])])
                  projected = torch.einsum("btd,tdk->btk", x, matrices)"""), PROJECT,
            "Word 0 is right and the next ones are not: the matrix changed from word to word. All words share one W."),
        mistake("a new layer instead of W",
                RIGHT.but("return projected", "return nn.Linear(W.shape[0], W.shape[1])(x)"), PARAMETERS,
            """Your result does not depend on W: a fresh layer with random numbers was made and used. Use the W and b
            that were passed in."""),
        mistake("ReLU added", RIGHT.but("return projected", "return torch.relu(projected)"), PROJECT,
            "Every negative number became 0. A projection is a plain matrix product with a bias; no activation "
            "follows it."),
        mistake("the truth of a tensor", RIGHT.but("b is not None", "b"), PROJECT,
            """`if b:` needs the truth value of a whole tensor, and a tensor of several numbers has none. Check whether
            b is None."""),
        mistake("a bias that is always added", RIGHT.but("if b is not None:\n        projected =", "projected ="),
                PROJECT,
            """Your code stops when there is no bias: b is then None, and None cannot be added. Add it only when there
            is one."""),
        mistake("a bias of 1 where there is none", RIGHT.before("if b is not None:", "b = 1.0 if b is None else b"),
                PROJECT,
            "Without a bias, 1 was added to every number. None means that nothing is added."),
        mistake("bias left out where it holds a 0", RIGHT.but("b is not None", "b is not None and b.all()"), PROJECT,
            "A bias with a 0 among its entries was not added: the condition looks at its values. Only None means that "
            "there is no bias."),
        mistake("W reshaped", RIGHT.but("x @ W", "x @ W.reshape(W.shape[1], W.shape[0]).T"), SHAPES,
            """The shape is right, but the entries of W are not where they were: reshape keeps their order and cuts them
            into other rows. W is (D, d) as it is, and needs no change."""),
        mistake("bias added twice", RIGHT.but("+ b", "+ 2 * b"), PROJECT,
            "Your numbers with a bias are off by exactly one more bias: it was added twice."),
        mistake("bias multiplied", RIGHT.but("+ b", "* b"), PROJECT,
            "The product was multiplied with b. A bias is *added*, after the product."),
        mistake("divided by the root of D", RIGHT.but("x @ W", "x @ W / x.shape[-1] ** 0.5"), PROJECT,
            "The product was divided by the root of D. That division belongs to scores; a projection is the plain "
            "product."),
        mistake("first word for all", RIGHT.but("x @ W", "(x[:, :1] @ W).expand(-1, x.shape[1], -1)"), PROJECT,
            "Every word of a sentence came back as its first one. Each word is projected by itself."),
        mistake("bias for the first word alone", RIGHT.but(
                  "projected + b", "torch.cat([projected[:, :1] + b, projected[:, 1:]], dim=1)"), PROJECT,
            "b was added only to the first word. Every word of every sentence gets the same b."),
        mistake("bias for the first sentence alone", RIGHT.but(
                  "projected + b", "torch.cat([projected[:1] + b, projected[1:]], dim=0)"), PROJECT,
            "b was added only to the first sentence. Every word of every sentence gets the same b."),
        mistake("words and sentences in one axis", RIGHT.but("x @ W", "x.reshape(-1, x.shape[-1]) @ W"), SHAPES,
            "All words of all sentences came back in one axis: they were flattened and not cut apart again.",
            quotes=sizes),
        mistake("a softmax on top", RIGHT.but("return projected", "return torch.softmax(projected, dim=-1)"), PROJECT,
            "Each word's numbers sum to 1: a softmax was applied. A projection is a plain matrix product with a bias."),
        mistake("words standardized first", RIGHT.but("x @ W", "F.layer_norm(x, x.shape[-1:]) @ W"), PROJECT,
            "Each word was normalized to mean 0 and variance 1 before the product. Multiply it as it is."),
        mistake("words added up along the sentence", RIGHT.but("x @ W", "x.cumsum(dim=1) @ W"), PROJECT,
            "Each word came with all words before it added on. A projection treats each word by itself."),
        mistake("bias once for each word", RIGHT.but("+ b", "+ b * x.shape[1]"), PROJECT,
            "The bias was added as often as there are words. Every word gets it once."),
        mistake("bias divided by its size", RIGHT.but("+ b", "+ b / len(b)"), PROJECT,
            "Only a part of b arrived: it was divided by how many numbers it has. Every word gets the whole of b."),
        mistake("summed over the words", RIGHT.but("x @ W", 'torch.einsum("btd,dk->bdk", x, W)'), SHAPES,
            "The sum ran over the words of a sentence. It runs over the D numbers of one word, and the "
            "words stay apart.", quotes=sizes),
        *usual_mistakes(RIGHT, arguments="x W", detached=PARAMETERS, float32=SHAPES, single=SHAPES, squeezed=SHAPES,
                        viewed=SHAPES, quotes_size=sizes),
        mistake("b cut off from the gradient", RIGHT.but("+ b", "+ b.detach()"), PARAMETERS,
            "The values are right, but no gradient reaches b: it was detached, so the bias could never be learned."),
    ),
    correct=(
        correct("at", """
            def project(a, weight, bias=None):
                y = a @ weight
                return y if bias is None else y + bias
        """),
        correct("einsum", RIGHT.but("x @ W", 'torch.einsum("btd,dk->btk", x, W)')),
        correct("F.linear", formula("project(x, W, b=None)", "F.linear(x, W.T, b)")),
        correct("loops", """
            def project(x, W, b=None):
                rows = []
                for sentence in x:
                    words = []
                    for word in sentence:
                        total = sum(word[i] * W[i] for i in range(W.shape[0]))
                        words.append(total if b is None else total + b)
                    rows.append(torch.stack(words))
                return torch.stack(rows)
        """),
        correct("elementwise and sum", RIGHT.but("x @ W", "(x[..., :, None] * W).sum(-2)")),
        correct("double inside", """
            def project(x, W, b=None):
                y = x.double() @ W.double()
                return (y if b is None else y + b.double()).to(x.dtype)
        """),
        correct("flattened", """
            def project(x, W, b=0):
                b = 0 if b is None else b
                return (x.reshape(-1, x.size(-1)).mm(W) + b).view(*x.shape[:2], -1)
        """),
    ),
    hints=(
        "which axis of x has the same size as the first axis of W?",
        "(B, T, D) times (D, d): the last axis of x meets the first of W, and (B, T) is carried along. b "
        "has shape (d,).",
        "out = x times W; if a bias was given, add it to every row; return out.",
    ),
)
