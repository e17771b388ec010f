"""What is noticed in an answer whose mistake nobody knows."""

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.exercise import Case
from autograder.catalogue.probes import SECOND_CALL
from autograder.diagnosis.evidence import Fact
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.diagnosis.looking import notice
from autograder.diagnosis.output_patterns import by_argument, lengths, reductions
from autograder.diagnosis.output_patterns.lists import NumberOffset
from autograder.diagnosis.output_patterns.scale import Offset
from autograder.judging.observe import LocalEndpoint
from autograder.judging.probe_inputs import question_of
from autograder.judging.repeat_run import varied

PROJECT, ATTEND = catalogue.find("project"), catalogue.find("attend")


def noticed(exercise, source: str) -> list[Fact]:
    """What is noticed in the values of an answer; a known mistake would be named before."""
    return notice(exercise, judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"key").outcomes)


def changed(expression: str) -> str:
    return f"def attend(W, V):\n    Z = W @ V\n    return {expression}\n"


@pytest.mark.parametrize(
    ("expression", "kind", "axis"),
    [
        ("Z * 3", "scaled", 0),
        ("Z - 0.25", "offset", 0),
        ("-Z", "scaled", 0),
        ("Z.abs()", "signs", 0),
        ("Z.flip(-1)", "reversed", 2),
        ("Z.roll(1, -1)", "shifted", 2),
        ("Z.mT", "transposed", 1),
        ("Z[:, :1].expand_as(Z)", "alike", 1),
        ("Z[..., :1].expand_as(Z)", "alike", 2),
        ("torch.zeros_like(Z) + Z[0, 0, 0]", "constant", 0),
        ("torch.cat([Z[:, :-1], Z[:, -1:] * 2], dim=1)", "only the last", 1),
        ("Z[:, :-1]", "missing last", 1),
        ("Z.sum(1)", "sum", 1),
        ("Z.mean(-1)", "mean", 2),
        ("Z.unsqueeze(1).expand(-1, 5, -1, -1)", "left over first", 1),
        ("Z.square()", "afterward square", 0),
        ("torch.where(Z > 0, Z, 7.0)", "one value", 0),
        ("torch.cat([Z[:, :1] * 2, Z[:, 1:]], dim=1)", "only the first", 1),
        ("torch.cat([Z[:, :1], torch.sin(17 * Z[:, 1:])], dim=1)", "first only", 1),
        ("Z + Z.sum(-1, keepdim=True)", "offset by line", 0),
        ("Z * (2 + W[..., :1])", "scaled by line", 0),
        ("Z * (1 + 0.005 * torch.cos(9 * Z))", "nearly", 0),
        ("Z * 1.002", "nearly", 0),
        ("3 * Z + 1", "affine", 0),
        ("Z / (Z - Z) ** 2", "infinite", 0),
        ("torch.softmax(Z, 1)", "afterward softmax again", 1),
        ("torch.relu(Z)", "afterward no negative ones", 0),
        ("Z.clamp(min=-0.2)", "afterward cut below", 0),
        ("Z.round(decimals=1)", "afterward rounded", 0),
        ("F.one_hot(Z.argmax(-1), Z.shape[-1]).to(Z.dtype)", "afterward one hot", 2),
        ("Z - Z.mean(-1, keepdim=True)", "afterward centered", 2),
        ("F.layer_norm(Z, Z.shape[-1:], eps=0)", "afterward standardized", 2),
        ("Z / Z.norm(dim=1, keepdim=True)", "afterward brought to length 1", 1),
        ("Z / Z.amax(-1, keepdim=True)", "afterward by the largest", 2),
        ("Z.cumsum(1)", "afterward running sum", 1),
        ("Z.sort(-1).values", "other order", 2),
        ("Z.mT.reshape(Z.shape)", "other places", 0),
        ("Z.sum(1)", "sum", 1),
        ("Z.mean()", "afterward averaged", -1),
        ("Z[:, :1]", "afterward first alone", 1),
        ("Z[:, :-1]", "missing last", 1),
        ("Z[None]", "an axis of 1 too many", 0),
        ("Z.flatten()", "another shape", 0),
        ("Z.cumsum(1)", "afterward running sum", 1),
        ("Z + W.shape[-1] ** 0.5", "more by count root", 0),
        ("Z / W.norm(dim=-1, keepdim=True)", "divided by length", 0),
        ("Z * V.abs().amax(dim=1, keepdim=True)", "multiplied by largest size", 1),
        ("Z * W.shape[-1]", "formula", 0),
        ("Z / V.shape[-1] ** 0.5", "formula", 0),
        ("Z[..., None] * (2 - torch.eye(Z.shape[-1], dtype=Z.dtype))", "left over diagonal", 0),
        ("torch.sin(17 * Z).flatten(0, 1)", "axes joined", 0),
        ("torch.sin(17 * Z).prod(1)", "axis gone", 1),
        ("torch.sin(17 * W[..., None] * V[:, None])", "axis too many", 2),
    ],
)
def test_a_pattern_of_the_values_is_seen(expression, kind, axis):
    found = noticed(ATTEND, changed(expression))
    assert (kind, axis) in [(fact.name, getattr(fact, "axis", 0)) for fact in found]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("J + torch.diag(1 + p)", "only the diagonal"),
        ("torch.sin(9 * J) * (1 - D) + J * D + 1 - D", "all but the diagonal"),
    ],
)
def test_a_table_that_is_wrong_on_its_diagonal_or_right_there_alone(expression, kind):
    source = (
        "def softmax_jacobian(p):\n    J, D = torch.diag(p) - torch.outer(p, p), torch.eye(len(p), dtype=p.dtype)\n"
    )
    found = noticed(catalogue.find("softmax-jacobian"), f"{source}    return {expression}\n")
    assert kind in [fact.name for fact in found]


