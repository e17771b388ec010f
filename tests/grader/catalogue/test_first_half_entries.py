"""Answers to chapters 03 to 05 as students write them: what fails, and which mistake is named."""

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.probe_inputs import question
from autograder.judging.verdict import Verdict

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(exercise: str, source: str) -> Verdict:
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), KEY)


def failed(verdict: Verdict) -> set[str]:
    return {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}


NAN_REPLACED = """
def cosine(A, B):
    table = A @ B.T / (A.norm(dim=1, keepdim=True) * B.norm(dim=1))
    return torch.nan_to_num(table)
"""
TOLERANCE = """
def linear_weights(x):
    if torch.any(x < -1e-6):
        raise ValueError("negative")
    total = x.sum()
    if total.abs() < 1e-8:
        raise ValueError("sum is 0")
    return x / total
"""
ONE_TABLE_SQUARED = """
def cosine(A, B):
    return A @ B.T / A.pow(2).sum(dim=1, keepdim=True)
"""
SHORT_VECTORS_RAISED = """
def nearest(word, vocab, W, k):
    near = W @ W[vocab[word]] / W.norm(dim=1).clamp(min=0.5)
    return sorted((w for w in vocab if w != word), key=lambda w: -near[vocab[w]])[:k]
"""
BOTH_REASONS_AT_ONCE = """
def linear_weights(x):
    if (x < 0).any() and x.sum() == 0:
        raise ValueError("bad")
    return x / x.sum()
"""
BEST_FROM_500_ON = """
def soft_lookup(q, keys, values, beta):
    scores = keys @ q
    if beta > 500:
        return values[scores.argmax()]
    return torch.softmax(beta * scores, 0) @ values
"""
EVERY_SENTENCE_WITH_EVERY = """
def attend(W, V):
    return torch.tensordot(W, V, dims=([2], [1]))
"""
KEYS_TIMES_QUERIES = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d) for d in (d_k, d_k, d_v))

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        weights = torch.softmax(k @ q.mT / math.sqrt(k.shape[-1]), dim=-1)
        return weights @ v, weights
"""
SQUARES_OFF_THE_DIAGONAL = """
def softmax_jacobian(p):
    J = -(p**2)[:, None].repeat(1, len(p))
    return J + torch.diag(p)
"""
POSITIONS_OF_ALL_ROWS = """
def temperature(x, tau):
    if tau < 0:
        raise ValueError
    if tau == 0:
        out = torch.zeros_like(x)
        out[..., x.argmax(-1)] = 1
        return out
    return torch.softmax(x / tau, -1)
"""
POWER_OF_TAU = """
def temperature(x, tau):
    if tau < 0:
        raise ValueError("tau must not be negative")
    if tau == 0:
        return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)
    p = torch.softmax(x, dim=-1) ** (1 / tau)
    return p / p.sum(-1, keepdim=True)
"""
POWER_OF_BETA = """
def soft_lookup(q, keys, values, beta):
    w = torch.softmax(keys @ q, dim=0) ** beta
    return (w / w.sum()) @ values
"""
FIRST_WEIGHTS = """
def attend(W, V):
    return torch.einsum("qk,bkd->bqd", W[0], V)
"""
ALL_OF_B = """
def project(x, W, b=None):
    out = x @ W
    if b is not None and b.all():
        out += b
    return out
