"""A meaning in Italian: articles, agreement, clitics, dropped pronouns.

Facts of usage kept simple where Italian leaves a choice: "bello" and "quello" elide before every vowel
(bell'idea, quell'amica), "buono" does not in the feminine (buona amica), "grande" never shortens.
"""

from transformer_ref.data.grammar.italian_verbs import agree, conjugate
from transformer_ref.data.grammar.lexicon import PREPOSITIONS
from transformer_ref.data.grammar.meaning import Adjective, Attachment, Clause, NounPhrase, Pronoun, Reference, Sentence

VOWELS = "aeiouàèéìòù"
# The definite article, and the endings that "di", "su", "quello" and "bello" take in front of the same word.
FUSED_ENDINGS = {"il": "l", "lo": "llo", "l'": "ll'", "la": "lla", "i": "i", "gli": "gli", "le": "lle"}
FUSING_PREPOSITIONS = {"a": "a", "da": "da", "di": "de", "in": "ne", "su": "su"}
POSSESSIVES = {
    "my": ("mio", "mia", "miei", "mie"),
    "your": ("tuo", "tua", "tuoi", "tue"),
    "his": ("suo", "sua", "suoi", "sue"),
    "her": ("suo", "sua", "suoi", "sue"),
    "our": ("nostro", "nostra", "nostri", "nostre"),
    "their": ("loro", "loro", "loro", "loro"),
}
INVARIABLE = {"two": "due", "three": "tre"}
CLITICS = {("m", "s"): "lo", ("f", "s"): "la", ("m", "p"): "li", ("f", "p"): "le"}
CONJUNCTIONS = {"and": "e", "but": "ma"}
SOFT_PLURALS = ("simpatico", "pratico")  # simpatici: stressed on the third syllable from the end


def definite_article(gender: str, number: str, next_word: str) -> str:
    """Return il, lo, l', la, i, gli or le, by the word that follows."""
    if gender == "f":
        return "le" if number == "p" else "l'" if starts_with_vowel(next_word) else "la"
    if starts_with_vowel(next_word):
        return "l'" if number == "s" else "gli"
    if needs_lo(next_word):
        return "lo" if number == "s" else "gli"
    return "il" if number == "s" else "i"


def indefinite_article(gender: str, next_word: str) -> str:
    """Return un, uno, un' or una, by the word that follows."""
    if gender == "f":
        return "un'" if starts_with_vowel(next_word) else "una"
    return "uno" if needs_lo(next_word) else "un"


def starts_with_vowel(word: str) -> bool:
    """Whether the article elides: before a vowel, and before a silent h."""
    return word[0].lower() in VOWELS + "h"


def needs_lo(word: str) -> bool:
    """Whether a masculine word takes "lo": s and a consonant, z, x, y, ps, pn, gn."""
    word = word.lower()
    return word[0] in "zxy" or word[:2] in ("ps", "pn", "gn") or (word[0] == "s" and word[1] not in VOWELS)


def fuse(stem: str, article: str) -> str:
    """Return stem and article as one word: de + lo = dello, que + l' = quell', be + gli = begli."""
    return stem + FUSED_ENDINGS[article]


def adjective_form(lemma: str, gender: str, number: str, next_word: str | None = None) -> str:
    """Return the adjective in agreement; `next_word` is given where it is before its noun."""
    if next_word and gender == "m" and number == "s" and lemma == "buono":
        return "buono" if needs_lo(next_word) else "buon"
    if next_word and lemma == "bello":
        return fuse("be", definite_article(gender, number, next_word))
    if lemma == "blu":
        return lemma
    stem, ending = lemma[:-1], lemma[-1]
    if ending == "e":
        return stem + ("e" if number == "s" else "i")
    if number == "p" and stem[-1] in "cg" and not (gender == "m" and lemma in SOFT_PLURALS):
        stem += "h"
    if number == "p" and gender == "m" and stem[-1] == "i":
        return stem
    return agree(stem + "o", gender, number)


def noun_phrase(phrase: NounPhrase, preposition: str | None = None) -> list[str]:
    """Return the words of the phrase, after a preposition (in Italian, "vicino a") if one is given."""
    gender, number = phrase.gender, phrase.italian_number
    words = [phrase.noun.italian if number == "s" else phrase.noun.italian_plural]
    words += [adjective_form(each.italian, gender, number) for each in phrase.adjectives if not each.before]
    for each in reversed([each for each in phrase.adjectives if each.before]):
        words.insert(0, adjective_form(each.italian, gender, number, words[0]))
    determiner = _italian_determiner(phrase)
    if determiner in POSSESSIVES:
        words.insert(0, possessive(determiner, gender, number))
    *lead, last = preposition.split() if preposition else [""]
    if _takes_article(phrase, determiner):
        article = definite_article(gender, number, words[0])
        if last in FUSING_PREPOSITIONS:
            return [*lead, fuse(FUSING_PREPOSITIONS[last], article), *words]
        words.insert(0, article)
    else:
        words = _other_determiner(determiner, gender, number, words[0]) + words
    return [*lead, last, *words] if preposition else words


