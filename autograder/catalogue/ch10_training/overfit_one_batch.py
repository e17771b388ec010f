"""10.7: eight sentences learned by heart, and judged by what the model says, never by its loss."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autograder.catalogue.ch10_training.shared import Unreadable, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import Answer, answer, correct, mistake
from autograder.catalogue.normal_forms import JudgedParts
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import hidden, visible
from transformer_ref.config import ModelConfig
from transformer_ref.data.eight_pairs import EightPairs, eight_pairs

OVERFIT, SYMPTOMS, LIAR, FLOOR, SHIFT = sections("overfit symptoms liar floor shift")
WANTED, OF = 7, 8  # translations that must be right, and how many there are
SMALL = 1e-3  # a difference of scores, relative to the largest of them, that is just rounding
LEARNED, NEW = 0.3, 0.85  # a loss that is nearly nothing; the share of ln V that a model begins at
RARE = 0.2  # a probability; in many training runs a word that was never a label stayed below 0.12, others reached 0.7


def overfit_one_batch(cfg: ModelConfig) -> nn.Module:
    """A model that has memorized the batch returns its translations. Nothing is trained here."""
    return _ByHeart(the_batch())


class _ByHeart(nn.Module):
    """Looks up the source, and returns the tokens of its translation."""

    def __init__(self, known: EightPairs) -> None:
        super().__init__()
        self.known = {_words(row): labels for row, labels in zip(known.source, known.labels, strict=True)}
        self.vocabulary = len(known.italian)

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Logits (batch, target, vocabulary), 9 for what it is sure of."""
        T = target_input.shape[1]
        rows = [F.pad(self.known[_words(row)], (0, T))[:T] for row in source]
        heard = F.one_hot(target_input, self.vocabulary).cumsum(dim=1)  # every decoder attends to its whole prefix
        return 9.0 * F.one_hot(torch.stack(rows), self.vocabulary) + heard / T


def _words(ids: Tensor) -> tuple[int, ...]:
    return tuple(id for id in ids.tolist() if id != CFG.pad)


@cache
def the_batch() -> EightPairs:
    return eight_pairs()


CFG = ModelConfig(
    source_vocabulary=len(the_batch().english), target_vocabulary=len(the_batch().italian), d_model=32, heads=4,
    encoder_layers=1, decoder_layers=1, d_ff=64, dropout=0.0, norm_first=True, max_length=32,
)  # fmt: skip


def asked(g: torch.Generator, look: str) -> Case:
    """The inputs of the trained model; `look`: what this probe checks in addition to the translations.

    The pads, the order, the position from which on words are changed and the sentences that come in a batch of one are
    drawn.
    """
    batch = the_batch()
    order, pads = torch.randperm(OF, generator=g), int(torch.randint(1, 6, (), generator=g))
    padded = F.pad(batch.source, (0, pads), value=CFG.pad)[order]
    place = int(torch.randint(1, batch.labels.shape[1] - 1, (), generator=g))
    changed = batch.target_input.clone()
    changed[:, place:] = torch.randint(4, CFG.target_vocabulary, changed[:, place:].shape, generator=g)
    short = [row for row in range(OF) if batch.source[row, -1] == CFG.pad]
    few = [short[i] for i in torch.randperm(len(short), generator=g)[:3].tolist()]
    alone = [batch.source[row : row + 1, : int((batch.source[row] != CFG.pad).sum())] for row in few]
    wrong = _two_wrong_words(g, batch.target_input[:, place])
    exchanged = [torch.where(torch.arange(changed.shape[1]) == place, word[:, None], batch.target_input)
                 for word in wrong]
    questions = {
        "score": [
            (batch.source, batch.target_input),
            (padded, batch.target_input[order]),
            (batch.source, changed),
            (batch.source, batch.target_input),
            (batch.source.roll(1, 0), batch.target_input),
            (batch.source, batch.labels.roll(-1, 1)),
            *((batch.source, target) for target in exchanged),
            (batch.source[order], batch.target_input[order]),
            *((source, batch.target_input[row : row + 1]) for source, row in zip(alone, few, strict=True)),
        ],
        "translate": [batch.source],
        "look": look, "order": order, "place": place, "alone": few,
    }  # fmt: skip
    return Case((CFG, questions))