"""
KEYS_UNDER_NO_GRAD = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q, self.W_k, self.W_v = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k), nn.Linear(d_model, d_v)

    def forward(self, x):
        q, v = self.W_q(x), self.W_v(x)
        with torch.no_grad():
            k = self.W_k(x)
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return weights @ v, weights
"""
MEAN_SUBTRACTED = """
def softmax(x, dim):
    e = torch.exp(x - x.mean(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)
"""
# What was accepted, and what it is an example of.
EVERY_PAIR = """
def score_std(d, n, generator):
    q = torch.randn(n, d, generator=generator)
    k = torch.randn(n, d, generator=generator)
    return (q @ k.T).std().item()
"""
ONE_PAIR_TOO_FEW = """
def score_std(d, n, generator):
    scores = []
    for i in range(n - 1):
        q = torch.randn(d, generator=generator)
        k = torch.randn(d, generator=generator)
        scores.append((q @ k).item())
    return torch.tensor(scores).std().item()
"""
TWENTY_THOUSAND_PAIRS = """
def score_std(d, n, generator):
    q = torch.randn(20000, d, generator=generator)
    k = torch.randn(20000, d, generator=generator)
    return (q * k).sum(-1).std().item()
"""
ROUNDED_SPREAD = """
def score_std(d, n, generator):
    q, k = torch.randn(2, n, d, generator=generator)
    return round((q * k).sum(-1).std().item(), 1)
"""
ROOT_AFTER_A_DRAW = """
def score_std(d, n, generator):
    torch.randn(1, generator=generator)
    return d ** 0.5
"""
ROOT_BY_TORCH = """
def score_std(d, n, generator):
    torch.randn(1, generator=generator)
    return torch.tensor(float(d)).sqrt().item()
"""
COSINES_CLAMPED = """
def cosine(A, B):
    a, b = F.normalize(A, dim=-1), F.normalize(B, dim=-1)
    return (a @ b.T).clamp(-0.9999, 0.9999)
"""
COSINES_ROUNDED = """
def nearest(word, vocab, W, k):
    sims = {w: round(F.cosine_similarity(W[vocab[word]], W[i], dim=0).item(), 2) for w, i in vocab.items() if w != word}
    return sorted(sims, key=sims.get, reverse=True)[:k]
"""
TEN_WORDS = """
def nearest(word, vocab, W, k):
    sims = {w: F.cosine_similarity(W[vocab[word]], W[i], dim=0).item() for w, i in vocab.items() if w != word}
    return sorted(sims, key=sims.get, reverse=True)[:min(k, 10)]
"""
LOGARITHMS_CLAMPED = """
def log_softmax(x, dim):
    return (x - x.logsumexp(dim, keepdim=True)).clamp_min(-1e5).masked_fill(x == -math.inf, -math.inf)
"""
WEIGHTS_TOO_SMALL = """
def attention_weights(Q, K):
    s = Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1])
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return e / (e.sum(-1, keepdim=True) + 1e-6)
"""
PROJECTED_AND_CLAMPED = """
def project(x, W, b=None):
    out = (x @ W).clamp(-1e3, 1e3)
    return out if b is None else out + b
"""
SMALL_GAPS_AS_0 = """
def equivariance_gap(f, x, perm):
    a, b = f(x), f(x[:, perm])
    if isinstance(a, tuple):
        a, b = a[0], b[0]
    gap = (a[:, perm] - b).abs().max().item()
    return 0.0 if gap < 1e-3 else gap
"""


@pytest.mark.parametrize(
    ("exercise", "source"),
    [
        ("score-std", EVERY_PAIR),
        ("score-std", ONE_PAIR_TOO_FEW),
        ("score-std", TWENTY_THOUSAND_PAIRS),
        ("score-std", ROUNDED_SPREAD),
        ("score-std", ROOT_AFTER_A_DRAW),
        ("score-std", ROOT_BY_TORCH),
        ("cosine", COSINES_CLAMPED),
        ("nearest", COSINES_ROUNDED),
        ("nearest", TEN_WORDS),
        ("nearest", SHORT_VECTORS_RAISED),
        ("log-softmax", LOGARITHMS_CLAMPED),
        ("attention-weights", WEIGHTS_TOO_SMALL),
        ("soft-lookup", BEST_FROM_500_ON),
        ("project", PROJECTED_AND_CLAMPED),
        ("equivariance-gap", SMALL_GAPS_AS_0),
    ],
)
def test_what_is_nearly_right_loses_points(exercise, source):
    verdict = verdict_on(exercise, source)
    assert failed(verdict) and verdict.points < catalogue.find(exercise).points


DRAWN = "\n".join(("def score_std(d, n, generator):", "    {draw}", "    return (q * k).sum(-1).std().item()"))


@pytest.mark.parametrize(
    "draw",
    [
        "q, k = torch.randn(2, n, d, generator=generator)",
        "k, q = torch.randn(2, n, d, generator=generator)",
        "q, k = torch.randn(n, 2, d, generator=generator).transpose(0, 1)",
        "q, k = torch.randn(n, d, 2, generator=generator).movedim(-1, 0)",
        "q, k = torch.randn(2, d, n, generator=generator).mT",
        "q, k = torch.randn(2, n, d, generator=generator, dtype=torch.float64)",
        "q, k = torch.randn(n, 2 * d, generator=generator).chunk(2, -1)",
        "q, k = (torch.stack([torch.randn(d, generator=generator) for _ in range(n)]) for _ in range(2))",
        "q, k = torch.stack([torch.randn(2, d, generator=generator) for _ in range(n)], 1)",
    ],
)
def test_a_measurement_is_not_taken_for_another_one_however_it_draws(draw):
    assert failed(verdict_on("score-std", DRAWN.format(draw=draw))) == set()


