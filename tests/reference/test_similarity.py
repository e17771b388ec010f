"""Dot product, cosine and scaled scores."""

import math

import pytest
import torch
from drawn import generator, seeds, sizes, tensor
from hypothesis import given

from transformer_ref.model.similarity import cosine, dot, scaled_dot_product_scores

WORDS = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])  # I closed the windows


@given(sizes(3), seeds)
def test_scores_are_the_dot_products_divided_by_the_root_of_d_k(drawn, seed):
    queries, keys, d_k = drawn
    query, key = tensor(seed, queries, d_k), tensor(seed + 1, keys, d_k)
    expected = dot(query[:, None], key[None]) / d_k**0.5
    torch.testing.assert_close(scaled_dot_product_scores(query, key), expected)


@given(sizes(3), seeds)
def test_cosine_ignores_length_and_stays_between_minus_one_and_one(drawn, seed):
    rows, columns, d_model = drawn
    a, b = tensor(seed, rows, d_model), tensor(seed + 1, columns, d_model)
    assert cosine(a, b).abs().max() <= 1 + 1e-12  # rounding of the norms
    torch.testing.assert_close(cosine(3 * a, b / 7), cosine(a, b))
    torch.testing.assert_close(cosine(a, a).diagonal(), torch.ones(rows, dtype=torch.float64))


@given(sizes(3), seeds)
def test_writing_every_vector_twice_multiplies_the_scores_by_root_two(drawn, seed):
    queries, keys, d_k = drawn
    query, key = tensor(seed, queries, d_k), tensor(seed + 1, keys, d_k)
    doubled = scaled_dot_product_scores(query.repeat(1, 2), key.repeat(1, 2))
    torch.testing.assert_close(doubled, math.sqrt(2) * scaled_dot_product_scores(query, key))


def test_the_four_words_have_the_scores_of_the_table():
    expected = torch.tensor([[1, 1, 0, 2], [1, 2, 1, 2], [0, 1, 1, 0], [2, 2, 0, 4]]) / math.sqrt(2)
    torch.testing.assert_close(scaled_dot_product_scores(WORDS, WORDS), expected)


def test_dot_and_cosine_of_the_worked_example():
    a, others = torch.tensor([1.0, 4.0]), torch.tensor([[0.0, 3.0], [3.0, 0.0]])
    assert dot(a, others).tolist() == [12.0, 3.0]
    torch.testing.assert_close(cosine(a[None], others), torch.tensor([[0.970, 0.243]]), atol=5e-4, rtol=0)


def test_a_zero_vector_is_similar_to_nothing_and_has_finite_gradients():
    a = torch.zeros(2, 3, requires_grad=True)
    similarity = cosine(a, torch.ones(4, 3))
    assert similarity.tolist() == [[0.0] * 4] * 2
    similarity.sum().backward()
    assert a.grad.isfinite().all()


def test_scores_of_random_vectors_keep_a_spread_of_one_at_every_d_k():
    for d_k in (4, 64, 512):
        query, key = torch.randn(2, 300, d_k, generator=generator(d_k)).unbind()
        spread = scaled_dot_product_scores(query, key).std().item()
        assert spread == pytest.approx(1, abs=0.05)  # of 90,000 scores


@pytest.mark.parametrize(("query", "key"), [((2, 4, 5), (2, 6, 3)), ((2, 4, 5), (3, 6, 5)), ((4, 5), (1, 6, 5))])
def test_a_key_that_does_not_fit_the_query_is_refused_by_name(query, key):
    with pytest.raises(ValueError, match="key: expected shape"):
        scaled_dot_product_scores(torch.zeros(query), torch.zeros(key))


def test_vectors_of_two_widths_are_refused():
    with pytest.raises(ValueError, match=r"b: expected shape \(..., 3\), got \(2,\)"):
        dot(torch.zeros(3), torch.zeros(2))
