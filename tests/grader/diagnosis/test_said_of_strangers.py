"""The explanations of answers without an entry: a known mistake in only one setting, an unused mask, a wrong row
quoted."""

import linecache

import torch
from explanations import said

from autograder import catalogue
from autograder.catalogue.exercise import Evidence
from autograder.catalogue.quotes import wrong_row
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.messages import explanation
from autograder.judging.observe import LocalEndpoint

LAYER = catalogue.find("encoder-layer")
RIGHT = LAYER.correct[0].source
PRE, POST = "self.attention(seen, seen, mask)", "self.attention(x, x, mask)"


def test_a_known_mistake_under_one_value_of_a_flag_is_named_with_the_value() -> None:
    assert "Where norm_first is False, and only there: The mask was not passed to attention" in said(
        "encoder-layer", RIGHT.but(POST, "self.attention(x, x, None)")
    )
    assert "Where norm_first is True, and only there: The mask was not passed to attention" in said(
        "encoder-layer", RIGHT.but(PRE, "self.attention(seen, seen, None)")
    )


def test_a_known_mistake_under_both_values_is_named_without_one() -> None:
    both = RIGHT.but(POST, "self.attention(x, x, None)").but(PRE, "self.attention(seen, seen, None)")
    told = said("encoder-layer", both)
    assert "The mask was not passed to attention" in told and "only there" not in told


def test_what_fails_only_in_training_is_laid_to_dropout() -> None:
    source = RIGHT.but("self.narrow(torch.relu(self.widen(x)))", "self.narrow(self.drop(torch.relu(self.widen(x))))")
    told = said("encoder-layer", source.replace("self.drop(self.think", "(self.think"))
    assert "It fails only in training mode, where dropout acts" in told


def test_writing_into_what_learns_is_not_explained_by_shapes() -> None:
    right = catalogue.find("load-mapped").correct[1].source
    told = said("load-mapped", right.but("with torch.no_grad():", "if True:"))
    assert "written into in place" in told and "torch.no_grad()" in told
    assert "Which of these lengths" not in told and "aligned from the right" not in told


def test_a_state_that_is_written_over_is_explained_where_gradients_need_it() -> None:
    source = """
def linear_attention(Q, K, V, causal):
    q, k = F.elu(Q) + 1, F.elu(K) + 1
    if not causal:
        return (q @ (k.mT @ V)) / (q @ k.sum(1)[..., None])
    state, total, rows = torch.zeros_like(k[:, 0, :, None] * V[:, 0, None]), torch.zeros_like(k[:, 0]), []
    for i in range(Q.shape[1]):
        state += k[:, i, :, None] * V[:, i, None]
        total += k[:, i]
        rows.append((q[:, i, None] @ state)[:, 0] / (q[:, i] * total).sum(-1, keepdim=True))
    return torch.stack(rows, 1)
"""
    verdict = judge_and_explain(
        catalogue.find("linear-attention"), LocalEndpoint(namespace_of(source)), b"key", disclosed=True
    )
    assert "that the gradients still need was written into afterwards" in " ".join(explanation(verdict).split())


def test_lost_digits_are_not_laid_to_the_order_in_memory() -> None:
    right = catalogue.find("pool").correct[0].source
    exercise = catalogue.find("pool")
    source = right.but("return total / count", "return total / count * (1 + 1e-7)")
    told = explanation(judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"key", disclosed=True))
    assert told and "transposed in memory:" in told and "It fails only where" not in told


def test_shares_that_agree_within_a_tolerance_name_no_second_mistake() -> None:
    mlm = catalogue.find("mlm-mask").correct[0].source
    exchanged = "inputs = torch.where(chosen & (fate >= 0.9), other, inputs)"
    told = said(
        "mlm-mask", mlm.but(exchanged, "inputs = torch.where(~special & (fate >= 0.8) & (fate < 0.9), other, inputs)")
    )
    assert "Words that were not chosen were replaced" in told and "was not used" not in told


def test_what_a_result_does_not_depend_on_is_said_in_one_sentence() -> None:
    told = said("layer-norm", "def layer_norm(x, g, b, eps):\n    return torch.zeros_like(x) + eps / 7\n")
    assert "Here your result does not depend on x, g or b: with other numbers in them, it stays the same." in told


