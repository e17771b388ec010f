"""How a mistake of the laboratory hides, decided from its record, and what the widgets of 08 and 10 get of it."""

from collections.abc import Callable, Sequence
from statistics import mean

SOUND = "none"
BETTER, UNSEEN, TRANSLATIONS, LOSS = (
    "loss better", "no effect seen", "visible only in the translations", "visible in the loss"
)  # fmt: skip
GROUPS = (BETTER, UNSEEN, TRANSLATIONS, LOSS)
LOWER, USUAL, HIGHER = "far lower than it should be", "about as it should be", "more than twice as high"
LOSSES = (LOWER, USUAL, HIGHER)
NOTHING, REPEATS, ENDLESS = "nothing or one word", "one word again and again", "the right words and no end"
IGNORES, DISORDER, OTHER = "one sentence for several sources", "the right words in another order", "other words"
SOME, RIGHT = "some sentences right", "nearly all sentences right"
WRITINGS = (NOTHING, REPEATS, ENDLESS, IGNORES, DISORDER, OTHER, SOME, RIGHT)
QUIZ = (
    "causal mask the wrong way round", "decoder input not shifted", "heads split by view", SOUND,
    "no causal mask", "softmax over the queries",
)  # fmt: skip


def recorded(record: dict) -> dict[str, dict]:
    """Return the recorded mistakes by name, without those whose training runs are being repeated."""
    return {name: found for name, found in record["faults"].items() if name != SOUND and found["seeds"]}


def of_seeds(found: dict, what: str) -> list[float]:
    """Return one number for each seed's training run: `loss`, `right` or `moved_by_padding`."""
    return [seed[what] for seed in found["seeds"].values()]


def apart(ours: Sequence[float], theirs: Sequence[float]) -> int:
    """Return 1 if all of ours are above all of theirs, -1 if all are below, 0 if they overlap."""
    return int(min(ours) > max(theirs)) - int(max(ours) < min(theirs))


def hiding(found: dict, sound: dict) -> str:
    """Return the group of a mistake. A difference counts if every seed lies beyond every seed of the correct model."""
    loss, right = (apart(of_seeds(found, what), of_seeds(sound, what)) for what in ("loss", "right"))
    if loss < 0:
        return BETTER
    if loss > 0:
        return LOSS
    return TRANSLATIONS if right < 0 else UNSEEN


def loss_seen(found: dict, sound: dict) -> str:
    """Return how a loss looks to somebody who knows the final loss of a correct model: one of `LOSSES`."""
    if hiding(found, sound) == BETTER and mean(of_seeds(found, "loss")) < mean(of_seeds(sound, "loss")) / 2:
        return LOWER
    ratio = mean(of_seeds(found, "loss")) / mean(of_seeds(sound, "loss"))
    return HIGHER if ratio > 2 else USUAL


def writing_seen(found: dict, sound: dict) -> str:
    """Return how most translations look to somebody who reads a few: one of `WRITINGS`."""
    if mean(of_seeds(found, "right")) > 0.9:
        return RIGHT
    wanted = [text.split() for text in next(iter(sound["seeds"].values()))["translations"]]
    pairs = [
        (text.split(), right)
        for seed in found["seeds"].values()
        for text, right in zip(seed["translations"], wanted, strict=True)
    ]

    def most(shows: Callable[[list[str], list[str]], bool]) -> bool:
        return sum(shows(got, right) for got, right in pairs) >= len(pairs) / 2

    if most(lambda got, right: len(got) > len(right) + 2 and got[:2] == right[:2]):
        return ENDLESS
    if most(lambda got, right: len(got) > 2 and 2 * len(set(got)) < len(got)):
        return REPEATS
    if most(lambda got, right: len(got) <= 1):
        return NOTHING
    if most(lambda got, right: sorted(got) == sorted(right)) and any(
        got != right and sorted(got) == sorted(right) for got, right in pairs
    ):
        return DISORDER
    same = [len(set(seed["translations"])) < len(seed["translations"]) for seed in found["seeds"].values()]
    if sum(same) > len(same) / 2:
        return IGNORES
    return SOME if mean(of_seeds(found, "right")) > 0.3 else OTHER


def by_symptom(record: dict) -> dict[tuple[str, str], list[str]]:
    """Return the mistakes by symptom: (loss, writing) -> names of mistakes."""
    sound = record["faults"][SOUND]
    found: dict[tuple[str, str], list[str]] = {}
    for name, fault in recorded(record).items():
        found.setdefault((loss_seen(fault, sound), writing_seen(fault, sound)), []).append(name)
    return found


def verdict(found: dict, sound: dict) -> str:
    """Return one to three sentences about what the record shows of a mistake."""
    ratio = mean(of_seeds(found, "loss")) / mean(of_seeds(sound, "loss"))
    loss = {
        -1: f"Its loss ends lower than the sound model's in every seed, at {ratio:.2f} times the sound one.",
        0: "Its loss ends where the sound model's does, within the seeds.",
        1: f"Its loss ends higher in every seed, at {ratio:.3g} times the sound one.",
    }[apart(of_seeds(found, "loss"), of_seeds(sound, "loss"))]
    right = {
        -1: "It translates worse in every seed.",
        0: "It translates as well, within the seeds.",
        1: "It translates better in every seed.",
    }[apart(of_seeds(found, "right"), of_seeds(sound, "right"))]
    moved = mean(of_seeds(found, "moved_by_padding"))
    pads = f" Four more pads change {moved:.0%} of its translations." if moved >= 0.005 else ""
    return f"{loss} {right}{pads}"


def shown(found: dict) -> dict:
    """Return the data that a page draws for one model: its curve over the seeds, and its first seed's translations."""
    curves = list(zip(*(seed["curve"] for seed in found["seeds"].values()), strict=True))
    first, training = next(iter(found["seeds"].items()))
    return {
        "mean": [round(mean(losses), 4) for losses in curves],
        "low": [round(min(losses), 4) for losses in curves],
        "high": [round(max(losses), 4) for losses in curves],
        "losses": of_seeds(found, "loss"),
        "rights": of_seeds(found, "right"),
        "seed": first,
        "translations": training["translations"],
    }


def page_data(record: dict) -> dict:
    """Return the data of the widgets in chapters 08 and 10."""
    about, sound = record["about"], record["faults"][SOUND]
    size = about["steps"] // len(next(iter(sound["seeds"].values()))["curve"])
    faults = [
        {"name": name, "group": hiding(found, sound), "verdict": verdict(found, sound)}
        | {part: found[part] for part in ("code", "sound", "test")}
        | shown(found)
        for name, found in recorded(record).items()
    ]
    groups = [[group, sum(fault["group"] == group for fault in faults)] for group in GROUPS]
    return {
        "steps": list(range(size, about["steps"] + 1, size)),
        "sentences": about["sentences"],
        "sound": shown(sound),
        "faults": faults,
        "groups": [group for group in groups if group[1]],
        "quiz": QUIZ,
    }
