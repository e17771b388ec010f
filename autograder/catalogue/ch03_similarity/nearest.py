"""03.5: the words nearest to a word, by cosine."""

import math
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch03_similarity.shared import EMBEDDINGS, SMALL_PRINT, WORDS, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.families import in_place
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, normal, second_call, visible
from transformer_ref.model import similarity

COSINE, NEAREST = sections("cosine nearest")

NAMES = ("door", "glass", "roof", "screen", "mouse", "keyboard", "garden", "cable", "curtain", "balcony", "wall",
         "shutter", "lamp")
# word -> row of PLACES
VOCABULARY = {"windows": 3, "screen": 0, "computer": 5, "the": 1, "door": 6, "rain": 2, "glass": 4}
PLACES = torch.tensor([[2.2, 0.5], [6.0, -1.0], [-2.0, -2.2], [1.0, 1.0], [0.4, 2.0], [3.0, 0.0], [1.0, 1.8]])
# cosines that are equal when they are rounded to two digits, and two others
NEARLY_EQUAL = (0.9514, 0.951, 0.9506, 0.9502, 0.4, -0.3)


def nearest(word: str, vocab: dict[str, int], W: Tensor, k: int) -> list[str]:
    """The k other words whose vectors have the largest cosine with the word's own, best first."""
    own = vocab[word]
    similarities = similarity.cosine(W[own][None], W)[0]  # (V,)
    words = {row: name for name, row in vocab.items()}
    return [words[row] for row in similarities.argsort(descending=True).tolist() if row != own][:k]


