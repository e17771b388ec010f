"""Explanations of wrong answers, found by mutating correct ones: they claim nothing false, and explain errors."""

import torch
from explanations import said

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.diagnosis.output_patterns import scale
from autograder.judging.observe import LocalEndpoint


def test_a_name_without_a_value_is_explained_by_where_it_gets_one() -> None:
    told = said(
        "first-true",
        "def first_true(mask):\n    for row in mask:\n        if row.sum() > 99:\n            answer = 3\n"
        "    return torch.tensor([answer])\n",
    )
    assert "answer is used before it has a value" in told and "Print the shapes" not in told, told


def test_a_method_that_is_not_called_is_recognized() -> None:
    told = said("first-true", "def first_true(mask):\n    return mask.int().argmax(dim=1).clone\n")
    assert "parentheses of a call" in told, told


def test_of_torchs_long_errors_the_list_of_signatures_is_left_out() -> None:
    told = said(
        "lm-batch",
        "def lm_batch(ids, T, g, B):\n    first = torch.randint(9, (B,), generator=B)\n    return first, first",
    )
    assert "invalid combination of arguments" in told and "int high" not in told and "expected one of" not in told, told


def test_an_error_that_ends_in_a_full_stop_gets_no_second_one() -> None:
    assert ".." not in said("attend", "def attend(W, V):\n    return torch.bmm(V, V)\n")


def test_equal_terms_of_a_formula_are_one_term() -> None:
    told = said("mha-params", "def mha_params(d, h, bias=True):\n    return 8 * d if bias else 4 * d * d\n")
    assert "Where bias is True: Your result is 8 * d." in told, told


def test_of_a_dictionary_in_a_list_both_keys_are_named_at_once() -> None:
    source = catalogue.find("export-attention").correct[0].source
    doubled = f"{source}\n_export = export_attention\ndef export_attention(*given, **named):\n" + (
        "    return [{**one, 'encoder': 2 * one['encoder']} for one in _export(*given, **named)]\n"
    )
    told = said("export-attention", doubled)
    assert "at [0]['encoder']: " in told and "at index 0: at key" not in told, told


def test_two_mistakes_are_not_named_for_an_error_of_another_type() -> None:
    """A value that agrees shows only the mistake in `encode`; `decode` stops with an IndexError, not a KeyError."""
    told = said(
        "encode-decode",
        "def encode(tokens, vocab, add_eos=True):\n"
        "    ids = [vocab.get(t, vocab['<unk>']) for t in tokens]\n"
        "    return [vocab['<eos>']] + ids if add_eos else ids\n"
        "def decode(ids, vocab):\n"
        "    words, tokens, i = {i: t for t, i in vocab.items()}, [], 0\n"
        "    while i < len(ids) or ids[i] != vocab['<eos>']:\n"
        "        if words[ids[i]] not in ('<pad>', '<bos>', '<unk>'):\n"
        "            tokens.append(words[ids[i]])\n"
        "        i += 1\n"
        "    return tokens\n",
    )
    assert "end symbol is at the beginning" in told and "its keys are words" not in told, told


def test_of_two_mistakes_each_message_is_said_of_the_mistake_by_itself() -> None:
    """Their words may contradict each other: too flat by the one, too sharp by the other."""
    told = said(
        "attention-weights",
        "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.transpose(1, 2) * Q.shape[-1], dim=-1)\n",
    )
    assert "The first, taken alone: " in told and "The second, taken alone: " in told and "too flat" in told, told


def test_that_nothing_was_done_is_not_said_where_something_was() -> None:
    told = said("row-normalize", "def row_normalize(x):\n    return torch.stack([r * r.sum() for r in x])\n")
    assert "x came back as it was" not in told, told


def test_an_error_of_torchs_about_a_new_shape_is_no_error_about_vectors() -> None:
    told = said(
        "dot",
        "def dot(a, b):\n    flat = [u @ v for u, v in zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]))]\n"
        "    return torch.stack(flat).reshape(a.shape[:-2])\n",
    )
    assert "torch.dot takes exactly two vectors" not in told, told


def test_one_value_everywhere_shows_no_two_mistakes() -> None:
    """Negative scores cut off, and a distance instead of a product: together all scores are 0, as by other ways."""
    told = said("attention-weights", "def attention_weights(Q, K):\n    return (Q * 0 @ K.mT).softmax(-1)\n")
    assert "known mistakes" not in told and "its numbers have no effect" in told, told
    told = said("masked-ce", "def masked_ce(logits, labels, pad):\n    return 0 * F.log_softmax(logits, -1).sum()\n")
    assert "mistakes" not in told, told


