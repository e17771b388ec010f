"""10.6: one training step, written once and right."""

from typing import Any

import torch
from torch import nn

from autograder.catalogue import families
from autograder.catalogue.ch10_training.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import JudgedParts
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, normal, second_call, visible
from autograder.inside.fixtures.base import SmallModel
from transformer_ref.training.loss import masked_cross_entropy

STEP, CLIP, AVERAGE, FORCING = sections("step clip average forcing")
WORDS, WIDTH = (13, 11), 6  # the vocabularies and the width of the model that is trained


def train_step(model: nn.Module, batch: tuple, opt: torch.optim.Optimizer, pad: int, clip: float) -> dict:
    """Update the weights once; returns the loss of the batch before the update."""
    source, target_input, labels = batch
    model.train()
    opt.zero_grad()
    loss = masked_cross_entropy(model(source, target_input), labels, pad)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    opt.step()
    return {"loss": loss.item()}


def inputs(
    g: torch.Generator, B: int, S: int, T: int, pad: int = 0, clip: float = 0.3, steps: int = 3, momentum: float = 0.0,
    stale: float = 0.0, training: bool = True,
) -> Case:
    """A model of drawn weights, a batch whose sentences differ in length, and an optimizer."""
    sizes = {"source": (WORDS[0], WIDTH), "target": (WORDS[1], WIDTH), "hidden": (WIDTH, WIDTH),
             "scores": (WIDTH, WORDS[1])}
    given: dict[str, Any] = {name: normal(g, *size) for name, size in sizes.items()}
    lengths = torch.randint(1, T, (B,), generator=g) if T > 1 else torch.ones(B, dtype=torch.int64)
    lengths[0] = T
    if B > 1:
        lengths[-1] = max(T // 3, 1)
    over = torch.arange(T) >= lengths[:, None]  # (batch, target)
    source = torch.randint(1, WORDS[0], (B, S), generator=g)
    labels = torch.randint(1, WORDS[1], (B, T), generator=g)
    if pad:
        labels[0, 0] = 0  # which is a word then
    labels = labels.where(labels != pad, (pad + 1) % WORDS[1]).masked_fill(over, pad)
    begun = torch.cat([torch.full((B, 1), 1 if pad != 1 else 2), labels[:, :-1]], dim=1)
    given |= {"training": training, "stale": stale}
    return Case((given, (source, begun, labels), {"lr": 0.7, "momentum": momentum, "steps": steps}, pad,
                 clip))  # fmt: skip


def what_became(case: Case, result: Any) -> Any:
    """The returned losses and the weights afterwards; of each dictionary only the loss counts."""
    if not isinstance(result, dict) or not isinstance(result.get("returned"), list):
        return result
    for each in result["returned"]:
        if isinstance(each, dict) and "loss" not in each:
            return Remark("the dictionary that came back has no key 'loss'")
        if not isinstance(each, dict):
            return Remark(f"{_in_words(each)} came back, where a dictionary with the loss is expected")
    losses, weights = [each["loss"] for each in result["returned"]], result.get("weights")
    judged = {f"loss of step {number}": loss for number, loss in enumerate(losses, 1)}
    after = weights.items() if isinstance(weights, dict) else ()
    judged |= {f"the weight {name} after the last step": weight for name, weight in after}
    return JudgedParts(judged, {"diary": result.get("diary"), "losses": losses, "weights": weights})


def _in_words(value: Any) -> str:
    if value is None or type(value) in (int, float):
        return "None" if value is None else number(value)
    kinds = {torch.Tensor: "a tensor", tuple: "a tuple", list: "a list", str: "a text", bool: "a bool"}
    return kinds.get(type(value), "something else")


def losses(evidence: Evidence) -> str:
    """The losses of the steps, and the correct ones."""
    got, wanted = (", ".join(number(loss) for loss in seen.told["losses"]) for seen in (evidence.got,
        evidence.expected))
    return f"The losses of your steps are {got}; they should be {wanted}."


def first_step(evidence: Evidence) -> list[str]:
    """The calls of the model and the optimizer in the first step, in order."""
    told = evidence.got.told["diary"]
    ends = [place for place, each in enumerate(told) if each.startswith("returned")]
    return told[: ends[0]] if ends else told


def diary(evidence: Evidence) -> str:
    """The calls of the first step as a sentence."""
    return f"In your first step: {', then '.join(first_step(evidence)) or 'nothing'}."


def norm_of(evidence: Evidence, what: str) -> list[float]:
    """The norms of the gradients whenever this happened."""
    return [float(each.rpartition(" ")[2]) for each in evidence.got.told["diary"] if each.startswith(what)]


def norms(evidence: Evidence) -> str:
    """The norms of the gradients at the optimizer's step."""
    return (f"When your optimizer stepped, its gradients had the norm {norm_of(evidence, 'step')[0]:.3g}; "
            f"the limit is {evidence.arguments[4]:g}.")  # fmt: skip


def norms_added_up(evidence: Evidence) -> bool | None:
    """Whether the gradients of the first step are as long as if the sum of all absolute numbers, or of the norms of the
    matrices, were brought down to clip; None where they have the correct length."""
    (at, *_), (wanted, *_) = norm_of(evidence, "step"), [
        float(each.rpartition(" ")[2]) for each in evidence.expected.told["diary"] if each.startswith("step")]
    if abs(at - wanted) < 0.002:
        return None
    given, (source, begun, labels), _, pad, clip = evidence.arguments
    model = SmallModel({name: value for name, value in given.items() if isinstance(value, torch.Tensor)})
    masked_cross_entropy(model(source, begun), labels, pad).backward()
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    length = float(torch.stack([each.norm() for each in gradients]).norm())
    sums = (float(sum(each.abs().sum() for each in gradients)), float(sum(each.norm() for each in gradients)))
    return any(abs(at - length * min(1.0, clip / total)) < 0.002 for total in sums)


def never_steps(evidence: Evidence) -> bool:
    """Whether no weight changed and the optimizer was not called."""
    before, after = evidence.arguments[0], evidence.got.told["weights"]
    return not norm_of(evidence, "step") and all(torch.equal(before[name], weight) for name, weight in after.items())


def steps_before_backward(evidence: Evidence) -> bool:
    """Whether the step comes first in the first step, if backward comes at all."""
    kinds = [each.partition(",")[0] for each in first_step(evidence)]
    return "step" in kinds and ("backward" not in kinds or kinds.index("step") < kinds.index("backward"))


def clipped_too_late(evidence: Evidence) -> bool:
    """Whether the gradients were clipped only after the step."""
    limit, at, after = evidence.arguments[4], norm_of(evidence, "step"), norm_of(evidence, "returned")
    return bool(at) and max(at) > 1.001 * limit and max(after) <= 1.001 * limit and max(after) > 0.9 * limit


def keeps_a_graph(evidence: Evidence) -> bool:
    return "a graph came back" in evidence.got.told["diary"]


RIGHT = answer("""
    def train_step(model, batch, opt, pad, clip):
        src, tgt_in, labels = batch
        model.train()
        opt.zero_grad()
        logits = model(src, tgt_in)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        opt.step()
        return {"loss": loss.item()}
""")
TRAIN, ZERO, FORWARD = "model.train()", "opt.zero_grad()", "logits = model(src, tgt_in)"
LOSS = "loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad)"
BACKWARD, CLIPPED, MOVE = "loss.backward()", "nn.utils.clip_grad_norm_(model.parameters(), clip)", "opt.step()"
RETURNED = 'return {"loss": loss.item()}'

EXERCISE = Exercise(
    id="train-step", number="10.6", difficulty=2, minutes=20, visible_points=2, hidden_points=4,
    reference=train_step, normalize=what_became, harness="training step", section=STEP,
    probes=(
        visible("three steps on one batch", inputs, 3, 5, 4, 0, 0.3),
        visible("a model that comes in evaluation mode", inputs, 2, 4, 5, 0, 50.0, 2, training=False),
        hidden("gradients that were there before", inputs, 3, 4, 6, 0, 0.3, 2, stale=5.0,
               announced_by="Its weights may come with gradients"),
        hidden("gradients below the limit", inputs, 2, 6, 4, 0, 1000.0, 2, announced_by="at most `clip`"),
        hidden("an optimizer with momentum", inputs, 3, 5, 7, 0, 0.4, 3, 0.9,
               announced_by="opt: any optimizer whose step() needs no closure"),
        hidden("pad = 6", inputs, 4, 3, 5, 6, 0.3, 2, announced_by="pad: the pad's id, any id"),
        hidden("one sentence of one word", inputs, 1, 1, 1, 0, 0.3, 2, announced_by=PROMISED),
        hidden("in evaluation mode, with old gradients", inputs, 2, 4, 3, 0, 0.2, 2, 0.5, -2.0, False,
               announced_by="It may come in evaluation mode"),
        second_call(inputs, 2, 5, 6, 0, 0.3, 2, checks=UNTOUCHED),
    ),
    mistakes=(
        mistake("a step before backward", RIGHT.without(MOVE).before(BACKWARD, MOVE), STEP,
            """The optimizer stepped before backward had computed anything: it moved by the gradients of the step
            before, or not at all.""", quotes=diary, shows=steps_before_backward),
        mistake("no step", RIGHT.without(MOVE), STEP,
            "The weights never move: the optimizer never takes a step.", quotes=diary, shows=never_steps),
        mistake("gradients never forgotten", RIGHT.without(ZERO), STEP,
            """Gradients of earlier steps are still there: backward *adds* to .grad, so each step also follows the
            gradients of earlier steps. Set them to zero first.""", quotes=diary),
        mistake("gradients forgotten at the end", RIGHT.without(ZERO).after(MOVE, ZERO), STEP,
            """The gradients are reset at the end of the step only. Those that the weights come with, from before the
            first step, still count: reset them before backward."""),
        mistake("gradients forgotten after backward", RIGHT.without(ZERO).after(BACKWARD, ZERO), STEP,
            """The gradients were computed, and were zero again before the optimizer could use them: no weight changes.
            Reset them *before* backward.""", quotes=diary),
        mistake("two steps", RIGHT.after(MOVE, MOVE), STEP, "The optimizer stepped twice. Once for each batch.",
                quotes=diary),
        mistake("backward twice", RIGHT.but(BACKWARD, "loss.backward(retain_graph=True)\n    loss.backward()"), STEP,
            "backward was called twice, and the second time adds to the first: gradients twice as long, before they "
            "are clipped."),
        mistake("clipped after the step", RIGHT.without(CLIPPED).after(MOVE, CLIPPED), CLIP,
            "The gradients were clipped after the step, when they had done their work. Clip between backward and step.",
            quotes=norms, shows=clipped_too_late),
        mistake("no clipping", RIGHT.without(CLIPPED), CLIP,
            """The gradients were not clipped, or clipped before backward had computed them. One batch with a huge
            gradient then throws the weights far away: together they may be at most clip long, when the step is
            taken.""", quotes=norms),
        mistake("each number clipped", RIGHT.but(CLIPPED, "nn.utils.clip_grad_value_(model.parameters(), clip)"), CLIP,
            """Each *number* of the gradient was cut at clip, which changes the direction of the gradient. Limit the
            norm of all gradients together; the direction stays.""", quotes=norms),
        mistake("each matrix clipped by itself",
                RIGHT.but(CLIPPED, "for p in model.parameters():\n        nn.utils.clip_grad_norm_(p, clip)"), CLIP,
            """Each matrix was clipped by itself, so together they are still longer than clip, and in another direction.
            One norm for all gradients together.""", quotes=norms),
        mistake("always as long as the limit", RIGHT.but(CLIPPED, """
                  norm = sum((p.grad ** 2).sum() for p in model.parameters()) ** 0.5
                  for p in model.parameters():
                      p.grad *= clip / norm
            """), CLIP, "Gradients that are shorter than clip were made longer. clip is a limit: what is below it "
                        "stays as it is.", quotes=norms),
        mistake("another norm", RIGHT.but(CLIPPED, CLIPPED.replace("clip)", "clip, norm_type=1.0)")), CLIP,
            "What was compared with clip is a different number than the total norm: the absolute numbers were added "
            "up, or the norms of the matrices. The total norm is the root of the sum of the squares.", quotes=norms,
            shows=norms_added_up),
        mistake("the largest number limited",
                RIGHT.but(CLIPPED, CLIPPED.replace("clip)", 'clip, norm_type=float("inf"))')), CLIP,
            "The largest number of all gradients was brought down to clip. The total norm is the root of the sum of "
            "the squares.", quotes=norms),
        mistake("the square of the norm", RIGHT.but(CLIPPED, """
    squares = sum(float(p.grad.pow(2).sum()) for p in model.parameters())
    for p in model.parameters():
        p.grad.mul_(min(1.0, clip / squares))"""), CLIP,
            "The sum of the squares was taken for the norm. The total norm is its root."),
        mistake("clip 1 written in", RIGHT.but(CLIPPED, CLIPPED.replace("clip)", "1.0)")), CLIP,
            "The gradients were clipped at 1 whatever clip is. It is the fifth argument.", quotes=norms),
        mistake("in evaluation mode", RIGHT.but(TRAIN, "model.eval()"), STEP,
            "The model was trained in evaluation mode, where dropout is switched off. Training mode first.",
            quotes=diary),
        mistake("the mode left as it was", RIGHT.without(TRAIN), STEP,
            "The model came in evaluation mode and was trained in it: dropout never acted. Put it in "
            "training mode first.", quotes=diary),
        mistake("training mode after the forward pass", RIGHT.without(TRAIN).after(FORWARD, TRAIN), STEP,
            """The first logits were computed in evaluation mode, where dropout is switched off: the model was put in
            training mode too late. Training mode comes before the model is called.""", quotes=diary),
        mistake("pads counted", RIGHT.but(", ignore_index=pad", ""), AVERAGE,
            "The pads count as words, in the loss and in the gradients. The mean is only over the real labels.",
            quotes=losses),
        families.PAD_0_WRITTEN_IN(RIGHT.but("ignore_index=pad", "ignore_index=0"),
            AVERAGE, function="loss leaves out", which="fourth"),
        mistake("the mean of the sentences' means", RIGHT.but(LOSS, """
                  costs = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=pad, reduction="none")
                  loss = (costs.sum(1) / (labels != pad).sum(1)).mean()
            """), AVERAGE, """Each sentence was averaged by itself, so a word of a short sentence weighs more, in the
            loss and in the gradients. Average over the tokens of the batch.""", quotes=losses),
        mistake("sentences one by one, not divided by tokens", RIGHT.but(f"{FORWARD}\n    {LOSS}\n    {BACKWARD}", """
                  total = 0.0
                  for b in range(len(src)):
                      logits = model(src[b:b + 1], tgt_in[b:b + 1])
                      loss = F.cross_entropy(logits[0], labels[b], ignore_index=pad)
                      loss.backward()
                      total += loss.item()
            """.rstrip()).but("loss.item()}", "total / len(src)}"), AVERAGE,
            """The sentences went through one by one, and the gradients of their means were added up. Divide each by the
            tokens of the whole *batch*, or the step depends on how the batch was cut.""", quotes=losses),
        mistake("the sum", RIGHT.but("ignore_index=pad", 'ignore_index=pad, reduction="sum"'), AVERAGE,
            "This is the sum of the costs, not their mean over the real tokens.", quotes=losses),
        mistake("divided by all places",
                RIGHT.but("ignore_index=pad)", 'ignore_index=pad, reduction="sum") / labels.numel()'), AVERAGE,
            "The pads were left out of the sum and still counted when it was divided. Divide by the number "
            "of real tokens.", quotes=losses),
        mistake("smoothed labels", RIGHT.but("ignore_index=pad", "ignore_index=pad, label_smoothing=0.1"), AVERAGE,
            "The loss was taken against smoothed labels. Here it is the mean cost of the labels "
            "themselves, as in 10.2.", quotes=losses),
        mistake("softmax before the loss", RIGHT.but("logits.flatten", "logits.softmax(-1).flatten"), STEP,
            "Softmax was applied twice: cross_entropy expects the logits themselves.", quotes=losses),
        mistake("the labels as input", RIGHT.but("model(src, tgt_in)", "model(src, labels)"), FORCING,
            "The model was given the labels to read: it only has to copy. Its input is the second part of the batch.",
            quotes=losses),
        mistake("the input as labels", RIGHT.but("labels.flatten()", "tgt_in.flatten()"), FORCING,
            "The model had to predict the word that it had just read. It has to predict the labels, the third part of "
            "the batch.", quotes=losses),
        mistake("shifted once more",
                RIGHT.but(LOSS, LOSS.replace("logits.flatten", "logits[:, :-1].flatten").replace("labels.flatten",
                    "labels[:, 1:].flatten")),
            FORCING, "Each position was compared with the label of the next one. Input and labels come shifted "
                     "already.",
            quotes=losses),
        mistake("a tensor", RIGHT.but("loss.item()", "loss"), STEP,
            """The loss came back as a tensor, and with it the graph of the whole step: collecting such losses keeps
            all of them in memory. Return a plain number.""", shows=keeps_a_graph),
        mistake("a tensor without a graph", RIGHT.but("loss.item()", "loss.detach()"), STEP,
            "The loss came back as a tensor. Return a plain number, a float."),
        mistake("the number alone", RIGHT.but('{"loss": loss.item()}', "loss.item()"), STEP,
            "The loss came back by itself. Return a dictionary that has it under `loss`: training loops often add more "
            "to it, such as the norm of the gradients."),
        mistake("nothing", RIGHT.without(RETURNED), STEP, "Nothing came back. Return a dictionary with the loss."),
        mistake("another key", RIGHT.but('"loss"', '"Loss"'), STEP,
                "The dictionary that came back has no `loss`, spelled exactly so."),
        mistake("the loss after the step", RIGHT.but(RETURNED, """
                  with torch.no_grad():
                      loss = F.cross_entropy(model(src, tgt_in).flatten(0, 1), labels.flatten(), ignore_index=pad)
                  return {"loss": loss.item()}
            """), STEP, """The loss was computed once more after the step. It costs another pass through the model;
                        return the one that the step was computed from.""", quotes=losses),
        mistake("the loss after the step, in evaluation mode", RIGHT.but(RETURNED, """
                  model.eval()
                  with torch.no_grad():
                      loss = F.cross_entropy(model(src, tgt_in).flatten(0, 1), labels.flatten(), ignore_index=pad)
                  return {"loss": loss.item()}
            """), STEP, """The loss was computed once more after the step, and in evaluation mode. Return the one that
            the step was computed from.""", quotes=losses),
        mistake("the loss after the step, over all places",
                RIGHT.but("ignore_index=pad)", 'ignore_index=pad, reduction="sum") / labels.numel()').but(RETURNED, """
                  with torch.no_grad():
                      loss = F.cross_entropy(model(src, tgt_in).flatten(0, 1), labels.flatten(), ignore_index=pad,
                          reduction="sum") / labels.numel()
                  return {"loss": loss.item()}
            """), AVERAGE, """Your loss is computed after the step, and divided by the number of all positions, pads
            included. Return the one that the step was computed from, and average only over the real labels.""",
            quotes=losses),
        mistake("the perplexity", RIGHT.but("loss.item()", "math.exp(loss.item())"), STEP,
            "This is e to the power of the loss, the perplexity. Return the loss itself.", quotes=losses),
        mistake("rounded", RIGHT.but("loss.item()", "round(loss.item(), 2)"), STEP,
                "The loss was rounded. Return it as it is.", quotes=losses),
        mistake("moved by hand", RIGHT.but(MOVE, """
                  with torch.no_grad():
                      for p in model.parameters():
                          p -= opt.param_groups[0]["lr"] * p.grad
            """), STEP, "The weights were moved by hand, past the optimizer. The state that it keeps from step to "
                        "step, such as its momentum, has no effect then."),
        mistake("Adam", RIGHT.before(MOVE, "opt = torch.optim.Adam(model.parameters(), lr=1e-3)"), STEP,
            "A new optimizer was made in every step. Use the one that is given: it keeps its memory from step to step.",
            quotes=diary),
        mistake("no gradients", RIGHT.but(FORWARD, "with torch.no_grad():\n        logits = model(src, tgt_in)"), STEP,
            "Your code stops at backward: the model was called under no_grad (or its result was detached), so the "
            "loss is not connected to the weights by a graph."),
    ),
    correct=(
        correct("in order", RIGHT),
        correct("gradients forgotten just before backward",
                RIGHT.without(ZERO).before(BACKWARD, "opt.zero_grad(set_to_none=False)")),
        correct("the model forgets its gradients", RIGHT.but(ZERO, "model.zero_grad()")),
        correct("clipped by hand", """
            def train_step(model, batch, optimizer, pad_id, limit):
                source, target, wanted = batch
                model.train(True)
                for p in model.parameters():
                    p.grad = None
                logp = F.log_softmax(model(source, target), dim=-1)
                cost = -logp.gather(2, wanted.unsqueeze(2)).squeeze(2)
                real = wanted.ne(pad_id)
                loss = (cost * real).sum() / real.sum()
                loss.backward()
                with torch.no_grad():
                    norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in model.parameters() if p.grad is not None))
                    if norm > limit:
                        for p in model.parameters():
                            if p.grad is not None:
                                p.grad.mul_(limit / norm)
                optimizer.step()
                return dict(loss=float(loss), norm=float(norm), tokens=int(real.sum()))
        """),
        correct("sentence by sentence", """
            def train_step(model, batch, opt, pad, clip):
                src, tgt_in, labels = batch
                model.train()
                opt.zero_grad()
                tokens, total = (labels != pad).sum(), 0.0
                for b in range(len(src)):
                    logits = model(src[b:b + 1], tgt_in[b:b + 1])[0]
                    loss = F.cross_entropy(logits, labels[b], ignore_index=pad, reduction="sum") / tokens
                    loss.backward()
                    total += loss.item()
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=clip)
                opt.step()
                return {"loss": total}
        """),
        correct("the optimizer's own weights", """
            def train_step(model, batch, opt, pad, clip):
                model.train()
                opt.zero_grad()
                criterion = nn.CrossEntropyLoss(ignore_index=pad)
                loss = criterion(model(batch[0], batch[1]).permute(0, 2, 1), batch[2])
                loss.backward()
                weights = [p for group in opt.param_groups for p in group["params"]]
                nn.utils.clip_grad_norm_(weights, clip)
                opt.step()
                opt.zero_grad()
                return {"loss": loss.detach().item()}
        """),
        correct("gradients asked for", """
            def train_step(model, batch, opt, pad, clip):
                src, tgt_in, labels = batch
                model.train()
                weights = list(model.parameters())
                logits = model(src, tgt_in)
                real = labels != pad
                loss = F.cross_entropy(logits[real], labels[real])
                for weight, gradient in zip(weights, torch.autograd.grad(loss, weights)):
                    weight.grad = gradient
                total = nn.utils.clip_grad_norm_(weights, clip)
                opt.step()
                return {"loss": loss.tolist(), "gradient": total}
        """),
        correct("a closure", """
            def train_step(model, batch, opt, pad, clip):
                src, tgt_in, labels = batch
                model.train()
                def closure():
                    opt.zero_grad()
                    loss = F.cross_entropy(model(src, tgt_in).transpose(1, 2), labels, ignore_index=pad)
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                    return loss
                return {"loss": opt.step(closure).item()}
        """),
    ),
    omits={"precision": "a training step does not work with numbers of 100,000,000"},
    hints=(
        "what must be reset before anything is computed? What is limited just before the weights are updated?",
        "model(src, tgt_in) gives (B, T, V); labels (B, T); the loss is one number, a gradient for every weight has "
        "its shape.",
        "training mode; reset the gradients; logits; mean loss over the real labels; backward; clip the total norm; "
        "step; the loss as a plain number under `loss`.",
    ),
)  # fmt: skip
