"""12.1: what is wrong with the data, before anything is trained on it."""

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from itertools import combinations

import torch

from autograder.catalogue.ch12_capstone.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, second_call, visible

(DATA,) = sections("data")
LONGEST = 50
Pairs = list[tuple[str, str]]
Splits = dict[str, Pairs]


def audit(splits: Splits) -> dict[str, int]:
    """The numbers of pairs that are empty, too long, duplicates, or in the training set."""
    counts = dict.fromkeys(("duplicates", "overlap", "empty", "too_long"), 0)
    known: set[str] = set()
    seen: set[frozenset[str]] = set()
    for name in sorted(splits, key=lambda name: name != "train"):  # training first
        for pair in splits[name]:
            lines = [" ".join(unicodedata.normalize("NFC", line).lower().split()) for line in pair]
            if not all(lines):
                counts["empty"] += 1
                continue
            counts["too_long"] += any(len(line.split()) > LONGEST for line in lines)
            if name == "train":
                counts["duplicates"] += frozenset(lines) in seen
                seen.add(frozenset(lines))
                known.update(lines)
            else:
                counts["overlap"] += not known.isdisjoint(lines)
    return counts


def words(g: torch.Generator, count: int) -> str:
    """A new line of this many words."""
    letters = "bcdfglmnprstv"
    picks = torch.randint(len(letters), (count, 3), generator=g).tolist()
    return " ".join(f"{letters[a]}o{letters[b]}a{letters[c]}e" for a, b, c in picks)


def small(**splits: list[tuple[str, str]]) -> Case:
    return Case((splits,))


def inputs(g: torch.Generator, train: int, test: int, extra: str = "",
           names: tuple[str, ...] = ("validation", "test"), most: int = 1) -> Case:
    """Splits with sound pairs and the kinds of pairs that `extra` names, in words separated by blanks.

    most: how often each kind may come; the number is drawn.
    """
    sound = [(words(g, 3 + n % 4), words(g, 2 + n % 5)) for n in range(train)]
    others = {name: [(words(g, 4), words(g, 3)) for _ in range(test + place)] for place, name in enumerate(names)}
    splits: Splits = {"train": list(sound), **others}
    a, b, c, d = sound[0], sound[1 % train], sound[2 % train], sound[3 % train]
    first, last = splits[names[0]], splits[names[-1]]
    put = {
        "twice": lambda: splits["train"].append(a),
        "three": lambda: splits["train"].extend([b, a, b]),
        "joined": lambda: splits["train"].extend([("a b", "c"), ("a", "b c")]),
        "case": lambda: splits["train"].append((a[0].upper(), a[1].title())),
        "spaces": lambda: splits["train"].append((f"  {b[0].replace(' ', '   ')}\t", f"{b[1]}\n")),
        "tabs": lambda: splits["train"].append((d[0].replace(" ", "\t"), d[1].replace(" ", " \t"))),
        "reversed": lambda: splits["train"].append((c[1], c[0])),
        "other-target": lambda: splits["train"].append((a[0], words(g, 4))),
        "accents": lambda: splits["train"].extend([("caff\u00e8 e t\u00e8", words(g, 2)),
                                                   ("caffe\u0300 e te\u0300", words(g, 2))]),
        "accents-twice": lambda: splits["train"].extend([("perch\u00e9 no", "\u00e8 l\u00ec"),
            ("perche\u0301 no", "e\u0300 li\u0300"),
                                                          ("perche no", "e li")]),
        "forms": lambda: splits["train"].extend([("\ufb01 m", "q"), ("fi m", "q"), ("Wei\u00df", "r"), ("WEISS", "r"),
                                                 ("Gro\u00df", "s"),
                                                 ("gross", "s")]),
        "together": lambda: last.append((words(g, 27), words(g, 28))),
        "same-in-test": lambda: last.extend([last[0], last[0]]),
        "leak": lambda: last.append(a),
        "leak-case": lambda: last.append((f" {b[0].title()}", words(g, 3))),
        "leak-source": lambda: first.append((c[0], words(g, 3))),
        "leak-target": lambda: first.append((words(g, 3), d[1])),
        "leak-reversed": lambda: last.append((d[1], words(g, 2))),
        "leak-twice": lambda: last.extend([a, a]),
        "leak-accents": lambda: (splits["train"].append(("citt\u00e0", words(g, 2))),
                                 last.append(("citta\u0300", words(g, 2)))),
        "test-in-validation": lambda: last.append(first[0]),
        "empty-source": lambda: splits["train"].append(("", words(g, 3))),
        "empty-target": lambda: last.append((words(g, 3), "")),
        "blanks": lambda: first.append((" \t ", words(g, 3))),
        "both-empty": lambda: splits["train"].extend([("", ""), ("", " ")]),
        "empty-leak": lambda: last.append((a[0], " ")),
        "empty-twice": lambda: splits["train"].extend([(a[0], ""), (a[0], "")]),
        "long-source": lambda: splits["train"].append((words(g, LONGEST + 1), words(g, 40))),
        "long-target": lambda: last.append((words(g, 30), words(g, LONGEST + 7))),
        "long-both": lambda: splits["train"].append((words(g, LONGEST + 3), words(g, LONGEST + 1))),
        "ten": lambda: splits["train"].append((words(g, 10), words(g, 9))),
        "just": lambda: splits["train"].append((words(g, LONGEST), words(g, LONGEST))),
        "just-spaced": lambda: splits["train"].append((words(g, LONGEST).replace(" ", "  "), words(g, 4))),
        "long-tabs": lambda: splits["train"].append((words(g, LONGEST + 2).replace(" ", "\t"), words(g, 4))),
        "long-empty": lambda: splits["train"].append((words(g, LONGEST + 2), "")),
        "long-leak": lambda: (splits["train"].append((long := words(g, LONGEST + 5), words(g, 5))),
                              last.append((long, words(g, 3)))),
    }  # fmt: skip
    for name in extra.split():
        for _ in range(int(torch.randint(1, most + 1, (), generator=g)) if most > 1 else 1):
            put[name]()
    return Case((splits,))


