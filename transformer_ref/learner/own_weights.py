"""A learner's trained Transformer as the package's: their weights found by role, and the two held equal in numbers.

Names and layouts are the learner's. Layers are found by the number in a parameter's name, projections by their names,
else by the order in which they were made; where that leaves a choice, each is tried. What is returned computes what the
learner's does, or nothing is.
"""

import copy
import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig
from transformer_ref.learner.own_file import MODEL, LearnersFile, OwnCodeError
from transformer_ref.learner.own_model import OwnTransformer
from transformer_ref.model.transformer import Transformer
from transformer_ref.model_state import unwrapped

SAME = 1e-4  # of the largest logit: float32 sums in another order stay far below
MOST_READINGS = 512
WORDS = {  # what reveals a role in a name
    "query": {"q", "wq", "query", "queries"},
    "key": {"k", "wk", "key", "keys"},
    "value": {"v", "wv", "value", "values"},
    "output": {"o", "wo", "out", "output", "proj", "merge"},
    "source": {"src", "source", "enc", "encoder", "in", "input"},
    "target": {"tgt", "target", "dec", "decoder"},
    "logits": {"out", "output", "generator", "head", "logits", "unembed", "proj"},
}
PROJECTIONS = ("query", "key", "value", "output")
NAMES = ("q_proj", "k_proj", "v_proj", "out_proj")


class NotFound(Exception):
    """A role without a matching parameter; the text says which, and what was found."""


@dataclasses.dataclass
class Linear:
    """A projection: matrix, bias (outputs,) or None; bare: not in an nn.Linear, so in any layout."""

    name: str
    matrix: Tensor
    bias: Tensor | None
    bare: bool


@dataclasses.dataclass
class Norm:
    """A normalization's gain and bias."""

    name: str
    gain: Tensor
    bias: Tensor


def reference_of(model: nn.Module, config: ModelConfig) -> Transformer:
    """Return the package's Transformer with the weights of a learner's `Transformer(config)`, which is not modified.

    Raises OwnCodeError if a role is not found or the outputs of the two differ.
    """
    module = ModuleType(type(model).__module__)
    setattr(module, MODEL, type(model))
    own = OwnTransformer(LearnersFile("your model", "", module), config)
    own.own.load_state_dict(model.state_dict())
    return as_reference(own)


def as_reference(model: OwnTransformer) -> Transformer:
    """Return the package's Transformer with the learner's weights; on random ids their outputs are equal.

    Raises OwnCodeError if a role is not found or the outputs differ.
    """
    model = unwrapped(model)
    name = model.code.name
    source, target = random_ids(model.config)
    own = copy.deepcopy(model).cpu().eval()
    with torch.no_grad():
        wanted = own(source, target)  # (batch, target, vocabulary)
    least = float("inf")
    with readable(name):
        for reference in references(own):
            with torch.no_grad():
                apart = gap(reference(source, target), wanted)
            if apart < SAME:
                return reference.to(next(model.parameters()).device)
            least = min(least, apart)
    raise OwnCodeError(
        f"{name}: Transformer: expected a model that computes what the package's does with the same weights, "
        f"got logits that differ by {least:.2g} of the largest: a page needs the same arithmetic, or "
        "names that tell the roles"
    )


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn what `references` and `readings` raise in the block into an OwnCodeError. name: of the learner's file."""
    try:
        yield
    except NotFound as seen:
        raise OwnCodeError(f"{name}: Transformer: expected weights whose roles can be identified, got {seen}") from None
    except OwnCodeError:
        raise
    except (RuntimeError, ValueError) as error:  # shapes that the package's model does not have
        said = " ".join(str(error).split())[:200]
        raise OwnCodeError(f"{name}: Transformer: expected weights of the usual shapes, got {said}") from error


