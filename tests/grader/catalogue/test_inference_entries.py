"""The inputs and references of chapter 11's exercises are correct."""

import json

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.ch11_inference import decode_step, models, searches
from autograder.catalogue.ch11_inference.corpus_bleu import corpus, corpus_bleu
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.inside import wire
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare.sample_class import ROOT

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def explained(exercise_id, source):
    return judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(source)), KEY)


def report_on(exercise_id, source):
    return " ".join(
        as_text(judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(source)), None)).split()
    )


def test_the_notebook_shows_the_decoder_that_the_probes_hand_over():
    path = ROOT / "exercises" / "11_inference" / "inference.ipynb"
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    shown = cells["inference-small-decoder"]
    own = open(models.__file__, encoding="utf-8").read()
    assert own.endswith(shown + "\n") and shown.startswith("class SmallLayer")


@pytest.mark.parametrize("chunks", [[1] * 6, [3, 1, 2], [6], [2, 4]])
def test_steps_and_chunks_with_a_cache_give_the_logits_of_the_whole(chunks):
    g = torch.Generator().manual_seed(3)
    model = models.SmallDecoder(11, 6, g)
    ids, memory = torch.randint(11, (2, 6), generator=g), torch.randn(2, 4, 6, generator=g)
    whole, cache, t = model(ids, memory), model.new_cache(memory), 0
    for size in chunks:
        logits, cache = decode_step.decode_step(model, ids[:, t : t + size], cache, t)
        t += size
        torch.testing.assert_close(logits, whole[:, t - 1])


@pytest.mark.parametrize("longer", [-1, 0, 2])
def test_bleu_is_the_librarys_without_smoothing(longer):
    import sacrebleu

    hyps, refs = corpus(torch.Generator().manual_seed(5), 30, longer).arguments
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    theirs = metric.corpus_score([" ".join(line) for line in hyps], [[" ".join(line) for line in refs]]).score
    assert corpus_bleu(hyps, refs) == pytest.approx(theirs, rel=1e-9)


def test_a_library_that_does_the_exercise_earns_nothing():
    import sacrebleu  # noqa: F401 - as the notebook's own cell would have it

    verdict = judge_and_explain(
        catalogue.find("corpus-bleu"),
        LocalEndpoint(
            namespace_of(
                "import sacrebleu\n\ndef corpus_bleu(hyps, refs):\n"
                "    texts = [[' '.join(map(str, line)) for line in lines] for lines in (hyps, refs)]\n"
                "    metric = sacrebleu.BLEU(tokenize='none', smooth_method='none', force=True)\n"
                "    return metric.corpus_score(texts[0], [texts[1]]).score\n"
            )
        ),
        KEY,
    )
    assert verdict.points == 0 and "sacrebleu does the whole exercise" in " ".join(as_text(verdict).split())


def test_a_beam_as_wide_as_all_sentences_finds_the_most_probable_of_all():
    step = searches.Language(4, bos=1, eos=2, max_length=3, seed=8, likely_end=1.0)
    ended, live = [], [([1], 0.0)]
    for _ in range(3):
        options = [([*ids, v], p + q) for ids, p in live for v, q in enumerate(step(torch.tensor([ids]))[0].tolist())]
        ended += [one for one in options if one[0][-1] == 2]
        live = [one for one in options if one[0][-1] != 2]
    best = max(ended, key=lambda one: one[1])
    assert searches.search(step, 200, 3, 0.0, 1, 2)[0][0] == best[0]


def test_a_search_that_never_stops_is_told_so():
    endless = """
        def greedy_decode(model, src, max_len, bos, eos, pad):
            out = torch.full((len(src), 1), bos)
            while True:
                out = torch.cat([out, model(src, out)[:, -1].argmax(-1, keepdim=True)], dim=1)
    """
    assert "Your loop never ends" in report_on("greedy-decode", catalogue.known_answers.answer(endless))


def test_a_loop_that_waits_for_every_row_to_end_in_one_step_is_told_to_remember_which_have_ended():
    waits = catalogue.find("greedy-decode").correct[0].source
    waits = waits.without("chosen = chosen.masked_fill(done, pad)").but("done | (chosen == eos)", "chosen == eos")
    told = explained("greedy-decode", waits)
    assert told.misconception.name == "finished rows go on"
    assert "Remember which rows have ended" in told.misconception.message


def test_a_length_that_is_too_large_where_a_hypothesis_ends_is_that_of_counting_bos():
    page = next(each.source for each in catalogue.find("beam-search").correct if each.name == "as on the page")
    told = explained("beam-search", page.but("log_p / length **", "log_p / len(ids) **"))
    assert told.misconception.name == "bos counted" and told.misconception.message.startswith("bos was counted")


