"""10.5: batches with a limit on tokens, with little padding."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from autograder.catalogue.ch10_training.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import JudgedParts
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.data import batching

(BATCHES,) = sections("batches")
BATCHES_OF_PLACES, NONE = "a list of lists of indices (plain ints)", "none"
NAMES = {torch.Tensor: "tensors", float: "floats", tuple: "tuples", list: "lists", str: "texts", bool: "bools"}
MORE_PADDING, MORE_BATCHES = 0.10, 2  # than sorting and filling up gives


def token_batches(lengths: list[int], max_tokens: int) -> list[list[int]]:
    """Batches of indices, sorted by length, with at most max_tokens cells each."""
    return batching.token_batches(lengths, max_tokens)


def drawn(g: torch.Generator, count: int, shortest: int, longest: int, max_tokens: int) -> Case:
    """Items of many lengths, in any order."""
    return Case((torch.randint(shortest, longest + 1, (count,), generator=g).tolist(), max_tokens))


def one_long_among_short(g: torch.Generator) -> Case:
    """A hundred and fifty short sentences and one of 36 tokens, at a place that is drawn."""
    lengths = torch.randint(4, 7, (150,), generator=g).tolist()
    lengths.insert(int(torch.randint(151, (), generator=g)), 36)
    return Case((lengths, 72))


def exactly_full(g: torch.Generator) -> Case:
    """Items of one length, of which a whole number fills a batch; the last batch holds fewer."""
    length, places = (int(torch.randint(2, 9, (), generator=g)) for _ in range(2))
    return Case(([length] * (3 * places + 1), length * places))


def as_long_as_allowed(g: torch.Generator) -> Case:
    """None has room for a second."""
    lengths = torch.randint(11, 20, (9,), generator=g).tolist()
    lengths[int(torch.randint(9, (), generator=g))] = 20
    return Case((lengths, 20))


def too_long(g: torch.Generator, count: int = 6) -> Case:
    lengths = torch.randint(1, 20, (count,), generator=g).tolist()
    lengths[int(torch.randint(count, (), generator=g))] = 21
    return Case((lengths, 20))


def judged(case: Case, result: Any) -> Any:
    """The rules that the batches satisfy; a result that is not a list of lists of indices is unchanged."""
    lengths, max_tokens = case.arguments
    if isinstance(result, torch.Tensor):
        return result
    kind = _kind(result)
    if kind != BATCHES_OF_PLACES:
        return Remark(f"{kind} came back, where {BATCHES_OF_PLACES} is expected")
    batches = [_items(batch) for batch in result]
    if max(lengths) > max_tokens:  # there an error is expected
        held = lengths.index(max(lengths)) in [i for batch in batches for i in batch]
        return Remark(f"expected ValueError, got batches {'with' if held else 'without'} the sentence that is too long")
    times = Counter(i for batch in batches for i in batch)
    found = [[lengths[i] for i in batch if 0 <= i < len(lengths)] for batch in batches]
    beyond = [batch for batch in found if batch and max(batch) * len(batch) > max_tokens]
    best = [[lengths[i] for i in batch] for batch in batching.token_batches(lengths, max_tokens)]
    padding, least = padding_share(found), padding_share(best)
    allowed, most = least + MORE_PADDING, MORE_BATCHES * len(best) + len(set(lengths))
    foreign = sorted(set(times) - set(range(len(lengths))))
    gone = [i for i in range(len(lengths)) if i not in times]
    twice = [i for i, count in sorted(times.items()) if count > 1]
    return JudgedParts(
        {
            "indices of no sentence": _listed(foreign, f"not among 0 to {len(lengths) - 1}"),
            "sentences left out": _listed(gone, "in no batch"),
            "sentences twice": _listed(twice, "in your batches more than once"),
            "empty batches": _counted(len(batches) - len([batch for batch in batches if batch]), "empty"),
            "batches beyond the limit": _counted(len(beyond), f"beyond the limit of {max_tokens} cells"),
            "too much padding": NONE if padding <= allowed else Remark(
                f"{padding:.0%} of your cells are pads, where at most {allowed:.0%} may be"),
            "too many batches": NONE if len(batches) <= most else Remark(
                f"{len(batches)} batches came back, where at most {most} are expected"),
        },
        {"padding": padding, "least": least, "batches": batches, "best": len(best), "beyond": beyond,
         "limit": max_tokens, "gone": gone, "twice": twice},
    )  # fmt: skip


def padding_share(batches: list[list[int]]) -> float:
    """The share of cells that hold pads, of batches of lengths."""
    cells = sum(max(batch) * len(batch) for batch in batches if batch)
    return 1 - sum(map(sum, batches)) / cells if cells else 0.0


def _listed(indices: list[int], what: str) -> str:
    """The first of some indices and what is wrong with them."""
    if not indices:
        return NONE
    noun, verb = ("index", "is") if len(indices) == 1 else ("indices", "are")
    return Remark(f"{noun} {listed(indices)} {verb} {what}")


def _counted(times: int, what: str) -> str:
    """How many of the batches have this fault."""
    return Remark(f"{times} of your batches {'is' if times == 1 else 'are'} {what}") if times else NONE


def listed(indices: list[int]) -> str:
    """The first three of some indices in words."""
    shown = [*map(str, indices[:3]), *(["others"] if len(indices) > 3 else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _items(batch: Any) -> Any:
    return batch.tolist() if isinstance(batch, torch.Tensor) else batch


def _kind(result: Any) -> str:
    """The type of the result in words."""
    if not isinstance(result, (list, tuple)):
        return "None" if result is None else "something that is not a list"
    batches = [_items(batch) for batch in result]
    if not all(isinstance(batch, (list, tuple)) for batch in batches):
        return "a list of numbers" if all(type(batch) is int for batch in batches) else "a list of something else"
    if all(type(item) is int for batch in batches for item in batch):
        return BATCHES_OF_PLACES
    kinds = {type(item) for batch in batches for item in batch} - {int}
    return f"a list of lists of {NAMES.get(kinds.pop(), 'something else') if len(kinds) == 1 else 'something else'}"


def all_beyond(fits: Callable[[list[int], int], bool]) -> Callable[[Evidence], bool]:
    """Whether there are batches beyond the limit, and the lengths of each satisfy this, given the limit."""

    def shows(evidence: Evidence) -> bool:
        told = evidence.got.told
        return bool(told["beyond"]) and all(fits(batch, told["limit"]) for batch in told["beyond"])

    return shows


def only(key: str, holds: Callable[[dict[str, Any]], bool] = lambda told: True) -> Callable[[Evidence], bool]:
    """Whether only this is wrong with the batches."""

    def shows(evidence: Evidence) -> bool:
        wrong = [name for name, value in evidence.got.items() if value != evidence.expected[name]]
        return wrong == [key] and holds(evidence.got.told)

    return shows


def all_in_one(evidence: Evidence) -> bool:
    return bool(evidence.got.told["beyond"]) and len(evidence.got.told["batches"]) == 1


def leaves_out(evidence: Evidence) -> bool:
    return bool(evidence.got.told["gone"])


def cells(evidence: Evidence) -> str:
    """How large the largest batch is."""
    largest = max((max(batch) * len(batch) for batch in evidence.got.told["beyond"]), default=0)
    return f"Your largest batch takes {largest} cells; the limit is {evidence.arguments[1]}."


def padding(evidence: Evidence) -> str:
    """How much of it all is padding."""
    told = evidence.got.told
    return f"{told['padding']:.0%} of your cells are pads; with the lengths sorted, {told['least']:.0%} are."


def left_out(evidence: Evidence) -> str:
    """Which sentences are in no batch."""
    gone, twice, lengths = evidence.got.told["gone"], evidence.got.told["twice"], evidence.arguments[0]
    if not gone:
        return ""
    said = f"Sentence {gone[0]} is in no batch." if len(gone) == 1 else f"Sentences {listed(gone)} are in no batch."
    if not twice or {lengths[i] for i in gone} != {lengths[i] for i in twice}:
        return said
    said += f" {listed(twice).capitalize()} {'is' if len(twice) == 1 else 'are'} there more than once instead, with "
    return f"{said}the same lengths. (A search by length, as index() does, finds only the first of equal ones.)"


def count(evidence: Evidence) -> str:
    """How many batches there are."""
    told = evidence.got.told
    return f"You make {len(told['batches'])} batches; {told['best']} would do."


RIGHT = answer("""
    def token_batches(lengths, max_tokens):
        for item, length in enumerate(lengths):
            if length > max_tokens:
                raise ValueError(f"item {item} has {length} tokens")
        order = sorted(range(len(lengths)), key=lambda item: lengths[item])
        batches, batch = [], []
        for item in order:
            longest = lengths[item]
            if longest * (len(batch) + 1) > max_tokens:
                batches.append(batch)
                batch = []
            batch.append(item)
        batches.append(batch)
        return batches
