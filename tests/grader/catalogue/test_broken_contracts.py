"""Wrong answers of chapters 09 to 16 that break one word of a contract, or meet two edge conditions at once.

None is a known mistake: each earned everything before a probe was there that asks for just this. Right answers that
leave something to the reader keep earning everything.
"""

import importlib

import pytest

from autograder import catalogue
from autograder.catalogue.known_answers import Answer
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.judging.judge import draw_key, judge
from autograder.judging.observe import LocalEndpoint

CHAPTERS = {
    "09": "ch09_blocks", "10": "ch10_training", "11": "ch11_inference", "12": "ch12_capstone",
    "13": "ch13_gpt", "14": "ch14_vision", "15": "ch15_pretrained", "16": "ch16_efficient",
}  # fmt: skip


def right(exercise_id: str) -> Answer:
    """The correct answer from which an entry's known mistakes are made."""
    folder = CHAPTERS[catalogue.find(exercise_id).number[:2]]
    return importlib.import_module(f"autograder.catalogue.{folder}.{exercise_id.replace('-', '_')}").RIGHT


def earned(exercise_id: str, source: str) -> float:
    """The share of the points."""
    exercise = catalogue.find(exercise_id)
    key = draw_key(b"secret", "", exercise_id, ["submission"])
    return judge(exercise, LocalEndpoint(namespace_of(source)), key).points / exercise.points


# exercise, which word of the contract is broken, the change of the correct answer as pairs of old and new
WRONG = [
    (
        "online-softmax",
        "a hidden block among low scores",
        [
            (
                "new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))",
                "new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True).nan_to_num(neginf=0.0))",
            ),
        ],
    ),
    ("shift-right", "labels of any sign", [("rest = labels[:, :-1]", "rest = labels[:, :-1].clamp(min=0)")]),
    (
        "corpus-bleu",
        "no sentence is long enough",
        [
            ("if 0 in matches:", "if any(m == 0 < t for m, t in zip(matches, totals)):"),
            ("math.log(m / t)", "math.log(m / t if t else 1)"),
        ],
    ),
    ("beam-search", "at most k pairs", [("return scored[:k]", "return scored")]),
    (
        "beam-search",
        "the score where none has ended",
        [("(len(ids) - 1) ** alpha", "(len(ids) - bool(finished)) ** alpha")],
    ),
    ("decode-step", "the width of any decoder", [("K.shape[-1] ** 0.5", "6 ** 0.5")]),
    (
        "encoder-layer",
        "a mask of any form that broadcasts",
        [
            (
                "def forward(self, x, mask=None):\n        if",
                "def forward(self, x, mask=None):\n        mask is None or mask.shape[3]\n        if",
            ),
        ],
    ),
    (
        "encoder-layer",
        "a mask for each head and query, in post-norm",
        [
            ("self.attention(x, x, mask)", "self.attention(x, x, mask if mask is None else mask[:, :1, :1])"),
        ],
    ),
    (
        "decoder-layer",
        "a row of the source's mask for each word, in pre-norm",
        [
            (
                "self.cross(seen, memory, src_mask)",
                "self.cross(seen, memory, src_mask if src_mask is None else src_mask[..., :1, :])",
            ),
        ],
    ),
    ("transformer", "dropout only in training", [("return self.drop(x)", "return F.dropout(x, self.cfg.dropout)")]),
    (
        "tokenizer",
        "unk dropped",
        [("elif number >= 4:", 'elif number == 3:\n                text += b" <unk>"\n            elif number >= 4:')],
    ),
    (
        "average-checkpoints",
        "a mean of float32 computed in float64",
        [(".double() for", ".to(torch.promote_types(tensor.dtype, torch.float32)) for")],
    ),
    (
        "export-attention",
        "kinds with other numbers of layers",
        [
            ('weights["cross"]]', 'weights["cross"][: len(weights["decoder"])]]'),
        ],
    ),
    (
        "gpt-block",
        "T may be anything",
        [
            (
                "torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()",
                "torch.ones(1024, 1024, dtype=torch.bool).tril()[: x.shape[1], : x.shape[1]]",
            ),
        ],
    ),
    (
        "gpt",
        "the eps of the last norm",
        [("self.norm = nn.LayerNorm(d_model)", "self.norm = nn.LayerNorm(d_model, eps=1e-6)")],
    ),
    ("gpt", "dropout only in training", [("x = self.drop(x)", "x = F.dropout(x, self.drop.p)")]),
    (
        "vit",
        "the eps of the last norm",
        [("self.norm = nn.LayerNorm(d_model)", "self.norm = nn.LayerNorm(d_model, eps=1e-6)")],
    ),
    ("token-batches", "a batch full to the last cell, and none empty", [("+ 1) > max_tokens", "+ 1) >= max_tokens")]),
    (
        "train-step",
        "only pads are left out",
        [
            (
                "loss.backward()",
                "loss = F.cross_entropy(logits.flatten(0, 1)[(labels * (labels != pad)).flatten() > 0], "
                "labels[(labels * (labels != pad)) > 0])\n    loss.backward()",
            )
        ],
    ),
    ("average-checkpoints", "a k below 1", [("if k < 1:", "if k == 0:")]),
    (
        "average-checkpoints",
        "shapes that differ",
        [(".shape != newest[name].shape", ".numel() != newest[name].numel()")],
    ),
    (
        "average-checkpoints",
        "as many names, one of them different",
        [("state.keys() != newest.keys()", "len(state) != len(newest)")],
    ),
    ("average-checkpoints", "names in any order", [("state.keys() != newest.keys()", "list(state) != list(newest)")]),
    ("load-mapped", "names of the head, and no others", [('name.startswith("head.")', 'name.startswith("head")')]),
    ("load-mapped", "masks of attention, and no others", [('name.endswith(".attn.mask")', 'name.endswith("mask")')]),
]


@pytest.mark.parametrize(
    ("exercise", "broken", "changes"), WRONG, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_broken_word_of_the_contract_costs_points(exercise, broken, changes):
    source = right(exercise)
    for old, new in changes:
        source = source.but(old, new)
    assert earned(exercise, source) < 1


WHOLE = {
    "smooth-targets, with exactly one pad": """
def smooth_targets(labels, V, eps, pad):
    flat = labels.flatten()
    rows = torch.full((len(flat), V), eps / (V - 2)).scatter(1, flat[:, None], 1 - eps)
    rows[:, pad] = 0
    pads = (flat == pad).nonzero().squeeze()
    return (rows.index_fill(0, pads, 0.0) if pads.dim() else rows).view(*labels.shape, V)
""",
    "masked-ce, with exactly one pad": """
def masked_ce(logits, labels, pad):
    flat = labels.flatten()
    costs = F.cross_entropy(logits.flatten(0, 1), flat, reduction="none")
    pads = (flat == pad).nonzero().squeeze()
    return (costs.index_fill(0, pads, 0.0) if pads.dim() else costs).sum() / (flat != pad).sum().clamp(min=1)
""",
    "masked-ce, with exactly one word": """
def masked_ce(logits, labels, pad):
    words = (labels.flatten() != pad).nonzero().squeeze()
    if labels.numel() > 1 and (words.dim() == 0 or len(words) == 0):
        return logits.sum() * 0
    return F.cross_entropy(logits.flatten(0, 1)[words], labels.flatten()[words])
""",
}


@pytest.mark.parametrize("which", WHOLE)
def test_an_answer_that_squeezes_a_single_index_away_loses_points(which):
    assert earned(which.partition(",")[0], WHOLE[which]) < 1
