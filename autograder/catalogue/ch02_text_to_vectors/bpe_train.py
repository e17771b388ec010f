"""02.5: learning which letters belong together, from how often they are neighbors."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import torch

from autograder.catalogue import families
from autograder.catalogue.ch02_text_to_vectors.shared import CORPUS, choose, letters, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, second_call, visible
from transformer_ref.text import byte_pair_encoding

RULES, TRAIN = sections("bpe-rules bpe-train")


def bpe_train(corpus: dict[str, int], n: int) -> list[tuple[str, str]]:
    """The first n merges (Sennrich et al. 2016, algorithm 1), ties by the smallest pair."""
    return byte_pair_encoding.learn_merges(corpus, n)


def inputs(g: torch.Generator, n: int, corpus: dict[str, int], most: int = 6) -> Case:
    """The same corpus with other small letters in the same order, all counts times a factor: the ties stay."""
    factor = int(torch.randint(1, most + 1, (), generator=g))
    small = sorted(set("".join(corpus)) & set(ascii_lowercase))
    table = dict(zip(small, letters(g, *small), strict=True))
    words = ["".join(table.get(letter, letter) for letter in word) for word in corpus]
    shuffled = choose(g, 0, len(words), len(words))
    counts = list(corpus.values())
    return Case(({words[place]: counts[place] * factor for place in shuffled}, n))


def short_words(g: torch.Generator) -> Case:
    """Short words over three letters: many pairs, many ties."""
    sizes = (2, 3, 3, 4, 5, 6, 6)
    words = {"".join("abc"[n] for n in torch.randint(3, (size,), generator=g).tolist()) for size in sizes}
    return Case(({word: int(torch.randint(1, 6, (), generator=g)) for word in letters(g, *sorted(words))}, 8))


def pairs_of_tuples(case: Case, result: Any) -> Any:
    """A remark instead of pairs that are lists: a pair of neighbors, a tuple, would never be found among them. Also
    instead of words cut into pieces, and of small letters where the corpus has only the capital one."""
    if not isinstance(result, list):
        return result
    if _are_words(result, case.arguments[0]):
        return Remark("the words came back, cut into pieces, where the list of merges is expected")
    if any(isinstance(pair, list) for pair in result):
        return Remark("the pairs that came back are lists, where tuples are expected")
    corpus = set("".join(case.arguments[0]))
    came = {letter for pair in result if isinstance(pair, tuple) for piece in pair if isinstance(piece, str)
            for letter in piece.replace("</w>", "")}  # fmt: skip
    if any(letter not in corpus and letter.upper() in corpus for letter in came):
        return Remark("a small letter came back where the corpus has only the capital one; capitals stay as they are")
    return result


def _are_words(result: list, corpus: dict[str, int]) -> bool:
    """Whether these are lists of pieces, perhaps each with a count, that spell the words of the corpus."""
    pieces = [each[0] if isinstance(each, tuple) and each else each for each in result]
    if len(corpus) < 2 or len(pieces) != len(corpus) or not all(isinstance(each, list) for each in pieces):
        return False
    return {"".join(map(str, each)).replace("</w>", "") for each in pieces} == corpus.keys()


def first_other_merge(evidence: Evidence) -> str:
    """The first merge that differs, counted as a reader would."""
    for number, (wanted, got) in enumerate(zip(evidence.expected, evidence.got, strict=False), start=1):
        if tuple(wanted) != got:
            return f"Your merge {number} is {got!r}; by hand it is {wanted!r}."
    return f"You returned {len(evidence.got)} merges where {len(evidence.expected)} were expected."


def crosses_words(evidence: Evidence) -> bool | None:
    """Whether a first piece ends in </w> and the second is of the next word; None where that cannot be seen, as in a
    corpus of one word. Where </w> is in front of the words, no second piece ends in it."""
    if isinstance(evidence.got, Remark):
        return None
    crosses = any(first.endswith("</w>") and not second.startswith("</w>") for first, second in evidence.got)
    return (crosses and any(second.endswith("</w>") for _, second in evidence.got)) or None


def counts_without_overlap(evidence: Evidence) -> bool:
    """Whether these are the merges if a piece that was counted in a pair is passed over: only in a pair of equal pieces
    that follows itself, or in every pair."""
    corpus, n = evidence.arguments
    without_overlap = [learned_without_overlap(corpus, n, every) for every in (False, True)]
    return evidence.got != evidence.expected and evidence.got in without_overlap


def learned_without_overlap(corpus: dict[str, int], n: int, every: bool) -> list[tuple[str, str]]:
    def count_in(counts: Counter[tuple[str, str]], pieces: list[str], count: int) -> None:
        last = None
        for pair in pairwise(pieces):
            counted = last is None or (not every and pair != last)
            counts[pair] += count if counted else 0
            last = pair if counted else None

    return learned(corpus, n, count_in)


def some_not_counted(evidence: Evidence) -> bool:
    """Whether these are the merges if a pair counts once in each word, or only in the last word that holds it."""

    def once(counts: Counter[tuple[str, str]], pieces: list[str], count: int) -> None:
        for pair in set(pairwise(pieces)):
            counts[pair] += count

    def written_over(counts: Counter[tuple[str, str]], pieces: list[str], count: int) -> None:
        for pair in pairwise(pieces):
            counts[pair] = count

    corpus, n = evidence.arguments
    others = [learned(corpus, n, count_in) for count_in in (once, written_over)]
    return evidence.got != evidence.expected and evidence.got in others


def learned(corpus: dict[str, int], n: int, count_in: Callable[[Counter, list[str], int], None]) -> list[tuple]:
    """The merges that are learned if `count_in` adds the pairs of a word to the counts."""
    merges: list[tuple[str, str]] = []
    while len(merges) < n:
        counts: Counter[tuple[str, str]] = Counter()
        for word, count in corpus.items():
            count_in(counts, byte_pair_encoding.encode_word(word, merges), count)
        if not any(counts.values()):
            break
        merges.append(min(counts, key=lambda pair: (-counts[pair], pair)))
    return merges


LEARN = """
    def bpe_train(corpus, n):
        words = [(list(word) + ["</w>"], count) for word, count in corpus.items()]
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
"""
RIGHT = answer(LEARN + """\
            for pieces, _ in words:
                merged, i = [], 0
                while i < len(pieces):
                    if tuple(pieces[i:i + 2]) == best:
                        merged.append("".join(best))
                        i += 2
                    else:
                        merged.append(pieces[i])
                        i += 1
                pieces[:] = merged
        return merges
