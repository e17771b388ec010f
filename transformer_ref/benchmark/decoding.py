"""A thousand sentences translated, by us and by others, with the same weights and so the same words."""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from transformer_ref.benchmark.contest import OURS, Contender
from transformer_ref.config import DecodingConfig, ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream, pad_sequences
from transformer_ref.data.grammar import build_corpus
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.faster import TrainingLoss, accelerate, freed_memory_kept, top_k
from transformer_ref.interop.ctranslate2 import save_ctranslate2
from transformer_ref.interop.marian import save_marian
from transformer_ref.model.transformer import Transformer
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.training.optimizer import build_optimizer
from transformer_ref.training.trainer import Training, fit

SENTENCES, NAIVE_SENTENCES = 1_000, 25  # the naive decoder is some fifty times as slow
BATCH_SIZE = 100
BEAM = 5
EXTRA_LENGTH = DecodingConfig.extra_length
TALKER = TrainingConfig(
    steps=200, warm_up=40, tokens_per_batch=2_048, learning_rate=1e-3, muon_rate=2e-3, precision="auto"
)  # enough to end each sentence where it should end
MODEL_FILE = "talker.safetensors"
Ids = list[list[int]]


def talker(config: ModelConfig, folder: Path, device: torch.device, say: Callable[[str], None]) -> Transformer:
    """Return a model that knows when a sentence is over; it is trained once and kept in the folder.

    A model with drawn weights would go on to the last position, as no translator does.
    """
    model = accelerate(Transformer(config, torch.Generator().manual_seed(1)).to(device))
    path = folder / MODEL_FILE
    if path.is_file():
        tensors = load_file(path, device=str(device))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(tensors[name])
        return model.eval()
    corpus = build_corpus()
    say(f"training a model to translate with: {TALKER.steps} steps")
    tokenizer = _tokenizer(corpus)
    sides = [
        [tokenizer.encode(line) for line in lines]
        for lines in ([pair.english for pair in corpus.train], [pair.italian for pair in corpus.train])
    ]
    stream = BatchStream(*sides, TALKER.tokens_per_batch, config.pad, config.bos, config.eos, TALKER.seed)
    loss = TrainingLoss(config.pad, TALKER.label_smoothing)
    fit(Training(model, build_optimizer(model, TALKER), stream, TALKER, loss))
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: parameter.detach().cpu() for name, parameter in model.named_parameters()}, path)
    return model.eval()


def sources(config: ModelConfig) -> Ids:
    """Return the sentences to translate, the longest first, each ending in eos."""
    corpus = build_corpus()
    tokenizer = _tokenizer(corpus)
    lines = [pair.english for pair in itertools.islice(itertools.chain(corpus.test, corpus.validation), SENTENCES)]
    return sorted(([*tokenizer.encode(line), config.eos] for line in lines), key=len, reverse=True)


def _tokenizer(corpus) -> WordTokenizer:
    return WordTokenizer.build(line for pair in corpus.train for line in (pair.english, pair.italian))


def decoding_contenders(
    model: Transformer, sentences: Ids, beam: int, folder: Path, precisions: Sequence[str]
) -> list[Contender]:
    """Return us in each precision, and every peer that is installed; beam 1 is greedy decoding."""
    contenders = []
    for precision in precisions:
        of_precision = copy.deepcopy(model).to(torch.bfloat16) if precision == "bf16" else model
        contenders.append(Contender(OURS, precision, _ours(of_precision, sentences, beam)))
    if beam == 1:
        contenders.append(Contender("naive", "fp32", _naive(model, sentences)))
    if find_spec("transformers"):
        contenders += _marian(model, sentences, beam, folder / "marian", precisions)
    if find_spec("ctranslate2"):
        contenders += [
            _ctranslate2(name, precision, model, sentences, beam, folder / name, quantization)
            for name, precision, quantization in (("CTranslate2", "fp32", None), ("CTranslate2 int8", "int8", "int8"))
        ]
    return contenders


def translate(model: Transformer, sentences: Ids, beam: int) -> Ids:
    """Return the translations' ids, in the order of the sentences."""
    device, found = model.output.weight.device, []
    for start in range(0, len(sentences), BATCH_SIZE):
        batch = pad_sequences(sentences[start : start + BATCH_SIZE], model.config.pad).to(device)
        length = min(batch.shape[1] + EXTRA_LENGTH, model.config.max_length)
        if beam == 1:
            found += greedy_decode(model, batch, length).tolist()
        else:
            found += [hypotheses[0].ids for hypotheses in beam_search(model, batch, beam, length, 1.0, top_k)]
    return found


def _ours(model: Transformer, sentences: Ids, beam: int) -> Callable[[], int]:
    def work() -> int:
        with freed_memory_kept():  # as in `__main__`
            return len(translate(model, sentences, beam))

    return work


def _naive(model: Transformer, sentences: Ids) -> Callable[[], int]:
    """One sentence at a time, the whole target read anew for each word: how a first decoder is written."""
    some = sentences[:: max(len(sentences) // NAIVE_SENTENCES, 1)]
    device = model.output.weight.device

    def work() -> int:
        for sentence in some:
            greedy_decode(model, torch.tensor([sentence], device=device), len(sentence) + EXTRA_LENGTH, use_cache=False)
        return len(some)

    return work


def _marian(model: Transformer, sentences: Ids, beam: int, folder: Path, precisions: Sequence[str]) -> list[Contender]:
    from transformers import MarianMTModel

    save_marian(model, folder)
    device, pad = model.output.weight.device, model.config.pad

    def working(theirs: nn.Module) -> Callable[[], int]:
        def work() -> int:
            for start in range(0, len(sentences), BATCH_SIZE):
                batch = pad_sequences(sentences[start : start + BATCH_SIZE], pad).to(device)
                theirs.generate(
                    batch,
                    attention_mask=batch != pad,
                    num_beams=beam,
                    do_sample=False,
                    length_penalty=1.0,
                    max_new_tokens=batch.shape[1] + EXTRA_LENGTH,
                )
            return len(sentences)

        return work

    return [
        Contender(
            "Hugging Face Marian" + (" bf16" if precision == "bf16" else ""),
            precision,
            working(
                MarianMTModel.from_pretrained(folder, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
                .to(device)
                .eval()
            ),
        )
        for precision in precisions
    ]


def _ctranslate2(
    name: str, precision: str, model: Transformer, sentences: Ids, beam: int, folder: Path, quantization: str | None
) -> Contender:
    """Return a contender whose threads live in its own turns alone.

    They share torch's OpenMP, which lets threads sleep at every wait when there are more of them than processors: as
    long as they lived, everyone who computes with torch would be a quarter slower.
    """
    import ctranslate2

    save_ctranslate2(model, folder, quantization)
    device = model.output.weight.device.type
    named = [[str(id) for id in sentence] for sentence in sentences]
    living: list[ctranslate2.Translator] = []

    @contextmanager
    def alive() -> Iterator[None]:
        living.append(
            ctranslate2.Translator(
                str(folder),
                device=device,
                intra_threads=torch.get_num_threads(),
                compute_type=quantization or "float32",
            )
        )
        try:
            yield
        finally:
            living.clear()

    def translated(some: list[list[str]]) -> int:
        return len(
            living[0].translate_batch(
                some,
                beam_size=beam,
                length_penalty=1.0,
                max_batch_size=BATCH_SIZE,
                max_decoding_length=len(named[0]) + EXTRA_LENGTH,
            )
        )

    return Contender(name, precision, lambda: translated(named), alive, first=lambda: translated(named[-BATCH_SIZE:]))
