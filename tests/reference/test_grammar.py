"""The built-in corpus: its Italian is correct, its splits are honest, its seed decides it."""

import itertools
import re
from collections import Counter

import pytest
from italian_table import FORMS, PHRASES, SENTENCES

from transformer_ref.data.grammar import corpora, english, italian, lexicon
from transformer_ref.data.grammar.corpora import build_corpus, held_out_cue, is_held_out
from transformer_ref.data.grammar.italian_verbs import PERSONS, conjugate
from transformer_ref.data.grammar.meaning import (
    Attachment,
    Clause,
    NounPhrase,
    Reference,
    Sentence,
    adjectives,
    adjectives_of,
    ambiguous_noun,
    nouns,
    nouns_of,
    pronouns,
    verbs,
)

PLURAL_DETERMINERS = {"these": "this", "those": "that"}
DETERMINERS = ("the", "a", "an", "this", "that", "some", "two", "three", "many", *italian.POSSESSIVES)
VOWELS = "aeiouàèéìòùh"
ELIDED = ("l'", "un'", "dell'", "all'", "dall'", "nell'", "sull'", "quell'", "quest'", "bell'")
UNELIDED = (
    "lo",
    "la",
    "una",
    "questo",
    "questa",
    "quello",
    "quella",
    "dello",
    "della",
    "allo",
    "alla",
    "nello",
    "nella",
    "sullo",
    "sulla",
    "dallo",
    "dalla",
    "bello",
    "bella",
)
BEFORE_LO = ("lo", "uno", "dello", "allo", "dallo", "nello", "sullo", "quello", "bello", "buono")
BEFORE_IL = ("il", "del", "al", "dal", "nel", "sul", "quel", "bel")
BEFORE_GLI = ("gli", "degli", "agli", "dagli", "negli", "sugli", "quegli", "begli")
BEFORE_I = ("i", "dei", "ai", "dai", "nei", "sui", "quei", "bei")
FEMININE = ("la", "una", "della", "alla", "dalla", "nella", "sulla", "quella", "questa", "mia", "tua", "sua", "nostra")
FEMININE_PLURAL = ("le", "delle", "alle", "dalle", "nelle", "sulle", "quelle", "queste", "mie", "tue", "sue", "molte")


@pytest.fixture(scope="module")
def corpus():
    return build_corpus(train=12_000, validation=50, test=200, held_out=200)


@pytest.fixture(scope="module")
def italian_sentences(corpus):
    return [pair.italian for split in corpus for pair in split]


def phrase(text: str) -> NounPhrase:
    """Return the noun phrase that this English says; "windows|device" names the group of an ambiguous noun."""
    text, _, group = text.partition("|")
    *words, last = text.split()
    determiner = words.pop(0) if words and words[0] in (*DETERMINERS, *PLURAL_DETERMINERS) else ""
    known = (
        [ambiguous_noun(last.lower(), group)]
        if group and last.lower() in lexicon.AMBIGUOUS
        else [ambiguous_noun(word, group) for word in lexicon.AMBIGUOUS if group in lexicon.AMBIGUOUS[word][3]]
        if group
        else list(nouns().values())
    )
    noun, number = next(
        (noun, number)
        for noun in known
        for form, number in ((noun.english, "s"), (noun.english_plural, "p"))
        if form.lower() == last.lower()
    )
    if noun.only_plural and last[0].islower():
        number = "p"
    if last[0].isupper() and group:
        noun = noun.capitalized()
    determiner = {"an": "a"}.get(determiner, PLURAL_DETERMINERS.get(determiner, determiner))
    fitting = {each.english: each for each in adjectives_of(noun.kind)} if words else {}
    chosen = tuple(fitting.get(word, adjectives()[word]) for word in words)
    return NounPhrase(noun, number, determiner, chosen)


def attached(text: str) -> Attachment:
    preposition = max((each for each in lexicon.PREPOSITIONS if text.startswith(each + " ")), key=len)
    return Attachment(preposition, phrase(text.removeprefix(preposition + " ")))


