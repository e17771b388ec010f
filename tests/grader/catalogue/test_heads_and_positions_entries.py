"""Answers to chapters 06 and 07 as students write them: what fails, and what the message says."""

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.ch06_multi_head_attention.multi_head_attention import K_LAYER, O_LAYER, SOFTMAX, V_LAYER
from autograder.catalogue.ch06_multi_head_attention.multi_head_attention import RIGHT as ATTENTION
from autograder.catalogue.ch07_positional_encoding.check_criteria import BOUNDED, CONSISTENT
from autograder.catalogue.ch07_positional_encoding.check_criteria import RIGHT as CRITERIA
from autograder.catalogue.ch07_positional_encoding.shift_matrix import ANGLE, BOTTOM, TOP, fitted, shift_matrix
from autograder.catalogue.ch07_positional_encoding.shift_matrix import RIGHT as SHIFT
from autograder.catalogue.exercise import Evidence
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.probe_inputs import question
from autograder.judging.verdict import Verdict

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def short(value: object) -> str:
    """A test's id, without the sources of answers."""
    return value if isinstance(value, str) and "\n" not in value else "-"


def verdict_on(exercise: str, source: str, key: bytes = KEY) -> Verdict:
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), key)


def failed(verdict: Verdict) -> set[str]:
    return {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}


def named(verdict: Verdict) -> str:
    return verdict.misconception.name if verdict.misconception is not None else ""


# --- Wrong answers that lose points -----------------------------------------------------------------------------------

MASK_IN_PLACE = ATTENTION.but("~mask", "mask.logical_not_()")
THREE_AXES_IGNORED = ATTENTION.but("if mask is not None:", "if mask is not None and mask.ndim != 3:")
BIAS_OF_KEYS = ATTENTION.but(K_LAYER, K_LAYER.replace(", bias=bias", ""))
SMALL_CHECK = ATTENTION.but("d_model % h != 0", "d_model % h != 0 and d_model > h")
SPLIT = """
def split_heads(x, h):
    B, T, D = x.shape
    if {condition}:
        raise ValueError("D")
    return x.reshape(B, T, h, D // h).transpose(1, 2)
"""
FEATURE_DROPPED = SPLIT.replace("x.reshape", "x[..., : D // h * h].reshape").format(condition="D % h and h % 2 == 0")
CAPPED_POSITION = """
def sinusoidal_pe(T, d):
    angle = torch.arange(T).clamp(max=2047)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :d]
"""
CAPPED_DISTANCE = """
def head_stats(A):
    position = torch.arange(A.shape[-1])
    apart = (position[:, None] - position).abs().clamp(max=8)
    return {"entropy": torch.special.entr(A).sum(-1).mean(-1), "mean_distance": (A * apart).sum(-1).mean(-1),
            "diagonal_share": A.diagonal(dim1=-2, dim2=-1).mean(-1)}
"""
CAPPED_OFFSET = """
def add_positions(x, pe, offset=0):
    offset = min(offset, 20)
    return x + pe[offset:offset + x.shape[1]]
"""
STANDARD_DEVIATION = CRITERIA.but("max(found) - min(found) < 1e-3", "not torch.tensor(found).std() > 1e-3")
GLOBAL_X = """
x = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]])

def split_heads(z, h):
    B, T, D = x.shape
    if D % h:
        raise ValueError("D")
    return x.reshape(B, T, h, D // h).transpose(1, 2)
"""