drawn = partial(inputs, most=3)  # so that the sizes of the splits do not tell the counts


def nothing(g: torch.Generator) -> Case:
    """Splits without a pair."""
    return Case(({"train": [], "test": [(words(g, 2), words(g, 2))], "validation": []},))


def one_pair(g: torch.Generator) -> Case:
    """One pair to train on, which is the test as well."""
    pair = (words(g, 1), words(g, 1))
    return Case(({"train": [pair], "test": [pair]},))


def test_first(g: torch.Generator) -> Case:
    """The splits in another order: what is to be trained on comes last."""
    splits = inputs(g, 6, 3, "twice leak leak-source").arguments[0]
    return Case((dict(reversed(list(splits.items()))),))


def counted(evidence: Evidence) -> str:
    """The first count that differs."""
    if isinstance(evidence.got, dict):
        for name, wanted in evidence.expected.items():
            if evidence.got.get(name) != wanted:
                return f"You counted {name}: {evidence.got.get(name)}; expected {wanted}."
    return ""


Way = Callable[[Splits], int]


def counts(name: str, *ways: Way) -> Callable[[Evidence], bool]:
    """A mark: this count is wrong, and it is what one of the ways to count gives."""

    def shows(evidence: Evidence) -> bool:
        (splits,) = evidence.arguments
        got = evidence.got.get(name)
        return got != evidence.expected[name] and got in {way(splits) for way in ways}

    return shows


def _sound(pairs: Pairs) -> Pairs:
    """The pairs of which neither line is empty."""
    return [(a, b) for a, b in pairs if a.split() and b.split()]


def _form(line: str) -> str:
    return " ".join(unicodedata.normalize("NFC", line).lower().split())


def _repeated(pairs: Pairs, form: Callable[[str], str] = _form) -> int:
    """How many pairs repeat an earlier one, where lines are compared in this form."""
    return len(pairs) - len({frozenset((form(a), form(b))) for a, b in pairs})


def _repeated_if(spaces: Callable[[str], str]) -> Way:
    """The duplicates of training, where this is done with the white space of a line."""
    return lambda splits: _repeated(
        _sound(splits["train"]), lambda line: spaces(unicodedata.normalize("NFC", line).lower())
    )