def subject(text: str):
    return next((each for each in pronouns() if each.english == text), None) or phrase(text)


def described(
    who,
    when,
    does=None,
    quality=None,
    what=None,
    where=None,
    negative=False,
    asks=False,
    time=None,
    first=False,
    opening=None,
    then=None,
    then_who=None,
    then_not=False,
) -> Sentence:
    clause = Clause(
        subject(who),
        when,
        verbs()[does] if does else None,
        adjectives()[quality] if quality else None,
        negative,
        phrase(what) if what else None,
        (attached(where),) if where else (),
    )
    second = then and Clause(subject(then_who or who), when, verbs()[then], None, then_not, Reference(clause.object))
    times = {english: (english, italian) for pairs in lexicon.TIMES.values() for english, italian in pairs}
    return Sentence(
        clause,
        attached(opening) if opening else None,
        times[time] if time else None,
        first,
        asks,
        ("but" if then_not else "and") if then else None,
        second,
        then_who is None,
    )


@pytest.mark.parametrize(("english_phrase", "italian_phrase"), PHRASES.items())
def test_noun_phrase_is_what_a_grammarian_writes(english_phrase, italian_phrase):
    begins_with_preposition = english_phrase.startswith(tuple(each + " " for each in lexicon.PREPOSITIONS))
    words = (
        italian.attachment(attached(english_phrase))
        if begins_with_preposition
        else italian.noun_phrase(phrase(english_phrase))
    )
    assert " ".join(words).replace("' ", "'") == italian_phrase


@pytest.mark.parametrize(("verb", "forms"), FORMS.items())
def test_verb_forms_are_what_a_grammarian_writes(verb, forms):
    assert [conjugate(*verb, *person) for person in PERSONS] == forms.split()


@pytest.mark.parametrize(("parts", "english_text", "italian_text"), SENTENCES)
def test_sentence_is_what_a_grammarian_writes(parts, english_text, italian_text):
    meaning = described(**parts)
    assert (english.sentence(meaning), italian.sentence(meaning)) == (english_text, italian_text)


def test_the_tables_written_by_hand_are_long_enough_to_mean_something():
    assert len(SENTENCES) >= 60 and len(PHRASES) + 6 * len(FORMS) >= 120


def words_of(sentence: str) -> list[str]:
    return re.findall(r"\w+'?", sentence.lower())


def neighbors(sentences) -> set[tuple[str, str]]:
    """Return every pair of neighboring words, those with a mark between them left out."""
    return {
        pair
        for sentence in sentences
        for part in re.split(r"[.,?]", sentence)
        for pair in itertools.pairwise(words_of(part))
    }


def takes_lo(word: str) -> bool:
    return bool(re.match(r"z|y|x|gn|ps|pn|s[^aeiouàèéìòù]", word))


def test_elision_happens_before_vowels_and_only_there(italian_sentences):
    for first, second in neighbors(italian_sentences):
        if first.endswith("'"):
            assert first in ELIDED and second[0] in VOWELS, (first, second)
        if first in UNELIDED:
            assert second[0] not in VOWELS or second in ("e", "è"), (first, second)


def test_masculine_articles_fit_the_sound_that_follows(italian_sentences):
    for first, second in neighbors(italian_sentences):
        if first in BEFORE_IL:
            assert second[0] not in VOWELS and not takes_lo(second), (first, second)
        if first in BEFORE_I:
            assert second[0] not in VOWELS and not takes_lo(second), (first, second)
        if first in BEFORE_GLI:
            assert second[0] in VOWELS or takes_lo(second), (first, second)
        if first == "uno":
            assert takes_lo(second), (first, second)
        if first in ("un", "buon"):
            assert not takes_lo(second), (first, second)


