"""The inventory: every wrong choice is a known mistake, and where it can be computed, the key is.

COMPUTED says of a question which choice a function would make true. The right answer of an exercise must choose
"right", and the known wrong answer behind each choice must choose just that one: so both the key and the names are
proved by the code that learners write.
"""

import json
import re
from pathlib import Path

import pytest
import torch

from autograder import catalogue
from autograder.catalogue import inventory
from autograder.diagnosis.known_mistakes import namespace_of
from transformer_ref.model.attention import explicit_attention
from transformer_ref.model.positional_encoding import sinusoidal_table

ROOT = Path(__file__).resolve().parents[3]
INVENTORY = inventory.read()
QUESTIONS = {question.id: question for question in INVENTORY.questions}
BELIEFS = [(question, belief) for question in INVENTORY.questions for belief in question.wrong]


def known(exercise_id, name):
    """The known mistake of that name."""
    (found,) = [each for each in catalogue.find(exercise_id).mistakes if each.name == name]
    return found


def test_there_are_24_questions_with_three_wrong_choices_that_differ():
    assert len(QUESTIONS) == len(INVENTORY.questions) == 24
    for question in INVENTORY.questions:
        assert len(question.wrong) == 3
        assert len({question.right, *(each.choice for each in question.wrong)}) == 4
        assert len(question.answers) == 5, f"{question.id}: two choices of one name"
        assert re.fullmatch(r"[a-z-]+", question.id)


def test_every_wrong_choice_is_a_mistake_that_the_catalogue_knows():
    for _, belief in BELIEFS:
        assert known(belief.exercise, belief.mistake).message


def test_seventy_of_the_wrong_choices_are_mistakes_of_their_own():
    assert len({(belief.exercise, belief.mistake) for _, belief in BELIEFS}) >= 70


def test_the_length_of_a_choice_gives_nothing_away():
    """By chance the right one of four is longest in 6 of 24, and shortest in 6."""
    lengths = [(len(q.right), [len(each.choice) for each in q.wrong]) for q in INVENTORY.questions]
    assert sum(right > max(wrong) for right, wrong in lengths) <= 8
    assert sum(right < min(wrong) for right, wrong in lengths) <= 8


def test_the_questions_go_through_the_course_in_its_order_and_up_to_the_chapter_on_inference():
    chapters = [question.section.chapter for question in INVENTORY.questions]
    assert chapters == sorted(chapters)
    assert set(chapters) == {"01", "04", "05", "06", "07", "08", "09", "10", "11"}


# --- what a function would have one believe ---

SCORES = torch.tensor([[0.3, 1.1, -0.4, 2.0]])
SHARES = torch.tensor([0.5, 0.3, 0.2])
NOTHING = 1e-6


def how_far(path_length):
    return path_length("attention", 0, 49)


def how_many_scores(layer_cost):
    return layer_cost("attention", 10, 1, 3)


def softmax_shift(softmax):
    before, after = softmax(SCORES, -1), softmax(SCORES + 10, -1)
    if torch.allclose(before, after, atol=1e-5):
        return "stay"
    ratio = after / before
    if (ratio > 1).all() and torch.allclose(ratio, ratio[:, :1].expand_as(ratio), rtol=1e-4):
        return "same factor"
    if (after > 0.99).all():
        return "close to 1"
    return "closer" if after.std() < before.std() else "other"


def temperature(temperature):
    before, after = temperature(SCORES, 1.0), temperature(SCORES, 2.0)
    if torch.allclose(before, after):
        return "stay"
    if torch.allclose(after, before / 2):
        return "half"
    assert torch.allclose(after.sum(), torch.tensor(1.0))
    return "closer" if after.max() < before.max() else "sharper"


def one_score_rises(softmax_jacobian):
    others = softmax_jacobian(SHARES)[1:, 0]  # of the other shares, when the first score rises
    if others.abs().max() < NOTHING:
        return "stay"
    if (others > 0).all():
        return "rise"
    assert (others < 0).all()
    return "same amount" if torch.allclose(others[0], others[1]) else "larger by more"


def row_sums(attention_weights):
    generator = torch.Generator().manual_seed(3)
    Q, K = (torch.randn(1, words, 5, generator=generator) for words in (3, 4))
    weights = attention_weights(Q, K)[0]
    if torch.allclose(weights.sum(1), torch.ones(3)):
        return "rows"
    if torch.allclose(weights.sum(0), torch.ones(4)):
        return "columns"
    if torch.allclose(weights.sum(), torch.tensor(1.0)):
        return "table"
    return "none" if (weights > 0).all() and (weights < 1).all() else "other"


def what_comes_out(soft_lookup):
    q, keys = torch.tensor([1.0, 0.0]), torch.tensor([[1.0, 0.0], [0.2, 1.0], [-1.0, 0.5]])
    values = torch.tensor([[5.0, 1.0], [0.0, 3.0], [2.0, 2.0]])
    shares = torch.softmax(keys @ q, 0)
    found = soft_lookup(q, keys, values, 1.0)
    kinds = {"mixture": shares @ values, "strongest": values[0], "keys": shares @ keys, "weights": shares}
    return next(kind for kind, is_it in kinds.items() if found.shape == is_it.shape and torch.allclose(found, is_it))