def _known_on_its_side(splits: Splits) -> int:
    """The pairs of which the source is a source of training, or the target a target."""
    train = _sound(splits["train"])
    sources, targets = {_form(a) for a, _ in train}, {_form(b) for _, b in train}
    return sum(_form(a) in sources or _form(b) in targets for a, b in _others(splits))


def _among_sources(splits: Splits) -> int:
    """The pairs of which one line is a source of training."""
    sources = {_form(a) for a, _ in _sound(splits["train"])}
    return sum(_form(a) in sources or _form(b) in sources for a, b in _others(splits))


def _others(splits: Splits) -> Pairs:
    return [pair for name, split in splits.items() if name != "train" for pair in _sound(split)]


def _are_long(pairs: Pairs) -> int:
    """How many lines, not pairs, have too many words."""
    return sum(len(line.split()) > LONGEST for pair in pairs for line in pair)


def all_pairs(splits: Splits) -> Pairs:
    return [pair for split in splits.values() for pair in split]


def by_name(evidence: Evidence) -> bool:
    """Whether the overlap is that of some splits only, where there are splits with other names than the usual ones."""
    (splits,) = evidence.arguments
    others = [name for name in splits if name != "train"]
    if {"validation", "test"} >= set(others) or evidence.got["overlap"] == evidence.expected["overlap"]:
        return False
    each = {name: audit({"train": splits["train"], name: splits[name]})["overlap"] for name in others}
    sums = {sum(each[name] for name in some) for size in range(len(others)) for some in combinations(others, size)}
    return evidence.got["overlap"] in sums


def train_comes_later(evidence: Evidence) -> bool:
    """Whether training is not the first of the splits."""
    return next(iter(evidence.arguments[0])) != "train"


SPELLINGS = small(
    train=[("She slept.", "Ha dormito."), ("she slept.", "ha dormito."), ("SHE slept.", "Ha dormito."),
           ("She slept.", "ha DORMITO."),
           ("She SLEPT.", "Ha dormito."), ("We sleep.", "Dormiamo."), ("We  sleep.", "Dormiamo."),
           ("We\tsleep.", "Dormiamo."), ("Go home.", "Va a casa."),
           ("Go home. ", "Va a casa."), ("Go home.", " Va a casa.")],
    test=[("I read.", "Leggo.")],
)
AGAIN = small(
    train=[("Go.", "Va."), ("Go.", "Va."), ("Go.", "Va."), ("Go.", "Vai."), ("Leave.", "Va."), ("Go.", "Andate."),
           ("We sleep.", "Dormiamo."), ("Dormiamo.", "We sleep.")],
    test=[("I read.", "Leggo."), ("I read.", "Leggo.")],
)
KNOWN = small(
    train=[("She slept.", "Ha dormito."), ("We sleep.", "Dormiamo."), ("Go.", "Va.")],
    test=[("Go.", "Va."), ("Go.", "Va."), ("Go.", "Dormiamo."), ("He slept.", "Ha dormito."), ("Leave.", "Va."),
          ("Dormiamo.", "Sleep."),
          ("Ha dormito.", "He did."), ("Va.", "Leave."), ("Va.", "Leave now."), ("go.", "Parti."),
          ("I read.", "Io leggo.")],
    validation=[("Go.", "Vai."), ("We sleep.", "Si dorme."), ("She slept.", "Dormiva."), ("Va.", "Move."),
                ("I read.", "Leggo.")],
)
EMPTY_LINES = small(
    train=[("Go.", "Va."), ("", "Dormi."), ("Go.", ""), ("Go.", " "), ("\t", " "), ("", "Leggo.")],
    validation=[(" ", "Leggo."), ("I read.", "Leggo.")],
    test=[("We sleep.", ""), ("We sleep.", "Dormiamo."), ("Go.", "")],
)