@pytest.mark.parametrize(
    ("condition", "kind", "place"),
    [
        ("tau == 0", "argument 0", 1),
        ("tau < 0", "argument negative", 1),
        ("tau == 0 and x.dtype == torch.float64", "", 1),
    ],
)
def test_an_argument_of_one_kind_wherever_it_fails_is_said(condition, kind, place):
    right = catalogue.find("temperature").correct[0].source
    source = (
        f"{right}\n_right = temperature\ndef temperature(x, tau):\n"
        f"    return torch.sin(9 * x) if {condition} else _right(x, tau)\n"
    )
    found = [fact for fact in noticed(catalogue.find("temperature"), source) if fact.name.startswith("argument")]
    assert [(fact.name, fact.argument) for fact in found] == ([(kind, place)] if kind else [])


def test_infinity_among_the_right_numbers_hides_no_pattern():
    source = "def log_softmax(x, dim):\n    return x - torch.logsumexp(x, dim, keepdim=True).cos()\n"
    assert "offset by line" in [fact.name for fact in noticed(catalogue.find("log-softmax"), source)]


def test_a_right_answer_shows_nothing_and_noise_no_pattern():
    assert noticed(ATTEND, changed("Z")) == []
    assert [fact.name for fact in noticed(ATTEND, changed("torch.sin(17 * Z)"))] == []


def test_one_sequence_in_which_a_pattern_is_missing_is_enough_against_it():
    source = "def swap_batch_time(x):\n    B, T, D = x.shape\n    return x.reshape(T, B, D).transpose(0, 1)\n"
    found = [fact.name for fact in noticed(catalogue.find("swap-batch-time"), source)]
    assert found == []  # an exchange, or another shape, shows only in a batch of one or for one word


def test_lists_of_other_things_are_not_equal():
    source = """
def bpe_train(corpus, n):
    return ["".join(pair) for pair in _right(corpus, n)[::-1]]
"""
    found = noticed(
        catalogue.find("bpe-train"), f"{catalogue.find('bpe-train').correct[0].source}\n_right = bpe_train\n{source}"
    )
    assert "items reversed" not in [fact.name for fact in found]


def test_an_argument_that_was_changed_is_said_first():
    found = noticed(ATTEND, "def attend(W, V):\n    V.sub_(V.mean(1, keepdim=True))\n    return W @ V\n")
    assert found[0].name == "changed" and found[0].argument == 1


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("ids[::-1]", "items reversed"),
        ("ids[1:]", "first item missing"),
        ("ids[:-1]", "last item missing"),
        ("[0, *ids]", "an item too many in front"),
        ("[*ids, 0]", "an item too many at the end"),
        ("ids[:2]", "ends early"),
        ("[*ids, 7, 8]", "goes too far"),
        ("[1, 2, 3]", "fixed"),
    ],
)
def test_what_a_list_has_in_common_with_the_right_one_is_seen(expression, kind):
    right = catalogue.find("encode-decode").correct[0].source
    source = f"{right}\n_right = encode\ndef encode(*a, **k):\n    ids = _right(*a, **k)\n    return {expression}\n"
    assert kind in [fact.name for fact in noticed(catalogue.find("encode-decode"), source)]


