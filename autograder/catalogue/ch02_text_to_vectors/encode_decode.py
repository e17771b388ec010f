"""02.2: from words to ids, and back to words."""

import torch

from autograder.catalogue.ch02_text_to_vectors.shared import SPECIALS, choose, letters, returned, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, second_call, visible

ENCODE, PAD, SPECIAL = sections("encode pad specials")

WORDS_TO_IDS = {token: id for id, token in enumerate([*SPECIALS, "I", "closed", "the", "windows"])}


def encode(tokens: list[str], vocab: dict[str, int], add_eos: bool = True) -> list[int]:
    """One id a token, <unk> where there is none, and <eos> at the end if add_eos is True."""
    ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
    return [*ids, vocab["<eos>"]] if add_eos else ids


def decode(ids: list[int], vocab: dict[str, int]) -> list[str]:
    """The ordinary tokens before the first <eos>."""
    tokens = {id: token for token, id in vocab.items()}
    before = ids[: ids.index(vocab["<eos>"])] if vocab["<eos>"] in ids else ids
    return [tokens[id] for id in before if tokens[id] not in SPECIALS]


def drawn(g: torch.Generator, tokens: str, zero: str = "ab") -> tuple[list[str], dict[str, int]]:
    """The tokens with random letters, and a vocabulary in which special tokens have unusual ids and places, and the
    word ab, or the token `zero`, has 0."""
    plain = ("ab", "ba", "cab", "dab", "eab")
    words = letters(g, *plain)
    numbers = [0, *choose(g, 10, 40, len(words) + 4)]
    entries = [words[0], "<pad>", "<unk>", *words[1:], "<bos>", ".", "<eos>"]
    spelled = dict(zip(plain, words, strict=True))
    vocab = dict(zip(entries, numbers, strict=True))
    first = spelled.get(zero, zero)
    vocab[words[0]], vocab[first] = vocab[first], 0
    return [spelled.get(token, token) for token in tokens.split()], vocab


def to_encode(g: torch.Generator, tokens: str, *add_eos: bool, zero: str = "ab") -> Case:
    words, vocab = drawn(g, tokens, zero)
    return Case((words, vocab, *add_eos))


def to_decode(g: torch.Generator, tokens: str, zero: str = "ab") -> Case:
    words, vocab = drawn(g, tokens, zero)
    return Case(([vocab[word] for word in words], vocab), function="decode")


def like_special(g: torch.Generator) -> Case:
    """A sentence with words that look like a special token, or like a part of one, but are ordinary words."""
    words, vocab = drawn(g, "ba ab <unk> ba")
    ordinary = ("<3", "->", "<br>", "<div>", "<mask>", "pad", "a")
    for word in ordinary:
        vocab[word] = max(vocab.values()) + 1
    return Case(([vocab[word] for word in (*words, *ordinary)], vocab), function="decode")


ENCODING = """
    def encode(tokens, vocab, add_eos=True):
        ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]
        return ids + [vocab["<eos>"]] if add_eos else ids
"""
def is_another_token(evidence: Evidence) -> bool:
    """Whether every unknown word became 0, or became <pad>, <bos> or <eos>, and all else is right."""
    tokens, vocab = evidence.arguments[:2]
    if not isinstance(vocab, dict) or len(evidence.got) != len(evidence.expected):
        return False
    unknown = [token not in vocab for token in tokens] + [False] * (len(evidence.expected) - len(tokens))
    others = {got for got, here in zip(evidence.got, unknown, strict=True) if here}
    rest = [pair for *pair, here in zip(evidence.got, evidence.expected, unknown, strict=True) if not here]
    special = {0, *(vocab[token] for token in ("<pad>", "<bos>", "<eos>"))}
    return len(others) == 1 and others <= special and all(got == wanted for got, wanted in rest)


RIGHT = answer(ENCODING + """
    def decode(ids, vocab):
        words = {id: word for word, id in vocab.items()}
        tokens = []
        for id in ids:
            word = words[id]
            if word == "<eos>":
                break
            if word not in ("<pad>", "<bos>", "<unk>"):
                tokens.append(word)
        return tokens
""")
ID, IDS = 'vocab.get(token, vocab["<unk>"])', 'ids = [vocab.get(token, vocab["<unk>"]) for token in tokens]'
ENDED, WORDS = 'ids + [vocab["<eos>"]] if add_eos else ids', "words = {id: word for word, id in vocab.items()}"
IS_END, IS_PLAIN = 'word == "<eos>"', 'word not in ("<pad>", "<bos>", "<unk>")'

