"""The meaning of a sentence, before it is put into a language: words of the lexicon, noun phrases, clauses.

One meaning is rendered twice, by `english` and by `italian`; so a pair is a translation by construction.
Genders are "m" and "f", numbers "s" and "p", tenses "past", "present" and "future".
"""

from dataclasses import dataclass, replace
from functools import cache

from transformer_ref.data.grammar import lexicon


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; `kind` is its table in the lexicon. Without an Italian plural it is a mass noun."""

    english: str
    english_plural: str
    italian: str
    italian_plural: str | None
    gender: str
    plural_gender: str
    kind: str
    only_plural: bool = False  # in English: "keys"
    is_brand: bool = False  # "Windows": in Italian singular, and often without article

    @property
    def is_proper_name(self) -> bool:
        """Whether Italian writes it with a capital letter."""
        return self.italian[0].isupper()

    def capitalized(self) -> "Noun":
        """Return the same noun with the capital letter of a proper name in English."""
        return replace(self, english=self.english.capitalize(), english_plural=self.english_plural.capitalize())


@dataclass(frozen=True)
class Adjective:
    """An adjective; `italian` is the masculine singular, `before` says whether it precedes its noun."""

    english: str
    italian: str
    before: bool


@dataclass(frozen=True)
class Verb:
    """A verb; `objects` are the kinds of its object, or of the noun after its `preposition`."""

    english: str
    past: str
    italian: str
    participle: str
    auxiliary: str
    objects: tuple[str, ...]
    preposition: str | None = None


@dataclass(frozen=True)
class NounPhrase:
    """A noun with a determiner ("the", "a", "my", "two", "" for none) and adjectives in English order."""

    noun: Noun
    number: str = "s"
    determiner: str = "the"
    adjectives: tuple[Adjective, ...] = ()

    person = 3

    @property
    def italian_number(self) -> str:
        """The number in Italian: a brand is singular even where English says "windows"."""
        return "s" if self.noun.is_brand else self.number

    @property
    def gender(self) -> str:
        """The Italian gender, which may change with the number (l'uovo, le uova)."""
        return self.noun.gender if self.italian_number == "s" else self.noun.plural_gender


@dataclass(frozen=True)
class Pronoun:
    """A subject that Italian leaves out."""

    english: str
    person: int
    number: str
    gender: str


@dataclass(frozen=True)
class Reference:
    """An object that was named before: "it", "him", "them"; a clitic in Italian."""

    antecedent: NounPhrase


@dataclass(frozen=True)
class Attachment:
    """A preposition (in English) and its noun phrase."""

    preposition: str
    phrase: NounPhrase


@dataclass(frozen=True)
class Clause:
    """A subject and its predicate: a verb with its object, or an adjective after "to be" (no verb)."""

    subject: NounPhrase | Pronoun
    tense: str
    verb: Verb | None = None
    predicate: Adjective | None = None
    negative: bool = False
    object: NounPhrase | Reference | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True)
class Sentence:
    """One clause, or two joined by "and" or "but", with an optional opening and an optional time.

    time: (English, Italian), said first if `time_first`.
    same_subject: the second clause has the first one's subject and does not repeat it.
    """

    first: Clause
    opening: Attachment | None = None
    time: tuple[str, str] | None = None
    time_first: bool = False
    is_question: bool = False
    conjunction: str | None = None
    second: Clause | None = None
    same_subject: bool = False


@cache
def nouns() -> dict[str, Noun]:
    """Return every noun of the lexicon's tables by its English word."""
    table = {}
    for kind, rows in lexicon.NOUNS.items():
        for english, italian, plural, genders in _rows(rows):
            gender, _, plural_gender = genders.partition("/")
            plurals = english_plural(english), None if plural == "-" else plural
            table[english] = Noun(english, plurals[0], italian, plurals[1], gender, plural_gender or gender, kind)
    return table


@cache
def adjectives() -> dict[str, Adjective]:
    """Return every adjective by its English word."""
    before, after = _rows(lexicon.ADJECTIVES_BEFORE), _rows(lexicon.ADJECTIVES_AFTER)
    return {row[0]: Adjective(*row, before=rows is before) for rows in (before, after) for row in rows}


@cache
def verbs() -> dict[str, Verb]:
    """Return every verb by its English base form, "look for" written with a space."""
    table = {}
    for kinds, rows in lexicon.TRANSITIVE_VERBS.items():
        counted = tuple(kind for kind in lexicon.NOUNS if kind != "drink")
        for row in _rows(rows):
            objects = counted if kinds == "any" else tuple(kinds.split())
            table[row[0]] = Verb(*row, auxiliary="avere", objects=objects)
    for (auxiliary, use), rows in lexicon.INTRANSITIVE_VERBS.items():
        preposition, *kinds = use.split()
        for row in _rows(rows):
            table[row[0]] = Verb(*row, auxiliary=auxiliary, objects=tuple(kinds), preposition=preposition)
    return table


@cache
def pronouns() -> tuple[Pronoun, ...]:
    """Return the subject pronouns."""
    return tuple(Pronoun(*row) for row in lexicon.PRONOUNS)


@cache
def nouns_of(*kinds: str) -> list[Noun]:
    """Return the nouns of these kinds."""
    return [noun for noun in nouns().values() if noun.kind in kinds]


@cache
def adjectives_of(kind: str) -> list[Adjective]:
    """Return the adjectives that go with nouns of this kind, each in the sense that it has with them."""
    fitting = [adjectives()[each] for each in lexicon.ADJECTIVES_OF_KIND[kind].split()]
    senses = lexicon.ADJECTIVE_SENSES
    return [replace(each, italian=senses.get(each.english, {}).get(kind, each.italian)) for each in fitting]


@cache
def verbs_taking(kind: str | None) -> list[Verb]:
    """Return the verbs whose object may be of this kind, or of any kind if None."""
    counted = len(lexicon.NOUNS) - 1
    transitive = [verb for verb in verbs().values() if not verb.preposition]
    if kind is None:
        return [verb for verb in transitive if len(verb.objects) == counted]
    return [verb for verb in transitive if kind in verb.objects]


def ambiguous_noun(english: str, group: str) -> Noun:
    """Return the noun that an ambiguous English word stands for next to cues of this group."""
    *italian, gender = lexicon.AMBIGUOUS[english][3][group].split()
    only_plural = english in ("windows", "keys")
    plural = english if only_plural else english_plural(english)
    if gender == "brand":
        return Noun(english, plural, italian[0], None, "m", "m", group, only_plural, is_brand=True)
    return Noun(english, plural, italian[0], italian[1], gender, gender, group, only_plural)


def english_plural(noun: str) -> str:
    """Return the plural of an English noun."""
    if noun in lexicon.ENGLISH_PLURALS:
        return lexicon.ENGLISH_PLURALS[noun]
    return with_s(noun)


def with_s(word: str) -> str:
    """Return a noun's regular plural, which is spelled as a verb's third person."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word[-1] == "y" and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _rows(table: str) -> list[list[str]]:
    return [[part.replace("_", " ") for part in row.split()] for row in table.split(";")]