@pytest.mark.parametrize(("expression", "kind"), [("{} + 2", "offset"), ("{} * 3", "scaled")])
def test_plain_numbers_off_by_one_amount_are_seen(expression, kind):
    right = catalogue.find("path-length").correct[0].source
    source = (
        f"{right}\n_right = path_length\ndef path_length(*a, **k):\n    return {expression.format('_right(*a, **k)')}\n"
    )
    assert kind in [fact.name for fact in noticed(catalogue.find("path-length"), source)]


def test_every_change_afterward_has_a_sentence():
    assert set(reductions.CHANGES) | set(reductions.BY_LINE) < set(reductions.SENTENCES)


def test_whole_numbers_are_not_said_to_be_rounded_where_the_right_ones_are_whole():
    right = catalogue.find("path-length").correct[0].source
    once_more = "_right(kind, i, j, k) + (kind == 'window' and abs(i - j) % 3 == 1)"
    source = f"{right}\n_right = path_length\ndef path_length(kind, i, j, k=3):\n    return {once_more}\n"
    exercise = catalogue.find("path-length")
    found = notice(exercise, judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"key").outcomes)
    assert found[:1] == [NumberOffset(1.0)]


@pytest.mark.parametrize(
    ("width", "how"),
    [
        ("-(-max(map(len, seqs)) // 4) * 4 + 0", "multiple"),
        ("max(map(len, seqs)) and 50", "fixed"),
        ("sum(map(len, seqs))", "together"),
        ("2 * max(map(len, seqs))", "twice"),
        ("max(map(len, seqs)) ** 2", None),
    ],
)
def test_what_an_axis_of_a_wrong_length_is_as_long_as_is_seen(width, how):
    source = f"""
def pad_batch(seqs, pad):
    batch = torch.full((len(seqs), {width}), pad)
    for row, seq in enumerate(seqs):
        batch[row, :len(seq)] = torch.as_tensor(seq)
    return batch
"""
    found = [fact for fact in noticed(catalogue.find("pad-batch"), source) if fact.name == "size"]
    assert [(fact.axis, fact.how) for fact in found] == ([(1, how)] if how else [])


def test_every_length_has_words():
    arguments = (torch.zeros(3, 2), [[1]], 3)
    told = {each[1] for kinds in (lengths._lengths, lengths._combined) for each in dict(kinds(arguments))}
    assert told | {"twice", "fixed", "multiple"} == set(lengths.LENGTHS)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("Z * V.shape[-1] ** 0.5", "multiplied by the square root of the size of {0} along axis {1}"),
        ("Z / W.shape[-1]", "divided by the size of {0} along axis {1}"),
        ("Z + V[:, 0]", "plus the first slice of {0} along axis {1}"),
        ("Z * V.mean(1)", "times the mean of {0} along axis {1}"),
    ],
)
def test_what_a_result_is_reckoned_from_is_seen(expression, said):
    exercise = catalogue.find("embed" if "shape" in expression else "last-state")
    name = "embed" if "shape" in expression else "last_state"
    given = "V, W, *rest" if "shape" in expression else "V, *rest"
    call = "V, W, *rest" if "shape" in expression else "V, *rest"
    expression = expression.replace("V.shape", "W.shape")
    source = (
        f"{exercise.correct[0].source}\n_right = {name}\ndef {name}({given}):\n    Z = _right({call})\n"
        f"    return {expression}\n"
    )
    found = noticed(exercise, source)
    assert [fact.name for fact in found][:1] == ["formula"] and said in found[0].sentence


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        ("ids[:1] + ids[2:]", "items missing"),
        ("ids[:1] + [99] + ids[1:]", "items too many"),
        ("list(map(str, ids))", "items of another kind"),
    ],
)
def test_items_that_are_missing_or_too_many_are_seen(items, kind):
    right = catalogue.find("encode-decode").correct[0].source
    source = (
        f"{right}\n_right = encode\ndef encode(*a, **k):\n    ids = _right(*a, **k)\n"
        f"    return {items} if len(ids) > 3 else ids\n"
    )
    assert kind in [fact.name for fact in noticed(catalogue.find("encode-decode"), source)]