CUT_FIRST = answer(ENCODING + """
    def decode(ids, vocab):
        words = {id: word for word, id in vocab.items()}
        tokens = [words[id] for id in ids]
        tokens = tokens[:tokens.index("<eos>")] if "<eos>" in tokens else tokens
        return [token for token in tokens if token not in ("<pad>", "<bos>", "<unk>")]
""")
CUT = 'tokens = tokens[:tokens.index("<eos>")] if "<eos>" in tokens else tokens'
NOT_SPECIAL = ' if token not in ("<pad>", "<bos>", "<unk>")'
PLAIN_TOKENS = f"return [token for token in tokens{NOT_SPECIAL}]"

EXERCISE = Exercise(
    id="encode-decode", number="02.2", difficulty=1, minutes=15, visible_points=1, hidden_points=2,
    reference={"encode": encode, "decode": decode}, section=ENCODE,
    probes=(
        visible("encode: I closed the windows", Case((["I", "closed", "the", "windows"], WORDS_TO_IDS))),
        visible("encode: an unknown word", Case((["I", "closed", "umbrellas", "windows"], WORDS_TO_IDS))),
        visible("encode without <eos>", Case((["the", "windows", "closed"], WORDS_TO_IDS, False))),
        visible("decode: a padded sentence", Case(([1, 4, 5, 6, 7, 2, 0, 0], WORDS_TO_IDS), function="decode")),
        visible("decode: text after the first <eos>",
                Case(([6, 7, 5, 2, 4, 5, 2, 6], WORDS_TO_IDS), function="decode")),
        hidden("encode: other ids", to_encode, "eab . ba ? ab <eos> ba <eos>",
               announced_by="not always under the ids 0 to 3"),
        hidden("encode: five words without <eos>", to_encode, "cab ? ab ba cab", False, zero="<unk>",
               announced_by="unless `add_eos` is False"),
        hidden("encode: no word at all", to_encode, "", zero="<eos>", announced_by="perhaps none"),
        hidden("decode: a word that looks like a special token", like_special,
               announced_by="a word such as `<3`, `->` or `<br>` stays"),
        hidden("decode: other ids", to_decode, "<bos> dab ab eab <eos> <pad> <pad>",
               announced_by="not always under the ids 0 to 3"),
        hidden("decode: special tokens in between", to_decode, "<bos> cab <unk> ab <pad> <unk> <pad> ba <bos> <eos>",
               announced_by="are left out"),
        hidden("decode: a word twice in a row", to_decode, "ba ba ab <eos>", announced_by="those before the *first*"),
        hidden("decode: no <eos> at all", to_decode, "ba ab ba cab " * 30, announced_by="or all if there is none"),
        hidden("decode: <eos> comes first", to_decode, "<eos> ba <eos>", zero="<eos>",
               announced_by="before the *first* `<eos>`"),
        hidden("decode: no id at all", to_decode, "", announced_by="perhaps empty"),
        second_call(to_encode, "eab ba ? ab ba " * 20, name="encode: a second call; nothing else is touched"),
        second_call(to_decode, "<bos> dab ab eab <eos> <pad> <pad>",
                    name="decode: a second call; nothing else is touched"),
    ),
    omits={"precision": "ids are looked up, never computed with"},
    mistakes=(
        mistake("unknown word crashes", RIGHT.but(ID, "vocab[token]"), SPECIAL,
            "A word that is not in the vocabulary stops your code. It will meet such words every day: that is what "
            "<unk> is for."),
        mistake("unknown word left out", RIGHT.but(IDS, "ids = [vocab[token] for token in tokens if token in vocab]"),
                SPECIAL,
            "The unknown word vanished, and the sentence is a word shorter. It keeps its place, as <unk>.",
            quotes=returned),
        mistake("unknown word as 3", RIGHT.but('vocab["<unk>"]', "3"), SPECIAL,
            """With a different vocabulary the unknown word got the id of a different token: 3 is hard-coded. Look up
            the id of <unk> in the vocabulary."""),
        mistake("unknown word as a new number", RIGHT.but('vocab["<unk>"]', "len(vocab)"), SPECIAL,
            """The unknown word became the number of words in the vocabulary, an id that no token has. Use <unk>, and
            look up its id in the vocabulary."""),
        mistake("<eos> and <unk> exchanged",
                RIGHT.but('vocab["<unk>"]', 'vocab["<end>"]').but('vocab["<eos>"]', 'vocab["<unk>"]').but(
                  'vocab["<end>"]', 'vocab["<eos>"]'), SPECIAL,
            "<eos> and <unk> are exchanged: an unknown word becomes <unk>, and <eos> ends the sentence."),
        mistake("unknown word as 0", RIGHT.but('vocab["<unk>"]', "0"), SPECIAL,
            """The unknown word got the id of a different token, such as <pad>, or a hard-coded 0. Look up the id of
            <unk> in the vocabulary.""", quotes=returned, shows=is_another_token),
        mistake("ids by place", RIGHT.but(ID, 'list(vocab).index(token if token in vocab else "<unk>")').but(
                  'vocab["<eos>"]', 'list(vocab).index("<eos>")'), ENCODE,
            """The position of a word in the dictionary was taken for its id. They only agree if the vocabulary was
            built in this order; the id is the *value* that the dictionary holds."""),
        mistake("letters encoded", RIGHT.but("for token in tokens]", "for token in ' '.join(tokens)]"), ENCODE,
            "You looked up the *letters* of the text, and a vocabulary of words contains hardly any. tokens is already "
            "a list of words."),
        mistake("no <eos> after no word", RIGHT.but("if add_eos", "if add_eos and ids"), ENCODE,
            "A sentence of no words came back without <eos>. Its end is marked as well."),
        mistake("a word whose id is 0 taken for unknown", RIGHT.but(ID, 'vocab.get(token) or vocab["<unk>"]'), ENCODE,
            "A word of the vocabulary became <unk>: its id is 0, which `or` and `if` treat as false."),
        mistake("each word once", RIGHT.but(IS_PLAIN, IS_PLAIN + " and word not in tokens"), ENCODE,
            "A word that occurs twice in the text came back once. Every id before <eos> is a word of its own."),
        mistake("<eos> as 2", RIGHT.but('vocab["<eos>"]', "2"), SPECIAL,
            """With a different vocabulary your sentence ended in the id of a different token: 2 is hard-coded. Look up
            the id of <eos> in the vocabulary."""),
        mistake("<eos> forgotten", RIGHT.but(ENDED, "ids"), SPECIAL,
            "The end symbol is missing. Without it a model cannot know, and never learns, where a sentence ends.",
            quotes=returned),
        mistake("<eos> always", RIGHT.but(" if add_eos else ids", ""), ENCODE,
            "<eos> came although add_eos was False: the argument is never used.", quotes=returned),
        mistake("<bos> added", RIGHT.but("ids = [", 'ids = [vocab["<bos>"]] + ['), SPECIAL,
            "<bos> does not belong here. A source sentence has none; chapter 10 puts it before the decoder's input.",
            quotes=returned),
        mistake("<eos> in front", RIGHT.but('ids + [vocab["<eos>"]]', '[vocab["<eos>"]] + ids'), SPECIAL,
            "The end symbol is at the beginning. It comes after the last word.", quotes=returned),
        mistake("what append returns", RIGHT.but('ids + [vocab["<eos>"]]', 'ids.append(vocab["<eos>"])'), ENCODE,
            "None came back. Either a `return` is missing, or the result of list.append was kept, which changes the "
            "list and returns None."),
        mistake("unknown word as None", RIGHT.but(ID, "vocab.get(token)"), SPECIAL,
            """The unknown word became None: that is what get returns when it has no default. The id of <unk>
            belongs there.""", quotes=returned),
        mistake("<eos> as a word", RIGHT.but('[vocab["<eos>"]]', '["<eos>"]'), ENCODE,
            "Your list of numbers ends in the text '<eos>'. It is a token like the others: its id comes from the "
            "vocabulary.",
            quotes=returned),
        mistake("<unk> as a word", RIGHT.but(ID, 'vocab.get(token, "<unk>")'), SPECIAL,
            "Your list of numbers holds the text '<unk>' for the unknown word. Its id is needed, and it is in the "
            "vocabulary.",
            quotes=returned),
        mistake("the caller's tokens changed", RIGHT.before(IDS, 'tokens += add_eos * ["<eos>"]').but(ENDED, "ids"),
                ENCODE,
            """Your function wrote into the list of tokens that was passed in (append, += or tokens[i] = ...). Encoding
            it twice gives something else. Write into your own list."""),
        mistake("a new word added to the vocabulary", RIGHT.but(ID, "vocab.setdefault(token, len(vocab))"), SPECIAL,
            "The unknown word was given a new id. The table of vectors has no row for it: once built, a "
            "vocabulary is closed.",
            quotes=returned),
        mistake("a tensor instead of a list", RIGHT.but(ENDED, f"torch.tensor({ENDED})"), PAD,
            """A tensor came back. Sentences differ in length, so ids stay in plain lists until pad_batch makes a
            rectangle of them."""),
        mistake("decoding goes on after <eos>", RIGHT.but("break", "continue"), SPECIAL,
            """Text after the end symbol must be dropped. A model goes on producing something after it has finished, and
            that is noise.""", quotes=returned),
        mistake("the vocabulary asked for an id", RIGHT.without(WORDS).but("words[id]", "vocab[id]"), ENCODE,
            "You looked up an id in the vocabulary, but its keys are words. Invert it first: from id to word."),
        mistake("stops at every special token", RIGHT.but(IS_END, 'word in ("<pad>", "<bos>", "<eos>", "<unk>")'),
                SPECIAL,
            """Your loop ends at the first special token, whichever it is, and every text begins with <bos>. Only
            <eos> is the end; the others are passed over."""),
        mistake("all that begins like a special token dropped", RIGHT.but(IS_PLAIN, 'not word.startswith("<")'),
                SPECIAL,
            "A word that only begins with < was left out too. Four tokens are special, by their names; <3 is a word."),
        mistake("all in angle brackets dropped", RIGHT.but(IS_PLAIN, 'word[0] + word[-1] != "<>"'), SPECIAL,
            "A word in angle brackets was left out, such as <br>. Four tokens are special, by their names, and no "
            "others."),
        mistake("parts of special tokens dropped", RIGHT.but(IS_PLAIN, 'word not in "<pad><bos><unk>"'), SPECIAL,
            """Words such as pad and a were left out: `in` on a text also finds its parts, and <pad> holds both. Compare
            with whole tokens, in a list or a set."""),
        mistake("stops at padding", RIGHT.but(IS_END, 'word in ("<eos>", "<pad>")'), SPECIAL,
            "Your text ends at a <pad>. Only <eos> ends it; a pad is left out like the other special tokens."),
        mistake("up to the last <eos>",
                CUT_FIRST.but('tokens.index("<eos>")', 'len(tokens) - 1 - tokens[::-1].index("<eos>")').but(
                  '"<unk>")', '"<unk>", "<eos>")'), SPECIAL,
            "Your text runs up to the *last* <eos>. The first one ends it.", quotes=returned),
        mistake("special tokens printed", CUT_FIRST.but(NOT_SPECIAL, ""), SPECIAL,
            "You stop in time, but special tokens remain in the text. They are signs for the model; a reader never "
            "sees them.",
            quotes=returned),
        mistake("<eos> printed", CUT_FIRST.but('.index("<eos>")', '.index("<eos>") + 1'), SPECIAL,
            "The end symbol itself is in your text. It ends the sentence and is not part of it.", quotes=returned),
        mistake("<eos> and the other special tokens printed",
                CUT_FIRST.but(NOT_SPECIAL, "").but('.index("<eos>")', '.index("<eos>") + 1'), SPECIAL,
            """You stop at the first <eos>, which is right, but <eos> itself and the special tokens before it are still
            in the text. They are signs for the model; a reader never sees them.""", quotes=returned),
        mistake("everything printed", CUT_FIRST.without(CUT).but(NOT_SPECIAL, ""), SPECIAL,
            """Every id came back as its token, special ones included. The text ends at the first <eos>, and special
            tokens are not part of it.""", quotes=returned),
        mistake("<unk> printed", RIGHT.but(', "<unk>")', ")"), SPECIAL,
            "<unk> is in your text. It is special too: all four are dropped.", quotes=returned),
        mistake("<pad> printed", RIGHT.but('"<pad>", ', ""), SPECIAL,
            "<pad> is in your text. It only fills up a batch and is special, wherever it is: all four are dropped.",
            quotes=returned),
        mistake("<eos> as 2 in decode", RIGHT.but(IS_END, "id == 2"), SPECIAL,
            """With a different vocabulary your text does not end at <eos>: 2 is hard-coded in decode. Look up the id of
            <eos>, or compare the tokens themselves."""),
        mistake("stops at <unk>", RIGHT.but(IS_END, 'word in ("<eos>", "<unk>")'), SPECIAL,
            "Your text ends at an <unk>. Only <eos> ends it; an unknown word is left out, and the text goes on.",
            quotes=returned),
        mistake("special ids written in", RIGHT.but(IS_END, "id == 2").but(IS_PLAIN, "id > 3"), SPECIAL,
            "It works while the specials are 0 to 3 and not with other ids. Look them up in the vocabulary by name."),
        mistake("words by their place", RIGHT.but(WORDS, "words = list(vocab)"), ENCODE,
            """You took the id-th word of the dictionary. That is its order of writing, which need not be the order of
            the ids: invert the dictionary."""),
        mistake("<eos> must be there", CUT_FIRST.but(' if "<eos>" in tokens else tokens', ""), SPECIAL,
            "A list without <eos> stops your code. A model that runs out of time never wrote one; then all of the "
            "text counts."),
        mistake("the last id dropped", RIGHT.but("for id in ids", "for id in ids[:-1]"), SPECIAL,
            "The last id was dropped as if it were always <eos>. When there is none, that is a word."),
        mistake("text instead of tokens", RIGHT.but("return tokens", 'return " ".join(tokens)'), ENCODE,
            """The words came back glued into one text. Here they stay a list of tokens: how tokens become text is
            a different question, and pieces of words need a different answer."""),
        mistake("<eos> after every word", RIGHT.but(IDS, """
                  ids = []
                  for token in tokens:
                      ids.append(vocab.get(token, vocab["<unk>"]))
                      if add_eos:
                          ids.append(vocab["<eos>"])""").but(ENDED, "ids"), ENCODE,
            "<eos> comes after every word: it was added inside the loop. It comes once, when all words are done.",
            quotes=returned),
        mistake("the first id taken for <bos>", RIGHT.but("for id in ids", "for id in ids[1:]"), SPECIAL,
            "The first id was dropped, whatever it is. It need not be <bos>: look at each id.", quotes=returned),
        mistake("only pads dropped", CUT_FIRST.without(CUT).but('not in ("<pad>", "<bos>", "<unk>")', '!= "<pad>"'),
                SPECIAL,
            "Of the special tokens only <pad> was dropped. None of the four belongs to the text, and the first <eos> "
            "ends it.",
            quotes=returned),
        mistake("one of each special dropped", CUT_FIRST.but(PLAIN_TOKENS, """
                  for special in ("<pad>", "<bos>", "<unk>"):
                      if special in tokens:
                          tokens.remove(special)
                  return tokens"""), SPECIAL,
            "Of each special token only the first was dropped: remove takes out one. They may occur several times."),
        mistake("ids below 4 dropped", RIGHT.but(IS_PLAIN, "id >= 4"), SPECIAL,
            """You took every id below 4 for a special one. Where the vocabulary numbers them differently, words are
            lost or specials stay: look their ids up."""),
        mistake("all usual ids written in", RIGHT.but('vocab["<unk>"]', "3").but('vocab["<eos>"]', "2").but(
                  IS_END, "id == 2").but(IS_PLAIN, "id > 3"), SPECIAL,
            """The ids 0 to 3 are hard-coded in both functions. A different vocabulary numbers its special tokens
            differently: look them up by name."""),
        mistake("the caller's vocabulary changed", CUT_FIRST.but(PLAIN_TOKENS, """
                  for special in ("<pad>", "<bos>", "<eos>", "<unk>"):
                      vocab.pop(special)
                  return [token for token in tokens if token in vocab]"""), SPECIAL,
            "Your function took the special tokens out of the caller's vocabulary (pop, del). The next call would "
            "miss them."),
        mistake("ids instead of words", RIGHT.but("tokens.append(word)", "tokens.append(id)"), ENCODE,
            "decode returned ids. Invert the dictionary: each id leads to its word."),
        mistake("a word said twice said once", RIGHT.but(IS_PLAIN, IS_PLAIN + " and tokens[-1:] != [word]"), ENCODE,
            "A word that occurs twice in a row came back once. Every id gives its word, whatever comes before it."),
    ),
    correct=(
        correct("comprehension and loop", RIGHT),
        correct("plain loops", """
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
                    if found not in ["<pad>", "<bos>", "<unk>"]:
                        result.append(found)
                return result
        """),
        correct("try and except", """
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
        """),
        correct("itertools", """
            from collections import defaultdict
            from itertools import takewhile

            def encode(tokens, vocab, add_eos=True):
                table = defaultdict(lambda: vocab["<unk>"], vocab)
                return list(map(table.__getitem__, tokens + ["<eos>"] * bool(add_eos)))

            def decode(ids, vocab):
                inverse = {i: t for t, i in vocab.items() if t not in {"<pad>", "<bos>", "<unk>"}}
                words = takewhile(lambda t: t != "<eos>", (inverse.get(i) for i in ids))
                return [word for word in words if word]
        """),
        correct("generator and while", """
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
        """),
    ),
    hints=(
        "a dictionary can look up a key that may be missing, and it can be inverted.",
        "`encode`: n tokens give n or n + 1 ids. `decode`: find the first <eos>, keep what comes before it, leave the "
        "special tokens out.",
        "`encode`: for each token its id, or that of <unk>; then <eos> if add_eos is True. `decode`: invert the "
        "dictionary; for each id: stop at <eos>, skip specials, else keep the word.",
    ),
)
