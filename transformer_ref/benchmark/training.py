"""Training steps with AdamW, ours and those of the models people would pick instead, on the same batches."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from transformer_ref.benchmark.contest import OURS, Contender
from transformer_ref.benchmark.sentences import invented_stream
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import Batch
from transformer_ref.faster import TrainingLoss, accelerate, freed_memory_kept
from transformer_ref.interop.marian import their_config
from transformer_ref.interop.torch_transformer import torch_transformer
from transformer_ref.model.masks import causal_mask
from transformer_ref.model.positional_encoding import sinusoidal_table
from transformer_ref.model.transformer import Transformer
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.gradients import Gradients
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.trainer import train_step

CPU_TOKENS, GPU_TOKENS = 4_096, 25_000  # of a batch; the second as in the original paper, section 5.1
CPU_BATCHES, GPU_BATCHES = 2, 20  # in one turn of a contender, after a first one
SETTINGS = TrainingConfig(muon_rate=0.0, learning_rate=1e-3)  # AdamW for everyone, since no peer has Muon
Forward = Callable[[Batch], Tensor]
Step = Callable[[], int]  # one more training step, which returns its target tokens


def tokens_per_batch(device: torch.device) -> int:
    """Return the number of tokens in a batch that keeps the device busy."""
    return CPU_TOKENS if device.type == "cpu" else GPU_TOKENS


def training_contenders(config: ModelConfig, device: torch.device, precisions: list[str]) -> list[Contender]:
    """Return this package and every peer that is installed, in each precision; a peer computes in bf16 by autocast."""
    contenders = [
        _contender(OURS, precision, _ours(config, device, precision), device, freed_memory_kept)  # as in `__main__`
        for precision in precisions
    ]
    peers: list[tuple[str, Callable[[ModelConfig], tuple[nn.Module, Callable[[nn.Module], Forward]]]]] = [
        ("torch.nn.Transformer", _torch)
    ]
    if find_spec("transformers"):
        peers.append(("Hugging Face Marian", _marian))
    if find_spec("x_transformers"):
        peers.append(("x-transformers", _x_transformers))
    for name, build in peers:
        contenders += [
            _contender(name, precision, _theirs(*build(config), config, device, precision == "bf16"), device)
            for precision in precisions
        ]
    return contenders


def _contender(
    name: str,
    precision: str,
    step: Step,
    device: torch.device,
    around: Callable[[], AbstractContextManager] = nullcontext,
) -> Contender:
    batches = CPU_BATCHES if device.type == "cpu" else GPU_BATCHES
    return Contender(name, precision, lambda: sum(step() for _ in range(batches)), around, first=step)


def _ours(config: ModelConfig, device: torch.device, precision: str) -> Step:
    model = accelerate(Transformer(config, torch.Generator().manual_seed(1)).to(device))
    optimizer, loss = build_optimizer(model, SETTINGS), TrainingLoss(config.pad, SETTINGS.label_smoothing)
    gradients = Gradients(BF16Copy(model) if precision == "bf16" else None)
    batches = iter(invented_stream(config.target_vocabulary, tokens_per_batch(device)))

    def step() -> int:
        return train_step(model, next(batches), optimizer, loss, SETTINGS.max_grad_norm, gradients).tokens

    return step


def _theirs(
    model: nn.Module, loss_of: Callable[[nn.Module], Forward], config: ModelConfig, device: torch.device, autocast: bool
) -> Step:
    """Return a standard training step: forward (in bf16 or fp32), backward, clip, Adam."""
    model = model.to(device).train()
    loss_of_batch = loss_of(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=SETTINGS.learning_rate, betas=(0.9, 0.98), weight_decay=0.0)
    batches = iter(invented_stream(config.target_vocabulary, tokens_per_batch(device)))

    def step() -> int:
        batch = next(batches).to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            loss = loss_of_batch(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), SETTINGS.max_grad_norm)
        optimizer.step()
        loss.item()
        return int((batch.target_labels != config.pad).sum())

    return step


def _cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.target_labels.flatten(), ignore_index=0, label_smoothing=SETTINGS.label_smoothing
    )


class _AroundTorch(nn.Module):
    """`torch.nn.Transformer` with what tutorials add to it: a tied embedding, positions, dropout."""

    positions: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.target_vocabulary, config.d_model)
        nn.init.normal_(self.table.weight, std=config.d_model**-0.5)
        self.register_buffer("positions", sinusoidal_table(config.max_length, config.d_model))
        self.dropout = nn.Dropout(config.dropout)
        self.stacks = torch_transformer(config)

    def forward(self, batch: Batch) -> Tensor:
        source, target = batch.source, batch.target_input
        padding, length = source == 0, target.shape[1]
        hidden = self.stacks(
            self._embedded(source),
            self._embedded(target),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_mask=~causal_mask(length, device=target.device),
        )
        return hidden @ self.table.weight.T  # (batch, target, vocabulary)

    def _embedded(self, ids: Tensor) -> Tensor:
        scaled = self.table(ids) * self.table.embedding_dim**0.5
        return self.dropout(scaled + self.positions[: ids.shape[1]])  # (batch, length, d_model)


def _torch(config: ModelConfig) -> tuple[nn.Module, Callable[[nn.Module], Forward]]:
    return _AroundTorch(config), lambda model: lambda batch: _cross_entropy(model(batch), batch)


def _marian(config: ModelConfig) -> tuple[nn.Module, Callable[[nn.Module], Forward]]:
    from transformers import MarianConfig, MarianMTModel

    def loss_of(model: nn.Module) -> Forward:
        return lambda batch: _cross_entropy(
            model(
                input_ids=batch.source,
                attention_mask=batch.source != 0,
                decoder_input_ids=batch.target_input,
                use_cache=False,
            ).logits,
            batch,
        )

    return MarianMTModel(MarianConfig(**their_config(config))), loss_of


def _x_transformers(config: ModelConfig) -> tuple[nn.Module, Callable[[nn.Module], Forward]]:
    from x_transformers import XTransformer

    sides = {
        f"{side}_{name}": value
        for side, depth in (("enc", config.encoder_layers), ("dec", config.decoder_layers))
        for name, value in (
            ("num_tokens", config.target_vocabulary),
            ("depth", depth),
            ("heads", config.heads),
            ("max_seq_len", config.max_length),
            ("ff_mult", config.d_ff // config.d_model),
            ("attn_dim_head", config.d_head),
            ("attn_flash", True),
        )
    }
    model = XTransformer(dim=config.d_model, tie_token_emb=True, pad_value=0, ignore_index=0, **sides)

    def loss_of(model: nn.Module) -> Forward:
        def loss(batch: Batch) -> Tensor:  # it shifts the target itself, so it is given one token more
            whole = torch.cat([batch.target_input, batch.target_labels[:, -1:]], dim=1)
            return model(batch.source, whole, mask=batch.source != 0)

        return loss

    return model, loss_of