@pytest.mark.parametrize(
    ("exercise", "source", "probes"),
    [
        ("multi-head-attention", MASK_IN_PLACE, {"a mask for all sentences", "a mask for each head"}),
        ("multi-head-attention", THREE_AXES_IGNORED, {"the same mask of each head in all sentences"}),
        ("multi-head-attention", SMALL_CHECK, {"more heads than features"}),
        ("multi-head-attention", BIAS_OF_KEYS, {"no bias, and no mask after a mask"}),
        ("split-heads", SPLIT.format(condition="D % h and D > h"), {"more heads than features"}),
        ("split-heads", SPLIT.format(condition="D % h == 1"), {"more heads than features"}),
        ("split-heads", FEATURE_DROPPED, {"12 words, 10 features, 3 heads"}),
        ("multi-head-attention", ATTENTION.but("d_model % h != 0", "d_model % h != 0 and h % 2 == 0"),
         {"d_model 15, 9 heads"}),
        ("sinusoidal-pe", CAPPED_POSITION, {"a long table"}),
        ("head-stats", CAPPED_DISTANCE, {"other sizes"}),
        ("add-positions", CAPPED_OFFSET, {"the table's last rows"}),
        ("check-criteria", STANDARD_DEVIATION, {"rows and distances that differ by little"}),
        (
            "check-criteria",
            CRITERIA.but("max(found) - min(found) < 1e-3", "max(found) - min(found) < 0.01"),
            {"rows and distances that differ by little"},
        ),
    ],
    ids=short,
)  # fmt: skip
def test_the_wrong_answer_fails(exercise, source, probes):
    assert failed(verdict_on(exercise, source)) == probes


@pytest.mark.parametrize("number", ["-100.0", "-500.0", "-1000.0"])
def test_a_finite_number_for_minus_infinity_fails_on_every_draw(number):
    source = ATTENTION.but('float("-inf")', number)
    for draw in range(5):
        verdict = verdict_on("multi-head-attention", source, draw_key(b"secret", "", "", [str(draw)]))
        assert failed(verdict) == {"a mask in self-attention, large scores"}
        assert named(verdict) == "a finite number for minus infinity"


def test_the_scores_that_a_mask_hides_stay_within_3000():
    exercise = catalogue.find("multi-head-attention")
    probe = next(each for each in exercise.hidden if each.name == "a mask in self-attention, large scores")
    for seed in range(30):
        case, expected, _ = question(exercise, probe, torch.Generator().manual_seed(seed))
        x, _, mask = case.arguments
        q, k = ((x @ case.weights[role]).unflatten(-1, (4, 2)).transpose(1, 2) for role in ("query", "key"))
        scores = q @ k.mT / 2**0.5
        alone = mask.sum(-1) == 1
        assert scores.abs().max() < 3_001 and (scores.diagonal(dim1=-2, dim2=-1)[..., alone] < -2_999).any()
        assert (expected.result[1].masked_select(~mask) == 0).all()


def test_a_mask_applied_only_across_sentences_is_not_taken_for_a_finite_number():
    verdict = verdict_on(
        "multi-head-attention", ATTENTION.but("mask is not None", "mask is not None and x_kv is not x_q")
    )
    assert failed(verdict) == {"a mask in self-attention, large scores"}
    assert named(verdict) != "a finite number for minus infinity"


def test_an_answer_that_reads_x_of_the_set_up_cell_does_not_depend_on_its_argument():
    verdict = verdict_on("split-heads", GLOBAL_X)
    assert "ignored" in [fact.name for fact in verdict.noticed]


# --- Mistakes that are identified -------------------------------------------------------------------------------------

DIVISION = "scores = scores / self.d_k ** 0.5"
TWO_IN_A_LIST = ATTENTION.without(O_LAYER).but(
    V_LAYER, "self.rest = [nn.Linear(d_model, d_model, bias=bias) for _ in range(2)]").but(
    "self.W_v(x_kv)", "self.rest[0](x_kv)").but("self.W_o(attended)", "self.rest[1](attended)")  # fmt: skip
