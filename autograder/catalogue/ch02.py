"""Chapter 02, from text to vectors: six exercises, their probes, and the wrong answers that teachers know."""

import math
from collections import Counter
from textwrap import dedent

import torch
from torch import Tensor

from autograder.catalogue.exercise import Assignment, Case, Evidence, Exercise, Misconception, Probe, Section
from autograder.catalogue.parts import GRADIENTS, UNTOUCHED, first, known, normal, right, sizes, turned
from transformer_ref.data.batching import pad_sequences
from transformer_ref.text import byte_pair_encoding

# ------------------------------------------------------------------------------------------------ shared by the exercises

SPECIALS = ["<pad>", "<bos>", "<eos>", "<unk>"]

VOCABULARY = Section("02", "A number for every word", "sec-02-vocabulary")
TIES = Section("02", "Who gets which number?", "sec-02-ties")
ENCODE = Section("02", "There and back", "sec-02-encode")
SPECIAL = Section("02", "Four words that nobody says", "sec-02-specials")
PAD = Section("02", "A batch is a rectangle", "sec-02-pad")
EMBED = Section("02", "A row for every number", "sec-02-embed")
SCALE = Section("02", "Why multiply by the root?", "sec-02-scale")
TRAIN = Section("02", "Pieces of words", "sec-02-bpe-train")
RULES = Section("02", "Three rules in small print", "sec-02-bpe-rules")
CUT = Section("02", "Cutting a new word", "sec-02-bpe-encode")


def _choose(g: torch.Generator, low: int, high: int, count: int) -> list[int]:
    """So many different whole numbers, low <= number < high, in random order."""
    return [low + number for number in torch.randperm(high - low, generator=g)[:count].tolist()]


def _letters(g: torch.Generator, *words: str) -> list[str]:
    """The words, written with other letters whose alphabetical order is the same: equal ties, other text."""
    used = sorted(set("".join(words)))
    drawn = sorted(_choose(g, ord("a"), ord("z") + 1, len(used)))
    table = {old: chr(new) for old, new in zip(used, drawn, strict=True)}
    return ["".join(table[letter] for letter in word) for word in words]


# ------------------------------------------------------------------------------------------------ 02.1 build_vocab


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


