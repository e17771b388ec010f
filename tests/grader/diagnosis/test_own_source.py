"""What a report says of a learner's own source, where its lines alone show the slip."""

import pytest
from own_cells import checked

from autograder.feedback.report import as_text

REFUSED = "    if D % h:\n        raise ValueError\n"
HEADS = "def split_heads(x, h):\n    B, T, D = x.shape\n"
SPLIT = "    return x.view(B, T, h, D // h).transpose(1, 2)\n"
PADDED = "    x = torch.cat([x, x.new_zeros(B, T, -D % h)], -1)\n    return x.unflatten(-1, (h, -1)).transpose(1, 2)\n"
LOOP = "    parts = []\n    for i in range(h):\n        parts.append(x[..., i * (D // h):(i + 1) * (D // h)])\n"
SLIPS = {
    "return in a loop": ("split-heads", f"{HEADS}{REFUSED}{LOOP}        return torch.stack(parts, 1)\n"),
    "no raise": ("split-heads", f"{HEADS}{PADDED}"),
    "unreached": ("split-heads", f"{HEADS}    if h > D:\n        raise ValueError\n{SPLIT}"),
    "swallowed": (
        "split-heads",
        f"{HEADS}    try:\n        if D % h:\n            raise ValueError\n    except ValueError:\n"
        f"        return\n{SPLIT}",
    ),
    "not kept": (
        "merge-heads",
        "def merge_heads(z):\n    z.transpose(1, 2)\n    return z.reshape(z.shape[0], z.shape[2], -1)\n",
    ),
    "two tensors": (
        "temperature",
        "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError\n    if tau == 0:\n"
        "        return (x == x.max(-1)).float()\n    return torch.softmax(x / tau, -1)\n",
    ),
    "one_hot": (
        "temperature",
        "def temperature(x, tau):\n    if tau < 0:\n        raise ValueError\n    if tau == 0:\n"
        "        return F.one_hot(x.argmax(-1)).to(x.dtype)\n    return torch.softmax(x / tau, -1)\n",
    ),
    "power": (
        "attention-weights",
        "def attention_weights(Q, K):\n    return torch.softmax(Q @ K.mT / Q.shape[-1] ** 1 / 2, -1)\n",
    ),
    "overwritten": (
        "dot",
        "def dot(a, b):\n    total = torch.zeros(a.shape[:-1])\n    for i in range(a.shape[-1]):\n"
        "        total = a[..., i] * b[..., i]\n    return total\n",
    ),
    "length": (
        "attention-weights",
        'def attention_weights(Q, K):\n    """Q: (B, Tq, d_k)"""\n'
        "    return torch.softmax(Q @ K.mT / d_k ** 0.5, -1)\n",
    ),
}


def test_a_loop_that_a_break_may_end_has_no_second_pass_either() -> None:
    body = "def encode(words, vocab, add_eos=True):\n    return []\ndef decode(ids, vocab):\n    words = []\n"
    body += "    for i in ids:\n        if i == 2:\n            break\n        words.append(i)\n        return words\n"
    verdict = checked("encode-decode", body)
    assert verdict.written is not None and "never a second pass" in verdict.written.sentence


@pytest.mark.parametrize("kind", SLIPS)
def test_the_line_of_a_slip_is_named_with_its_reason(kind: str) -> None:
    verdict = checked(*SLIPS[kind])
    told = " ".join(as_text(verdict).split())
    assert verdict.written is not None and verdict.written.name == kind, told
    assert verdict.written.sentence in told and not verdict.failed_explanation, told


@pytest.mark.parametrize(
    ("exercise_id", "body"),
    [
        ("split-heads", f"{HEADS}    for n in range(h):\n        if n < 1:\n            continue\n        return x\n"),
        ("split-heads", f"{HEADS}    try:\n        raise ValueError\n    except KeyError:\n        return x\n"),
        ("merge-heads", "def merge_heads(z):\n    z.transpose_(1, 2)\n    return z\n"),
        ("merge-heads", "def merge_heads(z):\n    values, places = z.max(-1)\n    return z.max(-1).values\n"),
        ("dot", "def dot(a, b):\n    total = 0\n    for x in a:\n        total = total + x\n    return total\n"),
        ("dot", "def unused(z):\n    z.abs()\ndef dot(a, b):\n    return a\n"),
    ],
)
def test_a_line_that_is_no_slip_is_not_named(exercise_id: str, body: str) -> None:
    verdict = checked(exercise_id, body)
    assert not verdict.passed and verdict.written is None


def test_a_mask_of_the_tensors_own_shape_is_said_to_flatten_it() -> None:
    body = "def softmax(x, dim):\n    return x[x > 0].exp()\n"
    verdict = checked("softmax", body)
    assert verdict.written is not None and "one long row" in verdict.written.sentence


def test_a_local_name_in_place_of_an_attribute_is_named() -> None:
    encode = "    def encode(self, line):\n        return self.ids\n"
    body = f"class Tokenizer:\n    def fit(self, lines):\n        ids = {{}}\n{encode}"
    told = " ".join(as_text(checked("tokenizer", body)).split())
    assert "Line 8 gives a value to a local name, ids" in told and "stored in self.ids" in told, told


def test_one_factor_is_not_called_two_mistakes() -> None:
    for divisor in ("math.log(Q.shape[-1] + 1)", "(2 * math.sqrt(Q.shape[-1]))"):
        verdict = checked("scaled-scores", f"def scaled_scores(Q, K):\n    return Q @ K.T / {divisor}\n")
        told = " ".join(as_text(verdict).split())
        assert "two mistakes" not in told and "Some of your results" not in told, told
        assert "times one number" in told or "0.500 times the correct one" in told, told


def test_a_rounding_is_not_said_to_shift_whole_lines() -> None:
    verdict = checked("attend", "def attend(W, V):\n    return (W * 1e4).round() / 1e4 @ V\n")
    told = " ".join(as_text(verdict).split())
    assert "by the same amount" not in told and "leaving out `.round()`" in told, told


def test_a_key_that_is_a_value_is_told_the_way_round() -> None:
    body = "def nearest(word, vocab, W, k):\n    return [vocab[n] for n in range(len(vocab))][:k]\n"
    told = " ".join(as_text(checked("nearest", body)).split())
    assert "is one of the values in vocab, not a key" in told, told


def test_an_axis_is_not_named_where_another_check_shows_more() -> None:
    told = " ".join(as_text(checked("dot", "def dot(a, b):\n    return torch.inner(a, b)\n")).split())
    assert "in another check" in told and "its one axis" not in told, told