def search(
    g: torch.Generator, k: int, d: int, cosines: tuple[float, ...] = (0.9, 0.72, 0.5, 0.25, 0.1, -0.2, -0.5, -0.95), *,
    twin: float = 0.0, zero: bool = False, own_zero: bool = False, opposites: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Case:
    """A word and others at given cosines from it; nearer ones are shorter, so that lengths mislead. twin: another word
    has the same direction and this many times the length; 0 for none. zero: another word has a vector of zeros;
    own_zero: the word itself has. opposites: two others have the same vector, whose cosine is exactly -1; one of
    them is in a later row than the word's own.
    """
    own = torch.nn.functional.normalize(normal(g, d, dtype=torch.float64), dim=0)
    if opposites:  # along an axis: in other directions a cosine of -1 is rounded
        own = (own.abs() == own.abs().max()).double()
    vectors = [own]
    for length, cosine in enumerate(cosines, start=1):
        across = normal(g, d, dtype=torch.float64)
        across = torch.nn.functional.normalize(across - (across @ own) * own, dim=0)
        vectors.append(0.8 * length * (cosine * own + math.sqrt(1 - cosine**2) * across))
    vectors += [twin * own] if twin else []
    vectors += [0 * own] if zero else []
    vectors += [-2 * own, -2 * own] if opposites else []
    vectors[0] = 0 * own if own_zero else own
    order = torch.randperm(len(vectors), generator=g).tolist()
    place, other = order.index(0), order.index(len(vectors) - 1)
    if (twin and place < other) or (opposites and place > other):  # the twin comes before, opposites after
        order[place], order[other] = order[other], order[place]
    names = [NAMES[i] for i in torch.randperm(len(NAMES), generator=g).tolist()][: len(vectors)]
    listed = torch.randperm(len(names), generator=g).tolist()  # the dictionary lists its words in another order
    if listed == sorted(listed):
        listed = listed[::-1]
    W = torch.stack([vectors[i] for i in order]).to(dtype)
    return Case((names[order.index(0)], {names[i]: i for i in listed}, W, k))


def list_of(evidence: Evidence) -> str:
    return f"You returned {', '.join(map(str, evidence.got[:4]))}; expected {', '.join(evidence.expected)}."


def in_any_order_where_equal(case: Case, result: Any) -> Any:
    """The result with words of equal cosine in alphabetical order, since either may come first."""
    word, vocab, W, _ = case.arguments
    if not isinstance(result, (list, tuple)) or not all(isinstance(each, str) for each in result):
        return result
    if len(set(result)) < len(result) or not set(result) <= set(vocab):
        return result
    directions = torch.nn.functional.normalize(W.double(), dim=-1)
    cosines = (directions @ directions[vocab[word]]).tolist()
    alike: dict[float, list[str]] = {}
    for other in sorted(set(vocab) - {word}, reverse=True):
        alike.setdefault(round(cosines[vocab[other]], 6), []).append(other)
    return [each if each == word else alike[round(cosines[vocab[each]], 6)].pop() for each in result]


def few_and_many(g: torch.Generator) -> Case:
    """Words with one large feature among words with several: another norm would change their order. Lengths are from
    0.02 to 3,000, in no order: one must not be taken for a larger one, or a constant be added to it."""
    W = torch.tensor([[3.0, 1, 0, 0], [2, 0.3, 0, 0], [1, 1, -0.2, 0.1], [1, 1.2, 0.9, 0.4], [1, -0.2, 0.9, 0.8],
                      [0.1, 0.2, 1, 0]])
    lengths = torch.tensor([0.05, 0.021, 2.0, 0.04, 2_800.0, 60.0]) * (1 + 0.05 * torch.rand(len(W), generator=g))
    W = torch.nn.functional.normalize(W, dim=-1) * lengths[:, None]
    return Case(("sun", {"sun": 0, "rain": 1, "wind": 2, "snow": 3, "fog": 4, "hail": 5}, W, 5))


def listed_at_0(evidence: Evidence) -> bool | None:
    """Whether the word itself is listed, after all with a positive cosine and before all with a negative one; None
    where all cosines are 0."""
    word, vocab, W, _ = evidence.arguments
    if not W[vocab[word]].any():
        return None
    cosines = similarity.cosine(W[vocab[word]][None], W)[0]
    place = evidence.got.index(word)
    before, after = ([cosines[vocab[other]].item() for other in words] for words in (evidence.got[:place],
        evidence.got[place + 1 :]))
    positive = sum(cosines[i].item() > 1e-6 for other, i in vocab.items() if other != word)
    return len(before) >= max(positive, 1) and min(before) > -1e-6 and max(after, default=0.0) < 1e-6


RIGHT = answer("""
    def nearest(word, vocab, W, k):
        own = vocab[word]
        directions = F.normalize(W, dim=-1)
        sims = directions @ directions[own]
        order = sims.argsort(descending=True, stable=True).tolist()
        others = [i for i in order if i != own]
        names = {i: w for w, i in vocab.items()}
        return [names[i] for i in others[:k]]
""")
DIRECTIONS, COSINES = "directions = F.normalize(W, dim=-1)", "directions @ directions[own]"
SORTED, FOUND = "argsort(descending=True, stable=True)", "[names[i] for i in others[:k]]"
WITHOUT_ITS_ROW = RIGHT.after(f"sims = {COSINES}", "sims = torch.cat([sims[:own], sims[own + 1:]])").but(
    " if i != own", "")
SENT_TO_THE_END = RIGHT.after(f"sims = {COSINES}", "sims[own] = -2").but(" if i != own", "")

EXERCISE = Exercise(
    id="nearest", number="03.5", difficulty=2, minutes=12, visible_points=1, hidden_points=2,
    reference=nearest, normalize=in_any_order_where_equal, section=NEAREST,
    probes=(
        visible("three words near windows", Case(("windows", VOCABULARY, PLACES, 3))),
        visible("four words, k = 10",
                Case(("windows", {word: i for i, word in enumerate(WORDS)}, EMBEDDINGS, 10))),
        hidden("other words, other sizes", search, 4, 5, announced_by="(V, d)"),
        hidden("k = 1", search, 1, 3, announced_by="at least 1"),
        hidden("as many as there are", search, 15, 6, (0.9, 0.72, 0.5, 0.25, 0.1, -0.2, -0.5, -0.95, 0.6, -0.7),
               opposites=True, announced_by="when k is larger"),
        hidden("another word in the same direction", search, 2, 5, (0.8, 0.4, -0.3), twin=8.0,
               announced_by="by cosine"),
        hidden("another word with the very same vector", search, 3, 4, (0.7, 0.2, -0.6), twin=1.0,
               announced_by="other words"),
        hidden("a vector of zeros", search, 4, 5, (0.9, 0.6, 0.3, -0.4, -0.8), zero=True,
               checks="inputs", announced_by="A vector of zeros"),
        hidden("a vector of zeros for the word itself", search, 2, 5, (0.7, 0.3, -0.2, -0.6), own_zero=True,
               announced_by="A vector of zeros"),
        hidden("float64", search, 3, 7, NEARLY_EQUAL, dtype=torch.float64, announced_by="(V, d)"),
        hidden("few and many features, of any length", few_and_many,
               announced_by="from 0.02 to 3,000 long"),
        second_call(search, 3, 5),
    ),
    omits={"a batch of one": "there is one word, with others to find",
           "a length of one": "a vector of one number has no angle",
           "precision": "only the order of cosines is returned"},
    mistakes=(
        mistake("itself included", RIGHT.but(" if i != own", ""), NEAREST,
            """Nobody is nearer to a word than the word itself, so it came back as well. Leave it out; return the k
            *others*.""", quotes=list_of),
        mistake("itself counted among the k", RIGHT.but("in order if", "in order[:k] if"), NEAREST,
            """One word too few. Either the word itself was taken among the k and then dropped (drop it first), or
            k was made smaller, although the word had been left out already.""", quotes=list_of),
        mistake("one too many", RIGHT.but("[:k]", "[:k + 1]"), NEAREST,
            "One word too many came back. Room was made for the word itself, but it had been left out already.",
            quotes=list_of),
        mistake("first hit dropped, whoever it is", RIGHT.but(COSINES, f"({COSINES}).round(decimals=5)").but(
                  "[i for i in order if i != own]", "order[1:]"), NEAREST,
            """The first hit was dropped on the belief that it is the word itself. Another word may point exactly the
            same way (I and windows do), and then the wrong one goes. Leave the word out by its id.""", quotes=list_of),
        mistake("features brought to length 1", RIGHT.but("dim=-1", "dim=0"), COSINE,
            "Columns were brought to length 1: a column holds one feature of all words. Each *row* is a word's vector.",
            quotes=list_of),
        mistake("dot product instead of cosine", RIGHT.but(DIRECTIONS, "directions = W"), COSINE,
            """The plain dot product was compared, so a long vector wins every search, whatever its direction. Compare
            by cosine. (Dividing only by the word's own length does not change this order.)""", quotes=list_of),
        mistake("smallest distance instead of cosine", RIGHT.but(COSINES, "-(W - W[own]).norm(dim=-1)"), COSINE,
            """Your order is that of the distances between points, or of dot products divided by the *square* of a
            length: both put a long vector in the same direction far away. By cosine it is near.""", quotes=list_of),
        mistake("least similar first", RIGHT.but("descending=True, ", ""), NEAREST,
            "These are the *least* similar words: sorting puts the smallest number first.", quotes=list_of),
        mistake("right words, worst first", RIGHT.but("[:k]", "[:k][::-1]"), NEAREST,
            "The right words in the wrong order: the nearest comes first.", quotes=list_of),
        mistake("in the order of the vocabulary", RIGHT.but(FOUND, "[w for w, i in vocab.items() if i in others[:k]]"),
                NEAREST,
            "The right words, but in the order in which the vocabulary lists them. The nearest comes first.",
            quotes=list_of),
        mistake("opposite counts as near", RIGHT.but(COSINES, f"({COSINES}).abs()"), COSINE,
            "A word in the *opposite* direction came out as near: the sign of the cosine was dropped.", quotes=list_of),
        mistake("ids instead of words", RIGHT.but(FOUND, "others[:k]"), NEAREST,
            "You returned ids. Return words; the vocabulary leads from words to ids, so you need it the "
            "other way round.",
            quotes=list_of),
        mistake("a tensor of ids", RIGHT.but(FOUND, "torch.tensor(others[:k])"), NEAREST,
            """You returned a tensor of ids. Return a list of words; the vocabulary leads from words to ids, so you
            need it the other way round."""),
        mistake("words with their similarities", RIGHT.but("[names[i] for", "[(names[i], sims[i].item()) for"), NEAREST,
            "Pairs of a word and a number came back. Return only the words."),
        mistake("the place in the dictionary taken as the id",
                RIGHT.but("{i: w for w, i in vocab.items()}", "list(vocab)"), NEAREST,
            """A word's position in the dictionary was taken for its id. The two agree only by luck: the id is the
            number *stored* with the word.""", quotes=list_of),
        mistake("stops when k is too large", SENT_TO_THE_END.but(SORTED, "topk(k).indices"), NEAREST,
            "k is larger than the number of other words, and your code stopped. Then return all the others, sorted."),
        mistake("the place in the dictionary, for the word as well",
                RIGHT.but("{i: w for w, i in vocab.items()}", "list(vocab)").but(
                  "vocab[word]", "list(vocab).index(word)"), NEAREST,
            """A word's position in the dictionary was taken for its id, for the word itself as well. The id is the
            number *stored* with the word, vocab[word].""", quotes=list_of),
        mistake("the place in the dictionary, only for the word itself",
                RIGHT.but("vocab[word]", "list(vocab).index(word)"), NEAREST,
            """The row of the word itself was found by its *position* in the dictionary, so you compared the others
            with the vector of a different word. Its row is its id, the number stored with it.""", quotes=list_of),
        mistake("found by the cosine", """
            def nearest(word, vocab, W, k):
                found = {}
                for other, i in vocab.items():
                    if other != word:
                        found[F.cosine_similarity(W[vocab[word]], W[i], dim=0).item()] = other
                return [found[each] for each in sorted(found, reverse=True)][:k]
        """, NEAREST,
            """Words are missing where several have exactly the same cosine. If the cosines are the keys of a
            dictionary, a later word replaces an earlier one with the same key. Keep a pair of cosine and word for each
            word.""",
            quotes=list_of),
        mistake("itself last when k is large", SENT_TO_THE_END, NEAREST,
            """The word itself was sent to the end of the list, and came back from there when k was large.
            There are V - 1 others."""),
        mistake("own similarity set to 0",
                SENT_TO_THE_END.but("-2", "0").but(SORTED, "topk(min(k, len(vocab) - 1)).indices"), NEAREST,
            """The word's own similarity was set to 0, but others may be 0 or less, and then the word itself is listed
            before them. Leave it out, or make it smaller than any cosine.""", shows=listed_at_0),
        mistake("a zero vector in front", RIGHT.but("F.normalize(W, dim=-1)", "W / W.norm(dim=-1, keepdim=True)"),
                COSINE,
            """A vector of zeros gave 0 over 0, which is NaN, and NaN has no place in an order: torch sorts it above
            every number, and sorted() leaves it anywhere. A word without any direction has similarity 0."""),
        mistake("found by the alphabet", RIGHT.but(FOUND, "[names[i] for i in sorted(others, key=names.get)[:k]]"),
                NEAREST,
            "The words were sorted by the alphabet before the first k were taken. The *similarities* are "
            "what is sorted.", quotes=list_of),
        mistake("largest number as length", RIGHT.but("F.normalize(W, dim=-1)", "F.normalize(W, p=math.inf, dim=-1)"),
                COSINE,
            "Each word was divided by its largest number. The length of a vector is the root of the sum of squares.",
            quotes=list_of),
        mistake("sum of absolute values as length", RIGHT.but("F.normalize(W, dim=-1)", "F.normalize(W, p=1, dim=-1)"),
                COSINE,
            "Each word was divided by the sum of its absolute values. The length of a vector is the root of the sum "
            "of *squares*.",
            quotes=list_of),
        families.MEAN_TAKEN_AWAY(
            RIGHT.but("F.normalize(W, dim=-1)", "F.normalize(W - W.mean(dim=-1, keepdim=True), dim=-1)"),
            COSINE, quotes=list_of, vector="word's numbers"),
        in_place("W", RIGHT.before(DIRECTIONS, "W /= W.norm(dim=-1, keepdim=True).clamp(min=1e-12)"), SMALL_PRINT,
                 "After one search the caller's embeddings are lost."),
        mistake("everything with the same vector left out", RIGHT.but("i != own", "not torch.equal(W[i], W[own])"),
                NEAREST,
            """You left out every word whose vector equals the word's own. A different word may have exactly the same
            vector, and then it is the nearest of all: leave out the word by its name or its id."""),
        mistake("everything in the same direction left out", RIGHT.but("i != own", "sims[i] < 0.9999"), NEAREST,
            """You left out every word with a cosine of 1. A different word may point in the same direction, and then it
            is the nearest of all: leave out the word by its name or its id."""),
        mistake("ids shifted by the row left out", WITHOUT_ITS_ROW, NEAREST,
            """The word's own row was taken out, so the rows after it moved up by one: position i there is no longer
            the word with id i. Keep all rows, and leave the word out by its id at the end.""", quotes=list_of),
        mistake("all ids shifted by one", WITHOUT_ITS_ROW.but("names[i]", "names[i + 1]"), NEAREST,
            """The word's own row was taken out, and 1 was added to every id. Only the rows *after* it moved up: those
            before it keep their ids.""", quotes=list_of),
        mistake("three words, whatever k is", RIGHT.but("[:k]", "[:3]"), NEAREST,
            "Three words came back whatever k is. The first example has k = 3; return as many words as k says.",
            quotes=list_of),
        mistake("only positive cosines", RIGHT.but("i != own", "i != own and sims[i] > 0"), NEAREST,
            """Words with a cosine of 0 or less were left out. Where k is large they belong in the list too, at its
            end.""", quotes=list_of),
        mistake("the caller's vocabulary changed", RIGHT.but("vocab[word]", "vocab.pop(word)"), NEAREST,
            "Your function took the word out of the caller's vocabulary (del, pop). The next search "
            "would not find it."),
    ),
    correct=(
        correct("argsort", RIGHT.but("descending=True, stable=True", "descending=True")),
        correct("topk", """
            def nearest(w, vocabulary, table, count):
                i = vocabulary[w]
                sims = F.cosine_similarity(table, table[i][None], dim=-1)
                sims[i] = -math.inf
                best = sims.topk(min(count, len(vocabulary) - 1)).indices.tolist()
                words = sorted(vocabulary, key=vocabulary.get)
                return [words[j] for j in best]
        """),
        correct("sorted words", """
            def nearest(word, vocab, W, k):
                def likeness(other):
                    a, b = W[vocab[word]], W[vocab[other]]
                    return (torch.dot(a, b) / (a.norm() * b.norm() + 1e-12)).item()
                return sorted((w for w in vocab if w != word), key=likeness, reverse=True)[:k]
        """),
        correct("heap", """
            def nearest(word, vocab, W, k):
                import heapq
                sims = F.normalize(W, dim=1) @ F.normalize(W[vocab[word]], dim=0)
                others = [w for w in vocab if w != word]
                return tuple(heapq.nlargest(k, others, key=lambda w: sims[vocab[w]]))
        """),
        correct("best one, again and again", """
            def nearest(word, vocab, W, k):
                left = {w: i for w, i in vocab.items() if w != word}
                found = []
                while left and len(found) < k:
                    best = max(left, key=lambda w: float(F.cosine_similarity(W[left[w]], W[vocab[word]], dim=0)))
                    found.append(best)
                    del left[best]
                return found
        """),
        correct("only the others' lengths matter", """
            def nearest(word, vocab, W, k):
                keep = [(w, i) for w, i in vocab.items() if w != word]
                V = W[[i for _, i in keep]]
                s = V @ W[vocab[word]] / V.norm(dim=-1).clamp(min=1e-9)
                return [keep[j][0] for j in s.sort(descending=True).indices[:k]]
        """),
        correct("angles, smallest first", """
            def nearest(word, vocab, W, k):
                D = F.normalize(W.double(), dim=-1)
                angles = torch.acos((D @ D[vocab[word]]).clamp(-1, 1))
                pairs = sorted((angles[i].item(), w) for w, i in vocab.items() if w != word)
                return [w for _, w in pairs[:k]]
        """),
    ),
    hints=(
        "who is always nearest to a word, and what does a long vector do to a dot product?",
        "W is (V, d), the word's own row (d); one similarity for each of the V rows; V - 1 of them are others.",
        "cosine of the word's row with every row; ids sorted by it, largest first; the word's own id left out; the "
        "first k; back "
        "from ids to words.",
    ),
)
