"""12.2: from a line to ids and back again, whatever the line contains."""

import unicodedata
from collections import Counter
from typing import Any

import torch

from autograder.catalogue.ch12_capstone.made_up import drawn_lines, word_of
from autograder.catalogue.ch12_capstone.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark, step
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import UNTOUCHED, hidden, visible

(TOKENS,) = sections("tokens")
FIRST, LAST = 4, 9_999  # ids of text; 0 to 3 are the special tokens
NUMBERS, RANGE, HALF = "whole numbers", "ids in range", "at most half as many ids as characters"
SAME, NONE, TEXT = "the same ids", "no ids for an empty line", "the text"
KINDS = {"NoneType": "None", "list": "a list", "tuple": "a tuple", "Tensor": "a tensor", "str": "a text"}


class Broken(Remark):
    """A promise that an answer breaks. Two are equal if it is the same promise, whatever ids and types they quote."""

    promise: str

    def __new__(cls, remark: str, promise: str = "") -> "Broken":
        made = super().__new__(cls, remark)
        made.promise = promise
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Broken) and self.promise == other.promise

    def __ne__(self, other: object) -> bool:  # a text has its own
        return not self == other

    def __hash__(self) -> int:
        return hash(self.promise)


class OtherText(Remark):
    """What a line became, in words; text: the text itself."""

    text: str

    def __new__(cls, remark: str, text: str = "") -> "OtherText":
        made = super().__new__(cls, remark)
        made.text = text
        return made


class Tokenizer:
    """Words that were seen have an id each; any other is spelled in bytes, after a space."""

    def fit(self, lines: list[str]) -> None:
        counts = Counter(word for line in lines for word in line.split())
        self.words = [word for word, _ in counts.most_common(LAST - 260)]
        self.ids = {word: 260 + place for place, word in enumerate(self.words)}

    def encode(self, line: str) -> list[int]:
        ids: list[int] = []
        for word in line.split():
            ids += [self.ids[word]] if word in self.ids else [FIRST + byte for byte in f" {word}".encode()]
        return ids

    def decode(self, ids: list[int]) -> str:
        text = b""
        for number in ids[: ids.index(2)] if 2 in ids else ids:
            if number >= FIRST:
                text += f" {self.words[number - 260]}".encode() if number >= 260 else bytes([number - FIRST])
        return text.decode().strip()


LINES = ["I closed the windows.", "the dog saw the old windows", "Windows is new, isn't it?", "the old dog",
         "I saw the new dog"]
ODD = "caf\u00e9 na\u00efve \u2014 \u6771\u4eac \U0001f642 e\u0300 \u01dd \u00df\u0130"


def script(lines: list[str], *texts: str, around: tuple = ((), ())) -> Case:
    """Fit, then there and back for each text."""
    steps = [step("fit", lines)]
    for text in texts:
        steps += [step("encode", text), step("decode", given=len(steps), around=around)]
    return Case((steps,))


def facts(case: Case, results: Any) -> Any:
    """Whatever ids a tokenizer gives, what must hold of them, and the texts that come back; in words where it does not
    hold, or another text came back."""
    if not isinstance(results, tuple) or len(results) != len(case.arguments[0]):
        return results
    found: dict[str, Any] = {}
    first: dict[str, Any] = {}
    known = {line for each in case.arguments[0] if each["method"] == "fit" for line in each["with"][0]}
    for number, (each, value) in enumerate(zip(case.arguments[0], results, strict=True)):
        if each["method"] == "decode":
            (line,) = case.arguments[0][each["given"]]["with"]
            found[f"{number}, {TEXT}"] = came_back(line, value)
        elif each["method"] == "encode":
            (text,) = each["with"]
            found |= {f"{number}, {promise}": kept for promise, kept in promises(text, value, text in known).items()}
            same = found[f"{number}, {NUMBERS}"] is not True or first.setdefault(text, value) == value
            found[f"{number}, {SAME}"] = same or Broken(
                f"encode({text!r}) returned different ids than in an earlier call", SAME)
    return found  # fmt: skip


def promises(text: str, value: Any, is_known: bool) -> dict[str, bool | Broken]:
    """Which promises about the ids of one line hold. is_known: whether fit has seen the line."""
    call, numbers = f"encode({text!r})", isinstance(value, list) and all(type(id) is int for id in value)
    foreign = sorted({id for id in value if not FIRST <= id <= LAST}) if numbers else []
    kept: dict[str, bool | Broken] = {
        NUMBERS: numbers or Broken(f"{call} returned {_in_words(value)}, where a list of ints is expected", NUMBERS),
        RANGE: numbers and (not foreign or Broken(
            f"{call} returned the id{'s' * (len(foreign) > 1)} {', '.join(map(str, foreign[:3]))}; the ids of text are "
            f"from {FIRST} to {LAST:,}", RANGE)),
    }  # fmt: skip
    if is_known and len(text) > 10 and max(map(len, text.split()), default=0) > 1:
        kept[HALF] = numbers and (2 * len(value) <= len(text) or Broken(
            f"fit has seen {text!r}, but encode returned {len(value)} ids for its {len(text)} characters; at most "
            f"{len(text) // 2} are allowed", HALF))  # fmt: skip
    if not text:
        empty = isinstance(value, list) and not value
        kept[NONE] = empty or Broken(
            f"encode('') returned {_in_words(value)}; an empty line has no ids, so an empty list is expected", NONE)
    return kept


