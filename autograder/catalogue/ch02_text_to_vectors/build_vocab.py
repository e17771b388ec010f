"""02.1 build_vocab."""

from collections import Counter
from textwrap import dedent

import torch

from autograder.catalogue.ch02_text_to_vectors.shared import SPECIALS, _choose, _letters, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Probe
from autograder.catalogue.parts import UNTOUCHED, known, right

SPECIAL, TIES, VOCABULARY = sections("specials ties vocabulary")


def build_vocab(sentences: list[list[str]], min_freq: int, specials: list[str]) -> dict[str, int]:
    """Specials first, then the words seen at least min_freq times: frequent ones first, ties by alphabet."""
    counts = Counter(word for sentence in sentences for word in sentence)
    frequent = [word for word, count in counts.items() if count >= min_freq and word not in specials]
    tokens = [*specials, *sorted(frequent, key=lambda word: (-counts[word], word))]
    return {token: id for id, token in enumerate(tokens)}


def _split(*lines: str) -> list[list[str]]:
    return [line.split() for line in lines]


def _many_words(g: torch.Generator) -> Case:
    """Eighteen words, nine of which occur once, so that there are many ties."""
    alphabet = "abcdefgh"
    words = [f"{alphabet[n // 8]}{alphabet[n % 8]}{'xyz'[n % 3]}" for n in _choose(g, 0, 64, 18)]
    words = _letters(g, *words)
    counts = [1] * 9 + [2] * 4 + [3] * 3 + [5, 7]
    text = [word for word, count in zip(words, counts, strict=True) for _ in range(count)]
    text = [text[place] for place in torch.randperm(len(text), generator=g).tolist()]
    return Case(([text[:7], text[7:8], text[8:21], text[21:]], 1, SPECIALS))


def _drawn_lines(g: torch.Generator, *lines: str) -> list[list[str]]:
    """Lines whose lower-case words are written with other letters of the same order; other words stay."""
    words = sorted({word for line in lines for word in line.split() if word.islower() and word.isalpha()})
    table = dict(zip(words, _letters(g, *words), strict=True))
    return [[table.get(word, word) for word in line.split()] for line in lines]


def _capitals(g: torch.Generator) -> Case:
    sentences = _drawn_lines(g, "the end the start", "the end of the start the", "end")
    return Case(([*sentences, [sentences[0][0].capitalize(), sentences[0][1].capitalize()]], 1, SPECIALS))


def _misplaced(evidence: Evidence) -> str:
    """The first token whose number is another one."""
    wanted, got = evidence.expected, evidence.got
    for token, number in wanted.items():
        if token in got and got[token] != number:
            return f"Your {token!r} has the id {got[token]}; by hand it is {number}."
    return ""


def _any_other_order(evidence: Evidence) -> bool:
    """Whether the right words have the right ids among them, only in another order, and the specials their own."""
    wanted, got, specials = evidence.expected, evidence.got, evidence.arguments[2]
    same = set(got) == set(wanted) and sorted(got.values()) == sorted(wanted.values())
    return same and got != wanted and all(got[token] == wanted[token] for token in specials)


def _shared_id(evidence: Evidence) -> str:
    by_id: dict[int, str] = {}
    for token, number in evidence.got.items():
        if number in by_id:
            return f"{by_id[number]!r} and {token!r} share the id {number}."
        by_id[number] = token
    return ""


def _ordered(key: str, condition: str = "count >= min_freq and word not in specials", start: str = "") -> str:
    """A build_vocab that sorts its words by this key."""
    return dedent(f"""
        from collections import Counter

        def build_vocab(sentences, min_freq, specials):
            counts = Counter(word for sentence in sentences for word in sentence)
            words = [word for word, count in counts.items() if {condition}]
            words = sorted(words, key=lambda word: {key})
            return {{token: id for id, token in enumerate([*specials, *words]{start})}}
    """)