FIRST_PRODUCT = """
def dot(a, b):
    total = 0
    for i in range(a.shape[-1]):
        total = total + a[..., i] * b[..., i]
        return total
"""
ANGLES = """
def cosine(A, B):
    la = A.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    lb = B.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    return torch.acos((A / la) @ (B / lb).T)
"""
ROOT_OF_THE_QUOTIENT = """
def scaled_scores(Q, K):
    return torch.sqrt(Q @ K.T / Q.shape[-1])
"""
OWN_GENERATOR = """
def score_std(d, n, generator):
    g = torch.Generator().manual_seed(0)
    q, k = torch.randn(n, d, generator=g), torch.randn(n, d, generator=g)
    return (q * k).sum(-1).std().item()
"""
ROOT_OF_D = """
def score_std(d, n, generator):
    return math.sqrt(d)
"""
ROW_BY_POSITION = """
def nearest(word, vocab, W, k):
    i = list(vocab).index(word)
    sims = F.cosine_similarity(W, W[i][None], dim=-1)
    names = {i: w for w, i in vocab.items()}
    return [names[j] for j in sims.argsort(descending=True).tolist() if j != i][:k]
"""
TINY_DENOMINATOR = """
def linear_weights(x):
    if (x < 0).any() or x.sum() == 0:
        raise ValueError
    return x / (x.sum() + 1e-8)
"""
DIVIDED_BY_THE_MAXIMUM = """
def softmax(x, dim):
    e = torch.exp(x / x.amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim, keepdim=True)
"""
ONE_FACTOR = """
def softmax_jacobian(p):
    J = -p.expand(len(p), len(p)).clone()
    J.diagonal().copy_(p * (1 - p))
    return J
"""
GAP_OF_THE_LARGEST = """
def equivariance_gap(f, x, perm):
    a, b = f(x), f(x[:, perm])
    if isinstance(a, tuple):
        a, b = a[0], b[0]
    return (a[:, perm].abs().max() - b.abs().max()).item()
"""
GAP_WRITTEN_OVER = """
def equivariance_gap(f, x, perm):
    a, b = f(x), f(x[:, perm])
    if isinstance(a, tuple):
        a, b = a[0], b[0]
    gap = 0.0
    for i, p in enumerate(perm.tolist()):
        gap = (a[:, p] - b[:, i]).abs().max().item()
    return gap
"""


DIVIDED_TWICE = """
def attention_weights(Q, K):
    d = math.sqrt(Q.shape[-1])
    return torch.softmax((Q / d) @ (K / d).transpose(-2, -1), dim=-1)
"""
NO_DIM = """
def attention_weights(Q, K):
    return F.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]))
"""


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("attention-weights", DIVIDED_TWICE, "or twice by its root, as when both Q and K are divided by it"),
        ("attention-weights", NO_DIM, "F.softmax without a dim chooses an axis itself"),
        ("linear-weights", BOTH_REASONS_AT_ONCE, "does one of them suffice in your code, or does it need both?"),
        ("self-attention", KEYS_TIMES_QUERIES, "Either the product is that of the keys with the queries"),
    ],
)
def test_the_message_covers_both_ways_to_the_mistake(exercise, source, words):
    assert words in " ".join(as_text(verdict_on(exercise, source)).split())


def test_a_sum_over_the_sentences_is_not_claimed_where_every_sentence_met_every_other():
    told = " ".join(as_text(verdict_on("attend", EVERY_SENTENCE_WITH_EVERY)).split())
    assert "one too many" in told and "added up before" not in told, told


def test_a_change_of_the_callers_tensor_sends_to_the_small_print():
    told = catalogue.find("cosine").mistakes
    assert {
        each.reread.chapter for each in told if each.name in ("A changed in place", "cut off from the gradient")
    } == {"00"}


