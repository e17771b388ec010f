"""Chapter 16's checks count what they are supposed to count: whatever the spelling, n by n is found, and only
that."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from autograder import catalogue
from autograder.catalogue.ch16_efficient.attention_flops import attention_flops, attention_memory
from autograder.catalogue.known_answers import answer
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.inside import op_counter
from autograder.inside.fixtures.base import Growth
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])
PHI = "    Q, K = F.elu(Q) + 1, F.elu(K) + 1\n"
LINEAR = "    if not causal:\n        return Q @ (K.mT @ V) / (Q @ K.sum(1)[..., None])\n"
SQUARE = {
    "one by one": "    w = torch.stack([torch.einsum('bd,bjd->bj', Q[:, i], K) for i in range(Q.shape[1])], 1)\n"
    "    w = w.tril() if causal else w\n    return w @ V / w.sum(-1, keepdim=True)\n",
    "einsum": "    m = torch.ones(Q.shape[1], K.shape[1]).to(Q.dtype)\n    m = m.tril() if causal else m\n"
    "    top = torch.einsum('bid,bjd,ij,bjv->biv', Q, K, m, V)\n"
    "    return top / torch.einsum('bid,bjd,ij->bi', Q, K, m)[..., None]\n",
    "differences": "    w = (Q[:, :, None] * K[:, None]).sum(-1)\n"
    "    w = w * torch.ones_like(w).tril() if causal else w\n    return (w @ V) / w.sum(2)[..., None]\n",
    "row by row": "    rows = []\n    for i in range(Q.shape[1]):\n        n = i + 1 if causal else K.shape[1]\n"
    "        w = (Q[:, i : i + 1] * K[:, :n]).sum(-1)\n"
    "        rows.append((w[..., None] * V[:, :n]).sum(1) / w.sum(-1, keepdim=True))\n"
    "    return torch.stack(rows, 1)\n",
}
BEGUN_ANEW = LINEAR + (
    "    rows = [Q[:, i : i + 1] @ (K[:, : i + 1].mT @ V[:, : i + 1]) / (Q[:, i : i + 1] @ K[:, : i + "
    "1].sum(1)[..., None])"
    " for i in range(Q.shape[1])]\n    return torch.cat(rows, 1)\n"
)


def linear(body: str) -> str:
    return "def linear_attention(Q, K, V, causal):\n" + PHI + body


def verdict_on(exercise_id: str, source: str):
    return judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(answer(source))), KEY)


def report_on(exercise_id: str, source: str) -> str:
    """The report of a learner's own check, without hidden checks."""
    return " ".join(
        as_text(
            judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(answer(source))), None)
        ).split()
    )


@pytest.mark.parametrize("spelling", SQUARE)
def test_what_goes_through_all_pairs_is_right_in_numbers_and_found(spelling):
    verdict = verdict_on("linear-attention", linear(SQUARE[spelling]))
    failed = {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}
    assert failed == {"400 words", "400 words, causal", "a longer text", "a longer text, causal"}
    assert "your code goes through every pair of words" in " ".join(as_text(verdict).split())


def test_sums_begun_anew_for_each_word_are_found_where_it_is_causal():
    verdict = verdict_on("linear-attention", linear(BEGUN_ANEW))
    assert verdict.misconception.name == "causal via a mask on n by n"


def test_the_report_quotes_how_the_work_grew():
    said = report_on("linear-attention", linear(SQUARE["differences"]))
    assert "For 200 words your code goes through" in said and ": 4.0 times as many." in said


def test_the_report_says_how_the_work_grows_and_how_it_should():
    said = report_on("linear-attention", linear(BEGUN_ANEW))
    assert "400 words, causal: the work grows like n times n; it should grow like n" in said


def test_the_report_says_from_which_check_it_quotes_a_word():
    known = {each.name: each for each in catalogue.find("linear-attention").mistakes}
    said = report_on("linear-attention", known["the divisor summed over the batch"].source)
    assert "With 4 queries and 6 keys your first word is" in said


@pytest.mark.parametrize("chunk", [1, 16, 100, 256])
def test_chunks_are_linear_whatever_their_length(chunk):
    source = linear(
        LINEAR + f"    out, S, z = [], 0, 0\n    for q, k, v in zip(*(x.split({chunk}, 1) for x in (Q, K, V))):\n"
        "        w = (q @ k.mT).tril()\n        first = not out\n"
        "        top = w @ v if first else w @ v + q @ S\n"
        "        low = w.sum(-1, keepdim=True) if first else w.sum(-1, keepdim=True) + q @ z\n"
        "        out.append(top / low)\n        S, z = S + k.mT @ v, z + k.sum(1)[..., None]\n"
        "    return torch.cat(out, 1)\n"
    )
    assert verdict_on("linear-attention", source).passed


