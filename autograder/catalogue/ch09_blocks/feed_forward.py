"""09.2: two linear maps with a ReLU between them, for each word separately."""

import torch
from torch import Tensor

from autograder.catalogue.ch09_blocks.shared import sections, wrong_word
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.families import in_place, usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible

FEED, AXIS = sections("feed axis")


def feed_forward(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> Tensor:
    """max(0, x W1 + b1) W2 + b2, for every word separately."""
    return torch.relu(x @ W1 + b1) @ W2 + b2


def inputs(
    g: torch.Generator, B: int, T: int, D: int, d_ff: int, dtype: torch.dtype = torch.float32, size: float = 4.0
) -> Case:
    draw = (size * normal(g, B, T, D), normal(g, D, d_ff) / D**0.5, normal(g, d_ff), normal(g, d_ff, D) / d_ff**0.5,
            normal(g, D))
    return Case(tuple(tensor.to(dtype) for tensor in draw))


def far_away(g: torch.Generator) -> Case:
    """One feature of every word is 100,000,000, and a bias almost cancels it."""
    x, W1, b1, W2, b2 = inputs(g, 2, 3, 4, 6, dtype=torch.float64).arguments
    x[..., 0], W1[0] = FAR, 1.0
    return Case((x, W1, b1 - FAR, W2, b2))


def all_asleep(g: torch.Generator) -> Case:
    """Hidden values that are all negative, so that the result is b2."""
    x, W1, b1, W2, b2 = inputs(g, 2, 3, 4, 6).arguments
    return Case((x, W1, b1 - 50.0, W2, b2))


WORKED = Case((
    torch.tensor([[[1.0, 2.0], [2.0, 0.0]]]),
    torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]),
    torch.tensor([0.0, 0.0, 1.0]),
    torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]),
    torch.tensor([0.5, -2.0]),
), ("first", "second"))  # fmt: skip


RIGHT = answer("""
    def feed_forward(x, W1, b1, W2, b2):
        hidden = x @ W1 + b1
        hidden = torch.relu(hidden)
        out = hidden @ W2 + b2
        return out
""")
FIRST, RELU, SECOND = "hidden = x @ W1 + b1", "hidden = torch.relu(hidden)", "out = hidden @ W2 + b2"


def instead(function: str):
    """The answer with another activation."""
    return RIGHT.but("torch.relu(hidden)", function)