EXERCISE = Exercise(
    id="build-vocab",
    number="02.1",
    visible_points=1,
    hidden_points=2,
    section=VOCABULARY,
    reference=build_vocab,
    probes=(
        Probe(
            "three sentences, every word",
            lambda g: Case(
                (_split("we closed the windows", "we bought the windows", "the computer"), 1, SPECIALS),
            ),
            hidden=False,
        ),
        Probe(
            "words seen at least twice",
            lambda g: Case((_split("the dog saw the cat", "a cat", "the the dog"), 2, SPECIALS)),
            hidden=False,
        ),
        Probe(
            "a special token inside the text",
            lambda g: Case((_split("so <unk> it is", "<unk> is <unk>"), 1, SPECIALS)),
            hidden=False,
        ),
        Probe("many words, many ties", _many_words),
        Probe(
            "other special tokens",
            lambda g: Case(
                (_drawn_lines(g, "ba ab ba <s> ca", "ca da <pad> ba", "<pad> ea da <s>"), 2, ["</s>", "<s>", "[MASK]"])
            ),
        ),
        Probe("capital letters", _capitals),
        Probe("one sentence of one word", lambda g: Case((_drawn_lines(g, "word"), 1, SPECIALS))),
        Probe("no word is frequent enough", lambda g: Case((_drawn_lines(g, "ab ba ab", "ba ca"), 9, SPECIALS))),
        Probe(
            "nothing else is touched",
            lambda g: Case((_drawn_lines(g, "ca ab ca", "ba ca ab"), 1, list(SPECIALS))),
            also=UNTOUCHED,
        ),
    ),
    wrong=(
        known(
            "specials last",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
                words = sorted(words, key=lambda word: (-counts[word], word))
                return {token: id for id, token in enumerate([*words, *specials])}
            """,
            """Id 0 must be the first special token. Specials come first, so that their numbers stay the same whatever
            the text is and however much of it is added.""",
            SPECIAL,
            _misplaced,
        ),
        known(
            "ties by first appearance",
            _ordered("-counts[word]"),
            """The frequent words are in place. Among words that occur equally often yours stand in the order of the
            text, so the same sentences in another order would give other ids. Ties go by alphabet.""",
            TIES,
            _misplaced,
        ),
        known(
            "ties backwards",
            _ordered("(counts[word], word)", start="").replace(
                "lambda word: (counts[word], word))", "lambda word: (counts[word], word), reverse=True)"
            ),
            """Sorting everything in reverse turns the alphabet around as well: among words that occur equally often the
            last came first. Count falls, the alphabet rises.""",
            TIES,
            _misplaced,
        ),
        known(
            "alphabet only",
            _ordered("word"),
            "Your words are in alphabetical order. The count comes first; the alphabet decides only between equal counts.",
            TIES,
            _misplaced,
        ),
        known(
            "order of the text",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                vocab = {token: id for id, token in enumerate(specials)}
                for sentence in sentences:
                    for word in sentence:
                        if counts[word] >= min_freq and word not in vocab:
                            vocab[word] = len(vocab)
                return vocab
            """,
            """Ids were given out as the words came along. They go by falling count: a small id then means a frequent
            word, and cutting the list at any place keeps the most useful ones.""",
            TIES,
            _misplaced,
        ),
        known(
            "rare words first",
            _ordered("(counts[word], word)"),
            "The rarest words have the smallest ids: the counts rise along your list where they should fall.",
            TIES,
            _misplaced,
        ),
        known(
            "more than min_freq",
            _ordered("(-counts[word], word)", condition="count > min_freq and word not in specials"),
            "A word that occurs exactly min_freq times is missing. min_freq = 2 keeps the words seen twice: at least, not more than.",
            VOCABULARY,
        ),
        known(
            "min_freq ignored",
            _ordered("(-counts[word], word)", condition="word not in specials"),
            "Words rarer than min_freq are in your vocabulary. They are left out, and will be read as <unk>.",
            VOCABULARY,
        ),
        known(
            "sentences counted instead of words",
            _ordered("(-counts[word], word)").replace("for word in sentence)", "for word in set(sentence))"),
            """A word that stands twice in one sentence was counted once: you counted sentences that hold the word.
            Every occurrence counts.""",
            VOCABULARY,
            _misplaced,
        ),
        known(
            "words numbered from 0",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
                vocab = {token: id for id, token in enumerate(specials)}
                vocab.update({word: id for id, word in enumerate(sorted(words, key=lambda word: (-counts[word], word)))})
                return vocab
            """,
            "Numbering began again at 0 after the specials. An id must say which token it was, so no two may share one.",
            VOCABULARY,
            _shared_id,
        ),
        known(
            "a special numbered twice",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                vocab = {token: id for id, token in enumerate(specials)}
                for word in sorted(counts, key=lambda word: (-counts[word], word)):
                    if counts[word] >= min_freq:
                        vocab[word] = len(vocab)
                return vocab
            """,
            """A special token stood in the text and was given a new id, although it had one. The dictionary did not grow
            then, so the next word got the same number. A token appears once.""",
            SPECIAL,
            _shared_id,
        ),
        known(
            "gaps in the numbers",
            _ordered("(-counts[word], word)", condition="count >= min_freq"),
            """A special token that stood in the text was listed a second time, so its id moved and its first number
            belongs to nobody. A token appears once, and the specials keep the numbers they had.""",
            SPECIAL,
        ),
        known(
            "ids from 1",
            _ordered("(-counts[word], word)", start=", start=1"),
            "Your ids begin at 1. An id is the number of a row in a table, and rows are counted from 0.",
            VOCABULARY,
            _misplaced,
        ),
        known(
            "id to word",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
                return dict(enumerate([*specials, *sorted(words, key=lambda word: (-counts[word], word))]))
            """,
            "Your dictionary leads from ids to words. Encoding asks the other way: the word is the key, its id the value.",
            VOCABULARY,
        ),
        known(
            "a list of words",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
                return [*specials, *sorted(words, key=lambda word: (-counts[word], word))]
            """,
            "You returned the tokens as a list, in the right order. What is wanted is a dictionary: each token with its place in that list.",
            VOCABULARY,
        ),
        known(
            "counts instead of ids",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                words = {word: count for word, count in counts.items() if count >= min_freq and word not in specials}
                return {**{token: id for id, token in enumerate(specials)}, **words}
            """,
            "The words carry their counts. A count is no id: two words that occur equally often would be the same word.",
            VOCABULARY,
            _shared_id,
        ),
        known(
            "lower-cased",
            _ordered("(-counts[word], word)").replace("Counter(word for", "Counter(word.lower() for"),
            """Capital letters were made small. That may be wise or not (*US* and *us*), but it is decided when the text
            is cut into tokens; here a token is taken as it is.""",
            VOCABULARY,
        ),
        known(
            "four specials written in",
            _ordered("(-counts[word], word)").replace(
                "    counts =",
                '    specials = ["<pad>", "<bos>", "<eos>", "<unk>"]\n    counts =',
            ),
            "The special tokens that were passed in are not used: the usual four came back. Other models have others.",
            SPECIAL,
        ),
        known(
            "specials changed",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
                specials += sorted(words, key=lambda word: (-counts[word], word))
                return {token: id for id, token in enumerate(specials)}
            """,
            """Your function changed the caller's list of specials: += and extend write into the list that was passed in.
            The next call would start with all these words as specials.""",
            SPECIAL,
        ),
        known(
            "capitals among small letters",
            _ordered("(-counts[word], word.lower())"),
            """Among equally frequent words you compared without regard to capitals. The rule is Python's own order of
            texts, in which every capital comes before every small letter.""",
            TIES,
        ),
        known(
            "letters counted",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(letter for sentence in sentences for word in sentence for letter in word)
                words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
                words = sorted(words, key=lambda word: (-counts[word], word))
                return {token: id for id, token in enumerate([*specials, *words])}
            """,
            """Your tokens are single letters: one loop too many. A sentence is already a list of words, and going through
            a word gives its letters.""",
            VOCABULARY,
        ),
        known(
            "no specials at all",
            _ordered("(-counts[word], word)").replace("[*specials, *words]", "words"),
            "The special tokens are missing. They come first and are numbered like all others; the words follow.",
            SPECIAL,
        ),
        known(
            "sentence after sentence",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                vocab = {token: id for id, token in enumerate(specials)}
                for sentence in sentences:
                    counts = Counter(sentence)
                    for word in sorted(counts, key=lambda word: (-counts[word], word)):
                        if counts[word] >= min_freq and word not in vocab:
                            vocab[word] = len(vocab)
                return vocab
            """,
            "You counted and numbered one sentence at a time. Count all sentences first: a word is frequent in the whole text.",
            VOCABULARY,
        ),
        known(
            "first sentence only",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                for sentence in sentences:
                    counts = Counter(sentence)
                    words = [word for word, count in counts.items() if count >= min_freq and word not in specials]
                    words = sorted(words, key=lambda word: (-counts[word], word))
                    return {token: id for id, token in enumerate([*specials, *words])}
            """,
            "Only the first sentence was read. A `return` inside the loop ends all of it.",
            VOCABULARY,
        ),
        known(
            "holes in the numbers",
            """
            from collections import Counter

            def build_vocab(sentences, min_freq, specials):
                counts = Counter(word for sentence in sentences for word in sentence)
                vocab = {token: id for id, token in enumerate(specials)}
                for place, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word))):
                    if counts[word] >= min_freq and word not in vocab:
                        vocab[word] = len(specials) + place
                return vocab
            """,
            """A word that was passed over, because it is a special token, used up a number all the same, so one id belongs to
            nobody. Ids have no gaps: count what goes in, not what was looked at.""",
            SPECIAL,
            _misplaced,
        ),
        known(
            "always four specials",
            _ordered("(-counts[word], word)").replace(
                "return {token: id for id, token in enumerate([*specials, *words])}",
                "vocab = {token: id for id, token in enumerate(specials)}\n"
                "    return vocab | {word: 4 + id for id, word in enumerate(words)}",
            ),
            "Your words begin at id 4, however many specials there are. The first word's id is the number of specials.",
            SPECIAL,
        ),
        known(
            "whatever looks special left out",
            _ordered(
                "(-counts[word], word)", condition="count >= min_freq and word not in specials and word[0] != '<'"
            ),
            """A word in angle brackets was left out although it is not in `specials`. What is special is said by that list, not
            by how a word looks.""",
            SPECIAL,
        ),
        known(
            "specials sorted",
            _ordered("(-counts[word], word)").replace("[*specials, *words]", "[*sorted(specials), *words]"),
            "The special tokens were sorted. They keep the order in which they are given: models rely on <pad> being 0.",
            SPECIAL,
            _misplaced,
        ),
        known(
            "short words first of equals",
            _ordered("(-counts[word], len(word), word)"),
            "Among words that occur equally often yours go by length first. Ties go by alphabet alone.",
            TIES,
        ),
        known(
            "word to text",
            _ordered("(-counts[word], word)").replace("{token: id", "{token: str(id)"),
            "Your ids are texts. They are numbers of rows, and a row is found by a number.",
            VOCABULARY,
        ),
        known(
            "the order of a set",
            # By last letters here: it stands for the order of a set, which differs from run to run.
            """
            def build_vocab(sentences, min_freq, specials):
                text = [word for sentence in sentences for word in sentence]
                words = {word for word in text if text.count(word) >= min_freq and word not in specials}
                words = sorted(words, key=lambda word: word[::-1])
                return {token: id for id, token in enumerate([*specials, *words])}
            """,
            """The order of your words follows none of the rules that we know. If a set decides it, another run gives other
            ids, and a model saved today would read other words tomorrow.""",
            TIES,
            _misplaced,
            _any_other_order,
        ),
    ),
    right=(
        right("counter and sorted", _ordered("(-counts[word], word)")),
        right(
            "sorted twice",
            """
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
            """,
        ),
        right(
            "plain loops",
            """
            def build_vocab(sentences, min_freq, specials):
                counts = {}
                for sentence in sentences:
                    for word in sentence:
                        if word in counts:
                            counts[word] += 1
                        else:
                            counts[word] = 1
                pairs = []
                for word in counts:
                    if counts[word] >= min_freq and word not in specials:
                        pairs.append((-counts[word], word))
                pairs.sort()
                vocab = {}
                number = 0
                for special in specials:
                    vocab[special] = number
                    number += 1
                for _, word in pairs:
                    vocab[word] = number
                    number += 1
                return vocab
            """,
        ),
        right(
            "from the highest count down",
            """
            from collections import defaultdict

            def build_vocab(sentences, min_freq, specials):
                counts = defaultdict(int)
                for word in sum(sentences, []):
                    counts[word] += 1
                vocab = dict(zip(specials, range(len(specials))))
                for wanted in range(max(counts.values()), min_freq - 1, -1):
                    for word in sorted(w for w in counts if counts[w] == wanted):
                        vocab.setdefault(word, len(vocab))
                return vocab
            """,
        ),
        right(
            "Counter kept, most_common of sorted words",
            """
            from collections import Counter
            from itertools import chain, count

            def build_vocab(sentences, min_freq, specials):
                words = Counter(sorted(w for w in chain.from_iterable(sentences) if w not in set(specials)))
                kept = [w for w, n in words.most_common() if n >= min_freq]
                return dict(zip(chain(specials, kept), count()))
            """,
        ),
        right(
            "groupby, filled backwards",
            """
            from itertools import groupby

            def build_vocab(sentences, min_freq, specials):
                flat = sorted(w for s in sentences for w in s)
                runs = [(w, len(list(group))) for w, group in groupby(flat)]
                order = sorted((r for r in runs if r[1] >= min_freq and r[0] not in specials), key=lambda r: -r[1])
                tokens = list(specials) + [w for w, _ in order]
                return {tokens[i]: i for i in reversed(range(len(tokens)))}
            """,
        ),
    ),
    hints=(
        "count first, sort second, number last; a sort can look at two things at once.",
        "a list of lists of words becomes counts (word to number), then a sorted list of words, then a dictionary from word to id. The specials stand in front of the list.",
        "count every occurrence; keep words with count >= min_freq that are no specials; sort them by falling count, ties by alphabet; number specials and words from 0.",
    ),
)