def test_results_that_are_glued_to_those_before_are_no_table():
    source = linear(
        LINEAR + "    out, S, z = V[:, :0], 0, 0\n    for t in range(V.shape[1]):\n"
        "        S, z = S + K[:, t, :, None] * V[:, t, None], z + K[:, t]\n"
        "        row = (Q[:, t, :, None] * S).sum(1) / (Q[:, t] * z).sum(1, keepdim=True)\n"
        "        out = torch.cat([out, row[:, None]], 1)\n    return out\n"
    )
    assert verdict_on("linear-attention", source).passed


def test_what_is_compiled_is_judged_as_it_was_written():
    source = "@torch.compile\n" + linear(
        LINEAR + "    S = torch.cumsum(K[..., None] * V[:, :, None], 1)\n"
        "    return (Q[..., None] * S).sum(2) / (Q * K.cumsum(1)).sum(-1, keepdim=True)\n"
    )
    assert verdict_on("linear-attention", source).passed


def test_the_usual_epsilon_beside_the_shares_costs_nothing():
    source = linear(
        "    if not causal:\n        return Q @ (K.mT @ V) / (Q @ K.sum(1)[..., None] + 1e-6)\n"
        "    S = torch.cumsum(K[..., None] * V[:, :, None], 1)\n"
        "    return (Q[..., None] * S).sum(2) / ((Q * K.cumsum(1)).sum(-1, keepdim=True) + 1e-6)\n"
    )
    assert verdict_on("linear-attention", source).passed


def test_views_and_what_is_written_in_place_make_nothing():
    x = torch.ones(6, 4)
    made = op_counter.while_running(lambda: x.T[1:].unsqueeze(0).expand(3, -1, -1).unbind(0)[0].relu_())[1]
    assert made.total == made.largest == 0


def test_what_is_made_and_what_is_computed_with_count():
    x = torch.ones(6, 4)
    made = op_counter.while_running(lambda: x * x)[1]
    assert (made.total, made.largest) == (24 + 24 + 24, 24)
    assert op_counter.while_running(lambda: torch.tensor([[1.0] * 50] * 50))[1].largest == 2_500
    assert op_counter.while_running(lambda: torch.zeros(7, 7).tril())[1].total == 98


def test_a_short_sentence_is_not_counted():
    Q, K, V = torch.ones(1, 5, 2), torch.ones(1, 5, 2), torch.ones(1, 5, 3)
    asked = Growth().around(lambda q, k, v, causal: v)
    assert isinstance(asked(Q, K, V, False), torch.Tensor)
    whole = asked(
        *(x.expand(1, 1, 1).repeat(1, Growth.LONG, 2) for x in (Q[:, :1, :1], K[:, :1, :1], V[:, :1, :1])), False
    )
    assert whole["numbers"] == [0, 0]


def test_a_block_is_read_again_only_when_its_numbers_are_used_after_anothers():
    blocks = [(torch.ones(2, 3), torch.ones(3, 4)) for _ in range(3)]

    def visits(function):
        return op_counter.while_running(function, blocks, watched=blocks)[1].visits

    assert visits(lambda given: [s.exp() @ v + s.amax() for s, v in given]) == [1, 1, 1]
    assert visits(lambda given: [sum(s.shape[1] for s, _ in given), *(s.exp() for s, _ in given)]) == [1, 1, 1]
    assert visits(lambda given: [*(s.amax() for s, _ in given), *(s[:1].exp() for s, _ in given)]) == [2, 2, 2]
    assert visits(lambda given: [given[2][0].exp(), given[1][0].exp(), given[2][1].exp()]) == [0, 1, 2]


def test_a_second_walk_over_the_blocks_is_found_in_copies_of_the_list_too():
    source = """
        def online_softmax(blocks):
            pairs = list(blocks)
            top = torch.stack([s.amax(1) for s, v in pairs]).amax(0)[:, None]
            top = torch.where(top == -math.inf, 0.0, top)
            total = sum(torch.exp(s - top).sum(1, keepdim=True) for s, v in pairs)
            mixed = sum(torch.exp(s - top) @ v for s, v in pairs)
            return torch.where(total == 0, 0.0, mixed / total.clamp(min=1e-30))
    """
    verdict = verdict_on("online-softmax", source)
    assert verdict.misconception.name == "each block read twice" and 0 < verdict.points < 6