""")
ORDER, LONGEST, LAST = (
    "sorted(range(len(lengths)), key=lambda item: lengths[item])", "longest = lengths[item]",
    "batches.append(batch)\n    return batches"
)
TEST, REFUSED = "if longest * (len(batch) + 1) > max_tokens:", 'raise ValueError(f"item {item} has {length} tokens")'
WHOLE_CHECK = f'for item, length in enumerate(lengths):\n        if length > max_tokens:\n            {REFUSED}\n    '
UNSORTED = RIGHT.but(ORDER, "range(len(lengths))").but(LONGEST, "longest = max(lengths[i] for i in batch + [item])")

EXERCISE = Exercise(
    id="token-batches", number="10.5", difficulty=2, minutes=25, visible_points=1, hidden_points=4,
    reference=token_batches, normalize=judged, section=BATCHES,
    probes=(
        visible("six sentences, 18 cells", Case(([3, 9, 4, 3, 8, 4], 18))),
        visible("sixty sentences, 64 cells", drawn, 60, 1, 12, 64),
        visible("one sentence is too long", Case(([3, 9, 4, 19, 8, 4], 18))),
        hidden("one long sentence among a hundred and fifty short ones", one_long_among_short,
               announced_by="as if all its sentences were as long as the longest"),
        hidden("three hundred sentences", drawn, 300, 1, 12, 48, announced_by=PROMISED),
        hidden("sentences of one length, batches full to the last cell", exactly_full,
               announced_by="at most `max_tokens`"),
        hidden("a sentence as long as the limit", as_long_as_allowed, announced_by="at most `max_tokens`"),
        hidden("one sentence, as long as the limit", Case(([7], 7)), announced_by="at most `max_tokens`"),
        hidden("one sentence", drawn, 1, 4, 9, 30, announced_by=PROMISED),
        hidden("all in one batch", drawn, 5, 1, 5, 40, announced_by=PROMISED),
        hidden("a sentence that is too long", too_long,
               announced_by="Raises ValueError when a sentence is longer than `max_tokens`"),
        hidden("the only sentence is too long", too_long, 1,
               announced_by="Raises ValueError when a sentence is longer than `max_tokens`"),
        second_call(drawn, 40, 1, 10, 50),
    ),
    mistakes=(
        mistake("everything in one batch", RIGHT.but(TEST, "if False:"), BATCHES,
            "Everything is in one batch, whatever the limit is.", quotes=cells, shows=all_in_one),
        mistake("real tokens counted, not padded ones",
                RIGHT.but(TEST, "if sum(lengths[i] for i in batch) + longest > max_tokens:"), BATCHES,
            """The *words* of a batch were counted. A batch is a rectangle as wide as its longest sentence: one of 30
            words and thirty of 1 make 31 times 30 = 930 cells. Count cells, pads too.""", quotes=cells,
            shows=all_beyond(lambda batch, limit: sum(batch) <= limit and batch == sorted(batch))),
        mistake("real tokens counted, unsorted",
                UNSORTED.but(TEST, "if sum(lengths[i] for i in batch) + lengths[item] > max_tokens:"), BATCHES,
            """The *words* of a batch were counted, and the sentences taken as they came. A batch is a rectangle as wide
            as its longest sentence: count cells, pads too, and put sentences of similar length together.""",
            quotes=cells, shows=all_beyond(lambda batch, limit: sum(batch) <= limit)),
        mistake("width of the newest, unsorted", RIGHT.but(ORDER, "range(len(lengths))"), BATCHES,
            """The newest sentence was taken for the longest. That is so in rising order only: elsewhere the longest
            may be anywhere.""", quotes=cells, shows=all_beyond(lambda batch, limit: batch[-1] * len(batch) <= limit)),
        mistake("the limit tested too late", RIGHT.but("(len(batch) + 1)", "len(batch)"), BATCHES,
            "The batch was measured without the sentence that is about to enter, so it overflows by one. Count it too.",
            quotes=cells, shows=all_beyond(lambda batch, limit: max(batch[:-1]) * (len(batch) - 1) <= limit)),
        mistake("the last batch lost", RIGHT.but(LAST, "return batches"), BATCHES,
            "The last batch is missing: it was never full, so it was never put into the list.", quotes=left_out),
        mistake("the sentence that did not fit lost",
                RIGHT.but("        batch.append(item)", "            continue\n        batch.append(item)"), BATCHES,
            "The sentence that begins a new batch was lost: the old batch was closed and the sentence put into "
            "neither.", quotes=left_out),
        mistake("too long ones left out",
                RIGHT.but(WHOLE_CHECK, "").but("sorted(range(len(lengths))",
                                               "sorted((i for i in range(len(lengths)) if lengths[i] <= max_tokens)"),
                                               BATCHES,
            "A sentence that is longer than max_tokens disappeared silently. Raise ValueError, and name the sentence."),
        mistake("too long ones in a batch of their own",
                RIGHT.but(WHOLE_CHECK, "").but("> max_tokens:", "> max_tokens and batch:"), BATCHES,
            """A sentence that is longer than max_tokens got a batch of its own, beyond the limit. On the machine that
            is the batch for which the memory does not suffice: raise ValueError, and name the sentence."""),
        mistake("as long as the limit refused", RIGHT.but("length > max_tokens", "length >= max_tokens"), BATCHES,
            "A sentence that is exactly as long as the limit was refused. It fits, in a batch of its own."),
        mistake("an empty batch", RIGHT.but(TEST, "if not batches or longest * (len(batch) + 1) > max_tokens:"),
                BATCHES,
            "There is an empty batch: one that was closed before anything was in it, or begun and never filled. No "
            "loss can be averaged over it.", shows=only("empty batches")),
        mistake("unsorted", UNSORTED, BATCHES,
            """Short sentences share a batch with long ones and are padded to their length. Sort all sentences by length
            before you divide them into batches.""", quotes=padding, shows=only("too much padding")),
        mistake("one sentence a batch", RIGHT.but(TEST, "if batch:"), BATCHES,
            "Every sentence has a batch of its own. No pads, and no gain either: fill each batch up to "
            "max_tokens cells.", quotes=count,
            shows=only("too many batches", lambda told: all(len(batch) == 1 for batch in told["batches"]))),
        mistake("as many sentences in every batch", answer("""
                  def token_batches(lengths, max_tokens):
                      if max(lengths) > max_tokens:
                          raise ValueError("too long")
                      order = sorted(range(len(lengths)), key=lambda i: lengths[i])
                      size = max_tokens // max(lengths)
                      return [order[i:i + size] for i in range(0, len(order), size)]
            """), BATCHES, """Every batch has the same number of *sentences*, as many as the longest allow. Batches of
            short sentences are then almost empty: fill each up to max_tokens cells.""", quotes=count,
            shows=only("too many batches", lambda told: len({len(batch) for batch in told["batches"][:-1]}) == 1)),
        mistake("lengths instead of places", RIGHT.but("batch.append(item)", "batch.append(longest)"), BATCHES,
            "Your batches hold *lengths*. Return which sentences they are: their indices in the list, from 0."),
        mistake("places from 1", RIGHT.but("batch.append(item)", "batch.append(item + 1)"), BATCHES,
            "Your indices begin at 1. The first sentence is number 0, as everywhere in Python."),
        mistake("pairs", RIGHT.but("batch.append(item)", "batch.append((item, longest))"), BATCHES,
            "Your batches hold pairs. Return only the index of each sentence, a plain int."),
        mistake("indices that are tensors", RIGHT.but("batch.append(item)", "batch.append(torch.tensor(item))"),
                BATCHES,
            """Your indices are tensors without axes, as a loop over a tensor gives them. Return plain ints: convert the
            tensor to a list first."""),
        mistake("sentences twice",
                RIGHT.but("            batch = []", "            batch = [batch[-1]] if batch else []"), BATCHES,
            "Some sentences are in two batches: the new batch began with the last one of the old."),
        mistake("all batches one and the same list", RIGHT.but("            batch = []", "            batch.clear()"),
                BATCHES,
            """All your batches are one and the same list: clear() empties it everywhere, and what is in it at the end
            is in all of them. Begin a new list."""),
        mistake("one long list", RIGHT.but("return batches", "return [item for batch in batches for item in batch]"),
                BATCHES,
            "One list of numbers came back. Return a list for each batch, with the indices of its sentences."),
        mistake("stops after the first batch",
                RIGHT.but("            batches.append(batch)\n            batch = []", "            return [batch]"),
                BATCHES,
            "Only the first batch came back: a `return` inside the loop ends all of it.", quotes=left_out),
        mistake("an assertion", RIGHT.but(REFUSED, "assert False, item"), BATCHES,
            "A sentence that is too long raises AssertionError. A wrong argument is a ValueError, which names the "
            "sentence."),
        mistake("lengths changed in place", RIGHT.but("order = ", "lengths.sort()\n    order = "), BATCHES,
            """Your function changed the caller's list of lengths: sort, append, pop and [...] = change the list itself.
            The indices no longer belong to the caller's sentences. Sort the indices, and leave the lengths where they
            are.""", quotes=None),
        mistake("places in a sorted copy", RIGHT.but("order = ", "lengths = sorted(lengths)\n    order = "), BATCHES,
            """The lengths were sorted, and the indices are those in the sorted list: they belong to other sentences.
            Sort the *indices* by length."""),
        mistake("twice the limit", RIGHT.but(TEST, "if longest * (len(batch) + 1) > 2 * max_tokens:"), BATCHES,
            """A batch takes as many cells as it has sentences, times the length of the longest: this product may not
            exceed max_tokens. Is the limit tested before each sentence enters, and with the length of the longest?""",
            quotes=cells,
            shows=all_beyond(lambda batch, limit: True)),
        mistake("every third left out", RIGHT.but(ORDER, f"{ORDER}[::3]"), BATCHES,
            "Every sentence must be in exactly one batch; here some are in none.", quotes=left_out,
            shows=leaves_out),
        mistake("half as full as they could be",
                RIGHT.but(TEST, "if longest * (len(batch) + 1) > max_tokens / 3 and batch:"), BATCHES,
            "There are far more batches than needed. Fill each up to max_tokens cells before another begins.",
            quotes=count,
            shows=only("too many batches")),
    ),
    correct=(
        correct("sorted and filled", RIGHT),
        correct("from long to short", """
            def token_batches(lengths, max_tokens):
                if max(lengths) > max_tokens:
                    raise ValueError(f"item {lengths.index(max(lengths))} is longer than {max_tokens}")
                order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
                out = []
                while order:
                    size = max_tokens // lengths[order[0]]
                    out.append(order[:size])
                    order = order[size:]
                return out
        """),
        correct("torch", """
            def token_batches(lengths, max_tokens):
                n = torch.tensor(lengths)
                if bool((n > max_tokens).any()):
                    raise ValueError(f"item {int(n.argmax())} is too long")
                batches, batch = [], []
                for i in torch.argsort(n).tolist():
                    if len(batch) * lengths[i] + lengths[i] > max_tokens:
                        batches, batch = batches + [batch], []
                    batch = batch + [i]
                return batches + [batch]
        """),
        correct("tensors of places, mixed", """
            def token_batches(lengths, max_tokens):
                for i, n in enumerate(lengths):
                    if n > max_tokens:
                        raise ValueError(i)
                order = sorted(range(len(lengths)), key=lambda i: (lengths[i], -i))
                batches = [[]]
                for i in order:
                    if lengths[i] * (len(batches[-1]) + 1) > max_tokens:
                        batches.append([])
                    batches[-1].append(i)
                g = torch.Generator().manual_seed(3)
                return [torch.tensor(batches[j]) for j in torch.randperm(len(batches), generator=g).tolist()]
        """),
        correct("a batch for each length", """
            def token_batches(lengths, max_tokens):
                if any(n > max_tokens for n in lengths):
                    raise ValueError("a sentence is longer than max_tokens")
                order = sorted(range(len(lengths)), key=lambda i: lengths[i])
                batches, longest = [], 0
                for i in order:
                    if batches and max(lengths[j] for j in batches[-1] + [i]) * (len(batches[-1]) + 1) <= max_tokens:
                        batches[-1].append(i)
                    else:
                        batches.append([i])
                return tuple(tuple(batch) for batch in batches)
        """),
        correct("recursion", """
            def token_batches(lengths, max_tokens):
                def cut(places):
                    if not places:
                        return []
                    n = 1
                    while n < len(places) and (n + 1) * lengths[places[n]] <= max_tokens:
                        n += 1
                    return [places[:n]] + cut(places[n:])
                for i, length in enumerate(lengths):
                    if not length <= max_tokens:
                        raise ValueError(f"lengths[{i}] = {length}")
                return cut([i for _, i in sorted((length, i) for i, length in enumerate(lengths))])
        """),
    ),
    omits={"precision": "lengths are small whole numbers", "falsy values": "every length is 1 at least"},
    hints=(
        "how many cells does a batch take? Which sentence decides its width?",
        "a list of indices, sorted by length, is cut into lists; in each, the number of sentences times the length of "
        "the longest is at most max_tokens.",
        "refuse what is too long; indices by rising length; a new batch when (sentences in the current one + 1) times "
        "this length exceeds the limit; the last batch too.",
    ),
)  # fmt: skip
