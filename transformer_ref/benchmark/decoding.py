"""Some hundred sentences translated, by us and by peers, with the same weights and the same number of tokens.

The weights are random, and the rows of the special tokens in the (tied) embedding are zero. A zero row scores 0, and
among thousands of random scores there are always larger ones, so no contender ever chooses the end of the sentence.
Each writes as many tokens as the longest reference in the batch has. Nothing has to be trained first, nobody is faster
because its translations are shorter, and beam searches with different stopping rules do the same work.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch

from transformer_ref.benchmark.contest import OURS, Contender
from transformer_ref.benchmark.sentences import invented_sentences
from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import pad_sequences
from transformer_ref.decoding.beam_search import beam_search
from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.faster import accelerate, for_inference, freed_memory_kept, top_k
from transformer_ref.interop.ctranslate2 import save_ctranslate2
from transformer_ref.interop.marian import save_marian
from transformer_ref.model.transformer import Transformer
from transformer_ref.special_tokens import SPECIAL_TOKENS

SENTENCES, NAIVE_SENTENCES = 500, 10  # the naive decoder is some fifty times as slow
BATCH_SIZE = 100
BEAM = 5
Ids = list[list[int]]

# how our model is prepared for each precision in which we decode
OUR_PRECISIONS: dict[str, Callable[[Transformer], Transformer]] = {
    "fp32": for_inference,
    "bf16": lambda model: for_inference(copy.deepcopy(model).to(torch.bfloat16)),
    "int8": lambda model: for_inference(model, int8=True),
}


class SentenceBatch(NamedTuple):
    """Sources, each ending in eos, and the number of tokens to generate for each."""

    sources: Ids
    length: int


class Decoder(NamedTuple):
    """decode: returns the new tokens of each sentence, without bos; around: what its turns run in."""

    name: str
    precision: str
    decode: Callable[[SentenceBatch], Ids]
    around: Callable[[], AbstractContextManager] = nullcontext


def endless_model(config: ModelConfig, device: torch.device) -> Transformer:
    """Return a model with random weights that never generates a special token; see above. Needs a tied embedding."""
    model = accelerate(Transformer(config, torch.Generator().manual_seed(1)).to(device)).eval()
    with torch.no_grad():
        model.output.weight[: len(SPECIAL_TOKENS)] = 0.0
    return model


def sentence_batches(config: ModelConfig) -> list[SentenceBatch]:
    """Return the batches to translate, the longest sentences first."""
    sources, targets = invented_sentences(config.target_vocabulary, SENTENCES)
    order = sorted(range(SENTENCES), key=lambda item: len(sources[item]), reverse=True)
    return [
        SentenceBatch(
            [[*sources[item], config.eos] for item in items],
            max(len(targets[item]) for item in items) + 1,  # eos, which a translator would write
        )
        for items in (order[start : start + BATCH_SIZE] for start in range(0, SENTENCES, BATCH_SIZE))
    ]


def decoding_contenders(
    model: Transformer, batches: Sequence[SentenceBatch], beam: int, folder: Path, precisions: Sequence[str]
) -> list[Contender]:
    """Return this package in each precision, and every peer that is installed; beam 1 is greedy decoding.

    folder: where the models of peers are written; precisions: fp32, and bf16 where it is fast. int8, which torch has
    for no other library's model, is measured where we or a peer have it.
    """
    contenders = [_contender(decoder, batches) for decoder in decoders(model, beam, folder, precisions)]
    if beam == 1:
        some = [
            SentenceBatch([source], batch.length)
            for batch in batches
            for source in batch.sources[:: -(-SENTENCES // NAIVE_SENTENCES)]
        ]
        contenders.append(_contender(_naive(model), some))
    return contenders


def _contender(decoder: Decoder, batches: Sequence[SentenceBatch]) -> Contender:
    return Contender(
        decoder.name,
        decoder.precision,
        lambda: sum(len(decoder.decode(batch)) for batch in batches),
        decoder.around,
        first=lambda: decoder.decode(batches[-1]),
    )


def decoders(model: Transformer, beam: int, folder: Path, precisions: Sequence[str]) -> list[Decoder]:
    """Return this package in each precision, and every peer that is installed."""
    device = model.output.weight.device.type
    of_ours = [*precisions, "int8"] if device == "cpu" else precisions
    found = [_ours(model, beam, each) for each in OUR_PRECISIONS if each in of_ours]
    if find_spec("transformers"):
        save_marian(model, folder / "marian")
        found += [_marian(model, beam, folder / "marian", each) for each in precisions]
    if find_spec("ctranslate2") and device in ("cpu", "cuda"):
        found += [_ctranslate2(model, beam, folder / f"ctranslate2_{each}", each) for each in ("fp32", "int8")]
    return found


def _ours(model: Transformer, beam: int, precision: str) -> Decoder:
    prepared = OUR_PRECISIONS[precision](model)
    device, pad = model.output.weight.device, model.config.pad

    def decode(batch: SentenceBatch) -> Ids:
        sources = pad_sequences(batch.sources, pad).to(device)
        if beam == 1:
            return greedy_decode(prepared, sources, batch.length)[:, 1:].tolist()
        return [best[0].ids[1:] for best in beam_search(prepared, sources, beam, batch.length, 1.0, top_k)]

    return Decoder(OURS, precision, decode, freed_memory_kept)  # as in `__main__`


def _naive(model: Transformer) -> Decoder:
    """Decode one sentence at a time and read the whole target again for each token, as a first decoder does."""
    device = model.output.weight.device

    def decode(batch: SentenceBatch) -> Ids:
        sources = torch.tensor(batch.sources, device=device)
        return greedy_decode(model, sources, batch.length, use_cache=False)[:, 1:].tolist()

    return Decoder("naive", "fp32", decode)


def _marian(model: Transformer, beam: int, folder: Path, precision: str) -> Decoder:
    from transformers import MarianMTModel

    device, pad = model.output.weight.device, model.config.pad
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    theirs = MarianMTModel.from_pretrained(folder, dtype=dtype).to(device).eval()

    def decode(batch: SentenceBatch) -> Ids:
        sources = pad_sequences(batch.sources, pad).to(device)
        generated = theirs.generate(
            sources,
            attention_mask=sources != pad,
            num_beams=beam,
            do_sample=False,
            length_penalty=1.0,
            max_new_tokens=batch.length,
        )
        return generated[:, 1:].tolist()

    return Decoder("Hugging Face Marian", precision, decode)


def _ctranslate2(model: Transformer, beam: int, folder: Path, precision: str) -> Decoder:
    """Return a decoder whose threads exist only during its own turns.

    They share torch's OpenMP, where threads sleep at every wait if there are more of them than processors. While they
    exist, everything that computes with torch is a quarter slower.
    """
    import ctranslate2

    save_ctranslate2(model, folder, "int8" if precision == "int8" else None)
    device = model.output.weight.device.type
    alive: list[ctranslate2.Translator] = []

    @contextmanager
    def around() -> Iterator[None]:
        alive.append(
            ctranslate2.Translator(
                str(folder),
                device=device,
                intra_threads=torch.get_num_threads(),
                compute_type="int8" if precision == "int8" else "float32",
            )
        )
        try:
            yield
        finally:
            alive.clear()

    def decode(batch: SentenceBatch) -> Ids:
        results = alive[0].translate_batch(
            [[str(id) for id in source] for source in batch.sources],
            beam_size=beam,
            length_penalty=1.0,
            max_batch_size=BATCH_SIZE,
            max_decoding_length=batch.length,
        )
        return [[int(name) for name in result.hypotheses[0]] for result in results]

    return Decoder("CTranslate2", precision, decode, around)