MADE_ANEW = "nn.Linear(x_q.shape[-1], x_q.shape[-1])(attended)"
SET_OF_ROWS = CRITERIA.but("not bool(same.any())", "len(set(table)) == 50")
PRECEDENCE = """
def sinusoidal_pe(T, d):
    i = torch.arange(0, d, 2)
    angle = torch.arange(T)[:, None] {divided}
    table = torch.zeros(T, d)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()[:, : d // 2]
    return table
"""
LOG_1P = """
def head_stats(A):
    position = torch.arange(A.shape[-1])
    apart = (position[:, None] - position).abs()
    return {"entropy": -(A * torch.log1p(A)).sum(-1).mean(-1), "mean_distance": (A * apart).sum(-1).mean(-1),
            "diagonal_share": A.diagonal(dim1=-2, dim2=-1).mean(-1)}
"""
ROLLED = """
def shift_matrix(k, d):
    return torch.roll(torch.eye(d), k, dims=1)
"""
FITTED_TO_FEW = """
def shift_matrix(k, d):
    angle = torch.arange(-200, 400).double()[:, None] / 10000 ** (torch.arange(0, d, 2).double() / d)
    rows = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
    first = 200 + max(-k, 0)
    return torch.linalg.pinv(rows[first : first + d // 2]) @ rows[first + k : first + k + d // 2]
"""
DOT_PRODUCTS = CRITERIA.but("float((rows[i] - rows[j]).norm())", "float(rows[i] @ rows[j])")
COUNTED_TENSORS = """
def mha_params(d, h, bias):
    return len(list(nn.MultiheadAttention(d, h, bias=bias).parameters()))
"""
WORDS_DIVIDED = """
def split_heads(x, h):
    B, T, D = x.shape
    if D % h:
        raise ValueError("D")
    return x.reshape(B, h, -1, D)
"""
AXES_1_AND_3 = """
def merge_heads(z):
    B, h, T, d_k = z.shape
    return z.transpose(1, 3).reshape(B, T, h * d_k)
"""


@pytest.mark.parametrize(
    ("exercise", "source", "name"),
    [
        ("multi-head-attention", ATTENTION.but(DIVISION, "scores = scores / q.shape[-2] ** 0.5"),
         "divided by the root of the number of words"),
        ("multi-head-attention", ATTENTION.but(DIVISION, "scores = scores * self.d_k ** 0.5"),
         "multiplied by the root of d_k"),
        ("multi-head-attention", ATTENTION.but("q @ k.transpose(-2, -1)", "k @ q.transpose(-2, -1)"),
         "keys times queries"),
        ("multi-head-attention", ATTENTION.but('scores.masked_fill(~mask, float("-inf"))', "scores + mask"),
         "mask added to the scores"),
        ("multi-head-attention", ATTENTION.but("~mask", "~(mask[:, None] if mask.ndim == 3 else mask)"),
         "three axes taken for a mask of each sentence"),
        ("multi-head-attention", TWO_IN_A_LIST, "heads kept in a plain list"),
        ("multi-head-attention", ATTENTION.without(O_LAYER).but("self.W_o(attended)", MADE_ANEW),
         "projections made in forward"),
        ("merge-heads", AXES_1_AND_3, "heads and features exchanged"),
        ("head-stats", LOG_1P, "a large number under the logarithm"),
        ("sinusoidal-pe", PRECEDENCE.format(divided="/ 10000 ** i / d"), "the power before the product"),
        ("sinusoidal-pe", PRECEDENCE.format(divided="/ (10000 ** i / d)"), "the power before the product"),
        ("check-criteria", SET_OF_ROWS, "rows compared as objects"),
        ("check-criteria", CRITERIA.but("<= 3 * fn", "> 3 * fn"), "bounded and growing exchanged"),
        ("check-criteria", CRITERIA.but("bool(torch.allclose(table, again))", "table is again"),
         "deterministic and random exchanged"),
        ("check-criteria", CRITERIA.but(CONSISTENT, f"not {CONSISTENT}"), "consistent and inconsistent exchanged"),
        ("check-criteria", CRITERIA.but(BOUNDED, BOUNDED.replace("fn(10,", "fn(50,")), "bounded at other lengths"),
        ("check-criteria", DOT_PRODUCTS, "lengths in place of distances"),
        ("shift-matrix", ROLLED, "the identity"),
        ("shift-matrix", FITTED_TO_FEW, "fitted in single precision"),
        ("mha-params", COUNTED_TENSORS, "the numbers of the example"),
        ("split-heads", WORDS_DIVIDED, "the words shared out"),
    ],
    ids=short,
)  # fmt: skip
def test_the_mistake_is_identified(exercise, source, name):
    verdict = verdict_on(exercise, source)
    assert named(verdict) == name, failed(verdict)