RIGHT = answer("""
    import unicodedata

    def audit(splits):
        def normal(line):
            line = unicodedata.normalize("NFC", line)
            line = line.lower()
            return " ".join(line.split())

        def is_empty(pair):
            return not pair[0].strip() or not pair[1].strip()

        def is_long(pair):
            return any(len(line.split()) > 50 for line in pair)

        pairs = [pair for split in splits.values() for pair in split]
        empty = sum(is_empty(pair) for pair in pairs)
        pairs = [pair for pair in pairs if not is_empty(pair)]
        too_long = sum(is_long(pair) for pair in pairs)
        train = [(normal(a), normal(b)) for a, b in splits["train"] if not is_empty((a, b))]
        distinct = {tuple(sorted(pair)) for pair in train}
        duplicates = len(train) - len(distinct)
        known = {line for pair in train for line in pair}
        others = [pair for name, split in splits.items() if name != "train" for pair in split if not is_empty(pair)]
        overlap = sum(normal(a) in known or normal(b) in known for a, b in others)
        return {"duplicates": duplicates, "overlap": overlap, "empty": empty, "too_long": too_long}
""")
LOWER, SPACES, FORM = (
    "line = line.lower()", 'return " ".join(line.split())', 'line = unicodedata.normalize("NFC", line)'
)
DISTINCT, DUPLICATES = "distinct = {tuple(sorted(pair)) for pair in train}", "duplicates = len(train) - len(distinct)"
OVERLAP = "overlap = sum(normal(a) in known or normal(b) in known for a, b in others)"
EMPTY, LONG = "not pair[0].strip() or not pair[1].strip()", "any(len(line.split()) > 50 for line in pair)"
OTHERS = 'if name != "train" for pair in split'
OTHER_SPACES: tuple[Callable[[str], str], ...] = (  # what is done with white space, though not all of it
    str.strip,
    lambda line: line.strip().replace("  ", " "),
    lambda line: re.sub(" +", " ", line).strip(),
    lambda line: re.sub(" +", " ", line.strip()),
    lambda line: re.sub(r"\s\s+", " ", line).strip(),
)

