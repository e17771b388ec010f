"""03.5 nearest."""

import math

import torch
from torch import Tensor

from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import UNTOUCHED, known, normal, right
from transformer_ref.model import similarity

COSINE, MANY, NEAREST = sections("cosine many nearest")

NAMES = ("door", "glass", "roof", "screen", "mouse", "keyboard", "garden", "cable", "curtain", "balcony", "wall")
_PLACES = {
    "windows": (1.0, 1.0),
    "screen": (2.2, 0.5),
    "computer": (3.0, 0.0),
    "the": (6.0, -1.0),
    "door": (1.0, 1.8),
    "rain": (-2.0, -2.2),
    "glass": (0.4, 2.0),
}


def nearest(word: str, vocab: dict[str, int], W: Tensor, k: int) -> list[str]:
    """The k other words whose vectors have the largest cosine with the word's own, best first."""
    own = vocab[word]
    similarities = similarity.cosine(W[own][None], W)[0]  # (V,)
    words = {row: name for name, row in vocab.items()}
    return [words[row] for row in similarities.argsort(descending=True).tolist() if row != own][:k]


def _map() -> tuple[dict[str, int], Tensor]:
    rows = (3, 0, 5, 1, 6, 2, 4)  # which row of W each word has
    W = torch.empty(7, 2)
    for row_number, place in zip(rows, _PLACES.values(), strict=True):
        W[row_number] = torch.tensor(place)
    return dict(zip(_PLACES, rows, strict=True)), W


