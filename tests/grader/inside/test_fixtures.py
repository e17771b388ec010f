"""What is set up around an answer where it runs: a model to be trained, questions to a model that was trained."""

import torch
from torch import nn

from autograder.inside.fixtures.base import Training, TrainingStep
from autograder.inside.responder import Responder

GIVEN = {
    "source": torch.ones(5, 3), "target": torch.ones(4, 3), "hidden": torch.eye(3), "scores": torch.ones(3, 4),
    "training": False, "stale": 2.0,
}  # fmt: skip
BATCH = (torch.tensor([[1, 2]]), torch.tensor([[1, 3, 2]]), torch.tensor([[3, 2, 0]]))
SETTINGS = {"lr": 0.5, "momentum": 0.0, "steps": 1}


class Config:
    bos, eos, pad, target_vocabulary = 1, 2, 0, 4


class Says(nn.Module):
    """Scores a fixed next token everywhere."""

    def __init__(self, token):
        super().__init__()
        self.token = token

    def forward(self, source, target):
        return nn.functional.one_hot(torch.full_like(target, self.token), 4).float()


def questions():
    return {"score": [BATCH[:2]], "translate": [BATCH[0]]}


def test_a_step_is_written_down_in_the_order_in_which_it_was_taken():
    def train_step(model, batch, opt, pad, clip):
        loss = model(*batch[:2]).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return {"loss": loss.item()}

    seen = TrainingStep().around(train_step)(GIVEN, BATCH, SETTINGS, 0, 1.0)
    kinds = [each.partition(",")[0] for each in seen["diary"]]
    assert kinds == ["forward in evaluation mode", "zero_grad", "backward", "step", "returned"]


def test_weights_come_with_the_gradients_that_they_are_said_to_have_and_are_the_case_s_no_more():
    def train_step(model, batch, opt, pad, clip):
        opt.step()

    seen = TrainingStep().around(train_step)(GIVEN, BATCH, SETTINGS, 0, 1.0)
    assert torch.equal(seen["weights"]["hidden"], torch.eye(3) - 0.5 * 2.0)
    assert torch.equal(GIVEN["hidden"], torch.eye(3))


def test_an_answer_trains_once_for_all_questions_and_another_one_anew():
    trained = []

    def overfit(config):
        trained.append(config)
        return Says(3)

    def other(config):
        trained.append(config)
        return Says(2)

    stage = Training()
    first, again = (stage.around(overfit)(Config, questions()) for _ in range(2))
    assert len(trained) == 1 and torch.equal(first["translations"][0], again["translations"][0])
    assert stage.around(other)(Config, questions())["translations"][0].tolist() == [[2]]
    assert len(trained) == 2


def test_a_model_that_never_ends_is_stopped_and_what_is_none_is_called_by_its_type():
    said = Training().around(lambda config: Says(3))(Config, questions())["translations"][0]
    assert said.tolist() == [[3] * 12]
    assert Training().around(lambda config: 1.5)(Config, questions()) == {"model": "float"}
    assert Training().around(lambda config: None)(Config, questions()) == {"model": "nothing"}


def test_scores_of_another_shape_are_not_asked_for_translations():
    seen = Training().around(lambda config: lambda source, target: torch.zeros(2))(Config, questions())
    assert seen["translations"] == [] and seen["scores"][0].shape == (2,)


def test_an_answer_that_cannot_take_the_arguments_is_told_so():
    asked = {"name": "train_step", "arguments": (GIVEN, BATCH, SETTINGS, 0, 1.0), "stage": "training step"}
    reply = Responder({"train_step": lambda model: None}).answer({"do": "call", "with": asked})
    assert reply["error"]["about"] == ["arguments"]