def test_a_forgotten_offset_and_a_changed_argument_are_identified_together():
    source = "def add_positions(x, pe, offset=0):\n    x += pe[:x.shape[1]]\n    return x\n"
    message = verdict_on("add-positions", source).misconception.message
    assert "always begin at position 0" in message and "changed the caller's x" in message


def test_halves_and_a_forgotten_k_are_identified_together():
    source = SHIFT.but(TOP, "j, half = i // 2, d // 2\n        M[j, j], M[j, half + j] = cos, -sin").but(
        BOTTOM, "M[half + j, j], M[half + j, half + j] = sin, cos").but(ANGLE, "1 / 10000 ** (i / d)")  # fmt: skip
    message = verdict_on("shift-matrix", source).misconception.message
    assert "column i + d/2" in message and "that of one step" in message


# --- Other spellings of a known mistake -------------------------------------------------------------------------------

D_FIRST = """
def check_criteria(fn):
    table = fn(8, 50)
    apart = (table[:, None] - table).abs().amax(-1) + torch.eye(8)
    consistent = True
    for gap in range(1, 8):
        found = torch.cat([(fn(8, T)[gap:] - fn(8, T)[:-gap]).norm(dim=-1) for T in (5, 10, 20)])
        consistent = consistent and bool(found.max() - found.min() < 1e-3)
    return {"unique": bool((apart > 1e-6).all()), "consistent": consistent,
            "bounded": bool(fn(8, 10000).abs().max() <= 3 * fn(8, 10).abs().max()),
            "deterministic": torch.equal(table, fn(8, 50))}
"""
NEVER_NEARER = CRITERIA.but(
    CONSISTENT, f"{CONSISTENT} and all(min(seen[g]) >= min(seen[g - 1]) - 1e-3 for g in range(2, 20))"
)
BLOCKS = """
def shift_matrix(k, d):
    angle = k / 10000 ** (torch.arange(0, d, 2) / d)
    sine, cosine = angle.sin(), angle.cos()
    blocks = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
    return {returned}
"""
OUTER = """
def shift_matrix(k, d):
    speed = 10000 ** (-torch.arange(0, d, 2) / d)
    first, later = (torch.stack([(t * speed).sin(), (t * speed).cos()], -1).flatten() for t in (0, k))
    return torch.outer(first, later)
"""
ROWS = """
def add_positions(x, pe, offset=0):
    B, T, _ = x.shape
    return x + {rows}
"""
TABLE = """
def sinusoidal_pe(T, d):
    pos, table = torch.arange(T)[:, None], torch.zeros(T, d)
    for j in range(0, {end}, 2):
        angle = pos[:, 0] / {divisor} / 10000 ** (j / d)
        table[:, j] = angle.sin()
        if j + 1 < d:
            table[:, j + 1] = angle.cos()
    return table
"""
STATS = """
def head_stats(A):
    T = A.shape[-1]
    position = torch.arange(T)
    apart = (position[:, None] - position).abs()
    entropy, distance = torch.special.entr(A).sum(-1), (A * apart).sum(-1)
    result = {{"entropy": entropy.mean(-1), "mean_distance": distance.mean(-1),
               "diagonal_share": A.diagonal(dim1=-2, dim2=-1).mean(-1)}}
    return result | {{{changed}}}
"""
HEADS = """
def split_heads(x, h):
    B, T, D = x.shape
    if D % h:
        raise ValueError("D")
    heads = x.reshape(B, T, h, D // h).transpose(1, 2)
    return {returned}
"""
MERGED = """
def merge_heads(z):
    B, h, T, d_k = z.shape
    return z.transpose(0, 1).transpose(1, 2).reshape(B, T, h * d_k)
"""


