"""What a report says of single constructs of Python and torch that do something else than a learner expects."""

import pytest
from own_cells import checked

from autograder.feedback.report import as_text

VOCAB = "def build_vocab(sentences, min_freq, specials):\n"
COUNTED = (
    "    counts = {}\n    for s in sentences:\n        for w in s:\n            counts[w] = counts.get(w, 0) + 1\n"
)
PIECES = "def bpe_encode(word, merges):\n    pieces = list(word) + ['</w>']\n"
ATTENTION = "def attention_weights(Q, K):\n    scores = Q @ K.mT / math.sqrt(Q.shape[-1])\n"
ONE_LAYER = "class SelfAttention(nn.Module):\n    def __init__(self, d_model, d_k, d_v):\n        super().__init__()\n"
ONE_LAYER += "        self.query = nn.Linear(d_model, d_v, bias=False)\n    def forward(self, x):\n"
SLIPS = {
    "a text": (
        "temperature",
        'def temperature(x, tau):\n    if tau == "False":\n        raise ValueError\n    return x.cumsum(0)\n',
    ),
    "identity": (
        "temperature",
        "def temperature(x, tau):\n    if tau is 0:\n        return torch.zeros(3)\n    return x.cumsum(0)\n",
    ),
    "new key": (
        "build-vocab",
        f"{VOCAB}    counts = {{}}\n    for w in sentences[0]:\n        counts[w] += 1\n    return counts\n",
    ),
    "keys": (
        "build-vocab",
        f"{VOCAB}{COUNTED}    words = [0]\n    for word, n in counts:\n        words.append(word)\n    return words\n",
    ),
    "after the last": (
        "bpe-encode",
        f"{PIECES}    for i in range(len(pieces)):\n        if (pieces[i], pieces[i + 1]) in merges:\n"
        "            pieces[i:i + 2] = [pieces[i] + pieces[i + 1]]\n    return pieces\n",
    ),
    "changed in a loop": (
        "bpe-encode",
        f"{PIECES}    for p in pieces:\n        pieces.remove(p)\n    return pieces\n",
    ),
    "returned error": (
        "noam-lr",
        "def noam_lr(step, d_model, warmup):\n    if step < 1:\n        return ValueError\n"
        "    return d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)\n",
    ),
    "no pass": (
        "bpe-encode",
        "def bpe_encode(word, merges):\n    return [word[i] for i in range(len(word) - 1, 0)]\n",
    ),
    "none": ("bpe-encode", f"{PIECES}    pieces = pieces.append('x')\n    return pieces\n"),
    "no axis": ("dot", "def dot(a, b):\n    return F.softmax(a * b)\n"),
    "unused": (
        "attention-weights",
        f"{ATTENTION}    scores * 2\n    scores - scores.amax(-1)\n    return scores.exp()\n",
    ),
    "comma": ("attention-weights", f"{ATTENTION}    scores = scores * 1,\n    return torch.softmax(scores, -1)\n"),
    "one maximum": ("attention-weights", f"{ATTENTION}    return torch.softmax(scores.max() @ K, -1)\n"),
    "new layer": ("split-heads", "def split_heads(x, h):\n    return nn.Linear(x.shape[-1], h)(x)\n"),
    "misspelled": ("self-attention", f"{ONE_LAYER}        return self.qeury(x)\n"),
    "dropout": ("self-attention", f"{ONE_LAYER}        out = F.dropout(self.query(x), 0.1)\n        return out, out\n"),
    "shared default": (
        "bpe-encode",
        "def bpe_encode(word, merges, out=[]):\n    for c in word:\n        out.append(c)\n    return out\n",
    ),
    "alias": (
        "bpe-encode",
        "def bpe_encode(word, merges):\n    old = new = []\n    new.append(word)\n    return old\n",
    ),
    "compared": ("attention-weights", f"{ATTENTION}    scores == 0\n    return scores.exp()\n"),
    "after the loop": (
        "bpe-encode",
        f"{PIECES}    out = []\n    for piece in pieces:\n        new = piece\n    out.append(new)\n    return out\n",
    ),
    "same rows": (
        "causal-mask",
        "def causal_mask(T):\n    rows = [[False] * T] * T\n    for i in range(T):\n        for j in range(i + 1):\n"
        "            rows[i][j] = True\n    return torch.tensor(rows)\n",
    ),
    "times infinity": (
        "attention-weights",
        f"{ATTENTION}    scores = scores + 0 * float('-inf')\n    return torch.softmax(scores, -1)\n",
    ),
    "a set": ("build-vocab", f"{VOCAB}    return {{'a', 'b'}}\n"),
    "letters": ("build-vocab", f"{VOCAB}    return {{w.strip('</w>'): 0 for s in sentences for w in s}}\n"),
    "bitwise": ("causal-mask", "def causal_mask(T):\n    i = torch.arange(T)\n    return i[:, None] > 0 & i == 0\n"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SLIPS)
def test_the_construct_in_a_line_is_explained(kind: str) -> None:
    verdict = checked(*SLIPS[kind])
    told = " ".join(as_text(verdict).split())
    assert verdict.written is not None and verdict.written.name == kind, (verdict.written, told)
    assert verdict.written.sentence in told and not verdict.failed_explanation, told


GUARDED = (
    "    for i in range(len(pieces)):\n        if i + 1 < len(pieces) and pieces[i + 1]:\n            pieces.pop()\n"
)


@pytest.mark.parametrize(
    ("exercise_id", "body"),
    [
        ("bpe-encode", f"{PIECES}{GUARDED}    return pieces\n"),
        ("bpe-encode", f"{PIECES}    for p in pieces:\n        pieces.remove(p)\n        break\n    return pieces\n"),
        ("bpe-encode", "def bpe_encode(word, merges, k=(1,)):\n    return [word.strip(' \\n')]\n"),
        (
            "bpe-encode",
            f"{PIECES}    try:\n        merges[word]\n    except TypeError:\n        pass\n    return pieces\n",
        ),
        ("bpe-encode", "def bpe_encode(word, merges):\n    return [word[i] for i in range(-len(word), 0)]\n"),
        ("attention-weights", f"{ATTENTION}    return F.dropout(scores, 0.5, False)\n"),
        ("attention-weights", f"{ATTENTION}    scores.add_(1)\n    return F.softmax(scores, 1)\n"),
        ("temperature", "def temperature(x, tau):\n    return x if tau is None or tau == 'True 1' else x * tau\n"),
        ("causal-mask", "def causal_mask(T):\n    rows = [0] * T\n    rows[0] = 1\n    return torch.tensor(rows)\n"),
    ],
)
def test_a_construct_that_does_what_it_seems_to_do_is_not_explained(exercise_id: str, body: str) -> None:
    verdict = checked(exercise_id, body)
    assert not verdict.passed and verdict.written is None, verdict.written