def test_too_few_draws_are_explained_by_the_probabilities_and_by_the_rows():
    source = catalogue.find("sample").correct[0].source.but("before >= top_p", "ordered.cumsum(dim=-1) > top_p")
    assert "rows 0, 2, 4 and so on hold the same logits." in report_on("sample", source)
    assert "about 0.615 0.385 0.000" in report_on("sample", source)


def test_a_loop_that_shows_one_token_for_ever_comes_to_an_end():
    endless = """
        def greedy_decode(model, src, max_len, bos, eos, pad):
            last = torch.full((len(src), 1), bos)
            while True:
                last = model(src, last)[:, -1].argmax(-1, keepdim=True)
    """
    assert "expected at most 100,000 numbers" in report_on("greedy-decode", catalogue.known_answers.answer(endless))


def test_a_handed_model_hands_over_the_parts_that_it_names_and_no_others():
    model = models.SmallDecoder(11, 6, torch.Generator().manual_seed(3))
    proxies = []
    arrived = wire.copy({"model": model}, proxies, lambda number: lambda *given: proxies[number](*given))["model"]
    ids, places = torch.tensor([[3, 4]]), torch.arange(2)
    x = model.embed(ids, places)
    torch.testing.assert_close(arrived.embed(ids, places), x)
    assert len(arrived.layers) == 2
    torch.testing.assert_close(arrived.layers[1].key(x), model.layers[1].key(x))
    assert not hasattr(arrived, "token_embedding") and not hasattr(arrived.layers[0], "W_q")


def test_a_cache_may_be_changed_and_nothing_else():
    source = next(each.source for each in catalogue.find("decode-step").correct if "in place" in each.name)
    assert judge_and_explain(catalogue.find("decode-step"), LocalEndpoint(namespace_of(source)), KEY).passed
    spoiling = source.replace("n = y.size(1)", "n = y.size(1)\n    y.zero_()")
    assert "changed" in report_on("decode-step", spoiling)


@pytest.mark.parametrize(("dtype", "method"), [("float32", ".float()"), ("int32", ".int()")])
def test_the_report_on_ids_of_another_dtype_names_the_dtype_and_no_cut(dtype, method):
    source = catalogue.find("greedy-decode").correct[0].source.but("return out", f"return out{method}")
    said = report_on("greedy-decode", source)
    assert f"ids of dtype {dtype} came back" in said and "cut short" not in said and "(3, 8)" not in said


def test_a_row_is_shown_as_it_came_back():
    source = catalogue.find("greedy-decode").correct[0].source.but("out = torch.cat(", "torch.cat(")
    said = report_on("greedy-decode", source)
    assert "row 0 should be 1 13 8 2, yours is 1 " in said and "no word was ever appended" in said


def test_ids_that_are_written_in_are_named_beside_a_mode_that_is_left():
    source = catalogue.find("greedy-decode").correct[0].source.without("model.train(training)")
    source = source.but("1), bos)", "1), 1)").but("== eos", "== 2").but("(done, pad)", "(done, 0)")
    told = explained("greedy-decode", source)
    assert "The ids 1, 2 and 0 are written into your code" in told.misconception.message


def test_a_softmax_over_the_batch_and_a_k_th_token_left_out_are_named():
    right = catalogue.find("sample").correct[0].source
    for old, new, name in [
        ("torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=0)", "softmax over the batch"),
        ("logits < weakest", "logits <= weakest", "one fewer than top_k"),
    ]:
        assert explained("sample", right.but(old, new)).misconception.name == name


@pytest.mark.parametrize("submission", range(6))
def test_a_beam_that_grows_with_every_step_never_passes(submission):
    known = next(each for each in catalogue.find("beam-search").mistakes if "of each hypothesis" in each.name)
    key = draw_key(b"secret", "assignment", "exercise", [f"submission {submission}"])
    verdict = judge_and_explain(catalogue.find("beam-search"), LocalEndpoint(namespace_of(known.source)), key)
    assert "other ids of bos and eos" in [each.probe.name for each in verdict.outcomes if not each.passed]
    assert verdict.misconception is known


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "candidates.sort(key=lambda one: one[1], reverse=True)",
            "candidates.sort(key=lambda one: one[1])",
            "the best hypothesis should have the ids 1 4 2",
        ),
        (
            "total / (len(ids)",
            "2 * total / (len(ids)",
            "the score of the best hypothesis (1 4 2) should be -1.022",
        ),
        ("return scored[:k]", "return scored[:1]", "hypothesis 2 of 2 is missing, which has the ids 1 3 3 2"),
        ("return scored[:k]", "return scored[:k] * 2", "4 hypotheses came back, where at most 2 are expected"),
        (
            "return scored[:k]",
            "return [(ids, '?') for ids, _ in scored[:k]]",
            "should be a number, yours is of type str",
        ),
    ],
)
def test_the_first_wrong_hypothesis_is_described_in_words(old, new, told):
    report = report_on("beam-search", catalogue.find("beam-search").correct[0].source.but(old, new))
    assert told in report and "at [" not in report


