"""The settings that define a model or a training run, frozen and checked once.

A default is written here and nowhere else.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin

from transformer_ref.special_tokens import BOS, EOS, PAD

Activation = Literal["relu", "gelu", "silu"]
Layout = Literal["interleaved", "concatenated"]
Precision = Literal["fp32", "bf16", "auto"]
PRECISIONS = get_args(Precision)
DecodingPrecision = Literal["fp32", "bf16", "auto", "int8"]
DECODING_PRECISIONS = get_args(DecodingPrecision)
Schedule = Literal["cosine", "linear", "inverse_sqrt"]
SCHEDULES = get_args(Schedule)
LARGEST_SEED = 2**63 - 1  # that torch's generators take
LARGEST_EXPONENT = 10  # 1 is a mean; beyond some 2 every score is nearly 0
Config = TypeVar("Config", bound="Stored")


def fields_from(owner: type, values: dict[str, Any]) -> dict[str, Any]:
    """Return `values` if each key is a field of the dataclass `owner`; raise ValueError naming the others."""
    known = [field.name for field in dataclasses.fields(owner)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{owner.__name__}: expected fields among {known}, got {unknown}")
    return values


def expect_types(config: Any) -> None:
    """Check that each field of a dataclass has the type it declares, and that every number is finite.

    Raises TypeError for a wrong type (True is not a number of heads), ValueError for an unknown word, NaN or infinity.
    """
    for field in dataclasses.fields(config):
        value, choices = getattr(config, field.name), get_args(field.type)
        if get_origin(field.type) is Literal:
            if value not in choices:
                raise ValueError(f"{field.name}: expected one of {', '.join(choices)}, got {value!r}")
            continue
        accepted = choices or (field.type,)
        if type(value) not in accepted and not (float in accepted and type(value) is int):
            names = " or ".join("None" if each is type(None) else each.__name__ for each in accepted)
            raise TypeError(f"{field.name}: expected {names}, got {value!r}")
        if type(value) is float and not math.isfinite(value):
            raise ValueError(f"{field.name}: expected a finite number, got {value}")


def expect_length_penalty(length_penalty: float) -> None:
    """Check the exponent that ranks hypotheses; raise ValueError for NaN and values out of range."""
    if not 0 <= length_penalty <= LARGEST_EXPONENT:
        raise ValueError(f"length_penalty: expected a number from 0 to {LARGEST_EXPONENT}, got {length_penalty:g}")


def _expect_at_least(least: int, config: Any, *names: str) -> None:
    for name in names:
        if getattr(config, name) < least:
            raise ValueError(f"{name}: expected at least {least}, got {getattr(config, name)}")


class Stored:
    """A config that a checkpoint stores."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls: type[Config], values: dict[str, Any]) -> Config:
        """Return the config that `to_dict` described; an unknown field raises ValueError."""
        return cls(**fields_from(cls, values))


