"""The whole model: source ids and target ids become logits (chapter 09)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig
from transformer_ref.model.decoder import Decoded, Decoder
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.encoder import Encoder
from transformer_ref.model.key_value_cache import DecoderCache
from transformer_ref.model.masks import causal_mask, padding_mask
from transformer_ref.model.positional_encoding import SinusoidalPositions
from transformer_ref.shapes import expect_ids, expect_padding_last


class Encoded(NamedTuple):
    """A batch of encoded sources."""

    memory: Tensor  # (batch, source, d_model)
    mask: Tensor  # (batch, 1, 1, source), True at real tokens
    weights: list[Tensor]  # one (batch, heads, source, source) a layer, or nothing

    def select(self, rows: Tensor) -> "Encoded":
        """Return the given rows of the batch, in the given order; a row may be repeated."""
        return Encoded(self.memory[rows], self.mask[rows], [weights[rows] for weights in self.weights])


class Transformer(nn.Module):
    """The encoder-decoder of Vaswani et al. 2017, figure 1.

    config: its sizes and variant; generator: for the initial weights.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = Embedding(config.source_vocabulary, config.d_model, config.scale_embedding)
        self.target_embedding = Embedding(config.target_vocabulary, config.d_model, config.scale_embedding)
        self.positions = SinusoidalPositions(config.max_length, config.d_model, config.layout)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = nn.Linear(config.d_model, config.target_vocabulary, bias=config.output_bias)
        if config.tie_embeddings:
            self.source_embedding.weight = self.output.weight = self.target_embedding.weight
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialize every weight again: projections by Glorot and Bengio 2010, equation 16, biases zero."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=generator)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()  # to 1 and 0
        for embedding in (self.source_embedding, self.target_embedding):  # last: the tied output is one too
            embedding.reset_parameters(generator)

    def encode(self, source_ids: Tensor, need_weights: bool = False) -> Encoded:
        """Return the encoded source.

        source_ids: (batch, source), padded at the end; need_weights: also return every head's weights.
        Raises ValueError when the source is longer than max_length or a row has a token after its padding.
        """
        expect_padding_last("source_ids", source_ids, self.config.pad)
        mask = padding_mask(source_ids, self.config.pad)  # (batch, 1, 1, source)
        x = self.positions(self.source_embedding(source_ids))  # (batch, source, d_model)
        memory, weights = self.encoder(self.dropout(x), mask, need_weights)
        return Encoded(memory, mask, weights)

    def decode(
        self,
        target_ids: Tensor,
        encoded: Encoded,
        cache: DecoderCache | None = None,
        need_weights: bool = False,
        mask: Tensor | None = None,
        positions: Sequence[int] | None = None,
    ) -> Decoded:
        """Return the decoder's output for the target; `logits(decoded.hidden)` scores the next tokens.

        target_ids: (batch, target), beginning with bos and padded at the end. With a cache: only the tokens that are
            not in it yet.
        mask: boolean, broadcastable to (batch, heads, target, all so far), True = may attend; None hides later tokens.
            That also hides padding, which comes after the real tokens.
        positions: of the target's tokens; None means after those in the cache.
        Raises ValueError when the target is longer than max_length.
        """
        expect_ids("target_ids", target_ids, "batch", "target")
        length, before = target_ids.shape[1], 0 if cache is None else cache.length
        if mask is None and length > 1:  # one token, the newest, may look at all
            mask = causal_mask(length, before, target_ids.device)  # (target, before + target)
        places = before if positions is None else positions
        x = self.positions(self.target_embedding(target_ids), places)  # (batch, target, d_model)
        return self.decoder(self.dropout(x), encoded.memory, mask, encoded.mask, cache, need_weights)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return a score for each token of the vocabulary: (..., d_model) -> (..., vocabulary)."""
        return self.output(hidden)

    def hidden(self, source_ids: Tensor, target_input_ids: Tensor) -> Tensor:
        """Return what `forward` scores: (batch, target, d_model), for the same arguments."""
        return self.decode(target_input_ids, self.encode(source_ids)).hidden

    def forward(self, source_ids: Tensor, target_input_ids: Tensor) -> Tensor:
        """Return logits (batch, target, vocabulary): row t scores the token that follows target token t.

        source_ids: (batch, source); target_input_ids: (batch, target), beginning with bos.
        """
        return self.logits(self.hidden(source_ids, target_input_ids))

    def new_cache(self) -> DecoderCache:
        """Return an empty cache for `decode`."""
        return DecoderCache(self.config.decoder_layers)
