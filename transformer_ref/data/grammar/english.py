"""A meaning in English."""

from transformer_ref.data.grammar.meaning import Attachment, Clause, NounPhrase, Pronoun, Sentence, Verb, with_s

BE = {"present": {(1, "s"): "am", (3, "s"): "is"}, "past": {(1, "s"): "was", (3, "s"): "was"}}
OTHER_BE = {"present": "are", "past": "were"}
OBJECT_PRONOUN = {"m": "him", "f": "her"}
PEOPLE = ("person", "stranger", "kin", "name", "sport", "business")


def noun_phrase(phrase: NounPhrase) -> str:
    """Return the phrase: "an old friend", "these keys", "Anna"."""
    noun = phrase.noun.english if phrase.number == "s" else phrase.noun.english_plural
    words = [adjective.english for adjective in phrase.adjectives] + [noun]
    determiner = phrase.determiner
    if determiner == "a" and words[0][0].lower() in "aeiou":
        determiner = "an"
    if phrase.number == "p":
        determiner = {"this": "these", "that": "those"}.get(determiner, determiner)
    return " ".join([determiner, *words] if determiner else words)


def sentence(meaning: Sentence) -> str:
    """Return the whole sentence with its capital letter and its end mark."""
    parts = []
    if meaning.time and meaning.time_first:
        parts.append(meaning.time[0])
    if meaning.opening:
        parts.append(attachment(meaning.opening) + ",")
    parts.append(_question(meaning.first) if meaning.is_question else clause(meaning.first))
    if meaning.time and not meaning.time_first:
        parts.append(meaning.time[0])
    if meaning.second:
        parts += [meaning.conjunction, clause(meaning.second, without_subject=meaning.same_subject)]
    text = " ".join(parts) + ("?" if meaning.is_question else ".")
    return text[0].upper() + text[1:]


def attachment(meaning: Attachment) -> str:
    """Return "near the river"."""
    return f"{meaning.preposition} {noun_phrase(meaning.phrase)}"


def clause(meaning: Clause, without_subject: bool = False) -> str:
    """Return subject, verb and all that follows."""
    words = [] if without_subject else [_subject(meaning.subject)]
    person = meaning.subject.person, meaning.subject.number
    if meaning.verb is None:
        words += [_be(meaning.tense, person, meaning.negative), meaning.predicate.english]
    else:
        words.append(verb_group(meaning.verb, meaning.tense, person, meaning.negative))
    return " ".join(words + _after_verb(meaning))


def verb_group(verb: Verb, tense: str, person: tuple[int, str], negative: bool) -> str:
    """Return the verb: "did not look for", "closes", "will open"."""
    if tense == "future":
        return f"will not {verb.english}" if negative else f"will {verb.english}"
    if negative:
        return f"{_do(tense, person)} not {verb.english}"
    if tense == "past":
        return verb.past
    return third_person(verb.english) if person == (3, "s") else verb.english


def third_person(verb: str) -> str:
    """Return "looks for" for "look for", "goes" for "go"."""
    first, *rest = verb.split()
    return " ".join(["goes" if first == "go" else with_s(first), *rest])


def _do(tense: str, person: tuple[int, str]) -> str:
    if tense == "past":
        return "did"
    return "does" if person == (3, "s") else "do"


def _be(tense: str, person: tuple[int, str], negative: bool) -> str:
    if tense == "future":
        return "will not be" if negative else "will be"
    form = BE[tense].get(person, OTHER_BE[tense])
    return f"{form} not" if negative else form


def _question(meaning: Clause) -> str:
    subject, person = _subject(meaning.subject), (meaning.subject.person, meaning.subject.number)
    if meaning.verb is None:
        first, *rest = _be(meaning.tense, person, negative=False).split()
        words = [first, subject, *rest, meaning.predicate.english]
    else:
        auxiliary = "will" if meaning.tense == "future" else _do(meaning.tense, person)
        words = [auxiliary, subject, meaning.verb.english]
    return " ".join(words + _after_verb(meaning))


def _subject(subject: NounPhrase | Pronoun) -> str:
    return subject.english if isinstance(subject, Pronoun) else noun_phrase(subject)


def _after_verb(meaning: Clause) -> list[str]:
    words = [attachment(each) for each in meaning.attachments]
    if meaning.object is None:
        return words
    if isinstance(meaning.object, NounPhrase):
        return [noun_phrase(meaning.object), *words]
    antecedent = meaning.object.antecedent
    if antecedent.number == "p":
        return ["them", *words]
    return [OBJECT_PRONOUN[antecedent.gender] if antecedent.noun.kind in PEOPLE else "it", *words]