def test_an_answer_that_is_right_for_few_blocks_only_loses_points():
    source = """
        def online_softmax(blocks):
            if len(blocks) <= 8:
                scores, values = torch.cat([s for s, _ in blocks], 1), torch.cat([v for _, v in blocks])
                return torch.nan_to_num(torch.softmax(scores, -1)) @ values
            l, o = 0, 0
            for s, v in blocks:
                e = torch.exp(s.clamp(max=80))
                l, o = l + e.sum(1, keepdim=True), o + e @ v
            return o / l
    """
    assert verdict_on("online-softmax", source).points < 6


def test_one_maximum_for_all_queries_and_a_kept_0_are_two_mistakes():
    source = """
        def online_softmax(blocks):
            m, l, o = torch.tensor(-torch.inf), 0, 0
            for s, v in blocks:
                new = torch.maximum(m, s.max())
                new = torch.where(new == -torch.inf, 0.0, new)
                e, factor = torch.exp(s - new), torch.exp(m - new)
                l, o, m = l * factor + e.sum(-1, keepdim=True), o * factor + e @ v, new
            return torch.where(l == 0, 0.0, o / l)
    """
    assert verdict_on("online-softmax", source).misconception.name == "one maximum for all queries"


def test_one_count_that_is_a_float_is_not_said_of_both():
    source = """
        def attention_flops(n, d, h):
            return 4 * n * n * (d / h) * h

        def attention_memory(n, d, h, size):
            return 4 * n * d + h * n * n * size
    """
    assert "In attention_flops: The number of operations came as a float." in report_on("attention-flops", source)


def test_the_numbers_of_16_1_are_those_of_the_page():
    assert attention_flops(50, 512, 8) == 5_120_000 and attention_flops(4_096, 512, 8) == 34_359_738_368
    assert attention_memory(50, 512, 8, 4) == 489_600
    counter = FlopCounterMode(display=False)
    q = torch.ones(8, 50, 64)
    with counter:
        torch.softmax(q @ q.mT, -1) @ q
    assert counter.get_total_flops() == attention_flops(50, 512, 8)


@pytest.mark.parametrize(
    ("use", "unread"),
    [
        (lambda x, y: x.T.detach()[0].tolist(), {0, 1}),
        (lambda x, y: x.numpy() @ y.numpy(), {0, 1}),
        (lambda x, y: x.sum(), {1}),
        (lambda x, y: x.exp_(), {1}),
        (lambda x, y: torch.zeros(3, 3).add_(y), {0}),
        (lambda x, y: x[:, :1] * y.T, set()),
    ],
    ids=["views and a list", "NumPy", "a sum", "in place", "added to another", "a product"],
)
def test_a_view_on_the_way_to_numpy_or_a_list_reads_nothing(use, unread):
    x, y = torch.ones(3, 3), torch.ones(3, 3)
    assert op_counter.while_running(lambda: use(x, y), watched=[x, y])[1].unread == unread


def right(exercise_id):
    return catalogue.find(exercise_id).correct[0].source


IN_LISTS = """
    def linear_attention(Q, K, V, causal):
        q, k, v, out = (F.elu(Q) + 1).tolist(), (F.elu(K) + 1).tolist(), V.tolist(), []
        for b in range(len(q)):
            rows = []
            for i in range(len(q[b])):
                end = i + 1 if causal else len(k[b])
                ws = [sum(x * y for x, y in zip(q[b][i], k[b][j])) for j in range(end)]
                rows.append([sum(w * v[b][j][e] for j, w in enumerate(ws)) / sum(ws) for e in range(len(v[b][0]))])
            out.append(rows)
        return torch.tensor(out, dtype=V.dtype)
"""


def test_pairs_in_plain_python_after_features_in_torch_are_seen():
    verdict = verdict_on("linear-attention", IN_LISTS)
    assert verdict.misconception.name == "outside torch" and verdict.points < 4


def test_only_its_own_key_is_not_called_a_sum_along_the_features():
    source = (
        right("linear-attention").but("torch.cumsum(pairs, dim=-3)", "pairs").but("torch.cumsum(keys, dim=-2)", "keys")
    )
    assert "each word gets its own value back" in " ".join(report_on("linear-attention", source).split())


def test_no_normalizer_and_no_1_are_found_together():
    source = (
        right("linear-attention")
        .but("asked = F.elu(Q) + 1", "asked = F.elu(Q)")
        .but("keys = F.elu(K) + 1", "keys = F.elu(K)")
    )
    said = " ".join(report_on("linear-attention", source.replace("return mixed / shares", "return mixed")).split())
    assert "was not divided by the sum of the weights" in said and "elu without the + 1" in said