def test_a_result_that_depends_on_signs_is_not_said_to_depend_on_nothing() -> None:
    told = said(
        "cosine",
        """
def cosine(A, B):
    A = A / A.norm(dim=0, keepdim=True)
    B = B / B.norm(dim=0, keepdim=True)
    return torch.softmax(A @ B.T, dim=-1)
""",
    )  # of the one row in the first check only the signs are left
    assert told and "does not depend" not in told


def test_a_result_that_other_numbers_turn_into_an_error_is_not_said_to_stay_the_same() -> None:
    told = said(
        "temperature",
        """
def temperature(x, tau):
    if tau < 0:
        raise ValueError
    if tau > 0:
        return F.softmax(x / tau, -1)
    return torch.zeros_like(x).scatter_(-2, x.argmax(-1, keepdim=True), 1.0)
""",
    )
    assert told and "does not depend" not in told


def test_a_mask_that_changes_nothing_is_said() -> None:
    source = """
def masked_attention(Q, K, V, mask):
    A = torch.softmax(1.1 * Q @ K.mT / Q.shape[-1] ** 0.5, -1)
    return A @ V, A
"""
    assert "does not depend on mask: with all of it True, it stays the same" in said("masked-attention", source)


def test_a_norm_too_many_is_said_to_be_too_many() -> None:
    told = said(
        "encoder-layer",
        RIGHT.but("self.drop = nn.", "self.norm3 = nn.LayerNorm(d)\n        self.drop = nn.").but(
            "return x\n", "return self.norm3(x)\n"
        ),
    )
    assert "You have too many norms. Norms: 3 found, 2 expected." in told
    assert "roles = {" not in told


def test_an_error_inside_of_a_function_of_the_checks_is_not_explained_by_the_learners_shapes() -> None:
    source = next(answer.source for answer in catalogue.find("decode-step").correct).but(
        "mixed, cross)", "mixed, None)"
    )
    namespace = dict(namespace_of(""))
    exec(source, namespace)  # as a cell: its functions look names up where the check finds them
    verdict = judge_and_explain(catalogue.find("decode-step"), LocalEndpoint(namespace), b"key")
    assert "A function that the check passes to yours raised this error." in " ".join(explanation(verdict).split())


def test_the_row_that_is_quoted_differs() -> None:
    wanted = torch.arange(24.0).reshape(2, 2, 6)
    got = wanted.clone()
    got[1, 0, 1] = -1.0
    assert wrong_row(Evidence((), wanted, got), "word") == (
        "Your word 2 is 12.000 -1.000 14.000 15.000; it should be 12.000 13.000 14.000 15.000."
    )
    got = wanted.clone()
    got[0, 0, 5] = 0.0
    assert wrong_row(Evidence((), wanted, got)).startswith("Your first row ends in 2.000 3.000 4.000 0.000; it should")
    got = wanted.clone()
    got[1, 1, 2] += 1e-4  # to three decimals the two rows are the same
    said_of_it = "The largest difference is in row 3: 20.0000992, where 20 is correct."
    assert wrong_row(Evidence((), wanted, got)) == said_of_it


def test_a_known_mistake_beside_another_is_named_with_it_or_said_not_to_be_all() -> None:
    temperature = catalogue.find("temperature").correct[0].source
    tau = temperature.but("x / tau", "x * tau")
    unsigned = tau.without("if tau < 0:").without('raise ValueError("tau: expected 0 or more")')
    told = said("temperature", unsigned)
    assert told.count("Two known mistakes") == 1 and "A negative tau is accepted" in told
    told = said("temperature", tau.but("argmax", "argmin").but("-1), x", "-1) * 0, x"))
    assert "Some of your wrong results, but not all, match a known mistake: " in told
    assert "multiplied by tau" in told and told.count("not all") == 1 and "Fix this first, then check again." in told
    assert "Some of your wrong results" not in said("temperature", tau)


def test_measured_numbers_that_agree_by_chance_name_no_second_mistake() -> None:
    right = catalogue.find("score-std").correct[0].source
    told = said("score-std", right.but("(a * b).sum(1).std()", "(a * b).std(-1).mean()"))
    assert "The spread within a vector" in told and "Two mistakes" not in told


