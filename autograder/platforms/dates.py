"""Dates as platforms write them for people: "Monday, 2 November 2026, 9:41 PM", "lunes, 2 de noviembre de 2026, 21:41".

Moodle writes its worksheet in the language and the time zone of the teacher who downloads it. So a whole column is read
at once: a language counts only if every date in the column can be read in it, and a weekday has to agree with its date.
Where two languages read different moments (listopad is November in Polish and October in Croatian), nothing is read.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, tzinfo
from functools import cache

from babel import Locale

from autograder.policy import times

LANGUAGES = (
    *("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "sk", "sl", "hr", "sr_Latn", "sr", "hu", "ro", "ru", "uk"),
    *("bg", "el", "tr", "sv", "da", "nb", "nn", "fi", "et", "lv", "lt", "ca", "eu", "gl", "mk", "is", "ga", "cy", "he"),
    *("id", "vi", "ja", "zh", "ko"),
)
NONE = ("", "-", "–", "—")

_CLOCK = re.compile(r"(?<![\d.:])(\d{1,2})(?::|\.| ?h ?)(\d{2})(?:[:.](\d{2}))?(?![\d:])")
_ISO = re.compile(r"(?P<year>\d{4})[-/.年년] ?(?P<month>\d{1,2})[-/.月월] ?(?P<day>\d{1,2})(?:[日일.]|\b)")
_NUMBERS = re.compile(r"(?P<first>\d{1,2})(?P<sign>[./-])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4})")
_LETTERS = re.compile(r"[^\W\d_]*")
_BEFORE = ("上午", "午前", "오전"), ("下午", "午後", "오후")  # AM and PM where they come before the time
_WORD = re.compile(r"[^\W\d_]+")


def read_column(texts: Sequence[str], zone: tzinfo) -> tuple[list[datetime | None], str]:
    """The times (UTC) of a column, None for empty cells; and the first unreadable text, or "".

    zone: of the texts. In an hour that exists twice the earlier time counts.
    """
    given = [text for text in map(_plain, texts) if text not in NONE]
    readings: set[tuple[datetime, ...]] = set()
    unread = ""
    for read in _readers(given):
        found = []
        for text in given:
            local = read(text)
            if local is None:
                unread = unread or text
                break
            found.append(local)
        else:
            readings.add(tuple(found))
    if given and len(readings) != 1:
        return [None] * len(texts), unread or given[0]
    moments = iter(readings.pop() if readings else ())
    return [None if _plain(text) in NONE else times.earliest(next(moments), zone) for text in texts], ""


def _readers(texts: Sequence[str]) -> list[Callable[[str], datetime | None]]:
    """The ways to read a column: the languages that know most of its words or, without names of months, by numbers."""
    words = {word for text in texts for word in _words(text)}
    known = {}
    for language in LANGUAGES:
        months, weekdays = _names(language)
        if words & set(months):
            known[language] = len(words & {*months, *weekdays})
    if known:
        best = [language for language, count in known.items() if count == max(known.values())]
        return [functools.partial(_in_language, language=language) for language in best]
    return [functools.partial(_in_numbers, order=order) for order in ("day first", "month first")]


def _in_language(text: str, language: str) -> datetime | None:
    months, weekdays = _names(language)
    words = _words(text)
    found = {months[word] for word in words if word in months}
    clock, rest = _clock(text)
    numbers = re.findall(r"\d+", rest)
    years = [number for number in numbers if len(number) == 4]
    days = [number for number in numbers if len(number) <= 2]
    if len(found) != 1 or clock is None or len(years) != 1 or len(days) != 1:
        return None
    named = {weekdays[word] for word in words if word in weekdays}
    return _at(int(years[0]), found.pop(), int(days[0]), clock, named)


def _in_numbers(text: str, order: str) -> datetime | None:
    found = _ISO.search(text)
    if found:
        year, month, day = (int(found[part]) for part in ("year", "month", "day"))
    elif found := _NUMBERS.search(text):
        first, second, year = int(found["first"]), int(found["second"]), int(found["year"])
        if found["sign"] == "." and order != "day first":
            return None
        day, month = (first, second) if order == "day first" else (second, first)
    else:
        return None
    clock, _ = _clock(text[: found.start()] + " " + text[found.end() :])
    return _at(year, month, day, clock, set()) if clock is not None else None


def _at(year: int, month: int, day: int, clock: time, weekdays: set[int]) -> datetime | None:
    try:
        there = date(year, month, day)
    except ValueError:
        return None
    return datetime.combine(there, clock) if not weekdays or there.weekday() in weekdays else None


def _clock(text: str) -> tuple[time | None, str]:
    """The time of day, and the text without it."""
    found = _CLOCK.search(text)
    if found is None:
        return None, text
    hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3] or 0)
    after = _LETTERS.match(re.sub(r"[\s.]", "", text[found.end() :]))[0]
    before = re.sub(r"\s", "", text[: found.start()])
    morning, afternoon = ({*half} for half in _halves())
    if after in afternoon or before.endswith(_BEFORE[1]):
        hours += 12 if hours < 12 else 0
    elif (after in morning or before.endswith(_BEFORE[0])) and hours == 12:
        hours = 0
    try:
        return time(hours, minutes, seconds), f"{text[: found.start()]} {text[found.end() :]}"
    except ValueError:
        return None, text


def _plain(text: str) -> str:
    """The text without case, accents, direction marks and special blanks."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter for letter in letters if unicodedata.category(letter) not in ("Mn", "Cf"))
    return " ".join(unicodedata.normalize("NFC", kept).split())


@cache
def _halves() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words for AM, and for PM, in all languages, without blanks and full stops."""
    found: tuple[set[str], set[str]] = (set(), set())
    for language in LANGUAGES:
        widths = Locale.parse(language).day_periods.get("format", {})
        for names in (widths.get("wide", {}), widths.get("abbreviated", {})):
            for place, half in zip(found, ("am", "pm"), strict=True):
                if half in names:
                    place.add(re.sub(r"[\s.]", "", _plain(names[half])))
    return tuple(found[0]), tuple(found[1])


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


@cache
def _names(language: str) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Name -> month (1 to 12), and name -> weekday (Monday is 0), without those that are only letters or numbers."""
    locale = Locale.parse(language)
    found: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for names, place in ((locale.months, found[0]), (locale.days, found[1])):
        for context in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for number, name in names[context][width].items():
                    words = _words(_plain(name))
                    if words and len(word := max(words, key=len)) > 1:  # "de des." and "d'octubre" in Catalan
                        place[word] = number
    return found