def test_not_a_number_among_large_numbers_alone_is_seen():
    source = """
def additive_context(s, H, Wa, Ua, va, mask):
    shares = torch.exp(torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va) * mask
    weights = shares / (shares.sum(1, keepdim=True) + 1e-12)
    return torch.einsum("bt,btd->bd", weights, H), weights
"""
    assert "too large" in [fact.name for fact in noticed(catalogue.find("additive-context"), source)]


def test_rounded_results_are_seen():
    right = catalogue.find("equivariance-gap").correct[0].source
    source = f"{right}\n_right = equivariance_gap\ndef equivariance_gap(*a):\n    return round(_right(*a))\n"
    assert "whole" in [fact.name for fact in noticed(catalogue.find("equivariance-gap"), source)]


def test_right_for_the_sizes_of_the_example_alone():
    asked = [tuple(probe.draw(torch.Generator()).arguments[1].shape) for probe in ATTEND.visible]
    source = f"def attend(W, V):\n    return W @ V if tuple(V.shape) in {asked} or 1 in W.shape else W @ V + V.sum()\n"
    assert "only these sizes" in [fact.name for fact in noticed(ATTEND, source)]


@pytest.mark.parametrize(
    ("key", "kind"),
    [("tuple(V.shape)", "kept"), ("(V.shape, V.dtype)", "kept")],
)
def test_an_answer_to_an_earlier_call_is_seen(key, kind):
    source = f"SEEN = {{}}\ndef attend(W, V):\n    return SEEN.setdefault({key}, W @ V)\n"
    assert kind in [fact.name for fact in noticed(ATTEND, source)]


@pytest.mark.parametrize(
    ("kept", "is_kept"),
    [
        ("weights + (self.__dict__.setdefault('kept', x.sum()) - x.sum())", True),
        ("weights + [0.0][int(self.__dict__.setdefault('kept', x) is not x)]", True),
        ("weights + (float(x.sum()) in WRONG)", False),
    ],
)
def test_a_first_call_is_blamed_only_where_the_same_call_alone_gives_something_else(kept, is_kept):
    exercise = catalogue.find("self-attention")
    [case] = [question_of(exercise, probe, b"key")[0] for probe in exercise.probes if probe.name == SECOND_CALL]
    returned = "return weights @ v"
    source = str(exercise.correct[0].source).replace(returned, f"weights = {kept}\n        {returned}")
    source = f"WRONG = [{float(case.arguments[0].sum())!r}]\n{source}"
    verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"key")
    assert [each.probe.name for each in verdict.outcomes if not each.passed] == [SECOND_CALL]
    assert ("a second call" in [fact.name for fact in verdict.noticed]) == is_kept


def test_failures_of_gradients_are_not_counted_among_those_in_which_a_pattern_of_values_may_be_missing():
    wrong = "Z * 3 if not V.requires_grad else Z + (V - V.detach()).sum()"
    [fact] = [fact for fact in noticed(ATTEND, changed(wrong)) if fact.name == "scaled"]
    assert not fact.partial
    errors = "Z * 3 if V.dtype != torch.float64 else [][0]"
    [fact] = [fact for fact in noticed(ATTEND, changed(errors)) if fact.name == "scaled"]
    assert fact.partial


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("1 in (*W.shape, *V.shape)", "an axis of size 1"),
        ("V.dtype == torch.float64", "float64"),
        ("V.view(-1).sum() != V.sum()", "transposed in memory"),
        ("V.max() > 1e6", "lost digits"),
        ("V.requires_grad", "values with gradients"),
    ],
)
def test_what_failing_probes_have_in_common_is_seen(condition, kind):
    source = f"def attend(W, V):\n    return W @ V + (({condition}) * W.sum().item() ** 2)\n"
    assert kind in [fact.name for fact in noticed(ATTEND, source)]


def test_an_argument_that_was_added_to_the_result_is_said():
    source = "def project(x, W, b=None):\n    y = x @ W\n    return y if b is None else y + 2 * b\n"
    assert ("argument added", 2) in [(fact.name, fact.argument) for fact in noticed(PROJECT, source)]