def test_no_preposition_stands_before_an_article_it_must_join(italian_sentences):
    articles = ("il", "lo", "l'", "la", "i", "gli", "le")
    wrong = [
        pair
        for pair in neighbors(italian_sentences)
        if pair[0] in ("di", "a", "da", "in", "su") and pair[1] in articles
    ]
    assert wrong == []


def genders() -> dict[str, set[str]]:
    """Return the gender and number of every Italian noun form, by the lexicon."""
    table: dict[str, set[str]] = {}
    for noun in [
        *nouns().values(),
        *(ambiguous_noun(word, group) for word, (*_, senses) in lexicon.AMBIGUOUS.items() for group in senses),
    ]:
        table.setdefault(noun.italian.lower(), set()).add(noun.gender + "s")
        table.setdefault((noun.italian_plural or noun.italian).lower(), set()).add(noun.plural_gender + "p")
    return table


def test_determiners_agree_with_the_noun_they_stand_before(italian_sentences):
    forms, checked = genders(), 0
    wanted = {word: "ms" for word in (*BEFORE_LO, *BEFORE_IL, "un", "questo", "mio", "tuo", "suo", "nostro")}
    wanted |= {word: "mp" for word in (*BEFORE_GLI, *BEFORE_I, "questi", "miei", "tuoi", "suoi", "nostri", "molti")}
    wanted |= {word: "fs" for word in (*FEMININE, "un'")} | {word: "fp" for word in FEMININE_PLURAL}
    for first, second in neighbors(italian_sentences):
        if first in wanted and second in forms and first not in ("lo", "la", "le"):  # these may be clitics
            checked += 1
            assert wanted[first] in forms[second], (first, second)
    assert checked > 1_000


def test_every_adjective_agrees_with_its_noun(italian_sentences):
    forms, checked = genders(), 0
    known = {*adjectives().values(), *(each for kind in lexicon.ADJECTIVES_OF_KIND for each in adjectives_of(kind))}
    after = {
        italian.adjective_form(each.italian, gender, number): set()
        for each in known
        if not each.before
        for gender in "mf"
        for number in "sp"
    }
    for each in known:
        for gender in "mf":
            for number in "sp":
                if not each.before:
                    after[italian.adjective_form(each.italian, gender, number)].add(gender + number)
    for first, second in neighbors(italian_sentences):
        if first in forms and second in after:
            checked += 1
            assert forms[first] & after[second], (first, second)
    assert checked > 1_000


def test_participle_with_essere_agrees_with_a_named_subject():
    for name, ending in (("Anna", "a"), ("Marco", "o"), ("my sisters", "e"), ("the boys", "i")):
        for verb in (each for each in verbs().values() if each.auxiliary == "essere"):
            words = italian.clause(Clause(subject(name), "past", verb, attachments=(attached("in the park"),)))
            participle = next(word for word in words if word[:-1] == verb.participle[:-1])
            assert participle[-1] == ending


def test_participle_agrees_with_the_clitic_before_it():
    for thing, clitic, ending in (
        ("a cake", "l'", "a"),
        ("a book", "l'", "o"),
        ("two cakes", "le", "e"),
        ("two books", "li", "i"),
    ):
        for verb in (each for each in verbs().values() if not each.preposition):
            words = italian.clause(Clause(subject("I"), "past", verb, object=Reference(phrase(thing))))
            assert words == [clitic, "ho", verb.participle[:-1] + ending]


def test_no_english_sentence_has_two_translations(corpus):
    translations: dict[str, str] = {}
    for pair in (pair for split in corpus for pair in split):
        assert translations.setdefault(pair.english, pair.italian) == pair.italian


def test_every_sentence_begins_with_a_capital_and_ends_with_a_mark(corpus):
    for pair in (pair for split in corpus for pair in split):
        for text in (pair.english, pair.italian):
            assert text[0].isupper() and text[-1] in ".?" and "  " not in text and " ," not in text


