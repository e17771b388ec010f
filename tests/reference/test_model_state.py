"""A model is saved, copied and exported as itself, whatever it is wrapped in; buffers are part of its state."""

import copy

import pytest
import torch
from drawn import ids, tiny_model
from own_transformer import own_file
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.optim.swa_utils import AveragedModel

from transformer_ref.checkpoint import MODEL_FILE, load_checkpoint, save_checkpoint
from transformer_ref.config import ModelConfig, TrainingConfig
from transformer_ref.data.batching import BatchStream
from transformer_ref.interop.marian import load_marian, save_marian
from transformer_ref.interop.onnx import ENCODER_FILE, save_onnx
from transformer_ref.interop.page import save_page
from transformer_ref.interop.torch_transformer import save_torch_transformer
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_training import new_own_model
from transformer_ref.model_state import buffers_of, parameters_of, plain_names, unwrapped
from transformer_ref.text.tokenizer import WordTokenizer
from transformer_ref.training.average import WeightAverage
from transformer_ref.training.bf16_copy import BF16Copy
from transformer_ref.training.loss import MeanLoss
from transformer_ref.training.optimizer import build_optimizer, hidden_matrices
from transformer_ref.training.resume import load_training, save_training
from transformer_ref.training.trainer import Training, fit
from transformer_ref.translate import Translator

TOKENIZER = WordTokenizer.build(["uno due tre."])


def model(**changes):
    bare = tiny_model(4, source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size, **changes)
    return bare.float().eval()


def compiled(bare):
    return torch.compile(bare, backend="eager")


def with_a_compiled_part(bare):
    bare = copy.deepcopy(bare)
    bare.encoder = compiled(bare.encoder)
    return bare


WRAPPERS = {
    "compiled": compiled,
    "part compiled": with_a_compiled_part,
    "DataParallel": nn.DataParallel,
    "averaged": AveragedModel,
    "averaged, compiled": lambda bare: AveragedModel(compiled(bare)),
    "compiled in DataParallel": lambda bare: nn.DataParallel(compiled(bare)),
}
every_wrapper = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)


@every_wrapper
def test_names_and_numbers_are_those_of_the_bare_model(wrap):
    bare = model()
    wrapped = wrap(bare)
    assert list(parameters_of(wrapped)) == [name for name, _ in bare.named_parameters()]
    source, target = ids(1, 2, 5, high=9), ids(2, 2, 3, high=9)
    inside = unwrapped(wrapped).eval()
    assert inside(source, target).equal(bare(source, target))
    own = {id(parameter) for parameter in wrapped.parameters()}
    assert {id(parameter) for parameter in inside.parameters()} == own  # the wrapped model's, not copies of them


@every_wrapper
def test_a_wrapped_model_is_saved_as_the_bare_one_and_a_file_with_wrapped_names_is_read(wrap, tmp_path):
    bare = model()
    wrapped = wrap(bare)
    save_checkpoint(tmp_path / "bare", bare, TOKENIZER, TOKENIZER, {})
    save_checkpoint(tmp_path / "wrapped", wrapped, TOKENIZER, TOKENIZER, {})
    first, second = (load_file(tmp_path / name / MODEL_FILE) for name in ("bare", "wrapped"))
    assert list(first) == list(second) and all(first[name].equal(second[name]) for name in first)
    theirs = {name: tensor.clone() for name, tensor in wrapped.state_dict().items()}
    found = plain_names(theirs, first)
    assert set(found) == set(first)
    with safe_open(tmp_path / "bare" / MODEL_FILE, framework="pt") as file:
        header = file.metadata()
    save_file(theirs, tmp_path / "theirs.safetensors", metadata=header)
    loaded = load_checkpoint(tmp_path / "theirs.safetensors").model
    assert all(parameter.equal(first[name]) for name, parameter in loaded.named_parameters())


def test_a_prefix_that_the_model_itself_has_is_left_alone():
    tensors = {"module.weight": torch.ones(1), "module.bias": torch.zeros(1)}
    assert plain_names(tensors, tensors) == tensors
    assert set(plain_names({f"module.{name}": each for name, each in tensors.items()}, tensors)) == set(tensors)


@every_wrapper
def test_exports_take_a_wrapped_model(wrap, tmp_path):
    settings = dict(tie_embeddings=True, layout="concatenated", norm_first=False, dropout=0.0)
    bare = model(**settings)
    wrapped = wrap(bare).eval()
    save_marian(wrapped, tmp_path / "marian")
    loaded = load_marian(tmp_path / "marian")
    assert loaded.encoder.layers[0].feed_forward.fc1.weight.equal(bare.encoder.layers[0].feed_forward.fc1.weight)
    save_page(wrapped, TOKENIZER, TOKENIZER, tmp_path / "page.html", {})
    save_page(bare, TOKENIZER, TOKENIZER, tmp_path / "bare.html", {})
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "bare.html").read_bytes()
    ours, theirs = save_torch_transformer(wrapped).state_dict(), save_torch_transformer(bare).state_dict()
    assert all(ours[name].equal(tensor) for name, tensor in theirs.items())
    assert Translator(wrapped, TOKENIZER, TOKENIZER).translate(["uno due"], beam_size=2) == (
        Translator(bare, TOKENIZER, TOKENIZER).translate(["uno due"], beam_size=2)
    )


