"""02.6: cutting a word into the pieces that were learned, in the order of learning."""

from itertools import pairwise
from string import ascii_letters, ascii_lowercase

import torch

from autograder.catalogue import families
from autograder.catalogue.ch02_text_to_vectors.shared import CORPUS, choose, letters, returned, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, visible
from transformer_ref.text import byte_pair_encoding

CUT, RULES = sections("bpe-encode bpe-rules")

MERGES = byte_pair_encoding.learn_merges(CORPUS, 10)


def bpe_encode(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """The word's pieces: of the pairs present, the one learned first is merged first."""
    return byte_pair_encoding.encode_word(word, merges)


def inputs(g: torch.Generator, word: str, merges: str) -> Case:
    """The same word and merges ("t h, th e") with other small letters in the same order; "?" is a letter in no
    merge."""
    plain = sorted(set((word + merges).replace("</w>", "")) & set(ascii_lowercase))
    table = dict(zip(plain, letters(g, *plain), strict=True)) | {"?": "éñßø"[int(torch.randint(4, (), generator=g))]}

    def spelled(text: str) -> str:
        ending = "</w>" if text.endswith("</w>") else ""
        return "".join(table.get(letter, letter) for letter in text.removesuffix("</w>")) + ending

    return Case((spelled(word), [tuple(map(spelled, pair.split())) for pair in merges.split(", ") if pair]))


def of_the_corpus(g: torch.Generator) -> Case:
    """A word of the notebook's corpus that its merges do not make one piece."""
    return Case((("lower", "widest")[choose(g, 0, 2, 1)[0]], MERGES))


def long_chain(g: torch.Generator) -> Case:
    """A word of 52 different letters, small and capital, which the last 52 of many merges join into one piece."""
    word = "".join(ascii_letters[place] for place in choose(g, 0, len(ascii_letters), len(ascii_letters)))
    others = [(chr(number), chr(number + 1)) for number in range(0x400, 0x500)]
    return Case((word, others + [(word[:end], word[end : end + 1] or "</w>") for end in range(1, len(word) + 1)]))


def other_merges_first(g: torch.Generator) -> Case:
    word, merges = inputs(g, "abab", "b a, a b, ab </w>").arguments
    return Case((word, merges), before=(word, merges[::-1]))


def a_merge_is_left(evidence: Evidence) -> bool | None:
    """Whether the pieces come of one reading, of the pairs that the word had at first, or of the merges tried once, the
    longest first. None where no merge is left in them."""
    word, merges = evidence.arguments
    longest_first = sorted(merges, key=lambda pair: -len(pair[0] + pair[1]))
    first = set(pairwise([*word, "</w>"]))
    pieces: list[str] = []
    rest = [*word, "</w>"]
    while rest:
        size = 2 if tuple(rest[:2]) in merges else 1
        pieces, rest = [*pieces, "".join(rest[:size])], rest[size:]
    ways = (pieces, once_through(word, [pair for pair in merges if pair in first]), once_through(word, longest_first))
    left = any(pair in merges for pair in pairwise(evidence.got))
    return evidence.got in ways and (left or None)


def the_merge_that_is_left(evidence: Evidence) -> str:
    """What came back, and two neighbors in it that are a merge."""
    left, right = next(pair for pair in pairwise(evidence.got) if pair in evidence.arguments[1])
    return f"{returned(evidence)} {left!r} and {right!r} are neighbors in it."


def once_through(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """The word's pieces if each merge is applied once, in this order."""
    pieces = [*word, "</w>"]
    for pair in merges:
        i = 0
        while i < len(pieces) - 1:
            if (pieces[i], pieces[i + 1]) == pair:
                pieces[i : i + 2] = ["".join(pair)]
            i += 1
    return pieces


RIGHT = answer("""
    def bpe_encode(word, merges):
        rank = {pair: order for order, pair in enumerate(merges)}
        pieces = list(word) + ["</w>"]
        while True:
            present = [pair for pair in zip(pieces, pieces[1:]) if pair in rank]
            if not present:
                return pieces
            best = min(present, key=rank.get)
            merged, i = [], 0
            while i < len(pieces):
                if tuple(pieces[i:i + 2]) == best:
                    merged.append("".join(pieces[i:i + 2]))
                    i += 2
                else:
                    merged.append(pieces[i])
                    i += 1
            pieces = merged
""")
START, PRESENT = 'list(word) + ["</w>"]', "[pair for pair in zip(pieces, pieces[1:]) if pair in rank]"
BEST, MERGED, RESULT = "min(present, key=rank.get)", "pieces = merged", "return pieces"

ONE_PASS = answer("""
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
""")

IN_PLACE = answer("""
    def bpe_encode(word, merges):
        pieces = list(word) + ["</w>"]
        for a, b in merges:
            for i in range(len(pieces) - 1):
                if pieces[i] == a and pieces[i + 1] == b:
                    pieces[i:i + 2] = [a + b]
        return pieces
""")

TEXT = answer("""
    def bpe_encode(word, merges):
        text = " ".join([*word, "</w>"])
        for a, b in merges:
            text = text.replace(a + " " + b, a + b)
        return text.split()
""")

LONGEST = answer("""
    def bpe_encode(word, merges):
        known = {a + b for a, b in merges}
        rest, pieces = list(word) + ["</w>"], []
        while rest:
            size = next(n for n in range(len(rest), 0, -1) if n == 1 or "".join(rest[:n]) in known)
            pieces, rest = pieces + ["".join(rest[:size])], rest[size:]
        return pieces
""")
FROM_LEFT = 'pieces + ["".join(rest[:size])], rest[size:]'
FROM_RIGHT = '["".join(rest[-size:])] + pieces, rest[:-size]'

EXERCISE = Exercise(
    id="bpe-encode", number="02.6", difficulty=2, minutes=20, visible_points=1, hidden_points=4,
    reference=bpe_encode, section=CUT,
    probes=(
        visible("lowest, by the ten merges of 02.5", Case(("lowest", MERGES))),
        visible("ants: merges build on each other",
                Case(("ants", [("n", "t"), ("a", "n"), ("a", "nt"), ("s", "</w>"), ("ant", "s</w>")]))),
        visible("basket: several merges want the same letter",
                Case(("basket", [("a", "s"), ("b", "a"), ("s", "k"), ("k", "e"), ("as", "ke"), ("t", "</w>")]))),
        hidden("a later merge comes first in the word", inputs, "abcde", "d e, b c, a b, c de",
               announced_by="learned **first**"),
        hidden("a chain of merges", inputs, "daced", "e d, c ed, ed </w>, ced </w>, d a, da ced</w>, a c",
               announced_by="Repeat until"),
        hidden("letters no merge has seen", inputs, "?abB?7.a", "a b, a </w>, b a",
               announced_by="A letter that no merge has seen"),
        hidden("a pair several times", inputs, "banana" * 12, "a n, an a, b an, a </w>",
               announced_by="everywhere, from left to right"),
        hidden("a repeated letter", inputs, "aaaaaaa", "a a, aa a, aa </w>, aa aa", announced_by="from left to right"),
        hidden("pieces that end like a pair", inputs, "nest", "n e, e s, s t, es t",
               announced_by="Of all pairs that occur in it"),
        hidden("the same letters as another pair", inputs, "nest", "s t, es t, n e, nes t",
               announced_by="Of all pairs that occur in it"),
        hidden("a long pair before a short one", inputs, "abcd", "a b, c d, ab c", announced_by="learned **first**"),
        # "." is a letter like any other, whatever it means in a regular expression.
        hidden("no merge fits", inputs, "cab", "a c, . b, b a, </w> a", announced_by="Repeat until no pair"),
        hidden("a word of the corpus", of_the_corpus, announced_by="may not contain"),
        hidden("a long word, one merge for each letter", long_chain, announced_by="Repeat until no pair"),
        hidden("one letter, no merges", inputs, "a", "", announced_by="perhaps none"),
        hidden("a second call, with other merges; nothing else is touched", other_merges_first, checks=UNTOUCHED,
               announced_by=PROMISED),
    ),
    omits={"precision": "there are no numbers"},
    mistakes=(
        mistake("longest piece first", LONGEST, CUT,
            """From the left you took the longest piece that exists. Byte-pair encoding applies its merges in the *order
            in which they were learned*; what an early merge took is no longer there for a longer one.""",
            quotes=returned),
        mistake("longest piece, from the end", LONGEST.but("rest[:n]", "rest[-n:]").but(FROM_LEFT, FROM_RIGHT), CUT,
            """From the end you took the longest piece that exists. Byte-pair encoding applies its merges in the *order
            in which they were learned*; what an early merge took is no longer there for a longer one."""),
        mistake("longest merge first",
                RIGHT.but(BEST, "max(present, key=lambda pair: (len(pair[0] + pair[1]), -rank[pair]))"), CUT,
            """Of the pairs present you merged the one that makes the longest piece. Length has no effect: the one
            learned first goes first.""", quotes=returned),
        mistake("order of the word", RIGHT.but(BEST, "present[0]"), CUT,
            """You merged the first pair met in the word that is any merge at all. Of all pairs present, the one
            learned *first* goes first, wherever it is.""", quotes=returned),
        mistake("last learned first", RIGHT.but("min", "max"), CUT,
            """Of the pairs present you merged the one learned *last*. The list is in order of learning: its first pair
            takes precedence.""", quotes=returned),
        mistake("alphabetical order", RIGHT.but(BEST, "min(present)"), CUT,
            """Of the pairs present you merged the smallest. The alphabet decided ties while learning; now only the
            order of learning counts.""", quotes=returned),
        mistake("one reading of the word", RIGHT.but(") == best", ") in rank").but(MERGED, "return merged"), CUT,
            """Two neighbors in your result are a merge. Merges build on each other: est</w> needs est, which needs es.
            Was the word read once, or were its pairs collected once, at the start? Or were the longest merges tried
            first, before the pieces that they need were there? Go on until no pair of the word is a merge.""",
            quotes=the_merge_that_is_left, shows=a_merge_is_left),
        mistake("one merge only", RIGHT.but(MERGED, "return merged"), CUT,
            "You stopped after one merge. Go on until no pair of the word is a merge: `return` inside a loop "
            "ends all of it.",
            quotes=returned),
        mistake("</w> forgotten", RIGHT.but(START, "list(word)"), CUT,
            """The end mark </w> is missing. The function appends it: that is how the est of widest differs from the est
            of estate.""", quotes=returned),
        mistake("</w> taken off", RIGHT.but(
                  RESULT, 'return [piece.removesuffix("</w>") for piece in pieces if piece != "</w>"]'), CUT,
            "You took </w> off at the end. It stays: without it you cannot tell where the word ends and the next one "
            "begins.",
            quotes=returned),
        mistake("</w> dropped when alone", RIGHT.but(RESULT, 'return [piece for piece in pieces if piece != "</w>"]'),
                CUT,
            """Where </w> stayed a piece of its own you left it out. It belongs to the word: without it you cannot tell
            where the word ends.""", quotes=returned),
        families.END_MARK_CUT(RIGHT.but(START, 'list(word + "</w>")'), CUT, quotes=returned),
        mistake("nothing merged", ONE_PASS.but("[left, right]", "(left, right)"), CUT,
            """No merge was applied: the letters came back as they were. If you compare, mind that ['e', 's'] == ('e',
            's') is False in Python: a list never equals a tuple."""),
        mistake("from right to left", IN_PLACE.but("range(len(pieces) - 1)", "range(len(pieces) - 2, -1, -1)"), RULES,
            """Where a pair overlaps itself, as (a, a) in aaa, you joined from the right. Learning joined from the left,
            and so must cutting."""),
        mistake("</w> glued to the last letter", RIGHT.but(START, 'list(word[:-1]) + [word[-1] + "</w>"]'), RULES,
            """You made one piece of the last letter and </w> before any merge. Here </w> is a symbol of its own, and
            merges such as ('est', '</w>') wait for it.""", quotes=returned),
        mistake("unknown letter crashes", RIGHT.but("pieces = " + START, """
                  known = {letter: letter for pair in merges for letter in "".join(pair)}
                  pieces = [known[letter] for letter in word] + ["</w>"]"""), CUT,
            """A letter that no merge has seen stops your code. It stays a separate piece; the vocabulary decides what
            becomes of it."""),
        mistake("unknown letter as <unk>", RIGHT.but(
                  START, '[c if any(c in a + b for a, b in merges) else "<unk>" for c in word] + ["</w>"]'), CUT,
            """A letter that no merge has seen became <unk>. It stays itself, a piece of its own; turning pieces into
            ids comes later.""", quotes=returned),
        mistake("unknown letter left out", RIGHT.but(
                  START, '[c for c in word if any(c in a + b for a, b in merges)] + ["</w>"]'), CUT,
            "A letter that no merge has seen vanished. All pieces together must spell the word again.",
            quotes=returned),
        mistake("only the first place", IN_PLACE.after("pieces[i:i + 2] = [a + b]", "break"), CUT,
            """Each merge was applied only where it first occurs, so a pair that occurs twice in the word (an in banana)
            stays unmerged the second time."""),
        mistake("position not skipped", ONE_PASS.but("pieces[2:]", "pieces[1:]"), RULES,
            """After a merge your reading moved on by one piece and met the second half again, so letters came back
            twice. A merged pair is passed over whole.""", quotes=returned),
        mistake("position not skipped in a repeated letter", ONE_PASS.but("pieces[2:]", "pieces[1 + (left != right):]"),
                RULES,
            """In aaa you joined the letter in the middle twice, to aa and aa. A letter that was joined is used up:
            reading goes on behind it.""", quotes=returned),
        mistake("stops at a merge that does not fit", ONE_PASS.but("out = []", """
                  if (left, right) not in zip(pieces, pieces[1:]):
                      break
                  out = []"""), CUT,
            """You stopped at the first merge of the list that does not occur in the word. Most do not; go on to those
            behind it.""", quotes=returned),
        families.TEXT_REPLACED(TEXT, RULES),
        mistake("joined text returned", RIGHT.but(RESULT, 'return " ".join(pieces)'), CUT,
            "You returned one text with spaces. Return a list of pieces, each of which gets an id of its own."),
        mistake("the caller's merges used up", ONE_PASS.but("for left, right in merges:", """
                  while merges:
                      left, right = merges.pop(0)"""), CUT,
            """Your function changed the caller's list of merges: pop, remove, append, sort and reverse write into it.
            The next word would be cut by a different list. Work on a copy."""),
        mistake("letters compared instead of pairs", ONE_PASS.but(
                  "pieces[:2] == [left, right]", '"".join(pieces[:2]) == left + right'), CUT,
            """You joined two pieces because together they read like a merge. (e, st) and (es, t) both read est, and
            only one of them was learned: compare the pairs, not the joined text."""),
        mistake("</w> added at the end only",
                ONE_PASS.but('*word, "</w>"', "*word").but(RESULT, 'return pieces + ["</w>"]'), CUT,
            """No merge took </w> up. It is at the end of the word from the beginning (not after the merges), and the
            last pair, which holds it, is treated like every other.""", quotes=returned),
        mistake("merges read backwards", ONE_PASS.but("in merges", "in reversed(merges)"), CUT,
            """The merges were tried from the last learned to the first. The list is in order of learning: its first
            pair takes precedence.""", quotes=returned),
        mistake("pieces remembered by the word alone",
                "CUT = {}\n\n" + RIGHT.but(RESULT, "return CUT.setdefault(word, pieces)"), CUT,
            """The word was cut by the merges of an earlier call. Something is kept from call to call, such as the
            pieces of a word or the ranks of pairs, although it depends on the merges."""),
        mistake("last piece lost", ONE_PASS.but("while pieces", "while len(pieces) > 1"), CUT,
            """Pieces are lost at the end: the loop stops before the last one, and nothing copies it. All pieces
            together must spell the word again.""", quotes=returned),
        mistake("last piece lost at every merge", RIGHT.but("while i < len(pieces)", "while i < len(pieces) - 1"), CUT,
            """When the word was rebuilt its last piece was lost, unless the pair was at the end: the loop ends one
            piece too early. So the word grows shorter from merge to merge.""", quotes=returned),
        mistake("text replaced between single blanks", TEXT.but(
                  '" ".join([*word, "</w>"])', '" " + " ".join([*word, "</w>"]) + " "').but(
                  'text.replace(a + " " + b, a + b)', 'text.replace(f" {a} {b} ", f" {a}{b} ")'), RULES,
            """Where a pair occurs twice in a row (a b a b) only the first was joined: the blank that ends one match
            cannot begin the next. So replace misses every second one; compare whole pieces."""),
        families.LIST_SHRINKS(IN_PLACE, CUT),
        mistake("the rank of a pair that has none", RIGHT.but(PRESENT, "list(zip(pieces, pieces[1:]))").but(
                  "rank.get", "lambda pair: rank[pair]"), CUT,
            """You looked up the rank of a pair that is not a merge. Most neighbors in a word are not merges: only
            those that are may compete, and when none is left the word is done."""),
        mistake("the best of nothing", RIGHT.without("if not present:").without(RESULT), CUT,
            """When no pair of the word is a merge, your code looks for the best of no pairs and stops. Then the word is
            done: return its pieces."""),
        mistake("merges returned",
                ONE_PASS.but("pieces = [", "used, pieces = [], [").after("out.append(left + right)",
                    "used.append(left + right)").but(
                  "return pieces", "return used"), CUT,
            "You returned what was joined on the way. Return the pieces that the word consists of in the end.",
            quotes=returned),
        mistake("pairs in either order",
                ONE_PASS.but("pieces[:2] == [left, right]", "sorted(pieces[:2]) == sorted([left, right])").but(
                  "out.append(left + right)", 'out.append("".join(pieces[:2]))'), CUT,
            """A pair was also joined the other way round. (a, b) was learned from an a that comes *before* a b; ba is
            a different pair.""", quotes=returned),
        mistake("never one piece", RIGHT.but("if not present", "if not present or len(pieces) == 2"), CUT,
            "You stop when two pieces are left. A word that is known well becomes one piece.", quotes=returned),
    ),
    correct=(
        correct("lowest rank, again and again", RIGHT),
        correct("one pass over the merges", ONE_PASS),
        correct("one place at a time", """
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
        """),
        correct("recursion", """
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
        """),
        correct("regular expression", "import re\n\n" + TEXT.but('text.replace(a + " " + b, a + b)', """
                  re.sub(rf"(?<!\\S){re.escape(a)} {re.escape(b)}(?!\\S)", (a + b).replace("\\\\", r"\\\\"), text)""")),
        correct("linked pieces and a heap", """
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
                while heap := waiting():
                    _, at = heapq.heappop(heap)
                    pieces[at] += pieces[following[at]]
                    following[at] = following[following[at]]
                out, at = [], 0
                while at is not None:
                    out.append(pieces[at])
                    at = following[at]
                return out
        """),
        correct("text between separators", """
            def bpe_encode(word, merges):
                text = "\\n" + "\\n\\n".join([*word, "</w>"]) + "\\n"
                for a, b in merges:
                    text = text.replace(f"\\n{a}\\n\\n{b}\\n", f"\\n{a}{b}\\n")
                return text[1:-1].split("\\n\\n")
        """),
    ),
    hints=(
        "which of the pairs in the word was learned first?",
        "the word becomes a list of letters and </w>; every merge makes it shorter; the order of `merges` is their "
        "order of priority.",
        "pieces = the letters and </w>; while some neighbors are a merge: take the merge that is earliest in the "
        "list, join it everywhere from left to right; return the pieces.",
    ),
)