def test_an_argument_that_comes_back_shows_no_two_mistakes() -> None:
    assert "mistakes" not in said("attend", "def attend(W, V):\n    return V * 1\n")


def test_truth_values_are_not_said_to_have_a_mean() -> None:
    told = said("padding-mask", "def padding_mask(ids, pad):\n    return ids.ne(ids)[:, None, None]\n")
    assert "mean" not in told, told
    told = said(
        "causal-mask",
        "def causal_mask(Tq, offset=0):\n    return torch.ones(Tq, Tq + offset).triu(offset + 2).bool()\n",
    )
    assert "it is 0" not in told, told


def test_the_only_item_of_an_axis_and_a_line_of_one_number_show_nothing() -> None:
    told = said("padding-mask", "def padding_mask(ids, pad):\n    return ids.ne(ids)[:, None, None]\n")
    assert "along axis 1" not in told and "are equal" in told, told
    column, factors = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64), torch.tensor([[3.0], [7.0], [0.5]])
    assert not list(scale.by_line(column * factors, column, None, least=2))
    table = torch.cat([column, 2 * column, column + 1], dim=1)
    assert list(scale.by_line(table * factors, table, None, least=2)) == [scale.SCALED_BY_LINE]
    kept = (torch.arange(len(table)) < 1)[:, None]
    assert set(scale.by_line(table * kept, table, None, least=2)) == {scale.LINES_OF_0}
    assert not list(scale.by_line(table * 0, table, None))
    told = said("row-normalize", "def row_normalize(x):\n    return torch.softmax(x, dim=1) * x\n")
    assert "differs from line to line" not in told, told
    told = said("row-normalize", "def row_normalize(x):\n    return x / x.sum(dim=1, keepdim=True) ** 1.1\n")
    assert "along one axis all numbers are the correct ones times one number" in told.lower(), told


def test_an_error_without_a_float_is_not_said_to_come_from_one() -> None:
    told = said(
        "patchify",
        "def patchify(img, p):\n    if img.shape[2] % p or img.shape[3] % p:\n        raise ValueError('p')\n"
        "    return img.reshape(img.shape[0], torch.arange(img), -1)\n",
    )
    assert "makes a float" not in told, told


def test_errors_of_some_checks_name_no_mistake() -> None:
    source = catalogue.find("sample").correct[0].source
    assert source.count("min(top_k, ") == 1
    told = said("sample", source.replace("min(top_k, ", "min(logits, "))
    assert "row 0 was used for all rows" not in told, told


def test_one_number_of_a_dictionary_in_all_checks_shows_no_two_mistakes() -> None:
    source = catalogue.find("audit").correct[0].source
    told = said(
        "audit", f"{source}\n_audit = audit\ndef audit(splits):\n    return _audit(splits) | {{'duplicates': 0}}\n"
    )
    assert "known mistakes together" not in told, told


def test_a_missing_item_that_is_a_tensor_is_shown_by_its_shape() -> None:
    told = said("residual-trace", "def residual_trace(model, ids):\n    return [model.embed(ids)]\n")
    assert "tensor([" not in told, told


def test_one_number_everywhere_is_not_taken_for_a_limit() -> None:
    told = said("first-true", "def first_true(mask):\n    return torch.full((len(mask),), mask.shape[1])\n")
    assert "does not depend on mask" in told and "limit" not in told, told


def test_a_later_result_that_is_correct_shows_no_pattern() -> None:
    """The first result alone is wrong, and is no pattern of the correct one."""
    right = catalogue.find("lm-batch").correct[0].source
    told = said("lm-batch", right.but("return x, y", "return x[:, :-2], y"))
    assert "esult 2" not in told and "two mistakes" not in told, told
    right = catalogue.find("multi-head-attention").correct[0].source
    told = said("multi-head-attention", right.but("z.transpose(1, 2).reshape", "z.transpose(1, 3).reshape"))
    assert "esult 2" not in told, told


def test_a_result_that_ignores_an_argument_is_no_mistake_with_that_argument_blank() -> None:
    source = "def dot(a, b):\n    return (a * torch.ones_like(b)).sum(-1)\n"
    told = said("dot", source, disclosed=True)
    assert "does not depend on b" in told and "two mistakes" not in told, told


