"""02.5 bpe_train."""

import torch

from autograder.catalogue.ch02_text_to_vectors.shared import CORPUS, _choose, _letters, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import UNTOUCHED, known, right
from transformer_ref.text import byte_pair_encoding

RULES, TRAIN = sections("bpe-rules bpe-train")


def bpe_train(corpus: dict[str, int], n: int) -> list[tuple[str, str]]:
    """The first n merges (Sennrich et al. 2016, algorithm 1), ties by the smaller pair."""
    return byte_pair_encoding.learn_merges(corpus, n)


def _drawn_corpus(g: torch.Generator, corpus: dict[str, int], n: int, most: int = 6) -> Case:
    """The same corpus in other letters of the same order, every count times one number: equal ties, other text."""
    factor = int(torch.randint(1, most + 1, (), generator=g))
    words = _letters(g, *corpus)
    shuffled = _choose(g, 0, len(words), len(words))
    counts = list(corpus.values())
    return Case(({words[place]: counts[place] * factor for place in shuffled}, n))


def _small_corpus(g: torch.Generator) -> Case:
    """Short words over three letters: many pairs, many ties."""
    words = {
        "".join("abc"[n] for n in torch.randint(3, (size,), generator=g).tolist()) for size in (2, 3, 3, 4, 5, 6, 6)
    }
    words = _letters(g, *sorted(words))
    return Case(({word: int(torch.randint(1, 6, (), generator=g)) for word in words}, 8))


_TRAIN = """
def bpe_train(corpus, n):
    words = [({start}, count) for word, count in corpus.items()]
    merges = []
    while len(merges) < {limit}:
        counts = {{}}
        for pieces, count in words:
            for i in range(len(pieces) - 1):
                pair = (pieces[i], pieces[i + 1])
                counts[pair] = counts.get(pair, 0) + {weight}
        if not counts{stop}:
            break
        best = {best}
        merges.append({kept})
        merged_words = []
        for pieces, count in words:
            merged, i = [], 0
            while i < len(pieces):
                if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == best:
                    merged.append(pieces[i] + pieces[i + 1])
                    i += {step}
                else:
                    merged.append(pieces[i])
                    i += 1
            merged_words.append((merged, count))
        words = merged_words
    return merges
"""


def _train(
    start: str = 'list(word) + ["</w>"]',
    limit: str = "n",
    weight: str = "count",
    stop: str = "",
    best: str = "min(counts, key=lambda pair: (-counts[pair], pair))",
    kept: str = "best",
    step: str = "2",
) -> str:
    """A bpe_train with one part exchanged."""
    return _TRAIN.format(start=start, limit=limit, weight=weight, stop=stop, best=best, kept=kept, step=step)


def _first_other_merge(evidence: Evidence) -> str:
    """The first merge that differs, counted as a reader would."""
    for number, (wanted, got) in enumerate(zip(evidence.expected, evidence.got, strict=False), start=1):
        if tuple(wanted) != got:
            return f"Your merge {number} is {got!r}; by hand it is {wanted!r}."
    return f"You returned {len(evidence.got)} merges where {len(evidence.expected)} were expected."