EXERCISE = Exercise(
    id="feed-forward", number="09.2", difficulty=1, minutes=6, visible_points=1, hidden_points=2,
    reference=feed_forward, section=FEED, quotes=wrong_word,
    probes=(
        visible("two words, two features, by hand", WORKED),
        visible("2 sentences, 3 words, D = 4, d_ff = 6", inputs, 2, 3, 4, 6),
        *usual_probes(inputs, other=(3, 4, 5, 7), smallest=(1, 1, 1, 1), common=(2, 3, 4, 6), precise=far_away),
        hidden("narrower inside", inputs, 2, 3, 6, 4, announced_by="d_ff may be smaller than D"),
        hidden("nothing above 0", all_asleep, announced_by="only b2 comes out"),
        hidden("as many words as features", inputs, 4, 4, 4, 4, dtype=torch.float64, size=2000.0,
               announced_by="process each word separately"),
    ),
    mistakes=(
        mistake("no ReLU", RIGHT.without(RELU), FEED,
            """There is nothing between the two maps. Two linear maps in a row are one linear map: (x W1) W2 is x (W1
            W2). The ReLU in between is what makes it more."""),
        mistake("ReLU at the end", RIGHT.without(RELU).but("return out", "return torch.relu(out)"), FEED,
            """The ReLU comes after the second map, so the network can never lower a number: nothing below 0
            comes out. It belongs between the two."""),
        mistake("ReLU twice", RIGHT.but("return out", "return torch.relu(out)"), FEED,
            "There is a second ReLU, after the second map. What comes out may be below 0."),
        mistake("ReLU on the input", RIGHT.without(RELU).but("x @ W1", "torch.relu(x) @ W1"), FEED,
            "The ReLU was put on the input, so what is below 0 in a word is never read. It belongs "
            "between the two maps."),
        mistake("ReLU before the bias", RIGHT.without(RELU).but("x @ W1 + b1", "torch.relu(x @ W1) + b1"), FEED,
            "b1 was added after the ReLU. It sets the threshold above which each hidden unit is "
            "positive, so it comes before."),
        mistake("GELU", instead("F.gelu(hidden)"), FEED,
            "That is GELU, which later models use. Here it is ReLU: what is below 0 becomes exactly 0."),
        mistake("SiLU", instead("F.silu(hidden)"), FEED,
            "That is SiLU, which later models use. Here it is ReLU: what is below 0 becomes exactly 0."),
        mistake("sigmoid", instead("torch.sigmoid(hidden)"), FEED,
            "A sigmoid was used: every hidden unit is between 0 and 1. ReLU keeps values above 0 as they are."),
        mistake("tanh", instead("torch.tanh(hidden)"), FEED,
            "tanh was used: every hidden unit is between -1 and 1. ReLU keeps values above 0 as they are."),
        mistake("absolute value", instead("hidden.abs()"), FEED,
            "The sign of negative numbers was flipped. ReLU makes them 0."),
        mistake("leaky ReLU", instead("F.leaky_relu(hidden)"), FEED,
            "A little of what is below 0 came through: that is a leaky ReLU. ReLU makes it 0."),
        mistake("softmax", instead("torch.softmax(hidden, dim=-1)"), FEED,
            "A softmax made the hidden values sum to 1. Nothing competes here: each is kept, or becomes 0."),
        mistake("the wrong half kept", instead("hidden.clamp(max=0)"), FEED,
            "You kept what is below 0 and dropped the rest: ReLU is max(0, x), not min."),
        mistake("the largest of all", instead("hidden.amax(dim=-1, keepdim=True).clamp(min=0).expand_as(hidden)"), FEED,
            "A maximum over the features was taken. max(0, x) compares each number separately with 0."),
        mistake("capped at 6", instead("F.relu6(hidden)"), FEED,
            "Numbers above 6 were cut off: ReLU has no upper end."),
        mistake("no first bias", RIGHT.but("x @ W1 + b1", "x @ W1"), FEED,
            "b1 has no effect."),
        mistake("no second bias", RIGHT.but("hidden @ W2 + b2", "hidden @ W2"), FEED,
            "b2 has no effect."),
        mistake("no bias at all", RIGHT.but("x @ W1 + b1", "x @ W1").but("hidden @ W2 + b2", "hidden @ W2"), FEED,
            "Neither b1 nor b2 plays a part."),
        mistake("biases subtracted", RIGHT.but("W1 + b1", "W1 - b1").but("W2 + b2", "W2 - b2"), FEED,
            "The biases were subtracted. They are added."),
        mistake("the first map alone", RIGHT.but(SECOND, "out = hidden"), FEED,
            "The second map is missing: d_ff numbers came back for each word; there should be D."),
        mistake("the word added", RIGHT.but("return out", "return x + out"), FEED,
            "x was added to the result. That sum, the residual, is made outside, by the layer (09.3)."),
        mistake("words mixed", RIGHT.before(SECOND, "hidden = hidden.mean(dim=-2, keepdim=True).expand_as(hidden)"),
                AXIS,
            "Words were mixed: all words of a sentence come out alike. Each word is processed separately."),
        mistake("the first word for all", RIGHT.before(FIRST, "x = x[:, :1].expand_as(x)"), AXIS,
            "Every word came out as the first. Each word is processed separately."),
        mistake("W1 transposed", RIGHT.but("x @ W1", "x @ W1.T"), FEED,
            """W1 was transposed. Here it is (D, d_ff) and on the right of x, so it can be used as it is.
            (F.linear and nn.Linear store it the other way round.)"""),
        mistake("W2 transposed", RIGHT.but("hidden @ W2", "hidden @ W2.T"), FEED,
            "W2 was transposed. Here it is (d_ff, D) and on the right, so it can be used as it is."),
        mistake("dropout inside", RIGHT.before(SECOND, "hidden = F.dropout(hidden, 0.1)"), FEED,
            "Some hidden values were dropped, at random. There is no dropout in this exercise."),
        in_place("x", RIGHT.before(FIRST, "x.relu_()"), FEED, "relu_ writes in place; relu makes a new tensor."),
        *usual_mistakes(RIGHT, arguments="x W1 b1 W2 b2", detached=FEED, float32=FEED, single=FEED, squeezed=AXIS,
                        viewed=AXIS),
    ),
    correct=(
        correct("two lines", RIGHT),
        correct("F.linear", """
            def feed_forward(x, W1, b1, W2, b2):
                return F.linear(F.relu(F.linear(x, W1.T, b1)), W2.T, b2)
        """),
        correct("einsum and clamp", """
            def feed_forward(words, up, up_bias, down, down_bias):
                h = torch.einsum("btd,df->btf", words, up).add(up_bias).clamp(min=0)
                return torch.einsum("btf,fd->btd", h, down) + down_bias
        """),
        correct("where", formula("feed_forward(x, W1, b1, W2, b2)",
                               "torch.where(x @ W1 + b1 > 0, x @ W1 + b1, 0.0).to(x.dtype).matmul(W2).add(b2)")),
        correct("loops", """
            def feed_forward(x, W1, b1, W2, b2):
                out = []
                for sentence in x:
                    for word in sentence:
                        hidden = torch.stack([torch.clamp((word * W1[:, j]).sum() + b1[j], min=0.0)
                            for j in range(W1.shape[1])])
                        out.append(torch.stack([(hidden * W2[:, i]).sum() + b2[i] for i in range(W2.shape[1])]))
                return torch.stack(out).reshape(x.shape)
        """),
        correct("half of x and its size", """
            def feed_forward(x, W1, b1, W2, b2):
                hidden = x @ W1 + b1
                return (hidden * (hidden > 0)) @ W2 + b2
        """),
        correct("modules without memory of their own", """
            def feed_forward(x, W1, b1, W2, b2):
                net = nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)) if False else nn.ReLU()
                return torch.addmm(b2, net(torch.addmm(b1, x.flatten(0, 1), W1)), W2).reshape(x.shape)
        """),
    ),
    hints=(
        "what is a word's vector multiplied by first, and what must happen before it is multiplied again?",
        "x (B, T, D) times W1 (D, d_ff) gives (B, T, d_ff); that times W2 (d_ff, D) gives (B, T, D).",
        "x times W1 plus b1; everything below 0 becomes 0; times W2 plus b2.",
    ),
)  # fmt: skip