def test_memory_that_is_read_before_it_is_written_shows_no_pattern() -> None:
    told = said(
        "split-heads",
        "import random\ndef split_heads(x, h):\n    B, T, D = x.shape\n    if D % h:\n        raise ValueError\n"
        "    return x.reshape(B, T, h, D // h).transpose(1, 2) * (1 + random.random())\n",
    )
    assert "two different results" in told and "torch.empty" in told, told
    assert "In some of the failing checks" not in told, told


def test_a_vector_has_numbers_and_no_rows() -> None:
    right = catalogue.find("gradient-norms").correct[0].source
    last = "\n_right = gradient_norms\ndef gradient_norms(W, T):\n    norms = _right(W, T)\n    norms[-1] = 0.3\n"
    told = said("gradient-norms", f"{right}{last}    return norms\n")
    assert "Everything is correct except the last number." in told, told


def test_a_factor_of_a_whole_vector_differs_from_check_to_check() -> None:
    told = said(
        "linear-weights",
        "def linear_weights(x):\n    if x.min() < 0 or x.sum() == 0:\n        raise ValueError\n    return x * 1.5\n",
    )
    assert "one number, another one in each check" in told and "line" not in told, told


def test_the_length_that_an_axis_always_has_is_named() -> None:
    told = said("shift-right", "def shift_right(y, bos):\n    return torch.full_like(y, bos)[:, :0]\n")
    assert "Axis 1 of your result is 0 long wherever it is wrong." in told, told


def test_causes_are_not_claimed_where_one_value_everywhere_has_many() -> None:
    told = said("padding-mask", "def padding_mask(ids, pad):\n    return (ids == ids)[:, None, None]\n")
    assert "Nothing is hidden." in told and "were counted" not in told, told
    told = said("leaks", "def leaks(model, ids, t):\n    return False\n")
    assert "calls every model sound" in told and "was shown twice" not in told, told
    told = said("sagan-attention", "def sagan_attention(x, Wq, Wk, Wv, gamma):\n    return x\n")
    assert "of your own" not in told, told
    right = catalogue.find("sample").correct[0].source
    empty = "\n_right = sample\ndef sample(logits, tau=1.0, *rest):\n    drawn = _right(logits, tau, *rest)"
    told = said("sample", f"{right}{empty}\n    return drawn if tau else drawn[:0]\n")
    assert "as if tau were another number" not in told, told


def test_nan_everywhere_shows_no_two_mistakes() -> None:
    source = (
        "def softmax(x, dim=-1):\n    powers = torch.log1p(x - x.amax())\n    return powers / powers.sum(dim, True)\n"
    )
    told = said("softmax", source, disclosed=True)
    assert "two mistakes" not in told and "NaN" in told, told


def test_rows_of_bos_and_pads_show_no_two_mistakes() -> None:
    told = said(
        "greedy-decode",
        "def greedy_decode(model, src, max_len, bos, eos, pad):\n    out = torch.full((len(src), max_len + 1), pad)\n"
        "    out[:, 0] = bos\n    return out\n",
        disclosed=True,
    )
    assert "Two known mistakes" not in told and "smallest logit" not in told, told


def test_an_error_of_torchs_names_no_mistake_that_raises_an_unrelated_one() -> None:
    right = next(each for each in catalogue.find("generate").correct if "running sum" in each.name)
    told = said("generate", str(right.source).replace("torch.rand(len(ids), 1,", "torch.rand(1, len(ids),"))
    assert "You drew by the logits" not in told and "searchsorted" in told, told


def test_what_is_left_unchanged_is_said_without_how_it_was_written() -> None:
    right = catalogue.find("leaks").correct[0].source
    told = said("leaks", right.but("(ids[:, t:] + 1) % vocabulary", "(ids[:, t:] != 0).long()"))
    assert "yours stay 0" in told and "You wrote zeros" not in told, told


def test_small_factors_are_shown_and_compared_with_their_digits() -> None:
    told = said("mha-params", "def mha_params(d, h, bias=True):\n    return 0\n")
    assert "0.000 times" not in told, told
    thousandth = catalogue.find("layer-cost").correct[0].source.but("return n * d * d\n", "return 0.00001 * n * d\n")
    assert "0.000 times" not in said("layer-cost", thousandth)
    half = "def attend(W, V):\n    return 0.00001 * (W @ V)\n"
    assert "Every number is 1e-05 times the correct one." in said("attend", half)


