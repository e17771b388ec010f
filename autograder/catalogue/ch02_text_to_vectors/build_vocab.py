"""02.1: a number for every word, the same one in every run."""

from collections import Counter

import torch

from autograder.catalogue.ch02_text_to_vectors.shared import SPECIALS, choose, letters, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, second_call, visible

SPECIAL, TIES, VOCABULARY = sections("specials ties vocabulary")


def build_vocab(sentences: list[list[str]], min_freq: int, specials: list[str]) -> dict[str, int]:
    """Specials first, then the words seen at least min_freq times: frequent ones first, ties by alphabet."""
    counts = Counter(word for sentence in sentences for word in sentence)
    frequent = [word for word, count in counts.items() if count >= min_freq and word not in specials]
    tokens = [*specials, *sorted(frequent, key=lambda word: (-counts[word], word))]
    return {token: id for id, token in enumerate(tokens)}


def written(min_freq: int, *lines: str) -> Case:
    return Case(([line.split() for line in lines], min_freq, SPECIALS))


def inputs(g: torch.Generator, min_freq: int, *lines: str, specials: list[str] = SPECIALS) -> Case:
    """Lines whose lower-case words have other letters in the same order; other words stay."""
    words = sorted({word for line in lines for word in line.split() if word.islower() and word.isalpha()})
    table = dict(zip(words, letters(g, *words), strict=True))
    return Case(([[table.get(word, word) for word in line.split()] for line in lines], min_freq, list(specials)))


def many_words(g: torch.Generator) -> Case:
    """Eighteen words, nine of which occur once, so that there are many ties, most of which the fifth letter decides;
    one occurs 110 times, which as a text comes before 2, and one half as often, though it is first in the alphabet."""
    alphabet = "abcdefghijklmnop"
    words = letters(g, *[f"{'abcd'[n // 16]}aba{alphabet[n % 16]}{'xyz'[n % 3]}" for n in choose(g, 0, 64, 18)])
    words[-2:] = sorted(words[-2:])
    counts = [1] * 9 + [2] * 4 + [3] * 3 + [55, 110]
    text = [word for word, count in zip(words, counts, strict=True) for _ in range(count)]
    text = [text[place] for place in choose(g, 0, len(text), len(text))]
    return Case(([text[:7], text[7:8], text[8:21], text[21:]], 1, SPECIALS))


def capitals(g: torch.Generator) -> Case:
    """Two of the words also occur with a capital letter."""
    sentences = inputs(g, 1, "the end the start", "the end of the start the", "end").arguments[0]
    return Case(([*sentences, [word.capitalize() for word in sentences[0][:2]]], 1, SPECIALS))


def misplaced(evidence: Evidence) -> str:
    """The first token with a wrong id."""
    wanted, got = evidence.expected, evidence.got
    for token, number in wanted.items():
        if token in got and got[token] != number:
            return f"Your {token!r} has the id {got[token]}; by hand it is {number}."
    return ""


def any_other_order(evidence: Evidence) -> bool:
    """Whether the words have the correct ids in another order, and the special tokens their own."""
    wanted, got, specials = evidence.expected, evidence.got, evidence.arguments[2]
    same = set(got) == set(wanted) and sorted(got.values()) == sorted(wanted.values())
    return same and got != wanted and all(got[token] == wanted[token] for token in specials)


def lacks_the_specials(evidence: Evidence) -> bool:
    """Whether the words are numbered from 0 without the special tokens, whether or not one in the text is a word."""
    (sentences, min_freq, specials), wanted = evidence.arguments, evidence.expected
    words = {token: id - len(specials) for token, id in wanted.items() if token not in specials}
    return evidence.got in (words, build_vocab(sentences, min_freq, []))


def shared_id(evidence: Evidence) -> str:
    by_id: dict[int, str] = {}
    for token, number in evidence.got.items():
        if number in by_id:
            return f"{by_id[number]!r} and {token!r} share the id {number}."
        by_id[number] = token
    return ""