def test_equal_seeds_give_equal_corpora_and_others_do_not():
    sizes = dict(train=50, validation=5, test=5, held_out=5)
    assert build_corpus(**sizes, seed=3) == build_corpus(**sizes, seed=3) != build_corpus(**sizes, seed=4)


def test_a_corpus_is_generated_once_and_each_caller_gets_lists_of_their_own(monkeypatch):
    sizes = dict(train=40, validation=3, test=4, held_out=2, seed=5)
    expected = build_corpus(**sizes)
    monkeypatch.setattr(corpora, "SentenceGenerator", None)  # a second generator would raise an error
    build_corpus(**sizes).train.clear()
    assert build_corpus(**sizes) == expected and len(expected.train) == 40


def test_the_first_sentences_are_the_same_on_every_machine():
    first = build_corpus(train=2, validation=0, test=0, held_out=0).train
    assert [(pair.english, pair.italian) for pair in first] == [
        ("She helped my grandfather and saw him.", "Ha aiutato mio nonno e l'ha visto."),
        ("I finished her old German diary this morning.", "Ho finito il suo vecchio diario tedesco stamattina."),
    ]


def test_a_smaller_corpus_is_the_beginning_of_a_larger_one():
    small, large = (build_corpus(train=size, validation=0, test=0, held_out=0) for size in (20, 60))
    assert large.train[:20] == small.train


def test_no_sentence_is_in_two_splits(corpus):
    counts = Counter(pair.english for split in corpus for pair in split)
    assert set(counts.values()) == {1}


def test_training_never_shows_a_held_out_combination_and_held_out_shows_nothing_else(corpus):
    seen = [*corpus.train, *corpus.validation, *corpus.test]
    assert not any(is_held_out(pair.sense) for pair in seen)
    assert all(is_held_out(pair.sense) for pair in corpus.held_out)
    for pair in corpus.train:
        if pair.sense:
            absent = held_out_cue(pair.sense.word, pair.sense.group)
            noun = nouns()[absent]
            assert not {noun.english, noun.english_plural} & set(re.findall(r"\w+", pair.english)), pair


def test_every_word_and_sense_holds_out_one_cue_of_nine_and_meets_the_others(corpus):
    met = {
        (pair.sense.word, pair.sense.group, pair.sense.cue) for pair in corpus.train if pair.sense and pair.sense.cue
    }
    for word, (*_, senses) in lexicon.AMBIGUOUS.items():
        for group in senses:
            cues = {noun.english for noun in nouns_of(group)}
            assert len(cues) == 9
            assert {cue for each, where, cue in met if (each, where) == (word, group)} == cues - {
                held_out_cue(word, group)
            }


def test_two_words_of_a_group_hold_out_different_cues():
    for group in lexicon.CUE_KINDS:
        held_out = [held_out_cue(word, group) for word, (*_, senses) in lexicon.AMBIGUOUS.items() if group in senses]
        assert len(set(held_out)) == len(held_out) >= 1


def test_senses_of_a_word_have_different_italian():
    assert len(lexicon.AMBIGUOUS) >= 10
    for word, (*_, senses) in lexicon.AMBIGUOUS.items():
        forms = [set(ambiguous_noun(word, group).italian.split()) for group in senses]
        assert len(forms) == 2 and not forms[0] & forms[1]


def test_the_translation_shows_the_sense_and_never_the_other_one(corpus):
    for pair in (pair for split in corpus for pair in split if pair.sense):
        words = set(re.findall(r"\w+", pair.italian))
        other = next(group for group in lexicon.AMBIGUOUS[pair.sense.word][3] if group != pair.sense.group)
        absent = ambiguous_noun(pair.sense.word, other)
        assert words & set(pair.sense.forms)
        assert not words & {absent.italian, absent.italian_plural}


def test_a_negative_number_of_sentences_is_refused_by_name():
    with pytest.raises(ValueError, match="test: expected a number of sentences, at least 0, got -1"):
        build_corpus(test=-1)
