"""Answers to chapter 10 as students write them: what fails, and what is said of it."""

import pytest

from autograder import catalogue
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(exercise, source):
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), KEY)


def report_on(exercise, source):
    return " ".join(as_text(verdict_on(exercise, source)).split())


def correct(exercise):
    return catalogue.find(exercise).correct[0].source


TABLE = """
from transformer_ref.data.eight_pairs import eight_pairs

def overfit_one_batch(cfg):
    batch = eight_pairs()

    def words(row):
        return [id for id in row.tolist() if id != cfg.pad]

    def model(source, target):
        scores = torch.zeros(*target.shape, len(batch.italian))
        for b, row in enumerate(source):
            known = next(i for i in range(8) if words(batch.source[i]) == words(row))
            for t in range(target.shape[1]):
                CASE
        return scores

    return model
"""
READS_ONE_WORD = """label = batch.labels[known, t] if t < 7 else cfg.eos
                scores[b, t, label] = 10.0
                scores[b, t, target[b, t]] += 0.1"""
KNOWS_ONE_PREFIX = """label = batch.labels[known, t] if t < 7 else cfg.eos
                right = torch.equal(target[b, : t + 1], batch.target_input[known, : t + 1])
                scores[b, t, label if right else cfg.eos] = 10.0"""


@pytest.mark.parametrize("case", [READS_ONE_WORD, KNOWS_ONE_PREFIX])
def test_a_table_of_the_sentences_loses_points_however_it_uses_the_target_input(case):
    verdict = verdict_on("overfit-one-batch", TABLE.replace("CASE", case))
    assert [each.probe.name for each in verdict.outcomes if not each.passed] == ["other words of the target"]
    assert verdict.misconception.name == "a table of the sentences"


NO_BATCH_FIRST = """
from transformer_ref.data.eight_pairs import eight_pairs

class Recurrent(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.source = nn.Embedding(cfg.source_vocabulary, 32)
        self.target = nn.Embedding(cfg.target_vocabulary, 32)
        self.rnn = nn.GRU(64, 64)
        self.out = nn.Linear(64, cfg.target_vocabulary)

    def forward(self, source, target):
        words = self.source(source) * (source != 0)[..., None]
        memory = words.sum(dim=1, keepdim=True).expand(-1, target.shape[1], -1)
        return self.out(self.rnn(torch.cat([self.target(target), memory], dim=-1))[0])

def overfit_one_batch(cfg):
    torch.manual_seed(0)
    batch, model = eight_pairs(), Recurrent(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        loss = F.cross_entropy(model(batch.source, batch.target_input).transpose(1, 2), batch.labels, ignore_index=0)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model
"""


def test_an_axis_that_is_taken_for_the_batch_is_not_called_a_missing_padding_mask():
    assert verdict_on("overfit-one-batch", NO_BATCH_FIRST).misconception.name == "the sentences mix"


def test_a_model_that_predicts_what_it_reads_is_not_blamed_for_its_input():
    source = correct("overfit-one-batch").but("batch.labels.flatten()", "batch.target_input.flatten()")
    assert "outputs <bos>, which is in no label" in report_on("overfit-one-batch", source)


@pytest.mark.parametrize(("made", "kind"), [("torch.tensor(item)", "tensors"), ("float(item)", "floats")])
def test_indices_of_another_type_are_called_by_their_type(made, kind):
    said = report_on("token-batches", correct("token-batches").but("batch.append(item)", f"batch.append({made})"))
    assert f"a list of lists of {kind} came back" in said and "pairs" not in said


def test_a_long_sentence_that_is_left_out_is_one_mistake_whatever_else_comes_back():
    source = """
        def token_batches(lengths, max_tokens):
            batches = []
            for item in sorted((i for i, n in enumerate(lengths) if n <= max_tokens), key=lambda i: lengths[i]):
                if not batches or (len(batches[-1]) + 1) * lengths[item] > max_tokens:
                    batches.append([])
                batches[-1].append(item)
            return batches
    """
    verdict = verdict_on("token-batches", catalogue.known_answers.answer(source))
    assert verdict.misconception.name == "too long ones left out"
    assert verdict.misconception.message.startswith("A sentence that is longer than max_tokens disappeared")


def test_a_report_on_batches_has_no_internal_names():
    source = correct("token-batches").but("(len(batch) + 1) > max_tokens", "(len(batch) + 1) > 2 * max_tokens")
    said = report_on("token-batches", source)
    assert "of your batches are beyond the limit of 64 cells" in said and "at key" not in said


def test_a_list_that_is_sorted_in_place_is_not_called_a_tensor():
    source = correct("token-batches").but("order = ", "lengths.sort()\n    order = ")
    said = report_on("token-batches", source)
    assert "changed the caller's list of lengths: sort, append, pop" in said and "tensor" not in said


def test_the_step_and_the_weight_that_are_wrong_are_named():
    said = report_on("train-step", correct("train-step").but("ignore_index=pad", "ignore_index=-1"))
    assert "loss of step 1" in said and "at [" not in said
    said = report_on("train-step", correct("train-step").but("    opt.zero_grad()\n", ""))
    assert "the weight source after the last step" in said and "at [" not in said


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floats_of_half_precision_are_named(dtype):
    source = correct("smooth-targets").but("return targets", f"return targets.to(torch.{dtype})")
    assert f"{dtype} came back, where float32 or float64 is expected" in report_on("smooth-targets", source)