@pytest.mark.parametrize(
    ("exercise", "source", "name"),
    [
        ("check-criteria", D_FIRST, "bounded at other lengths"),
        ("check-criteria", NEVER_NEARER, "growing with the gap"),
        ("check-criteria", CRITERIA.but(".norm())", ".norm()) ** 2"), "growing with the gap"),
        ("check-criteria", CRITERIA.but("bool(torch.allclose(table, again))", "table is again").but(
            " & ~torch.eye(50, dtype=torch.bool)", ""), "deterministic and random exchanged"),
        ("check-criteria", CRITERIA.but(CONSISTENT, f"True if {CONSISTENT} else None"),
         "numbers instead of yes and no"),
        ("check-criteria", CRITERIA.but("not bool(same.any())", "not bool(same[:20, :20].any())"),
         "neighbors compared for uniqueness"),
        ("check-criteria", CRITERIA.but("not bool(same.any())", "len(table.norm(dim=-1).unique()) == 50"),
         "unique by the sum"),
        ("check-criteria", CRITERIA.but("bool(torch.allclose(table, again))", "table == again"),
         "numbers instead of yes and no"),
        ("check-criteria", CRITERIA.but("not bool(same.any())", "'no' if same.any() else 'yes'"),
         "numbers instead of yes and no"),
        ("check-criteria", CRITERIA.but("'bounded':", "'Bounded':"), "another name"),
        ("shift-matrix", BLOCKS.format(returned="blocks[0]"), "only the first pair"),
        ("shift-matrix", BLOCKS.format(returned="blocks"), "blocks that overlap"),
        ("shift-matrix", BLOCKS.format(returned="blocks.flatten(0, 1)"), "blocks that overlap"),
        ("shift-matrix", OUTER, "fitted to one place"),
        ("add-positions", ROWS.format(rows="(pe[-T:] if offset else pe[:T])"), "the last rows"),
        ("add-positions", ROWS.format(rows="torch.stack([pe[offset + b:offset + b + T] for b in range(B)])"),
         "indexed by the sentence"),
        ("add-positions", ROWS.format(rows="F.pad(pe[:T], (0, 0, offset, 0))[:T]"), "rolled the wrong way"),
        ("add-positions", CAPPED_OFFSET, "offset twice"),
        ("sinusoidal-pe", TABLE.format(end="d", divisor="T"), "position over the length"),
        ("sinusoidal-pe", TABLE.format(end="d - 1", divisor="1"), "odd d loses a column"),
        ("mha-params", "def mha_params(d, h, bias):\n    return 4 * d * d + 4 * d if bias else 4 * d",
         "the condition for the whole sum"),
        ("head-stats", STATS.format(changed='"mean_distance": (A * (T - 1 - position)).sum(-1).mean(-1)'),
         "distance 0 everywhere"),
        ("head-stats", STATS.format(changed='"mean_distance": (A * (position - position[:, None])).sum(-1).mean(-1)'),
         "signed distance"),
        ("head-stats", STATS.format(changed='"mean_distance": distance.mean(-1) / max(T - 1, 1)'),
         "distance averaged over the keys too"),
        ("head-stats", STATS.format(changed='"entropy": entropy.amax(-1)'), "entropy summed over the queries"),
        ("head-stats", STATS.format(changed='"entropy": torch.distributions.Categorical(logits=A).entropy().mean(-1)'),
         "exponential of the entropy"),
        ("head-stats", STATS.format(changed='"diagonal_share": result["diagonal_share"] / A.shape[1]'),
         "diagonal divided by all cells"),
        ("split-heads", HEADS.format(returned="heads.flatten(1, 2)"), "batch and heads in one axis"),
        ("split-heads", HEADS.format(returned="heads[:, -1]"), "first head only"),
        ("split-heads", HEADS.format(returned="x.reshape(B, h, D // h, T).transpose(2, 3)"),
         "features turned forward, then cut"),
        ("merge-heads", MERGED, "words and sentences mixed"),
    ],
    ids=short,
)  # fmt: skip
def test_another_spelling_of_the_mistake_is_identified(exercise, source, name):
    verdict = verdict_on(exercise, source)
    assert named(verdict) == name, failed(verdict)


