"""05.5: attention with learned projections, as a module."""

import torch
from torch import Tensor, nn

from autograder.catalogue import families
from autograder.catalogue.attention_scores import wrong_scores
from autograder.catalogue.ch05_self_attention.shared import EMBEDDINGS, FUSED, WORDS, sections
from autograder.catalogue.exercise import Case, Exercise, Role
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import Answer, answer, correct, mistake
from autograder.catalogue.laws import sums_to_one
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import columns, row_sums
from transformer_ref.model import attention

MIX, PARAMETERS, SHAPES, STABLE, WHICH_AXIS, WHY_DIVIDE = sections("mix parameters shapes stable which-axis why-divide")


class SelfAttention(nn.Module):
    """Queries, keys and values as three projections of x; the names show their roles."""

    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        result = attention.explicit_attention(self.query(x), self.key(x), self.value(x))
        return result.output, result.weights


def projections(d_model: int, d_k: int, d_v: int) -> tuple[Role, ...]:
    return (
        Role("query", d_model, d_k, ("q", "wq", "query", "queries")),
        Role("key", d_model, d_k, ("k", "wk", "key", "keys")),
        Role("value", d_model, d_v, ("v", "wv", "value", "values")),
    )


def inputs(
    g: torch.Generator, B: int, T: int, widths: tuple[int, int, int], first: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> Case:
    """widths: d_model, d_k, d_v. first: factor on the first sentence's numbers."""
    weights = {role.name: normal(g, role.inputs, role.outputs, dtype=dtype) for role in projections(*widths)}
    x = normal(g, B, T, widths[0], dtype=dtype)
    x[0] *= first
    return Case((x,), construct=widths, weights=weights)


def far_away(g: torch.Generator) -> Case:
    """One feature of every word is 100,000,000; it shifts all keys alike, which does not change the softmax."""
    case = inputs(g, 2, 4, (7, 4, 6), dtype=torch.float64)
    case.arguments[0][..., 0] = FAR
    for role in ("query", "value"):
        case.weights[role][0] = 0
    return case


FOUR_WORDS = Case((EMBEDDINGS[None],), WORDS, construct=(2, 3, 4), weights={
    "query": torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
    "key": torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]),
    "value": torch.tensor([[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, -1.0, 1.0]]),
})

RIGHT = answer("""
    class SelfAttention(nn.Module):
        def __init__(self, d_model, d_k, d_v):
            super().__init__()
            self.d_k, self.d_v = d_k, d_v
            self.W_q = nn.Linear(d_model, d_k, bias=False)
            self.W_k = nn.Linear(d_model, d_k, bias=False)
            self.W_v = nn.Linear(d_model, d_v, bias=False)

        def forward(self, x):
            q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
            scores = q @ k.transpose(-2, -1)
            scores = scores / self.d_k ** 0.5
            weights = torch.softmax(scores, dim=-1)
            return weights @ v, weights
""")
Q_LAYER, K_LAYER, V_LAYER = (f"self.W_{name} = nn.Linear(d_model, d_{size}, bias=False)" for name,
                             size in ("qk", "kk", "vv"))
LAYERS, PROJECTED = "\n        ".join((Q_LAYER, K_LAYER, V_LAYER)), "q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)"
DIVISION, SOFTMAX = "scores = scores / self.d_k ** 0.5", "weights = torch.softmax(scores, dim=-1)"
ROOT_OF_D_K = "self.d_k ** 0.5"


def layered(layers: str, projected: str) -> Answer:
    """The correct answer with other layers in its constructor, and other steps that compute queries, keys and
    values."""
    return RIGHT.but(LAYERS, layers).but(PROJECTED, projected)


