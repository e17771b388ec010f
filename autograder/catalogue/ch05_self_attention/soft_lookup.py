"""05.3: a dictionary that returns a mixture of its values."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.attention_scores import wrong_scores
from autograder.catalogue.ch05_self_attention.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import usual_mistakes
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import FAR, hidden, normal, usual_probes, visible
from autograder.catalogue.quotes import first, sizes

LOOKUP, PARAMETERS, SHAPES, STABLE = sections("lookup parameters shapes stable")

QUERY, KEYS = torch.tensor([1.0, 0.5]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
VALUES = torch.tensor([[10.0, 0.0, 1.0, 5.0], [0.0, 20.0, 1.0, 5.0], [30.0, 30.0, 1.0, 5.0]])


def soft_lookup(q: Tensor, keys: Tensor, values: Tensor, beta: float) -> Tensor:
    """A dictionary that returns a weighted average of its values, by the match of each key with the query."""
    return torch.softmax(beta * (keys @ q), dim=-1) @ values


def entries(g: torch.Generator, n: int, d: int, d_v: int, beta: float, dtype: torch.dtype = torch.float32) -> Case:
    return Case((normal(g, d, dtype=dtype), normal(g, n, d, dtype=dtype), normal(g, n, d_v, dtype=dtype), beta))


def far_away(g: torch.Generator) -> Case:
    """Every key is moved by the same large amount, so all scores are, and softmax must not see it."""
    q, keys, values, beta = entries(g, 6, 5, 7, 0.8, dtype=torch.float64).arguments
    return Case((q, keys + FAR, values, beta))


def close_together(g: torch.Generator, beta: float) -> Case:
    """Two keys that match almost equally, so that even a large beta does not select one.

    In float64: where the two terms nearly cancel, float32 would leave less than a hundredth of the result.
    """
    q, keys, values = (each.double() for each in far_apart(g, beta).arguments[:3])
    best = (keys @ q).argmax()
    keys[(best + 1) % 6] = keys[best] - 0.5 / beta * q / q.dot(q)
    return Case((q, keys, values, beta))


def alike(g: torch.Generator) -> Case:
    """More entries than elsewhere, values of one number, and a key that equals the query."""
    q, keys, values, beta = entries(g, 12, 5, 1, 0).arguments
    keys[2] = q
    return Case((q, keys, values, beta))


def far_apart(g: torch.Generator, beta: float) -> Case:
    """Keys with different matches, so that a large beta selects one."""
    q = normal(g, 5)
    fits = (torch.arange(6.0) + 0.1 * torch.rand(6, generator=g))[torch.randperm(6, generator=g)]
    keys = normal(g, 6, 5)
    keys = keys + ((fits - keys @ q) / q.dot(q))[:, None] * q
    return Case((q, keys, normal(g, 6, 7), beta))


def nan_from_large_scores(evidence: Evidence) -> bool:
    """Whether NaN comes back where a score is too large for an exponential in float32."""
    q, keys, _, beta = evidence.arguments
    return bool((beta * (keys @ q)).abs().max() > 80) and bool(evidence.got.isnan().any())


RIGHT = answer("""
    def soft_lookup(q, keys, values, beta):
        scores = beta * (keys @ q)
        shares = torch.softmax(scores, dim=-1)
        return shares @ values