def possessive(owner: str, gender: str, number: str) -> str:
    """Return mio, mia, miei, mie and so on, by what is owned."""
    return POSSESSIVES[owner][("s", "p").index(number) * 2 + ("m", "f").index(gender)]


def sentence(meaning: Sentence) -> str:
    """Return the whole sentence with its capital letter and its end mark."""
    words = []
    if meaning.time and meaning.time_first:
        words.append(meaning.time[1])
    if meaning.opening:
        words += attachment(meaning.opening)
        words[-1] += ","
    words += clause(meaning.first)
    if meaning.time and not meaning.time_first:
        words.append(meaning.time[1])
    if meaning.second:
        words.append(CONJUNCTIONS[meaning.conjunction])
        words += clause(meaning.second, without_subject=meaning.same_subject)
    text = " ".join(words).replace("' ", "'") + ("?" if meaning.is_question else ".")
    return text[0].upper() + text[1:]


def attachment(meaning: Attachment) -> list[str]:
    """Return the words of "vicino al fiume"."""
    return noun_phrase(meaning.phrase, PREPOSITIONS[meaning.preposition])


def clause(meaning: Clause, without_subject: bool = False) -> list[str]:
    """Return subject, verb and all that follows; a pronoun as subject is not said."""
    subject = meaning.subject
    silent = without_subject or isinstance(subject, Pronoun)
    words = [] if silent else noun_phrase(subject)
    words += ["non"] if meaning.negative else []
    if meaning.verb is None:
        words += _predicate(subject, meaning.tense, meaning.predicate)
    else:
        words += _verb_group(meaning)
    if isinstance(meaning.object, NounPhrase):
        words += noun_phrase(meaning.object)
    for each in meaning.attachments:
        words += attachment(each)
    return words


def _predicate(subject: NounPhrase | Pronoun, tense: str, adjective: Adjective) -> list[str]:
    number = subject.italian_number if isinstance(subject, NounPhrase) else subject.number
    verb_form = conjugate("essere", "imperfect" if tense == "past" else tense, subject.person, number)
    return [verb_form, adjective_form(adjective.italian, subject.gender, number)]


def _verb_group(meaning: Clause) -> list[str]:
    """Return clitic, auxiliary and participle, or clitic and verb."""
    verb, subject = meaning.verb, meaning.subject
    if meaning.tense == "past":
        verb_forms = [conjugate(verb.auxiliary, "present", subject.person, subject.number)]
    else:
        verb_forms = [conjugate(verb.italian, meaning.tense, subject.person, subject.number)]
    named_before = meaning.object.antecedent if isinstance(meaning.object, Reference) else None
    if meaning.tense == "past":
        agreeing = subject if verb.auxiliary == "essere" else named_before
        participle = agree(verb.participle, agreeing.gender, agreeing.number) if agreeing else verb.participle
        verb_forms.append(participle)
    if named_before:
        clitic = CLITICS[named_before.gender, named_before.number]
        if named_before.number == "s" and starts_with_vowel(verb_forms[0]):
            clitic = "l'"
        verb_forms.insert(0, clitic)
    return verb_forms


def _italian_determiner(phrase: NounPhrase) -> str:
    """Return the determiner, with what a brand changes: "new windows" is "un nuovo Windows"."""
    if not phrase.noun.is_brand:
        return phrase.determiner
    if not phrase.adjectives:
        return "" if phrase.determiner in ("the", "a") else phrase.determiner
    return phrase.determiner or "a"


def _takes_article(phrase: NounPhrase, determiner: str) -> bool:
    """Whether a definite article opens the phrase: la mia casa, la loro sorella, but mia sorella."""
    is_bare_relative = phrase.noun.kind == "kin" and phrase.number == "s" and not phrase.adjectives
    if determiner in POSSESSIVES:
        return determiner == "their" or not is_bare_relative
    return determiner == "the"


def _other_determiner(determiner: str, gender: str, number: str, next_word: str) -> list[str]:
    if determiner == "a":
        return [indefinite_article(gender, next_word)]
    if determiner == "this":
        elides = number == "s" and starts_with_vowel(next_word)
        return ["quest'" if elides else agree("questo", gender, number)]
    if determiner == "that":
        return [fuse("que", definite_article(gender, number, next_word))]
    if determiner == "some":
        return [fuse("de", definite_article(gender, number, next_word))]
    if determiner == "many":
        return [agree("molto", gender, number)]
    return [INVARIABLE[determiner]] if determiner in INVARIABLE else []
