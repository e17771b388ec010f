"""Draws meanings from the lexicon and renders each in both languages."""

import dataclasses
import random
from collections.abc import Sequence
from typing import TypeVar

from transformer_ref.data.grammar import english, italian, lexicon
from transformer_ref.data.grammar.meaning import (
    Adjective,
    Attachment,
    Clause,
    Noun,
    NounPhrase,
    Pronoun,
    Reference,
    Sentence,
    adjectives,
    adjectives_of,
    ambiguous_noun,
    nouns,
    nouns_of,
    pronouns,
    verbs,
    verbs_taking,
)
from transformer_ref.data.grammar.pairs import Pair, Sense

Item = TypeVar("Item")

# How often each shape of sentence, each tense and each turn is drawn.
SHAPES = {"rest_or_motion": 2, "quality": 1, "object": 3, "left_on": 0.6, "clitic": 2.4, "cue": 10, "telling_verb": 1.5}
CUE_PLACES = {"after": 4, "opening": 3, "clause before": 3}
ADJECTIVE_COUNTS = {0: 5, 1: 3, 2: 1}
TENSES = {"past": 3, "present": 3, "future": 3}
QUESTIONS, NEGATIONS, TIMED, PROPER_NAMES, SAME_SUBJECT = 0.08, 0.2, 0.5, 0.4, 0.6
PLURALS, SCENERY_PLURALS, DROPPED_SUBJECTS = 0.35, 0.1, 0.7

OWNERS = ("my", "your", "his", "her", "our", "their")
POINTERS = ("the", "the", "this", "that")
COUNTS = ("some", "two", "three", "many")
ALL_DETERMINERS = (*POINTERS, "a", "a", *OWNERS, *COUNTS)


