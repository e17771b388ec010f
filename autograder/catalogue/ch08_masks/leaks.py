"""08.5: a test that catches a model at looking into the future."""

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch08_masks import models
from autograder.catalogue.ch08_masks.models import Reader, V, attention, past
from autograder.catalogue.ch08_masks.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import Family
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import bools
from autograder.catalogue.probes import UNTOUCHED, hidden, second_call, visible

(LEAK,) = sections("leak")


def leaks(model, ids: Tensor, t: int) -> bool:
    """Whether changing the tokens from t on changes the model's outputs before t."""
    training = model.training
    model.eval()
    try:
        changed = ids.clone()
        changed[:, t:] = (changed[:, t:] + 1) % model(ids).shape[-1]
        before, after = model(ids)[:, :t], model(changed)[:, :t]
        return not torch.allclose(before, after, atol=1e-4)
    finally:
        model.train(training)


def sound(g: torch.Generator, mix, B: int, T: int, t: int, **options) -> Case:
    return Case((Reader(mix, **options), torch.randint(V, (B, T), generator=g), t))


def leaking(g: torch.Generator, mix, B: int, T: int, t: int, **options) -> Case:
    return sound(g, mix, B, T, t, **options)


def sized(g: torch.Generator, mix, B: int, T: int, t: int, later: int | None = None, **options) -> Case:
    """A causal or a leaking model. Its sizes are drawn, so that they do not show which; the distance of t from the end
    stays. later: the id of all tokens from t on, where a test that writes it changes nothing; None draws them."""
    sentences, words = torch.randint(0, 4, (2,), generator=g).tolist()
    case = sound(g, mix, B + sentences, T + words, t + words, **options)
    if later is not None:
        case.arguments[1][:, t + words:] = later
    return case


def full_of_the_highest(g: torch.Generator) -> Case:
    """Ids that are all the largest of the vocabulary, so that adding 1 exceeds it."""
    return Case((Reader(models.norm_over_time), torch.full((2, 5), V - 1), 3))


def full_of_zeros(g: torch.Generator, mix, B: int = 2, T: int = 5) -> Case:
    """Ids that are all 0, where writing a 0 changes nothing."""
    return Case((Reader(mix), torch.zeros(B, T, dtype=torch.int64), 2))


def counted(g: torch.Generator, sign: int, B: int, T: int) -> Case:
    """Ids that are all 0. If all from 2 on are changed at once, every score moves in the same direction."""
    t = 2
    return Case((models.Count(sign, t, missing=sign > 0), torch.zeros(B, T, dtype=torch.int64), t))


def everything(query: Tensor, key: Tensor) -> Tensor:
    return key == key


def one_more(query: Tensor, key: Tensor) -> Tensor:
    return key <= query + 1


def first_reads_last(query: Tensor, key: Tensor) -> Tensor:
    """Causal except that the first word also reads the last one."""
    return past(query, key) | ((query == 0) & (key == key.max()))


def future(query: Tensor, key: Tensor) -> Tensor:
    return key >= query


def not_all_changed(evidence: Evidence) -> bool | None:
    """Whether a leak was missed that shows only if all tokens are changed, or where there is only one to change; None
    where the result is correct, and something else fails."""
    model, ids, t = evidence.arguments
    if evidence.got is evidence.expected:
        return None
    missed = evidence.expected is True and evidence.got is False
    return missed and (isinstance(model, models.Count) or ids.shape[1] - t == 1)


def many_truth_values(evidence: Evidence) -> bool:
    """Whether a whole tensor of True and False came back, whose size and values depend on the tokens chosen."""
    return isinstance(evidence.got, Tensor) and evidence.got.dtype == torch.bool and evidence.got.numel() > 1


