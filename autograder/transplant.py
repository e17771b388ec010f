"""What the end of notebook 05 calls: the learner's `SelfAttention` at work inside the trained translator.

Each head of the encoder's attention layer becomes a copy of the learner's class with that head's weights; everything
around it stays the translator's. (Why there are several heads is chapter 06's question.)
"""

import inspect
import os
from typing import TYPE_CHECKING, Any

from autograder.check import GRADED

if TYPE_CHECKING:  # under grading this module is there and its imports are not
    import torch
    from torch import nn

SENTENCE = "I bought new windows for my computer."
SAME = 1e-3  # numbers of size 1 that went through other roundings


class Unusable(Exception):
    """The class cannot be used in the translator; the text says why."""


def translate_with_mine(text: str = SENTENCE) -> None:
    """Print the translation of an English sentence by the package's small trained translator, with the notebook's own
    `SelfAttention` in its only encoder layer; or the reason why that is impossible. Never graded."""
    if GRADED in os.environ:
        return
    own = inspect.currentframe().f_back.f_globals.get("SelfAttention")
    try:
        print(_translated(own, text))
    except Unusable as reason:
        print(f"✗ {reason}")


def _translated(own: Any, text: str) -> str:
    from transformer_ref import live_model
    from transformer_ref.translate import Translator

    if not isinstance(own, type):
        raise Unusable("There is no class SelfAttention in this notebook yet. Run the cell of 05.5, then this one.")
    if not isinstance(text, str) or not text.strip():
        raise Unusable("Give it an English sentence in quotes.")
    model, tokenizer = live_model.unpack(live_model.read_weights())
    [before] = Translator(model, tokenizer, tokenizer).translate([text], beam_size=1)
    attention, gap = transplant(own, model, [*tokenizer.encode(text), model.config.eos])
    try:
        [after] = Translator(model, tokenizer, tokenizer).translate([text], beam_size=1)
    except Unusable:
        raise
    except Exception as error:  # whatever a learner's class may do with a sentence
        raise Unusable(
            f"Your SelfAttention stopped inside the translator with {type(error).__name__}: {error}"
        ) from error
    heads, (inputs, outputs) = len(attention.heads), attention.widths
    lines = [
        f"{heads} copies of your SelfAttention({inputs}, {outputs}, {outputs}) are now the self-attention of the "
        f"encoder's only layer, one for each head. They were called {attention.calls} times.",
        f"  English      {text}",
        f"  with yours   {after}",
        f"  without      {before}",
    ]
    if gap > SAME:
        lines.append(
            f"✗ Given the same weights, yours differs from the translator's own attention by up to {gap:.3g}: "
            'it computes something else. What, `check("self-attention")` may know.'
        )
    return "\n".join(lines)


def transplant(own: type, model: Any, ids: list[int]) -> tuple[Any, float]:
    """Put copies of a class into the encoder layer of the translator, one for each head.

    ids: a source sentence for the comparison. Returns the new module and the largest difference between its output and
    that of the old one. Raises Unusable.
    """
    import torch

    layer = model.encoder.layers[0]
    old = layer.self_attention
    with torch.inference_mode():
        words = model.positions(model.source_embedding(torch.tensor([ids])))  # (1, source, d_model)
        words = layer.self_attention_residual.read(words)
        wanted = old(words, need_weights=True).output
        best = None
        for made in _readings(own, old):
            try:
                gap = (made(words).output - wanted).abs().max().nan_to_num(float("inf")).item()
            except Unusable:
                raise
            except NotImplementedError as error:
                raise Unusable("The forward of SelfAttention is not written yet (05.5).") from error
            except Exception as error:
                raise Unusable(f"Your SelfAttention stopped with {type(error).__name__}: {error}") from error
            if best is None or gap < best[1]:
                best = made, gap
    if best is None:
        raise Unusable(
            "In your SelfAttention no three projections could be found that make queries, keys and values: its check "
            "says what it saw."
        )
    layer.self_attention, best[0].calls = best[0].requires_grad_(False), 0
    return best


def _readings(own: type, old: Any) -> "list[nn.Module]":
    """Heads of the class with the old module's weights, for each assignment of its parameters.

    A 1 is appended to the features of each word, and the bias to each matrix as a row, since the class may have no
    biases.
    """
    import torch

    from autograder import catalogue
    from autograder.judging.parameter_matching import roles

    d_model = old.q_proj.in_features
    d_head = d_model // old.heads
    widths = d_model + 1, d_head
    pairs = {"query": old.q_proj, "key": old.k_proj, "value": old.v_proj}
    tables = {name: torch.cat([each.weight.T, each.bias[None]]).detach() for name, each in pairs.items()}  # (in, out)
    try:
        shapes = {name: tuple(each.shape) for name, each in own(*widths, d_head).named_parameters()}
    except NotImplementedError as error:
        raise Unusable(
            "SelfAttention is not written yet. Write it in the cell of 05.5, run that cell, then this one."
        ) from error
    except Exception as error:
        raise Unusable(f"SelfAttention({d_model + 1}, {d_head}, {d_head}) cannot be made: {error}") from error
    said = getattr(own, "roles", {})
    found = []
    for reading in roles.assign(shapes, catalogue.find("self-attention").roles(*widths, d_head), said):
        copies = [own(*widths, d_head).eval() for _ in range(old.heads)]
        for number, copy in enumerate(copies):
            part = slice(number * d_head, (number + 1) * d_head)
            values = roles.load(reading, shapes, {name: table[:, part] for name, table in tables.items()})
            with torch.no_grad():
                for name, parameter in copy.named_parameters():
                    parameter.copy_(values.get(name, parameter))
        found.append(_heads(copies, old.out_proj, widths))
    return found


def _heads(copies: "list[nn.Module]", out_proj: "nn.Module", widths: tuple[int, int]) -> "nn.Module":
    """A module that replaces the layer's attention."""
    import torch
    from torch import nn

    from transformer_ref.model.attention import AttentionResult

    class Heads(nn.Module):
        """One self-attention per head, side by side; a batch of one sentence needs no mask."""

        def __init__(self) -> None:
            super().__init__()
            self.heads, self.out_proj, self.widths = nn.ModuleList(copies), out_proj, widths
            self.calls = 0

        def forward(self, x: "torch.Tensor", mask: Any = None, need_weights: bool = False) -> AttentionResult:
            one = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)  # (batch, source, d_model + 1)
            answers = [head(one) for head in self.heads]
            self.calls += len(answers)
            outputs = [answer[0] if isinstance(answer, tuple) else answer for answer in answers]
            for output in outputs:
                if output.shape != (*x.shape[:-1], widths[1]):
                    raise Unusable(
                        f"Your SelfAttention returned the shape {tuple(output.shape)} for a sentence of "
                        f"{x.shape[1]} words where {(*x.shape[:-1], widths[1])} is needed."
                    )
            return AttentionResult(self.out_proj(torch.cat(outputs, dim=-1)), None)

    return Heads()
