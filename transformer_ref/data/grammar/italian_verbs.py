"""Italian conjugation: the regular endings by rule, the irregular verbs of the lexicon by name."""

PERSONS = tuple((person, number) for number in "sp" for person in (1, 2, 3))
PRESENT = {"are": "o i a iamo ate ano", "ere": "o i e iamo ete ono", "ire": "o i e iamo ite ono"}
FUTURE = "ò ai à emo ete anno"
IMPERFECT = {"essere": "ero eri era eravamo eravate erano"}
WITH_ISC = ("pulire", "finire", "gestire")
IRREGULAR_PRESENT = {
    "essere": "sono sei è siamo siete sono",
    "avere": "ho hai ha abbiamo avete hanno",
    "andare": "vado vai va andiamo andate vanno",
    "venire": "vengo vieni viene veniamo venite vengono",
    "bere": "bevo bevi beve beviamo bevete bevono",
    "tradurre": "traduco traduci traduce traduciamo traducete traducono",
    "scegliere": "scelgo scegli sceglie scegliamo scegliete scelgono",
}
FUTURE_STEMS = {
    "essere": "sar",
    "avere": "avr",
    "andare": "andr",
    "vedere": "vedr",
    "venire": "verr",
    "bere": "berr",
    "tradurre": "tradurr",
}


def conjugate(infinitive: str, tense: str, person: int, number: str) -> str:
    """Return one form of a verb.

    tense: "present", "future" or, for essere, "imperfect". person: 1, 2 or 3. number: "s" or "p".
    """
    position = PERSONS.index((person, number))
    if tense == "imperfect":
        return IMPERFECT[infinitive].split()[position]
    if tense == "future":
        return future_stem(infinitive) + FUTURE.split()[position]
    if infinitive in IRREGULAR_PRESENT:
        return IRREGULAR_PRESENT[infinitive].split()[position]
    return _regular_present(infinitive, position)


def future_stem(infinitive: str) -> str:
    """Return what the future's endings follow: cercher-, manger-, aprir-."""
    if infinitive in FUTURE_STEMS:
        return FUTURE_STEMS[infinitive]
    stem, ending = infinitive[:-3], infinitive[-3:]
    if ending != "are":
        return stem + ending[0] + "r"
    if stem[-1] in "cg":
        stem += "h"
    elif stem.endswith(("ci", "gi")):
        stem = stem[:-1]
    return stem + "er"


def agree(form: str, gender: str, number: str) -> str:
    """Return a word in -o (participle, adjective, questo) with the ending of gender and number."""
    return form[:-1] + {("m", "s"): "o", ("m", "p"): "i", ("f", "s"): "a", ("f", "p"): "e"}[gender, number]


def _regular_present(infinitive: str, position: int) -> str:
    stem, conjugation = infinitive[:-3], infinitive[-3:]
    ending = PRESENT[conjugation].split()[position]
    if infinitive in WITH_ISC and PERSONS[position] not in ((1, "p"), (2, "p")):
        stem += "isc"
    elif conjugation == "are" and ending[0] == "i":
        if stem[-1] in "cg":
            stem += "h"
        elif stem[-1] == "i":
            stem = stem[:-1]
    return stem + ending
