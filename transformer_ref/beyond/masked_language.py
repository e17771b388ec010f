"""A small encoder that is trained to predict masked words, and then, with a head, to classify reviews (chapter 15).

Devlin et al. 2019, "BERT": pretraining in section 3.1, fine-tuning in 3.2; without their next-sentence task. The layers
are those of chapter 09, pre-norm, without a mask for the future.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_ref.beyond.pretrained import IGNORED, How, mlm_mask, pool
from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import pad_sequences
from transformer_ref.model.embedding import Embedding
from transformer_ref.model.encoder import Encoder, EncoderResult
from transformer_ref.model.masks import padding_mask
from transformer_ref.model.positional_encoding import SinusoidalPositions

PAD, CLS, MASK, UNK = range(4)
SPECIALS = ("<pad>", "<cls>", "<mask>", "<unk>")
HIDDEN_SHARE = 0.15  # of the tokens (Devlin et al. 2019, section 3.1)


def small_config(vocabulary: int) -> ModelConfig:
    """Return the sizes of this chapter's encoder; its decoder's fields are not used."""
    sizes = dict(d_model=48, heads=4, encoder_layers=2, decoder_layers=1, d_ff=96, max_length=32)
    return ModelConfig(vocabulary, vocabulary, dropout=0.0, norm_first=True, activation="gelu", **sizes)


class WordList:
    """Words in lower case <-> ids; `<cls>` is before every text."""

    def __init__(self, texts: Iterable[str]) -> None:
        words = sorted({word for text in texts for word in split(text)} - {*SPECIALS})
        self.tokens = [*SPECIALS, *words]
        self.ids = {token: id for id, token in enumerate(self.tokens)}

    def encode(self, text: str) -> list[int]:
        """Return the text's ids; a word that is not known is `<unk>`, and "<mask>" stands for itself."""
        return [CLS, *(self.ids.get(word, UNK) for word in split(text))]

    def batch(self, texts: Sequence[str]) -> Tensor:
        """Return (batch, length), padded at the end."""
        return pad_sequences([self.encode(text) for text in texts], PAD)


def split(text: str) -> list[str]:
    """Return words and punctuation, in lower case."""
    for mark in ".,!?;":
        text = text.replace(mark, f" {mark} ")
    return text.lower().split()


class MaskedLanguageModel(nn.Module):
    """An encoder that scores the word at each position; the embedding is the output table (Devlin et al., 3.1)."""

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config.source_vocabulary, config.d_model)
        self.positions = SinusoidalPositions(config.max_length, config.d_model)
        self.encoder = Encoder(config)
        self.bias = nn.Parameter(torch.zeros(config.source_vocabulary))
        for parameter in self.encoder.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter, generator=generator)
        self.embedding.reset_parameters(generator)

    def encode(self, ids: Tensor, need_weights: bool = False) -> EncoderResult:
        """Return the encoder's output for ids (batch, length); every position attends to every real token."""
        x = self.positions(self.embedding(ids))  # (batch, length, d_model)
        return self.encoder(x, padding_mask(ids, PAD), need_weights)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits (batch, length, vocabulary) of the word at each position, masked there or not."""
        return self.encode(ids).memory @ self.embedding.weight.T + self.bias


class ReviewJudge(nn.Module):
    """A pretrained encoder, a pooled vector, and a head with two outputs: blame and praise."""

    def __init__(self, body: MaskedLanguageModel, how: How = "mean") -> None:
        super().__init__()
        self.body, self.how = body, how
        self.head = nn.Linear(body.config.d_model, 2)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits (batch, 2) for ids (batch, length)."""
        return self.head(pool(self.body.encode(ids).memory, ids != PAD, self.how))


def pretrain(
    model: MaskedLanguageModel,
    ids: Sequence[Tensor],
    steps: int,
    g: torch.Generator,
    batch: int = 64,
    rate: float = 3e-3,
) -> list[float]:
    """Train on rows of ids, (length,) each, with 15 % of the words masked anew at each step; return the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    fall = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    losses: list[float] = []
    model.train()
    for _, rows in zip(range(steps), batches(ids, batch, g), strict=False):
        inputs, labels = mlm_mask(rows, HIDDEN_SHARE, g, MASK, len(model.bias), (PAD, CLS))
        loss = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        fall.step()
        losses.append(loss.item())
    model.eval()
    return losses


def batches(ids: Sequence[Tensor], size: int, g: torch.Generator) -> Iterator[Tensor]:
    """Yield padded batches without end, each drawn from all rows."""
    while True:
        chosen = torch.randint(len(ids), (size,), generator=g)
        yield nn.utils.rnn.pad_sequence([ids[i] for i in chosen.tolist()], batch_first=True, padding_value=PAD)


def fine_tune(
    judge: ReviewJudge, ids: Tensor, labels: Tensor, steps: int, g: torch.Generator, rate: float = 1e-3, batch: int = 16
) -> None:
    """Train the judge's parameters that are not frozen, on reviews (count, length) and labels (count,)."""
    learning = [parameter for parameter in judge.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=rate, weight_decay=0.01)
    judge.train()
    for _ in range(steps):
        chosen = torch.randint(len(ids), (batch,), generator=g)
        loss = F.cross_entropy(judge(ids[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
    judge.eval()


@torch.no_grad()
def right(judge: ReviewJudge, ids: Tensor, labels: Tensor) -> float:
    """Return the judge's accuracy on reviews, from 0 to 1."""
    return (judge(ids).argmax(-1) == labels).float().mean().item()


@torch.no_grad()
def guesses(model: MaskedLanguageModel, words: WordList, text: str, count: int = 5) -> list[tuple[str, float]]:
    """Return the likeliest words for the one "<mask>" of a text, each with its probability.

    count: how many, at most all words. Raises ValueError for a text with none or several.
    """
    ids = words.batch([text])
    if (masks := int((ids == MASK).sum())) != 1:
        raise ValueError(f'text: expected one "<mask>", got {masks} in {text[:40]!r}')
    shares = model(ids)[ids == MASK][0].softmax(-1)  # (vocabulary,)
    best = shares.topk(min(count, len(shares)))
    return [(words.tokens[id], share) for id, share in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def pack(judge: ReviewJudge, words: WordList, known: Iterable[str]) -> dict[str, Any]:
    """Return a judge as plain values for JSON, in half precision and with only the words of some texts."""
    small = WordList(known)
    rows = torch.tensor([words.ids[token] for token in small.tokens])
    state = dict(judge.state_dict())
    for name in ("body.embedding.weight", "body.bias"):
        state[name] = state[name][rows]
    packed = {
        name: [list(tensor.shape), b64encode(tensor.half().contiguous().numpy().tobytes()).decode()]
        for name, tensor in state.items()
    }
    return {"words": small.tokens[len(SPECIALS) :], "how": judge.how, "weights": packed}


def unpack(packed: dict[str, Any]) -> tuple[ReviewJudge, WordList]:
    """Return the judge, in evaluation mode, and its words, from what `pack` returned."""
    words = WordList([" ".join(packed["words"])])
    judge = ReviewJudge(MaskedLanguageModel(small_config(len(words.tokens))), packed["how"])
    judge.load_state_dict(
        {
            name: torch.frombuffer(bytearray(b64decode(text)), dtype=torch.float16).view(shape).float()
            for name, (shape, text) in packed["weights"].items()
        }
    )
    return judge.eval(), words
