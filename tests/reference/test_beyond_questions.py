"""Scenes, questions about them, and the attention between the two."""

import pytest
import torch

from transformer_ref.beyond import questions
from transformer_ref.beyond.questions import FOODS, HOT_DOG, MUSTARD, PLACE, TOPPINGS, QuestionAttention
from transformer_ref.beyond.vision import patchify


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(14)


def test_what_stands_on_a_place_is_drawn_there_and_nowhere_else():
    told = questions.scenes(20, seeded())
    patches = patchify(questions.draw(told), PLACE)
    empty = torch.tensor(questions.TABLE).repeat_interleave(PLACE**2)
    for scene in range(20):
        free = [place for place in range(9) if place not in told.places[scene]]
        assert torch.equal(patches[scene, free], empty.expand(5, -1))
        for food, topping in enumerate(told.toppings[scene].tolist()):
            colors = patches[scene, told.places[scene, food]].reshape(3, -1).T  # (pixel, 3)
            inks = torch.tensor(list(TOPPINGS.values()))
            here = (colors[:, None] == inks).all(-1).any(0)
            assert here.nonzero().flatten().tolist() == [topping]


def test_the_prior_is_about_hot_dogs_alone():
    told = questions.scenes(2000, seeded(), prior=1.0)
    assert (told.toppings[:, HOT_DOG] == MUSTARD).all()
    told = questions.scenes(2000, seeded(), prior=0.9)
    assert 0.87 < (told.toppings[:, HOT_DOG] == MUSTARD).double().mean() < 0.93
    assert 0.2 < (told.toppings[:, 1] == MUSTARD).double().mean() < 0.3


def test_a_swap_changes_one_food_and_its_own_scene_not():
    told = questions.scenes(10, seeded())
    before = told.toppings.clone()
    other = questions.swapped(told, 2, 3)
    assert torch.equal(told.toppings, before)
    changed = patchify(questions.draw(told) - questions.draw(other), PLACE).abs().sum(-1) > 0
    for scene in range(10):
        wanted = [told.places[scene, 2].item()] if before[scene, 2] != 3 else []
        assert changed[scene].nonzero().flatten().tolist() == wanted


def test_a_question_is_answered_by_what_the_scene_was_drawn_from():
    told = questions.scenes(200, seeded())
    asked = questions.ask(told, seeded())
    on = questions.WORDS.index("on")
    for scene in range(200):
        food = asked.foods[scene]
        about_topping = on in asked.ids[scene]
        truth = told.toppings[scene, food] if about_topping else len(TOPPINGS) + told.cloths[scene, food]
        assert asked.answers[scene] == truth
        assert torch.equal(asked.ids[scene], questions.question([food], "on" if about_topping else "under")[0])
    with pytest.raises(ValueError, match="about: expected"):
        questions.question([0], "beside")


def test_the_map_is_a_share_of_places_and_a_given_one_is_used():
    torch.manual_seed(0)
    model, told = QuestionAttention(), questions.scenes(3, seeded())
    pixels, ids = questions.draw(told), questions.question([0, 1, 2])
    logits, weights = model(pixels, ids)
    assert logits.shape == (3, len(questions.ANSWERS)) and weights.shape == (3, 9)
    assert torch.allclose(weights.sum(-1), torch.ones(3))
    assert torch.allclose(model(pixels, ids, weights).logits, logits, atol=1e-5)
    alone = torch.nn.functional.one_hot(told.places[:, 3], 9).float()
    other = questions.swapped(told, 0, (told.toppings[:, 0] + 1) % len(TOPPINGS))
    assert torch.allclose(model(pixels, ids, alone).logits, model(questions.draw(other), ids, alone).logits, atol=1e-6)


def test_foods_of_one_word_and_of_two_are_asked_for_in_questions_of_one_length():
    assert questions.question(list(range(len(FOODS)))).shape == (4, 6)