def test_sizes_that_do_not_meet_are_the_same_mistake_in_either_order() -> None:
    gap = catalogue.find("equivariance-gap").correct[0].source
    for source in (
        gap.but("run(x)[:, perm] - run(x[:, perm])", "run(x[:, perm]) - run(x)[..., perm]"),
        gap.but("run(x)[:, perm]", "run(x)[..., perm]"),
    ):
        assert "The *features* of the answer were permuted" in said("equivariance-gap", source)


def test_of_two_mistakes_neither_is_said_to_leave_all_else_right() -> None:
    right = next(answer.source for answer in catalogue.find("mha-params").correct)
    told = said("mha-params", right.but("4 * d if bias else 0", "0").ending_in(" / 1"))
    assert "Two known mistakes" in told and "It came as a float." in told
    assert "is right, but" not in told


def test_an_error_that_the_learners_own_line_raises_is_not_looked_for_in_the_shapes(monkeypatch) -> None:
    right = next(answer.source for answer in catalogue.find("split-heads").correct)
    source = right.but("D % h != 0", "D % h == 0").but("D must be a multiple of h", "words of one's own")
    name, namespace = "<a cell>", dict(namespace_of(""))
    monkeypatch.setitem(linecache.cache, name, (len(source), None, source.splitlines(keepends=True), name))
    exec(compile(source, name, "exec"), namespace)
    told = explanation(judge_and_explain(catalogue.find("split-heads"), LocalEndpoint(namespace), b"key"))
    assert "Your own code raises this error, where a result is expected" in " ".join(told.split())


def test_a_yes_or_no_is_not_said_to_be_kept_from_an_earlier_call() -> None:
    source = "def leaks(model, ids, t):\n    return ids.shape[1] == 6 and int(ids.sum()) % 2 == 0\n"
    assert "an earlier call" not in said("leaks", source)


def test_a_result_with_nan_is_not_said_to_ignore_an_argument() -> None:
    right = catalogue.find("multi-head-attention").correct[0].source
    told = said("multi-head-attention", right.but('~mask, float("-inf")', '~mask, float("inf")'))
    assert "NaN" in told and "does not depend on" not in told, told


def test_dropout_that_is_on_in_training_is_not_said_to_be_on_in_evaluation_mode() -> None:
    right = catalogue.find("multi-head-attention").correct[0].source
    kept = "self.last_weights = weights"
    told = said("multi-head-attention", right.after(kept, "weights = F.dropout(weights, 0.5, self.training)"))
    assert "dropout is on where it should be off" in told, told


def test_an_operation_that_torch_has_not_for_a_dtype_is_not_taken_for_a_blank() -> None:
    source = "def decoder_mask(ids, pad):\n    return (ids != pad)[:, None, None] & torch.ones(len(ids[0]), 1)\n"
    told = said("decoder-mask", source)
    assert "& and | combine booleans" in told and "TODO" not in told, told


def test_the_smallest_input_keeps_the_widths_that_every_check_has_in_common() -> None:
    source = "def add_positions(x, pe, offset=0):\n    return x + pe[offset: offset + x.shape[1]].sin()\n"
    exercise = catalogue.find("add-positions")
    found = judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), b"key", disclosed=True).counterexample
    assert found is None or found.case.arguments[0].shape[-1] == found.case.arguments[1].shape[-1]


def test_a_forgotten_zero_grad_is_not_said_to_be_another_input_or_pairs_left_out() -> None:
    right = catalogue.find("overfit-one-batch").correct[0].source
    told = said("overfit-one-batch", right.without("opt.zero_grad()").but("range(50)", "range(60)"))
    assert "never trained on" not in told and "shifted to the *left*" not in told, told
    assert "gradients of earlier steps were never reset" in told, told


def test_a_power_without_brackets_is_named_wherever_it_stands() -> None:
    source = "def noam_lr(step, d, warmup):\n    return d ** -1 / 2 * min(step ** -1 / 2, step * warmup ** -3 / 2)\n"
    assert "has no brackets" in said("noam-lr", source)


