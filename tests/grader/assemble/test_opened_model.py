"""Chapter 12 opens a model: a learner's own hands out what its heads look at, and has them switched off, as the
package's."""

import newcomer
import pytest
import torch

from transformer_ref import capstone
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_file import OwnCodeError
from transformer_ref.model.transformer import Transformer

EXPERIMENT = capstone.prepare(pairs=200, seed=1)
KINDS = ["encoder", "decoder", "cross"]


@pytest.fixture
def ids():
    generator = torch.Generator().manual_seed(3)
    return torch.randint(4, 40, (2, 6), generator=generator), torch.randint(4, 40, (2, 5), generator=generator)


def package() -> Transformer:
    torch.manual_seed(1)
    return Transformer(EXPERIMENT.config).eval()


def test_a_learners_model_is_opened_with_its_own_weights_and_left_as_it_was(ids):
    code = OwnCode.of_text("my_transformer.py", newcomer.gathered())
    torch.manual_seed(2)
    own = code.module.Transformer(EXPERIMENT.config).eval()
    before = {name: weight.clone() for name, weight in own.state_dict().items()}
    opened = capstone.opened(own, EXPERIMENT)
    with torch.no_grad():
        assert torch.allclose(own(*ids), opened(*ids), atol=1e-3)
        assert opened.encode(ids[0], need_weights=True).weights[0].shape == (2, 8, 6, 6)
        with capstone.switched_off(opened, [("encoder", 0, 0)]):
            assert not torch.allclose(own(*ids), opened(*ids), atol=1e-3)
    assert all(torch.equal(weight, before[name]) for name, weight in own.state_dict().items())


def test_a_model_that_computes_something_else_is_refused_in_a_sentence(ids):
    class Other(torch.nn.Module):
        def __init__(self, config):
            super().__init__()
            self.table = torch.nn.Embedding(config.source_vocabulary, config.target_vocabulary)

        def forward(self, source, target):
            return self.table(target)

    with pytest.raises(OwnCodeError, match="your model: Transformer: expected"):
        capstone.opened(Other(EXPERIMENT.config), EXPERIMENT)


def test_the_packages_model_is_opened_already():
    model = package()
    assert capstone.opened(model, EXPERIMENT) is model


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_is_switched_off_changes_what_comes_out_and_all_is_as_before_then(kind, ids):
    model = package()
    with torch.no_grad():
        before = model(*ids)
        with capstone.switched_off(model, [(kind, 0, 5)]):
            assert not torch.allclose(model(*ids), before)
        assert torch.equal(model(*ids), before)


def test_a_kind_of_head_that_there_is_not_is_named():
    with pytest.raises(ValueError, match='expected "encoder", "decoder" or "cross", got \'self\''):
        with capstone.switched_off(package(), [("self", 0, 0)]):
            pass


def test_a_learners_model_begins_its_training_as_small_as_the_packages_own():
    code = OwnCode.of_text("my_transformer.py", newcomer.gathered())
    torch.manual_seed(2)
    own, first = code.module.Transformer(EXPERIMENT.config), {}
    for name, model in (("own", own), ("package", package().train())):
        first[name] = capstone.train(model, EXPERIMENT, steps=1, say=lambda line: None).losses[0]
    assert abs(first["own"] - first["package"]) < 0.2 * first["package"]