BUILD_EXERCISE = Exercise(
    id="build-vocab",
    number="02.1",
    names=("build_vocab",),
    visible_points=1,
    hidden_points=2,
    section=VOCABULARY,
    reference={"build_vocab": build_vocab},
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
    misconceptions=(
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
    variants=(
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

# ------------------------------------------------------------------------------------------------ 02.2 encode, decode

WORDS_TO_IDS = {token: id for id, token in enumerate([*SPECIALS, "I", "closed", "the", "windows"])}


def encode(tokens: list[str], vocab: dict[str, int], add_eos: bool = True) -> list[int]:
    """One id a token, <unk> where there is none, and <eos> at the end if asked."""
    ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
    return [*ids, vocab["<eos>"]] if add_eos else ids


def decode(ids: list[int], vocab: dict[str, int]) -> list[str]:
    """The ordinary tokens before the first <eos>."""
    tokens = {id: token for token, id in vocab.items()}
    before = ids[: ids.index(vocab["<eos>"])] if vocab["<eos>"] in ids else ids
    return [tokens[id] for id in before if tokens[id] not in SPECIALS]


_ENCODE = """
def encode(tokens, vocab, add_eos=True):
    ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
    return ids + [vocab["<eos>"]] if add_eos else ids
"""
_DECODE = """
def decode(ids, vocab):
    words = {id: word for word, id in vocab.items()}
    tokens = []
    for id in ids:
        if words[id] == "<eos>":
            break
        if words[id] not in ("<pad>", "<bos>", "<eos>", "<unk>"):
            tokens.append(words[id])
    return tokens
"""


def _other_ids(g: torch.Generator, *words: str) -> tuple[list[str], dict[str, int]]:
    """Words with drawn letters, and a vocabulary in which no special token has its usual id."""
    drawn = _letters(g, *words)
    numbers = _choose(g, 10, 40, len(words) + 4)
    return drawn, dict(zip([*drawn[:2], "<eos>", "<unk>", *drawn[2:], "<pad>", "<bos>"], numbers, strict=True))


def _encode_other(g: torch.Generator) -> Case:
    words, vocab = _other_ids(g, "ab", "ba", "cab", "dab", "eab")
    return Case(([words[4], words[1], "?", words[0], words[1]], vocab))


def _decode_other(g: torch.Generator) -> Case:
    words, vocab = _other_ids(g, "ab", "ba", "cab", "dab", "eab")
    tokens = ["<bos>", words[3], words[0], words[4], "<eos>", "<pad>", "<pad>"]
    return Case(([vocab[token] for token in tokens], vocab), function="decode")


def _decode_specials(g: torch.Generator) -> Case:
    words, vocab = _other_ids(g, "ab", "ba", "cab")
    tokens = ["<bos>", words[2], "<unk>", words[0], "<pad>", "<unk>", "<pad>", words[1], "<bos>", "<eos>"]
    return Case(([vocab[token] for token in tokens], vocab), function="decode")


def _decode_endless(g: torch.Generator) -> Case:
    words, vocab = _other_ids(g, "ab", "ba", "cab")
    return Case(([vocab[word] for word in (words[1], words[0], words[2], words[1])], vocab), function="decode")


def _decode_nothing(g: torch.Generator) -> Case:
    words, vocab = _other_ids(g, "ab", "ba")
    return Case(([vocab[token] for token in ("<eos>", words[1], "<eos>")], vocab), function="decode")


def _encode_short(g: torch.Generator) -> Case:
    words, vocab = _other_ids(g, "ab", "ba", "cab")
    return Case(([words[2]], vocab, False))


def _coded(name: str, source: str, message: str, reread: Section, seen=None) -> Misconception:
    """A known wrong answer that holds one of the two functions; the other is right."""
    source = dedent(source).lstrip()
    both = source + (_DECODE if "def encode(" in source else _ENCODE)
    return known(name, both, message, reread, seen)


def _returned(evidence: Evidence) -> str:
    return f"You returned {evidence.got!r} where {evidence.expected!r} was expected."


CODE_EXERCISE = Exercise(
    id="encode-decode",
    number="02.2",
    names=("encode", "decode"),
    visible_points=1,
    hidden_points=2,
    section=ENCODE,
    reference={"encode": encode, "decode": decode},
    probes=(
        Probe(
            "encode: I closed the windows",
            lambda g: Case((["I", "closed", "the", "windows"], WORDS_TO_IDS)),
            hidden=False,
        ),
        Probe(
            "encode: a word nobody knows",
            lambda g: Case((["I", "closed", "umbrellas", "windows"], WORDS_TO_IDS)),
            hidden=False,
        ),
        Probe(
            "encode without <eos>",
            lambda g: Case((["the", "windows", "closed"], WORDS_TO_IDS, False)),
            hidden=False,
        ),
        Probe(
            "decode: a padded sentence",
            lambda g: Case(([1, 4, 5, 6, 7, 2, 0, 0], WORDS_TO_IDS), function="decode"),
            hidden=False,
        ),
        Probe(
            "decode: text after the first <eos>",
            lambda g: Case(([6, 7, 5, 2, 4, 5, 2, 6], WORDS_TO_IDS), function="decode"),
            hidden=False,
        ),
        Probe("encode: other ids", _encode_other),
        Probe("encode: one word without <eos>", _encode_short),
        Probe("decode: other ids", _decode_other),
        Probe("decode: special tokens in between", _decode_specials),
        Probe("decode: no <eos> at all", _decode_endless),
        Probe("decode: <eos> comes first", _decode_nothing),
        Probe("encode: nothing else is touched", _encode_other, also=UNTOUCHED),
        Probe("decode: nothing else is touched", _decode_other, also=UNTOUCHED),
    ),
    misconceptions=(
        _coded(
            "unknown word crashes",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab[token] for token in tokens]
                return ids + [vocab["<eos>"]] if add_eos else ids
            """,
            "A word that is not in the vocabulary stops your code. It will meet such words every day: that is what <unk> is for.",
            SPECIAL,
        ),
        _coded(
            "unknown word left out",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab[token] for token in tokens if token in vocab]
                return ids + [vocab["<eos>"]] if add_eos else ids
            """,
            "The unknown word vanished, and the sentence is a word shorter. It keeps its place, as <unk>.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "unknown word as 0",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, 0) for token in tokens]
                return ids + [vocab["<eos>"]] if add_eos else ids
            """,
            "The unknown word became 0, which is the id of another token (here <pad>). Ask the vocabulary for the id of <unk>.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "unknown word as 3",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, 3) for token in tokens]
                return ids + [vocab["<eos>"]] if add_eos else ids
            """,
            "With another vocabulary the unknown word became somebody else's id: 3 is written into your code. The vocabulary knows the id of <unk>.",
            SPECIAL,
        ),
        _coded(
            "<eos> as 2",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
                return ids + [2] if add_eos else ids
            """,
            "With another vocabulary your sentence ended in somebody else's id: 2 is written into your code. The vocabulary knows the id of <eos>.",
            SPECIAL,
        ),
        _coded(
            "<eos> forgotten",
            """
            def encode(tokens, vocab, add_eos=True):
                return [vocab.get(token, vocab["<unk>"]) for token in tokens]
            """,
            "The end symbol is missing. Without it a model cannot know, and never learns, where a sentence ends.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "<eos> always",
            """
            def encode(tokens, vocab, add_eos=True):
                return [vocab.get(token, vocab["<unk>"]) for token in tokens] + [vocab["<eos>"]]
            """,
            "<eos> came although add_eos was False: the argument is never looked at.",
            ENCODE,
            _returned,
        ),
        _coded(
            "<bos> added",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab["<bos>"]] + [vocab.get(token, vocab["<unk>"]) for token in tokens]
                return ids + [vocab["<eos>"]] if add_eos else ids
            """,
            "Nobody asked for <bos>. A source sentence goes without it; chapter 10 puts it before the decoder's input.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "<eos> in front",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
                return [vocab["<eos>"]] + ids if add_eos else ids
            """,
            "The end symbol stands at the beginning. It comes after the last word.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "what append returns",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
                if add_eos:
                    ids = ids.append(vocab["<eos>"])
                return ids
            """,
            "None came back. list.append changes the list and returns None, so its result must not be kept as the list.",
            ENCODE,
        ),
        _coded(
            "unknown word as None",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token) for token in tokens]
                return ids + [vocab["<eos>"]] if add_eos else ids
            """,
            "The unknown word became None: that is what get gives when it is not told what else to give. The id of <unk> belongs there.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "<eos> as a word",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
                return ids + ["<eos>"] if add_eos else ids
            """,
            "Your list of numbers ends in the text '<eos>'. It is a token like the others: its id comes from the vocabulary.",
            ENCODE,
            _returned,
        ),
        _coded(
            "the caller's tokens changed",
            """
            def encode(tokens, vocab, add_eos=True):
                if add_eos:
                    tokens.append("<eos>")
                return [vocab.get(token, vocab["<unk>"]) for token in tokens]
            """,
            "Your function wrote into the list of tokens that was passed in (append, += or tokens[i] = ...). Whoever encodes it twice gets something else. Write into a list of your own.",
            ENCODE,
        ),
        _coded(
            "a new word added to the vocabulary",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.setdefault(token, len(vocab)) for token in tokens]
                return ids + [vocab["<eos>"]] if add_eos else ids
            """,
            "The unknown word was given a new id. The table of vectors has no row for it: once built, a vocabulary is closed.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "a tensor instead of a list",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
                return torch.tensor(ids + [vocab["<eos>"]] if add_eos else ids)
            """,
            "A tensor came back. Sentences differ in length, so ids stay in plain lists until pad_batch makes a rectangle of them.",
            PAD,
        ),
        _coded(
            "decoding goes on after <eos>",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                return [words[id] for id in ids if words[id] not in ("<pad>", "<bos>", "<eos>", "<unk>")]
            """,
            "Text after the end symbol must be dropped. A model goes on producing something after it has finished, and that is noise.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "the vocabulary asked for an id",
            """
            def decode(ids, vocab):
                tokens = []
                for id in ids:
                    if vocab[id] == "<eos>":
                        break
                    tokens.append(vocab[id])
                return tokens
            """,
            "The vocabulary was asked for an id, but its keys are words. Turn it around first: from id to word.",
            ENCODE,
        ),
        _coded(
            "stops at padding",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids:
                    if words[id] in ("<eos>", "<pad>"):
                        break
                    if words[id] not in ("<bos>", "<unk>"):
                        tokens.append(words[id])
                return tokens
            """,
            "Your text ends at a <pad>. Only <eos> ends it; a pad is left out like the other special tokens.",
            SPECIAL,
        ),
        _coded(
            "up to the last <eos>",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = [words[id] for id in ids]
                if "<eos>" in tokens:
                    tokens = tokens[: len(tokens) - 1 - tokens[::-1].index("<eos>")]
                return [token for token in tokens if token not in ("<pad>", "<bos>", "<eos>", "<unk>")]
            """,
            "Your text runs up to the *last* <eos>. The first one ends it.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "special tokens printed",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids:
                    if words[id] == "<eos>":
                        break
                    tokens.append(words[id])
                return tokens
            """,
            "You stop in time, but special tokens stand in the text. They are signs for the model; a reader never sees them.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "<eos> printed",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids:
                    if words[id] not in ("<pad>", "<bos>", "<unk>"):
                        tokens.append(words[id])
                    if words[id] == "<eos>":
                        break
                return tokens
            """,
            "The end symbol itself is in your text. It ends the sentence and is not part of it.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "everything printed",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                return [words[id] for id in ids]
            """,
            "Every id came back as its token, special ones included. The text ends at the first <eos>, and special tokens are no part of it.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "<unk> printed",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids:
                    if words[id] == "<eos>":
                        break
                    if words[id] not in ("<pad>", "<bos>"):
                        tokens.append(words[id])
                return tokens
            """,
            "<unk> stands in your text. It is special too: all four are dropped.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "special ids written in",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                if 2 in ids:
                    ids = ids[: ids.index(2)]
                return [words[id] for id in ids if id > 3]
            """,
            "It works while the specials are 0 to 3 and not with other ids. Look them up in the vocabulary by name.",
            SPECIAL,
        ),
        _coded(
            "words by their place",
            """
            def decode(ids, vocab):
                words = list(vocab)
                tokens = []
                for id in ids:
                    if words[id] == "<eos>":
                        break
                    if words[id] not in ("<pad>", "<bos>", "<eos>", "<unk>"):
                        tokens.append(words[id])
                return tokens
            """,
            "You took the id-th word of the dictionary. That is its order of writing, which need not be the order of the ids: turn the dictionary around.",
            ENCODE,
        ),
        _coded(
            "<eos> must be there",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                ids = ids[: ids.index(vocab["<eos>"])]
                return [words[id] for id in ids if words[id] not in ("<pad>", "<bos>", "<eos>", "<unk>")]
            """,
            "A list without <eos> stops your code. A model that runs out of time never wrote one; then all of the text counts.",
            SPECIAL,
        ),
        _coded(
            "the last id dropped",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids[:-1]:
                    if words[id] == "<eos>":
                        break
                    if words[id] not in ("<pad>", "<bos>", "<eos>", "<unk>"):
                        tokens.append(words[id])
                return tokens
            """,
            "The last id was dropped as if it were always <eos>. When there is none, that is a word.",
            SPECIAL,
        ),
        _coded(
            "text instead of tokens",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids:
                    if words[id] == "<eos>":
                        break
                    if words[id] not in ("<pad>", "<bos>", "<eos>", "<unk>"):
                        tokens.append(words[id])
                return " ".join(tokens)
            """,
            "The words came back glued into one text. Here they stay a list of tokens: how tokens become text is another question, and pieces of words need another answer.",
            ENCODE,
        ),
        _coded(
            "<eos> after every word",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = []
                for token in tokens:
                    ids.append(vocab.get(token, vocab["<unk>"]))
                    if add_eos:
                        ids.append(vocab["<eos>"])
                return ids
            """,
            "<eos> stands after every word: it was added inside the loop. It comes once, when all words are done.",
            ENCODE,
            _returned,
        ),
        _coded(
            "the first id taken for <bos>",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids[1:]:
                    if words[id] == "<eos>":
                        break
                    if words[id] not in ("<pad>", "<bos>", "<eos>", "<unk>"):
                        tokens.append(words[id])
                return tokens
            """,
            "The first id was dropped, whatever it is. It need not be <bos>: look at each id.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "only pads dropped",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                return [words[id] for id in ids if words[id] != "<pad>"]
            """,
            "Of the special tokens only <pad> was dropped. None of the four belongs to the text, and the first <eos> ends it.",
            SPECIAL,
            _returned,
        ),
        _coded(
            "one of each special dropped",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = [words[id] for id in ids]
                tokens = tokens[: tokens.index("<eos>")] if "<eos>" in tokens else tokens
                for special in ("<pad>", "<bos>", "<unk>"):
                    if special in tokens:
                        tokens.remove(special)
                return tokens
            """,
            "Of each special token only the first was dropped: remove takes out one. They may stand there several times.",
            SPECIAL,
        ),
        _coded(
            "ids below 4 dropped",
            """
            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids:
                    if words[id] == "<eos>":
                        break
                    if id >= 4:
                        tokens.append(words[id])
                return tokens
            """,
            "You took every id below 4 for a special one. Where the vocabulary numbers them otherwise, words are lost or specials stay: look their ids up.",
            SPECIAL,
        ),
        known(
            "all usual ids written in",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = [vocab.get(token, 3) for token in tokens]
                return ids + [2] if add_eos else ids

            def decode(ids, vocab):
                words = {id: word for word, id in vocab.items()}
                tokens = []
                for id in ids:
                    if id == 2:
                        break
                    if id > 3:
                        tokens.append(words[id])
                return tokens
            """,
            "Both functions have the ids 0 to 3 written in. Another vocabulary numbers its special tokens otherwise: look them up by name.",
            SPECIAL,
        ),
        _coded(
            "the caller's vocabulary changed",
            """
            def decode(ids, vocab):
                end = vocab["<eos>"]
                specials = [vocab.pop(special) for special in ("<pad>", "<bos>", "<eos>", "<unk>")]
                words = {id: word for word, id in vocab.items()}
                ids = ids[: ids.index(end)] if end in ids else ids
                return [words[id] for id in ids if id not in specials]
            """,
            "Your function took the special tokens out of the caller's vocabulary (pop, del). The next call would miss them.",
            SPECIAL,
        ),
    ),
    variants=(
        right("comprehension and loop", _ENCODE + _DECODE),
        right(
            "plain loops",
            """
            def encode(tokens, vocab, add_eos=True):
                ids = []
                for token in tokens:
                    if token in vocab:
                        ids.append(vocab[token])
                    else:
                        ids.append(vocab["<unk>"])
                if add_eos:
                    ids.append(vocab["<eos>"])
                return ids

            def decode(ids, vocab):
                result = []
                for number in ids:
                    for word in vocab:
                        if vocab[word] == number:
                            found = word
                    if found == "<eos>":
                        return result
                    if not (found.startswith("<") and found.endswith(">")):
                        result.append(found)
                return result
            """,
        ),
        right(
            "try and except",
            """
            def encode(words, table, end=True):
                numbers = []
                for word in words:
                    try:
                        numbers.append(table[word])
                    except KeyError:
                        numbers.append(table["<unk>"])
                return numbers + end * [table["<eos>"]]

            def decode(numbers, table):
                back = dict(zip(table.values(), table.keys()))
                hidden = {table[s] for s in ("<pad>", "<bos>", "<eos>", "<unk>")}
                try:
                    numbers = numbers[: numbers.index(table["<eos>"])]
                except ValueError:
                    pass
                return [back[n] for n in numbers if n not in hidden]
            """,
        ),
        right(
            "itertools",
            """
            from collections import defaultdict
            from itertools import takewhile

            def encode(tokens, vocab, add_eos=True):
                table = defaultdict(lambda: vocab["<unk>"], vocab)
                return list(map(table.__getitem__, tokens + ["<eos>"] * bool(add_eos)))

            def decode(ids, vocab):
                inverse = {i: t for t, i in vocab.items() if t not in {"<pad>", "<bos>", "<unk>"}}
                words = takewhile(lambda t: t != "<eos>", (inverse.get(i) for i in ids))
                return [word for word in words if word]
            """,
        ),
        right(
            "generator and while",
            """
            def encode(tokens, vocab, add_eos=True):
                def numbers():
                    for token in tokens:
                        yield vocab.get(token, vocab.get("<unk>"))
                    if add_eos:
                        yield vocab["<eos>"]
                return tuple(numbers())

            def decode(ids, vocab):
                inverse, tokens, place = {i: t for t, i in vocab.items()}, [], 0
                while place < len(ids) and ids[place] != vocab["<eos>"]:
                    tokens += [inverse[ids[place]]]
                    place += 1
                return list(filter(lambda t: t not in "<pad> <bos> <unk>".split(), tokens))
            """,
        ),
    ),
    hints=(
        "a dictionary can be asked for a key that may be missing, and it can be turned around.",
        "encode: n tokens give n or n + 1 ids. decode: find the first <eos>, keep what stands before it, leave the special tokens out.",
        "encode: for each token its id, or that of <unk>; then <eos> if asked. decode: turn the dictionary around; for each id: stop at <eos>, skip specials, else keep the word.",
    ),
)