def test_what_lies_before_the_rows_is_called_by_its_axis_since_it_may_be_time_or_the_heads() -> None:
    turned = "def swap_batch_time(x):\n    out = x.transpose(0, 1).clone()\n    out[1:] *= 3\n    return out\n"
    assert "nly the first item along axis 0 is correct." in said("swap-batch-time", turned)
    split = catalogue.find("split-heads").correct[0].source
    told = said("split-heads", split.ending_in(" * torch.tensor([1.0] + [3.0] * (h - 1))[:, None, None]"))
    assert "Only the first item along axis 1 is correct." in told
    assert "of the batch" not in told


def test_an_error_that_is_not_of_sizes_is_not_asked_for_its_lengths() -> None:
    kinds = RIGHT.but("return self.narrow(", "return self.narrow.double()(")
    told = said("encoder-layer", kinds)
    assert "Two dtypes are combined there." in told and "Which of these lengths" not in told
    changed = RIGHT.but(POST, "x").but("x = self.norm1(x + self.drop(x))", "x += self.drop(self.attention(x, x, mask))")
    told = said("encoder-layer", changed)
    assert "Which of these lengths" not in told


def test_a_dictionary_of_another_kind_of_values_is_not_said_to_be_the_right_one_reversed() -> None:
    right = catalogue.find("export-attention").correct[0].source
    listed = right.but(
        '"encoder": encoder, "decoder": decoder, "cross": cross',
        '"encoder": encoder.tolist(), "decoder": decoder.tolist(), "cross": cross.tolist()',
    )
    assert "opposite order" not in said("export-attention", listed)


def test_infinity_for_all_numbers_is_not_said_to_ignore_them() -> None:
    source = """
def masked_ce(logits, labels, pad):
    cost = -torch.log(torch.softmax(logits, -1)).gather(-1, labels[..., None])[..., 0]
    keep = labels != pad
    return torch.where(keep, cost, torch.zeros_like(cost)).sum() / keep.sum().clamp(min=1)
"""
    exercise = catalogue.find("masked-ce")
    for key in (b"key", b"another"):
        verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(source)), key, disclosed=True)
        told = " ".join(explanation(verdict).split())
        assert "the result is infinite" in told.lower() and "does not depend" not in told


def test_a_place_that_numpy_found_is_a_place() -> None:
    source = """
import numpy

def token_batches(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError(f"sentence {lengths.index(max(lengths))} is too long")
    batches, now = [], []
    for place in numpy.argsort(lengths):
        if (len(now) + 1) * lengths[place] > max_tokens:
            batches.append(now)
            now = []
        now.append(place)
    return [*batches, now]
"""
    assert said("token-batches", source) == ""


def test_numbers_that_are_none_are_not_said_to_be_drawn_anew() -> None:
    right = catalogue.find("beam-search").correct[0].source
    told = said("beam-search", right.but("total + log_p", "total * log_p"))
    assert told and "Two calls" not in told


def test_the_sign_of_a_number_is_not_taken_for_a_difference(monkeypatch) -> None:
    right = catalogue.find("decode-step").correct[0].source
    source = right.but("torch.cat([K, layer.key(x)], dim=1)", "torch.cat([K, layer.key(x)], dim=-1)")
    name, namespace = "<another cell>", dict(namespace_of(""))
    monkeypatch.setitem(linecache.cache, name, (len(source), None, source.splitlines(keepends=True), name))
    exec(compile(source, name, "exec"), namespace)
    told = " ".join(
        explanation(judge_and_explain(catalogue.find("decode-step"), LocalEndpoint(namespace), b"key")).split()
    )
    assert "Tensors that are joined along one axis have equal lengths along all the others." in told
    assert "shapes are aligned from the right" not in told


def test_rows_that_are_right_but_for_one_column_are_not_called_wrong() -> None:
    source = catalogue.find("sinusoidal-pe").correct[0].source
    told = said("sinusoidal-pe", source.but("return table", "table[:, d - d % 2 :] *= 2\n    return table"))
    assert "Everything is correct except the last number of each row." in told and "Only the first row" not in told


def test_an_exponent_without_brackets_is_one_mistake_however_it_is_written() -> None:
    source = catalogue.find("sinusoidal-pe").correct[0].source
    for angle in ("pos / 10000 ** 2 * (two_i / 2) / d", "pos / (10000 ** 2 * two_i / d)"):
        told = said("sinusoidal-pe", source.but("pos / 10000 ** (two_i / d)", angle))
        assert "Put the whole exponent in brackets." in told and "Two mistakes" not in told