@dataclass(frozen=True)
class ModelConfig(Stored):
    """The size and the variant of an encoder-decoder Transformer.

    Defaults are the base model of Vaswani et al. 2017, table 3, except `tie_embeddings`, which the paper
    has on: it needs one vocabulary for both languages.

    source_vocabulary, target_vocabulary: number of ids, the special ones included.
    d_model: width of the vector a token has between layers; a multiple of `heads`.
    d_ff: width of the hidden layer in the feed-forward networks.
    dropout: probability in [0, 1), on each sub-layer's output and on the embeddings (section 5.4).
    norm_first: False normalizes after the addition (post-norm, the paper), True before the sub-layer.
    tie_embeddings: one table serves source, target and output (section 3.4).
    max_length: number of positions; a longer source or target is an error.
    pad, bos, eos: ids of the padding, begin and end tokens.

    The other fields are for weights that were trained elsewhere (chapter 15):
    activation: of the feed-forward networks; layout: how the sinusoids are ordered, see `sinusoidal_table`.
    scale_embedding: whether embeddings are multiplied by sqrt(d_model).
    output_bias: whether each token has a number added to its logit.
    last_norm: whether post-norm stacks, too, end in one more norm.
    Raises TypeError or ValueError naming the field.
    """

    source_vocabulary: int
    target_vocabulary: int
    d_model: int = 512
    heads: int = 8
    encoder_layers: int = 6
    decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    norm_first: bool = False
    tie_embeddings: bool = False
    max_length: int = 512
    pad: int = PAD
    bos: int = BOS
    eos: int = EOS
    activation: Activation = "relu"
    layout: Layout = "interleaved"
    scale_embedding: bool = True
    output_bias: bool = False
    last_norm: bool = False

    def __post_init__(self) -> None:
        expect_types(self)
        _expect_at_least(1, self, "source_vocabulary", "target_vocabulary", "d_model", "heads")
        _expect_at_least(1, self, "encoder_layers", "decoder_layers", "d_ff", "max_length")
        if self.d_model % self.heads:
            raise ValueError(f"d_model: expected a multiple of heads ({self.heads}), got {self.d_model}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout: expected a probability in [0, 1), got {self.dropout}")
        if self.tie_embeddings and self.source_vocabulary != self.target_vocabulary:
            raise ValueError(
                "tie_embeddings: expected source_vocabulary equal to target_vocabulary, "
                f"got {self.source_vocabulary} and {self.target_vocabulary}"
            )
        shared_ids = min(self.source_vocabulary, self.target_vocabulary)
        for name in ("pad", "bos", "eos"):
            if not 0 <= getattr(self, name) < shared_ids:
                raise ValueError(
                    f"{name}: expected an id of both vocabularies, from 0 to {shared_ids - 1}, "
                    f"got {getattr(self, name)}"
                )
        if self.pad == self.eos:
            raise ValueError(f"pad: expected another id than eos ({self.eos}), which a translation needs")

    @property
    def d_head(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.heads


@dataclass(frozen=True)
class TrainingConfig(Stored):
    """How a model is trained: for a number of steps or, if `minutes` is given, for that time.

    tokens_per_batch: padded tokens of a batch's longer side.
    grad_accumulation_steps: parts in which a batch is computed, one after another; less memory, the same step.
    minutes: of the steps; reading the corpus, validations and saving take additional time.
    schedule: how the learning rates fall after `warmup_steps` of linear growth: see training/schedule.py.
    learning_rate: AdamW's peak.
    muon_rate: the peak of Muon, which updates the hidden matrices; 0 uses AdamW for all weights.
    beta_1, beta_2, muon_momentum: decay of the moving averages of AdamW and Muon.
    label_smoothing: share of the target probability that other tokens get, in [0, 1).
    max_grad_norm: gradients are clipped to this norm, computed over all of them together.
    ema_decay: decay of the moving average of the weights; 0 for none.
    seed: for the first weights, dropout and the order of the data.
    precision: "fp32", "bf16" (fp32 weights, bf16 arithmetic) or "auto", whichever is faster on the machine.
    muon_precision: the same for Muon's matrix products; in "bf16" they equal those of `torch.optim.Muon`.
    num_validations: during the run; patience: stop after this many in a row without a smaller loss, and keep the model
        with the smallest; 0 never stops early.
    Raises TypeError or ValueError naming the field.
    """

    steps: int = 2_000
    minutes: float | None = None
    tokens_per_batch: int = 1_024
    grad_accumulation_steps: int = 1
    schedule: Schedule = "cosine"
    warmup_steps: int = 100
    learning_rate: float = 4e-3
    muon_rate: float = 6e-3
    weight_decay: float = 0.0
    muon_weight_decay: float = 0.01
    muon_momentum: float = 0.95
    beta_1: float = 0.9
    beta_2: float = 0.98
    label_smoothing: float = 0.1
    max_grad_norm: float = 1.0
    ema_decay: float = 0.0
    seed: int = 1
    precision: Precision = "fp32"
    muon_precision: Precision = "auto"
    num_validations: int = 5
    patience: int = 0

    def __post_init__(self) -> None:
        expect_types(self)
        _expect_at_least(1, self, "steps", "tokens_per_batch", "grad_accumulation_steps", "num_validations")
        for name in ("beta_1", "beta_2", "muon_momentum", "label_smoothing", "ema_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}: expected at least 0 and below 1, got {getattr(self, name)}")
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: expected more than 0, got {getattr(self, name)}")
        _expect_at_least(0, self, "warmup_steps", "muon_rate", "weight_decay", "muon_weight_decay", "seed", "patience")
        if self.seed > LARGEST_SEED:
            raise ValueError(f"seed: expected at most {LARGEST_SEED}, got {self.seed}")
        if self.minutes is not None and not self.minutes > 0:
            raise ValueError(f"minutes: expected more than 0, got {self.minutes}")


@dataclass(frozen=True)
class DecodingConfig:
    """How a source is translated.

    beam_size: hypotheses kept at each step, 1 for greedy decoding; length_penalty: see `beam_search`, from 0 to 10.
    batch_size: sentences decoded together; extra_length: how much longer than its source a translation may be
        (Vaswani et al. 2017, section 6.1).
    Raises TypeError or ValueError naming the field.
    """

    beam_size: int = 5
    length_penalty: float = 1.0
    batch_size: int = 64
    extra_length: int = 50

    def __post_init__(self) -> None:
        expect_types(self)
        _expect_at_least(1, self, "beam_size", "batch_size")
        _expect_at_least(0, self, "extra_length")
        expect_length_penalty(self.length_penalty)