EXERCISE = Exercise(
    id="self-attention", number="05.5", difficulty=3, minutes=25, visible_points=2, hidden_points=6,
    reference=SelfAttention, roles=projections, section=PARAMETERS, forbidden=FUSED,
    probes=(
        visible("four words, weights given", FOUR_WORDS, laws=(sums_to_one("every query's weights sum to 1", part=1),)),
        visible("two sentences, d_model 6, d_k 5, d_v 7", inputs, 2, 4, (6, 5, 7)),
        # Two words share out 1 by one number. Small words keep their scores near 1, where every mistake moves it.
        *usual_probes(inputs, other=(3, 6, (8, 90, 4)), smallest=(1, 2, (4, 6, 5), 0.5), common=(2, 4, (7, 4, 6)),
                      precise=far_away),
        hidden("large scores", inputs, 2, 5, (9, 4, 9), first=30.0, dtype=torch.float64, checks="gradients",
               announced_by="must not give NaN"),
        hidden("one word, in training", inputs, 1, 1, (5, 4, 4), dtype=torch.float64,
               checks=("training", "gradients"), announced_by="no dropout"),
    ),
    mistakes=(
        mistake("one projection for queries and keys", RIGHT.without(K_LAYER).but("self.W_k(x)", "self.W_q(x)"),
                PARAMETERS,
            """Queries and keys come from one and the same projection, so the scores are symmetric: if a word finds
            another interesting, the other must find it so too. Asking and being found are two different jobs."""),
        mistake("projections made in forward", layered("self.d_model = d_model", """
                  q = nn.Linear(self.d_model, self.d_k, bias=False)(x)
                  k = nn.Linear(self.d_model, self.d_k, bias=False)(x)
                  v = nn.Linear(self.d_model, self.d_v, bias=False)(x)"""), PARAMETERS,
            """0 parameters are registered, and each call gives a different result: the projections are created inside
            forward. Create them once, in the constructor, where an optimizer can find them."""),
        mistake("plain tensors instead of parameters", layered("""
                  self.W_q = torch.randn(d_model, d_k)
                  self.W_k = torch.randn(d_model, d_k)
                  self.W_v = torch.randn(d_model, d_v)""", "q, k, v = x @ self.W_q, x @ self.W_k, x @ self.W_v"),
                  PARAMETERS,
            """0 parameters are registered: the matrices are plain tensors, so an optimizer would never see them and
            they would stay as random as they began. nn.Parameter or nn.Linear makes a tensor trainable."""),
        mistake("projections kept in a plain list", layered(
                  "self.layers = [nn.Linear(d_model, d, bias=False) for d in (d_k, d_k, d_v)]",
                  "q, k, v = (layer(x) for layer in self.layers)"), PARAMETERS,
            "0 parameters are registered: a Python list hides its layers from the module. nn.ModuleList shows them."),
        mistake("buffers instead of parameters", layered("""
                  self.register_buffer("W_q", torch.randn(d_model, d_k))
                  self.register_buffer("W_k", torch.randn(d_model, d_k))
                  self.register_buffer("W_v", torch.randn(d_model, d_v))""",
                  "q, k, v = x @ self.W_q, x @ self.W_k, x @ self.W_v"), PARAMETERS,
            """0 parameters are registered when the constructor ends. Either the matrices are buffers, which an
            optimizer never changes, or the projections are made in forward, which is too late. nn.Parameter or
            nn.Linear in the constructor makes them trainable."""),
        mistake("queries and keys exchanged", RIGHT.but(PROJECTED, "q, k, v = self.W_k(x), self.W_q(x), self.W_v(x)"),
                PARAMETERS,
            """Rows and columns of the scores are exchanged: there should be one row for each query. Either the product
            is that of the keys with the queries, or the projection named for the query makes your keys and the other
            way round."""),
        mistake("values not projected", RIGHT.without(V_LAYER).but("self.W_v(x)", "x"), PARAMETERS,
            """The words themselves were mixed: there is no projection to d_v. What a word *is found by* (its key) and
            what it *passes on* (its value) are different things; the value projection makes the second."""),
        mistake("values as wide as the keys", RIGHT.but(V_LAYER, V_LAYER.replace("d_v", "d_k")), PARAMETERS,
            """All three projections lead to d_k numbers. That is right for queries and keys; the value projection leads
            to d_v."""),
        mistake("keys mixed instead of values", RIGHT.but("weights @ v", "weights @ k"), MIX,
            """Your output is a mixture of the keys and has d_k numbers per word. Keys are for being found; the values
            are what is mixed."""),
        mistake("divided by the root of d_model", RIGHT.but(ROOT_OF_D_K, "x.shape[-1] ** 0.5"), WHY_DIVIDE,
            """The scores were divided by the root of d_model, the width of x. The dot product adds up d_k products, so
            its size grows with d_k."""),
        mistake("divided by the root of d_v", RIGHT.but(ROOT_OF_D_K, "self.d_v ** 0.5"), WHY_DIVIDE,
            """The scores were divided by the root of d_v. Values take no part in a score; the dot product adds up d_k
            products."""),
        families.DIVIDED_BY_D_K(RIGHT.but(ROOT_OF_D_K, "self.d_k"), WHY_DIVIDE),
        mistake("no scaling", RIGHT.without(DIVISION), WHY_DIVIDE,
            "Your weights are too sharp: the division by the square root of d_k is missing."),
        families.SOFTMAX_OVER_THE_QUERIES(RIGHT.but("dim=-1", "dim=-2"), WHICH_AXIS, quotes=columns),
        mistake("softmax over the batch", RIGHT.but("dim=-1", "dim=0"), WHICH_AXIS,
            "Your weights sum to 1 over the sentences of the batch: axis 0 is the batch.", quotes=row_sums),
        mistake("scores returned instead of weights", RIGHT.but("@ v, weights", "@ v, scores"), WHICH_AXIS,
            """The output is right, but the second result holds the scores before the softmax. Return the weights, so
            they can be drawn as a map.""", quotes=row_sums),
        mistake("scores mixed without softmax", RIGHT.but(SOFTMAX, "weights = scores"), WHICH_AXIS,
            "The values were mixed by the scores themselves. Scores are not weights: apply a softmax to each row "
            "first.",
            quotes=row_sums),
        families.FUTURE_FORBIDDEN(RIGHT.before(SOFTMAX, """
                  later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
                  scores = scores.masked_fill(later, float("-inf"))"""),
            PARAMETERS, here="Here every word may attend to the whole sentence."),
        mistake("only the output returned", RIGHT.but("@ v, weights", "@ v"), PARAMETERS,
            "One tensor came back. There should be two: the output and then the weights."),
        mistake("weights first", RIGHT.but("weights @ v, weights", "weights, weights @ v"), PARAMETERS,
            "The two results are exchanged: first the output, then the weights."),
        mistake("x added to the output", RIGHT.after(V_LAYER, "self.out = nn.Linear(d_v, d_model, bias=False)").but(
                  "weights @ v,", "x + self.out(weights @ v),"), PARAMETERS,
            """There is a fourth projection, from d_v back to d_model. An output projection comes in chapter 06 (and the
            residual connection, which adds x to the output, in chapter 09); here the mixture of values is the
            result."""),
        mistake("an output projection", RIGHT.after(V_LAYER, "self.out = nn.Linear(d_v, d_v, bias=False)").but(
                  "weights @ v,", "self.out(weights @ v),"), PARAMETERS,
            """Your output is 0 in every check. The check sets all parameters to 0 except those of the three
            projections: is there a fourth one, on the output? That comes in chapter 06; here the mixture of values is
            the result."""),
        mistake("weights transposed", RIGHT.but("weights @ v", "weights.mT @ v"), MIX,
            "The weights are right, and output 0 was mixed with *column* 0 of them. Row i of the weights belongs to "
            "query i."),
        families.VALUES_ADDED_BACK(RIGHT.but("weights @ v,", "weights @ v + v,"), PARAMETERS),
        families.DROPOUT_ON_THE_WEIGHTS(RIGHT.after(SOFTMAX, "weights = F.dropout(weights, 0.5)"), PARAMETERS),
        families.DROPOUT_IN_TRAINING(RIGHT.after(V_LAYER, "self.drop = nn.Dropout(0.5)").after(
                  SOFTMAX, "weights = self.drop(weights)"),
            PARAMETERS),
        families.FROZEN_PROJECTIONS(RIGHT.after(V_LAYER, "self.requires_grad_(False)"), PARAMETERS),
        mistake("weights cut off from the gradient", RIGHT.but("dim=-1)", "dim=-1).detach()"), PARAMETERS,
            "The values are right, but the weights were detached: no gradient reaches the query and key projections."),
        families.NAN_FOR_LARGE_SCORES(RIGHT.but(SOFTMAX, """
                  weights = torch.exp(scores)
                  weights = weights / weights.sum(dim=-1, keepdim=True)"""),
            STABLE),
        mistake("a value projection that nobody uses", RIGHT.but("weights @ v", "weights @ x"), MIX,
            """You mixed the words themselves, so the output has d_model numbers per word. Mix what the value projection
            makes of them."""),
        families.QUERIES_WITH_THEMSELVES(RIGHT.but("k.transpose", "q.transpose"), PARAMETERS),
        mistake("divided by the root of the number of words", RIGHT.but(ROOT_OF_D_K, "x.shape[1] ** 0.5"), WHY_DIVIDE,
            "The scores were divided by the root of the number of words. What makes them large is the width "
            "d_k of a query."),
        families.DIVIDED_AFTER_THE_SOFTMAX(RIGHT.without(DIVISION).but("dim=-1)", "dim=-1) / self.d_k ** 0.5"),
            WHY_DIVIDE, quotes=row_sums),
        mistake("the output divided", RIGHT.without(DIVISION).but("weights @ v,", "weights @ v / self.d_k ** 0.5,"),
                WHY_DIVIDE,
            "The division by the root of d_k came at the end, on the output. It is the *scores* that are too large."),
        mistake("softmax over the queries and no scaling", RIGHT.without(DIVISION).but("dim=-1", "dim=-2"), WHICH_AXIS,
            """Two things at once: the softmax runs over the queries instead of the keys, and the division by the square
            root of d_k is missing.""", quotes=columns),
        mistake("weights kept from the first call", RIGHT.after(V_LAYER, "self.A = None").but(SOFTMAX, """
                  if self.A is None:
                      self.A = torch.softmax(scores, dim=-1)
                  weights = self.A"""), PARAMETERS,
            """The weights of the first sentence were kept and used for the next one: what is set only `if self.A is
            None` is never computed again. Weights belong to one sentence; only the projections stay."""),
        *wrong_scores(RIGHT, DIVISION, WHY_DIVIDE),
        mistake("ReLU on the projections", RIGHT.but(
                  PROJECTED, "q, k, v = F.relu(self.W_q(x)), F.relu(self.W_k(x)), F.relu(self.W_v(x))"), PARAMETERS,
            "The projections went through a ReLU. Queries, keys and values are plain matrix products; negative "
            "numbers count."),
        mistake("ReLU on queries and keys", RIGHT.but(
                  PROJECTED, "q, k, v = F.relu(self.W_q(x)), F.relu(self.W_k(x)), self.W_v(x)"), PARAMETERS,
            "Queries and keys went through a ReLU. They are plain matrix products; negative numbers count."),
        mistake("queries and keys of length 1", RIGHT.but(
                  PROJECTED, "q, k, v = F.normalize(self.W_q(x), dim=-1), F.normalize(self.W_k(x), dim=-1), "
                             "self.W_v(x)"), WHY_DIVIDE,
            "Queries and keys were brought to length 1, which is cosine. One number divides all scores: "
            "the root of d_k."),
        mistake("one map for all sentences",
                RIGHT.after(SOFTMAX, "weights = weights.mean(dim=0, keepdim=True).expand_as(weights)"), WHICH_AXIS,
            "All sentences of the batch have the same weights in your result: their mean. Each sentence has a map of "
            "its own."),
        mistake("divided by the root of twice d_k", RIGHT.but(ROOT_OF_D_K, "(2 * self.d_k) ** 0.5"), WHY_DIVIDE,
            "Your scores are too small by the root of 2. The dot product adds up d_k products: divide by "
            "the root of d_k."),
        mistake("weights sharpened twice", RIGHT.after(SOFTMAX, "weights = torch.softmax(weights, dim=-1)"), WHICH_AXIS,
            "The weights went through a softmax once more, which makes them nearly equal. They sum to 1 already."),
        mistake("x standardized first", RIGHT.before(PROJECTED, "x = F.layer_norm(x, x.shape[-1:])"), PARAMETERS,
            "Each word was normalized to mean 0 and variance 1 first. Normalization comes in chapter 09; here words "
            "are projected as they are."),
        families.OWN_WORD_HIDDEN(RIGHT.before(SOFTMAX, """
                  own = torch.eye(scores.shape[-1], dtype=torch.bool)
                  scores = scores.masked_fill(own & (scores.shape[-1] > 1), float("-inf"))"""),
            WHICH_AXIS, here="Here every word may attend to the whole sentence, including itself."),
        *usual_mistakes(RIGHT, arguments="x", squeezed=SHAPES, viewed=SHAPES, rounded=WHY_DIVIDE, root=ROOT_OF_D_K),
    ),
    correct=(
        correct("three Linears", RIGHT),
        correct("biases, other names, another order", layered("""
            self.values = nn.Linear(d_model, d_v)
            self.toKey = nn.Linear(d_model, d_k)
            self.toQuery = nn.Linear(d_model, d_k)
        """, "q, k, v = self.toQuery(x), self.toKey(x), self.values(x)").but(
            "q @ k.transpose(-2, -1)", "torch.einsum('btd,bsd->bts', q, k)")),
        correct("one fused Linear", layered(
            "self.qkv = nn.Linear(d_model, 2 * d_k + d_v)",
            "q, k, v = self.qkv(x).split((self.d_k, self.d_k, self.d_v), dim=-1)",
        ).but("return weights @ v, weights", "return [weights @ v, weights]")),
        correct("bare parameters", layered("""
            self.A = nn.Parameter(torch.randn(d_model, d_k))
            self.B = nn.Parameter(torch.randn(d_model, d_k))
            self.C = nn.Parameter(torch.randn(d_v, d_model))
        """, "q, k, v = x @ self.A, x @ self.B, x @ self.C.T")),
        correct("ModuleDict and a mask nobody asked for", layered(
            "self.maps = nn.ModuleDict({name: nn.Linear(d_model, d) for name, d in (('v', d_v), ('q', "
            "d_k), ('k', d_k))})",
            "q, k, v = (self.maps[name](x) for name in 'qkv')",
        ).but("(self, x)", "(self, x, mask=None)").but(SOFTMAX, """
            if mask is not None:
                scores = scores.masked_fill(~mask, float('-inf'))
            weights = scores.softmax(-1)
        """)),
        correct("keys and values fused", layered("""
            self.kv = nn.Linear(d_model, d_k + d_v, bias=False)
            self.q = nn.Linear(d_model, d_k, bias=False)
        """, "q, k, v = self.q(x), self.kv(x)[..., :self.d_k], self.kv(x)[..., self.d_k:]")),
        correct("unnamed list, keys first", layered(
            "self.layers = nn.ModuleList([nn.Linear(d_model, d_k), nn.Linear(d_model, d_k), nn.Linear(d_model, d_v)])",
            "k, q, v = [layer(x) for layer in self.layers]")),
        correct("roles said in the class", layered("""
            self.second = nn.Linear(d_model, d_k)
            self.first = nn.Linear(d_model, d_k)
            self.third = nn.Linear(d_model, d_v)
        """, "q, k, v = self.first(x), self.second(x), self.third(x)").but("def __init__", """
            roles = {'query': 'first.weight', 'key': 'second.weight', 'value': 'third.weight'}
            def __init__""")),
        correct("lazy layers", layered(
            "self.q, self.k, self.v = nn.LazyLinear(d_k), nn.LazyLinear(d_k), nn.LazyLinear(d_v)",
            "q, k, v = self.q(x), self.k(x), self.v(x)")),
    ),
    hints=(
        "what must exist before the first sentence arrives, and what is computed from each sentence?",
        "x (B, T, D) gives q and k of (B, T, d_k) and v of (B, T, d_v); weights are (B, T, T), the output (B, T, d_v).",
        "constructor: three projections. forward: q, k, v from x; weights from q and k as in 05.2; output from "
        "weights and v "
        "as in 05.1; return both.",
    ),
)