def came_back(line: str, value: Any) -> str:
    """The text that came back for a line as it is compared; in words if it is a different one."""
    if not isinstance(value, str):
        return Broken(f"decode returned {_in_words(value)}, where the text {line!r} is expected",
                      f"{TEXT} of type {type(value).__name__}")  # fmt: skip
    wanted, text = as_compared(line, line), as_compared(line, value)
    return text if text == wanted else OtherText(texts(wanted, text).removesuffix("."), text)


def _in_words(value: Any) -> str:
    """A value that came back, as a learner calls it."""
    if isinstance(value, list) and len(value) <= 3:
        return repr(value)
    if isinstance(value, list):
        kinds = sorted({type(each).__name__ for each in value if type(each) is not int})
        return f"a list with items of type {', '.join(kinds)}" if kinds else f"{len(value)} ids"
    return KINDS.get(type(value).__name__, f"something of type {type(value).__name__}")


def as_compared(line: str, text: str) -> str:
    """A text that came back for a line: runs of white space are one space. White space at an end is kept only if the
    line has none there: at the ends it may be lost, but not added."""
    pairs = (text[:1], line[:1]), (text[-1:], line[-1:])
    return " ".join(text.split()).join(" " * (mine.isspace() and not its.isspace()) for mine, its in pairs)


SYLLABLES = "ba ce di fo gu la me ni po ru sa te vi zo".split()


def seen(g: torch.Generator) -> Case:
    """A few words that occur often, and 2,740 that occur once, made of so few syllables that byte pairs suffice. The
    line that is read is the last, of the last words in the alphabet: those that too small a table lacks."""
    often, rare = drawn_lines(g), []
    for place in torch.randperm(len(SYLLABLES) ** 3, generator=g)[:2_740].tolist():
        first, rest = divmod(place, len(SYLLABLES) ** 2)
        rare.append("".join(SYLLABLES[each] for each in (first, *divmod(rest, len(SYLLABLES)))))
    rare.sort(key=sorted(rare)[-5:].__contains__)
    lines = [*often * 40, *(" ".join(rare[place : place + 5]) for place in range(0, len(rare), 5))]
    return script(lines, lines[0], lines[-1], " ".join(reversed(lines[1].split())))


def unknown(g: torch.Generator) -> Case:
    lines = drawn_lines(g)
    word = lines[0].split()[0]
    return script(lines, f"{word_of(g)} {word_of(g)}", f"{word} {word_of(g)}{word} {word}{word} {word}",
                  f"{word.upper()} {word.title()}")


def other_scripts(g: torch.Generator) -> Case:
    lines = drawn_lines(g)
    greek, han = word_of(g, "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6"), word_of(g, "\u6771\u4eac\u5927\u5b66\u751f", 2)
    faces = "".join(chr(0x1F600 + place) for place in torch.randint(60, (3,), generator=g).tolist())
    return script(lines, f"{lines[0]} {greek}", f"{han} {lines[1]}", f"{faces} e\u0300{lines[0]} \u00e8",
                  f"{greek}\0{han}")  # \0 is the character whose only byte is 0, the lowest there is


def marks(g: torch.Generator) -> Case:
    a, b, c = (word_of(g) for _ in range(3))
    lines = [f"{a} {b}.", f'"{a}", {b}? {c}!', f"{b} {c} l'{a}", f"{a} , {b}", *drawn_lines(g, 3)]
    return script(lines, f"{a}, {b}. {c}", f"l'{a} ({b})", f"{a} ,{b} . {c} '",
                  f"{a}-{b} _ {c}\u2581{a} {b}</w> ##{c} @@ {a}@@")


def specials_in_text(g: torch.Generator) -> Case:
    lines = drawn_lines(g)
    return script(lines, f"{lines[0]} <eos> {lines[1]}", "<pad> <bos>", f"<unk> {word_of(g)}", "<eos>")


def specials_around(g: torch.Generator) -> Case:
    lines = drawn_lines(g)
    later = [FIRST + int(torch.randint(90, (), generator=g)) for _ in range(3)]
    return script(lines, lines[0], word_of(g), around=((1, 0, 3), (3, 0, 2, *later, 2, 0)))


