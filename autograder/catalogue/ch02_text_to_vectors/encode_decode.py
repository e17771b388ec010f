"""02.2 encode, decode."""

from textwrap import dedent

import torch

from autograder.catalogue.ch02_text_to_vectors.shared import SPECIALS, _choose, _letters, _returned, sections
from autograder.catalogue.exercise import Case, Exercise, Misconception, Probe, Section
from autograder.catalogue.parts import UNTOUCHED, known, right

ENCODE, PAD, SPECIAL = sections("encode pad specials")

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


EXERCISE = Exercise(
    id="encode-decode",
    number="02.2",
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
    wrong=(
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
    right=(
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