# ------------------------------------------------------------------------------------------------ 02.3 pad_batch


def pad_batch(seqs: list, pad: int) -> Tensor:
    """The sequences as rows, filled up with pad at the end."""
    return pad_sequences(seqs, pad)


def _sequences(g: torch.Generator, *lengths: int) -> list[list[int]]:
    return [torch.randint(3, 90, (length,), generator=g).tolist() for length in lengths]


def _with_zeros(g: torch.Generator) -> Case:
    sequences = _sequences(g, 4, 6, 2)
    sequences[0][1] = sequences[1][0] = sequences[2][1] = 0
    return Case((sequences, 95))


_FULL = """
def pad_batch(seqs, pad):
    out = torch.full((len(seqs), max(len(s) for s in seqs)), pad{dtype})
    for row, seq in enumerate(seqs):
        out[row, {where}] = torch.as_tensor({what})
    return out{end}
"""


def _full(where: str = ":len(seq)", what: str = "seq", dtype: str = "", end: str = "") -> str:
    return _FULL.format(where=where, what=what, dtype=dtype, end=end)


def _second_row(evidence: Evidence) -> str:
    return f"Your row 1 is {evidence.got[1].tolist()}; it should be {evidence.expected[1].tolist()}."


PAD_EXERCISE = Exercise(
    id="pad-batch",
    number="02.3",
    names=("pad_batch",),
    visible_points=1,
    hidden_points=3,
    section=PAD,
    reference={"pad_batch": pad_batch},
    probes=(
        Probe(
            "three sentences",
            lambda g: Case(([[4, 5, 6, 7, 2], [6, 7, 2], [4, 8, 5, 2]], 0)),
            hidden=False,
        ),
        Probe("pad = 9", lambda g: Case(([[4, 2], [5, 6, 8, 3, 2, 7], [2]], 9)), hidden=False),
        Probe(
            "tensors instead of lists",
            lambda g: Case(([torch.tensor(row) for row in _sequences(g, 3, 7, 5, 1)], 91)),
        ),
        Probe("the longest comes last", lambda g: Case((_sequences(g, 2, 3, 5, 11), 92))),
        Probe("real tokens with id 0", _with_zeros),
        Probe("pad = -100", lambda g: Case((_sequences(g, 5, 2, 4), -100))),
        Probe("one sentence", lambda g: Case((_sequences(g, 6), 93))),
        Probe("no padding needed", lambda g: Case((_sequences(g, 4, 4, 4), 94))),
        Probe("one long sentence among short ones", lambda g: Case((_sequences(g, 1, 1, 40), 96))),
        Probe("nothing else is touched", lambda g: Case((_sequences(g, 4, 2, 6, 3), 97)), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "pads on the left",
            _full(where="out.shape[1] - len(seq):"),
            """Row 1 starts with pads, so the first word no longer stands at position 0, and from chapter 07 on positions
            have a meaning. The tokens come first, the pads after them.""",
            PAD,
            _second_row,
        ),
        known(
            "cut to the shortest",
            """
            def pad_batch(seqs, pad):
                shortest = min(len(s) for s in seqs)
                return torch.stack([torch.as_tensor(s[:shortest]) for s in seqs])
            """,
            "The sentences were cut to the shortest one. Words are never thrown away here: short sentences grow, long ones stay.",
            PAD,
            sizes,
        ),
        known(
            "as wide as the first",
            """
            def pad_batch(seqs, pad):
                width = len(seqs[0])
                rows = [list(s[:width]) + [pad] * (width - len(s)) for s in seqs]
                return torch.tensor(rows)
            """,
            "Your rows are as long as the *first* sentence. When a later one is longer it loses words. The longest decides.",
            PAD,
            sizes,
        ),
        known(
            "as wide as the last",
            """
            def pad_batch(seqs, pad):
                width = len(seqs[-1])
                rows = [list(s[:width]) + [pad] * (width - len(s)) for s in seqs]
                return torch.tensor(rows)
            """,
            "Your rows are as long as the *last* sentence. The longest decides, wherever it stands.",
            PAD,
            sizes,
        ),
        known(
            "0 written in",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [0] * (width - len(s)) for s in seqs])
            """,
            "You filled up with 0 whatever pad is. Here 0 may be a word of its own.",
            PAD,
            lambda e: f"With pad = {e.arguments[1]} your row 0 is {e.got[0].tolist()}.",
        ),
        known(
            "every 0 replaced",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                out = torch.tensor([list(s) + [0] * (width - len(s)) for s in seqs])
                out[out == 0] = pad
                return out
            """,
            "A real token whose id is 0 was turned into a pad. Filling with 0 first and replacing the zeros later cannot tell the two apart.",
            PAD,
        ),
        known(
            "float",
            """
            def pad_batch(seqs, pad):
                out = torch.zeros(len(seqs), max(len(s) for s in seqs)) + pad
                for row, seq in enumerate(seqs):
                    out[row, :len(seq)] = torch.as_tensor(seq)
                return out
            """,
            "Your ids are float32. They are numbers of rows, and there is no row 4.0: a lookup needs integers, in torch the dtype long (int64).",
            EMBED,
        ),
        known(
            "int32",
            _full(dtype=", dtype=torch.int32"),
            "Your ids are int32. Long (int64) is what torch's own functions expect, for example as labels of a loss.",
            EMBED,
        ),
        known(
            "always the same width",
            """
            def pad_batch(seqs, pad):
                width = 10
                return torch.tensor([(list(s) + [pad] * width)[:width] for s in seqs])
            """,
            """Your rows are 10 long, whatever the batch. Every pad is computed for nothing, and a sentence beyond the fixed
            width is cut. The longest sentence *of this batch* decides.""",
            PAD,
            sizes,
        ),
        known(
            "one pad too many",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs) + 1
                return torch.tensor([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
            "Every row ends in one pad more than it needs: the longest sentence needs none.",
            PAD,
            sizes,
        ),
        known(
            "time before batch",
            """
            def pad_batch(seqs, pad):
                tensors = [torch.as_tensor(s) for s in seqs]
                return torch.nn.utils.rnn.pad_sequence(tensors, padding_value=pad)
            """,
            "The sentences stand in the columns: time came first. That is the library's default; this course has the batch first, one sentence a row.",
            PAD,
            sizes,
        ),
        known(
            "sorted by length",
            """
            def pad_batch(seqs, pad):
                seqs = sorted(seqs, key=len, reverse=True)
                width = len(seqs[0])
                return torch.tensor([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
            "The sentences changed places: the longest now comes first. Row i belongs to sentence i, or its translation would no longer be beside it.",
            PAD,
        ),
        known(
            "repeated instead of padded",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([(list(s) * width)[:width] for s in seqs])
            """,
            "The short sentences were filled up with their own words, begun again. A model would read them as text; only pad can be recognized and hidden.",
            PAD,
            _second_row,
        ),
        known(
            "filled with the last word",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [s[-1]] * (width - len(s)) for s in seqs])
            """,
            "The short sentences were filled up with their last token. A model would read it as text; only pad can be recognized and hidden.",
            PAD,
            _second_row,
        ),
        known(
            "not padded at all",
            """
            def pad_batch(seqs, pad):
                return torch.tensor(seqs)
            """,
            "torch.tensor wants a rectangle, and sentences are not equally long. Make the lists equally long first.",
            PAD,
        ),
        known(
            "only lists",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([s + [pad] * (width - len(s)) for s in seqs])
            """,
            "Lists work, tensors do not: + joins two lists, but on a tensor it adds numbers. The sequences may come as either.",
            PAD,
        ),
        known(
            "only tensors",
            """
            def pad_batch(seqs, pad):
                return torch.nn.utils.rnn.pad_sequence(seqs, batch_first=True, padding_value=pad)
            """,
            "The library's function wants tensors, and the sequences may come as plain lists. Make tensors of them first.",
            PAD,
        ),
        known(
            "a numpy array",
            """
            import numpy as np

            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return np.array([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
            "A numpy array came back. The numbers are right, but a batch is a torch tensor of dtype long.",
            PAD,
        ),
        known(
            "one pad only",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [pad] if len(s) < width else list(s) for s in seqs])
            """,
            "Each short sentence got one pad, so the rows still differ in length. As many are needed as are missing.",
            PAD,
        ),
        known(
            "a list of lists",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return [[int(n) for n in s] + [pad] * (width - len(s)) for s in seqs]
            """,
            "The rows are right, but they are still lists. A batch is one tensor of dtype long.",
            PAD,
        ),
        known(
            "the caller's lists changed",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                rows = []
                for seq in seqs:
                    seq = seq.tolist() if isinstance(seq, torch.Tensor) else seq
                    while len(seq) < width:
                        seq.append(pad)
                    rows.append(seq)
                return torch.tensor(rows)
            """,
            "The pads were written into the caller's own lists, where they stay. append, extend and += change a list; + makes a new one.",
            PAD,
        ),
        known(
            "the caller's lists changed, and no tensors",
            """
            def pad_batch(seqs, pad):
                width = max(len(seq) for seq in seqs)
                for seq in seqs:
                    while len(seq) < width:
                        seq.append(pad)
                return torch.tensor(seqs)
            """,
            "The pads were written into the caller's own lists, where they stay; and a sequence may come as a tensor, which has no append.",
            PAD,
        ),
        known(
            "no room beyond the first",
            _full().replace("max(len(s) for s in seqs)", "len(seqs[0])"),
            "Your rectangle is as wide as the *first* sentence, and a longer one does not fit in. The longest decides.",
            PAD,
        ),
        known(
            "the greatest taken for the longest",
            _full().replace("max(len(s) for s in seqs)", "len(max(seqs))"),
            "max compares lists by their first numbers, not by their lengths, so the width is that of another sentence. The longest decides.",
            PAD,
        ),
        known(
            "stops after the first row",
            _full().replace("    return out", "        return out"),
            "Only the first row was filled: a `return` inside the loop ends all of it.",
            PAD,
        ),
        known(
            "last token lost",
            _full(where=": len(seq) - 1", what="seq[:-1]"),
            "The last token of every sentence is missing; a pad stands in its place. A slice stops *before* its end.",
            PAD,
            _second_row,
        ),
        known(
            "a single sentence loses its row",
            _full(end=".squeeze()"),
            "With one sentence the result has one axis. squeeze throws away every axis of size 1; a batch of one is still (1, T).",
            PAD,
        ),
    ),
    variants=(
        right(
            "lists, then a tensor",
            """
            def pad_batch(seqs, pad):
                width = max(len(s) for s in seqs)
                return torch.tensor([list(s) + [pad] * (width - len(s)) for s in seqs])
            """,
        ),
        right("full and slice", _full(dtype=", dtype=torch.long")),
        right("full and slice, dtype by itself", _full()),
        right(
            "pad_sequence",
            """
            from torch.nn.utils.rnn import pad_sequence

            def pad_batch(sequences, value):
                return pad_sequence([torch.as_tensor(s) for s in sequences], batch_first=True, padding_value=value)
            """,
        ),
        right(
            "F.pad and stack",
            """
            def pad_batch(seqs, pad):
                tensors = [torch.as_tensor(s, dtype=torch.long) for s in seqs]
                longest = max(t.numel() for t in tensors)
                return torch.stack([F.pad(t, (0, longest - t.numel()), value=pad) for t in tensors])
            """,
        ),
        right(
            "zip_longest",
            """
            from itertools import zip_longest

            def pad_batch(seqs, pad):
                columns = zip_longest(*[[int(n) for n in s] for s in seqs], fillvalue=pad)
                return torch.tensor(list(columns)).T
            """,
        ),
        right(
            "cell by cell",
            """
            def pad_batch(seqs, pad):
                longest = 0
                for s in seqs:
                    longest = max(longest, len(s))
                out = torch.empty(len(seqs), longest, dtype=torch.int64)
                for i in range(len(seqs)):
                    for j in range(longest):
                        out[i, j] = seqs[i][j] if j < len(seqs[i]) else pad
                return out
            """,
        ),
    ),
    hints=(
        "who decides how wide the rectangle is, and what stands in the cells that no sentence reaches?",
        "B lists of different lengths become (B, T), T the length of the longest, dtype long. Each row: its tokens, then pads.",
        "T = the largest length; for each sentence make a new row: the tokens, then T minus its length pads; turn the rows into one tensor.",
    ),
)