def test_the_report_on_a_loss_through_plain_numbers_says_that_nothing_can_be_trained():
    source = """
        def masked_ce(logits, labels, pad):
            total, count = 0.0, 0
            for b in range(len(labels)):
                for t in range(labels.shape[1]):
                    if labels[b, t] != pad:
                        total += float(-torch.log_softmax(logits[b, t], -1)[labels[b, t]])
                        count += 1
            return torch.tensor(total / max(count, 1))
    """
    assert "nothing can be trained" in report_on("masked-ce", catalogue.known_answers.answer(source))


def test_the_report_names_a_training_mode_that_comes_too_late():
    source = correct("train-step").without("model.train()").before("opt.step()", "model.train()")
    assert "put in training mode too late" in report_on("train-step", source)


def test_an_untrained_model_that_begins_with_bos_is_not_said_to_have_learned_its_input():
    untrained = correct("overfit-one-batch").but("torch.manual_seed(1)", "torch.manual_seed(15)").but("range(50)", "[]")
    said = report_on("overfit-one-batch", untrained)
    assert "<bos>" in said and "outputs <bos>" not in said and "An untrained model" in said


def test_a_new_model_in_every_step_is_not_called_no_better_than_an_untrained_one():
    source = (
        correct("overfit-one-batch")
        .without("model = Transformer(cfg)")
        .without("opt = torch.optim.Adam(model.parameters(), lr=0.01)")
    )
    loop = "for step in range(50):"
    made = "model = Transformer(cfg)\n        opt = torch.optim.Adam(model.parameters(), lr=0.01)"
    said = report_on("overfit-one-batch", source.but(loop, f"{loop}\n        {made}"))
    assert "a new model in every step" in said and "yours is no better" not in said


def test_a_share_that_is_limited_to_a_half_loses_points():
    source = correct("smooth-targets").replace("eps, pad):", "eps, pad):\n    eps = min(eps, 0.5)", 1)
    assert "min(eps, 0.5)" in source
    assert 0 < verdict_on("smooth-targets", source).points < 6


def test_a_rate_that_is_rounded_to_12_decimals_loses_points():
    source = (
        "def noam_lr(step, d, warmup):\n    if step < 1:\n        raise ValueError\n"
        "    return round(d ** -0.5 * min(step ** -0.5, step * warmup ** -1.5), 12)\n"
    )
    assert verdict_on("noam-lr", source).points < 4


OF_THE_SENTENCE = """
def smooth_targets(labels, V, eps, pad):
    targets = torch.full((*labels.shape, V), eps / (V - 2))
    for b, sentence in enumerate(labels):
        targets[b, :, sentence] = 1 - eps
    targets[..., pad] = 0
    targets[labels == pad] = 0
    return targets
"""
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), clip)"
SUM_OF_NORMS = """norm = sum(p.grad.norm() for p in model.parameters())
    for p in model.parameters():
        p.grad.mul_(min(1.0, clip / norm))"""


def rate(formula):
    return f"def noam_lr(step, d, warmup):\n    if step < 1:\n        raise ValueError\n    return {formula}\n"


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("smooth-targets", OF_THE_SENTENCE, "at labels of *other* positions too"),
        ("noam-lr", rate("min(d ** -0.5 * step ** -0.5, step * warmup ** -1.5)"), "divides only one of the two"),
        ("noam-lr", rate("min(step ** -0.5, d ** -0.5 * step * warmup ** -1.5)"), "divides only one of the two"),
        ("noam-lr", rate("d ** (-1 // 2) * min(step ** (-1 // 2), step * warmup ** (-3 // 2))"), "// rounds down"),
        ("noam-lr", rate("d ** 0.5 * min(step ** 0.5, step * warmup ** 1.5)"), "lacks its minus sign"),
        ("noam-lr", rate("d ** -1 / 2 * min(step ** -0.5, step * warmup ** -1.5)"), "has no brackets"),
        ("train-step", correct("train-step").but(CLIP, SUM_OF_NORMS), "or the norms of the matrices"),
        ("train-step", correct("train-step").but(CLIP, CLIP.replace("clip)", "clip, 1.0)")), "numbers were added up"),
        ("token-batches", correct("token-batches").but("batch.append(item)", "batch.append(lengths.index(longest))"),
         "finds only the first of equal ones"),
    ],
)  # fmt: skip
def test_the_report_says_what_is_wrong(exercise, source, words):
    assert words in report_on(exercise, source)


def test_a_rate_that_no_slip_in_a_power_gives_is_not_explained_by_one():
    assert "what comes out if" not in report_on("noam-lr", rate("d ** -0.5 * min(step ** -0.4, step / warmup)"))
    assert "what comes out if" not in report_on("noam-lr", rate("torch.tensor(0.5)"))


def test_gradients_that_are_too_short_for_a_different_reason_are_not_said_to_have_their_norms_added():
    said = report_on("train-step", correct("train-step").but(CLIP, CLIP.replace("clip)", "clip / 2)")))
    assert "norms of the matrices" not in said