ONE_WALK = """
    def online_softmax(blocks):
        m = torch.full_like(blocks[0][0][:, :1], -torch.inf)
        l, o = torch.zeros_like(m), torch.zeros(len(m), blocks[0][1].shape[1], dtype=m.dtype)
        for s, v in blocks:
            new = torch.maximum(m, s.max(dim=1, keepdim=True).values)
            safe = torch.where(new == -torch.inf, 0.0, new)
            factor, e = torch.exp(m - safe), torch.exp(s - safe)
            l, o, m = l * factor + e.sum(dim=1, keepdim=True), o * factor + e @ v, new
        return torch.where(l > 0, o / torch.where(l > 0, l, 1.0), 0.0)
"""
LAST = "return torch.where(l > 0, o / torch.where(l > 0, l, 1.0), 0.0)"
FACTORS = "l, o, m = l * factor + e.sum(dim=1, keepdim=True), o * factor + e @ v, new"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("torch.exp(m - safe)", "torch.exp(safe - m)", "the factor is the wrong way round"),
        ("torch.maximum(m, s.max(dim=1, keepdim=True).values)", "s.max(dim=1, keepdim=True).values", "own maximum"),
        ("m = torch.full_like(blocks[0][0][:, :1], -torch.inf)", "m = torch.full_like(blocks[0][0][:, :1], -1e4)",
         "begins at a number"),
        (LAST, "return o / (l + 1e-6)", "Something was added to the sum"),
        (LAST, "    " + LAST, "Only the first block counts"),
        (FACTORS, FACTORS + "\n            o = o / torch.where(l > 0, l, 1.0)", "Divide once, at the end"),
        ("l * factor + e.sum(dim=1, keepdim=True)", "(l + e.sum(dim=1, keepdim=True)) * factor",
         "rescaled together with the old sums"),
        ("for s, v in blocks:\n", "for s, v in blocks:\n            if s.isinf().any():\n                continue\n",
         "left out as a whole"),
    ],
    ids=["the factor", "the block's maximum", "from a number", "an epsilon", "the first block", "divided in the loop",
         "the new rescaled", "hidden blocks skipped"],
)  # fmt: skip
def test_slips_of_an_online_softmax_are_named(old, new, words):
    assert ONE_WALK.count(old) == 1
    assert words in " ".join(as_text(verdict_on("online-softmax", ONE_WALK.replace(old, new))).split())


def test_the_usual_wrong_roots_and_the_operator_of_xor_are_named():
    for root, words in (("k.shape[-2] ** 0.5", "the number of keys"), ("h ** 0.5", "the number of heads")):
        source = right("grouped-query").but("q.shape[-1] ** 0.5", root)
        assert f"divided by the root of {words}" in " ".join(report_on("grouped-query", source).split())
    source = right("attention-flops").but("return h * (scores + mixing)", "return 4 * n ^ 2 * d")
    assert "^ is XOR" in " ".join(report_on("attention-flops", source).split())


def test_two_softmaxes_are_found_whether_the_causal_half_is_divided_or_not():
    source = """
        def linear_attention(Q, K, V, causal):
            q, k = Q.softmax(dim=-1), K.softmax(dim=1)
            if causal:
                return (q[..., None] * (k[..., None] * V[:, :, None]).cumsum(1)).sum(2)
            return q @ (k.transpose(1, 2) @ V)
    """
    said = " ".join(as_text(verdict_on("linear-attention", source)).split())
    assert "a softmax of the queries along the features" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("torch.cumsum(pairs, dim=-3)", "pairs")], "the sum of phi(k) times v holds only the word's own key"),
        ([("torch.cumsum(keys, dim=-2)", "keys")], "the sum of phi(k) holds only the word's own key"),
    ],
    ids=["the values", "the divisor"],
)
def test_one_sum_of_two_that_is_written_over_is_named(changes, words):
    source = right("linear-attention")
    for old, new in changes:
        source = source.but(old, new)
    assert words in report_on("linear-attention", source) and "gets its own value back" not in words


def test_a_first_maximum_is_found_where_the_first_block_is_hidden_from_a_query():
    source = ONE_WALK.replace(
        "torch.maximum(m, s.max(dim=1, keepdim=True).values)",
        "s.max(dim=1, keepdim=True).values if l.sum() == 0 else m",
    )
    said = " ".join(as_text(verdict_on("online-softmax", source)).split())
    assert "Where the first block hides all its keys from a query, nothing is subtracted" in said
    assert "Subtract the largest score *so far*" in said


def test_sums_that_lost_their_axis_are_named():
    last = "shares = (asked * total).sum(dim=-1, keepdim=True)\n    return mixed / shares\n"
    source = right("linear-attention")
    assert source.endswith(last)
    source = source.removesuffix(last) + last.replace(", keepdim=True", "")
    report = report_on("linear-attention", source)
    assert (
        "shape (1, 3, 1) is expected, and (1, 3, 3) came back: the sums that you divide by have the shape (1, 3)"
        in report
    )
