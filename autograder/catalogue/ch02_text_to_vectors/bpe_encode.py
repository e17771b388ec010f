"""02.6 bpe_encode."""

import torch

from autograder.catalogue.ch02_text_to_vectors.shared import CORPUS, _letters, _returned, sections
from autograder.catalogue.exercise import Case, Exercise, Probe
from autograder.catalogue.parts import UNTOUCHED, known, right
from transformer_ref.text import byte_pair_encoding

CUT, RULES = sections("bpe-encode bpe-rules")

MERGES = byte_pair_encoding.learn_merges(CORPUS, 10)


def bpe_encode(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """The word's pieces: of the pairs present, the one learned first is merged first."""
    return byte_pair_encoding.encode_word(word, merges)


def _drawn_word(g: torch.Generator, word: str, *merges: str) -> Case:
    """The same word and merges ("t h" is a pair) in other letters of the same order; "?" is a letter no merge has."""
    plain = sorted(set("".join([word, *merges])) - set(" </?>"))
    table = dict(zip(plain, _letters(g, *plain), strict=True)) | {"?": "éñßø"[int(torch.randint(4, (), generator=g))]}

    def written(text: str) -> str:
        return (
            "</w>"
            if text == "</w>"
            else "".join(table[letter] for letter in text.removesuffix("</w>"))
            + ("</w>" if text.endswith("</w>") else "")
        )

    return Case((written(word), [tuple(map(written, pair.split())) for pair in merges]))


_CUT = """
def bpe_encode(word, merges):
    rank = {{pair: order for order, pair in enumerate(merges)}}
    pieces = {start}
    while True:
        present = [pair for pair in zip(pieces, pieces[1:]) if pair in rank]
        if not present:
            return {result}
        best = {best}
        merged, i = [], 0
        while i < len(pieces):
            if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == best:
                merged.append(pieces[i] + pieces[i + 1])
                i += {step}
            else:
                merged.append(pieces[i])
                i += 1
        pieces = merged
"""


def _cut(
    start: str = 'list(word) + ["</w>"]',
    best: str = "min(present, key=rank.get)",
    result: str = "pieces",
    step: str = "2",
) -> str:
    """A bpe_encode with one part exchanged."""
    return _CUT.format(start=start, best=best, result=result, step=step)


EXERCISE = Exercise(
    id="bpe-encode",
    number="02.6",
    visible_points=1,
    hidden_points=4,
    section=CUT,
    reference=bpe_encode,
    probes=(
        Probe("lowest, by the ten merges of 02.5", lambda g: Case(("lowest", MERGES)), hidden=False),
        Probe(
            "ants: merges build on each other",
            lambda g: Case(("ants", [("n", "t"), ("a", "n"), ("a", "nt"), ("s", "</w>"), ("ant", "s</w>")])),
            hidden=False,
        ),
        Probe(
            "basket: several merges want the same letter",
            lambda g: Case(
                ("basket", [("a", "s"), ("b", "a"), ("s", "k"), ("k", "e"), ("as", "ke"), ("t", "</w>")]),
            ),
            hidden=False,
        ),
        Probe("a later merge comes first in the word", lambda g: _drawn_word(g, "abcde", "d e", "b c", "a b", "c de")),
        Probe(
            "a chain of merges",
            lambda g: _drawn_word(g, "daced", "e d", "c ed", "ed </w>", "ced </w>", "d a", "da ced</w>", "a c"),
        ),
        Probe("letters no merge has seen", lambda g: _drawn_word(g, "?ab?a", "a b", "a </w>", "b a")),
        Probe("a pair several times", lambda g: _drawn_word(g, "banana", "a n", "an a", "b an", "a </w>")),
        Probe("a repeated letter", lambda g: _drawn_word(g, "aaaaaaa", "a a", "aa a", "aa </w>", "aa aa")),
        Probe("pieces that end like a pair", lambda g: _drawn_word(g, "nest", "n e", "e s", "s t", "es t")),
        Probe("the same letters as another pair", lambda g: _drawn_word(g, "nest", "s t", "es t", "n e", "nes t")),
        Probe("no merge fits", lambda g: _drawn_word(g, "cab", "a c", "b a", "</w> a")),
        Probe("one letter", lambda g: _drawn_word(g, "a", "b a", "a </w>")),
        Probe("nothing else is touched", lambda g: _drawn_word(g, "abab", "b a", "a b", "ab </w>"), also=UNTOUCHED),
    ),
    wrong=(
        known(
            "longest piece first",
            """
            def bpe_encode(word, merges):
                known = {a + b for a, b in merges}
                rest, pieces = list(word) + ["</w>"], []
                while rest:
                    for size in range(len(rest), 0, -1):
                        if size == 1 or "".join(rest[:size]) in known:
                            pieces.append("".join(rest[:size]))
                            rest = rest[size:]
                            break
                return pieces
            """,
            """From the left you took the longest piece that exists. Byte-pair encoding applies its merges in the *order in
            which they were learned*; what an early merge took is no longer there for a longer one.""",
            CUT,
            _returned,
        ),
        known(
            "longest piece, from the end",
            """
            def bpe_encode(word, merges):
                known = {a + b for a, b in merges}
                rest, pieces = list(word) + ["</w>"], []
                while rest:
                    for start in range(len(rest)):
                        if start == len(rest) - 1 or "".join(rest[start:]) in known:
                            pieces.insert(0, "".join(rest[start:]))
                            rest = rest[:start]
                            break
                return pieces
            """,
            """From the end you took the longest piece that exists. Byte-pair encoding applies its merges in the *order in
            which they were learned*; what an early merge took is no longer there for a longer one.""",
            CUT,
        ),
        known(
            "longest merge first",
            _cut(best="max(present, key=lambda pair: (len(pair[0] + pair[1]), -rank[pair]))"),
            "Of the pairs present you merged the one that makes the longest piece. Length plays no part: the one learned first goes first.",
            CUT,
            _returned,
        ),
        known(
            "order of the word",
            _cut(best="present[0]"),
            "You merged the first pair met in the word that is any merge at all. Of all pairs present, the one learned *first* goes first, wherever it stands.",
            CUT,
            _returned,
        ),
        known(
            "last learned first",
            _cut(best="max(present, key=rank.get)"),
            "Of the pairs present you merged the one learned *last*. The list is in order of learning: its first pair has the right of way.",
            CUT,
            _returned,
        ),
        known(
            "alphabetical order",
            _cut(best="min(present)"),
            "Of the pairs present you merged the smallest. The alphabet decided ties while learning; now only the order of learning counts.",
            CUT,
            _returned,
        ),
        known(
            "one reading of the word",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                merged, i = [], 0
                while i < len(pieces):
                    if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) in merges:
                        merged.append(pieces[i] + pieces[i + 1])
                        i += 2
                    else:
                        merged.append(pieces[i])
                        i += 1
                return merged
            """,
            "The word was read once. Merges build on each other: est</w> needs est, which needs es. Go on until no pair of the word is a merge.",
            CUT,
            _returned,
        ),
        known(
            "one merge only",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in merges:
                    if (a, b) in zip(pieces, pieces[1:]):
                        merged, i = [], 0
                        while i < len(pieces):
                            if tuple(pieces[i:i + 2]) == (a, b):
                                merged.append(a + b)
                                i += 2
                            else:
                                merged.append(pieces[i])
                                i += 1
                        return merged
                return pieces
            """,
            "You stopped after one merge. Go on until no pair of the word is a merge: `return` inside a loop ends all of it.",
            CUT,
            _returned,
        ),
        known(
            "</w> forgotten",
            _cut(start="list(word)"),
            "The end mark </w> is missing. The function appends it: that is how the est of widest differs from the est of estate.",
            CUT,
            _returned,
        ),
        known(
            "</w> taken off",
            _cut(result='[piece.removesuffix("</w>") for piece in pieces if piece != "</w>"]'),
            "You took </w> off at the end. It stays: without it nobody knows where the word stops and the next begins.",
            CUT,
            _returned,
        ),
        known(
            "</w> dropped when alone",
            _cut(result='[piece for piece in pieces if piece != "</w>"]'),
            "Where </w> stayed a piece of its own you left it out. It belongs to the word: without it nobody knows where the word stops.",
            CUT,
            _returned,
        ),
        known(
            "</w> as four letters",
            _cut(start='list(word + "</w>")'),
            "The end mark fell apart into its four characters. </w> is one symbol; add it to the list of letters, not to the text.",
            CUT,
            _returned,
        ),
        known(
            "nothing merged",
            """
            def bpe_encode(word, merges):
                return list(word) + ["</w>"]
            """,
            "No merge was applied: the letters came back as they were. If you compare, mind that ['e', 's'] == ('e', 's') is False in Python: a list never equals a tuple.",
            CUT,
        ),
        known(
            "from right to left",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in merges:
                    for i in range(len(pieces) - 2, -1, -1):
                        if pieces[i:i + 2] == [a, b]:
                            pieces[i:i + 2] = [a + b]
                return pieces
            """,
            "Where a pair overlaps itself, as (a, a) in aaa, you joined from the right. Learning joined from the left, and so must cutting.",
            RULES,
        ),
        known(
            "</w> glued to the last letter",
            _cut(start='list(word[:-1]) + [word[-1] + "</w>"]'),
            "Your word begins with its last letter and </w> as one piece. Here </w> is a symbol of its own, and merges such as ('est', '</w>') wait for it.",
            RULES,
            _returned,
        ),
        known(
            "unknown letter crashes",
            _cut().replace(
                "    while True:",
                '    known = set("".join(a + b for a, b in merges))\n    known = {letter: 0 for letter in known}\n'
                "    [known[letter] for letter in word]\n    while True:",
                1,
            ),
            "A letter that no merge has seen stops your code. It stays a piece of its own; what to do with it is for the vocabulary to say.",
            CUT,
        ),
        known(
            "unknown letter as <unk>",
            _cut(start='[c if any(c in a + b for a, b in merges) else "<unk>" for c in word] + ["</w>"]'),
            "A letter that no merge has seen became <unk>. It stays itself, a piece of its own; turning pieces into ids comes later.",
            CUT,
            _returned,
        ),
        known(
            "unknown letter left out",
            _cut(start='[c for c in word if any(c in a + b for a, b in merges)] + ["</w>"]'),
            "A letter that no merge has seen vanished. All pieces together must spell the word again.",
            CUT,
            _returned,
        ),
        known(
            "only the first place",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in merges:
                    for i in range(len(pieces) - 1):
                        if pieces[i] == a and pieces[i + 1] == b:
                            pieces[i:i + 2] = [a + b]
                            break
                return pieces
            """,
            "Each merge was applied at its first place only, so a pair that stands twice in the word (an in banana) stays unmerged the second time.",
            CUT,
        ),
        known(
            "position not skipped",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in merges:
                    merged, i = [], 0
                    while i < len(pieces):
                        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == (a, b):
                            merged.append(a + b)
                        else:
                            merged.append(pieces[i])
                        i += 1
                    pieces = merged
                return pieces
            """,
            "After a merge your reading moved on by one piece and met the second half again, so letters came back twice. A merged pair is passed over whole.",
            RULES,
            _returned,
        ),
        known(
            "text replaced",
            """
            def bpe_encode(word, merges):
                text = " ".join([*word, "</w>"])
                for a, b in merges:
                    text = text.replace(a + " " + b, a + b)
                return text.split()
            """,
            """Replacing text also joined pieces that only *end* like the pair: in "ne s" the text "e s" is found, although the
            piece there is ne and not e. Compare whole pieces.""",
            RULES,
        ),
        known(
            "joined text returned",
            _cut(result='" ".join(pieces)'),
            "You returned one text with spaces. A list of pieces is wanted, each of which gets an id of its own.",
            CUT,
        ),
        known(
            "the caller's merges used up",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                while merges:
                    pair = merges.pop(0)
                    merged, i = [], 0
                    while i < len(pieces):
                        if tuple(pieces[i:i + 2]) == pair:
                            merged.append(pair[0] + pair[1])
                            i += 2
                        else:
                            merged.append(pieces[i])
                            i += 1
                    pieces = merged
                return pieces
            """,
            "pop emptied the caller's list of merges. The next word would find none left.",
            CUT,
        ),
        known(
            "letters compared instead of pairs",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in merges:
                    i = 0
                    while i < len(pieces) - 1:
                        if pieces[i] + pieces[i + 1] == a + b:
                            pieces[i:i + 2] = [a + b]
                        i += 1
                return pieces
            """,
            "You joined two pieces because together they read like a merge. (e, st) and (es, t) both read est, and only one of them was learned: compare the pairs, not their sum.",
            CUT,
        ),
        known(
            "</w> added at the end only",
            """
            def bpe_encode(word, merges):
                pieces = list(word)
                for a, b in merges:
                    i = 0
                    while i < len(pieces) - 1:
                        if (pieces[i], pieces[i + 1]) == (a, b):
                            pieces[i:i + 2] = [a + b]
                        i += 1
                return pieces + ["</w>"]
            """,
            "</w> was added after the merges, so none of them could take it up. It stands at the end of the word from the beginning.",
            CUT,
            _returned,
        ),
        known(
            "merges read backwards",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in reversed(merges):
                    i = 0
                    while i < len(pieces) - 1:
                        if (pieces[i], pieces[i + 1]) == (a, b):
                            pieces[i:i + 2] = [a + b]
                        i += 1
                return pieces
            """,
            "The merges were tried from the last learned to the first. The list is in order of learning: its first pair has the right of way.",
            CUT,
            _returned,
        ),
        known(
            "last piece lost",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in merges:
                    merged, i = [], 0
                    while i < len(pieces) - 1:
                        if (pieces[i], pieces[i + 1]) == (a, b):
                            merged.append(a + b)
                            i += 2
                        else:
                            merged.append(pieces[i])
                            i += 1
                    pieces = merged
                return pieces
            """,
            "Pieces are lost at the end: the loop stops before the last one, and nothing copies it. All pieces together must spell the word again.",
            CUT,
            _returned,
        ),
        known(
            "list grows shorter under the loop",
            """
            def bpe_encode(word, merges):
                pieces = list(word) + ["</w>"]
                for a, b in merges:
                    for i in range(len(pieces) - 1):
                        if pieces[i] == a and pieces[i + 1] == b:
                            pieces[i:i + 2] = [a + b]
                return pieces
            """,
            """A range is fixed when the loop begins, but the list grows shorter with every merge, so the last indices are no longer
            there. Ask for the length anew at each step, or write into a new list.""",
            CUT,
        ),
        known(
            "the rank of a pair that has none",
            """
            def bpe_encode(word, merges):
                rank = {pair: order for order, pair in enumerate(merges)}
                pieces = list(word) + ["</w>"]
                while len(pieces) > 1:
                    best = min(zip(pieces, pieces[1:]), key=lambda pair: rank[pair])
                    merged, i = [], 0
                    while i < len(pieces):
                        if tuple(pieces[i:i + 2]) == best:
                            merged.append("".join(best))
                            i += 2
                        else:
                            merged.append(pieces[i])
                            i += 1
                    pieces = merged
                return pieces
            """,
            "You asked for the rank of a pair that is no merge at all. Most neighbors in a word are none: only those that are may compete, and when none is left the word is done.",
            CUT,
        ),
        known(
            "the best of nothing",
            _cut().replace("        if not present:\n            return pieces\n", ""),
            "When no pair of the word is a merge, your code asks for the best of nothing and stops. Then the word is done: return its pieces.",
            CUT,
        ),
    ),
    right=(
        right("lowest rank, again and again", _cut()),
        right(
            "one pass over the merges",
            """
            def bpe_encode(word, merges):
                pieces = [*word, "</w>"]
                for left, right in merges:
                    out = []
                    while pieces:
                        if pieces[:2] == [left, right]:
                            out.append(left + right)
                            pieces = pieces[2:]
                        else:
                            out.append(pieces[0])
                            pieces = pieces[1:]
                    pieces = out
                return pieces
            """,
        ),
        right(
            "one place at a time",
            """
            def bpe_encode(text, table):
                order = {tuple(pair): i for i, pair in enumerate(table)}
                parts = list(text) + ["</w>"]
                while len(parts) > 1:
                    ranks = [order.get((a, b), float("inf")) for a, b in zip(parts, parts[1:])]
                    place = ranks.index(min(ranks))
                    if ranks[place] == float("inf"):
                        break
                    parts[place:place + 2] = [parts[place] + parts[place + 1]]
                return parts
            """,
        ),
        right(
            "recursion",
            """
            def bpe_encode(word, merges):
                def join(pieces, pair):
                    if len(pieces) < 2:
                        return pieces
                    if pieces[:2] == pair:
                        return ("".join(pair),) + join(pieces[2:], pair)
                    return pieces[:1] + join(pieces[1:], pair)

                def go(pieces):
                    pairs = set(zip(pieces, pieces[1:]))
                    for pair in merges:
                        if pair in pairs:
                            return go(join(pieces, pair))
                    return pieces

                return list(go((*word, "</w>")))
            """,
        ),
        right(
            "regular expression",
            """
            import re

            def bpe_encode(word, merges):
                text = " ".join(word) + " </w>"
                for a, b in merges:
                    text = re.sub(rf"(?<!\\S){re.escape(a)} {re.escape(b)}(?!\\S)", (a + b).replace("\\\\", r"\\\\"), text)
                return text.split(" ")
            """,
        ),
        right(
            "linked pieces and a heap",
            """
            import heapq

            def bpe_encode(word, merges):
                order = {pair: i for i, pair in enumerate(merges)}
                pieces = list(word) + ["</w>"]
                following = list(range(1, len(pieces))) + [None]
                def waiting():
                    heap, at = [], 0
                    while following[at] is not None:
                        pair = (pieces[at], pieces[following[at]])
                        if pair in order:
                            heapq.heappush(heap, (order[pair], at))
                        at = following[at]
                    return heap
                heap = waiting()
                while heap:
                    _, at = heapq.heappop(heap)
                    pieces[at] += pieces[following[at]]
                    following[at] = following[following[at]]
                    heap = waiting()
                out, at = [], 0
                while at is not None:
                    out.append(pieces[at])
                    at = following[at]
                return out
            """,
        ),
        right(
            "text between separators",
            """
            def bpe_encode(word, merges):
                text = "\\n" + "\\n\\n".join([*word, "</w>"]) + "\\n"
                for a, b in merges:
                    text = text.replace(f"\\n{a}\\n\\n{b}\\n", f"\\n{a}{b}\\n")
                return text[1:-1].split("\\n\\n")
            """,
        ),
    ),
    hints=(
        "which of the pairs in the word was learned first?",
        "the word becomes a list of letters and </w>; every merge makes it shorter; the order of `merges` is the order of right of way.",
        "pieces = the letters and </w>; while some neighbors are a merge: take the merge that stands earliest in the list, join it everywhere from left to right; return the pieces.",
    ),
)