def test_a_compiled_model_is_exported_to_onnx(tmp_path):
    pytest.importorskip("onnx")
    for name, each in (("bare", model()), ("compiled", compiled(model()))):
        save_onnx(each, tmp_path / name)
    assert (tmp_path / "bare" / ENCODER_FILE).read_bytes() == (tmp_path / "compiled" / ENCODER_FILE).read_bytes()


def training(network, **changes):
    config = TrainingConfig(steps=4, ema_decay=0.9, **changes)
    stream = BatchStream([[4, 5], [6]], [[4], [5, 6]], 8, 0, 1, 2, config.seed)
    average = WeightAverage(network, 0.9)
    return Training(network, build_optimizer(network, config), stream, config, MeanLoss(0), average)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_compiled_model_trains_and_resumes_as_the_bare_one_does(precision, tmp_path):
    plain, quick = training(model(), precision=precision), training(compiled(model()), precision=precision)
    for each in (plain, quick):
        fit(each, lambda progress: progress.step == 2)
    save_training(tmp_path, quick)
    again = training(model(), precision=precision)  # resumed without the wrapper
    load_training(tmp_path, again)
    for each in (plain, again, quick):
        fit(each)
        assert each.losses == pytest.approx(plain.losses, rel=1e-4)
    assert {name: tuple(mean.shape) for name, mean in quick.average.means.items()} == {
        name: tuple(mean.shape) for name, mean in plain.average.means.items()
    }
    assert plain.average.of(plain.model).output.weight.allclose(quick.average.of(quick.model).output.weight, atol=1e-4)


def test_the_output_layer_of_a_compiled_model_is_not_a_hidden_matrix():
    bare = model()
    hidden = {id(matrix) for matrix in hidden_matrices(compiled(bare))}
    assert id(bare.output.weight) not in hidden and hidden == {id(matrix) for matrix in hidden_matrices(bare)}


OWN_CONFIG = ModelConfig(
    17, 17, d_model=12, heads=3, encoder_layers=1, decoder_layers=1, d_ff=20, dropout=0.0, max_length=24
)
COUNTING = '''

class Transformer(Transformer):
    """Keeps a running mean, counts its calls, and adds numbers that it drew when it was made."""

    def __init__(self, cfg):
        super().__init__(cfg)
        self.register_buffer("drawn", torch.randn(cfg.target_vocabulary))
        self.register_buffer("running", torch.zeros(1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("hidden", torch.full((2, 2), float("-inf")))

    def forward(self, src, tgt_in):
        if self.training:
            self.calls += 1
            self.running = 0.999 * self.running + 0.001 * src.float().mean()
        return super().forward(src, tgt_in) + self.drawn.to(next(self.parameters()).dtype)
'''


def counting(seed=3):
    return new_own_model(OwnCode.of_text("my_transformer.py", own_file() + COUNTING), OWN_CONFIG, seed)


def test_the_buffers_of_a_learner_s_model_are_copied_averaged_and_saved(tmp_path):
    own, source, target = counting(), ids(1, 2, 5, high=9), ids(2, 2, 3, high=9)
    own.train()(source, target)
    own.eval()
    wanted = own(source, target)
    average = WeightAverage(own, 0.5)
    torch.manual_seed(99)  # so that a model made anew would draw other numbers
    for same in (copy.deepcopy(own), average.of(own)):
        assert same(source, target).equal(wanted)
        assert same.own.calls == 1 and same.own.running.equal(own.own.running) and same.own.hidden.isinf().all()
        assert same.own.calls is not own.own.calls
    mine = training_of(own)
    save_training(tmp_path, mine)
    again = training_of(counting(seed=3))
    again.model.own.drawn.zero_()
    load_training(tmp_path, again)
    assert again.model.eval()(source, target).equal(wanted) and again.model.own.calls == 1


def training_of(own):
    config = TrainingConfig(steps=2, muon_rate=0.0)
    stream = BatchStream([[4, 5], [6]], [[4], [5, 6]], 8, 0, 1, 2, config.seed)
    return Training(own, build_optimizer(own, config), stream, config, MeanLoss(0))


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.register_buffer("drawn", torch.randn(4))
        self.register_buffer("running", torch.zeros(1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        self.running = 0.9 * self.running + 0.1 * x.mean()  # another tensor each time, as many write it
        return self.linear(x.to(self.drawn.dtype)) + self.drawn


def test_a_step_in_bf16_moves_the_buffers_of_the_model_that_is_trained():
    model, x = Running(), torch.ones(2, 3)
    drawn = model.drawn.clone()
    bf16 = BF16Copy(model)
    for step in range(1, 9):
        bf16.refreshed()(x).float().sum().backward()
        bf16.hand_over_gradients()
        assert model.calls == step
    assert model.drawn.equal(drawn)  # not rounded on the way
    torch.testing.assert_close(model.running, torch.tensor([1 - 0.9**8]), rtol=0.05, atol=0)


def test_a_table_that_is_computed_anew_is_no_state():
    assert not buffers_of(model())