RIGHT = answer("""
    from collections import Counter

    def build_vocab(sentences, min_freq, specials):
        counts = Counter(word for sentence in sentences for word in sentence)
        words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
        words = sorted(words, key=lambda word: (-counts[word], word))
        tokens = [*specials, *words]
        return {token: id for id, token in enumerate(tokens)}
""")
KEY, TOKENS = "(-counts[word], word)", "[*specials, *words]"
SORTED, NUMBERED = f"words = sorted(words, key=lambda word: {KEY})", "{token: id for id, token in enumerate(tokens)}"
SPECIALS_NUMBERED = "{token: id for id, token in enumerate(specials)}"

ONE_BY_ONE = answer("""
    from collections import Counter

    def build_vocab(sentences, min_freq, specials):
        vocab = {token: id for id, token in enumerate(specials)}
        counts = Counter(word for sentence in sentences for word in sentence)
        for place, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word))):
            if counts[word] >= min_freq and word not in vocab:
                vocab[word] = len(vocab)
        return vocab
""")

EXERCISE = Exercise(
    id="build-vocab", number="02.1", difficulty=1, minutes=15, visible_points=1, hidden_points=2,
    reference=build_vocab, section=VOCABULARY,
    probes=(
        visible("three sentences, every word",
                written(1, "we closed the windows", "we bought the windows", "the computer")),
        visible("words seen at least twice", written(2, "the dog saw the cat", "a cat", "the the dog")),
        visible("a special token inside the text", written(1, "so <unk> it is", "<unk> is <unk>")),
        hidden("many words, many ties", many_words, announced_by="frequent ones first"),
        # [MASK] is rarer than min_freq, and MASK, a word, is a part of it.
        hidden("other special tokens", inputs, 2, "ba ab MASK ba <s> ca", "ca da <pad> ba [MASK]",
               "<pad> ea da MASK <s>", specials=["</s>", "<s>", "[MASK]", "[CLS]", "[SEP]"],
               announced_by="however often they occur"),
        hidden("capital letters", capitals, announced_by="capitals before small letters"),
        hidden("one sentence of one word", inputs, 0, "word", announced_by="occur at least `min_freq` times"),
        hidden("no word is frequent enough", inputs, 9, "ab ba ab", "ba ca",
               announced_by="words seen less often are left out"),
        hidden("no sentence at all", inputs, 1, announced_by="perhaps none"),
        second_call(inputs, 1, "ba <unk> ca ab", "ca ab ca"),
    ),
    omits={"precision": "words are counted, no number is given"},
    mistakes=(
        mistake("specials last", RIGHT.but(TOKENS, "[*words, *specials]"), SPECIAL,
            """Id 0 must be the first special token. Specials come first, so that their numbers stay the same whatever
            the text is and however much of it is added.""", quotes=misplaced),
        mistake("ties by first appearance", RIGHT.but(KEY, "-counts[word]"), TIES,
            """The frequent words are in place. Words that occur equally often are in the order of the text, so the
            same sentences in a different order would give other ids. Ties are broken alphabetically.""",
            quotes=misplaced),
        mistake("ties backwards", RIGHT.but(KEY, "(counts[word], word), reverse=True"), TIES,
            """Sorting everything in reverse also reverses the alphabetical order: among words that occur equally often
            the last came first. Only the counts should decrease.""", quotes=misplaced),
        mistake("alphabet only", RIGHT.but(KEY, "word"), TIES,
            "Your words are in alphabetical order. The count comes first; the alphabet decides only "
            "between equal counts.",
            quotes=misplaced),
        mistake("order of the text", RIGHT.without(SORTED), TIES,
            """You numbered the words in the order of the text. Number them by decreasing count: a small id then means
            a frequent word, and cutting the list at any place keeps the most useful ones.""", quotes=misplaced),
        mistake("rare words first", RIGHT.but(KEY, "(counts[word], word)"), TIES,
            "The rarest words have the smallest ids: the counts rise along your list where they should fall.",
            quotes=misplaced),
        mistake("more than min_freq", RIGHT.but("count >=", "count >"), VOCABULARY,
            """A word that occurs exactly min_freq times is missing. min_freq = 2 keeps the words seen twice: at least,
            not more than."""),
        mistake("min_freq ignored", RIGHT.but("count >= min_freq and ", ""), VOCABULARY,
            "Words rarer than min_freq are in your vocabulary. They are left out, and will be read as <unk>."),
        mistake("sentences counted instead of words", RIGHT.but("in sentence)", "in set(sentence))"), VOCABULARY,
            """A word that occurs twice in one sentence was counted once: you counted sentences that hold the word.
            Every occurrence counts.""", quotes=misplaced),
        mistake("words numbered from 0", RIGHT.but(
                  NUMBERED, SPECIALS_NUMBERED + " | {word: id for id, word in enumerate(words)}"), VOCABULARY,
            "Numbering began again at 0 after the specials. An id must say which token it was, so no two "
            "may share one.",
            quotes=shared_id),
        mistake("a special numbered twice", ONE_BY_ONE.but(" and word not in vocab", ""), SPECIAL,
            """A special token in the text got a new id, although it already had one. The dictionary did not grow then,
            so the next word got the same id. A token appears once.""", quotes=shared_id),
        mistake("gaps in the numbers", RIGHT.but(" and word not in specials", ""), SPECIAL,
            """A special token in the text was listed a second time, so its id changed and its first id belongs to no
            token. A token appears once, and the specials keep their ids."""),
        mistake("ids from 1", RIGHT.but("enumerate(tokens)", "enumerate(tokens, start=1)"), VOCABULARY,
            "Your ids begin at 1. An id is the number of a row in a table, and rows are counted from 0.",
            quotes=misplaced),
        mistake("id to word", RIGHT.but(NUMBERED, "dict(enumerate(tokens))"), VOCABULARY,
            "Your dictionary leads from ids to words. Encoding needs the opposite: the word is the key, its id the "
            "value."),
        mistake("a list of words", RIGHT.but(NUMBERED, "tokens"), VOCABULARY,
            """You returned the tokens as a list, in the right order. Return a dictionary: each token with its position
            in that list."""),
        mistake("counts instead of ids", RIGHT.but(
                  NUMBERED, SPECIALS_NUMBERED + " | {word: counts[word] for word in words}"), VOCABULARY,
            "The words carry their counts. A count is not an id: two words that occur equally often would be "
            "the same word.",
            quotes=shared_id),
        mistake("lower-cased", RIGHT.but("Counter(word for", "Counter(word.lower() for"), VOCABULARY,
            """Capital letters were made small. That may be wise or not (*US* and *us*), but it is decided when the text
            is cut into tokens; here a token is taken as it is."""),
        mistake("four specials written in", RIGHT.but(
                  "counts = ", 'specials = ["<pad>", "<bos>", "<eos>", "<unk>"]\n    counts = '), SPECIAL,
            "The special tokens that were passed in are not used: the usual four came back. Other models have others."),
        mistake("four specials numbered whatever was given",
                RIGHT.but(TOKENS, '["<pad>", "<bos>", "<eos>", "<unk>", *words]'), SPECIAL,
            """The four usual special tokens are numbered, whatever `specials` holds. Other models have others: number
            those of the argument `specials`."""),
        mistake("<unk> always added", RIGHT.but(TOKENS, TOKENS + ' + ["<unk>"] * ("<unk>" not in specials)'), SPECIAL,
            """<unk> is in your vocabulary although it is not in `specials`. Only the argument `specials` says which
            tokens are special; other models have others."""),
        mistake("a word that is part of a special taken for one",
                RIGHT.but("not in specials", "not in ' '.join(specials)"), SPECIAL,
            """A word was left out because it is part of a special token, as pad is of <pad>: `in` on a string also
            finds parts. Compare with the list of whole tokens."""),
        mistake("specials changed", RIGHT.but("tokens = " + TOKENS, "specials += words").but("(tokens)", "(specials)"),
                SPECIAL,
            """Your function changed the caller's list of specials: append, extend and += write into the list that
            was passed in. The next call would start with all these words as specials."""),
        mistake("capitals among small letters", RIGHT.but(KEY, "(-counts[word], word.lower())"), TIES,
            """Among equally frequent words you compared without regard to capitals. The rule is Python's own order of
            texts, in which every capital comes before every small letter."""),
        mistake("letters counted", RIGHT.but(
                  "Counter(word", "Counter(letter").but("in sentence)", "in sentence for letter in word)"), VOCABULARY,
            """Your tokens are single letters: one loop too many. A sentence is already a list of words, and going
            through a word gives its letters."""),
        mistake("sentence after sentence", """
            def build_vocab(sentences, min_freq, specials):
                vocab = {token: id for id, token in enumerate(specials)}
                for sentence in sentences:
                    for word in sorted(set(sentence), key=lambda word: (-sentence.count(word), word)):
                        if sentence.count(word) >= min_freq and word not in vocab:
                            vocab[word] = len(vocab)
                return vocab
        """, VOCABULARY,
            "You counted and numbered one sentence at a time. Count all sentences first: a word is frequent in the "
            "whole text."),
        mistake("first sentence only", """
            def build_vocab(sentences, min_freq, specials):
                for sentence in sentences:
                    words = [word for word in set(sentence)
                        if sentence.count(word) >= min_freq and word not in specials]
                    words = sorted(words, key=lambda word: (-sentence.count(word), word))
                    return {token: id for id, token in enumerate([*specials, *words])}
        """, VOCABULARY,
            "Only the first sentence was read. Go through all of them; a `return` inside the loop would end it."),
        mistake("holes in the numbers", ONE_BY_ONE.but("= len(vocab)", "= len(specials) + place"), SPECIAL,
            """A word that was passed over, because it is a special token, still used up an id, so one id belongs to no
            token. Ids have no gaps: count the tokens that you add, not those that you check.""", quotes=misplaced),
        mistake("always four specials", RIGHT.but(
                  NUMBERED, SPECIALS_NUMBERED + " | {word: 4 + id for id, word in enumerate(words)}"), SPECIAL,
            "Your words begin at id 4, however many specials there are. The first word's id is the number of "
            "specials."),
        mistake("whatever looks special left out", RIGHT.but("not in specials", "not in specials and word[0] != '<'"),
                SPECIAL,
            """A word in angle brackets was left out although it is not in `specials`. That list says what is special,
            not how a word looks."""),
        mistake("rare words first, the alphabet backward", RIGHT.but(KEY + ")", KEY + ", reverse=True)"), TIES,
            """The whole list is in reverse order: the key already makes the count decrease, and reverse=True
            reverses that, and the alphabet as well.""", quotes=misplaced),
        mistake("specials below min_freq left out",
                RIGHT.but("[*specials,", "[*(token for token in specials if counts[token] >= min_freq),"), SPECIAL,
            "The special tokens were counted, and are missing where the text does not hold them. They come first "
            "whatever the text is."),
        mistake("no specials at all", RIGHT.but(TOKENS, "words"), SPECIAL,
            "The special tokens are missing. They come first and are numbered like all others; the words follow.",
            shows=lacks_the_specials),
        mistake("specials sorted", RIGHT.but("[*specials", "[*sorted(specials)"), SPECIAL,
            "The special tokens were sorted. They keep the order in which they are given: models rely on "
            "<pad> being 0.",
            quotes=misplaced),
        mistake("short words first of equals", RIGHT.but(KEY, "(-counts[word], len(word), word)"), TIES,
            "Among words that occur equally often yours go by length first. Only the alphabet breaks ties."),
        mistake("word to text", RIGHT.but("{token: id", "{token: str(id)"), VOCABULARY,
            "Your ids are texts. They are numbers of rows, and a row is found by a number."),
        mistake("min_freq words",
                RIGHT.but("count >= min_freq and word", "word").but(TOKENS, "[*specials, *words[:min_freq]]"),
                VOCABULARY,
            "min_freq words were kept, the most frequent ones. It is a count: every word that occurs so often stays, "
            "however many."),
        mistake("at most min_freq", RIGHT.but("count >= min_freq", "count <= min_freq"), VOCABULARY,
            "The *rare* words were kept and the frequent ones left out: min_freq is the least count, and >= lets more "
            "through."),
        mistake("min_freq in each sentence",
                RIGHT.but("for word in sentence)", "for word in sentence if sentence.count(word) >= min_freq)"),
                VOCABULARY,
            """A word was kept only if a single sentence holds it min_freq times. Count over all sentences first,
            then compare."""),
        # By last letters here: it represents the order of a set, which differs from run to run.
        mistake("the order of a set", RIGHT.but(KEY, "word[::-1]"), TIES,
            """The words are correct, but their order is not: the most frequent first, ties alphabetically, and nothing
            else counts. A word that occurs twice in one sentence counts twice. (If a set decides the order, a different
            run even gives different ids.)""", quotes=misplaced,
            shows=any_other_order),
    ),
    correct=(
        correct("counter and sorted", RIGHT),
        correct("sorted twice", """
            import collections

            def build_vocab(texts, minimum, special_tokens):
                seen = collections.Counter()
                for text in texts:
                    seen.update(text)
                by_alphabet = sorted(seen)
                by_count = sorted(by_alphabet, key=seen.get, reverse=True)
                vocab = {}
                for token in list(special_tokens) + [t for t in by_count if seen[t] >= minimum]:
                    if token not in vocab:
                        vocab[token] = len(vocab)
                return vocab
        """),
        correct("plain loops", """
            def build_vocab(sentences, min_freq, specials):
                counts = {}
                for sentence in sentences:
                    for word in sentence:
                        counts[word] = counts.get(word, 0) + 1
                pairs = []
                for word in counts:
                    if counts[word] >= min_freq and word not in specials:
                        pairs.append((-counts[word], word))
                pairs.sort()
                vocab = {}
                for special in specials:
                    vocab[special] = len(vocab)
                for _, word in pairs:
                    vocab[word] = len(vocab)
                return vocab
        """),
        correct("from the highest count down", """
            from collections import defaultdict

            def build_vocab(sentences, min_freq, specials):
                counts = defaultdict(int)
                for word in sum(sentences, []):
                    counts[word] += 1
                vocab = dict(zip(specials, range(len(specials))))
                for wanted in range(max(counts.values(), default=0), min_freq - 1, -1):
                    for word in sorted(w for w in counts if counts[w] == wanted):
                        vocab.setdefault(word, len(vocab))
                return vocab
        """),
        correct("Counter kept, most_common of sorted words", """
            from collections import Counter
            from itertools import chain, count

            def build_vocab(sentences, min_freq, specials):
                words = Counter(sorted(w for w in chain.from_iterable(sentences) if w not in set(specials)))
                kept = [w for w, n in words.most_common() if n >= min_freq]
                return dict(zip(chain(specials, kept), count()))
        """),
        correct("groupby, filled backwards", """
            from itertools import groupby

            def build_vocab(sentences, min_freq, specials):
                flat = sorted(w for s in sentences for w in s)
                runs = [(w, len(list(group))) for w, group in groupby(flat)]
                order = sorted((r for r in runs if r[1] >= min_freq and r[0] not in specials), key=lambda r: -r[1])
                tokens = list(specials) + [w for w, _ in order]
                return {tokens[i]: i for i in reversed(range(len(tokens)))}
        """),
    ),
    hints=(
        "count first, sort second, number last; a sort can look at two things at once.",
        "a list of lists of words becomes counts (word to number), then a sorted list of words, then a dictionary "
        "from word to "
            "id. The specials come at the front of the list.",
        "count every occurrence; keep words with count >= min_freq that are not specials; sort them by decreasing "
        "count, ties alphabetically; number specials and words from 0.",
    ),
)