RIGHT = answer("""
    def leaks(model, ids, t):
        was_training = model.training
        model.eval()
        vocabulary = model(ids).shape[-1]
        changed = ids.clone()
        changed[:, t:] = (ids[:, t:] + 1) % vocabulary
        before = model(ids)[:, :t]
        after = model(changed)[:, :t]
        gap = (before - after).abs().max()
        model.train(was_training)
        return bool(gap > 1e-4)
""")
# fmt: off
V_FROM_ELSEWHERE = Family("the largest id as V", """The size of the vocabulary is the last size of the logits, and
    not the largest id of this batch or the length of the sentence. That id may be 0, and dividing by 0 is an error. The
    length may be larger than the vocabulary, and then the model gets ids that it does not have.""")
# fmt: on
CHANGE, GAP = "changed[:, t:] = (ids[:, t:] + 1) % vocabulary", "gap = (before - after).abs().max()"
BEFORE, AFTER = "before = model(ids)[:, :t]", "after = model(changed)[:, :t]"

EXERCISE = Exercise(
    id="leaks", number="08.5", difficulty=3, minutes=35, visible_points=1, hidden_points=3,
    reference=leaks, normalize=bools, section=LEAK,
    omits={"a length of one": "a sentence of one word has nothing before its last",
           "precision": "a difference is small or it is not"},
    probes=(
        visible("a sound model: causal attention", sound, attention(past), 2, 6, 3),
        visible("a leak: no mask", leaking, attention(everything), 2, 6, 3),
        visible("a leak: no mask, ids all 0", full_of_zeros, attention(everything)),
        hidden("a sound model: recurrent", sized, models.recurrent, 3, 7, 4, checks=UNTOUCHED,
               announced_by="must pass sound models"),
        visible("a sound model that never reads its own position", sound, models.before_only, 2, 6, 3, bare=True),
        visible("the same at the last position", sound, models.before_only, 2, 5, 4, bare=True),
        hidden("a sound model with dropout, in training mode", sized, attention(past), 2, 6, 4,
               dropout=0.3, training=True, checks=UNTOUCHED, announced_by="It may come in training mode"),
        hidden("a sound model with noise in its last digits", sized, models.by_fourier, 2, 9, 5, checks="inputs",
               announced_by="Sound models may differ by rounding"),
        hidden("a leak: one sentence", leaking, attention(first_reads_last), 1, 4, 2, announced_by="ids: (B, T)"),
        second_call(sound, attention(past), 2, 5, 3, name="a sound model, after a different one"),
        hidden("a leak: one word of the future open", sized, attention(one_more), 2, 6, 3, later=1,
               checks="inputs",
               announced_by="many kinds of leaking ones"),
        hidden("a leak: the mask the wrong way round", sized, attention(future), 3, 5, 2, later=2,
               announced_by="many kinds of leaking ones"),
        hidden("a leak: the mask after the softmax", sized, attention(past, hide=False), 2, 5, 4, later=3,
               announced_by="many kinds of leaking ones"),
        hidden("a leak: softmax over the queries", sized, attention(past, axis=-2), 2, 6, 3, later=4,
               announced_by="many kinds of leaking ones"),
        hidden("a leak: heads cut by view", sized, models.heads_by_view, 2, 6, 5, later=5,
               announced_by="many kinds of leaking ones"),
        hidden("a leak: a norm over the words, ids all the highest", full_of_the_highest, checks="inputs",
               announced_by="its ids are 0 to V - 1"),
        hidden("a leak: what one score gains others lose", sized, attention(first_reads_last), 2, 6, 3, even=True,
               later=6, checks="inputs",
               announced_by="many kinds of leaking ones"),
        hidden("a leak: read backwards, ids all 0", full_of_zeros, models.backwards, 3, 4,
               announced_by="its ids are 0 to V - 1"),
        hidden("a leak: a faint one", sized, models.faint, 12, 20, 19, later=V - 1, marked=True, checks="inputs",
               announced_by="by less than 0.0001"),
        hidden("a leak: only into the position before", sized, models.last_place_only, 2, 6, 5, later=7,
               announced_by="at all positions before t"),
        hidden("a leak: only into the last position but two", sized, models.two_on, 2, 9, 8, later=8,
               announced_by="at all positions before t"),
        visible("a leak: reads only what comes after", leaking, models.after_only, 2, 2, 1, bare=True),
        hidden("a leak: other words raise every score", counted, 1, 1, 8, checks="inputs",
               announced_by="many kinds of leaking ones"),
        hidden("a leak: other words lower every score", counted, -1, 1, 7,
               announced_by="many kinds of leaking ones"),
        hidden("a leak: in the first sentence only", sized, models.first_sentence_only, 3, 5, 2, checks="inputs",
               announced_by="Compare the logits of all sentences"),
        hidden("a leak: every position sees the last word", sized, models.reads_the_last, 2, 6, 2, later=9,
               announced_by="change all tokens from t on"),
        hidden("a leak: in the last sentence only", sized, models.last_sentence_only, 4, 5, 2,
               announced_by="Compare the logits of all sentences"),
    ),
    mistakes=(
        mistake("all places compared",
                RIGHT.but("model(ids)[:, :t]", "model(ids)").but("model(changed)[:, :t]", "model(changed)"), LEAK,
            """Your test reports sound models. Compare the outputs before and after the change, at the positions before
            t only: those from t on *may* change, since their own tokens changed. The positions are on axis 1; a single
            slice in brackets cuts axis 0, the sentences."""),
        mistake("the changed place compared too", RIGHT.but("model(ids)[:, :t]", "model(ids)[:, :t + 1]").but(
                  "model(changed)[:, :t]", "model(changed)[:, :t + 1]"), LEAK,
            """You reported a sound model. Token t itself was changed, so the logits at position t may change. Only
            those at the positions *before* t must stay as they are."""),
        mistake("the places after compared", RIGHT.but("model(ids)[:, :t]", "model(ids)[:, t:]").but(
                  "model(changed)[:, :t]", "model(changed)[:, t:]"), LEAK,
            "You compared the positions from t on. These may change; the ones before t may not."),
        mistake("only the first place", RIGHT.but("model(ids)[:, :t]", "model(ids)[:, :1]").but(
                  "model(changed)[:, :t]", "model(changed)[:, :1]"), LEAK,
            """You compared only position 0. A model that sees one word ahead only shows it at the position just before
            t."""),
        mistake("only the place before", RIGHT.but("model(ids)[:, :t]", "model(ids)[:, t - 1:t]").but(
                  "model(changed)[:, :t]", "model(changed)[:, t - 1:t]").but(CHANGE,
                      "changed[:, -1] = (ids[:, -1] + 1) % vocabulary"), LEAK,
            """You compared only one position, and changed only the last token. Compare all positions before t, and
            change all tokens from t on."""),
        mistake("only the first sentence", RIGHT.but("(before - after)", "(before - after)[0]"), LEAK,
            "Not all sentences were changed, or compared. A leak may show in only one of them."),
        mistake("zeros written", RIGHT.but(CHANGE, "changed[:, t:] = 0"), LEAK,
            """Where the tokens are 0 already, yours stay 0, and no leak can show. If you fill in a fixed id, it was
            there already; if you take V from the ids, take it from the logits."""),
        mistake("the highest id written", RIGHT.but(CHANGE, "changed[:, t:] = vocabulary - 1"), LEAK,
            """Where the tokens are the highest id already, nothing changes, and no leak can show. Replace every token
            by a different one."""),
        mistake("beyond the vocabulary", RIGHT.but(CHANGE, "changed[:, t:] = ids[:, t:] + 1"), LEAK,
            """One more than the highest id is not a token, and the model stops. The size of the vocabulary is the last
            size of the logits. After the highest id, wrap around to 0."""),
        mistake("mixed tokens", RIGHT.but(CHANGE, "changed[:, t:] = ids[:, t:].flip(1)"), LEAK,
            """You changed the order of the tokens. Where they are all alike nothing changed, and a model that does not
            look at the order hides its leak."""),
        mistake("nothing changed", RIGHT.without(CHANGE), LEAK,
            """Your test calls every model sound. Do the second ids really differ from the first ones, and do you
            compare the logits for both? A test that cannot fail tests nothing."""),
        mistake("nothing returned", RIGHT.but("return bool(gap > 1e-4)", "found = bool(gap > 1e-4)"), LEAK,
            """Your function returned nothing. print only shows a result: give it back with `return`, at the end of
            every path."""),
        mistake("only larger logits", RIGHT.but(".abs()", ""), LEAK,
            """A leak that moves all logits in one direction was missed, so the sign of the difference decides in your
            test. A change of either sign is a leak: compare absolute differences."""),
        mistake("only the position before t", RIGHT.but("model(ids)[:, :t]", "model(ids)[:, t - 1]").but(
                  "model(changed)[:, :t]", "model(changed)[:, t - 1]"), LEAK,
            """A leak into an earlier position was missed: you compared only position t - 1. Compare all positions
            before t."""),
        mistake("the sentence cut at t", RIGHT.without(CHANGE).but("model(changed)", "model(changed[:, :t])"), LEAK,
            """Cutting the sentence at t is not the same as changing its tokens. A leaking model that gives the same
            logits for *missing* tokens as for the original ones passes such a test. Keep the length, and change every
            token from t on."""),
        mistake("every logit must move", RIGHT.but(".max()", ".min()"), LEAK,
            """Your test reports a leak only if every logit before t moves. A leak may show in one sentence, or at one
            position: a single logit that moves is enough."""),
        mistake("a faint leak missed", RIGHT.but(".max()", ".mean()"), LEAK,
            """A faint leak was missed: it changes one logit, at one position of one sentence. Either you allow too
            large a difference, or you average over logits that did not change, or you require that several change.
            The largest absolute difference decides."""),
        mistake("the earlier tokens changed", RIGHT.but(CHANGE, "changed[:, :t] = (ids[:, :t] + 1) % vocabulary"), LEAK,
            "The tokens *before* t were changed. Then every model may return different logits. Change the tokens from "
            "t on."),
        mistake("left in training mode", RIGHT.without("model.eval()").without("model.train(was_training)"), LEAK,
            """Your test reports a sound model: in training mode dropout is random at each call, so two outputs for the
            same sentence differ. Switch to evaluation mode first."""),
        families.LEFT_IN_EVALUATION_MODE(RIGHT.without("model.train(was_training)"), LEAK),
        families.PUT_IN_TRAINING_MODE(RIGHT.but("model.train(was_training)", "model.train()"), LEAK),
        mistake("equal to the last digit", RIGHT.but(GAP, "gap = 1.0 - float(torch.equal(before, after))"), LEAK,
            """A sound model was reported because of rounding: the same sum in a different order differs in its last
            digits. Allow a small difference."""),
        mistake("left in training mode, and equal to the last digit",
                RIGHT.without("model.eval()").without("model.train(was_training)").but(
                  GAP, "gap = 1.0 - float(torch.equal(before, after))"), LEAK,
            """Sound models were reported, for two reasons. In training mode dropout is random at each call: switch to
            evaluation mode first. And sums may differ in their last digits: allow a small difference."""),
        mistake("the choices compared", RIGHT.but(GAP, "gap = (before.argmax(-1) != after.argmax(-1)).float().max()"),
                LEAK,
            """Only the token with the highest score was compared. A leak moves the scores long before it moves the
            choice: compare the scores themselves."""),
        mistake("a mean that hides", RIGHT.but(GAP, "gap = (before - after).mean().abs()").but("1e-4", "1e-1"), LEAK,
            """The mean of the differences was taken: positive and negative ones cancel, and one changed position among
            many is averaged away. The largest absolute difference sees it."""),
        mistake("sums compared", RIGHT.but(GAP, "gap = (before.sum() - after.sum()).abs()").but("1e-4", "1e-3"), LEAK,
            """The sums of all scores were compared: one score may gain what a different one loses. The largest absolute
            difference sees each change."""),
        mistake("the token at t left as it was",
                RIGHT.but(CHANGE, "changed[:, t + 1:] = (ids[:, t + 1:] + 1) % vocabulary"), LEAK,
            """A model that peeks one word ahead passes your test. Either token t itself was left as it was, or position
            t - 1, the last one before t, was not compared. Change the tokens from t on, t among them, and compare all
            positions before t."""),
        mistake("sound and leaking exchanged", RIGHT.but("gap > 1e-4", "gap <= 1e-4"), LEAK,
            "True should mean that the model leaks. Yours returns it for sound models."),
        mistake("only token t", RIGHT.but(CHANGE, "changed[:, t] = (ids[:, t] + 3) % vocabulary"), LEAK,
            """Only token t was changed, so a model whose earlier positions read a later token, such as the last of the
            sentence, passes your test. Change all tokens from t on."""),
        V_FROM_ELSEWHERE(RIGHT.but(CHANGE, "changed[:, t:] = (ids[:, t:] + 1) % ids.max()"), LEAK),
        V_FROM_ELSEWHERE(RIGHT.but(CHANGE, "changed[:, t:] = (ids[:, t:] + 1) % ids.shape[1]"), LEAK,
                         name="the length of the sentence as V"),
        mistake("one truth value for each logit", RIGHT.but(
                  "gap = (before - after).abs().max()", "gap = (before - after).abs()").but(
                  "bool(gap > 1e-4)", "gap > 1e-4"), LEAK,
            """You returned a truth value for every logit. Return one for the model: it leaks if any logit at a position
            before t has changed.""", shows=many_truth_values),
        mistake("random tokens", RIGHT.but(
                  CHANGE, "changed[:, t:] = torch.randint(vocabulary, (len(ids), ids.shape[1] - t), "
                          "generator=torch.Generator().manual_seed(1))"), LEAK,
            """A leak was missed that shows only when all tokens from t on are replaced at the same time. Are yours
            drawn at random? Some may be the same as before. Or do you change one token after another? Replace all of
            them at once, each by a token that differs from it.""",
            shows=not_all_changed),
        mistake("how large the leak is", RIGHT.but("bool(gap > 1e-4)", "float(gap)"), LEAK,
            "You returned how large the difference is. Return a plain True or False."),
        mistake("ids changed in place",
                RIGHT.but("ids.clone()", "ids").but(BEFORE, "before = model(ids)[:, :t].clone()"), LEAK,
            """`changed = ids` is the same tensor under another name: writing into it changes both, the caller's too,
            and the two answers are one. Make a copy."""),
    ),
    correct=(
        correct("all tokens from t on", RIGHT),
        correct("a tensor of one bool", RIGHT.but("bool(gap > 1e-4)", "gap > 1e-4")),
        correct("several changes", """
            def leaks(model, ids, t):
                mode = model.training
                model.eval()
                try:
                    with torch.no_grad():
                        base = model(ids)
                        V = base.size(-1)
                        for step in (1, 2, 5):
                            other = torch.cat([ids[:, :t], (ids[:, t:] + step) % V], dim=1)
                            if not torch.allclose(model(other)[:, :t], base[:, :t], rtol=1e-3, atol=1e-3):
                                return True
                        return False
                finally:
                    model.train(mode)
        """),
        correct("one sentence at a time", """
            def leaks(model, ids, t):
                training = model.training
                model.train(False)
                found = False
                base = model(ids)
                for b in range(len(ids)):
                    changed = ids.clone()
                    changed[b, t:] = torch.where(changed[b, t:] == 0, 1, 0)
                    gap = (model(changed) - base)[:, :t].abs().amax().item()
                    found = found or gap > 1e-3
                if training:
                    model.train()
                return found
        """),
        correct("counted down", RIGHT.but("(ids[:, t:] + 1) % vocabulary", "(ids[:, t:] - 1) % vocabulary").but(
            GAP, "gap = torch.norm(before - after)")),
    ),
    hints=(
        "which logits must not change when the tokens from t on change?",
        "ids (B, T) and a changed copy give two (B, T, V); compare their first t positions.",
        "evaluation mode; replace every token from t on by a different one of the vocabulary; largest difference "
        "before t; the mode as it was; is the difference more than noise?",
    ),
)  # fmt: skip