def references(model: OwnTransformer, most: int = MOST_READINGS) -> Iterator[Transformer]:
    """Yield the package's Transformer with the learner's weights, the most likely assignment of roles first.

    Raises NotFound if a role is not found, RuntimeError or ValueError for shapes that the package's does not have.
    """
    config = dataclasses.replace(model.config, dropout=0.0)
    parameters = {name: parameter.detach().float().cpu() for name, parameter in model.own.named_parameters()}
    for state in itertools.islice(readings(parameters, config), most):
        reference = Transformer(config).eval()
        reference.load_state_dict(state)
        yield reference


def gap(said: Tensor, wanted: Tensor) -> float:
    """Return the largest difference of two tensors of logits, divided by the largest logit."""
    return float((said - wanted).abs().max() / wanted.abs().max().clamp(min=1e-12))


def random_ids(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Return sources, one of them padded, and decoder inputs without padding except as their first token."""
    draw, length = torch.Generator().manual_seed(7), min(9, config.max_length)

    def drawn(vocabulary: int, shape: tuple[int, int]) -> Tensor:
        ids = torch.randint(vocabulary - 1, shape, generator=draw)
        return ids + (ids >= config.pad)

    source = drawn(config.source_vocabulary, (3, length))
    target = drawn(config.target_vocabulary, (3, max(2, length - 2)))
    source[0, length // 2 :], target[:, 0] = config.pad, config.bos
    return source, target


def readings(parameters: dict[str, Tensor], config: ModelConfig) -> Iterator[dict[str, Tensor]]:
    """Yield state dicts of the package's Transformer, the most likely assignment of roles first.

    parameters: by name, in the order of their creation. The result only moves their numbers. Raises what `references`
    raises.
    """
    vocabularies = {config.source_vocabulary, config.target_vocabulary}
    tables = {name: each for name, each in parameters.items() if each.dim() == 2 and vocabularies & set(each.shape)}
    layers: dict[str, dict[int, dict[str, Tensor]]] = {}
    around: dict[str, Tensor] = {}
    for name, parameter in parameters.items():
        if name in tables:
            continue
        if found := re.match(r"(.*?)(?:^|\.)(\d+)\.(.*)", name):
            layers.setdefault(found[1], {}).setdefault(int(found[2]), {})[found[3]] = parameter
        else:
            around[name] = parameter
    encoder, decoder = _stacks(layers, config)
    norms = _units(around, config)[1]
    wanted = 2 if config.norm_first or config.last_norm else 0
    norms = norms if wanted else []  # some are made and used in pre-norm only
    if len(norms) != wanted:
        seen = ", ".join(each.name for each in norms) or "none"
        raise NotFound(f"{len(norms)} normalizations outside the layers ({seen}), not {wanted}")
    for ends, table, transposed, swapped, by_head in itertools.product(
        _orders(norms), _tables(tables, config), (False, True), (False, True), (False, True)
    ):
        state = dict(table)
        for name, norm in zip(("encoder", "decoder"), ends, strict=False):
            state |= {f"{name}.norm.weight": norm.gain, f"{name}.norm.bias": norm.bias}
        for stack, found, count in (("encoder", encoder, 1), ("decoder", decoder, 2)):
            for number, layer in enumerate(found):
                state |= _layer(f"{stack}.layers.{number}", layer, config, count, transposed, swapped, by_head)
        yield state


def _stacks(layers: dict[str, dict[int, dict[str, Tensor]]], config: ModelConfig) -> list[list[dict[str, Tensor]]]:
    """Return the encoder's layers and the decoder's: a decoder layer has more parameters."""
    sized = sorted((sum(map(torch.numel, stack[min(stack)].values())), name) for name, stack in layers.items())
    if len(sized) != 2:
        raise NotFound(f"{len(sized)} lists of layers ({', '.join(name for _, name in sized) or 'none'}), not two")
    found = [[layers[name][number] for number in sorted(layers[name])] for _, name in sized]
    if [len(each) for each in found] != [config.encoder_layers, config.decoder_layers]:
        raise NotFound(f"lists of {len(found[0])} and {len(found[1])} layers")
    return found


def _orders(items: Sequence) -> list[Sequence]:
    return [items, items[::-1]] if len(items) == 2 else [items]


def _tables(tables: dict[str, Tensor], config: ModelConfig) -> list[dict[str, Tensor]]:
    """Return the possible assignments of the vocabulary tables."""
    roles = ("source", "logits", "target")
    keys = {"source": "source_embedding.weight", "target": "target_embedding.weight", "logits": "output.weight"}
    upright = {name: each if each.shape[1] == config.d_model else each.T for name, each in tables.items()}
    if config.tie_embeddings:
        if len(upright) != 1:
            raise NotFound(f"{len(upright)} tables ({', '.join(upright)}) where all are tied")
        return [dict.fromkeys(keys.values(), next(iter(upright.values())))]
    if len(upright) != 3:
        raise NotFound(f"{len(upright)} tables ({', '.join(upright)}), not those of source, target and output")
    ways = []
    for order in itertools.permutations(upright):
        likely = sum(bool(WORDS[role] & _words(name)) for role, name in zip(roles, order, strict=True))
        rows = [len(upright[name]) for name in order]
        if rows == [config.source_vocabulary, config.target_vocabulary, config.target_vocabulary]:
            ways.append((-likely, {keys[role]: upright[name] for role, name in zip(roles, order, strict=True)}))
    return [way for _, way in sorted(ways, key=lambda way: way[0])]


def _units(parameters: dict[str, Tensor], config: ModelConfig) -> tuple[list[Linear], list[Norm]]:
    """Return the projections and the normalizations among some parameters, in the order of their creation."""
    linears: list[Linear] = []
    loose: list[tuple[str, Tensor]] = []
    before = None  # what was made last: the second bias of a bare feed-forward network follows one of its own
    for name, each in parameters.items():
        parent = name.removesuffix("weight").rstrip("._")
        fed = [linear for linear in linears if linear.bare and config.d_ff in linear.matrix.shape]
        if each.dim() > 2:
            raise NotFound(f"{name} of shape {tuple(each.shape)}, which is not a matrix")
        if each.dim() == 2:
            bias = parameters.get(f"{name[:-6]}bias") if parent != name else None
            linears.append(before := Linear(parent, each, bias, bare=parent == name))
        elif name.endswith("bias") and parameters.get(f"{name[:-4]}weight", each).dim() == 2:
            continue  # a layer's, which has it
        elif fed and len(each) == config.d_ff != config.d_model:
            fed[0].bias, before = each, fed[0]
        elif len(fed) == 2 and fed[1].bias is None and any(before is one for one in fed):
            fed[1].bias, before = each, None
        else:
            loose.append((name, each))
            before = None
    if len(loose) % 2:
        raise NotFound(f"{len(loose)} vectors ({', '.join(name for name, _ in loose)}), not gains with biases")
    pairs = zip(loose[::2], loose[1::2], strict=True)
    return linears, [Norm(name, gain, bias) for (name, gain), (_, bias) in pairs]


def _layer(
    at: str, parameters: dict[str, Tensor], config, attentions: int, transposed: bool, swapped: bool, by_head: bool
):
    """Return one layer's weights under the package's names. transposed: bare square matrices are (outputs, inputs);
    swapped: the cross-attention was created first; by_head: a fused matrix holds one head after the other."""
    linears, norms = _units(parameters, config)
    fed = [each for each in linears if config.d_ff in each.matrix.shape and config.d_ff != config.d_model]
    if config.d_ff == config.d_model:
        fed = linears[-2:]
    if len(fed) != 2 or len(norms) != attentions + 1:
        raise NotFound(f"{len(fed)} matrices of the feed-forward network and {len(norms)} normalizations in {at}")
    state: dict[str, Tensor] = {}
    for name, each, outputs in (("fc1", fed[0], config.d_ff), ("fc2", fed[1], config.d_model)):
        upright = each.matrix.shape[0] == outputs and not (each.bare and config.d_ff == config.d_model)
        matrix = each.matrix if upright else each.matrix.T
        state |= {f"feed_forward.{name}.weight": matrix, f"feed_forward.{name}.bias": _bias(each, outputs)}
    rest = [each for each in linears if not any(each is other for other in fed)]
    parts = [rest] if attentions == 1 else _halves(rest)
    if swapped:
        parts = parts[::-1]
    for name, part in zip(("self_attention", "cross_attention"), parts, strict=False):
        for role, (matrix, bias) in zip(NAMES, _projections(part, config, transposed, by_head), strict=True):
            state |= {f"{name}.{role}.weight": matrix, f"{name}.{role}.bias": bias}
    residuals = ("self_attention", *(["cross_attention"] if attentions == 2 else []), "feed_forward")
    for name, norm in zip(residuals, norms, strict=True):
        state |= {f"{name}_residual.norm.weight": norm.gain, f"{name}_residual.norm.bias": norm.bias}
    return {f"{at}.{name}": each for name, each in state.items()}


def _halves(linears: list[Linear]) -> list[list[Linear]]:
    """Return the projections of the two attentions of a decoder layer: by the module that holds them, else by order."""
    owners = {each.name.split(".")[0] for each in linears if "." in each.name}
    if len(owners) == 2 and all("." in each.name for each in linears):
        first = linears[0].name.split(".")[0]
        return [[each for each in linears if (each.name.split(".")[0] == first) == wanted] for wanted in (True, False)]
    return [linears[: len(linears) // 2], linears[len(linears) // 2 :]]


def _projections(linears: list[Linear], config, transposed: bool, by_head: bool) -> list[tuple[Tensor, Tensor]]:
    """Return query, key, value and output projection of an attention: (outputs, inputs) and bias each."""
    d, heads = config.d_model, config.heads
    pieces: list[tuple[str, Tensor, Tensor]] = []
    for each in linears:
        matrix = each.matrix
        if matrix.shape[1] != d or (matrix.shape[0] == d and each.bare and not transposed):
            matrix = matrix.T
        if matrix.shape[1] != d:
            raise NotFound(f"{each.name} of shape {tuple(each.matrix.shape)} in an attention")
        count, bias = matrix.shape[0] // d, _bias(each, matrix.shape[0])
        if count > 1:  # several roles in one
            order = torch.arange(len(matrix)).view(heads, count, -1).transpose(0, 1).flatten()
            rows = order if by_head else slice(None)
            both = zip(matrix[rows].chunk(count), bias[rows].chunk(count), strict=True)
            pieces += [(f"{each.name} {number}", *pair) for number, pair in enumerate(both)]
        else:
            pieces.append((each.name, matrix, bias))
    pieces = _joined(pieces, d)
    if len(pieces) != len(PROJECTIONS):
        raise NotFound(
            f"{len(pieces)} projections in an attention ({', '.join(name for name, *_ in pieces)}), not four"
        )
    named = {role: [piece for piece in pieces if WORDS[role] & _words(piece[0].split(".")[-1])] for role in PROJECTIONS}
    if all(len(found) == 1 for found in named.values()):
        pieces = [named[role][0] for role in PROJECTIONS]
    return [(matrix, bias) for _, matrix, bias in pieces]


def _joined(pieces: list[tuple[str, Tensor, Tensor]], d: int) -> list[tuple[str, Tensor, Tensor]]:
    """Join projections that have one matrix per head: those whose names differ only by a number."""
    groups: dict[str, list[tuple[str, Tensor, Tensor]]] = {}
    for piece in pieces:
        key = re.sub(r"\d+", "#", piece[0]) if len(piece[1]) < d else piece[0]
        groups.setdefault(key, []).append(piece)
    return [
        (key, torch.cat([matrix for _, matrix, _ in group]), torch.cat([bias for *_, bias in group]))
        for key, group in groups.items()
    ]


def _bias(each: Linear, outputs: int) -> Tensor:
    return torch.zeros(outputs) if each.bias is None else each.bias


def _words(name: str) -> set[str]:
    parts = re.split(r"[^A-Za-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    joined = {"".join(pair).lower() for pair in itertools.pairwise(parts)}
    return {part.lower() for part in parts if part} | joined
