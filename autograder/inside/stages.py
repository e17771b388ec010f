"""What is set up around an answer where it runs, for exercises that hand over, or get back, what cannot travel.

Gradients flow through a model that is to be trained, so it has to be here. A stage makes it, calls the answer, and says
in plain values what became of it. It never decides anything.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from autograder.inside import counted
from autograder.inside.calling import answered
from autograder.inside.small_encoders import MODEL_STAGES
from autograder.inside.streams import STREAMS


class TrainingStep:
    """Calls an answer with a model of given weights and with an optimizer that keeps a diary."""

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (model's weights and mode, batch, optimizer's settings, pad, clip) -> what became.

        weights: see `SmallModel`; "training": its mode; "stale": what its gradients are before. settings: those of
        torch.optim.SGD, and "steps": how often the answer is called.
        """

        def staged(given: dict[str, Any], batch: tuple, settings: dict[str, Any], pad: int, clip: float) -> dict:
            model = SmallModel({name: value for name, value in given.items() if isinstance(value, Tensor)})
            model.train(given["training"])
            optimizer = _Spied(model, **{name: value for name, value in settings.items() if name != "steps"})
            for weight in model.parameters():
                weight.grad = torch.full_like(weight, given["stale"]) if given["stale"] else None
            returned = []
            for _ in range(settings["steps"]):
                returned.append(answered(function, model, batch, optimizer, pad, clip))
                optimizer.note("returned, gradients")
                values = returned[-1].values() if isinstance(returned[-1], dict) else [returned[-1]]
                if any(isinstance(value, Tensor) and value.requires_grad for value in values):
                    model.diary.append("a graph came back")
            weights = {name: weight.detach() for name, weight in model.named_parameters()}
            return {"weights": weights, "diary": model.diary, "returned": returned}

        return staged


class SmallModel(nn.Module):
    """A translator of four matrices: each target word, beside the mean of the source, scores the next.

    weights: "source" (source vocabulary, width), "target" (target vocabulary, width), "hidden" (width, width) and
    "scores" (width, target vocabulary). In training it drops the same features each time.
    """

    source: Tensor
    target: Tensor
    hidden: Tensor
    scores: Tensor

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        for name, weight in weights.items():
            self.register_parameter(name, nn.Parameter(weight.clone()))
        self.diary: list[str] = []

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Logits (batch, target, vocabulary)."""
        x = self.target[target_input] + self.source[source].mean(dim=1, keepdim=True)  # (batch, target, width)
        x = torch.tanh(x @ self.hidden)
        if self.training:
            x = x * (torch.arange(x.shape[-1]) % 3 > 0) * 1.5
        self.diary.append(f"forward in {'training' if self.training else 'evaluation'} mode")
        logits = x @ self.scores
        if logits.requires_grad:
            logits.register_hook(lambda gradient: self.diary.append("backward"))
        return logits


class _Spied(torch.optim.SGD):
    """Stochastic gradient descent that writes down what it is asked to do."""

    def __init__(self, model: SmallModel, **settings: float) -> None:
        super().__init__(model.parameters(), **settings)
        self._model = model

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self._model.diary.append("zero_grad")
        super().zero_grad(set_to_none)

    def step(self, closure: Callable | None = None) -> Any:
        """Move the weights."""
        if closure is None:
            self.note("step, gradients")
        return super().step(closure)

    def note(self, what: str) -> None:
        """Write down something, and the norm of all gradients together by then."""
        norms = [weight.grad.detach().norm() for weight in self._model.parameters() if weight.grad is not None]
        norm = float(torch.stack(norms).norm()) if norms else 0.0
        self._model.diary.append(f"{what} of norm {norm:.3f}")


class Training:
    """Asks a model that an answer has trained. The answer trains once; further questions go to the same model."""

    def __init__(self) -> None:
        self._trained: tuple[Callable, Any] | None = None

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (config, questions) -> what its model says.

        questions: "score": list of (source, target input), (batch, length) each; "translate": list of sources. Both
        are answered as far as the model gives logits of the shape that they must have.
        """

        def staged(config: Any, questions: dict[str, Any]) -> dict[str, Any]:
            if self._trained is None or self._trained[0] is not function:
                self._trained = function, answered(function, config)
            model = self._trained[1]
            if not callable(model) or isinstance(model, type):
                return {"model": type(model).__name__ if model is not None else "nothing"}
            if isinstance(model, nn.Module):
                model.eval()
            with torch.no_grad():
                scores = [model(source, target) for source, target in questions["score"]]
                places = [target.shape for _, target in questions["score"]]
                fit = all(map(_are_logits, scores, places, [config.target_vocabulary] * len(places)))
                translations = [_greedy(model, source, config) for source in questions["translate"] if fit]
            return {"translations": translations, "scores": scores}

        return staged


