"""Folders made on the spot do what Hugging Face's pipelines ask of them, without a network."""

import pytest
import torch

from transformer_ref.beyond.reviews import write_reviews
from transformer_ref.beyond.tiny_checkpoints import make_generation_folder, make_sentiment_folder
from transformer_ref.data.grammar.corpora import build_corpus

transformers = pytest.importorskip("transformers")


def test_the_sentiment_pipeline_judges_reviews_that_it_has_not_read(tmp_path):
    judge = transformers.pipeline("sentiment-analysis", model=str(make_sentiment_folder(tmp_path)), device="cpu")
    reviews = write_reviews(100, seed=77)
    verdicts = judge([review.text for review in reviews])
    hits = sum(
        (verdict["label"] == "POSITIVE") == review.label for verdict, review in zip(verdicts, reviews, strict=True)
    )
    assert hits > 85
    assert len({verdict["label"] for verdict in verdicts}) == 2


def test_the_generation_pipeline_goes_on_with_a_sentence_in_words_that_it_has_read(tmp_path):
    folder = make_generation_folder(tmp_path, sentences=1_000, steps=60)
    write = transformers.pipeline("text-generation", model=str(folder), device="cpu")
    (written,) = write("I", max_new_tokens=6, do_sample=False)
    text = written["generated_text"]
    words = {word.strip(".,") for pair in build_corpus(1_000, 0, 0, 0).train for word in pair.english.split()}
    assert text.startswith("I ") and len(text.split()) > 2
    assert {word.strip(".,") for word in text.split()} <= words, text


def test_making_a_folder_leaves_the_global_generator_alone(tmp_path):
    before = torch.get_rng_state()
    make_sentiment_folder(tmp_path, reviews=20, steps=1)
    assert torch.equal(torch.get_rng_state(), before)