def again(g: torch.Generator) -> Case:
    """The same lines to another tokenizer of the same text, after this one has met many strange words."""
    lines, strange = drawn_lines(g), [word_of(g) for _ in range(4)]
    encoded = [lines[0], *strange, f"{strange[1]} {lines[1]}", lines[0], strange[2]]
    return Case(([step("fit", lines), *(step("encode", text) for text in encoded), step("fit", lines, by="second"),
                  *(step("encode", text, by="second") for text in reversed(encoded))],))  # fmt: skip


def beside(g: torch.Generator) -> Case:
    """Two tokenizers of different texts, used in turns."""
    one, two = drawn_lines(g), drawn_lines(g)
    foreign = f"{two[1]} {two[0]}"  # none of its words is known to the first
    return Case(([step("fit", one), step("encode", one[0]), step("encode", foreign), step("fit", two, by="second"),
                  step("encode", two[0], by="second"), step("decode", given=1), step("decode", given=4, by="second"),
                  step("encode", one[0]), step("encode", one[1]), step("decode", given=8), step("encode", foreign)],
                  ))  # fmt: skip


def short(g: torch.Generator) -> Case:
    return script(drawn_lines(g), "", word_of(g)[0], " ", f"{word_of(g)[0]} {word_of(g)[0]}")


def spaced(g: torch.Generator) -> Case:
    lines = drawn_lines(g)
    lines[2] = f"  {lines[2].replace(' ', '   ')}\t"
    return script(lines, lines[2], f" {lines[0]}  {word_of(g)} ")


def one_line(g: torch.Generator) -> Case:
    word = word_of(g)
    return script([f"{word} {word} {word}"], f"{word} {word}", word_of(g))


def texts(wanted: str, got: str) -> str:
    """A text and what it became; where both look alike, the characters of the first difference by their numbers."""
    if wanted != got and unicodedata.normalize("NFC", wanted) == unicodedata.normalize("NFC", got):
        place = next(place for place, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b)
        return f"In {wanted!r} the character {_points(wanted, place)} came back as {_points(got, place)}."
    return f"{wanted!r} came back as {got[:80]!r}."


def _points(text: str, place: int) -> str:
    """The numbers of a character and of the marks that are combined with it."""
    end = place + 1
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return " ".join(f"U+{ord(character):04X}" for character in text[place:end])


def wrong_texts(evidence: Evidence) -> list[tuple[str, str, str]]:
    """The text, what came back, and the characters of the lines that this tokenizer was fitted on, of each wrong text;
    nothing if anything else is wrong."""
    steps, found = evidence.arguments[0], []
    for name, wanted in evidence.expected.items():
        if (got := evidence.got[name]) != wanted:
            if not isinstance(got, OtherText):
                return []
            number = int(name.partition(",")[0])
            fits = [each for each in steps[:number] if (each["method"], each["by"]) == ("fit", steps[number]["by"])]
            found.append((wanted, got.text, "".join(fits[-1]["with"][0])))
    return found


def other_spaces(evidence: Evidence) -> bool:
    """Whether the texts differ only in their spaces, and not only at the ends."""
    found = wrong_texts(evidence)
    inside = any(wanted != got.strip() for wanted, got, _ in found)
    return inside and all("".join(wanted.split()) == "".join(got.split()) for wanted, got, _ in found)


def unseen_are_missing(evidence: Evidence) -> bool:
    """Whether the texts lack just the characters that fit has never seen, whatever their spaces."""
    found = wrong_texts(evidence)
    return bool(found) and all(
        [each for each in wanted if each in seen and not each.isspace()] == list("".join(got.split()))
        for wanted, got, seen in found
    )


def broken(evidence: Evidence) -> list[tuple[int, str]] | None:
    """The step and the promise of everything that is wrong; None where a text came back wrong too."""
    wrongly = [name for name, wanted in evidence.expected.items() if evidence.got[name] != wanted]
    if any(name.endswith(TEXT) for name in wrongly):
        return None
    return [(int(number), promise) for number, _, promise in (name.partition(", ") for name in wrongly)]


def some_are_spelled(evidence: Evidence) -> bool | None:
    """Whether some of the lines that fit has seen have too many ids, and others have not; None where there is only one
    such line."""
    found = broken(evidence)
    if not found or any(promise != HALF for _, promise in found):
        return False
    lines = [name for name in evidence.expected if name.endswith(HALF)]
    return len(found) < len(lines) or (None if len(lines) == 1 else False)