EXERCISE = Exercise(
    id="audit", number="12.1", difficulty=2, minutes=45, visible_points=1, hidden_points=4,
    reference=audit, section=DATA,
    omits={"precision": "pairs are counted, no number is given"},
    probes=(
        visible("by hand: capitals and spaces", SPELLINGS),
        visible("by hand: repeated pairs", AGAIN),
        visible("by hand: lines that occur in training", KNOWN),
        visible("by hand: empty lines", EMPTY_LINES),
        visible("lines of 51 words", inputs, 5, 3,
                "long-source long-both just just-spaced just-spaced ten together long-target long-leak "
                + "long-empty " * 6),  # a count that no other mistake gives
        hidden("sound data", drawn, 9, 4, announced_by="dict of four whole numbers"),
        hidden("pairs that occur twice and three times", drawn, 7, 3, "twice three other-target joined",
               announced_by="minus the number of distinct ones"),
        hidden("capitals and spaces", drawn, 6, 3, "case spaces leak-case tabs", announced_by="in lower case"),
        hidden("an accent in two ways", drawn, 6, 3, "accents accents-twice leak-accents forms",
               announced_by="Unicode form NFC"),
        hidden("pairs the other way round", drawn, 6, 3, "reversed leak-reversed",
               announced_by="as a source or as a target"),
        hidden("a source that is known, a target that is known", drawn, 8, 3,
               "leak leak-source leak-target leak-twice",
               announced_by="as a source or as a target"),
        hidden("twice in the test, not in training", drawn, 5, 3, "same-in-test test-in-validation",
               announced_by="occurs in \"train\""),
        hidden("empty lines", drawn, 6, 3, "empty-source empty-target blanks both-empty",
               announced_by="empty or only white space"),
        hidden("empty pairs are counted as nothing else", drawn, 6, 3,
               "empty-leak empty-twice long-empty both-empty twice",
               announced_by="Such a pair is not counted anywhere else"),
        hidden("long lines on either side", drawn, 6, 3,
               "long-target long-both just just-spaced long-leak together long-tabs",
               announced_by="more than 50 words"),
        hidden("other splits", drawn, 6, 3, "twice leak leak-source empty-target long-target",
               names=("dev", "test 2016", "held_out"),
               announced_by="There may be others under any name"),
        hidden("the splits in another order", test_first, announced_by="in any order"),
        hidden("one pair", one_pair, announced_by="There may be others under any name"),
        hidden("nothing to train on", nothing, announced_by="A split may be empty"),
        second_call(drawn, 6, 3, "twice case reversed leak leak-target empty-source long-target"),
    ),
    mistakes=(
        mistake("capitals make another line", RIGHT.without(LOWER), DATA,
            """*She slept.* and *she slept.* count as two lines in your code, so a training sentence can be in the test
            with a small letter. Compare in lower case.""", quotes=counted),
        mistake("spaces make another line", RIGHT.but(SPACES, "return line"), DATA,
            """A line with two spaces, or with one at its end, counts as a different line in your code. Replace every
            run of white space by one space, and strip the ends.""", quotes=counted),
        mistake("only the ends are stripped", RIGHT.but(SPACES, "return line.strip()"), DATA,
            """The ends are stripped, but not every run of white space inside a line becomes one space, so the line
            counts as a different one. A run may be of any length, and a tab is white space too.""", quotes=counted,
            shows=counts("duplicates", *map(_repeated_if, OTHER_SPACES))),
        mistake("two ways to write an accent", RIGHT.without(FORM), DATA,
            """One and the same letter with an accent can be one character or two, and looks alike. Your comparison
            takes them for different lines. Bring every line to Unicode form NFC first.""", quotes=counted),
        mistake("nothing is normalized", RIGHT.without(LOWER).without(FORM).but(SPACES, "return line"), DATA,
            """Lines are compared as they are, so capitals, spaces and accents hide equal sentences. Normalize
            both sides of every comparison.""", quotes=counted),
        mistake("another form of Unicode", RIGHT.but('"NFC"', '"NFKC"'), DATA,
            "Form NFKC treats more characters as equal than NFC: a raised 2 becomes a 2, and two lines that differ "
            "become one."),
        mistake("casefold", RIGHT.but("line.lower()", "line.casefold()"), DATA,
            "casefold goes further than lower case: it makes ss of \u00df, and two lines that differ become one."),
        mistake("accents thrown away", RIGHT.but('"NFC", line)', '"NFKD", line).encode("ascii", "ignore").decode()'),
                DATA,
            """Without its accents one word becomes another, and other scripts vanish. Form NFC keeps them and only
            writes them one way.""", quotes=counted),
        mistake("tokens counted",
                RIGHT.but(DISTINCT, "words = [word for pair in train for line in pair for word in line.split()]").but(
                  DUPLICATES, "duplicates = len(words) - len(set(words))"), DATA,
            "You counted *words* that occur again, and every text is full of those. A duplicate is a pair of lines.",
            quotes=counted),
        mistake("lines counted", RIGHT.but(DISTINCT, "lines = [line for pair in train for line in pair]").but(
                  DUPLICATES, "duplicates = len(lines) - len(set(lines))"), DATA,
            """You counted *lines* that occur again. A line may well have two translations; a duplicate is a *pair*
            that occurs again.""", quotes=counted),
        mistake("sources counted", RIGHT.but(DISTINCT, "distinct = {a for a, b in train}"), DATA,
            """You counted sources that occur again. One line may have two translations; a duplicate has both lines in
            common with another pair.""", quotes=counted),
        mistake("every copy counted", RIGHT.but(DUPLICATES, """
                  order = [tuple(sorted(pair)) for pair in train]
                  duplicates = sum(order.count(pair) > 1 for pair in order)"""), DATA,
            "The first of several equal pairs was counted too. The first copy is not a duplicate: count n - 1 for n "
            "equal pairs.", quotes=counted),
        mistake("kinds of duplicates counted", RIGHT.but(DUPLICATES, """
                  order = [tuple(sorted(pair)) for pair in train]
                  duplicates = sum(order.count(pair) > 1 for pair in distinct)"""), DATA,
            "You count a pair that occurs three times once, although two of the three are duplicates.",
            quotes=counted),
        mistake("the other direction is another pair", RIGHT.but("tuple(sorted(pair)) for", "pair for"), DATA,
            """*Ha dormito.* to *She slept.* and the same pair reversed count as two different pairs in your code. A
            corpus that was collected in both directions holds everything twice: ignore which side a line is on.""",
            quotes=counted),
        mistake("pairs joined into one text", RIGHT.but("tuple(sorted(pair)) for", '" ".join(sorted(pair)) for'), DATA,
            """The two lines of a pair were joined into one text, so *a b* with *c* counts as the same pair as *a* with
            *b c*. Compare pairs of lines."""),
        mistake("duplicates of all splits", RIGHT.but(DISTINCT, """
                  whole = [(normal(a), normal(b)) for a, b in pairs]
                  distinct = {tuple(sorted(pair)) for pair in whole}""").but("len(train) -", "len(whole) -"), DATA,
            """Pairs of validation and test were counted as duplicates too. Duplicates are those of training; what is
            known from training is the overlap.""", quotes=counted,
            shows=counts("duplicates", lambda splits: _repeated(_sound(all_pairs(splits))),
                         lambda splits: sum(_repeated(_sound(split)) for split in splits.values()))),
        mistake("overlap of whole pairs", RIGHT.but(OVERLAP, """
                  both = {tuple(sorted(pair)) for pair in train}
                  overlap = sum(tuple(sorted((normal(a), normal(b)))) in both for a, b in others)"""), DATA,
            """You compared whole pairs. One known line is enough: a test sentence whose source was in training with a
            different translation is not unseen either.""", quotes=counted),
        mistake("both lines must be known", RIGHT.but("in known or", "in known and"), DATA,
            "You required both lines to be known from training. One of them suffices.", quotes=counted),
        mistake("known on its own side only", RIGHT.but(OVERLAP, """
                  sources, targets = {a for a, b in train}, {b for a, b in train}
                  overlap = sum(normal(a) in sources or normal(b) in targets for a, b in others)"""), DATA,
            """A test source was looked for among the sources of training only. In a corpus of both directions it may
            be among the targets: look on either side.""", quotes=counted,
            shows=counts("overlap", _known_on_its_side, _among_sources)),
        mistake("sources of the test only", RIGHT.but("normal(a) in known or normal(b) in known", "normal(a) in known"),
                DATA,
            "Only the sources were looked for. A target that was learned is known as well.", quotes=counted),
        mistake("different pairs of the overlap", RIGHT.but(OVERLAP, """overlap = len({(normal(a), normal(b)) for a,
                  b in others if normal(a) in known or normal(b) in known})"""), DATA,
            "A pair that is in the test twice is counted once. Both copies are scored, so both count.",
            quotes=counted),
        mistake("known lines counted",
                RIGHT.but(OVERLAP, "overlap = sum((normal(a) in known) + (normal(b) in known) for a, b in others)"),
                DATA,
            "A pair of which both lines are known counted twice. Pairs are counted, not lines.", quotes=counted),
        mistake("training's lines without their form",
                RIGHT.but("for pair in train for line in pair}", 'for pair in splits["train"] for line in pair}'), DATA,
            "The lines of the test were normalized and those of training were not. Both sides of a comparison need "
            "the same form.", quotes=counted),
        mistake("how many different ones", RIGHT.but(DUPLICATES, "duplicates = len(distinct)"), DATA,
            "You returned the number of distinct pairs. The duplicates are all the other pairs.",
            quotes=counted),
        mistake("the first split taken for training", RIGHT.but('splits["train"]', "next(iter(splits.values()))"), DATA,
            """Your counts are wrong where "train" is not the first of the splits. Was the split that comes first taken
            for training, or was another one compared before the lines of training were known? The splits come in any
            order, and training is the one called "train".""", shows=train_comes_later),
        mistake("test lines searched without their form",
                RIGHT.but("normal(a) in known or normal(b) in known", "a in known or b in known"), DATA,
            """The lines of training were normalized and those of the test were not, so a capital hides a leak. Both
            sides of a comparison need the same form.""", quotes=counted),
        mistake("the test alone", RIGHT.but(OTHERS, 'if name == "test" for pair in split'), DATA,
            """Only the split called "test" was compared. The data used to choose a model must be unseen as well: every
            split except "train" counts.""", quotes=counted),
        mistake("only the last split is counted", RIGHT.but(OVERLAP, """
                  overlap = 0
                  for name, split in splits.items():
                      if name != "train":
                          overlap = sum(normal(a) in known or normal(b) in known for a, b in split if
                              not is_empty((a, b)))"""), DATA,
            """The overlap is that of one split, the last one: each split replaces the count of the one before. Add the
            counts of all splits. Is there an = where += is meant?""", quotes=counted),
        mistake("training compared with itself", RIGHT.but(OTHERS, "for pair in split"), DATA,
            """The pairs of "train" were counted as overlap too: every training line occurs in training. Compare only
            the other splits with it.""", quotes=counted),
        mistake("only splits of known names", RIGHT.but(OTHERS, 'if name in ("validation", "test") for pair in split'),
                DATA,
            """The overlap of a split was not counted because of its name. Apart from "train" the names are free: treat
            every other split in the same way, whatever it is called.""", shows=by_name),
        mistake("every split against those before", RIGHT.but(OVERLAP, """
                  overlap = 0
                  for a, b in others:
                      overlap += normal(a) in known or normal(b) in known
                      known |= {normal(a), normal(b)}"""), DATA,
            "A test pair that is in validation was counted. Overlap is what is known from *training*.",
            quotes=counted),
        mistake("share instead of number",
                RIGHT.but(OVERLAP, OVERLAP + "\n    overlap = overlap / max(len(others), 1)"), DATA,
            "A fraction was returned, or a float. These are counts: whole numbers of pairs."),
        mistake("empty only where both are", RIGHT.but("not pair[0].strip() or not", "not pair[0].strip() and not"),
                DATA,
            "Only pairs with two empty lines were counted. One empty line leaves nothing to learn from: a pair is "
            "empty if either is.", quotes=counted),
        mistake("empty lines counted",
                RIGHT.but("sum(is_empty(pair) for pair in pairs)",
                          "sum(not line.strip() for pair in pairs for line in pair)"), DATA,
            "A pair of two empty lines counted twice. Pairs are counted, not lines.", quotes=counted,
            shows=counts("empty", lambda splits: sum(not line.split() for pair in all_pairs(splits) for line in pair))),
        mistake("empty sources only", RIGHT.but(EMPTY, "not pair[0].strip()"), DATA,
            "Only the sources were checked. A pair whose target is empty teaches a model to output nothing.",
            quotes=counted),
        mistake("blanks are not empty", RIGHT.but(EMPTY, "not pair[0] or not pair[1]"), DATA,
            "A line of blanks holds a character, and no word. It is empty as well: nothing but white space.",
            quotes=counted),
        mistake("empty in training only",
                RIGHT.but("empty = sum(is_empty(pair) for pair in pairs)",
                          'empty = sum(is_empty(pair) for pair in splits["train"])'), DATA,
            "Empty pairs of validation and test were not counted. A score over them says nothing.", quotes=counted),
        mistake("empty pairs counted again",
                RIGHT.but('splits["train"] if not is_empty((a, b))]', 'splits["train"]]').but(
                  "for pair in split if not is_empty(pair)]", "for pair in split]"), DATA,
            """Empty pairs were counted a second time, as duplicates or as overlap: all empty lines are equal. They are
            counted as empty and nowhere else.""", quotes=counted),
        mistake("empty pairs left among the others",
                RIGHT.but("pairs = [pair for pair in pairs if not is_empty(pair)]", "pass").but(
                  'splits["train"] if not is_empty((a, b))]', 'splits["train"]]').but(
                  "for pair in split if not is_empty(pair)]", "for pair in split]"), DATA,
            """Your empty pairs are counted as empty, and then as too long, as duplicates or as overlap too. Once a pair
            has been counted as empty, skip it.""", quotes=counted),
        mistake("lines of empty pairs known",
                RIGHT.but("known = {line for pair in train for line in pair}",
                          'known = {normal(line) for pair in splits["train"] for line in pair}'), DATA,
            """A line that training has only in an empty pair counted as known. Empty pairs are dropped, so no model
            trains on their other line: it is not among the lines of training.""", quotes=counted),
        mistake("empty pairs too long", RIGHT.but("pairs = [pair for pair in pairs if not is_empty(pair)]", "pass"),
                DATA,
            "A pair with one empty and one long line was counted as too long as well. Empty pairs are counted as "
            "empty and nowhere else."),
        mistake("fifty is too many", RIGHT.but("> 50", ">= 50"), DATA,
            "A line of exactly 50 words was counted. Too long is *more than* 50.", quotes=counted),
        mistake("letters counted", RIGHT.but("len(line.split()) >", "len(line) >"), DATA,
            "You counted letters. The limit is 50 *words*: what white space separates.", quotes=counted),
        mistake("spaces counted", RIGHT.but("len(line.split()) >", 'len(line.split(" ")) >'), DATA,
            "Where two spaces follow each other you counted an empty word between them, so a line looks "
            "longer than it is."),
        mistake("words of both lines together", RIGHT.but(LONG, "sum(len(line.split()) for line in pair) > 50"), DATA,
            "The words of both lines were added up. A pair is too long if *one* line has more than 50.",
            quotes=counted),
        mistake("long sources only", RIGHT.but(LONG, "len(pair[0].split()) > 50"), DATA,
            "Only the sources were measured. A target of more than 50 words makes a pair too long as well.",
            quotes=counted),
        mistake("too long if both are", RIGHT.but("any(len", "all(len"), DATA,
            "Only pairs with two long lines were counted. One line of more than 50 words is enough.", quotes=counted),
        mistake("long lines counted",
                RIGHT.but("sum(is_long(pair) for pair in pairs)",
                          "sum(len(line.split()) > 50 for pair in pairs for line in pair)"), DATA,
            "A pair with two long lines was counted twice. Pairs are counted, not lines.",
            shows=counts("too_long", lambda splits: _are_long(_sound(all_pairs(splits))),
                         lambda splits: _are_long(all_pairs(splits)))),
        mistake("too long in training only", RIGHT.but("sum(is_long(pair) for pair in pairs)",
                  'sum(is_long(pair) for pair in splits["train"] if not is_empty(pair))'), DATA,
            "Long pairs of validation and test were not counted. The limit holds for every split."),
        mistake("long pairs left out",
                RIGHT.but("if not is_empty((a, b))]", "if not is_empty((a, b)) and not is_long((a, b))]"), DATA,
            "Pairs that are too long were left out of the other counts. They are there: a long sentence in the test "
            "that was learned is overlap too."),
    ),
    correct=(
        correct("sets", RIGHT),
        correct("one pass", """
            import unicodedata
            from collections import Counter

            MOST = 50

            def clean(text):
                return " ".join(unicodedata.normalize("NFC", text.lower()).split())

            def audit(splits):
                found = Counter(duplicates=0, overlap=0, empty=0, too_long=0)
                times, lines = Counter(), set()
                for source, target in splits["train"]:
                    a, b = clean(source), clean(target)
                    if a and b:
                        times[frozenset((a, b))] += 1
                        lines |= {a, b}
                found["duplicates"] = sum(n - 1 for n in times.values())
                for name, pairs in splits.items():
                    for source, target in pairs:
                        a, b = clean(source), clean(target)
                        if not (a and b):
                            found["empty"] += 1
                        else:
                            found["too_long"] += int(max(a.count(" "), b.count(" ")) >= MOST)
                            if name != "train":
                                found["overlap"] += int(a in lines or b in lines)
                return dict(found)
        """),
        correct("regular expressions", """
            import re
            import unicodedata

            def audit(splits):
                norm = lambda s: unicodedata.normalize("NFC", re.sub(r"\\s+", " ", s).strip().lower())
                data = {k: [(norm(p[0]), norm(p[1])) for p in v] for k, v in splits.items()}
                full = {k: [p for p in v if p[0] != "" and p[1] != ""] for k, v in data.items()}
                seen, dup = [], 0
                for p in full["train"]:
                    if p in seen or p[::-1] in seen:
                        dup += 1
                    else:
                        seen.append(p)
                known = set(sum(map(list, full["train"]), []))
                return {
                    "too_long": sum(1 for v in full.values() for p in v
                        if max(len(re.findall(r"\\S+", s)) for s in p) > 50),
                    "empty": sum(len(data[k]) - len(full[k]) for k in data),
                    "overlap": sum(1 for k in full if k != "train" for p in full[k] if set(p) & known),
                    "duplicates": dup,
                }
        """),
    ),
    hints=(
        "when do two lines count as the same? Does it matter whether a line is a source or a target?",
        "a form for a line (NFC, lower case, single spaces); training's pairs without their direction, in a set; all "
        "of its lines, in another set; four whole numbers.",
        "count empty pairs and drop them; count the long ones; the number of training pairs minus the number of "
        "distinct ones, where (a, b) and (b, a) are the same; for every pair of the other splits: is one of its lines "
        "among training's?",
    ),
)  # fmt: skip