def test_frequencies_of_an_unknown_mistake_are_shown_next_to_the_probabilities():
    source = (
        catalogue.find("sample")
        .correct[0]
        .source.but("before >= top_p", "before >= top_p - 0.2")
        .but("torch.zeros_like(shares).scatter(1, order, ordered)", "ordered")
    )
    report = report_on("sample", source)
    assert "tokens came with frequencies" in report and "about 0.000 0.000 0.000 0.000 0.385 0.615 would be" in report
    assert "at key" not in report


def test_the_report_on_a_logarithm_of_logarithms_explains_the_nan():
    source = catalogue.find("beam-search").correct[0].source.but("step_fn(prefixes)", "step_fn(prefixes).log()")
    assert "a negative number has no logarithm" in report_on("beam-search", source)


def test_new_words_that_are_appended_nowhere_are_a_mistake_by_itself():
    source = """
        def decode_step(model, y_t, cache, t):
            x = model.embed(y_t, torch.arange(t, t + y_t.shape[1]))
            for layer, (K, V, cross) in zip(model.layers, cache):
                weights = torch.softmax(layer.query(x) @ K.transpose(-2, -1) / x.shape[-1] ** 0.5, dim=-1)
                x = layer.rest(x, weights @ V, cross)
            return model.head(x)[:, -1], cache
    """
    told = explained("decode-step", catalogue.known_answers.answer(source))
    assert told.misconception.name == "the new words appended nowhere"


def test_a_bleu_of_nearly_zero_is_not_zero():
    source = catalogue.find("corpus-bleu").correct[0].source.but("return 0.0", "return 1e-6")
    assert not explained("corpus-bleu", source).passed


FLAT = next(each.source for each in catalogue.find("beam-search").correct if each.name == "tensors")
SAMPLE, GREEDY, BLEU = (catalogue.find(name).correct[0].source for name in ("sample", "greedy-decode", "corpus-bleu"))
NUCLEUS = "before >= top_p"
OF_THE_BATCH = SAMPLE.but("values[:, -1:]", "values[:, -1:].min()")
STOPS_EARLY = GREEDY.but(
    "out = torch.cat([out, chosen[:, None]], dim=1)\n    ", "grown = torch.cat([out, chosen[:, None]], dim=1)\n    "
).but("break\n", "break\n        out = grown\n")


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("beam-search", FLAT.but("seqs[index // V], (index % V)", "seqs[index % len(seqs)], (index // len(seqs))"),
         "an index is taken apart the wrong way"),
        ("beam-search", FLAT.but("seqs[index // V]", "seqs[index % len(seqs)]"), "taken apart the wrong way"),
        ("beam-search", catalogue.find("beam-search").correct[0].source.but(
            "finished else live", "finished else [(ids + [eos], total) for ids, total in live]"),
         "with an eos behind it"),
        ("sample", SAMPLE.but(NUCLEUS, "ordered < top_p * ordered[:, :1]"), "That rule is called min-p"),
        ("sample", SAMPLE.but("if top_p is not None:", "if top_p is not None and top_k is None:"),
         "did top_p choose among them?"),
        ("sample", OF_THE_BATCH, "does each row have a threshold of its own?"),
        ("greedy-decode", STOPS_EARLY, "did the loop stop before that was appended?"),
        ("greedy-decode", GREEDY.but("return out", "out[~done, -1] = eos\n    return out"),
         "A row that max_len cuts ends without one"),
        ("corpus-bleu", BLEU.but("math.log(m / t)", "math.log((m + 1) / (t + 1))"), "One was added to every count"),
        ("corpus-bleu", BLEU.but("if 0 in matches:", "if False:").but(
            "log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4",
            "logs = [math.log(m / t) for m, t in zip(matches, totals) if m]\n    log_mean = sum(logs) / len(logs)"),
         "that length was left out"),
    ],
)  # fmt: skip
def test_the_report_says_what_is_wrong(exercise, source, words):
    report = " ".join(as_text(own_report(exercise, source)).split())
    assert words in report


def own_report(exercise_id, source):
    """The verdict as a learner's own check gives it, which may show hidden inputs."""
    return judge_and_explain(catalogue.find(exercise_id), LocalEndpoint(namespace_of(source)), KEY, disclosed=True)


def test_a_token_more_than_top_p_is_not_called_min_p():
    assert "min-p" not in report_on("sample", SAMPLE.but(NUCLEUS, "before >= top_p + 0.2"))


def test_a_search_without_competition_is_not_said_to_take_an_index_apart():
    growing = next(each for each in catalogue.find("beam-search").mistakes if "of each hypothesis" in each.name)
    told = explained("beam-search", growing.source.but("scored[:k]", "scored"))
    assert "taken apart" not in " ".join(as_text(told).split())