def unseen_differ(evidence: Evidence) -> bool:
    """Whether nothing is wrong but the ids that a second tokenizer of the same text gives to lines with words that fit
    has not seen, though one and the same tokenizer always gives the same ids."""
    found, steps = broken(evidence), evidence.arguments[0]
    if not found or any(promise != SAME for _, promise in found):
        return False
    fits = {each["by"]: each["with"][0] for each in steps if each["method"] == "fit"}
    first: dict[str, str] = {}
    for each in steps:
        if each["method"] == "encode":
            first.setdefault(each["with"][0], each["by"])
    each_of = [(steps[number]["by"], steps[number]["with"][0]) for number, _ in found]
    return all(
        by != first[text]
        and fits.get(by) == fits.get(first[text])
        and not set(text.split()) <= {word for line in fits.get(by, ()) for word in line.split()}
        for by, text in each_of
    )


def begins_at_0(evidence: Evidence) -> bool:
    """Whether the byte 0 has the id 0, or the special ids that were put around a text came back as the bytes 0 to 3."""
    steps, got = evidence.arguments[0], evidence.got
    numbers = {int(name.partition(", ")[0]) for name, wanted in evidence.expected.items() if got[name] != wanted}
    out = {int(name.partition(", ")[0]) for name in got if name.endswith(RANGE) and got[name] is not True}
    if out:
        zero = all("\0" in steps[number]["with"][0] for number in out)
        return zero and all(" the id 0;" in got[f"{number}, {RANGE}"] for number in out)
    around = all(steps[number]["method"] == "decode" and any(steps[number]["around"]) for number in numbers)
    texts_of = [got[f"{number}, {TEXT}"] for number in numbers] if around else []
    return bool(texts_of) and all(isinstance(each, OtherText) and each.text.startswith("\1") for each in texts_of)


def after_another(evidence: Evidence) -> bool:
    """Whether nothing is wrong but the first tokenizer's ids, once another one was fitted."""
    steps, wrongly = evidence.arguments[0], [name for name,
                                             wanted in evidence.expected.items() if evidence.got[name] != wanted]
    numbers = [int(name.partition(",")[0]) for name in wrongly]
    fitted = [place for place, each in enumerate(steps) if each["method"] == "fit" and each["by"] != "first"]
    late = all(steps[number]["by"] == "first" and number > min(fitted, default=number) for number in numbers)
    return late and any(name.endswith(SAME) for name in wrongly)


RIGHT = answer("""
    class Tokenizer:
        def fit(self, lines):
            words = []
            for line in lines:
                words += line.split()
            self.words = sorted(set(words))[:9000]
            self.ids = {word: 260 + place for place, word in enumerate(self.words)}

        def encode(self, line):
            ids = []
            for word in line.split():
                if word in self.ids:
                    ids.append(self.ids[word])
                else:
                    spelled = " " + word
                    ids += [4 + byte for byte in spelled.encode("utf-8")]
            return ids

        def decode(self, ids):
            text = b""
            for number in ids:
                if number == 2:
                    break
                if number >= 260:
                    text += b" " + self.words[number - 260].encode("utf-8")
                elif number >= 4:
                    text += bytes([number - 4])
            return text.decode("utf-8").strip()
""")
SPELLED, IDS = (
    'ids += [4 + byte for byte in spelled.encode("utf-8")]',
    "self.ids = {word: 260 + place for place, word in enumerate(self.words)}"
)
WORD, END = 'text += b" " + self.words[number - 260].encode("utf-8")', 'return text.decode("utf-8").strip()'
SPELLED_BY_ORD = RIGHT.but(SPELLED, "ids += [4 + ord(letter) for letter in spelled]").but(
    "text += bytes([number - 4])", 'text += chr(number - 4).encode("utf-8")')
BY_ORD = """Unknown words were spelled by the numbers of their characters, as ord gives them. From 256 on these run into
    the ids of the words, and decode stops because no word has such an id. Spell in the bytes of UTF-8: each is below
    256."""
SEEN, KNOWN = "words += line.split()", "for word in line.split():"