EXERCISE = Exercise(
    id="bpe-train",
    number="02.5",
    visible_points=2,
    hidden_points=4,
    section=TRAIN,
    reference=bpe_train,
    probes=(
        Probe("ten merges of low, lower, newest, widest", lambda g: Case((CORPUS, 10)), hidden=False),
        Probe("three words, four merges", lambda g: Case(({"hug": 4, "pug": 5, "hugs": 2}, 4)), hidden=False),
        Probe("short words, many ties", _small_corpus),
        Probe("equally frequent pairs", lambda g: _drawn_corpus(g, {"bd": 3, "ab": 3, "cb": 3, "da": 3, "bca": 1}, 6)),
        Probe("equally frequent pieces", lambda g: _drawn_corpus(g, {"abc": 3, "ab": 2, "ad": 3}, 4)),
        Probe("a repeated letter", lambda g: _drawn_corpus(g, {"aaaa": 2, "bc": 9, "aaaaaaa": 1}, 5)),
        Probe("a pair twice in a word", lambda g: _drawn_corpus(g, {"banana": 3, "nab": 4, "bab": 2}, 4)),
        Probe("pieces that end like a pair", lambda g: _drawn_corpus(g, {"ne": 9, "nes": 1, "es": 6}, 7)),
        Probe("more merges asked than there are pairs", lambda g: _drawn_corpus(g, {"ab": 1, "cad": 2}, 40, most=1)),
        Probe("one word of one letter", lambda g: _drawn_corpus(g, {"a": 1}, 3)),
        Probe("nothing else is touched", lambda g: _drawn_corpus(g, {"dab": 4, "cab": 2, "ad": 1}, 5), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "word frequency ignored",
            _train(weight="1"),
            "Each *different* word was counted once. A word that occurs 6 times brings each of its pairs 6 times: newest is 6 of them.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "merges across words",
            """
            def bpe_train(corpus, n):
                pieces = []
                for word, count in corpus.items():
                    pieces += [*word, "</w>"] * count
                merges = []
                while len(merges) < n and len(pieces) > 1:
                    counts = {}
                    for pair in zip(pieces, pieces[1:]):
                        counts[pair] = counts.get(pair, 0) + 1
                    best = min(counts, key=lambda pair: (-counts[pair], pair))
                    merges.append(best)
                    merged, i = [], 0
                    while i < len(pieces):
                        if tuple(pieces[i:i + 2]) == best:
                            merged.append(best[0] + best[1])
                            i += 2
                        else:
                            merged.append(pieces[i])
                            i += 1
                    pieces = merged
                return merges
            """,
            """One of your merges holds the end of a word and the start of the next. Pairs are counted inside each word;
            </w> is where a word stops.""",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "largest pair of equals",
            _train(best="max(counts, key=lambda pair: (counts[pair], pair))"),
            "Among pairs that occur equally often the largest came first. Ties: the smallest pair, as Python compares tuples.",
            RULES,
            _first_other_merge,
        ),
        known(
            "first seen of equals",
            _train(best="max(counts, key=counts.get)"),
            """Among pairs that occur equally often the one met first was taken: max and most_common do that. The same
            words in another order would then give other merges. Ties: the smallest pair.""",
            RULES,
            _first_other_merge,
        ),
        known(
            "last seen of equals",
            _train(best="sorted(counts, key=counts.get)[-1]"),
            """Among pairs that occur equally often the one met last was taken, as the end of a sorted list is. The same
            words in another order would then give other merges. Ties: the smallest pair.""",
            RULES,
            _first_other_merge,
        ),
        known(
            "longest pair of equals",
            _train(best="min(counts, key=lambda pair: (-counts[pair], -len(pair[0] + pair[1]), pair))"),
            "Among pairs that occur equally often the one that makes the longest piece came first. Length plays no part. Ties: the smallest pair.",
            RULES,
            _first_other_merge,
        ),
        known(
            "ties by the joined text",
            _train(best='min(counts, key=lambda pair: (-counts[pair], "".join(pair)))'),
            """Among pairs that occur equally often you compared the joined pieces: abc before ad. As tuples ("a", "d") comes
            before ("ab", "c"), since "a" comes before "ab".""",
            RULES,
        ),
        known(
            "least frequent pair",
            _train(best="min(counts, key=lambda pair: (counts[pair], pair))"),
            "The *rarest* pair was merged. Byte-pair encoding makes one piece of what stands together most often.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "never counted again",
            """
            def bpe_train(corpus, n):
                counts = {}
                for word, count in corpus.items():
                    pieces = [*word, "</w>"]
                    for pair in zip(pieces, pieces[1:]):
                        counts[pair] = counts.get(pair, 0) + count
                return sorted(counts, key=lambda pair: (-counts[pair], pair))[:n]
            """,
            """You counted once, at the start. After es has become one piece, the pair (s, t) no longer exists and (es, t)
            does: merge in every word, then count again.""",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "position not skipped",
            _train(step="1"),
            """After a merge your reading moved on by one piece and met the second half again: aaaa became three pieces aa
            (and low became lo, ow). A merged pair is passed over whole.""",
            RULES,
            _first_other_merge,
        ),
        known(
            "one merge too few",
            _train(limit="n - 1"),
            "One merge is missing at the end: the loop ran n − 1 times.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "one merge too many",
            _train(limit="n + 1"),
            "There is one merge more than asked for: the loop ran n + 1 times.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "stops at count 1",
            _train(stop=" or max(counts.values()) < 2"),
            "Learning stopped when no pair occurred twice. Here it goes on down to count 1, until every word is one piece.",
            RULES,
        ),
        known(
            "fails when nothing is left",
            _train(stop=" and False"),
            "When every word is one piece there is no pair left, and your code asks for the best of nothing. Then the merges found so far are the answer.",
            RULES,
        ),
        known(
            "nothing returned at the end",
            _train().replace("            break\n        best", "            return\n        best"),
            "When no pair was left, your function ended without a result: a bare return gives None. Then the merges found so far are the answer.",
            RULES,
        ),
        known(
            "no end of word",
            _train(start="list(word)"),
            """No merge of yours holds </w>: it was not added, or the last pair of each word was not counted. It stands at the end
            of every word before counting; without it est at the end of a word and est inside one are the same piece.""",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "</w> glued to the last letter",
            _train(start='list(word[:-1]) + [word[-1] + "</w>"]'),
            "Your words end in one piece such as 't</w>'. Some programs do so; here </w> is a symbol of its own that must be merged like any other.",
            RULES,
            _first_other_merge,
        ),
        known(
            "pairs of a repeated letter counted apart",
            """
            def bpe_train(corpus, n):
                words = [([*word, "</w>"], count) for word, count in corpus.items()]
                merges = []
                while len(merges) < n:
                    counts = {}
                    for pieces, count in words:
                        last = None
                        for i, pair in enumerate(zip(pieces, pieces[1:])):
                            if pair == last:
                                last = None
                                continue
                            counts[pair] = counts.get(pair, 0) + count
                            last = pair
                    if not counts:
                        break
                    best = min(counts, key=lambda pair: (-counts[pair], pair))
                    merges.append(best)
                    merged_words = []
                    for pieces, count in words:
                        merged, i = [], 0
                        while i < len(pieces):
                            if tuple(pieces[i:i + 2]) == best:
                                merged.append(best[0] + best[1])
                                i += 2
                            else:
                                merged.append(pieces[i])
                                i += 1
                        merged_words.append((merged, count))
                    words = merged_words
                return merges
            """,
            "In aaaa you counted the pair (a, a) twice. Counting looks at every two neighbors, so it is three; only merging may not overlap.",
            RULES,
        ),
        known(
            "once for each word",
            _train()
            .replace(
                "            for i in range(len(pieces) - 1):\n                pair = (pieces[i], pieces[i + 1])",
                "            for pair in set(zip(pieces, pieces[1:])):",
            )
            .replace("for i in range(len(pieces) - 1):\n", ""),
            "A pair that stands twice in one word (an in banana) was counted once. Every occurrence counts, times the word's own count.",
            RULES,
        ),
        known(
            "text replaced",
            """
            def bpe_train(corpus, n):
                words = {" ".join([*word, "</w>"]): count for word, count in corpus.items()}
                merges = []
                while len(merges) < n:
                    counts = {}
                    for word, count in words.items():
                        pieces = word.split()
                        for pair in zip(pieces, pieces[1:]):
                            counts[pair] = counts.get(pair, 0) + count
                    if not counts:
                        break
                    best = min(counts, key=lambda pair: (-counts[pair], pair))
                    merges.append(best)
                    words = {word.replace(" ".join(best), "".join(best)): count for word, count in words.items()}
                return merges
            """,
            """Replacing text also joined pieces that only *end* like the pair: in "ne s" the text "e s" is found, although the
            piece there is ne and not e. Compare whole pieces.""",
            RULES,
        ),
        known(
            "only the first place in a word",
            """
            def bpe_train(corpus, n):
                words = [([*word, "</w>"], count) for word, count in corpus.items()]
                merges = []
                while len(merges) < n:
                    counts = {}
                    for pieces, count in words:
                        for pair in zip(pieces, pieces[1:]):
                            counts[pair] = counts.get(pair, 0) + count
                    if not counts:
                        break
                    best = min(counts, key=lambda pair: (-counts[pair], pair))
                    merges.append(best)
                    for pieces, count in words:
                        for i in range(len(pieces) - 1):
                            if (pieces[i], pieces[i + 1]) == best:
                                pieces[i:i + 2] = [best[0] + best[1]]
                                break
                return merges
            """,
            "In each word only the first occurrence of the pair was merged, so banana keeps an unmerged an. All of them are.",
            RULES,
        ),
        known(
            "joined pieces returned",
            _train(kept="best[0] + best[1]"),
            "You returned the new pieces as texts. The pair itself is needed: est may come from (es, t) or from (e, st), and cutting a new word must know which.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "pairs as texts with a space",
            _train(kept='" ".join(best)'),
            "Each pair came back as one text with a space in it. A pair is a tuple of two texts.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "the caller's corpus changed",
            """
            def bpe_train(corpus, n):
                for word in list(corpus):
                    corpus[" ".join([*word, "</w>"])] = corpus.pop(word)
                merges = []
                while len(merges) < n:
                    counts = {}
                    for word, count in corpus.items():
                        pieces = word.split()
                        for pair in zip(pieces, pieces[1:]):
                            counts[pair] = counts.get(pair, 0) + count
                    if not counts:
                        break
                    best = min(counts, key=lambda pair: (-counts[pair], pair))
                    merges.append(best)
                    for word in list(corpus):
                        merged = []
                        for piece in word.split():
                            if merged and (merged[-1], piece) == best:
                                merged[-1] = "".join(best) + " "
                            else:
                                merged.append(piece)
                        corpus[" ".join(piece.strip() for piece in merged)] = corpus.pop(word)
                return merges
            """,
            "Your function rewrote the caller's corpus: its words now stand there cut into pieces, and a second call would start from them. Work on a copy.",
            TRAIN,
        ),
        known(
            "</w> as four letters",
            _train(start='list(word + "</w>")'),
            "The end mark fell apart into its four characters. </w> is one symbol; add it to the list of letters, not to the text.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "never merged",
            """
            def bpe_train(corpus, n):
                words = [(list(word) + ["</w>"], count) for word, count in corpus.items()]
                merges = []
                for _ in range(n):
                    counts = {}
                    for pieces, count in words:
                        for pair in zip(pieces, pieces[1:]):
                            counts[pair] = counts.get(pair, 0) + count
                    if not counts:
                        break
                    merges.append(min(counts, key=lambda pair: (-counts[pair], pair)))
                return merges
            """,
            "The same pair comes again and again, because no word changed. After choosing a pair, make one piece of it in every word; then count again.",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "last piece lost",
            _train().replace("while i < len(pieces):", "while i < len(pieces) - 1:"),
            """When a word was rebuilt its last piece was lost, unless the pair stood there: the loop ends one piece too early. So
            words grow shorter from merge to merge.""",
            TRAIN,
            _first_other_merge,
        ),
        known(
            "list grows shorter under the loop",
            """
            def bpe_train(corpus, n):
                words = [(list(word) + ["</w>"], count) for word, count in corpus.items()]
                merges = []
                for _ in range(n):
                    counts = {}
                    for pieces, count in words:
                        for pair in zip(pieces, pieces[1:]):
                            counts[pair] = counts.get(pair, 0) + count
                    if not counts:
                        break
                    best = min(counts, key=lambda pair: (-counts[pair], pair))
                    merges.append(best)
                    for pieces, _ in words:
                        for i in range(len(pieces) - 1):
                            if (pieces[i], pieces[i + 1]) == best:
                                pieces[i:i + 2] = [pieces[i] + pieces[i + 1]]
                return merges
            """,
            """A range is fixed when the loop begins, but the list grows shorter with every merge, so the last indices are no longer
            there. Ask for the length anew at each step, or write into a new list.""",
            RULES,
        ),
        known(
            "pairs with their counts",
            _train(kept="(best, counts[best])"),
            "Each pair came back together with its count. The pairs alone are the answer.",
            TRAIN,
        ),
    ),
    right=(
        right("while and index", _train()),
        right(
            "Counter and a function for merging",
            """
            from collections import Counter
            from itertools import pairwise

            def join(pieces, pair):
                out = []
                for piece in pieces:
                    if out and not out[-1][1] and (out[-1][0], piece) == pair:
                        out[-1] = ("".join(pair), True)
                    else:
                        out.append((piece, False))
                return [piece for piece, _ in out]

            def bpe_train(words, steps):
                cut = {word: [*word, "</w>"] for word in words}
                found = []
                for _ in range(steps):
                    seen = Counter()
                    for word, pieces in cut.items():
                        for pair in pairwise(pieces):
                            seen[pair] += words[word]
                    if not seen:
                        return found
                    highest = max(seen.values())
                    pair = min(p for p in seen if seen[p] == highest)
                    found.append(pair)
                    cut = {word: join(pieces, pair) for word, pieces in cut.items()}
                return found
            """,
        ),
        right(
            "regular expression",
            """
            import re
            from collections import defaultdict

            def bpe_train(corpus, n):
                vocab = {" ".join(word) + " </w>": count for word, count in corpus.items()}
                merges = []
                for _ in range(n):
                    pairs = defaultdict(int)
                    for word, count in vocab.items():
                        symbols = word.split()
                        for i in range(len(symbols) - 1):
                            pairs[symbols[i], symbols[i + 1]] += count
                    if not pairs:
                        break
                    best = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0][0]
                    merges.append(best)
                    pattern = re.compile(r"(?<!\\S)" + re.escape(" ".join(best)) + r"(?!\\S)")
                    vocab = {pattern.sub("".join(best), word): count for word, count in vocab.items()}
                return merges
            """,
        ),
        right(
            "recursion",
            """
            def bpe_train(corpus, n):
                def merge(pieces, pair):
                    if len(pieces) < 2:
                        return pieces
                    if pieces[:2] == pair:
                        return (pair[0] + pair[1],) + merge(pieces[2:], pair)
                    return pieces[:1] + merge(pieces[1:], pair)

                def learn(words, left):
                    counts = {}
                    for pieces, count in words:
                        for pair in zip(pieces, pieces[1:]):
                            counts[pair] = counts.get(pair, 0) + count
                    if not left or not counts:
                        return []
                    best = sorted(counts, key=lambda pair: (-counts[pair], pair))[0]
                    return [best] + learn([(merge(pieces, best), count) for pieces, count in words], left - 1)

                return learn([(tuple(word) + ("</w>",), count) for word, count in corpus.items()], n)
            """,
        ),
        right(
            "every occurrence of every word",
            """
            from collections import Counter

            def bpe_train(corpus, n):
                text = [list(word) + ["</w>"] for word, count in corpus.items() for _ in range(count)]
                merges = []
                for _ in range(n):
                    counts = Counter(pair for word in text for pair in zip(word, word[1:]))
                    if not counts:
                        break
                    pair = sorted(sorted(counts), key=counts.__getitem__, reverse=True)[0]
                    merges.append(list(pair))
                    for word in text:
                        i = 0
                        while i < len(word) - 1:
                            if word[i] == pair[0] and word[i + 1] == pair[1]:
                                word[i:i + 2] = ["".join(pair)]
                            i += 1
                return merges
            """,
        ),
        right(
            "counts kept in a table and updated",
            """
            def bpe_train(corpus, n):
                words = {word: list(word) + ["</w>"] for word in corpus}
                table = {}
                def add(word, sign):
                    for pair in zip(words[word], words[word][1:]):
                        table[pair] = table.get(pair, 0) + sign * corpus[word]
                for word in words:
                    add(word, 1)
                merges = []
                while len(merges) < n and any(table.values()):
                    pair = min((-count, pair) for pair, count in table.items() if count > 0)[1]
                    merges.append(pair)
                    for word, pieces in words.items():
                        if pair in zip(pieces, pieces[1:]):
                            add(word, -1)
                            i = 0
                            while i + 1 < len(pieces):
                                if (pieces[i], pieces[i + 1]) == pair:
                                    pieces[i] += pieces.pop(i + 1)
                                i += 1
                            add(word, 1)
                return merges
            """,
        ),
    ),
    hints=(
        "three steps, n times: count the pairs, choose one, merge it in every word.",
        "each word is a list of pieces that begins as its letters and </w>; a dictionary leads from pairs to counts; the answer is a list of pairs.",
        "repeat n times: count all neighbors in all words, each times its word's count; stop if there are none; take the largest count, ties by the smaller pair; write it down; rebuild every word, joining the pair from left to right.",
    ),
)
