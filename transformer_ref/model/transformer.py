"""The whole model: source ids and target ids become logits (chapter 09)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_ref.config import ModelConfig
from transformer_ref.model.decoder import Decoded, Decoder
from transformer_ref.model.dropout import Dropout
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.encoder import Encoder
from transformer_ref.model.key_value_cache import DecoderCache
from transformer_ref.model.masks import causal_mask, padding_mask
from transformer_ref.model.packing import PackedMask, Packing, can_pack
from transformer_ref.model.positional_encoding import SinusoidalPositions


class Encoded(NamedTuple):
    """A batch of sources, read."""

    memory: Tensor  # (batch, source, d_model)
    mask: Tensor  # (batch, 1, 1, source), True at real tokens
    weights: list[Tensor]  # one (batch, heads, source, source) a layer, or nothing

    def select(self, rows: Tensor) -> "Encoded":
        """Return the given rows of the batch, in the given order; a row may be repeated."""
        return Encoded(self.memory[rows], self.mask[rows], [weights[rows] for weights in self.weights])


class Transformer(nn.Module):
    """The encoder-decoder of Vaswani et al. 2017, figure 1.

    config: its sizes and variant; generator: where the first weights are drawn from.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = Embedding(config.source_vocabulary, config.d_model, config.scale_embedding)
        self.target_embedding = Embedding(config.target_vocabulary, config.d_model, config.scale_embedding)
        self.positions = SinusoidalPositions(config.max_length, config.d_model, config.layout)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = nn.Linear(config.d_model, config.target_vocabulary, bias=config.output_bias)
        if config.tie_embeddings:
            self.source_embedding.table = self.output.weight = self.target_embedding.table
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw every weight anew: projections by Glorot and Bengio 2010, equation 16, biases zero."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=generator)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for embedding in (self.source_embedding, self.target_embedding):  # last: the tied output is one too
            embedding.reset_parameters(generator)

    def encode(self, source_ids: Tensor, need_weights: bool = False) -> Encoded:
        """Return the source read by the encoder, to be decoded as often as needed.

        source_ids: (batch, source), padded at the end; need_weights: also keep every head's weights.
        Raises ValueError when the source is longer than max_length.
        """
        mask = padding_mask(source_ids, self.config.pad)  # (batch, 1, 1, source)
        x = self.positions(self.source_embedding(source_ids))  # (batch, source, d_model)
        memory, weights = self.encoder(self.dropout(x), mask, need_weights)
        return Encoded(memory, mask, weights)

    def decode(self, target_ids: Tensor, encoded: Encoded, cache: DecoderCache | None = None,
               need_weights: bool = False, lineage: Tensor | None = None) -> Decoded:
        """Return the target read by the decoder; `logits(decoded.hidden)` scores the next tokens.

        target_ids: (batch, target), beginning with bos and padded at the end. With a cache: only the tokens
            that earlier calls with this cache have not seen.
        lineage: for several targets of one source that grow side by side, as in a beam: `target_ids` then has the
            newest token of each, all at one position, as each earlier call had. Boolean, (batch, target, all so far),
            True at the tokens that a target consists of, the newest included.
        A real token never sees the padding, which comes after it, so the causal mask is mask enough.
        Raises ValueError when the target is longer than max_length.
        """
        length, before = target_ids.shape[1], 0 if cache is None else cache.length
        x = self.target_embedding(target_ids)  # (batch, target, d_model)
        if lineage is not None:
            mask = lineage[:, None]  # (batch, 1, target, all so far)
            x = self.positions(x.flatten(0, 1)[:, None], before // length).view_as(x)  # all at one position
        else:
            # the newest token alone may look at all: no mask says so as well, and is faster
            mask = causal_mask(length, before, target_ids.device) if length > 1 else None  # (target, before + target)
            x = self.positions(x, before)  # (batch, target, d_model)
        return self.decoder(self.dropout(x), encoded.memory, mask, encoded.mask, cache, need_weights)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return a score for each token of the vocabulary: (..., d_model) -> (..., vocabulary)."""
        return self.output(hidden)

    def hidden(self, source_ids: Tensor, target_input_ids: Tensor) -> Tensor:
        """Return what `forward` scores: (batch, target, d_model), for the same arguments."""
        return self.decode(target_input_ids, self.encode(source_ids)).hidden

    def hidden_at(self, source_ids: Tensor, target_input_ids: Tensor, wanted: Tensor) -> Tensor:
        """Return the rows of `hidden` at the wanted target tokens, (wanted, d_model), and compute no others.

        wanted: boolean, (batch, target): the tokens of each row that a loss reads, from the first on.
        """
        real = source_ids != self.config.pad  # (batch, source)
        if real.device.type != "cpu" or not (can_pack(real) and can_pack(wanted)):
            return self.hidden(source_ids, target_input_ids)[wanted]  # on a GPU the library's kernel is the fast path
        source, target = Packing(real), Packing(wanted)
        x = source.pack(self.positions(self.source_embedding(source_ids)))  # (source rows, d_model)
        memory = self.encoder(self.dropout(x), PackedMask(source, source)).memory  # (source rows, d_model)
        x = target.pack(self.positions(self.target_embedding(target_input_ids)))  # (target rows, d_model)
        hidden = self.decoder(self.dropout(x), memory, PackedMask(target, target, causal=True),
                              PackedMask(target, source)).hidden  # (target rows, d_model)
        return hidden[:target.tokens]

    def forward(self, source_ids: Tensor, target_input_ids: Tensor) -> Tensor:
        """Return logits (batch, target, vocabulary): row t scores the token that follows target token t.

        source_ids: (batch, source); target_input_ids: (batch, target), beginning with bos.
        """
        return self.logits(self.hidden(source_ids, target_input_ids))

    def new_cache(self) -> DecoderCache:
        """Return an empty cache for `decode`."""
        return DecoderCache(self.config.decoder_layers)