EXERCISE = Exercise(
    id="tokenizer", number="12.2", difficulty=3, minutes=60, visible_points=1, hidden_points=4,
    reference=Tokenizer, methods=True, section=TOKENS, normalize=facts, seconds=40.0,
    omits={"a second call": "a probe makes a second tokenizer in addition to the first",
           "precision": "ids are whole numbers"},
    probes=(
        visible("five lines, there and back", script(LINES, *LINES)),
        visible("words and characters that it has never seen",
                script(LINES, "the cats saw I", "a new cat is not a dog", ODD, "")),
        visible("bos, eos and pads around the ids", script(LINES, LINES[0], "cats", around=((1,), (2, 0, 5, 0)))),
        visible("special tokens written in a line", script(LINES, "the <eos> dog", "<pad><bos> <unk>")),
        visible("two tokenizers at once", Case(([
            step("fit", LINES), step("encode", LINES[0]), step("encode", "a zebra"), step("encode", "a gnu"),
            step("encode", LINES[0]),
            step("fit", LINES, by="second"), step("encode", "a gnu", by="second"),
            step("encode", LINES[0], by="second"),
            step("fit", ["a zebra", "other text"], by="third"), step("decode", given=1), step("decode", given=2),
            step("encode", "a zebra")],))),
        hidden("other lines", seen, announced_by="at most half as many ids as characters"),
        hidden("unknown words", unknown, announced_by="words and characters that `fit` has never seen"),
        hidden("other scripts", other_scripts, announced_by="words and characters that `fit` has never seen"),
        hidden("marks, and what other tokenizers use as a sign", marks,
               announced_by="decode(encode(line)) is the line"),
        hidden("special tokens in the text", specials_in_text, announced_by="`<eos>` written in a line is text"),
        hidden("special ids around the text", specials_around, announced_by="drops the ids 0, 1 and 3"),
        hidden("the same ids again", again, checks=UNTOUCHED, announced_by="the same ids whatever was encoded before"),
        hidden("two texts side by side", beside, announced_by="tokenizers are independent"),
        hidden("nothing, one letter", short, announced_by="An empty line has no ids"),
        hidden("spaces", spaced, announced_by="A run of white space may come back as one space"),
        hidden("a text of one word", one_line, announced_by="decode(encode(line)) is the line"),
    ),
    mistakes=(
        mistake("unknown words become <unk>", RIGHT.but(SPELLED, "ids.append(3)"), TOKENS,
            """A word that fit has not seen was given the id of <unk>, and the word is lost. Spell such a word in
            smaller pieces, down to bytes, of which there are only 256."""),
        mistake("unknown words vanish", RIGHT.but(SPELLED, "pass"), TOKENS,
            "A word that fit has not seen left no id at all, so the line comes back shorter. Spell it in "
            "smaller pieces."),
        mistake("unknown characters become <unk>", RIGHT.but(SPELLED,
                  "ids += [4 + ord(letter) if ord(letter) < 256 else 3 for letter in spelled]").but(
                  "text += bytes([number - 4])", 'text += chr(number - 4).encode("utf-8")'), TOKENS,
            """Words are spelled, but only in some characters: those of another script were lost. Every character is one
            to four bytes in UTF-8, and there are only 256 of these."""),
        mistake("unknown characters dropped", RIGHT.but('spelled.encode("utf-8")', 'spelled.encode("ascii", "ignore")'),
                TOKENS,
            "Letters with an accent and other scripts vanished from words that fit has not seen: only ASCII was "
            "spelled."),
        mistake("accents taken off", RIGHT.but('spelled = " " + word', """
                  import unicodedata
                  spelled = " " + unicodedata.normalize("NFKC", word)"""), TOKENS,
            """A word that fit has not seen was normalized before it was spelled, so a different text comes back.
            For comparing lines that is right; a tokenizer gives back what it was given."""),
        mistake("a number for every character",
                RIGHT.but(SPELLED, "ids += [260 + 9000 + ord(letter) for letter in spelled]").but(
                  "if number >= 260:",
                  'if number >= 9260:\n                text += chr(number - 9260).encode("utf-8")\n            elif '
                  'number >= 260:'), TOKENS,
            """The text comes back, but ids beyond 9,999 were given: the number of a character goes up to 1,114,111, and
            the embedding table has a row for each id. Spell in bytes."""),
        mistake("each byte by itself",
                RIGHT.but('text += bytes([number - 4])',
                          'text += bytes([number - 4]).decode("utf-8", "replace").encode("utf-8")'), TOKENS,
            """Each byte was decoded separately. A character outside ASCII has two to four bytes, which only have a
            meaning together: collect the bytes, then decode them at once."""),
        mistake("a character for each byte",
                RIGHT.but("text += bytes([number - 4])", 'text += chr(number - 4).encode("utf-8")'), TOKENS,
            """Letters outside ASCII came back as two to four others, *\u00e9* as *\u00c3\u00a9*: each byte became a
            character. The bytes of a letter only have a meaning together: collect the bytes, then decode them at
            once."""),
        mistake("the number of a character instead of its bytes",
                SPELLED_BY_ORD.but(IDS, IDS + "\n        self.back = dict(zip(self.ids.values(), self.ids))").but(
                  "self.words[number - 260]", "self.back[number]"), TOKENS, BY_ORD),
        mistake("the number of a character instead of its bytes, and a list of words", SPELLED_BY_ORD, TOKENS, BY_ORD),
        mistake("capitals lost",
                RIGHT.but(SEEN, "words += line.lower().split()").but(KNOWN, "for word in line.lower().split():"),
                TOKENS,
            """Everything came back in small letters. A translation is judged with its capitals, and *Windows* is not
            *windows* here."""),
        mistake("spaces lost", RIGHT.but('b" " + self.words', "self.words"), TOKENS,
            "The words came back without the spaces between them. Something has to remember where a word begins."),
        mistake("spelled words run together", RIGHT.but('spelled = " " + word', 'spelled = word'), TOKENS,
            "A word that was spelled out is joined to the one before it: its own first space has no id."),
        mistake("unknown words run together",
                RIGHT.but('spelled = " " + word', "spelled = word").but(WORD, WORD + ' + b" "'), TOKENS,
            """Two words that fit has not seen came back as one when they follow each other, as *nota* for *not a*: both
            are spelled in bytes, and nothing says where one ends. The space between them is a byte too, and needs its
            id."""),
        mistake("a space after each letter",
                RIGHT.but("text += bytes([number - 4])", 'text += bytes([number - 4]) + b" " * (number < 132)'), TOKENS,
            "A word that was spelled came back with a space after each letter: the pieces were joined as if "
            "each were a word."),
        mistake("the sign for the end of a word left in",
                RIGHT.but(WORD, 'text += b" " + self.words[number - 260].encode("utf-8") + b"</w>"'), TOKENS,
            "The sign for the end of a word is still in the text. It belongs to the tokenizer: decode "
            "has to turn it into a space again."),
        mistake("marks set apart", RIGHT.but(KNOWN, """
                  for mark in ".,?!":
                      line = line.replace(mark, " " + mark)
                  for word in line.split():""").but(SEEN, """
                  for mark in ".,?!":
                      line = line.replace(mark, " " + mark)
                  words += line.split()"""), TOKENS,
            """Marks came back with a space before them: they were cut off the word, and nothing remembers that they
            touched it."""),
        mistake("a new word gets an id", RIGHT.but(SPELLED, """
                  self.ids[word] = 260 + len(self.words)
                  self.words = [*self.words, word]
                  ids.append(self.ids[word])"""), TOKENS,
            """encode gave a new id to something that fit has not seen: it learns from whatever it reads, the test among
            it. A second tokenizer of the same text gives different ids then, and the model has no row for them. Only
            fit may learn.""", shows=unseen_differ),
        mistake("ids of the special tokens", RIGHT.but("260 + place", "256 + place").but("4 + byte", "byte").but(
                  "number >= 260", "number >= 256").but("self.words[number - 260]", "self.words[number - 256]").but(
                  "elif number >= 4", "elif number >= 0").but("number - 4", "number"), TOKENS,
            """Your ids begin at 0, which are the numbers of the special tokens: a piece of text that looks like padding
            is masked, and one that looks like <eos> ends the sentence. Text begins at 4.""", shows=begins_at_0),
        mistake("words from id 0", RIGHT.but("260 + place", "place").but("if number >= 260", "if number < 9000").but(
                  "self.words[number - 260]", "self.words[number]").but("4 + byte", "9000 + byte").but(
                  "elif number >= 4:", "else:").but("number - 4", "number - 9000").but("if number == 2:", "if False:"),
                  TOKENS,
            """Your words begin at id 0, so the first of them are taken for <pad>, <bos>, <eos> and <unk>. Text begins
            at 4."""),
        mistake("goes on after <eos>", RIGHT.but("break", "continue"), TOKENS,
            """What comes after <eos> came back as text. A model writes until the longest sentence of its batch has
            ended: what follows the end is not meant."""),
        mistake("stops at a pad", RIGHT.but("if number == 2:", "if number < 4:"), TOKENS,
            "Nothing came back after the first special id. Only <eos> ends a text; the others are dropped."),
        mistake("special ids spelled out", RIGHT.but("if number >= 260:", """
                  if number < 2 or number == 3:
                      text += b" " + ["<pad>", "<bos>", "", "<unk>"][number].encode("utf-8")
                  if number >= 260:"""), TOKENS,
            "The special tokens came back as text. They are for the model; decode drops them."),
        mistake("special ids not expected",
                RIGHT.but("elif number >= 4:", "else:").but("bytes([number - 4])", "bytes([max(number - 4, 0)])"),
                TOKENS,
            "<bos> and <pad> came back as some character, since they were read as pieces of text. decode drops ids "
            "below 4."),
        mistake("special ids read as bytes", RIGHT.but("elif number >= 4:", "else:"), TOKENS,
            """decode raises an error at a special id (0, 1 or 3), because it takes it for a byte, and no byte is below
            0. Special ids are not text: decode has to drop them."""),
        mistake("a written <eos> ends the sentence", RIGHT.but("if word in self.ids:", """
                  special = ["<pad>", "<bos>", "<eos>", "<unk>"]
                  if word in special:
                      ids.append(special.index(word))
                  elif word in self.ids:"""), TOKENS,
            """encode takes an <eos> that is written in a line for the real one: writing it into a sentence would end
            the translation. In a line it is text like any other, and is spelled."""),
        mistake("a written <eos> ends the line", RIGHT.but("if word in self.ids:", """
                  if word == "<eos>":
                      break
                  if word in self.ids:"""), TOKENS,
            """encode stops at an <eos> that is written in a line, and loses the rest. In a line it is text like any
            other, and is spelled."""),
        mistake("bos and eos added", RIGHT.but("return ids", "return [1, *ids, 2]"), TOKENS,
            """encode put <bos> and <eos> around the ids. They are added when a batch is made: the
            source has no <bos>, and the target's input no <eos>."""),
        mistake("every character by itself", RIGHT.but(IDS, "self.ids = {}"), TOKENS,
            """Every line is spelled byte by byte, the well-known words too, so a sentence has as many ids as bytes. Fit
            has to learn something: what occurs in its lines should come back in few pieces."""),
        mistake("one table for all",
                RIGHT.but("self.words = sorted(set(words))[:9000]",
                          "self.words = Tokenizer.words = sorted(set(words))[:9000]").but(
                  "b\" \" + self.words[number - 260]",
                  "b\" \" + Tokenizer.words[min(number - 260, len(Tokenizer.words) - 1)]"), TOKENS,
            """A second tokenizer changed the first: the table belongs to the class, and so to all of them. What fit
            learns belongs to the object."""),
        mistake("one dictionary for all",
                RIGHT.but(IDS, "Tokenizer.ids = {word: 260 + place for place, word in enumerate(self.words)}"), TOKENS,
            """After a second tokenizer was fitted, this one gave a line different ids: a list or a dictionary that is
            made in the class belongs to all of its objects. Make it in __init__ or in fit.""", shows=after_another),
        mistake("numbered anew by each tokenizer", RIGHT.but("self.words = sorted(set(words))[:9000]", """
                  Tokenizer.made = getattr(Tokenizer, "made", 0) + 1
                  self.words = sorted(set(words))[:9000]
                  shift = Tokenizer.made % len(self.words)
                  self.words = self.words[shift:] + self.words[:shift]"""), TOKENS,
            """Two tokenizers of the same text gave the same line different ids. The order of a set, or of anything
            random, differs from run to run, so a saved model could not be used again. Sort."""),
        mistake("a space in front", RIGHT.but(END, 'return text.decode("utf-8")'), TOKENS,
            """A text came back with a space in front that the line does not have. Each word brings its
            own space, the first one too, and that one is too many. White space at the ends of a line may be lost, but
            none may be added."""),
        mistake("encode returns nothing", RIGHT.but("return ids", "pass"), TOKENS,
            """encode returned None, and the ids that it collected are lost. Does every path through it end with a
            return?"""),
        mistake("words instead of a line", RIGHT.but(END, 'return text.decode("utf-8").split()'), TOKENS,
            "decode returned a list of words. Return a line: one text."),
        mistake("a tensor of ids",
                RIGHT.but("return ids", "return torch.tensor(ids)").but("for number in ids:",
                    "for number in [int(id) for id in ids]:"), TOKENS,
            "encode returned a tensor. Return a list of whole numbers, since batches are made of lists of all "
            "lengths."),
        mistake("only the most common words", RIGHT.but("self.words = sorted(set(words))[:9000]", """
                  from collections import Counter
                  self.words = [word for word, _ in Counter(words).most_common(500)]"""), TOKENS,
            """Only some of fit's words got an id, and all others are spelled, so a line of rare words has more ids than
            it may. fit sees at most 9,000 different words, and there are enough ids for all of them.""",
            shows=some_are_spelled),
        mistake("spaces by a rule", RIGHT.but(SEEN, r'words += re.findall(r"\w+|[^\w\s]", line)').but(
                  KNOWN, r'for word in re.findall(r"\w+|[^\w\s]", line):').but(
                  END, r'return re.sub(r" ([.,!?;:])", r"\1", text.decode("utf-8").strip())').but(
                  "class Tokenizer:", "import re\n\n\nclass Tokenizer:"), TOKENS,
            """The letters are right, but the spaces are not. They have to follow from the ids: a fixed rule, such as a
            space between any two pieces or none before a mark, cannot know where the line had them.""",
            shows=other_spaces),
        mistake("unseen characters vanish", RIGHT.but(IDS, IDS + '\n        self.letters = set(" ".join(words))').but(
                  SPELLED, 'ids += [4 + byte for byte in "".join(letter for letter in spelled if letter in '
                           'self.letters).encode("utf-8")]'), TOKENS,
            """Characters that fit never saw are missing. Spell unknown words in bytes: there are only 256, so every
            character has ids.""", shows=unseen_are_missing),
        mistake("the caller's lines sorted", RIGHT.before("words = []", "lines.sort()\nlines.append(\"\")"), TOKENS,
            "fit changed the list of lines that it was given. Sort a copy."),
    ),
    correct=(
        correct("words, else bytes", RIGHT),
        correct("byte pairs", """
            from collections import Counter

            class Tokenizer:
                '''Byte-pair encoding over bytes: nothing is ever unknown.'''

                def __init__(self, merges=300):
                    self.most = merges

                def fit(self, lines):
                    words = Counter(tuple((" " + w).encode()) for line in lines for w in line.split())
                    self.merges, self.pieces = {}, {b: bytes([b]) for b in range(256)}
                    for new in range(256, 256 + self.most):
                        pairs = Counter()
                        for word, n in words.items():
                            for pair in zip(word, word[1:]):
                                pairs[pair] += n
                        if not pairs:
                            break
                        best = max(pairs, key=lambda p: (pairs[p], p))
                        self.merges[best] = new
                        self.pieces[new] = self.pieces[best[0]] + self.pieces[best[1]]
                        words = Counter({self._merge(w, best, new): n for w, n in words.items()})
                    return self

                def _merge(self, word, pair, new):
                    out, i = [], 0
                    while i < len(word):
                        if tuple(word[i:i + 2]) == pair:
                            out.append(new)
                            i += 2
                        else:
                            out.append(word[i])
                            i += 1
                    return tuple(out)

                def encode(self, line):
                    ids = []
                    for w in line.split():
                        word = tuple((" " + w).encode())
                        for pair, new in self.merges.items():
                            word = self._merge(word, pair, new)
                        ids.extend(x + 4 for x in word)
                    return ids

                def decode(self, ids):
                    out = []
                    for i in ids:
                        if i == 2:
                            break
                        if i > 3:
                            out.append(self.pieces[i - 4])
                    return b"".join(out).decode("utf-8", errors="replace").lstrip(" ")
        """),
        correct("pieces with their spaces", """
            import re
            from collections import Counter

            SPECIALS = 4

            class Tokenizer:
                def fit(self, lines):
                    counts = Counter()
                    for line in lines:
                        counts.update(re.findall(r" ?[^\\W_]+| ?[^\\w\\s]|_|\\s+", " " + line))
                    frequent = [p for p, n in counts.most_common(5000)]
                    self.id_of = {bytes([b]): SPECIALS + b for b in range(256)}
                    for p in frequent:
                        self.id_of.setdefault(p.encode(), SPECIALS + len(self.id_of))
                    self.piece_of = {i: p for p, i in self.id_of.items()}

                def encode(self, line):
                    if not line:
                        return []
                    found = []
                    for p in re.findall(r" ?[^\\W_]+| ?[^\\w\\s]|_|\\s+", " " + line):
                        b = p.encode()
                        found += [self.id_of[b]] if b in self.id_of else [self.id_of[b[i:i + 1]] for i in range(len(b))]
                    return found

                def decode(self, ids):
                    ids = list(ids)
                    if 2 in ids:
                        ids = ids[:ids.index(2)]
                    text = b"".join(self.piece_of[i] for i in ids if i >= SPECIALS).decode("utf-8")
                    return text[1:] if text.startswith(" ") else text
        """),
        correct("longest piece first", """
            class Tokenizer:
                def __init__(self):
                    self.table = {}

                def fit(self, lines):
                    words = sorted({" " + w for l in lines for w in l.split()})
                    self.table = {bytes([i]): i + 4 for i in range(256)}
                    for w in words[:9000]:
                        self.table.setdefault(w.encode(), len(self.table) + 4)
                    self.back = {v: k for k, v in self.table.items()}
                    self.longest = max(map(len, self.table))

                def encode(self, line):
                    rest, out = "".join(" " + w for w in line.split()).encode(), []
                    while rest:
                        n = next(n for n in range(min(self.longest, len(rest)), 0, -1) if rest[:n] in self.table)
                        out.append(self.table[rest[:n]])
                        rest = rest[n:]
                    return out

                def decode(self, ids):
                    out = b""
                    for i in ids:
                        if i == 2:
                            return out.decode().strip()
                        out += self.back.get(i, b"")
                    return out.decode().strip()
        """),
    ),
    hints=(
        "what happens to a word that fit has never seen, and to a character that nobody expected?",
        "words (or pieces) that were seen have ids from 260 on, the 256 bytes those from 4 to 259; ids 0 to 3 are "
        "reserved.",
        "fit: number the words; encode: a known word is its id, any other a space and its bytes; decode: up to the "
        "first 2, without "
        "ids below 4, collect bytes, and turn them into text at the end.",
    ),
)  # fmt: skip