""")
SCORES, SOFTMAX = "beta * (keys @ q)", "torch.softmax(scores, dim=-1)"

EXERCISE = Exercise(
    id="soft-lookup", number="05.3", difficulty=1, minutes=10, visible_points=1, hidden_points=2,
    reference=soft_lookup, section=LOOKUP,
    probes=(
        visible("three entries, beta 2", Case((QUERY, KEYS, VALUES, 2.0))),
        visible("six entries, beta 0.7", entries, 6, 5, 7, 0.7),
        *usual_probes(entries, other=(4, 6, 3, 1.3), smallest=(1, 1, 7, 0.9), common=(6, 5, 7, 0.8), precise=far_away),
        hidden("beta 0 gives the mean", alike, announced_by="at β = 0 every entry counts alike"),
        hidden("a large beta is a dictionary", far_apart, 1000.0,
               announced_by="for a very large β only the best one does"),
        hidden("two close keys and a large beta", close_together, 1e6, announced_by="score = β · (key · q)"),
    ),
    mistakes=(
        mistake("beta after the softmax", RIGHT.but(SCORES, "keys @ q").but("shares @", "beta * shares @"), LOOKUP,
            "beta only made the answer longer, not the choice sharper. It belongs to the *scores*, before the softmax.",
            quotes=first),
        mistake("beta forgotten", RIGHT.but(SCORES, "keys @ q"), LOOKUP,
            """Your answer is the one for beta = 1, whatever beta is. (Adding beta to every score changes nothing: only
            differences count.)""", quotes=first),
        mistake("divided by beta", RIGHT.but(SCORES, "(keys @ q) / beta"), LOOKUP,
            """You divided by beta. Here beta is a sharpness, not a temperature: large means choosy, 0 means that all
            count alike.""", quotes=first),
        mistake("only the best entry", RIGHT.but("shares @ values", "values[torch.argmax(keys @ q)]"), LOOKUP,
            """Only the value of the best key came back: a hard dictionary. Its gradient is 0 nearly everywhere, so no
            query could ever be learned. Mix all values.""", quotes=first),
        mistake("scaled by the root of d as well", RIGHT.but(SCORES, f"{SCORES} / q.shape[-1] ** 0.5"), LOOKUP,
            """The scores were divided by the root of d as well. Here only beta sets the scale; attention is the case
            beta = 1/root of d_k."""),
        mistake("keys returned", RIGHT.but("shares @ values", "shares @ keys"), LOOKUP,
            "You mixed the keys. A lookup finds by key and returns the *value*.", quotes=sizes),
        mistake("weights returned", RIGHT.but("shares @ values", "shares"), LOOKUP,
            "These are the weights of the entries. The last step is missing: mix the values with these weights.",
            quotes=sizes),
        mistake("softmax over the features", RIGHT.but(SCORES, "beta * keys * q").but(SOFTMAX, f"{SOFTMAX}.sum(-1)"),
                LOOKUP,
            """Every entry got the weight 1, so the values were added up: the softmax ran along an axis where the
            entries do not meet, such as the d features of a key. The *entries* compete with each other, one
            score each."""),
        mistake("features not added up", RIGHT.but(SCORES, "beta * keys * q").but(
                  SOFTMAX, "torch.softmax(scores, dim=0).T"), LOOKUP,
            """keys * q multiplies number by number, and a score is the *sum* of these products: one number for each
            key. The sum over the d features is missing before the softmax.""", quotes=sizes),
        mistake("no softmax", RIGHT.but(SOFTMAX, "scores"), LOOKUP,
            "The values were weighted by the scores themselves, which do not sum to 1.", quotes=first),
        mistake("divided by the plain sum", RIGHT.but(SOFTMAX, "scores / scores.sum()"), LOOKUP,
            "The scores were divided by their plain sum, so beta cancels out and negative scores give negative "
            "weights."),
        mistake("distance instead of dot product", RIGHT.but(SCORES, "-beta * (keys - q).pow(2).sum(-1)"), LOOKUP,
            """The keys were compared by their squared distance to the query. That is a fine lookup too, but not this
            one: here the score is the dot product."""),
        mistake("cosine instead of dot product", RIGHT.but("keys @ q", "F.cosine_similarity(keys, q[None], dim=-1)"),
                LOOKUP,
            "The keys were compared by cosine, so a long key cannot call louder. Here the score is the plain dot "
            "product."),
        mistake("exponential without care", RIGHT.but(SOFTMAX, "torch.exp(scores) / torch.exp(scores).sum()"), STABLE,
            """For a large beta you return NaN. Either the exponential overflows, or probabilities raised to the power
            of beta all become 0, and 0 is divided by 0. beta belongs to the scores; subtract the largest score first,
            or use chapter 04's softmax.""", shows=nan_from_large_scores),
        mistake("divided by the number of entries", RIGHT.but("@ values", "@ values / len(keys)"), LOOKUP,
            "The mixture was divided by the number of entries. The weights already sum to 1.", quotes=first),
        mistake("cut off from the gradient", RIGHT.but(SCORES, f"{SCORES}.detach()"), PARAMETERS,
            """The values are right, but no gradient reaches the query and the keys: something cut the graph on the way,
            such as .item(), .detach(), or torch.tensor(...) around results. (torch.stack makes one tensor of several
            without cutting it.)"""),
        families.SHARES_TO_A_POWER(RIGHT.but(SCORES, "keys @ q").but("shares @", "shares ** beta @"),
            LOOKUP, quotes=first, power="beta"),
        families.WORST_KEY_WINS(RIGHT.but(SCORES, f"-{SCORES}"), LOOKUP, quotes=first),
        mistake("beta squared", RIGHT.but(SCORES, f"beta * {SCORES}"), LOOKUP,
            "beta entered twice: your answer is the one for beta squared.", quotes=first),
        *wrong_scores(RIGHT, "scores = beta * (keys @ q)", LOOKUP, quotes=first),
        mistake("root of beta", RIGHT.but(SCORES, "beta ** 0.5 * (keys @ q)"), LOOKUP,
            "Your answer is the one for the root of beta. beta itself multiplies the scores.", quotes=first),
        mistake("squared beta", RIGHT.but(SCORES, "beta ** 2 * -(keys - q).pow(2).sum(-1)"), LOOKUP,
            """The keys were compared by their squared distance to the query, and beta was squared. The score is beta
            times the dot product.""", quotes=first),
        mistake("only the best two", RIGHT.after("scores = beta * (keys @ q)",
                  "scores = scores.masked_fill(scores < scores.topk(min(2, len(scores))).values[-1], -math.inf)"),
                  LOOKUP,
            "Only the best two entries were mixed. Every entry enters with its weight, however small.", quotes=first),
        mistake("a sum in place of a mixture", RIGHT.but("shares @", "len(keys) * shares @"), LOOKUP,
            "The mixture was multiplied by the number of entries. The weights sum to 1 already.", quotes=first),
        mistake("power of beta", RIGHT.but(SCORES, "math.exp(min(beta, 20)) * (keys @ q)"), LOOKUP,
            "Your answer is the one for e to the power of beta. beta itself multiplies the scores.", quotes=first),
        mistake("sigmoid instead of softmax", RIGHT.but(SOFTMAX, "torch.sigmoid(scores)"), LOOKUP,
            "A sigmoid was applied to each score separately, so the entries do not compete and their weights do not "
            "sum to 1.", quotes=first),
        *usual_mistakes(RIGHT, arguments="keys q values", float32=SHAPES, single=STABLE, squeezed=SHAPES,
                        viewed=SHAPES),
        mistake("a dictionary from some beta on", RIGHT.before("return shares @ values", """
                  if beta > 10:
                      return values[scores.argmax()]"""), LOOKUP,
            "For a large beta only the best value came back. Where two keys fit nearly alike, both still count."),
        mistake("beta 0 taken for none", RIGHT.but(SCORES, "(beta or 1) * (keys @ q)"), LOOKUP,
            "For beta = 0 your answer is the one for beta = 1: to `or` and `if`, 0 is as good as nothing. At 0 all "
            "entries count alike."),
        mistake("beta limited", RIGHT.but(SCORES, "min(beta, 100) * (keys @ q)"), LOOKUP,
            "A large beta was cut off at a limit. Use it as it is: keys that fit almost equally need a large one."),
    ),
    correct=(
        correct("at", formula("soft_lookup(query, k, v, sharpness)",
                              "torch.softmax(sharpness * (k @ query), dim=0) @ v")),
        correct("query scaled",
                formula("soft_lookup(q, keys, values, beta)", "values.T @ F.softmax(keys @ (beta * q), dim=-1)")),
        correct("einsum", """
            def soft_lookup(q, keys, values, beta):
                w = (beta * torch.einsum('d,nd->n', q, keys)).softmax(0)
                return torch.einsum('n,nv->v', w, values)
        """),
        correct("loops", """
            def soft_lookup(q, keys, values, beta):
                scores = [beta * sum(a * b for a, b in zip(q, key)) for key in keys]
                top = max(scores)
                e = [torch.exp(score - top) for score in scores]
                return sum(x / sum(e) * value for x, value in zip(e, values))
        """),
        correct("double inside", """
            def soft_lookup(q, keys, values, beta):
                w = torch.softmax(beta * (keys.double() @ q.double()), -1)
                return (w @ values.double()).to(values.dtype)
        """),
        correct("row vector", formula("soft_lookup(q, keys, values, beta)",
            "(torch.softmax(beta * q[None] @ keys.T, dim=-1) @ values)[0]")),
    ),
    hints=(
        "what would a very large beta do to the weights, and what would beta = 0 do?",
        "keys (n, d) with q (d,) gives n scores; n weights with values (n, dv) give (dv,).",
        "score of each key: dot product with q, times beta; softmax over the entries; mix the values.",
    ),
)