@pytest.mark.parametrize(
    ("exercise", "source", "name"),
    [
        ("check-criteria", CRITERIA.but("not bool(same.any())", "True"), "growing with the gap"),
        ("add-positions", ROWS.format(rows="pe.flip(0)[offset:offset + T]"), "offset twice"),
        ("head-stats", f"{STATS.format(changed='')}\nstats = head_stats\ndef head_stats(A):\n"
         "    return stats(torch.softmax(A, dim=-1))\n", "exponential of the entropy"),
        ("shift-matrix", SHIFT.but("return M", "return M + 0.01"), "fitted to one place"),
        ("split-heads", HEADS.format(returned="heads.flip(-1)"), "features turned forward, then cut"),
        ("split-heads", HEADS.format(returned="heads.squeeze(1)"), "first head only"),
        ("merge-heads", "def merge_heads(z):\n    return z.transpose(1, 2).flatten(2).flip(-1)",
         "words and sentences mixed"),
    ],
    ids=short,
)  # fmt: skip
def test_a_different_mistake_is_not_taken_for_this_one(exercise, source, name):
    verdict = verdict_on(exercise, source)
    assert not verdict.passed
    assert named(verdict) != name


# --- What the messages say --------------------------------------------------------------------------------------------

COUNT = "def mha_params(d, h, bias):\n    return {weights} + (4 * d if bias else 0)"
NO_AXIS = """
def check_criteria(fn):
    def alike(gap):
        tables = [fn(T, 8) for T in (5, 10, 20) if T > gap]
        found = torch.stack([(rows[gap:] - rows[:-gap]).norm() for rows in tables])
        return found.max() - found.min() < 1e-3

    table = fn(50, 8)
    apart = (table[:, None] - table).abs().amax(-1) + torch.eye(50)
    return {"unique": bool((apart > 1e-6).all()), "consistent": all(bool(alike(gap)) for gap in range(1, 20)),
            "bounded": bool(fn(10000, 8).abs().max() <= 3 * fn(10, 8).abs().max()),
            "deterministic": torch.equal(table, fn(50, 8))}
"""


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("check-criteria", CRITERIA.but("not bool(same.any())", "len(table.unique()) == table.numel()"),
         "single numbers instead of whole rows"),
        ("check-criteria", NO_AXIS, "from all pairs of a gap at once"),
        ("check-criteria", CRITERIA.but("fn(10000, 8).abs().max() <= 3 * fn(10, 8)",
                                        "fn(8, 10000).abs().max() <= 3 * fn(8, 10)"), "the *first* argument"),
        ("mha-params", COUNT.format(weights="4 * d * d").replace("if bias", "if bias == 'True'"), "not a text"),
        ("multi-head-attention", ATTENTION.but("self.last_weights = weights", "self.weights = weights"),
         "exactly this name"),
        ("multi-head-attention", ATTENTION.but(SOFTMAX, SOFTMAX.replace("(scores", "(scores.clamp(-50, 50)")),
         "all scores were limited to it"),
    ],
    ids=short,
)  # fmt: skip
def test_the_message_names_this_cause_too(exercise, source, words):
    assert words in verdict_on(exercise, source).misconception.message


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("check-criteria", D_FIRST, "calls with d first, such as fn(8, 50)"),
        ("check-criteria", CRITERIA.but("<= 3 * fn", "> 3 * fn"), "is 1 at T = 10 and 1 at T = 10,000"),
        ("check-criteria", CRITERIA.but("not bool(same.any())", "bool((apart > 1e-6).any()) or len(table) == 50"),
         "rows 0 and 1 agree"),
        ("check-criteria", CRITERIA.but("(5, 10, 20, 40)", "(40,)"), "two rows 1 apart can have the distance 0.07252"),
        ("shift-matrix", BLOCKS.format(returned="blocks"), "where (4, 4) was expected"),
        ("add-positions", ROWS.format(rows="pe[2 * offset:][:T]"), "With offset = 2 your rows begin at row 4"),
        ("mha-params", COUNT.format(weights="3 * d * d - 3 * d * bool(bias)"), "That is 3 · d · d and 512 more."),
    ],
    ids=short,
)  # fmt: skip
def test_the_message_begins_with_what_the_check_saw(exercise, source, words):
    known, evidence = verdict_on(exercise, source).diagnosis
    assert words in known.explain(evidence)