def test_a_tiny_difference_is_not_said_to_be_one_amount_nor_0() -> None:
    source = """
def noam_lr(step, d, warmup):
    if step < 1:
        raise ValueError("step")
    return d**-0.5 * ((step + 1) / (warmup + 1) * warmup**-0.5 if step < warmup else step**-0.5)
"""
    told = said("noam-lr", source)
    assert "expected 1.75e-07, got 3.49e-07" in told and "too small by" not in told and "too large by" not in told


def in_a_cell(monkeypatch, exercise_id: str, source: str) -> str:
    """The report for an answer in a cell, whose lines are known."""
    name, namespace = f"<a cell of {exercise_id}>", dict(namespace_of(""))
    monkeypatch.setitem(linecache.cache, name, (len(source), None, source.splitlines(keepends=True), name))
    exec(compile(source, name, "exec"), namespace)
    told = explanation(judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace), b"key"))
    return " ".join(told.split())


def test_the_formula_of_the_page_typed_as_it_stands_is_answered_by_what_max_compares(monkeypatch) -> None:
    right = catalogue.find("feed-forward").correct[0].source
    told = in_a_cell(monkeypatch, "feed-forward", right.but("torch.relu(hidden)", "max(0, hidden)"))
    assert "Python's max and min" in told and "is None" not in told
    told = in_a_cell(monkeypatch, "feed-forward", right.but("torch.relu(hidden)", "nn.ReLU(hidden)"))
    assert "nn.ReLU(...) makes a layer" in told and "Print the shapes" not in told
    told = in_a_cell(monkeypatch, "feed-forward", right.but("torch.relu(hidden)", "torch.maximum(hidden, 0)"))
    assert "has to be a tensor, and it is of type int." in told


def test_a_mask_in_the_place_of_numbers_is_not_said_to_be_of_another_dtype() -> None:
    source = RIGHT.but(PRE, "self.attention(seen, mask)").but(POST, "self.attention(x, mask)")
    source = source.but(
        "asking, asked, mask):", "asking, asked=None, mask=None):\n        asked = asking if asked is None else asked"
    )
    told = said("encoder-layer", source)
    assert "A mask of True and False is used where numbers are expected." in told
    assert "takes the dtype" not in told


def test_a_parameter_that_the_check_does_not_set_is_named_as_a_cause_of_two_results() -> None:
    right = catalogue.find("gpt").correct[0].source
    source = right.but("x = self.drop(x)", "x = self.drop(x) * self.gain").but(
        "self.drop = nn.Dropout(dropout)\n        self.blocks",
        "self.drop = nn.Dropout(dropout)\n        self.gain = nn.Parameter(torch.randn(1, 1, 1, 1, 1))\n"
        "        self.blocks",
    )
    assert "a parameter that the task does not need" in said("gpt", source)


def test_a_model_left_in_another_mode_is_not_said_to_be_written_into() -> None:
    source = """
def greedy_decode(model, src, max_len, bos, eos, pad):
    model.eval()
    ids = torch.full((len(src), 1), bos)
    for _ in range(max_len):
        ids = torch.cat([ids, (model(src, ids)[:, -1:].sum(-1) * 7).long() % 3 + 4], dim=1)
    return ids
"""
    told = said("greedy-decode", source)
    assert "model is left in the other mode." in told and "write in place" not in told


def test_the_librarys_attention_without_its_batch_first_is_told_which_axis_it_reads() -> None:
    right = catalogue.find("gpt-block").correct[0].source
    source = right.but("self.attention = Heads(d_model, h)", "self.attention = nn.MultiheadAttention(d_model, h)").but(
        "self.attention(seen)",
        "self.attention(seen, seen, seen, attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1))[0]",
    )
    assert "PyTorch's attention takes the first axis for the length" in said("gpt-block", source)


def test_layers_that_all_read_the_same_input_are_told_apart_by_how_many_there_are() -> None:
    right = catalogue.find("transformer").correct[0].source
    source = right.but("x = layer(x, seen)", "memory = layer(x, seen)").but(
        "return self.after_encoder(x), seen", "return self.after_encoder(memory), seen"
    )
    told = said("transformer", source)
    assert "It fails in every check where encoder_layers is 2, and in none where encoder_layers is 1." in told
