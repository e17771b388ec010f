"""Right answers of many styles, drawn at random for each part: they make one file, pass together, and
learn."""

import random
import runpy

import newcomer
import pytest
import torch

from autograder import catalogue
from autograder.assemble.run import TRANSLATOR, only_attention_unread
from autograder.diagnosis.explain import judge_and_explain
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare import sample_class
from transformer_ref.config import ModelConfig
from transformer_ref.data.batching import Batch
from transformer_ref.data.eight_pairs import eight_pairs
from transformer_ref.learner.own_code import OwnCode
from transformer_ref.learner.own_faults import remarks
from transformer_ref.learner.own_search import own_beam, own_greedy
from transformer_ref.learner.own_training import OwnLoss, new_own_model, own_packer, own_shift, rehearse
from transformer_ref.special_tokens import BOS, EOS, PAD

STEPS, LONGEST, RATE = 80, 9, 0.01
KEY = draw_key(b"secret", "assignment", "exercise", "source")


def drawn(seed: int) -> dict[str, str]:
    """For each exercise of a translator the solution's answer, or a correct variant of the catalogue."""
    draw = random.Random(seed)
    chosen = {name: draw.choice([None, *catalogue.find(name).correct]) for name in TRANSLATOR}
    return {name: answer.source for name, answer in chosen.items() if answer}


def not_passed(code: OwnCode) -> list[str]:
    """The parts that do not earn all points within the whole file."""
    endpoint = LocalEndpoint(vars(code.module))
    verdicts = {name: judge_and_explain(catalogue.find(name), endpoint, KEY) for name in TRANSLATOR}
    return [name for name, each in verdicts.items() if not (each.passed or only_attention_unread(each))]


def learned(code: OwnCode, config: ModelConfig) -> tuple[list[float], torch.nn.Module]:
    """The losses of some steps on the eight pairs, computed only by the file's own parts, and the model."""
    pairs = eight_pairs()
    batch = Batch(pairs.source, own_shift(code)(pairs.labels, BOS), pairs.labels)
    model, loss = new_own_model(code, config, seed=1), OwnLoss(code, PAD, 0.1)
    assert rehearse(model, batch, loss) == []
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=RATE), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        mean = loss(model, batch)
        mean.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(mean.item())
    return losses, model.eval()


def words(ids: list[int]) -> list[int]:
    """The ids between bos and eos."""
    return ids[1 : ids.index(EOS)] if EOS in ids else ids[1:]


def test_an_attention_that_chapter_09_cannot_read_keeps_nothing_that_uses_it_out_of_the_file(tmp_path):
    correct = catalogue.find("multi-head-attention").correct
    bare = next(each for each in correct if each.name == "bare parameters, one for each head")
    asked = "decoder-layer"
    solved = sample_class.solved(catalogue.assignment_of(catalogue.find(asked)))
    newcomer.write_notebooks(tmp_path, {"multi-head-attention": bare.source, asked: solved[asked]}, only=True)
    said = newcomer.assemble(tmp_path)
    assert "✓ 09.4 DecoderLayer (with MultiHeadAttention: yours, judged with the package’s attention" in said
    space = runpy.run_path(str(tmp_path / "exercises" / newcomer.MINE))
    assert isinstance(space["DecoderLayer"](8, 2, 6, 0.0, True).own, space["MultiHeadAttention"])


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed > 3 else []) for seed in range(1, 21)]
)
def test_right_answers_of_any_style_make_one_file_that_learns_eight_pairs_by_heart(seed):
    code = OwnCode.of_text("my_transformer.py", newcomer.gathered(drawn(seed)))
    assert set(code.whose().values()) == {"yours"}
    pairs = eight_pairs()
    config = ModelConfig(len(pairs.english), len(pairs.italian), d_model=32, heads=4, encoder_layers=1,
                         decoder_layers=1, d_ff=64, dropout=0.0, norm_first=seed % 2 == 0, max_length=32)  # fmt: skip
    assert not_passed(code) == []
    assert remarks(code, config) == []
    losses, model = learned(code, config)
    assert losses[-1] < losses[0] / 2
    asked = [words([BOS, *row]) for row in pairs.labels.tolist()]
    assert [words(row) for row in own_greedy(model, pairs.source, LONGEST).tolist()] == asked
    best = own_beam(model, pairs.source[:2], 2, LONGEST, 1.0, torch.topk)
    assert [words(found[0].ids) for found in best] == asked[:2]
    lengths = [7, 3, 9, 4, 4, 8]
    batches = own_packer(code)(lengths, 20, torch.Generator().manual_seed(seed))
    assert sorted(place for batch in batches for place in batch) == list(range(6))