def test_zeros_everywhere_are_not_said_to_be_the_result_for_a_zero() -> None:
    told = said("softmax-jacobian", "def softmax_jacobian(p):\n    return torch.zeros(len(p), len(p), dtype=p.dtype)\n")
    assert "does not depend on p" in told and "the correct one for" not in told, told
    right = catalogue.find("attention-flops").correct[0].source
    told = said("attention-flops", f"{right}\ndef attention_flops(n, d, h):\n    return 0\n")
    assert "0 instead of n" not in told, told


def test_a_missing_dictionary_of_tensors_is_shown_by_its_keys() -> None:
    right = catalogue.find("export-attention").correct[0].source
    told = said("export-attention", right.but("return found", "return []"))
    assert "the next one should be a dictionary with the keys 'encoder'" in told and "tensor(" not in told, told


def test_none_has_two_causes() -> None:
    right = catalogue.find("encode-decode").correct[0].source
    told = said(
        "encode-decode", f"{right}\n_encode = encode\ndef encode(*given, **named):\n    _encode(*given, **named)\n"
    )
    assert "a `return` is missing" in told, told


def test_the_speed_of_all_pairs_has_more_causes_than_one() -> None:
    right = catalogue.find("sinusoidal-pe").correct[0].source
    told = said("sinusoidal-pe", right.but("pos / 10000 ** (two_i / d)", "pos * torch.ones_like(two_i)"))
    assert "All hands have the same speed, 1. Each pair has a speed of its own." in told, told


def test_a_list_that_ends_early_is_not_two_mistakes() -> None:
    source = "def residual_trace(model, ids):\n    return [model.embed(ids)]\n"
    told = said("residual-trace", source, disclosed=True)
    assert "ends too early" in told and "Two known mistakes" not in told, told


def test_a_softmax_over_one_sentence_is_not_one_more_softmax() -> None:
    """Over an axis of one item it gives 1 everywhere, in some of the checks."""
    right = catalogue.find("multi-head-attention").correct[0].source
    told = said("multi-head-attention", right.but("torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=0)"))
    assert "one more softmax" not in told, told


def test_a_result_that_the_check_cannot_read_is_not_expected_to_be_a_dictionary() -> None:
    right = catalogue.find("sample").correct[0].source
    told = said("sample", f"{right}\n_right = sample\ndef sample(*given):\n    return _right(*given)[:3]\n")
    assert "a dictionary" not in told and "shape and dtype that the docstring" in told, told


def test_results_that_a_check_cannot_read_are_explained_all_the_same() -> None:
    """Of windows of another length nothing is counted, so the results stay as they are beside a dictionary."""
    exercise = catalogue.find("lm-batch")
    right = next(each for each in exercise.correct if each.name == "all windows first")
    shorter = str(right.source).replace("rows[:, :-1]", "rows[:, :-0]")
    verdict = judge_and_explain(exercise, LocalEndpoint(namespace_of(shorter)), b"key")
    assert verdict.failed_explanation == "" and not verdict.passed
    assert "two mistakes" not in said("lm-batch", shorter)


def test_a_result_that_is_an_argument_is_said_to_be_one() -> None:
    told = said("attend", "def attend(W, V):\n    return V\n")
    assert "Your result equals V, as it was passed in." in told and "does not depend" not in told, told
    told = said("linear-weights", "def linear_weights(x):\n    return x * 1\n")
    assert "but not in all: your result equals x, as it was passed in." in told, told


def changed(exercise: str, variant: str, before: str, after: str) -> str:
    source = next(answer.source for answer in catalogue.find(exercise).correct if answer.name == variant)
    assert before in source
    return said(exercise, source.replace(before, after))


def test_layers_without_names_are_read_so_that_least_is_wrong() -> None:
    """The keys come first in this list; read as queries they would be a second mistake."""
    told = changed("self-attention", "unnamed list, keys first", "self.d_k, self.d_v = d_k, d_v", "self.d_k = d_v")
    assert told.startswith("The scores were divided by the root of d_v."), told


def test_a_known_mistake_that_spoils_a_correct_result_is_not_one_of_two() -> None:
    told = changed("lm-batch", "all windows first", "rows[:, 1:]", "rows[:, :]")
    assert "one number of each row too many" in told and "joined end to end" not in told, told


def test_zeros_in_a_dictionary_are_no_two_mistakes() -> None:
    told = changed("online-softmax", "indices", "l = c * l + P.sum(1)", "l = c * l * P.sum(1)")
    assert "Two known mistakes" not in told, told
