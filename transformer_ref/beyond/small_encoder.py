"""A small encoder with short names, for weights to be loaded into and parts to be frozen (chapter 15).

Its classes are in the notebook of chapter 15 word for word, and what exercises hand over is made of them.
"""

import torch
from torch import nn


class SmallLayer(nn.Module):
    """Attention with one head and a feed-forward network, each with a norm before it and a residual around it."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.wide = nn.Linear(d_model, d_ff)
        self.narrow = nn.Linear(d_ff, d_model)

    def forward(self, x):
        """x: (B, T, D) -> (B, T, D)."""
        z = self.norm1(x)
        scores = self.query(z) @ self.key(z).transpose(-2, -1) / z.shape[-1] ** 0.5  # (B, T, T)
        x = x + self.output(torch.softmax(scores, dim=-1) @ self.value(z))
        return x + self.narrow(torch.relu(self.wide(self.norm2(x))))


class SmallEncoder(nn.Module):
    """Embeddings and positions, then the layers, then a last norm."""

    def __init__(self, vocabulary, d_model, d_ff, layers, longest):
        super().__init__()
        self.words = nn.Embedding(vocabulary, d_model)
        self.places = nn.Embedding(longest, d_model)
        self.layers = nn.ModuleList(SmallLayer(d_model, d_ff) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids):
        """ids: (B, T) -> (B, T, D)."""
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class SmallClassifier(nn.Module):
    """An encoder with a head on it: one class for a sentence."""

    def __init__(self, encoder, classes):
        super().__init__()
        d_model = encoder.norm.weight.shape[0]
        self.encoder = encoder
        self.head_norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, classes)

    def forward(self, ids):
        """ids: (B, T) -> logits (B, classes)."""
        return self.head(self.head_norm(self.encoder(ids).mean(dim=1)))