# ------------------------------------------------------------------------------------------------ 02.4 embed


def embed(ids: Tensor, W: Tensor, scale: bool = True) -> Tensor:
    """Row ids[b, t] of W at place (b, t), times the root of D if asked (Vaswani et al. 2017, section 3.4)."""
    vectors = torch.nn.functional.embedding(ids, W)
    return vectors * math.sqrt(W.shape[1]) if scale else vectors


TABLE = torch.tensor(
    [
        [0.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 2.0, 0.0],
        [0.5, -1.0, 0.0, 3.0],
        [2.0, 1.0, -1.0, 0.5],
        [0.0, 4.0, 1.0, -2.0],
        [1.5, 0.5, 0.0, 1.0],
    ]
)


def _ids(g: torch.Generator, vocabulary: int, *shape: int) -> Tensor:
    return torch.randint(vocabulary, shape, generator=g)


def _gradient_case(g: torch.Generator) -> Case:
    """Repeated ids, id 0 among them, and rows that nobody asks for."""
    ids = _ids(g, 7, 2, 5)
    ids[0, :3] = torch.tensor([0, 4, 0])
    return Case((ids, normal(g, 9, 6, dtype=torch.float64)))


_EMBED = """
def embed(ids, W, scale=True):
    vectors = {lookup}
    return {result}
"""