def _are_logits(scores: Any, places: tuple[int, ...], vocabulary: int) -> bool:
    return isinstance(scores, Tensor) and tuple(scores.shape) == (*places, vocabulary)


def _greedy(model: Callable, source: Tensor, config: Any, longest: int = 12) -> Tensor:
    """What the model says, the likeliest word each time: (batch, at most longest), without bos, pads after eos."""
    target = torch.full((len(source), 1), config.bos)
    over = torch.zeros(len(source), dtype=torch.bool)
    for _ in range(longest):
        chosen = model(source, target)[:, -1].argmax(dim=-1).masked_fill(over, config.pad)  # (batch,)
        target = torch.cat([target, chosen[:, None]], dim=1)
        over = over | (chosen == config.eos)
        if over.all():
            break
    return target[:, 1:]


class Growth:
    """Asks how much an answer works on for a long sentence, beside what it returns."""

    LONG = 256  # keys, from which on it is counted

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (Q, K, V, more) -> its result; for a long sentence, in a dictionary: "result", and
        "numbers", how many it made and computed with for the first half of the sentence and for all of it."""

        def staged(Q: Tensor, K: Tensor, V: Tensor, *more: Any) -> Any:
            n = K.shape[-2]
            if n < self.LONG:
                return answered(function, Q, K, V, *more)
            half = (each[..., : n // 2, :].clone() for each in (Q, K, V))
            _, first = counted.while_running(answered, function, *half, *more)
            result, whole = counted.while_running(answered, function, Q, K, V, *more)
            return {"result": result, "numbers": [first.total, whole.total]}

        return staged


class Reading:
    """Hands an answer blocks, and notes how they are read."""

    MANY = 8  # blocks, from which on it is counted

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (blocks, learns) -> its result; of many blocks, and where it is to learn, in a
        dictionary: "result"; "largest", the numbers in the largest tensor that it made, and "again", how many blocks
        it came back to after another; with `learns` "gradients" of scores and values, a pair for each block."""

        def staged(blocks: list, learns: bool = False) -> Any:
            if learns:
                return self._gradients(function, blocks)
            if len(blocks) < self.MANY:
                return answered(function, blocks)
            result, made = counted.while_running(answered, function, blocks, watched=blocks)
            return {"result": result, "largest": made.largest, "again": sum(times > 1 for times in made.visits)}

        return staged

    @staticmethod
    def _gradients(function: Callable, blocks: list) -> dict[str, Any]:
        leaves = [tuple(part.clone().requires_grad_(True) for part in block) for block in blocks]
        result = answered(function, [tuple(block) for block in leaves])
        flat = [part for block in leaves for part in block]
        found: list[Any] = [None] * len(flat)
        if isinstance(result, Tensor) and result.requires_grad and result.numel():
            factors = torch.linspace(1.0, 2.0, result.numel(), dtype=result.dtype).reshape(result.shape)
            found = list(torch.autograd.grad((result * factors).sum(), flat, allow_unused=True))
        found = ["no gradient" if one is None else one for one in found]  # None would be told as a missing return
        return {"result": result, "gradients": [list(found[at : at + 2]) for at in range(0, len(found), 2)]}


class Company:
    """Asks a translator the same lines again: each alone, and all together for the second time."""

    def around(self, function: Callable) -> Callable:
        """The answer as it is asked: (lines, whether again) -> translations: of all together, of each, of all again."""

        def staged(lines: list[str], again: bool = False) -> Any:
            together = answered(function, lines)
            if not again or not isinstance(together, (list, tuple)):
                return together
            alone = [answered(function, [line]) for line in lines]
            each = [text for found in alone for text in (found if isinstance(found, (list, tuple)) else [found])]
            return [*together, *each, *answered(function, list(lines))]

        return staged


OWN = {"training step": TrainingStep, "training": Training, "growth": Growth, "reading": Reading, "company": Company}
STAGES = OWN | STREAMS | MODEL_STAGES