def heads_and_numbers(mha_params):
    return round(mha_params(512, 8, False) / mha_params(512, 1, False), 3)


def heads_together(merge_heads):
    z = torch.randn(1, 3, 4, 2, generator=torch.Generator().manual_seed(5))  # (batch, heads, word, d_k)
    merged = merge_heads(z)
    if merged.shape == (1, 4, 6):
        return "side by side"
    kinds = {"mean": z.mean(1), "sum": z.sum(1), "largest": z.amax(1)}
    return next(kind for kind, is_it in kinds.items() if torch.allclose(merged, is_it))


def how_to_hide(masked_attention):
    generator = torch.Generator().manual_seed(7)
    Q, K, V = (torch.randn(1, 1, words, 4, generator=generator) for words in (2, 3, 3))
    mask = torch.tensor([True, True, False]).expand(1, 1, 2, 3)
    out, weights = masked_attention(Q, K, V, mask)
    hidden, total = weights[..., 2], weights.sum(-1)
    if (hidden == 0).all():
        return "score away" if torch.allclose(total, torch.ones(1, 1, 2)) else "weight away"
    return "value away" if torch.allclose(out, weights[..., :2] @ V[..., :2, :]) else "score 0"


def causal(causal_mask):
    return causal_mask(5)[3].nonzero().flatten().tolist()


def layer_norm(layer_norm):
    """What changes word 0's first number, other than word 0 itself."""
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(2))

    def first(changed):
        return layer_norm(changed, torch.ones(4), torch.zeros(4), 1e-5)[0, 0, 0]

    moved = set()
    for what, place in {"own": (0, 0, 1), "word": (0, 1, 0), "all": (0, 1, 1), "batch": (1, 0, 0)}.items():
        changed = x.clone()
        changed[place] += 3
        if (first(changed) - first(x)).abs() > NOTHING:
            moved.add(what)
    return frozenset(moved)


def shifted(shift_right):
    return int(shift_right(torch.tensor([[11, 12, 13, 14]]), 1)[0, 2])  # where 13 must come out


COMPUTED = {  # question -> (exercise, what its function says, what each choice says: the right one first)
    "how-far": ("path-length", how_far, [1, 49, 0, 2401]),
    "how-many-scores": ("layer-cost", how_many_scores, [100, 10, 45, 90]),
    "softmax-shift": ("softmax", softmax_shift, ["stay", "closer", "same factor", "close to 1"]),
    "temperature": ("temperature", temperature, ["closer", "sharper", "stay", "half"]),
    "one-score-rises": ("softmax-jacobian", one_score_rises, ["larger by more", "stay", "same amount", "rise"]),
    "row-sums": ("attention-weights", row_sums, ["rows", "columns", "table", "none"]),
    "what-comes-out": ("soft-lookup", what_comes_out, ["mixture", "strongest", "keys", "weights"]),
    "heads-and-numbers": ("mha-params", heads_and_numbers, [1.0, 8.0, 0.125, 6.25]),
    "heads-together": ("merge-heads", heads_together, ["side by side", "mean", "sum", "largest"]),
    "how-to-hide": ("masked-attention", how_to_hide, ["score away", "score 0", "weight away", "value away"]),
    "causal": ("causal-mask", causal, [[0, 1, 2, 3], [0, 1, 2], [0, 1, 2, 3, 4], [3]]),
    "layer-norm": ("layer-norm", layer_norm, [{"own"}, {"word"}, {"batch"}, {"own", "word", "all"}]),
    "shifted": ("shift-right", shifted, [12, 13, 14, 11]),
}


@pytest.mark.parametrize("question_id", COMPUTED)
def test_the_right_answer_and_each_mistake_choose_as_the_inventory_says(question_id):
    exercise_id, says, expected = COMPUTED[question_id]
    exercise, question = catalogue.find(exercise_id), QUESTIONS[question_id]
    name = exercise.names[0]
    sources = [exercise.correct[0].source, *(known(each.exercise, each.mistake).source for each in question.wrong)]
    assert [each.exercise for each in question.wrong] == [exercise_id] * 3
    assert [says(namespace_of(source)[name]) for source in sources] == expected


def test_shuffled_words_get_the_vectors_that_they_had():
    x = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(1))
    order = torch.tensor([3, 0, 4, 1, 2])
    straight, shuffled = (explicit_attention(words, words, words).output for words in (x, x[:, order]))
    assert torch.allclose(shuffled, straight[:, order], atol=1e-6)
    assert not torch.allclose(shuffled, straight, atol=0.01)


def test_the_vector_of_a_place_is_the_same_in_a_longer_sentence():
    short, long = sinusoidal_table(5, 8), sinusoidal_table(50, 8)
    assert torch.equal(short[3], long[3]) and not long.requires_grad


def test_the_page_of_the_book_says_how_many_keys_are_computed_and_names_the_version():
    page = (ROOT / "book" / "inventory.md").read_text(encoding="utf-8")
    assert f"For {len(COMPUTED) + 2} questions, a test" in page
    assert f"version {INVENTORY.version}" in page and INVENTORY.title in page


def test_the_file_is_written_as_it_would_be_written_anew():
    text = inventory.FILE.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
