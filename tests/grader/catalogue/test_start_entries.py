"""Answers to chapters 00 to 02 as students write them: what fails, and what the message says."""

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.ch00_start_here.first_true import is_half_down_the_columns
from autograder.catalogue.exercise import Evidence
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.judging.verdict import Verdict

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(exercise: str, source: str) -> Verdict:
    return judge_and_explain(catalogue.find(exercise), LocalEndpoint(namespace_of(source)), KEY)


def failed(verdict: Verdict) -> set[str]:
    return {outcome.probe.name for outcome in verdict.outcomes if not outcome.passed}


ONE_NUMBER_EACH = """
def batch_matmul(a, b):
    return a + b if a.numel() == 1 else a @ b
"""
D_OF_1 = """
def batch_matmul(a, b):
    return 2 * a @ b if a.shape[2] == 1 and a.shape[0] > 1 else a @ b
"""
ONE_NUMBER_RETURNED = """
def row_normalize(x):
    return x if x.numel() == 1 else x / x.sum(1, keepdim=True)
"""
AXIS_DROPPED = """
def swap_batch_time(x):
    return x[0] if x.shape[:2] == (1, 1) else x.transpose(0, 1)
"""
BOOL_OF_ONE_SENTENCE = """
def swap_batch_time(x):
    return x.int().transpose(0, 1) if x.dtype == torch.bool and len(x) == 1 else x.transpose(0, 1)
"""
ONE_FALSE = """
def first_true(mask):
    return torch.zeros(1, dtype=torch.long) if mask.shape == (1, 1) else (mask.cumsum(dim=1) == 0).sum(dim=1)
"""
FLOAT32_WHERE_T_IS_1 = """
def gradient_norms(W, T):
    if T == 1:
        return torch.ones(1)
    return torch.stack([torch.linalg.matrix_norm(torch.linalg.matrix_power(W, T - t), 2) for t in range(1, T + 1)])
"""
SAME_OBJECT = """
def path_length(kind, i, j, k=3):
    if i is j:
        return 0
    distance = abs(i - j)
    if kind == "recurrent":
        return distance
    return math.ceil(distance / ((k - 1) // 2)) if kind == "window" else 1
"""
NOT_100_000 = """
def path_length(kind, i, j, k=3):
    distance = min(abs(i - j), 99_999)
    if kind == "recurrent":
        return distance
    return math.ceil(distance / ((k - 1) // 2)) if kind == "window" else min(distance, 1)
"""
LARGEST_OF_THE_PADS_TOO = """
def additive_context(s, H, Wa, Ua, va, mask):
    e = torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va
    x = torch.exp(e - e.amax(1, keepdim=True)) * mask
    w = x / x.sum(1, keepdim=True).clamp(min=1e-30)
    return (w[:, :, None] * H).sum(1), w
"""
DETACHED_WEIGHTS = """
def additive_context(s, H, Wa, Ua, va, mask):
    e = torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va
    w = torch.softmax(e.masked_fill(~mask, -math.inf), dim=1).masked_fill(~mask, 0.0)
    return (w[:, :, None] * H).sum(1), w.detach()
"""
SENTENCES_SORTED = """
from collections import Counter

def build_vocab(sentences, min_freq, specials):
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted((w for w in counts if counts[w] >= min_freq and w not in specials), key=lambda w: (-counts[w], w))
    sentences.sort(key=len)
    return {word: id for id, word in enumerate(specials + words)}
"""
ENCODE = """
def encode(tokens, vocab, add_eos=True):
    return [vocab.get(token, vocab["<unk>"]) for token in tokens] + [vocab["<eos>"]] * add_eos

def decode(ids, vocab):
    words, tokens = {id: word for word, id in vocab.items()}, []
    for id in ids:
"""
FIVE_CHARACTERS = (
    ENCODE
    + """\
        if words[id] == "<eos>":
            break
        if not (len(words[id]) == 5 and words[id][0] + words[id][-1] == "<>"):
            tokens.append(words[id])
    return tokens
"""
)
CUT_AT_64 = """
def pad_batch(seqs, pad):
    longest = min(max(len(seq) for seq in seqs), 64)
    return torch.tensor([list(seq)[:longest] + [pad] * (longest - len(seq)) for seq in seqs])
"""
A_LIST_FOR_A_TENSOR = """
def pad_batch(seqs, pad):
    longest = max(len(seq) for seq in seqs)
    out = torch.tensor([[int(id) for id in seq] + [pad] * (longest - len(seq)) for seq in seqs])
    seqs[0] = list(seqs[0])
    return out
"""
LAST_ROW_FROZEN = """
def embed(ids, W, scale=True):
    x = F.embedding(ids, W, padding_idx=len(W) - 1)
    return x * math.sqrt(W.shape[1]) if scale else x
"""