def test_a_matrix_in_half_precision_was_not_fitted():
    assert named(verdict_on("shift-matrix", SHIFT.but("return M", "return M.half()"))) != "fitted in single precision"


def test_a_rule_for_small_angles_was_not_fitted():
    expected = shift_matrix(8, 8)
    small_angle = expected.clone()
    small_angle[4:6, 4:6] = torch.tensor([[1.0, -0.08], [0.08, 1.0]])
    assert not torch.allclose(small_angle, expected, atol=1e-3)
    assert fitted(Evidence((8, 8), expected, small_angle)) is False


def test_steps_that_are_counted_are_not_the_identity():
    assert named(verdict_on("shift-matrix", SHIFT.but(ANGLE, f"max(k, 0) {ANGLE[1:]}"))) != "the identity"


FIRST_STEP = CRITERIA.but(CONSISTENT, "all(abs(seen[1][0] - step) < 1e-3 for step in {steps})")
UNIQUE_OVERWRITTEN = CRITERIA.but(
    "not bool(same.any())", "[bool(apart[a, b] > 1e-6) for a in range(50) for b in range(a)][-1]"
)
SIGN_KEPT = CRITERIA.but("max(found) - min(found)", "max(found) - found[0]")
STEPS_UP = CRITERIA.but(CONSISTENT, "all(b - a < 1e-3 for found in seen.values() for a, b in zip(found, found[1:]))")
SMALL_GAPS_MIXED = CRITERIA.but("range(i + 1, T)", "range(i + 1, min(i + 5, T))").but("(j - i, [])", "(0, [])")
ANY_EQUAL = CRITERIA.but("bool(torch.allclose(table, again))", "bool((table == again).any())")


@pytest.mark.parametrize(
    ("exercise", "source", "false", "true"),
    [
        ("check-criteria", FIRST_STEP.but("{steps}", "(seen[1][4], seen[1][13])"), "option 2 passes", "at every start"),
        ("check-criteria", FIRST_STEP.but("{steps}", "(seen[1][4],)"), "option 2 passes", "5, 10 *and* 20"),
        ("check-criteria", SIGN_KEPT, "do not count", "keeps its sign"),
        ("check-criteria", STEPS_UP, "do not count", "keeps its sign"),
        ("check-criteria", UNIQUE_OVERWRITTEN, "Not all pairs of rows were compared", "overwrite an earlier False"),
        ("check-criteria", SMALL_GAPS_MIXED, "with its sign", "different gaps"),
        ("check-criteria", ANY_EQUAL, "or only a single row? Call", "one equal number"),
        ("mha-params", "def mha_params(d, h, bias):\n    return 4 * (d**2 + d) * bias", "Brackets", "biases only"),
        ("mha-params", COUNT.format(weights="3 * d * d + h * (d // h) ** 2"), "for one head. It", "small square"),
        ("mha-params", COUNT.format(weights="4 * d * (d // h)"), "You counted small squares", "one head's"),
        ("mha-params", COUNT.format(weights="3 * d * (d // h) + d * d"), "were counted as small squares", "one head's"),
    ],
    ids=short,
)
def test_the_message_says_nothing_false_about_the_code(exercise, source, false, true):
    message = verdict_on(exercise, source).misconception.message
    assert false not in message and true in message
