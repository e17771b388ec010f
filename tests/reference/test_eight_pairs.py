"""The eight pairs that a model learns by heart."""

import torch

from transformer_ref.data.eight_pairs import PAIRS, eight_pairs
from transformer_ref.data.grammar.corpora import build_corpus
from transformer_ref.special_tokens import BOS, EOS, PAD


def test_the_pairs_stand_in_the_corpus():
    corpus = build_corpus(train=400, validation=0, test=0, held_out=0)
    assert {*PAIRS} <= {(pair.english, pair.italian) for pair in corpus.train}


def test_the_input_is_the_labels_one_place_later_and_each_row_ends_in_eos():
    batch = eight_pairs()
    inside = batch.labels[:, :-1] != EOS
    assert batch.target_input[:, 0].tolist() == [BOS] * 8
    assert torch.equal(batch.target_input[:, 1:][inside], batch.labels[:, :-1][inside])
    assert all((row == EOS).sum() == 1 for row in [*batch.source, *batch.labels])
    assert EOS not in batch.target_input and (batch.source == PAD).any()


def test_the_batch_reads_as_the_pairs():
    batch = eight_pairs()
    for (english, italian), source, labels in zip(PAIRS, batch.source, batch.labels, strict=True):
        for text, ids, tokens in ((english, source, batch.english), (italian, labels, batch.italian)):
            words = [tokens[id] for id in ids.tolist() if id not in (PAD, EOS)]
            assert " ".join(words) == text.lower().replace(".", " .")