def _embed(lookup: str = "W[ids]", result: str = "vectors * W.shape[1] ** 0.5 if scale else vectors") -> str:
    return _EMBED.format(lookup=lookup, result=result)


def _norms(evidence: Evidence) -> str:
    got, wanted = (tensor.flatten(0, -2)[0].norm().item() for tensor in (evidence.got, evidence.expected))
    return f"The first vector's length came back as {got:.3f}; it should be {wanted:.3f}."


EMBED_EXERCISE = Exercise(
    id="embed",
    number="02.4",
    names=("embed",),
    visible_points=1,
    hidden_points=3,
    section=EMBED,
    reference={"embed": embed},
    probes=(
        Probe("three words, D = 4", lambda g: Case((torch.tensor([[1, 4, 2]]), TABLE)), hidden=False),
        Probe("without scale", lambda g: Case((torch.tensor([[3, 1], [2, 3], [4, 4]]), TABLE, False)), hidden=False),
        Probe(
            "two sentences of three words, D = 9",
            lambda g: Case((torch.tensor([[4, 0, 2], [1, 1, 3]]), normal(g, 7, 9))),
            hidden=False,
        ),
        Probe("other sizes", lambda g: Case((_ids(g, 11, 3, 5), normal(g, 11, 16)))),
        Probe("other sizes, without scale", lambda g: Case((_ids(g, 8, 2, 7), normal(g, 8, 5), False))),
        Probe("as many words as features", lambda g: Case((_ids(g, 6, 2, 4), normal(g, 6, 6)))),
        Probe("one word, D = 1", lambda g: Case((_ids(g, 5, 1, 1), normal(g, 5, 1)))),
        Probe("a wide table", lambda g: Case((_ids(g, 30, 2, 3), normal(g, 30, 512)))),
        Probe(
            "float64, transposed in memory",
            lambda g: Case((turned(_ids(g, 9, 2, 4)), turned(normal(g, 9, 6, dtype=torch.float64)))),
        ),
        Probe("gradients", _gradient_case, also=GRADIENTS),
        Probe("nothing else is touched", lambda g: Case((_ids(g, 9, 2, 4), normal(g, 9, 5))), also=UNTOUCHED),
    ),
    misconceptions=(
        known(
            "divided by the root of D",
            _embed(result="vectors / W.shape[1] ** 0.5 if scale else vectors"),
            "The vectors were divided by the root of D. The scores of chapter 05 are divided; embeddings are *multiplied*, to stand up to the positions added to them.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by D",
            _embed(result="vectors * W.shape[1] if scale else vectors"),
            "The vectors were multiplied by D itself. The root of D is what brings numbers of size 1/√D back to size 1.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by the root of the vocabulary",
            _embed(result="vectors * W.shape[0] ** 0.5 if scale else vectors"),
            "The root is of the wrong size: you took the number of *rows*, V. A vector would grow when the vocabulary does. Its own number of features, D, counts.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by the root of the length",
            _embed(result="vectors * ids.shape[1] ** 0.5 if scale else vectors"),
            "The root is of the sentence's length. A word would get another vector in a longer sentence. Its number of features, D, counts.",
            SCALE,
            _norms,
        ),
        known(
            "half of D",
            _embed(result="vectors * W.shape[1] / 2 if scale else vectors"),
            "The vectors were multiplied by half of D. At D = 4 the root and the half are both 2; at D = 9 they are 3 and 4.5.",
            SCALE,
            _norms,
        ),
        known(
            "root rounded",
            _embed(result="vectors * int(W.shape[1] ** 0.5) if scale else vectors"),
            "The root of D was cut to a whole number. That is right when D is a square, such as 4 or 9, and not otherwise.",
            SCALE,
        ),
        known(
            "root added",
            _embed(result="vectors + W.shape[1] ** 0.5 if scale else vectors"),
            "The root of D was added to every number. It is a factor: it makes a vector longer and keeps its direction.",
            SCALE,
            first,
        ),
        known(
            "scale forgotten",
            _embed(result="vectors"),
            "The rows are the right ones, and they are not scaled: scale = True multiplies them by the root of D.",
            SCALE,
            first,
        ),
        known(
            "always scaled",
            _embed(result="vectors * W.shape[1] ** 0.5"),
            "With scale = False the vectors were scaled all the same. Then they are the rows of W as they stand.",
            SCALE,
            first,
        ),
        known(
            "scale and no scale exchanged",
            _embed(result="vectors if scale else vectors * W.shape[1] ** 0.5"),
            "The two cases are exchanged: scale = True came back as it stands, scale = False was multiplied.",
            SCALE,
            first,
        ),
        known(
            "brought to length 1",
            _embed(result="F.normalize(vectors, dim=-1) * W.shape[1] ** 0.5 if scale else vectors"),
            "Every vector was first brought to length 1. How long a vector is says something too, and one factor for all keeps it.",
            SCALE,
            _norms,
        ),
        known(
            "columns instead of rows",
            _embed(lookup="W[:, ids].permute(1, 2, 0)"),
            "You took columns of W. A column is one feature of *all* words; a word's vector is a row.",
            EMBED,
            sizes,
        ),
        known(
            "columns, not even turned",
            _embed(lookup="W[:, ids]"),
            "W[:, ids] takes columns, and puts the axis it kept in front. A word's vector is a *row* of W.",
            EMBED,
            sizes,
        ),
        known(
            "ids counted from 1",
            _embed(lookup="W[ids - 1]"),
            "Every word got the row before its own: id 1 came back as row 0. Ids count from 0, as rows do.",
            EMBED,
            first,
        ),
        known(
            "time before batch",
            _embed(lookup="W[ids.T]"),
            "The two axes of ids changed places. They stay: the batch first, then the words.",
            EMBED,
            sizes,
        ),
        known(
            "batch flattened",
            _embed(lookup="W[ids.flatten()]"),
            "All sentences became one long list of vectors. The two axes of ids stay: (B, T) becomes (B, T, D).",
            EMBED,
            sizes,
        ),
        known(
            "first sentence only",
            _embed(lookup="W[ids[0]]"),
            "Only the first sentence was looked up, and the batch axis is gone: (B, T) becomes (B, T, D).",
            EMBED,
            sizes,
        ),
        known(
            "words averaged",
            _embed(lookup="W[ids].mean(dim=1)"),
            "One vector for the whole sentence came back, the mean of its words. Here every word keeps its own.",
            EMBED,
            sizes,
        ),
        known(
            "one-hot without its width",
            _embed(lookup="F.one_hot(ids).to(W.dtype) @ W"),
            "The one-hot rows are as wide as the largest id in this batch, plus one. They must have one place for every row of W.",
            EMBED,
        ),
        known(
            "one-hot of integers",
            _embed(lookup="F.one_hot(ids, W.shape[0]) @ W"),
            "A product of integers (one-hot) with floats (W) is refused. Give both the same dtype.",
            EMBED,
        ),
        known(
            "a new table instead of W",
            _embed(lookup="nn.Embedding(W.shape[0], W.shape[1])(ids)"),
            "Your result does not depend on W: a fresh table of random numbers was made and used. Use the W that was passed in.",
            EMBED,
            first,
        ),
        known(
            "cut off from the gradient",
            _embed(lookup="W.data[ids]"),
            """The values are right, but no gradient reaches W: something on the way cut the graph (.data, .detach(), no_grad,
            numpy, torch.tensor around a tensor, or a layer that keeps a copy of W as a weight of its own). This table is
            the first thing that learns.""",
            EMBED,
        ),
        known(
            "row 0 frozen",
            _embed(lookup="F.embedding(ids, W, padding_idx=0)"),
            "padding_idx = 0 keeps the gradient away from row 0. Which id is a pad was not said here; every row that was used learns.",
            EMBED,
        ),
        known(
            "always float32",
            _embed(lookup="W.float()[ids]"),
            "float64 went in and float32 came out. The result keeps the dtype of W.",
            EMBED,
        ),
        known(
            "W changed in place",
            """
            def embed(ids, W, scale=True):
                if scale:
                    with torch.no_grad():
                        W *= W.shape[1] ** 0.5
                return W[ids]
            """,
            "Your function changed the caller's W: *= writes into the table that was passed in, and every call would make it larger. Scale what you looked up.",
            SCALE,
        ),
        known(
            "factor of the example",
            _embed(result="vectors * 2 if scale else vectors"),
            "The factor 2 is the root of D = 4. Here D is another: it is the last size of W.",
            SCALE,
        ),
        known(
            "factor of the paper's model",
            _embed(result="vectors * math.sqrt(512) if scale else vectors"),
            "The factor is the root of 512, the size in the paper's model. D is the last size of the W that was passed in.",
            SCALE,
            _norms,
        ),
        known(
            "multiplied by D squared",
            _embed(result="vectors * W.shape[1] ** 2 if scale else vectors"),
            "The vectors were multiplied by the *square* of D. The root is wanted.",
            SCALE,
            _norms,
        ),
        known(
            "row 0 taken for padding",
            _embed(lookup="W[ids] * (ids != 0).unsqueeze(-1)"),
            "Row 0 came back as zeros. Which id is a pad was not said here: every id gets its row.",
            EMBED,
        ),
        known(
            "axes of size 1 lost",
            _embed(lookup="W[ids].squeeze()"),
            "squeeze throws away every axis of size 1. A batch of one sentence is still a batch: (1, T, D).",
            EMBED,
            sizes,
        ),
        known(
            "W changed in place, where gradients stop it",
            """
            def embed(ids, W, scale=True):
                if scale:
                    W *= W.shape[1] ** 0.5
                return W[ids]
            """,
            "*= and mul_ write into the caller's W, and every call would make it larger; where W learns, torch forbids it with an error. Scale what you looked up.",
            SCALE,
        ),
    ),
    variants=(
        right("index", _embed()),
        right(
            "F.embedding",
            """
            def embed(tokens, table, scaled=True):
                x = F.embedding(tokens, table)
                return x * math.sqrt(table.size(-1)) if scaled else x
            """,
        ),
        right(
            "one-hot product",
            """
            def embed(ids, W, scale=True):
                x = F.one_hot(ids, len(W)).to(W.dtype) @ W
                return W.shape[1] ** 0.5 * x if scale else x
            """,
        ),
        right(
            "index_select",
            """
            def embed(ids, W, scale=True):
                x = torch.index_select(W, 0, ids.reshape(-1)).reshape(*ids.shape, W.shape[1])
                return x * torch.tensor(W.shape[1]).sqrt() if scale else x
            """,
        ),
        right(
            "table scaled first",
            "def embed(ids, W, scale=True):\n    return (W * W.shape[1] ** 0.5 if scale else W)[ids]\n",
        ),
        right(
            "loops",
            """
            def embed(ids, W, scale=True):
                factor = math.sqrt(W.shape[1]) if scale else 1
                return torch.stack([torch.stack([W[i] * factor for i in row]) for row in ids])
            """,
        ),
        right(
            "nn.Embedding around W",
            """
            def embed(ids, W, scale=True):
                factor = W.shape[1] ** (0.5 if scale else 0)
                table = nn.Embedding.from_pretrained(W, freeze=False)
                return torch.func.functional_call(table, {"weight": W}, (ids,)) * factor
            """,
        ),
        right(
            "gather",
            """
            def embed(ids, W, scale=True):
                index = ids.reshape(-1, 1).expand(-1, W.size(1))
                return torch.gather(W, 0, index).view(*ids.shape, W.size(1)) * (W.size(1) ** 0.5 if scale else 1.0)
            """,
        ),
    ),
    hints=(
        "one word, one row: what do you get when you index a matrix with a tensor of ids?",
        "ids (B, T) choose rows of W (V, D): the result is (B, T, D). D is the last size of W.",
        "vectors = the rows of W at ids; if scale is on, multiply them by the root of D; return them.",
    ),
)

# ------------------------------------------------------------------------------------------------ 02.5 bpe_train

CORPUS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


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


TRAIN_EXERCISE = Exercise(
    id="bpe-train",
    number="02.5",
    names=("bpe_train",),
    visible_points=2,
    hidden_points=4,
    section=TRAIN,
    reference={"bpe_train": bpe_train},
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
    misconceptions=(
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
    variants=(
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

# ------------------------------------------------------------------------------------------------ 02.6 bpe_encode

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


CUT_EXERCISE = Exercise(
    id="bpe-encode",
    number="02.6",
    names=("bpe_encode",),
    visible_points=1,
    hidden_points=4,
    section=CUT,
    reference={"bpe_encode": bpe_encode},
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
    misconceptions=(
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
    variants=(
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

ASSIGNMENT = Assignment(
    id="02_text_to_vectors",
    notebook="text_to_vectors",
    exercises=(
        BUILD_EXERCISE,
        CODE_EXERCISE,
        PAD_EXERCISE,
        EMBED_EXERCISE,
        TRAIN_EXERCISE,
        CUT_EXERCISE,
    ),
    visible_modules=(),
)