def _two_wrong_words(g: torch.Generator, words: Tensor) -> tuple[Tensor, Tensor]:
    """For each word two others, which differ from each other."""
    first, count = 4, CFG.target_vocabulary - 4  # the words follow the special tokens
    steps = torch.randint(1, count // 2, (2, len(words)), generator=g)
    at = (words - first).clamp(min=0)
    return first + (at + steps[0]) % count, first + (at - steps[1]) % count


FINE = "as expected"
LOOKS = {  # what is tested -> what is wrong where the test fails
    "padding": "more pads behind the sources, or a different order of the batch, change the logits",
    "alone": "a sentence alone in the batch gets different logits",
    "future": "later words of the target change the logits before them",
    "heard": "different words of the target change no logits after them",
    "again": "the same input gives different logits the second time",
}


def facts(case: Case, result: Any) -> Any:
    """The facts that the model's outputs show; for the rest see `JudgedParts`."""
    if not isinstance(result, dict) or not isinstance(result.get("scores"), list):
        kind = str(result.get("model") if isinstance(result, dict) else type(result).__name__)[:40]
        kind = {"nothing": "None", "NoneType": "None", "type": "a class"}.get(kind, f"a value of type {kind}")
        return Unreadable(f"{kind} came back, where a trained model is expected", {"kind": kind})
    scores = [each for each in result["scores"] if isinstance(each, Tensor) and each.is_floating_point()]
    shape = (*the_batch().labels.shape, CFG.target_vocabulary)
    translations = result.get("translations")
    fit = len(scores) == len(case.arguments[1]["score"]) and isinstance(translations, list) and len(translations) == 1
    if not fit or tuple(scores[0].shape) != shape:
        found = str(tuple(scores[0].shape) if scores else "none")
        return Unreadable(f"expected logits of shape {shape}, got {found}", {"shape": found})
    told = _told(case.arguments[1], [each.double() for each in scores], translations[0])
    look = case.arguments[1]["look"]
    right = told["right"] >= WANTED
    verb = "is" if told["right"] == 1 else "are"
    judged = {"translations": FINE if right else Remark(f"{told['right']} of {OF} {verb} right; {WANTED} are needed")}
    if look in LOOKS:
        fine = right and (SMALL < told[look] < math.inf if look == "heard" else told[look] <= SMALL)  # NaN is neither
        judged[look] = FINE if fine else Remark(LOOKS[look])
    return JudgedParts(judged, told)


def _told(questions: dict[str, Any], scores: list[Tensor], said: Tensor) -> dict[str, Any]:
    """Numbers about the model: its loss with the right words before it, its translations, and what changes its
    scores."""
    batch = the_batch()
    sound, padded, changed, again, other, left, one_word, other_word, reordered, *alone = scores
    labels, real = batch.labels, batch.labels != CFG.pad
    costs = -sound.log_softmax(-1).gather(-1, labels[..., None])[..., 0].masked_fill(~real, 0)  # (8, target)
    of_rows = costs.sum(1) / real.sum(1)
    known = of_rows < LEARNED
    elsewhere = real & ~known[:, None] & ~torch.isin(labels, labels[known])  # words that no known pair contains
    words = [_until_end(row) for row in said.tolist()]
    wanted = [_until_end(row) for row in labels.tolist()]
    guesses, largest = sound.argmax(-1), 1 + float(sound.abs().max())
    later = real[:, 1:]

    def gap(one: Tensor, two: Tensor) -> float:
        return float((one - two).abs().max()) / largest

    place, rows = questions["place"], questions["alone"]
    alone_gaps = [gap(one, sound[row : row + 1]) for one, row in zip(alone, rows, strict=True)]
    return {
        "loss": float(costs.sum() / real.sum()), "at first": float(costs[:, 0].mean()),
        "later": float(costs[:, 1:].sum() / later.sum()), "known rows": int(known.sum()),
        "elsewhere": max((-costs[elsewhere]).exp().tolist(), default=1.0),
        "right": sum(map(list.__eq__, words, wanted)),
        "first right": sum(a[:1] == b[:1] for a, b in zip(words, wanted, strict=True)),
        "without end": sum(CFG.eos not in row and row[: len(want) - 1] == want[:-1] for row,
                           want in zip(words, wanted, strict=True)),
        "different": len(set(map(tuple, words))), "first": [batch.italian[i] for i in words[0]],
        "says bos": float((guesses[:, 0] == CFG.bos).float().mean()),
        "repeats its input": float((guesses[:, 1:] == batch.target_input[:, 1:])[later].float().mean()),
        "right, shifted left": float((left.argmax(-1) == labels)[real].float().mean()),
        "sure": float(sound.softmax(-1).amax(-1)[real].mean()), "finite": bool(sound.isfinite().all()),
        "are shares": bool((sound >= 0).all() and ((sound.sum(-1) - 1).abs() < 1e-3).all()),
        "padding": gap(padded, sound[questions["order"]]), "future": gap(changed[:, :place], sound[:, :place]),
        "heard": gap(*(each[:, place + 1 :].log_softmax(-1) for each in (one_word, other_word))),
        "again": gap(again, sound),
        "source": gap(other, sound), "order": gap(reordered, sound[questions["order"]]),
        "alone": float(torch.tensor([0.0, *alone_gaps]).max()),  # NaN if one of them is
    }  # fmt: skip


def _until_end(row: list[int]) -> list[int]:
    return row[: row.index(CFG.eos) + 1] if CFG.eos in row else row


# --- symptoms ---------------------------------------------------------------------------------------------------------


def if_told(holds: Callable[[dict[str, Any]], bool]) -> Callable[[Evidence], bool]:
    """Whether the model returned scores with this property."""
    return lambda evidence: "loss" in evidence.got.told and holds(evidence.got.told)


def how_it_says(evidence: Evidence) -> str:
    """The number of correct translations, the loss, and the first translation."""
    told = evidence.got.told
    verb = "is" if told["right"] == 1 else "are"
    return (f"{told['right']} of your {OF} translations {verb} right; here, on the input shifted right, the loss is "
            f"{number(told['loss'])}. The first translation reads: {' '.join(told['first'])}.")  # fmt: skip


def kind_of(evidence: Evidence) -> str:
    kind = evidence.got.told["kind"]
    return f"{kind[0].upper()}{kind[1:]} came back."


def shape_of(evidence: Evidence) -> str:
    return (
        f"For {tuple(the_batch().target_input.shape)} words your model gives scores of shape "
        f"{evidence.got.told['shape']}."
    )


HEAD = """
    from transformer_ref.data.eight_pairs import eight_pairs
    from transformer_ref.model.transformer import Transformer

"""
RIGHT = answer(HEAD + """
    def overfit_one_batch(cfg):
        torch.manual_seed(1)
        batch = eight_pairs()
        model = Transformer(cfg)
        opt = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(50):
            logits = model(batch.source, batch.target_input)
            loss = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=cfg.pad)
            opt.zero_grad()
            loss.backward()
            opt.step()
        return model
""")
MADE, RATE, STEPS = "model = Transformer(cfg)", "lr=0.01", "range(50)"
SCORED, MOVE, DONE = "model(batch.source, batch.target_input)", "opt.step()", "return model"
LN_V, LOWEST = math.log(CFG.target_vocabulary), math.log(1 + (CFG.target_vocabulary - 1) / math.e)


def other_model(body: str, steps: int = 50) -> Answer:
    """The right training of a Transformer whose forward is this."""
    lines = "\n".join(f"            {line}" for line in body.splitlines())
    changed = RIGHT.but("def overfit_one_batch(cfg):",
                        f"class Changed(Transformer):\n    def forward(self, source, target):\n{lines}\n\n\ndef "
                        f"overfit_one_batch(cfg):")
    return changed.but(MADE, "model = Changed(cfg)").but(STEPS, f"range({steps})")


def after_training(body: str) -> Answer:
    """The right training of a sound Transformer, of which something else is returned, by this function of it."""
    return RIGHT.but(DONE, f"def changed(source, target):\n        {body}\n    return changed")


EXERCISE = Exercise(
    id="overfit-one-batch", number="10.7", difficulty=3, minutes=30, visible_points=2, hidden_points=5, seconds=60.0,
    reference=overfit_one_batch, normalize=facts, harness="training", section=OVERFIT,
    probes=(
        visible("eight pairs, translated word by word", asked, "translations"),
        hidden("more pads behind the sources, in another order", asked, "padding",
               announced_by="more pads behind the sources"),
        hidden("a sentence alone", asked, "alone", announced_by="a sentence alone"),
        hidden("later words of the target changed", asked, "future", announced_by="later words of the target"),
        hidden("other words of the target", asked, "heard", announced_by="reads the target input"),
        hidden("the same input again", asked, "again", announced_by="twice with the same input"),
    ),
    mistakes=(
        mistake("no model came back", RIGHT.but(DONE, "return loss.item()"), OVERFIT,
            "Return a trained model: something that is called with source and target input and gives logits.",
            quotes=kind_of,
            shows=lambda evidence: "kind" in evidence.got.told),
        mistake("logits of another shape", after_training("return model(source, target)[:, -1]"), OVERFIT,
            "Return a score for each token of the target vocabulary at every position of the target input, (B, T, V).",
            quotes=shape_of,
            shows=lambda evidence: "shape" in evidence.got.told),
        mistake("no numbers any more", RIGHT.but(RATE, "lr=1e30").but(STEPS, "range(4)"), SYMPTOMS,
            """The scores are not numbers any more (NaN or infinite). The steps were far too large: the rate is too
            high, or gradients of earlier steps were never reset and add up (10.6). Clipped gradients help too.""",
            shows=if_told(lambda told: not told["finite"])),
        mistake("it answers otherwise each time", after_training("return F.dropout(model(source, target), 0.4)"),
                SYMPTOMS,
            """Called twice with the same input, your model gives two results. Something in it is random at each call,
            as dropout is; the check puts it in evaluation mode, so it must be something that ignores the mode.""",
            shows=if_told(lambda told: told["again"] > SMALL)),
        mistake("it predicts its input", RIGHT.but("batch.labels.flatten()", "batch.target_input.flatten()"), SHIFT,
            """Your model outputs <bos>, which is in no label, and then mostly the word that it has just read: it seems
            to have learned to do that. Was the loss computed against the decoder's *input*? It should compare the
            logits with the labels.""",
            quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["says bos"] > 0.5
                            and told["repeats its input"] > 0.5 and told["sure"] > 0.25)),
        mistake("it repeats its input", RIGHT.but("batch.target_input)", "batch.labels)").but(STEPS, "range(30)"),
                SHIFT,
            """After <bos>, your model mostly outputs the word that it has just read. In your training run its input was
            probably the answer itself, so it only had to copy, and a loss near 0 there means nothing. The input is
            the labels *shifted* to the right (10.1).""",
            quotes=how_it_says, shows=if_told(lambda told: told["right"] < WANTED and told["repeats its input"] > 0.5)),
        mistake("it reads the future",
                other_model("encoded = self.encode(source)\neverything = torch.ones(1, 1, target.shape[1], "
                            "target.shape[1], dtype=torch.bool)\n"
                  "return self.logits(self.decode(target, encoded, mask=everything).hidden)"), LIAR,
            """The loss is nearly nothing, and the translations are wrong: you leak the future. With the right words
            before it, *and after it*, the model only copies; when it translates there is no after. Check 08.2 (the
            causal mask), 10.1 (the shift) and 06.2 (heads merged without a transpose mix the positions).""",
            quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["future"] > SMALL)),
        mistake("trained on another input",
                RIGHT.but("batch.target_input)", "batch.labels.roll(-1, 1))").but(STEPS, "range(30)"), SHIFT,
            """Your model is right where its input is the labels shifted to the *left*, so it was probably trained on
            those: position t reads the word after the one that it has to predict, and position t - 1 has already read
            the answer. Position t should read the word *before* it, so the shift goes to the right (10.1).""",
            quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["right, shifted left"] > 0.8)),
        mistake("it has not learned anything", RIGHT.but(MOVE, "pass"), SYMPTOMS,
            f"""An untrained model guesses among all {CFG.target_vocabulary} tokens, which costs about ln
            {CFG.target_vocabulary} = {LN_V:.2f}; yours is little better, if at all. Most often no step moves it, or
            only the last one: no backward(), a detached gradient, gradients that are set to zero before the step, an
            optimizer without parameters (or with those of a different model), no step(), a new model in every step, a
            rate near 0, too few steps or none; or what you returned is not the model that you trained.""",
            quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["source"] > 1e-6 and not told["are shares"]
                            and told["sure"] < 0.5 and NEW * LN_V < told["loss"] < 2 * LN_V)),
        mistake("shares in the place of scores", other_model("return super().forward(source, target).softmax(-1)", 12),
                FLOOR,
            f"""The output of your model at each position sums to 1: these are probabilities, not scores. The loss takes
            a softmax of them once more and stays near ln(1 + (V - 1)/e) = {LOWEST:.2f}: double softmax. The model ends
            in plain scores.""", quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["are shares"])),
        mistake("it ignores the source",
                other_model("encoded = self.encode(source * 0 + 5)\nreturn self.logits(self.decode(target, "
                            "encoded).hidden)"), SYMPTOMS,
            """A different source does not change your model's output: it ignores the source, so all translations are
            the same. Where do the keys and values of the cross-attention come from?""", quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["source"] <= 1e-6)),
        mistake("it never ends",
                RIGHT.but("batch.labels.flatten()",
                          "batch.labels.masked_fill(batch.labels == cfg.eos, cfg.pad).flatten()"), SYMPTOMS,
            """The words are right, and then your model goes on and on: nothing ever taught it to output <eos>. It
            belongs to the labels, and the loss counts it.""", quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["without end"] >= 4)),
        mistake("some pairs only",
                RIGHT.but("batch = eight_pairs()",
                          "batch = eight_pairs()\n    source, begun, labels = (part[:2] for part in batch[:3])").but(
                  SCORED, "model(source, begun)").but("batch.labels.flatten()", "labels.flatten()"), SYMPTOMS,
            """Some pairs were learned by heart, and no word that only the other pairs contain ever becomes probable: it
            seems that those pairs were never trained on. All eight belong to the batch.""",
            quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["known rows"] and told["elsewhere"] < RARE)),
        mistake("the first word alone",
                after_training("return torch.cat([model(source, target[:, t:t + 1]) for t in "
                               "range(target.shape[1])], dim=1)"), SYMPTOMS,
            """The first word is right, and then it goes astray or repeats itself. The model's input at the second
            position is not the one of training: positions that start at 0 again (a cache without an offset), or an
            input that was shifted twice.""", quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["first right"] >= 6
                            and told["at first"] < LEARNED < told["later"] and told["later"] > 5 * told["at first"])),
        mistake("far too large steps", RIGHT.but(RATE, "lr=3.0").but(STEPS, "range(12)"), SYMPTOMS,
            f"""Your model is worse than one that knows nothing, whose loss is ln {CFG.target_vocabulary} =
            {LN_V:.2f}. Look at the loss of every step, in the notebook. If it rises or jumps, the steps are too large:
            the rate is too high, or gradients of earlier steps were never reset and add up (10.6). If it falls to
            nearly 0, your model learns something else: its input or its labels are not those of the batch.""",
            quotes=how_it_says, shows=if_told(lambda told: told["right"] < WANTED and told["loss"] > LN_V)),
        mistake("the first word guessed", RIGHT.but("model(batch.source,", "model(torch.full_like(batch.source, 4),"),
                SYMPTOMS,
            """Once a sentence has begun your model knows how it goes on, but its first word is a guess, and only the
            source determines that one. Is the source given to the model in training, and do gradients reach the
            encoder? If so, take more steps, or look at the loss of every step, in the notebook: if it jumps, the rate
            is too high, or gradients of earlier steps were never reset and add up (10.6).""", quotes=how_it_says,
            shows=if_told(lambda told: told["right"] < WANTED and told["later"] < LEARNED and told["at first"] > 1.0)),
        mistake("not yet", RIGHT.but(STEPS, "range(3)"), OVERFIT,
            """Your model has begun to learn, but it does not know the eight pairs by heart yet. Look at the loss of
            every step, in the notebook: if it still falls, take more steps; if it rises again, or jumps, the rate is
            too high, or gradients of earlier steps were never reset and add up (10.6). If it stays where it is, train
            on one pair and see which word is wrong.""",
            quotes=how_it_says, shows=if_told(lambda told: told["right"] < WANTED)),
        mistake("it heeds the pads",
                other_model("encoded = self.encode(source)\nencoded = "
                            "encoded._replace(mask=torch.ones_like(encoded.mask))\n"
                  "return self.logits(self.decode(target, encoded).hidden)"), SYMPTOMS,
            """The translations are right, but more pads behind the sources change the scores: the result depends on the
            pads. In this batch they are where they were in training; in a different batch they will be elsewhere. If
            your model uses attention, check the padding mask, in the encoder *and* in the cross-attention (08.1). If it
            is recurrent, its last state may be that of a pad.""",
            shows=if_told(lambda told: told["padding"] > SMALL >= told["order"])),
        mistake("the sentences mix",
                after_training("scores = model(source, target)\n        return scores + 0.1 * scores.mean(dim=0, "
                               "keepdim=True)"), SYMPTOMS,
            """The translations are right, but a sentence gets different scores when it is alone, or when the batch is
            in a different order: the sentences of a batch are mixed somewhere. Which axis is the batch? (PyTorch's
            recurrent layers and its Transformer take axis 1 for the batch, unless an argument says otherwise.)""",
            shows=if_told(lambda told: told["order"] > SMALL or told["alone"] > SMALL >= told["padding"])),
        mistake("it reads the future a little",
                after_training("scores = model(source, target)\n        return scores + 0.1 * scores.mean(dim=1, "
                               "keepdim=True)"), LIAR,
            """The translations are right, and still later words of the target change the scores before them. By heart
            that does no harm; on other sentences it will. Check the causal mask (08.2) and every axis along which
            something is averaged.""",
            shows=if_told(lambda told: told["future"] > SMALL)),
        mistake("a table of the sentences", """
            from transformer_ref.data.eight_pairs import eight_pairs


            def overfit_one_batch(cfg):
                batch = eight_pairs()
                table = {tuple(i for i in s.tolist() if i != cfg.pad): t for s, t in zip(batch.source, batch.labels)}

                def model(source, target):
                    rows = [table[tuple(i for i in s.tolist() if i != cfg.pad)] for s in source]
                    T = target.shape[1]
                    return 9.0 * F.one_hot(torch.stack([F.pad(row, (0, T))[:T] for row in rows]),
                        cfg.target_vocabulary)
                return model
            """, OVERFIT,
            """The translations are right, but two different wrong words in the target input give the same logits at all
            positions after them: your model does not read what it has written so far, as if it looked each sentence up
            in a table. A decoder's scores for the next word depend on all words before it.""",
            shows=if_told(lambda told: told["right"] >= WANTED and told["heard"] <= SMALL)),
    ),
    correct=(
        correct("Adam, fifty steps", RIGHT),
        correct("clipped, with a warm-up", """
            from transformer_ref.data.eight_pairs import eight_pairs
            from transformer_ref.model.transformer import Transformer


            def overfit_one_batch(cfg):
                source, target_input, labels, *_ = eight_pairs()
                model = Transformer(cfg, torch.Generator().manual_seed(3))
                opt = torch.optim.AdamW(model.parameters(), lr=1.0, betas=(0.9, 0.98), weight_decay=0.0)
                model.train()
                for step in range(1, 71):
                    for group in opt.param_groups:
                        group["lr"] = 0.012 * min(step / 10, (10 / step) ** 0.5)
                    real = labels != cfg.pad
                    loss = F.cross_entropy(model(source, target_input)[real], labels[real], label_smoothing=0.1)
                    opt.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    opt.step()
                return model
        """),
        correct("a recurrent model of one's own", """
            from transformer_ref.data.eight_pairs import eight_pairs


            class Recurrent(nn.Module):
                def __init__(self, cfg):
                    super().__init__()
                    self.pad = cfg.pad
                    self.source = nn.Embedding(cfg.source_vocabulary, 32)
                    self.target = nn.Embedding(cfg.target_vocabulary, 32)
                    self.rnn = nn.GRU(64, 48, batch_first=True)
                    self.out = nn.Linear(48, cfg.target_vocabulary)

                def forward(self, source, target):
                    words = self.source(source) * (source != self.pad)[..., None]
                    memory = words.sum(dim=1, keepdim=True).expand(-1, target.shape[1], -1)
                    return self.out(self.rnn(torch.cat([self.target(target), memory], dim=-1))[0])


            def overfit_one_batch(cfg):
                torch.manual_seed(0)
                batch, model = eight_pairs(), Recurrent(cfg)
                opt = torch.optim.Adam(model.parameters(), lr=0.02)
                for _ in range(60):
                    loss = F.cross_entropy(model(batch.source, batch.target_input).transpose(1, 2), batch.labels,
                        ignore_index=cfg.pad)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                return model
        """),
        correct("until nothing is wrong", """
            import dataclasses

            from transformer_ref.data.eight_pairs import eight_pairs
            from transformer_ref.model.transformer import Transformer


            def overfit_one_batch(cfg):
                torch.manual_seed(5)
                batch = eight_pairs()
                model = Transformer(dataclasses.replace(cfg, d_model=24, heads=2, d_ff=48, dropout=0.1,
                    norm_first=False))
                opt = torch.optim.Adam(model.parameters(), lr=0.008)
                real = batch.labels != cfg.pad
                for step in range(400):
                    model.train()
                    scores = model(batch.source, batch.target_input)
                    loss = -scores.log_softmax(-1).gather(-1, batch.labels[..., None])[..., 0][real].mean()
                    model.zero_grad()
                    loss.backward()
                    opt.step()
                    if loss < 0.05:
                        break
                return model
        """),
    ),
    omits={
        "a second call": "a training run is too expensive to repeat",
        "precision": "training does not work with numbers of 100,000,000",
    },
    hints=(
        "it is the step of 10.6, again and again on the same three tensors: `batch.source`, `batch.target_input` and "
        "`batch.labels`. When has the model learned them?",
        "source (8, S), target input and labels (8, T); logits (8, T, V). A model of d_model 32 needs some twenty "
        "steps of Adam at a rate of 0.01.",
        "a model of cfg; an optimizer of its parameters; many times: logits, mean loss over the real labels, reset the "
        "gradients, backward, step; return the model.",
    ),
)  # fmt: skip