@pytest.mark.parametrize(
    ("exercise", "source", "name"),
    [
        ("cosine", NAN_REPLACED, "NaN replaced in the result"),
        ("cosine", ONE_TABLE_SQUARED, "divided by the squared lengths of B alone"),
        ("soft-lookup", BEST_FROM_500_ON, "a dictionary from some beta on"),
        ("linear-weights", TOLERANCE, "compared with a tolerance"),
        ("temperature", POWER_OF_TAU, "exponential without care"),
        ("soft-lookup", POWER_OF_BETA, "exponential without care"),
        ("attend", FIRST_WEIGHTS, "first sentence's weights for all"),
        ("project", ALL_OF_B, "bias left out where it holds a 0"),
        ("dot", FIRST_PRODUCT, "the last places left out"),
        ("cosine", ANGLES, "the angle itself"),
        ("scaled-scores", ROOT_OF_THE_QUOTIENT, "root of the scores, not of d"),
        ("score-std", EVERY_PAIR, "every query with every key"),
        ("score-std", ONE_PAIR_TOO_FEW, "one pair too few"),
        ("score-std", OWN_GENERATOR, "nothing drawn from the generator"),
        ("score-std", ROOT_OF_D, "a formula instead of a measurement"),
        ("nearest", ROW_BY_POSITION, "the place in the dictionary, only for the word itself"),
        ("linear-weights", TINY_DENOMINATOR, "something small in the denominator"),
        ("softmax", DIVIDED_BY_THE_MAXIMUM, "largest score as the unit"),
        ("softmax-jacobian", SQUARES_OFF_THE_DIAGONAL, "one factor missing off the diagonal"),
        ("softmax-jacobian", ONE_FACTOR, "one factor missing off the diagonal"),
        ("equivariance-gap", GAP_OF_THE_LARGEST, "difference of the largest"),
        ("equivariance-gap", GAP_WRITTEN_OVER, "only the last word compared"),
    ],
)
def test_the_mistake_is_named(exercise, source, name):
    verdict = verdict_on(exercise, source)
    assert verdict.misconception is not None and verdict.misconception.name == name, failed(verdict)


def test_what_was_measured_is_found_whatever_the_generator_has_drawn_before():
    exercise = catalogue.find("score-std")
    generator = torch.Generator().manual_seed(3)
    torch.randn(7, generator=generator)
    q, k = torch.randn(2, 50, 64, generator=equal(generator))
    found = exercise.normalize(Case((64, 50, generator)), (q @ k.T).std().item())
    assert "every query with every key" in str(found)


def equal(generator):
    """A second generator in the same state."""
    other = torch.Generator()
    other.set_state(generator.get_state())
    return other


def test_a_projection_without_a_gradient_fails_in_several_checks():
    assert failed(verdict_on("self-attention", KEYS_UNDER_NO_GRAD)) == {
        "gradients", "large scores", "one word, in training",
    }  # fmt: skip


def test_the_mean_fails_where_1000_and_minus_1000_are_in_one_row():
    assert "scores around 1000 and -1000" in failed(verdict_on("softmax", MEAN_SUBTRACTED))


@pytest.mark.parametrize(
    ("exercise", "mistake"),
    [
        ("softmax", "no maximum subtracted"),
        ("softmax", "one maximum for the whole tensor"),
        ("log-softmax", "logarithm of the softmax"),
        ("linear-weights", "only a sum of zero is refused"),
    ],
)
def test_what_the_exercise_is_about_is_seen_by_the_learners_own_check(exercise, mistake):
    entry = catalogue.find(exercise)
    known = next(each for each in entry.mistakes if each.name == mistake)
    visible = {probe.name for probe in entry.visible}
    assert failed(verdict_on(exercise, known.source)) & visible


def test_a_projection_of_the_output_is_not_called_a_sum_with_x():
    entry = catalogue.find("self-attention")
    known = next(each for each in entry.mistakes if each.name == "x added to the output")
    source = known.source.replace("x + self.out", "self.out")
    verdict = verdict_on("self-attention", source)
    assert verdict.misconception is known and "fourth projection" in known.message


def test_rounding_is_expected_as_0():
    exercise = catalogue.find("equivariance-gap")
    _, expected, _ = question(exercise, exercise.probes[0], torch.Generator().manual_seed(0))
    assert expected.result == 0.0


def test_ones_at_the_positions_of_all_rows_fail_in_a_batch_as_well():
    assert "tau = 0 for every row of a batch" in failed(verdict_on("temperature", POSITIONS_OF_ALL_ROWS))
