"""Hidden words, pooled sentences, frozen parts and foreign weights."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_ref.beyond.masked_language import (
    MASK,
    PAD,
    MaskedLanguageModel,
    ReviewJudge,
    WordList,
    fine_tune,
    guesses,
    pack,
    pretrain,
    right,
    small_config,
    unpack,
)
from transformer_ref.beyond.pretrained import IGNORED, as_foreign, freeze_except, load_mapped, mlm_mask, pool
from transformer_ref.beyond.reviews import BLAME, PRAISE, SEEN, UNSEEN, write_reviews
from transformer_ref.beyond.small_encoder import SmallClassifier, SmallEncoder

V, MASK_ID, SPECIALS = 50, 7, (0, 3)


def g(seed):
    return torch.Generator().manual_seed(seed)


def some_ids(batch, length, seed):
    return torch.randint(V, (batch, length), generator=g(seed))


@given(batch=st.integers(1, 4), length=st.integers(1, 9), p=st.floats(0, 1), seed=st.integers(0, 99))
@settings(deadline=None)
def test_labels_are_the_text_where_it_was_chosen_and_nothing_else_changes(batch, length, p, seed):
    ids = some_ids(batch, length, seed)
    before = ids.clone()
    inputs, labels = mlm_mask(ids, p, g(seed), MASK_ID, V, SPECIALS)
    chosen = labels != IGNORED
    assert torch.equal(ids, before)
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])
    assert not (chosen & torch.isin(ids, torch.tensor(SPECIALS))).any()


def test_of_the_chosen_tokens_eighty_percent_are_hidden_and_a_tenth_is_any_word():
    ids = torch.full((200, 500), 9)
    inputs, labels = mlm_mask(ids, 0.15, g(1), MASK_ID, V, SPECIALS)
    chosen = labels != IGNORED
    count = int(chosen.sum())
    assert abs(count / ids.numel() - 0.15) < 6 * (0.15 * 0.85 / ids.numel()) ** 0.5
    for share, found in ((0.8 + 0.1 / V, inputs == MASK_ID), (0.1 + 0.1 / V, chosen & (inputs == 9))):
        assert abs(int((found & chosen).sum()) / count - share) < 6 * (share * (1 - share) / count) ** 0.5
    assert len(inputs[chosen].unique()) == V  # any word, special ones among them


def test_tokens_are_chosen_one_by_one_and_not_by_sentences():
    _, labels = mlm_mask(torch.full((300, 40), 9), 0.5, g(2), MASK_ID, V, SPECIALS)
    shares = (labels != IGNORED).float().mean(dim=1)
    assert shares.min() > 0.05 and shares.max() < 0.95


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_a_share_that_is_none_is_refused(p):
    with pytest.raises(ValueError, match="p: expected a probability"):
        mlm_mask(some_ids(2, 3, 1), p, g(1), MASK_ID, V, SPECIALS)


H = torch.tensor([[[-1.0, 4.0], [-3.0, 2.0], [9.0, 9.0]], [[5.0, 1.0], [2.0, 2.0], [-4.0, 3.0]]])
REAL = torch.tensor([[True, True, False], [True, True, True]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mean", [[-2.0, 3.0], [1.0, 2.0]]),
        ("max", [[-1.0, 4.0], [5.0, 3.0]]),
        ("cls", [[-1.0, 4.0], [5.0, 1.0]]),
    ],
)
def test_pooling_counts_real_words_alone(how, expected):
    assert pool(H, REAL, how).tolist() == expected


@pytest.mark.parametrize("how", ["mean", "max"])
def test_a_sentence_without_words_is_zeros_with_a_finite_gradient(how):
    h = H.clone().requires_grad_()
    out = pool(h, torch.zeros(2, 3, dtype=torch.bool), how)
    out.sum().backward()
    assert not out.any() and h.grad.isfinite().all()


def test_another_way_to_pool_is_refused():
    with pytest.raises(ValueError, match="how: expected one of mean, cls, max, got 'sum'"):
        pool(H, REAL, "sum")


def classifier():
    torch.manual_seed(3)
    return SmallClassifier(SmallEncoder(11, 4, 6, 12, 9), 2)


def test_a_name_means_itself_and_what_follows_its_dot():
    model = classifier()
    assert freeze_except(model, ["head"]) == ["head.weight", "head.bias"]
    assert freeze_except(model, ["encoder.layers.1"])[0] == "encoder.layers.1.norm1.weight"
    assert not model.encoder.layers[10].key.weight.requires_grad and not model.head.weight.requires_grad


def test_what_is_frozen_does_not_move_even_if_it_had_a_gradient():
    model = classifier()
    ids = torch.randint(11, (3, 5), generator=g(4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    model(ids).sum().backward()
    freeze_except(model, ["head"])
    before = copy.deepcopy(model.state_dict())
    model(ids).sum().backward()
    optimizer.step()
    moved = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert moved == {"head.weight", "head.bias"}


def test_a_name_that_the_model_does_not_have_is_refused():
    with pytest.raises(ValueError, match="got 'hea'"):
        freeze_except(classifier(), ["head", "hea"])


def test_foreign_weights_give_the_outputs_of_the_model_they_come_from():
    torch.manual_seed(5)
    theirs, ours = (SmallEncoder(11, 4, 6, 3, 9).double() for _ in range(2))
    theirs.half().double()
    for parameter in theirs.parameters():
        parameter.data = parameter.data.half().double()  # what a file in half precision can hold
    kept = list(ours.parameters())
    left_out = load_mapped(as_foreign(theirs), ours)
    ids = torch.randint(11, (2, 7), generator=g(6))
    assert torch.allclose(ours(ids), theirs(ids), atol=1e-12)
    assert all(one is other for one, other in zip(kept, ours.parameters(), strict=True))
    assert ours.norm.weight.dtype == torch.float64
    assert sorted(left_out) == [*(f"encoder.block.{n}.attn.mask" for n in range(3)), "head.weight"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sd: sd.pop("encoder.block.1.mlp.up.bias"), "what becomes layers.1.wide.bias, got nothing"),
        (lambda sd: sd.update({"encoder.block.2.ln_1.scale": torch.ones(4)}), "no place for, got layers.2"),
        (lambda sd: sd.update({"encoder.block.1.ln_3.scale": torch.ones(4)}), "got 'encoder.block.1.ln_3.scale'"),
        (lambda sd: sd.update({"decoder.embed.weight": torch.ones(4)}), "got 'decoder.embed.weight'"),
        (lambda sd: sd.update({"encoder.ln_last.scale": torch.ones(5)}), r"shape \(4,\), got \(5,\)"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_and_nothing_is_loaded(change, message):
    torch.manual_seed(7)
    theirs, ours = (SmallEncoder(11, 4, 6, 2, 9) for _ in range(2))
    sd, before = as_foreign(theirs), copy.deepcopy(ours.state_dict())
    change(sd)
    with pytest.raises(ValueError, match=message):
        load_mapped(sd, ours)
    assert all(torch.equal(tensor, before[name]) for name, tensor in ours.state_dict().items())


def test_labeled_and_other_words_have_none_in_common_and_reviews_use_what_they_may():
    assert not {*SEEN[0], *SEEN[1]} & {*UNSEEN[0], *UNSEEN[1]} and not set(PRAISE) & set(BLAME)
    others = {*UNSEEN[0], *UNSEEN[1]}
    assert not any(set(review.text.split()) & others for review in write_reviews(200, 1, SEEN))
    assert write_reviews(20, 1) == write_reviews(20, 1) != write_reviews(20, 2)


def test_a_hidden_place_sees_both_sides_and_no_padding():
    words = WordList(["a b c d"])
    model = MaskedLanguageModel(small_config(len(words.tokens)), g(8)).eval()
    first, other = words.batch(["<mask> b c", "<mask> b d"])
    with torch.no_grad():
        one, two = (model(ids[None])[0, 1] for ids in (first, other))
        assert not torch.allclose(one, two)
        padded = torch.cat([first, torch.full((3,), PAD)])
        assert torch.allclose(model(padded[None])[0, 1], one, atol=1e-5)


def test_pretraining_learns_a_rule_and_a_judge_survives_packing():
    words = WordList(["cat meow", "dog bark"])
    rows = [torch.tensor(words.encode(text)) for text in ("cat meow", "dog bark")]
    model = MaskedLanguageModel(small_config(len(words.tokens)), g(9))
    losses = pretrain(model, rows, 120, g(10), batch=32, rate=1e-2)
    assert sum(losses[-20:]) < 0.7 * sum(losses[:20])
    assert guesses(model, words, "cat <mask>")[0][0] == "meow" and guesses(model, words, "dog <mask>")[0][0] == "bark"
    judge = ReviewJudge(model)
    ids, labels = torch.stack(rows), torch.tensor([0, 1])
    fine_tune(judge, ids, labels, 20, g(11), rate=1e-2)
    assert right(judge, ids, labels) == 1.0
    again, its_words = unpack(pack(judge, words, ["cat meow dog bark"]))
    assert its_words.tokens == words.tokens and its_words.ids["<mask>"] == MASK
    with torch.no_grad():
        assert torch.allclose(again(ids), judge(ids), atol=0.02)