def test_a_mask_after_which_each_row_was_shared_out_anew_is_seen():
    weights = "torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, -1).tril()"
    source = f"def attention_weights(Q, K):\n    A = {weights}\n    return A / A.sum(-1, keepdim=True)\n"
    found = noticed(catalogue.find("attention-weights"), source)
    assert "afterward lower triangle shared" in [fact.name for fact in found]


def test_a_pattern_hides_in_no_result_that_is_too_small_to_show_it():
    source = changed("Z + V[:, :1]")  # with one key of one word it looks scaled
    assert "offset by line" in [fact.name for fact in noticed(ATTEND, source)]


def test_a_number_beside_a_zero_is_not_said_to_play_no_part():
    source = "def dot(a, b):\n    return (a * b)[..., :1].sum(-1)\n"  # the example's (0, 3) hides a's first number
    verdict = judge_and_explain(catalogue.find("dot"), LocalEndpoint(namespace_of(source)), b"key")
    assert not verdict.passed and "ignored" not in [fact.name for fact in verdict.noticed]


def test_an_answer_that_draws_is_told_so_where_hidden_checks_alone_fail():
    right = catalogue.find("attend").correct[0].source
    source = (
        f"{right}\n_right = attend\ndef attend(W, V):\n"
        "    return _right(W, V) + torch.rand(()) * (W.shape[0] > 2 or V.dtype == torch.float64)\n"
    )
    verdict = judge_and_explain(ATTEND, LocalEndpoint(namespace_of(source)), b"key")
    assert [fact.name for fact in verdict.noticed][:1] == ["differs"]


def test_every_fact_of_a_relation_has_words():
    assert set(by_argument.MEASURES) | {f"count {name}" for name in by_argument.COUNTS} == set(by_argument.MEASURED)


def test_a_pattern_of_the_second_result_is_said_where_the_first_shows_none():
    right = catalogue.find("self-attention").correct[0].source
    source = right.replace(
        "        return weights @ v", "        weights = weights.square()\n        return weights @ v"
    )
    verdict = judge_and_explain(catalogue.find("self-attention"), LocalEndpoint(namespace_of(source)), b"key")
    assert [(fact.name, fact.part) for fact in verdict.noticed] == [("afterward square", 2)]


def test_every_change_of_an_argument_is_said_of_a_class_too():
    right = catalogue.find("self-attention").correct[0].source
    source = right.replace(
        "    def forward(self, x):\n", "    def forward(self, x):\n        x = x - x.mean(-1, keepdim=True)\n"
    )
    verdict = judge_and_explain(catalogue.find("self-attention"), LocalEndpoint(namespace_of(source)), b"key")
    assert [fact.name for fact in verdict.noticed] == ["centered rows"]


def test_a_product_with_its_sign_turned_is_said_with_it():
    found = noticed(catalogue.find("dot"), "def dot(a, b):\n    return -(a * b).sum(-1) / a.shape[-1] ** 0.5\n")
    assert "turned, divided by count root" in [fact.name for fact in found]


def test_a_stop_where_gradients_are_asked_is_said_as_such():
    source = "def attend(W, V):\n    V[0, 0, 0] = V[0, 0, 0] + 0\n    return W @ V\n"
    found = [fact.name for fact in noticed(ATTEND, source)]
    assert "stops with gradients" in found and "another gradient" not in found


def test_what_agrees_with_a_known_mistake_is_not_said_to_be_off_by_nothing():
    convolution = catalogue.find("conv-as-attention")
    in_the_weights = "(row * W + column)[inside]] = float(kernel[0, 0, a, b])"
    source = convolution.correct[0].source.but("(row * W + column)[inside]] = 1", in_the_weights)
    seen = judge_and_explain(convolution, LocalEndpoint(namespace_of(source)), b"key").noticed
    assert Offset(0.0) not in seen


def test_an_argument_is_not_called_ignored_because_its_opposite_order_gives_the_same_by_chance():
    def wrong(x: torch.Tensor, tau: float) -> torch.Tensor:  # marks one row for each row, always in the first column
        return torch.zeros_like(x).scatter_(-2, x.argmax(-1, keepdim=True), 1.0)

    given, *others = varied(Case((torch.tensor([[2.0, 1.0], [1.0, 2.0]]), 0)), 0)
    assert any(not torch.equal(wrong(*given.arguments), wrong(*other.arguments)) for other in others)
