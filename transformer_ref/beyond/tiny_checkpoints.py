"""Folders that Hugging Face's pipelines read, made on the spot: a judge and a writer (chapter 15).

Wolf et al. 2020, "Transformers". Both are tiny and trained for seconds, so that what they say means something, in the
world of the course and nowhere else. Needs the package `transformers`.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer_ref.beyond.reviews import write_reviews
from transformer_ref.data.batching import pad_sequences
from transformer_ref.data.grammar.corpora import build_corpus

PAD, UNK, BEGIN, END = range(4)
NAMES = ("<pad>", "<unk>", "<s>", "</s>")
D_MODEL, HEADS, LAYERS = 32, 2, 2
LONGEST = 40


def make_sentiment_folder(folder: str | Path, reviews: int = 400, steps: int = 120, seed: int = 1) -> Path:
    """Write a tiny BERT that was trained to classify generated reviews, and its tokenizer; return the folder."""
    from transformers import BertConfig, BertForSequenceClassification  # no other module should wait for it

    written = write_reviews(reviews, seed)
    tokenizer = _tokenizer([review.text for review in written], ends=("<s>", "</s>"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=D_MODEL,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=2 * D_MODEL,
            max_position_embeddings=LONGEST,
            pad_token_id=PAD,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            initializer_range=0.1,
            id2label={0: "NEGATIVE", 1: "POSITIVE"},
            label2id={"NEGATIVE": 0, "POSITIVE": 1},
        )
        model = BertForSequenceClassification(config)
        ids = pad_sequences([tokenizer(review.text)["input_ids"] for review in written], PAD)
        labels = torch.tensor([review.label for review in written])
        _train(model, ids, labels, steps, seed)
    return _written(folder, model, tokenizer)


def make_generation_folder(folder: str | Path, sentences: int = 3_000, steps: int = 200, seed: int = 1) -> Path:
    """Write a tiny GPT-2 that was trained on the built-in English sentences, and its tokenizer; return the folder."""
    from transformers import GPT2Config, GPT2LMHeadModel

    texts = [pair.english for pair in build_corpus(sentences, 0, 0, 0).train]
    tokenizer = _tokenizer(texts, ends=None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=LONGEST,
            n_embd=D_MODEL,
            n_layer=LAYERS,
            n_head=HEADS,
            bos_token_id=BEGIN,
            eos_token_id=END,
            pad_token_id=PAD,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
        model = GPT2LMHeadModel(config)
        ids = pad_sequences([[*tokenizer(text)["input_ids"], END] for text in texts], PAD)
        labels = ids.masked_fill(ids == PAD, -100)
        _train(model, ids, labels, steps, seed)
    return _written(folder, model, tokenizer)


def _tokenizer(texts: Sequence[str], ends: tuple[str, str] | None):
    """A word list as theirs: a word keeps the space before it; `ends` begin and end each text."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    cut = pre_tokenizers.Split(Regex(r" ?\w+|[^\w\s]"), "removed", invert=True)
    words = sorted({word for text in texts for word, _ in cut.pre_tokenize_str(text)})
    ids = {token: id for id, token in enumerate([*NAMES, *words])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=NAMES[UNK]))
    tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.Fuse()
    if ends:
        begin, end = ends
        pairs = [(begin, ids[begin]), (end, ids[end])]
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{begin} $A {end}", special_tokens=pairs)
    names = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), NAMES, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _train(model: nn.Module, ids: Tensor, labels: Tensor, steps: int, seed: int) -> None:
    """Train with the loss that the library's models compute, on 32 texts per step."""
    g = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        rows = torch.randint(len(ids), (32,), generator=g)
        loss = model(input_ids=ids[rows], attention_mask=ids[rows] != PAD, labels=labels[rows]).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()


def _written(folder: str | Path, model: nn.Module, tokenizer) -> Path:
    folder = Path(folder)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