class SentenceGenerator:
    """A stream of pairs. It only calls `random()`, which Python keeps equal across versions and machines."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pair(self) -> Pair:
        """Return the next sentence with its translation."""
        sentence, sense = getattr(self, f"_{self.pick_weighted(SHAPES)}")()
        return Pair(english.sentence(sentence), italian.sentence(sentence), sense)

    def pick_weighted(self, weights: dict[Item, float]) -> Item:
        """Return one of the keys, drawn in proportion to its value."""
        mark = self._random.random() * sum(weights.values())
        for item, weight in weights.items():
            mark -= weight
            if mark < 0:
                return item
        return next(reversed(weights))  # the sum was rounded

    # The shapes of a sentence. Each returns a meaning, and the sense of its ambiguous word.

    def _rest_or_motion(self) -> tuple[Sentence, None]:
        verb = self._pick([verb for verb in verbs().values() if verb.preposition])
        where = Attachment(verb.preposition, self._phrase(nouns_of(*verb.objects), POINTERS + ("a", *OWNERS)))
        return self._sentence(self._clause(verb=verb, attachments=(where,))), None

    def _quality(self) -> tuple[Sentence, None]:
        countable = [noun for noun in nouns().values() if noun.italian_plural]
        subject = self._phrase(countable, POINTERS + OWNERS, most_adjectives=0)
        predicate = self._pick(adjectives_of(subject.noun.kind))
        return Sentence(self._clause(subject, predicate=predicate)), None

    def _object(self) -> tuple[Sentence, None]:
        return self._sentence(self._with_object()), None

    def _left_on(self) -> tuple[Sentence, None]:
        thing = self._phrase(nouns_of("thing", "clothes", "text"))
        where = Attachment("on", self._phrase(nouns_of("surface"), POINTERS + OWNERS))
        return self._sentence(self._clause(verb=verbs()["leave"], object=thing, attachments=(where,))), None

    def _clitic(self) -> tuple[Sentence, None]:
        first = self._with_object()
        verb = self._pick([verb for verb in verbs_taking(first.object.noun.kind) if verb != first.verb])
        others = [each for each in pronouns() if each.person < 3]  # "lui" could not always be left out here
        subject = first.subject if self._happens(SAME_SUBJECT) else self._pick(others)
        second = self._clause(subject, first.tense, verb=verb, object=Reference(first.object))
        return self._joined(first, second), None

    def _cue(self) -> tuple[Sentence, Sense]:
        """Return a sentence with an ambiguous word and, near or far, the noun that decides its sense."""
        word = self._pick(list(lexicon.AMBIGUOUS))
        relations, neutral_verbs, _, senses = lexicon.AMBIGUOUS[word]
        group = self._pick(list(senses))
        noun, relation = ambiguous_noun(word, group), self._pick(relations.split(", "))
        place = self.pick_weighted(CUE_PLACES)
        cue = self._phrase(nouns_of(group), POINTERS + ("a", *OWNERS))
        fitting = verbs_taking(None) + [verbs()[each] for each in neutral_verbs.split()]
        phrase = self._ambiguous_phrase(noun, owned=relation != "of" or place != "after")
        clause = self._clause(verb=self._pick(fitting), object=phrase)
        if place == "after":
            sentence = self._sentence(dataclasses.replace(clause, attachments=(Attachment(relation, cue),)))
        elif place == "opening":
            opening = Attachment("near" if relation == "of" else relation, cue)
            sentence = self._sentence(self._with_place(clause), opening)
        else:
            before = self._clause(clause.subject, clause.tense, verb=self._pick(verbs_taking(group)), object=cue)
            sentence = self._joined(self._with_place(before), clause)
        return sentence, Sense(word, group, italian_forms(noun), cue.noun.english)

    def _telling_verb(self) -> tuple[Sentence, Sense]:
        """Return a sentence with an ambiguous word whose sense the verb decides: "I closed the windows"."""
        word = self._pick(list(lexicon.TELLING_VERBS))
        group = self._pick(list(lexicon.TELLING_VERBS[word]))
        verb = verbs()[self._pick(lexicon.TELLING_VERBS[word][group].split()).replace("_", " ")]
        noun = ambiguous_noun(word, group)
        clause = self._clause(verb=verb, object=self._ambiguous_phrase(noun))
        return self._sentence(clause), Sense(word, group, italian_forms(noun), None)

    # Sentences and clauses.

    def _sentence(self, clause: Clause, opening: Attachment | None = None) -> Sentence:
        may_ask = opening is None and not clause.negative and clause.subject.person != 1
        is_question = may_ask and self._happens(QUESTIONS)
        time_first = opening is None and not is_question and self._happens(0.5)
        return Sentence(clause, opening, self._time(clause.tense, TIMED), time_first, is_question)

    def _joined(self, first: Clause, second: Clause) -> Sentence:
        """Join "did" with "and did" or with "but did not"."""
        return Sentence(
            dataclasses.replace(first, negative=False),
            time=self._time(first.tense, TIMED / 2),
            time_first=True,
            conjunction="but" if second.negative else "and",
            second=second,
            same_subject=first.subject == second.subject,
        )

    def _clause(self, subject: NounPhrase | Pronoun | None = None, tense: str | None = None, **parts) -> Clause:
        clause = Clause(
            subject or self._subject(), tense or self.pick_weighted(TENSES), negative=self._happens(NEGATIONS), **parts
        )
        if clause.negative and isinstance(clause.object, NounPhrase) and clause.object.determiner == "some":
            return dataclasses.replace(clause, object=dataclasses.replace(clause.object, determiner=""))
        return clause

    def _with_object(self) -> Clause:
        verb = self._pick([verb for verb in verbs().values() if verb.objects and not verb.preposition])
        return self._clause(verb=verb, object=self._phrase(nouns_of(*verb.objects)))

    def _with_place(self, clause: Clause) -> Clause:
        """Add a place with probability 1/2, so that a cue is further from the word that needs it."""
        if self._happens(0.5):
            return clause
        place = Attachment("in", self._phrase(nouns_of("place"), POINTERS))
        return dataclasses.replace(clause, attachments=(place,))

    def _time(self, tense: str, probability: float) -> tuple[str, str] | None:
        return self._pick(lexicon.TIMES[tense]) if self._happens(probability) else None

    # Noun phrases.

    def _subject(self) -> NounPhrase | Pronoun:
        if self._happens(DROPPED_SUBJECTS):
            return self._pick(pronouns())
        determiners = POINTERS + OWNERS + ("a", "two", "many")
        return self._phrase(nouns_of("person", "kin", "name", "stranger"), determiners, most_adjectives=1)

    def _phrase(
        self, choice: Sequence[Noun], determiners: Sequence[str] = ALL_DETERMINERS, most_adjectives: int = 2
    ) -> NounPhrase:
        noun = self._pick(choice)
        if noun.kind == "name":
            return NounPhrase(noun, determiner="")
        fitting = adjectives_of(noun.kind)
        if not noun.italian_plural:
            return NounPhrase(
                noun, "s", self._pick(("the", "this", "some", "my", "your")), self._adjectives(fitting, 1)
            )
        if noun.kind == "kin":
            determiners = OWNERS
        elif noun.kind in lexicon.UNOWNED_KINDS:
            determiners = [each for each in determiners if each not in OWNERS]
        determiner = self._pick(determiners)
        number = self._number(determiner, SCENERY_PLURALS if noun.kind in lexicon.SCENERY_KINDS else PLURALS)
        return NounPhrase(noun, number, determiner, self._adjectives(fitting, most_adjectives))

    def _ambiguous_phrase(self, noun: Noun, owned: bool = True) -> NounPhrase:
        fitting = [adjectives()[each] for each in lexicon.AMBIGUOUS[noun.english][2].split()]
        chosen = self._adjectives(fitting, 2)
        if noun.is_proper_name and self._happens(PROPER_NAMES):  # "a new Windows", as it is properly written
            determiner = self._pick(("the", "a", "a", "my")) if chosen or not noun.is_brand else ""
            return NounPhrase(noun.capitalized(), "s", determiner, chosen)
        if noun.is_brand:
            return NounPhrase(noun, "p", self._pick(("the", "", "", "my")), chosen)
        determiners = POINTERS + (("my", "her", "two") if owned else ())
        if noun.only_plural:
            return NounPhrase(noun, "p", self._pick((*determiners, "")), chosen)
        determiner = self._pick((*determiners, "a", "a"))
        return NounPhrase(noun, self._number(determiner), determiner, chosen)

    def _adjectives(self, choice: Sequence[Adjective], most: int) -> tuple[Adjective, ...]:
        """Return none, one, or two: one that Italian puts before the noun and one after."""
        count = min(most, self.pick_weighted(ADJECTIVE_COUNTS))
        if count == 2:
            before, after = ([each for each in choice if each.before is side] for side in (True, False))
            if before and after:
                return self._pick(before), self._pick(after)
        return (self._pick(choice),) if count else ()

    def _number(self, determiner: str, plurals: float = PLURALS) -> str:
        if determiner == "a":
            return "s"
        return "p" if determiner in COUNTS or self._happens(plurals) else "s"

    def _happens(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, choice: Sequence[Item]) -> Item:
        return choice[int(self._random.random() * len(choice))]


def italian_forms(noun: Noun) -> tuple[str, ...]:
    """Return the Italian singular and, if there is one, plural."""
    return (noun.italian, noun.italian_plural) if noun.italian_plural else (noun.italian,)
