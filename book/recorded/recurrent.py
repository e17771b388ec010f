"""A small recurrent translator, with or without a look back at the source: what chapter 01 records runs of.

Without it, the decoder knows the source by one vector of `width` numbers (Sutskever et al., 2014). With it, the
decoder's state asks every encoder state before each word, by an additive score (Bahdanau et al., 2015).
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.special_tokens import BOS, PAD


class RecurrentTranslator(nn.Module):
    """A bidirectional LSTM as encoder, and an LSTM as decoder.

    width: an even number, the size of every state and of the vector between the two.
    """

    def __init__(self, source_vocabulary: int, target_vocabulary: int, width: int, look_back: bool) -> None:
        super().__init__()
        self.width, self.look_back = width, look_back
        self.read = nn.Embedding(source_vocabulary, width)
        self.written = nn.Embedding(target_vocabulary, width)
        self.encoder = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTMCell(2 * width if look_back else width, width)
        self.from_state = nn.Linear(width, width, bias=False)
        self.from_source = nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.output = nn.Linear(2 * width if look_back else width, target_vocabulary)

    def forward(self, source: Tensor, target_input: Tensor) -> Tensor:
        """Return the logits (batch, target, vocabulary); source: (batch, source), all of one length."""
        states, carried = self._encode(source)
        projected = self.from_source(states)  # (batch, source, width)
        logits = []
        for word in target_input.unbind(1):
            step, carried, _ = self._step(word, carried, states, projected)
            logits.append(step)
        return torch.stack(logits, dim=1)  # (batch, target, vocabulary)

    @torch.no_grad()
    def translate(self, source: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Return the most probable word at each step (batch, step), and its weights (batch, step, source)."""
        states, carried = self._encode(source)
        projected = self.from_source(states)  # (batch, source, width)
        word = source.new_full((len(source),), BOS)  # (batch,)
        words, weights = [], []
        for _ in range(steps):
            logits, carried, row = self._step(word, carried, states, projected)
            word = logits.argmax(dim=-1)  # (batch,)
            words.append(word)
            weights.append(row)
        return torch.stack(words, dim=1), torch.stack(weights, dim=1)

    def _encode(self, source: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return every state, and the initial state of the decoder, with an empty memory cell."""
        states, (last, _) = self.encoder(self.read(source))  # (batch, source, width), (2, batch, width / 2)
        whole_sentence = torch.cat([last[0], last[1]], dim=-1)  # (batch, width)
        return states, (whole_sentence, torch.zeros_like(whole_sentence))

    def _step(self, word: Tensor, carried: tuple[Tensor, Tensor], states: Tensor, projected: Tensor):
        """Return the logits of the next word, the new state, and the attention weights."""
        known, weights = [self.written(word)], states.new_zeros(states.shape[:2])  # [(batch, width)], (batch, source)
        if self.look_back:
            question = self.from_state(carried[0]).unsqueeze(1)  # (batch, 1, width)
            scores = self.score(torch.tanh(question + projected)).squeeze(-1)  # (batch, source)
            weights = torch.softmax(scores, dim=-1)
            known.append((weights.unsqueeze(1) @ states).squeeze(1))  # (batch, width)
        state, memory = self.decoder(torch.cat(known, dim=-1), carried)  # (batch, width) each
        return self.output(torch.cat([state, *known[1:]], dim=-1)), (state, memory), weights


def train_step(model: RecurrentTranslator, optimizer: torch.optim.Optimizer, source: Tensor, labels: Tensor) -> float:
    """Take one step and return the loss; labels: (batch, target), padded with PAD, which does not count."""
    target_input = F.pad(labels, (1, 0), value=BOS)[:, :-1]  # (batch, target)
    logits = model(source, target_input)
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