def _search(
    g: torch.Generator,
    k: int,
    d: int,
    cosines: tuple[float, ...] = (0.9, 0.72, 0.5, 0.25, 0.1, -0.2, -0.5, -0.95),
    *,
    twin: float = 0.0,
    zero: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Case:
    """A word and others at given cosines from it; the nearer in angle, the shorter, so that lengths mislead.

    twin: another word points the same way and is so many times as long; 0 for none. zero: another word has a vector of zeros.
    """
    own = torch.nn.functional.normalize(normal(g, d, dtype=torch.float64), dim=0)
    vectors = [own]
    for length, cosine_ in enumerate(cosines, start=1):
        across = normal(g, d, dtype=torch.float64)
        across = torch.nn.functional.normalize(across - (across @ own) * own, dim=0)
        vectors.append(0.8 * length * (cosine_ * own + math.sqrt(1 - cosine_**2) * across))
    vectors += [twin * own] if twin else []
    vectors += [0 * own] if zero else []
    order = torch.randperm(len(vectors), generator=g).tolist()
    if twin and order.index(0) < order.index(len(vectors) - 1):  # the twin stands in an earlier row
        place, other = order.index(0), order.index(len(vectors) - 1)
        order[place], order[other] = order[other], order[place]
    names = [NAMES[i] for i in torch.randperm(len(NAMES), generator=g).tolist()][: len(vectors)]
    listed = torch.randperm(len(names), generator=g).tolist()  # the dictionary lists its words in another order
    if listed == sorted(listed):
        listed = listed[::-1]
    W = torch.stack([vectors[i] for i in order]).to(dtype)
    return Case((names[order.index(0)], {names[i]: i for i in listed}, W, k))


def _list_of(evidence: Evidence) -> str:
    return f"You returned {', '.join(map(str, evidence.got[:4]))}; expected {', '.join(evidence.expected)}."


EXERCISE = Exercise(
    id="nearest",
    number="03.5",
    visible_points=1,
    hidden_points=2,
    section=NEAREST,
    reference=nearest,
    probes=(
        Probe("three words near windows", lambda g: Case(("windows", *_map(), 3)), hidden=False),
        Probe(
            "four words, ten asked for",
            lambda g: Case(("windows", {name: i for i, name in enumerate(WORDS)}, EMBEDDINGS, 10)),
            hidden=False,
        ),
        Probe("other words, other sizes", lambda g: _search(g, 4, 5)),
        Probe("one word asked for", lambda g: _search(g, 1, 3)),
        Probe("as many as there are", lambda g: _search(g, 9, 6)),
        Probe("another word in the same direction", lambda g: _search(g, 2, 5, (0.8, 0.4, -0.3), twin=8.0)),
        Probe("another word with the very same vector", lambda g: _search(g, 3, 4, (0.7, 0.2, -0.6), twin=1.0)),
        Probe("a vector of zeros", lambda g: _search(g, 4, 5, (0.9, 0.6, 0.3, -0.4, -0.8), zero=True)),
        Probe("float64", lambda g: _search(g, 3, 7, dtype=torch.float64)),
        Probe("nothing else is touched", lambda g: _search(g, 3, 5), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "itself included",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist()][:k]
            """,
            "Nobody is nearer to a word than the word itself, so it came back as well. Leave it out; the k *others* are wanted.",
            NEAREST,
            _list_of,
        ),
        known(
            "itself counted among the k",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist()[:k] if i != vocab[word]]
            """,
            "One word too few: the word itself was taken among the k and then dropped. Drop it first.",
            NEAREST,
            _list_of,
        ),
        known(
            "one too many",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k + 1]
            """,
            "One word too many came back. Room was made for the word itself, but it had been left out already.",
            NEAREST,
            _list_of,
        ),
        known(
            "first hit dropped, whoever it is",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                sims = F.normalize(W, dim=-1) @ F.normalize(own, dim=0)
                sims = torch.where((sims - 1).abs() < 1e-5, 1.0, sims)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True, stable=True).tolist()][1:k + 1]
            """,
            """The first hit was dropped on the belief that it is the word itself. Another word may point exactly the same
            way (I and windows do), and then the wrong one goes. Leave the word out by its id.""",
            NEAREST,
            _list_of,
        ),
        known(
            "dot product instead of cosine",
            """
            def nearest(word, vocab, W, k):
                sims = W @ W[vocab[word]]
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True, stable=True).tolist() if i != vocab[word]][:k]
            """,
            "The plain dot product was compared, so a long vector wins every search, whatever its direction. Compare by cosine.",
            COSINE,
            _list_of,
        ),
        known(
            "smallest distance instead of cosine",
            """
            def nearest(word, vocab, W, k):
                distances = (W - W[vocab[word]]).norm(dim=-1)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in distances.argsort(stable=True).tolist() if i != vocab[word]][:k]
            """,
            "The words were sorted by the distance between their points. A long vector in the same direction is then far away; by cosine it is near.",
            COSINE,
            _list_of,
        ),
        known(
            "least similar first",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort().tolist() if i != vocab[word]][:k]
            """,
            "These are the *least* similar words: sorting puts the smallest number first.",
            NEAREST,
            _list_of,
        ),
        known(
            "right words, worst first",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k][::-1]
            """,
            "The right words in the wrong order: the nearest comes first.",
            NEAREST,
            _list_of,
        ),
        known(
            "in the order of the vocabulary",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                best = [i for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
                return [w for w, i in vocab.items() if i in best]
            """,
            "The right words, but in the order in which the vocabulary lists them. The nearest comes first.",
            NEAREST,
            _list_of,
        ),
        known(
            "opposite counts as near",
            """
            def nearest(word, vocab, W, k):
                sims = (F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)).abs()
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True, stable=True).tolist() if i != vocab[word]][:k]
            """,
            "A word in the *opposite* direction came out as near: the sign of the cosine was dropped.",
            COSINE,
            _list_of,
        ),
        known(
            "ids instead of words",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                return [i for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "You returned ids. Words are wanted; the vocabulary leads from words to ids, so you need it the other way round.",
            NEAREST,
            _list_of,
        ),
        known(
            "a tensor of ids",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = -2
                return sims.topk(min(k, len(vocab) - 1)).indices
            """,
            "You returned a tensor of ids. A list of words is wanted; the vocabulary leads from words to ids, so you need it the other way round.",
            NEAREST,
        ),
        known(
            "words with their similarities",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = {i: w for w, i in vocab.items()}
                return [(names[i], sims[i].item()) for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "Pairs of a word and a number came back. Only the words are wanted.",
            NEAREST,
        ),
        known(
            "the place in the dictionary taken as the id",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                names = list(vocab)
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "A word's place in the dictionary was taken for its id. The two agree only by luck: the id is the number *stored* with the word.",
            NEAREST,
            _list_of,
        ),
        known(
            "stops when k is too large",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = -2
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.topk(k).indices.tolist()]
            """,
            "More words were asked for than there are, and your code stopped. Then all the others are wanted, sorted.",
            NEAREST,
        ),
        known(
            "itself last when k is large",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = -2
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist()][:k]
            """,
            "The word itself was sent to the end of the list, and came back from there when many words were asked for. There are V - 1 others.",
            NEAREST,
        ),
        known(
            "own similarity set to 0",
            """
            def nearest(word, vocab, W, k):
                sims = F.normalize(W, dim=-1) @ F.normalize(W[vocab[word]], dim=0)
                sims[vocab[word]] = 0
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.topk(min(k, len(vocab) - 1)).indices.tolist()]
            """,
            "The word's own similarity was set to 0, but others may be 0 or less, and then the word itself is listed before them. Leave it out, or make it smaller than any cosine.",
            NEAREST,
            _list_of,
        ),
        known(
            "a zero vector in front",
            """
            def nearest(word, vocab, W, k):
                D = W / W.norm(dim=-1, keepdim=True)
                sims = D @ D[vocab[word]]
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "A vector of zeros gave 0 over 0, which is NaN, and NaN has no place in an order: torch sorts it above every number. A word without any direction has similarity 0.",
            COSINE,
        ),
        known(
            "W changed in place",
            """
            def nearest(word, vocab, W, k):
                W /= W.norm(dim=-1, keepdim=True).clamp(min=1e-12)
                sims = W @ W[vocab[word]]
                names = {i: w for w, i in vocab.items()}
                return [names[i] for i in sims.argsort(descending=True).tolist() if i != vocab[word]][:k]
            """,
            "Your function changed the caller's W: after one search every word has length 1, and the embeddings are lost.",
            MANY,
        ),
        known(
            "everything with the same vector left out",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                others = [other for other, row in vocab.items() if not torch.equal(W[row], own)]
                return sorted(others, key=lambda other: -F.cosine_similarity(own, W[vocab[other]], dim=0).item())[:k]
            """,
            "You left out every word whose vector equals the word's own. Another word may have the very same vector, and then nobody is nearer: leave out the word by its name or its id.",
            NEAREST,
        ),
        known(
            "everything in the same direction left out",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                cosines = {other: F.cosine_similarity(own, W[row], dim=0).item() for other, row in vocab.items()}
                return [other for other in sorted(cosines, key=lambda o: -cosines[o]) if cosines[other] < 0.9999][:k]
            """,
            "You left out every word with a cosine of 1. Another word may point the same way, and then nobody is nearer: leave out the word by its name or its id.",
            NEAREST,
        ),
        known(
            "the caller's vocabulary changed",
            """
            def nearest(word, vocab, W, k):
                own = W[vocab[word]]
                del vocab[word]
                return sorted(vocab, key=lambda other: -F.cosine_similarity(own, W[vocab[other]], dim=0).item())[:k]
            """,
            "Your function took the word out of the caller's vocabulary (del, pop). The next search would not find it.",
            NEAREST,
        ),
    ),
    right=(
        right(
            "argsort",
            """
            def nearest(word, vocab, W, k):
                D = F.normalize(W, dim=-1)
                order = torch.argsort(D @ D[vocab[word]], descending=True)
                names = {i: w for w, i in vocab.items()}
                return [names[int(i)] for i in order if int(i) != vocab[word]][:k]
            """,
        ),
        right(
            "topk",
            """
            def nearest(w, vocabulary, table, count):
                i = vocabulary[w]
                sims = F.cosine_similarity(table, table[i][None], dim=-1)
                sims[i] = -math.inf
                best = sims.topk(min(count, len(vocabulary) - 1)).indices.tolist()
                words = sorted(vocabulary, key=vocabulary.get)
                return [words[j] for j in best]
            """,
        ),
        right(
            "sorted words",
            """
            def nearest(word, vocab, W, k):
                def likeness(other):
                    a, b = W[vocab[word]], W[vocab[other]]
                    return (torch.dot(a, b) / (a.norm() * b.norm() + 1e-12)).item()
                return sorted((w for w in vocab if w != word), key=likeness, reverse=True)[:k]
            """,
        ),
        right(
            "heap",
            """
            def nearest(word, vocab, W, k):
                import heapq
                sims = F.normalize(W, dim=1) @ F.normalize(W[vocab[word]], dim=0)
                others = [w for w in vocab if w != word]
                return tuple(heapq.nlargest(k, others, key=lambda w: sims[vocab[w]]))
            """,
        ),
        right(
            "best one, again and again",
            """
            def nearest(word, vocab, W, k):
                left = {w: i for w, i in vocab.items() if w != word}
                found = []
                while left and len(found) < k:
                    best = max(left, key=lambda w: float(F.cosine_similarity(W[left[w]], W[vocab[word]], dim=0)))
                    found.append(best)
                    del left[best]
                return found
            """,
        ),
        right(
            "only the others' lengths matter",
            """
            def nearest(word, vocab, W, k):
                keep = [(w, i) for w, i in vocab.items() if w != word]
                V = W[[i for _, i in keep]]
                s = V @ W[vocab[word]] / V.norm(dim=-1).clamp(min=1e-9)
                return [keep[j][0] for j in s.sort(descending=True).indices[:k]]
            """,
        ),
        right(
            "angles, smallest first",
            """
            def nearest(word, vocab, W, k):
                D = F.normalize(W.double(), dim=-1)
                angles = torch.acos((D @ D[vocab[word]]).clamp(-1, 1))
                pairs = sorted((angles[i].item(), w) for w, i in vocab.items() if w != word)
                return [w for _, w in pairs[:k]]
            """,
        ),
    ),
    hints=(
        "who is always nearest to a word, and what does a long vector do to a dot product?",
        "W is (V, D), the word's own row (D); one similarity for each of the V rows; V - 1 of them are others.",
        "cosine of the word's row with every row; ids sorted by it, largest first; the word's own id left out; the first k; back from ids to words.",
    ),
)