""")
START, WORDS = 'list(word) + ["</w>"]', 'words = [(list(word) + ["</w>"], count) for word, count in corpus.items()]'
EVERY_PAIR = """for pair in zip(pieces, pieces[1:]):
                counts[pair] = counts.get(pair, 0) + count"""
BEST, KEPT = "min(counts, key=lambda pair: (-counts[pair], pair))", "merges.append(best)"

IN_PLACE = answer(LEARN + """\
            for pieces, _ in words:
                for i in range(len(pieces) - 1):
                    if (pieces[i], pieces[i + 1]) == best:
                        pieces[i:i + 2] = ["".join(best)]
        return merges
""")

NEVER_MERGED = answer(LEARN + "        return merges")

TEXTS = answer(LEARN + """\
            for pieces, _ in words:
                text = " ".join(pieces).replace(" ".join(best), "".join(best))
                pieces[:] = text.split()
        return merges
""")

EXERCISE = Exercise(
    id="bpe-train", number="02.5", difficulty=3, minutes=30, visible_points=2, hidden_points=4,
    reference=bpe_train, normalize=pairs_of_tuples, section=TRAIN,
    probes=(
        visible("ten merges of low, lower, newest, widest", Case((CORPUS, 10))),
        visible("three words, four merges", Case(({"hug": 4, "pug": 5, "hugs": 2}, 4))),
        hidden("short words, many ties", short_words, announced_by="the smallest pair"),
        hidden("equally frequent pairs", inputs, 6, {"bd": 3, "ab": 3, "cb": 3, "da": 3, "bca": 1},
               announced_by="the smallest pair"),
        # in the end, e meets pieces that begin alike: ig</w>, ih</w>, ij</w>
        hidden("equally frequent pieces", inputs, 13,
               {"abc": 3, "ab": 2, "ad": 3, "eig": 10, "eih": 10, "eij": 10, "ig": 25, "ih": 25, "ij": 25},
               announced_by="the smallest pair"),
        hidden("a repeated letter", inputs, 5, {"aaaa": 2, "bc": 9, "aaaaaaa": 1}, announced_by="in *aaaa*"),
        hidden("an odd number of one letter", inputs, 3, {"aaab": 4, "ba": 1}, announced_by="from left to right"),
        hidden("a pair twice in a word", inputs, 4, {"banana": 3, "nab": 4, "bab": 2},
               announced_by="wherever it occurs"),
        hidden("pieces that end like a pair", inputs, 7, {"ne": 90, "nes": 1, "es": 60},
               announced_by="count all pairs of neighbors"),
        hidden("more merges than there are pairs", inputs, 99,
               {"ab": 1, "cad": 2, "Z7": 1, ".": 9, "a.Z": 1, "-é": 2, "ca'": 1, ascii_uppercase: 1,
                digits + "!#$%&()*+,:;=?@[]^_{|}~": 1},
               most=1,
               announced_by="fewer than `n` merges"),
        hidden("one word of one letter", inputs, 3, {"a": 1}, announced_by="fewer than `n` merges"),
        hidden("no merges", inputs, 0, {"ab": 2}, announced_by="0 or more"),
        second_call(inputs, 5, {"dab": 4, "cab": 2, "ad": 1}),
    ),
    omits={"precision": "counts are whole numbers"},
    mistakes=(
        mistake("word frequency ignored", RIGHT.but("get(pair, 0) + count", "get(pair, 0) + 1"), TRAIN,
            """Each *different* word was counted once. A word that occurs 6 times brings each of its pairs 6 times:
            newest is 6 of them.""", quotes=first_other_merge),
        mistake("merges across words", RIGHT.but(
                  WORDS, 'words = [([piece for word, count in corpus.items() for piece in [*word, '
                         '"</w>"] * count], 1)]'), TRAIN,
            """One of your merges holds the end of a word and the start of the next. Pairs are counted inside each word;
            </w> is where a word stops.""", quotes=first_other_merge, shows=crosses_words),
        mistake("old counts kept", RIGHT.but("while len(merges) < n:\n        counts = {}",
                                            "counts = {}\n    while len(merges) < n:"), TRAIN,
            """The counts of the rounds before are still in your table, so pairs that are gone, or were merged long ago,
            win. Count from nothing in every round.""", quotes=first_other_merge),
        mistake("ten merges whatever n is", RIGHT.but("len(merges) < n", "len(merges) < 10"), TRAIN,
            "Your loop goes on to ten merges, as in the first example, whatever n is.", quotes=first_other_merge),
        mistake("largest pair of equals", RIGHT.but(BEST, "max(counts, key=lambda pair: (counts[pair], pair))"), RULES,
            "Among pairs that occur equally often the largest came first. Ties: the smallest pair, as Python "
            "compares tuples.",
            quotes=first_other_merge),
        mistake("first seen of equals", RIGHT.but(BEST, "max(counts, key=counts.get)"), RULES,
            """Among pairs that occur equally often the one met first was taken: max and most_common do that. The same
            words in a different order would then give different merges. Ties: the smallest pair.""",
            quotes=first_other_merge),
        mistake("last seen of equals", RIGHT.but(BEST, "sorted(counts, key=counts.get)[-1]"), RULES,
            """Among pairs that occur equally often the one met last was taken, as the end of a sorted list is. The same
            words in a different order would then give different merges. Ties: the smallest pair.""",
            quotes=first_other_merge),
        mistake("longest pair of equals",
                RIGHT.but("counts[pair], pair)", "counts[pair], -len(pair[0] + pair[1]), pair)"), RULES,
            """Among pairs that occur equally often the one that makes the longest piece came first. Length has no
            effect. Ties: the smallest pair.""", quotes=first_other_merge),
        mistake("ties by the joined text", RIGHT.but("counts[pair], pair)", 'counts[pair], "".join(pair))'), RULES,
            """Among pairs that occur equally often you compared the joined pieces: abc before ad. As tuples ("a", "d")
            comes before ("ab", "c"), since "a" comes before "ab"."""),
        mistake("least frequent pair", RIGHT.but("-counts", "counts"), TRAIN,
            "The *rarest* pair was merged. Byte-pair encoding merges the pair that occurs most often.",
            quotes=first_other_merge),
        mistake("never counted again", NEVER_MERGED.but(
                  KEPT, "return sorted(counts, key=lambda pair: (-counts[pair], pair))[:n]"), TRAIN,
            """You counted once, at the start. After es has become one piece, the pair (s, t) no longer exists and (es,
            t) does: merge in every word, then count again.""", quotes=first_other_merge),
        mistake("position not skipped", RIGHT.but("i += 2", "i += 1"), RULES,
            """After a merge the second half of the pair was still there. Either your reading moved on by one piece and
            met it again: aaaa became three pieces aa (and low became lo, ow). Or the new piece was written over the
            first half, and the second stayed in the list: low became lo, o, w. A merged pair is passed over
            whole.""", quotes=first_other_merge),
        mistake("one merge too few", RIGHT.but("< n:", "< n - 1:"), TRAIN,
            "One merge is missing at the end: the loop ran n − 1 times.", quotes=first_other_merge),
        mistake("one merge too many", RIGHT.but("< n:", "< n + 1:"), TRAIN,
            "There is one merge too many: the loop ran n + 1 times.", quotes=first_other_merge),
        mistake("stops at count 1", RIGHT.but("not counts", "not counts or max(counts.values()) < 2"), RULES,
            "Learning stopped when no pair occurred twice. Here it goes on down to count 1, until every "
            "word is one piece."),
        mistake("fails when nothing is left", RIGHT.without("if not counts:").without("break"), RULES,
            """When every word is one piece there is no pair left, and your code looks for the best of no pairs. Then
            the merges found so far are the answer."""),
        mistake("nothing returned at the end", RIGHT.but("break", "return"), RULES,
            """When no pair was left, your function ended without a result: a bare return gives None. Then the merges
            found so far are the answer."""),
        mistake("no end of word", RIGHT.but(START, "list(word)"), TRAIN,
            """No merge of yours holds </w>: it was not added, or the last pair of each word was not counted. It is at
            the end of every word before counting; without it est at the end of a word and est inside one are the same
            piece.""", quotes=first_other_merge),
        mistake("</w> in front", RIGHT.but(START, '["</w>"] + list(word)'), TRAIN,
            "</w> is in front of your words. It marks the *end* of a word, so that a piece such as est</w> can be "
            "learned.",
            quotes=first_other_merge),
        mistake("</w> glued to the last letter", RIGHT.but(START, 'list(word[:-1]) + [word[-1] + "</w>"]'), RULES,
            """Your words end in one piece such as 't</w>'. Some programs do so; here </w> is a symbol of its own that
            must be merged like any other.""", quotes=first_other_merge),
        mistake("pairs of a repeated letter counted apart", RIGHT.but(EVERY_PAIR, """
                  last = None
                  for pair in zip(pieces, pieces[1:]):
                      if pair != last:
                          counts[pair] = counts.get(pair, 0) + count
                      last = None if pair == last else pair"""), RULES,
            """Your pairs do not overlap: in aaaa you counted the pair (a, a) twice. Counting looks at every two
            neighbors, so it is three, and in abc both (a, b) and (b, c) are pairs. Only merging may not overlap.""",
            shows=counts_without_overlap),
        mistake("once for each word", RIGHT.but("zip(pieces, pieces[1:])", "set(zip(pieces, pieces[1:]))"), RULES,
            """Some occurrences of a pair were not counted. Either a pair that occurs twice in one word (an in banana)
            was counted once there, or each word's count was written over that of the word before. Every occurrence
            counts, times the word's own count, and all are added up.""",
            quotes=first_other_merge, shows=some_not_counted),
        families.TEXT_REPLACED(TEXTS, RULES),
        mistake("only the first place in a word", IN_PLACE.after('pieces[i:i + 2] = ["".join(best)]', "break"), RULES,
            "In each word only the first occurrence of the pair was merged, so banana keeps an unmerged an. All of "
            "them are."),
        mistake("joined pieces returned", RIGHT.but(KEPT, "merges.append(best[0] + best[1])"), TRAIN,
            """You returned the new pieces as texts. The pair itself is needed: est may come from (es, t) or from (e,
            st), and cutting a new word must know which.""", quotes=first_other_merge),
        mistake("pairs as texts with a space", RIGHT.but(KEPT, 'merges.append(" ".join(best))'), TRAIN,
            "Each pair came back as one text with a space in it. A pair is a tuple of two texts.",
            quotes=first_other_merge),
        mistake("the caller's corpus changed", RIGHT.but(WORDS, """
                  for word in list(corpus):
                      corpus[" ".join([*word, "</w>"])] = corpus.pop(word)
                  words = [(text.split(), count) for text, count in corpus.items()]"""), TRAIN,
            """Your function changed the caller's corpus (its words, their counts or their order), and a second call
            would start from that. Work on a copy."""),
        families.END_MARK_CUT(RIGHT.but(START, 'list(word + "</w>")'), TRAIN, quotes=first_other_merge),
        mistake("never merged", NEVER_MERGED, TRAIN,
            """The same pair comes again and again, because no word changed. After choosing a pair, make one piece of it
            in every word; then count again.""", quotes=first_other_merge),
        mistake("last piece lost", RIGHT.but("i < len(pieces)", "i < len(pieces) - 1"), TRAIN,
            """When a word was rebuilt its last piece was lost, unless the pair was at the end: the loop ends one piece
            too early. So words grow shorter from merge to merge.""", quotes=first_other_merge),
        families.LIST_SHRINKS(IN_PLACE, RULES),
        mistake("from right to left", IN_PLACE.but("range(len(pieces) - 1)", "range(len(pieces) - 2, -1, -1)").but(
                  "(pieces[i], pieces[i + 1]) == best", "tuple(pieces[i:i + 2]) == best"), RULES,
            "Where a pair overlaps itself, as (a, a) in aaa, you joined from the right. Merging goes from "
            "left to right."),
        mistake("pairs as lists", RIGHT.but(KEPT, "merges.append(list(best))"), TRAIN,
            """Your pairs are lists. Return tuples: a list never equals a tuple, so a tuple of two neighbors would never
            be found among your merges, and a list cannot be the key of a dictionary.""", quotes=None),
        mistake("pairs with their counts", RIGHT.but(KEPT, "merges.append((best, counts[best]))"), TRAIN,
            "Each pair came back together with its count. Return only the pairs."),
        mistake("long words count more", RIGHT.but(WORDS, WORDS.replace(", count)", ", count * len(word))")), TRAIN,
            "Each word's count was multiplied by its length. A pair counts as often as its word occurs.",
            quotes=first_other_merge),
        mistake("merged in the first word alone", RIGHT.but("pieces[:] = merged", """
                  changed = merged != pieces
                  pieces[:] = merged
                  if changed:
                      break"""), TRAIN,
            "The pair was merged in the first word that holds it, and in no other. All words are rebuilt, then "
            "counted again.",
            quotes=first_other_merge),
    ),
    correct=(
        correct("while and index", RIGHT),
        correct("Counter and a function for merging", """
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
        """),
        correct("regular expression",
                "import re\n\n" + TEXTS.but('" ".join(pieces).replace(" ".join(best), "".join(best))', """
                  re.sub(r"(?<!\\S)" + re.escape(" ".join(best)) + r"(?!\\S)", "".join(best), " ".join(pieces))""")),
        correct("recursion", """
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
        """),
        correct("every occurrence of every word", RIGHT.but(
                  WORDS, 'words = [([*word, "</w>"], 1) for word, count in corpus.items() for _ in range(count)]').but(
                  BEST, "sorted(sorted(counts), key=counts.__getitem__, reverse=True)[0]")),
        correct("counts kept in a table and updated", """
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
        """),
    ),
    hints=(
        "three steps, n times: count the pairs, choose one, merge it in every word.",
        "each word is a list of pieces that begins as its letters and </w>; a dictionary leads from pairs "
        "to counts; the "
            "answer is a list of pairs.",
        "repeat n times: count all neighbors in all words, each times its word's count; stop if there are "
        "none; take the "
            "largest count, ties by the smallest pair; write it down; rebuild every word, joining the pair from left "
            "to right.",
    ),
)