def learn(limit: str = "n", kept: str = "best") -> str:
    """An answer to 02.5."""
    return f"""
def bpe_train(corpus, n):
    words = [([*word, "</w>"], count) for word, count in corpus.items()]
    merges = []
    for _ in range({limit}):
        counts = {{}}
        for pieces, count in words:
            for pair in zip(pieces, pieces[1:]):
                counts[pair] = counts.get(pair, 0) + count
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append({kept})
        for pieces, _ in words:
            i = 0
            while i < len(pieces) - 1:
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i : i + 2] = ["".join(best)]
                i += 1
    return merges
"""


FIRST_200 = """
def bpe_encode(word, merges):
    pieces = [*word, "</w>"]
    for pair in merges[:200]:
        i = 0
        while i < len(pieces) - 1:
            if (pieces[i], pieces[i + 1]) == pair:
                pieces[i : i + 2] = ["".join(pair)]
            i += 1
    return pieces
"""


SIXTEEN_WORDS = """
def last_state(H, lengths):
    at = F.one_hot(torch.as_tensor(lengths) - 1, max(16, int(max(lengths))))[:, : H.shape[1]].to(H.dtype)
    return (at[:, :16, None] * H[:, :16]).sum(1)
"""
GEOMETRIC_AFTER_12 = """
def gradient_norms(W, T):
    norms = [torch.linalg.matrix_norm(torch.linalg.matrix_power(W, n), 2) for n in range(min(T, 12))]
    while len(norms) < T:
        norms.append(norms[-1] * norms[-1] / norms[-2])
    return torch.stack(norms[::-1])
"""
ROUNDED_BY_999 = """
def path_length(kind, i, j, k=3):
    distance = abs(i - j)
    if kind == "window":
        return int(distance / ((k - 1) // 2) + 0.999)
    return distance if kind == "recurrent" else min(distance, 1)
"""
THREE_LETTERS = """
def build_vocab(sentences, min_freq, specials):
    counts = {}
    for word in sum(sentences, []):
        counts[word] = counts.get(word, 0) + 1
    words = [word for word in counts if counts[word] >= min_freq and word not in specials]
    words = sorted(words, key=lambda word: (-min(counts[word], 50), word[:3]))
    return {token: id for id, token in enumerate([*specials, *words])}
"""
DECODES_64 = (
    ENCODE.replace("in ids:", "in ids[:64]:")
    + """\
        if words[id] == "<eos>":
            break
        if words[id] not in ("<pad>", "<bos>", "<unk>"):
            tokens.append(words[id])
    return tokens
"""
)
A_HUNDRED_ROWS = """
def embed(ids, W, scale=True):
    x = W[ids % 100]
    return x * math.sqrt(W.shape[1]) if scale else x
"""
FOUR_DECIMALS = """
def embed(ids, W, scale=True):
    x = W[ids]
    return x * round(math.sqrt(W.shape[1]), 4) if scale else x
"""
FIRST_25_PIECES = """
def bpe_encode(word, merges):
    pieces = [*word, "</w>"]
    for pair in merges:
        i = 0
        while i < min(len(pieces) - 1, 25):
            if (pieces[i], pieces[i + 1]) == pair:
                pieces[i : i + 2] = ["".join(pair)]
            i += 1
    return pieces
"""


@pytest.mark.parametrize(
    ("exercise", "source", "probe"),
    [
        ("batch-matmul", ONE_NUMBER_EACH, "the smallest sizes"),
        ("batch-matmul", D_OF_1, "one product for each entry"),
        ("row-normalize", ONE_NUMBER_RETURNED, "the smallest sizes"),
        ("swap-batch-time", AXIS_DROPPED, "one sentence of one word, truth values"),
        ("swap-batch-time", BOOL_OF_ONE_SENTENCE, "one sentence of one word, truth values"),
        ("first-true", ONE_FALSE, "one False"),
        ("gradient-norms", FLOAT32_WHERE_T_IS_1, "one state, in float64"),
        ("last-state", SIXTEEN_WORDS, "all end before the end"),
        ("gradient-norms", GEOMETRIC_AFTER_12, "other sizes"),
        ("path-length", ROUNDED_BY_999, "a far word in windows of 3001"),
        ("path-length", SAME_OBJECT, "a word and itself, attention"),
        ("path-length", NOT_100_000, "recurrent, whatever k is"),
        ("additive-context", LARGEST_OF_THE_PADS_TOO, "words that score far below the pads"),
        ("build-vocab", SENTENCES_SORTED, "a second call; nothing else is touched"),
        ("build-vocab", THREE_LETTERS, "many words, many ties"),
        ("encode-decode", DECODES_64, "decode: no <eos> at all"),
        ("encode-decode", FIVE_CHARACTERS, "decode: a word that looks like a special token"),
        ("pad-batch", CUT_AT_64, "one long sentence among short ones, large ids"),
        ("pad-batch", A_LIST_FOR_A_TENSOR, "tensors instead of lists"),
        ("embed", LAST_ROW_FROZEN, "gradients"),
        ("embed", A_HUNDRED_ROWS, "a wide table"),
        ("embed", FOUR_DECIMALS, "gradients"),
        ("bpe-train", learn(limit="min(n, 60)"), "more merges than there are pairs"),
        ("bpe-train", learn().replace("pair))", "pair[0], pair[1][0]))"), "equally frequent pieces"),
        ("bpe-encode", FIRST_25_PIECES, "a pair several times"),
        ("bpe-encode", FIRST_200, "a long word, one merge for each letter"),
    ],
)
def test_a_fault_in_one_corner_fails(exercise, source, probe):
    assert failed(verdict_on(exercise, source)) == {probe}


RESULT_LOST = """
def row_normalize(x):
    x / x.sum(dim=1, keepdim=True)
    return x
"""
LAST_SENTENCE = """
def swap_batch_time(x):
    out = torch.zeros(x.shape[1], x.shape[0], x.shape[2], dtype=x.dtype)
    for b in range(x.shape[0] - 1):
        for t in range(x.shape[1]):
            out[t, b] = x[b, t]
    return out
"""
SUM_OVER_AXIS_0 = """
def first_true(mask):
    return (mask.cumsum(dim=1) == 0).sum(dim=0)
"""
RUNNING_COUNT_OVER_AXIS_0 = """
def first_true(mask):
    return (mask.cumsum(dim=0) == 0).sum(dim=1)
"""
RUNNING_COUNTS = """
def first_true(mask):
    return mask.cumsum(1)
"""
WHILE_1 = """
def first_true(mask):
    return (mask.cumsum(dim=1) == 1).sum(dim=1)
"""
RETURN_IN_THE_LOOP = """
def last_state(H, lengths):
    for b in range(len(H)):
        return H[b, lengths[b] - 1]
"""
SHORTEST_END = """
def last_state(H, lengths):
    return H[:, min(lengths) - 1]
"""
ALWAYS_TRUE = """
def path_length(kind, i, j, k=3):
    if kind == "recurrent" or "window":
        return abs(i - j)
    return 1 if i != j else 0
"""
CAPITALS = """
def path_length(kind, i, j, k=3):
    if kind == "Recurrent":
        return abs(i - j)
    if kind == "Window":
        return math.ceil(abs(i - j) / ((k - 1) // 2))
    if kind == "Attention":
        return 1 if i != j else 0
    return 0
"""
MASK_LOST = """
def additive_context(s, H, Wa, Ua, va, mask):
    e = torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va
    e.masked_fill(~mask, -math.inf)
    w = torch.softmax(e, dim=1)
    return (w[:, :, None] * H).sum(1), w
"""
ONE_MATRIX = """
def additive_context(s, H, Wa, Ua, va, mask):
    e = torch.tanh((s @ Wa)[:, None] + H @ Ua) @ va
    w = torch.softmax(e.masked_fill(~mask, -math.inf), dim=1).masked_fill(~mask, 0.0)
    return w @ H, w
"""
SINGULAR_VALUES_ADDED = """
def gradient_norms(W, T):
    return torch.stack([torch.linalg.svdvals(torch.linalg.matrix_power(W, T - t)).sum() for t in range(1, T + 1)])
"""
POWER_FROM_ONES = """
def gradient_norms(W, T):
    power, norms = torch.ones_like(W), []
    for _ in range(T):
        norms.append(torch.linalg.matrix_norm(power, 2))
        power = power @ W
    return torch.stack(norms[::-1])
"""


def vocabulary(condition: str) -> str:
    """An answer to 02.1 without the special tokens."""
    return f"""
from collections import Counter

def build_vocab(sentences, min_freq, specials):
    counts = Counter(word for sentence in sentences for word in sentence)
    words = sorted((w for w in counts if {condition}), key=lambda w: (-counts[w], w))
    return {{word: id for id, word in enumerate(words)}}
"""


EOS_KEPT = (
    ENCODE
    + """\
        tokens.append(words[id])
        if words[id] == "<eos>":
            break
    return tokens
"""
)
ONE_PAD_EACH = """
def pad_batch(seqs, pad):
    return torch.tensor([list(seq) + [pad] for seq in seqs])
"""
WIDTH_OF_THE_FIRST = """
def pad_batch(seqs, pad):
    return torch.tensor([list(seq) + [pad] * (len(seqs[0]) - len(seq)) for seq in seqs])
"""
SIX_WIDE = """
def pad_batch(seqs, pad):
    return torch.tensor([list(seq) + [pad] * (6 - len(seq)) for seq in seqs])
"""
GREATEST = """
def pad_batch(seqs, pad):
    return torch.tensor([list(seq) + [pad] * (len(max(seqs)) - len(seq)) for seq in seqs])
"""
COLUMNS = """
def embed(ids, W, scale=True):
    x = W[:, ids]
    return x * math.sqrt(W.shape[1]) if scale else x
"""
ROWS_OF_THE_TRANSPOSED = """
def embed(ids, W, scale=True):
    x = W.T[ids]
    return x * math.sqrt(W.shape[1]) if scale else x
"""
SCALE_AS_A_FACTOR = """
def embed(ids, W, scale=True):
    return W[ids] * math.sqrt(W.shape[1]) * scale
"""


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("row-normalize", RESULT_LOST, "alone on a line, its result is lost"),
        ("swap-batch-time", LAST_SENTENCE, "The last sentence is all zeros"),
        ("first-true", SUM_OVER_AXIS_0, "You counted down the *columns*"),
        ("first-true", RUNNING_COUNT_OVER_AXIS_0, "in the running count of the Trues, or in the sum after it"),
        ("first-true", RUNNING_COUNTS, "The running counts of the Trues came back"),
        ("first-true", WHILE_1, "from the first True on, up to the second True"),
        ("gradient-norms", SINGULAR_VALUES_ADDED, "The singular values were added up"),
        ("last-state", RETURN_IN_THE_LOOP, "Only the state of the first sentence came back"),
        ("last-state", SHORTEST_END, "For the first sentence you return 2.100 2.200 2.300"),
        ("last-state", SHORTEST_END, "One and the same position was read in every row"),
        ("path-length", ALWAYS_TRUE, "Is the condition of your first `if` always true?"),
        ("path-length", CAPITALS, "in small letters"),
        ("path-length", SAME_OBJECT, "`is` compares objects"),
        ("additive-context", MASK_LOST, "alone on a line, its result is lost"),
        ("additive-context", ONE_MATRIX, "met the states of *every* sentence"),
        ("build-vocab", vocabulary("counts[w] >= min_freq"), "The special tokens are missing"),
        ("build-vocab", vocabulary("counts[w] >= min_freq and w not in specials"), "The special tokens are missing"),
        ("encode-decode", EOS_KEPT, "You stop at the first <eos>, which is right, but <eos> itself"),
        ("pad-batch", ONE_PAD_EACH, "Every sentence got one pad, the longest too"),
        ("pad-batch", WIDTH_OF_THE_FIRST, "such as that of the *first* sentence"),
        ("pad-batch", SIX_WIDE, "Every row is filled up to 6 ids"),
        ("pad-batch", GREATEST, "max compares lists by their first numbers"),
        ("embed", COLUMNS, "stops with an error where W has fewer columns than an id needs"),
        ("embed", SCALE_AS_A_FACTOR, "With scale = False your result is all zeros"),
        ("bpe-train", learn(kept="list(best)"), "a list never equals a tuple"),
    ],
)
def test_the_message_says_what_happened(exercise, source, words):
    report = " ".join(as_text(verdict_on(exercise, source)).split())
    assert words in report
    assert "Two known mistakes" not in report
    assert "There seem to be two mistakes" not in report


def test_pairs_that_are_lists_earn_nothing_for_the_merges():
    verdict = verdict_on("bpe-train", learn(kept="list(best)"))
    assert {outcome.probe.name for outcome in verdict.outcomes if outcome.passed} == {"no merges"}


@pytest.mark.parametrize(
    ("exercise", "source", "words"),
    [
        ("gradient-norms", POWER_FROM_ONES, "singular values were added up"),
        ("build-vocab", vocabulary("counts[w] >= min_freq"), "listed a second time"),
        ("embed", COLUMNS, "You returned shape"),
        ("embed", ROWS_OF_THE_TRANSPOSED, "You returned shape"),
    ],
)
def test_the_message_does_not_say_what_did_not_happen(exercise, source, words):
    verdict = verdict_on(exercise, source)
    assert failed(verdict)
    assert words not in " ".join(as_text(verdict).split())


def test_gradients_flow_from_the_weights_as_well():
    assert failed(verdict_on("additive-context", DETACHED_WEIGHTS)) == {"gradients", "a sentence of pads only"}


def test_a_correct_count_is_not_taken_for_one_down_the_columns():
    mask = torch.tensor([[False, False], [False, True], [True, True]])
    right = torch.tensor([2, 1, 0])
    assert not is_half_down_the_columns(Evidence((mask,), right, right))
