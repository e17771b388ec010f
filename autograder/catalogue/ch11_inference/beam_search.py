"""11.3: several beginnings side by side, so that a good one is not lost to a better first word."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue import families
from autograder.catalogue.ch11_inference.searches import (
    Language,
    agreed,
    clear,
    search,
    taken_apart,
    without_competition,
)
from autograder.catalogue.ch11_inference.shared import BOS, EOS, ids_as_text, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import InWords
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import hidden, second_call, visible

NOT_A_NUMBER = """a score is NaN (not a number). Did you take the logarithm of what step_fn returns? It returns
logarithms already, which are negative as a rule, and a negative number has no logarithm"""
BEAM, LENGTH, FINISHED = sections("beam length finished")
HYPOTHESES, TOO_MANY = "hypotheses", "more than k pairs"
A, B = 3, 4
# P(a) = .5, P(b) = .4; after a: a .4, b .3, end .3; after b: end .9; after a a: end .8. Rest: a little, evenly.
BY_HAND = {
    (): [0.0, 0.0, 0.1, 0.5, 0.4],
    (A,): [0.0, 0.0, 0.3, 0.4, 0.3],
    (B,): [0.0, 0.0, 0.9, 0.06, 0.04],
    (A, A): [0.0, 0.0, 0.8, 0.15, 0.05],
    (A, B): [0.0, 0.0, 0.7, 0.1, 0.2],
}


def beam_search(
    step_fn: Callable[[Tensor], Tensor], k: int, max_len: int, alpha: float, bos: int, eos: int
) -> list[tuple[list[int], float]]:
    """Hypotheses with their scores, the best first."""
    return search(step_fn, k, max_len, alpha, bos, eos)


def where_all_agree(case: Case, result: Any) -> Any:
    """The best hypotheses on which all correct searches agree, as lists and numbers, whether there are more than k, and
    what is wrong in words."""
    if not isinstance(result, (list, tuple)):
        return result
    plain = []
    for pair in result:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            return result
        ids, score = (part.tolist() if isinstance(part, Tensor) else part for part in pair)
        ids = [one.item() if isinstance(one, Tensor) and one.numel() == 1 else one for one in ids] if isinstance(ids,
            (list, tuple)) else ids
        plain.append([ids, score])
    if any(isinstance(score, float) and math.isnan(score) for _, score in plain):
        return Remark(NOT_A_NUMBER.replace("\n", " "))
    common = agreed(*case.arguments)
    return {"the first that is wrong": _in_words(plain, case.arguments), HYPOTHESES: plain[:common],
            TOO_MANY: len(plain) > case.arguments[1]}  # fmt: skip


def _in_words(plain: list, arguments: tuple) -> str:
    """The first hypothesis that is not the correct one, in words."""
    k = arguments[1]
    if len(plain) > k:
        return InWords(f"{len(plain)} hypotheses came back, where at most {k} are expected: only the k best count")
    expected = search(*arguments)[: agreed(*arguments)]
    for place, (ids, score) in enumerate(expected):
        name = "the best hypothesis" if place == 0 else f"hypothesis {place + 1} of {len(expected)}"
        if place == len(plain):
            return InWords(f"{name} is missing, which has the ids {_tokens(ids)}")
        found, its = plain[place]
        if not _are_ids(found) or found != ids:
            added = ", with an eos behind it, though max_len cut it before an eos came" if (
                found == [*ids, arguments[-1]] and ids[-1] != arguments[-1]) else ""
            return InWords(f"{name} should have the ids {_tokens(ids)}, yours has {_tokens(found)}{added}")
        if isinstance(its, bool) or not isinstance(its, (int, float)):
            return InWords(f"the score of {name} should be a number, yours is of type {type(its).__name__}")
        if not math.isclose(its, score, rel_tol=1e-3, abs_tol=1e-5):
            return InWords(f"the score of {name} ({_tokens(ids)}) should be {number(score)}, yours is {number(its)}")
    return "none"


def _tokens(ids: Any) -> str:
    """Token ids in words, whatever they are."""
    return ids_as_text(ids) if _are_ids(ids) else repr(ids)[:60]


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int for one in value)


def by_hand(k: int, alpha: float, max_len: int = 4) -> Case:
    return Case((Language(5, BOS, EOS, max_len, after=BY_HAND), k, max_len, alpha, BOS, EOS))


def drawn(
    g: torch.Generator, k: int, max_len: int, alpha: float, least: int = 1, bos: int = BOS, eos: int = EOS, V: int = 6,
    unlike: Callable[[list, Any], bool] | None = None, likely_end: float = 0.5, ended: bool = True,
) -> Case:  # fmt: skip
    """A language in which correct searches agree on `least` hypotheses or more, without near ties.

    unlike: a further condition on the result and the arguments; ended: whether the best one ends in eos.
    """
    while True:
        seed = int(torch.randint(1 << 40, (), generator=g))
        step = Language(V, bos, eos, max_len, seed, sharp=1.3, likely_end=likely_end)
        arguments = step, k, max_len, alpha, bos, eos
        found, common = search(*arguments), agreed(*arguments)
        good = common >= least and clear(found, common) and (found[0][0][-1] == eos) == ended
        if good and (unlike is None or unlike(found, arguments)):
            return Case(arguments)


def a_greedy_search_fails(found: list, arguments: Any) -> bool:
    step, _, *others = arguments
    return search(step, 1, *others)[0][0] != found[0][0] and len(found[0][0]) > 3


def length_decides(found: list, arguments: Any) -> bool:
    """Whether the best hypothesis is another one without the division, and with another power."""
    step, k, max_len, alpha, bos, eos = arguments
    return all(search(step, k, max_len, other, bos, eos)[0][0] != found[0][0] for other in (0.0, -alpha))


def long_enough(found: list, arguments: Any) -> bool:
    return len(found[0][0]) > 3


def competition_decides(found: list, arguments: Any) -> bool:
    """Whether the best hypothesis is another one where the continuations of each hypothesis compete only with each
    other."""
    return long_enough(found, arguments) and without_competition(*arguments)[0][0] != found[0][0]


def an_open_one_scores_more(found: list, arguments: Any) -> bool:
    """Whether a hypothesis that max_len cut would come first, if it counted."""
    cut = [score for ids, score in search(*arguments, open_too=True) if ids[-1] != arguments[-1]]
    return any(score > found[0][1] + 0.05 for score in cut)


def counts_bos(evidence: Evidence) -> bool:
    """Whether each score is the sum divided by a length that is one too large, whichever hypotheses came back. Answers
    that do so only where a hypothesis ends are seen too: most results are the same."""
    step, alpha = evidence.arguments[0], evidence.arguments[3]
    if alpha == 0 or not isinstance(evidence.got, dict) or not evidence.got[HYPOTHESES]:
        return False
    for ids, score in evidence.got[HYPOTHESES]:
        log_p = sum(float(step(torch.tensor([ids[:t]]))[0, ids[t]]) for t in range(1, len(ids)))
        if abs(score - log_p / len(ids) ** alpha) > 1e-3 * abs(score):
            return False
    return True


def index_taken_apart(evidence: Evidence) -> bool:
    """Whether the hypotheses are those of a search in which an index into the flattened table (n, V) gives the
    hypothesis as its remainder by n, and the word as its remainder by V or as its quotient by n."""
    found = evidence.got[HYPOTHESES]
    for word in (lambda index, n, V: index % V, lambda index, n, V: index // n):
        wrong = taken_apart(*evidence.arguments, lambda index, n, V, word=word: (index % n, word(index, n, V)))
        same = [ids == its and math.isclose(score, other, rel_tol=1e-3, abs_tol=1e-5)
                for (ids, score), (its, other) in zip(found, wrong, strict=False)]  # fmt: skip
        if found and len(wrong) >= len(found) and all(same):
            return True
    return False


RIGHT = answer("""
    def beam_search(step_fn, k, max_len, alpha, bos, eos):
        live = [([bos], 0.0)]
        finished = []
        for step in range(max_len):
            prefixes = torch.tensor([ids for ids, _ in live])
            log_probs = step_fn(prefixes)
            candidates = []
            for (ids, total), row in zip(live, log_probs.tolist()):
                for token, log_p in enumerate(row):
                    candidates.append((ids + [token], total + log_p))
            candidates.sort(key=lambda one: one[1], reverse=True)
            live = []
            for ids, total in candidates[:k]:
                if ids[-1] == eos:
                    finished.append((ids, total))
                else:
                    live.append((ids, total))
            if not live:
                break
        pool = finished if finished else live
        scored = [(ids, total / (len(ids) - 1) ** alpha) for ids, total in pool]
        scored.sort(key=lambda one: one[1], reverse=True)
        return scored[:k]
""")
SORT, SORT_END = (
    "candidates.sort(key=lambda one: one[1], reverse=True)", "scored.sort(key=lambda one: one[1], reverse=True)"
)
SCORED, POOL = (
    "scored = [(ids, total / (len(ids) - 1) ** alpha) for ids, total in pool]", "pool = finished if finished else live"
)
KEPT, DROPS = "for ids, total in candidates[:k]:", "if ids[-1] == eos:"
TOTAL, START = "total + log_p", "live = [([bos], 0.0)]"
# The page's search: it refills the beam, stops at k finished ones, and returns unfinished ones behind them.
PAGE = answer("""
    def beam_search(step_fn, k, max_len, alpha, bos, eos):
        alive, finished = [(0.0, [bos])], []
        for length in range(1, max_len + 1):
            table = step_fn(torch.tensor([ids for _, ids in alive])).tolist()
            grown = [
                (log_p + added, [*ids, token])
                for (log_p, ids), row in zip(alive, table)
                for token, added in enumerate(row)
            ]
            grown.sort(key=lambda one: -one[0])
            for log_p, ids in grown[:k]:
                if ids[-1] == eos:
                    finished.append((ids, log_p / length ** alpha))
            alive = [one for one in grown if one[1][-1] != eos][:k]
            if len(finished) >= k:
                break
        cut = [(ids, log_p / max_len ** alpha) for log_p, ids in alive]
        finished.sort(key=lambda one: -one[1])
        return (finished + cut)[:k]
""")
TENSORS = answer("""
    def beam_search(step_fn, k, max_len, alpha, bos, eos):
        seqs, sums = torch.tensor([[bos]]), torch.zeros(1)
        done = []
        for n in range(1, max_len + 1):
            logp = step_fn(seqs)
            V = logp.shape[-1]
            flat = (sums[:, None] + logp).flatten()
            best, index = flat.topk(min(k, len(flat)))
            seqs = torch.cat([seqs[index // V], (index % V)[:, None]], dim=1)
            over = (seqs[:, -1] == eos)
            done += [(s, v / n ** alpha) for s, v in zip(seqs[over], best[over])]
            seqs, sums = seqs[~over], best[~over]
            if len(seqs) == 0:
                break
        if not done:
            done = [(s, v / n ** alpha) for s, v in zip(seqs, sums)]
        done.sort(key=lambda pair: float(pair[1]), reverse=True)
        return [(s.tolist(), float(v)) for s, v in done[:k]]
""")

EXERCISE = Exercise(
    id="beam-search", number="11.3", difficulty=3, minutes=40, visible_points=2, hidden_points=7,
    reference=beam_search, normalize=where_all_agree, section=BEAM, seconds=40.0,
    omits={"a batch of one": "one sentence is searched for", "a length of one": "one sentence is searched for",
           "precision": "sums of a few logarithms differ in no digit that counts",
           "repeated items": "the arguments are a function and numbers"},
    probes=(
        visible("by hand, k = 2", by_hand(2, 0.0), rtol=1e-3),
        visible("by hand, k = 1", by_hand(1, 0.0), rtol=1e-3),
        visible("by hand, k = 3, alpha = 1", by_hand(3, 1.0), rtol=1e-3),
        hidden("k = 3, where greedy fails", drawn, 3, 6, 0.0, 1, unlike=a_greedy_search_fails,
               announced_by="the k most probable", rtol=1e-3),
        hidden("alpha = 0.7, where the length decides", drawn, 3, 6, 0.7, 1, unlike=length_decides,
               announced_by="to the power of alpha", rtol=1e-3),
        hidden("alpha = 1.3", drawn, 4, 5, 1.3, 1, unlike=long_enough, announced_by="to the power of alpha", rtol=1e-3),
        hidden("several hypotheses", drawn, 4, 6, 0.0, 2, unlike=long_enough, announced_by="the best first", rtol=1e-3),
        hidden("other ids of bos and eos", drawn, 2, 6, 0.5, 1, bos=5, eos=0, unlike=competition_decides,
               announced_by="bos, eos: ids, any two", rtol=1e-3),
        hidden("no hypothesis ends", drawn, 2, 3, 0.8, 1, likely_end=-9.0, ended=False,
               announced_by="If none has ended after max_len tokens", rtol=1e-3),
        hidden("one that max_len cut scores more", drawn, 3, 4, 1.0, 1, unlike=an_open_one_scores_more, likely_end=0.0,
               announced_by="Hypotheses that end in eos come first", rtol=1e-3),
        hidden("one step", drawn, 2, 1, 0.0, 1, likely_end=2.0,
               announced_by="max_len: the largest allowed number of tokens after bos, at least 1", rtol=1e-3),
        hidden("a beam wider than the vocabulary", drawn, 9, 4, 0.5, 1, V=5, announced_by="may be more than V",
               rtol=1e-3),
        second_call(drawn, 3, 5, 0.6, rtol=1e-3, unlike=long_enough),
    ),
    mistakes=(
        mistake("probabilities added",
                RIGHT.but("log_probs = step_fn(prefixes)", "log_probs = step_fn(prefixes).exp()"), BEAM,
            "Probabilities were added up. The probability of a sentence is the *product* over its words: multiply, or "
            "add the logarithms."),
        mistake("probabilities multiplied",
                RIGHT.but("log_probs = step_fn(prefixes)", "log_probs = step_fn(prefixes).exp()").but(
                  TOTAL, "total * log_p").but(START, "live = [([bos], 1.0)]"), LENGTH,
            """Your score is the probability itself. Products of many small numbers end at 0 in a computer: keep the sum
            of the logarithms, and divide that by the length."""),
        mistake("finished hypotheses extended", RIGHT.but(DROPS, "if ids[-1] == eos and step == max_len - 1:").but(
                  POOL, "pool = finished + live"), FINISHED,
            "Hypotheses went on after eos: eos eos, or more words. A sentence that has ended is set aside and never "
            "extended."),
        mistake("finished ones kept, and extended too", RIGHT.but(
                  "finished.append((ids, total))\n",
                  "finished.append((ids, total))\n                live.append((ids, total))\n"), FINISHED,
            """A hypothesis with eos was set aside, as it should be, but stayed in the beam as well: it is extended by
            words after its end, and takes a place from others."""),
        mistake("no division by the length", RIGHT.but(SCORED, "scored = list(pool)"), LENGTH,
            """alpha has no effect: the scores are plain sums of logarithms, and every word makes such a sum smaller.
            Divide by the length to the power of alpha."""),
        mistake("ranked without the division", RIGHT.without(SORT_END).but(
                  POOL, POOL + "\n    pool.sort(key=lambda one: one[1], reverse=True)"), LENGTH,
            "The scores are divided, but the order is that of the sums before. Sort by the score that you return."),
        mistake("multiplied by the length", RIGHT.but("total / (len(ids) - 1)", "total * (len(ids) - 1)"), LENGTH,
            "The sums were multiplied by the length, so long sentences are punished twice. Divide."),
        mistake("alpha as a factor", RIGHT.but("(len(ids) - 1) ** alpha", "max(1, (len(ids) - 1) * alpha)"), LENGTH,
            "The length was multiplied by alpha. It is a power: 0 leaves the sum as it is, 1 makes it a mean."),
        mistake("multiplied by alpha", RIGHT.but("total / (len(ids) - 1) ** alpha", "total / (len(ids) - 1) * alpha"),
                LENGTH,
            "The mean was multiplied by alpha, so every score is 0 where alpha is. It is a power of the length."),
        mistake("another penalty", RIGHT.but("(len(ids) - 1) ** alpha", "((5 + len(ids) - 1) / 6) ** alpha"), LENGTH,
            """The length plus 5, divided by 6, was taken to the power of alpha: that is the penalty of another paper
            (Wu et al. 2016). Here it is the length itself."""),
        mistake("a probability as score", RIGHT.but("total / (len(ids) - 1) ** alpha)", "math.exp(total))"), LENGTH,
            "Your score is the probability. Return the sum of the logarithms, divided by the length to the "
            "power of alpha."),
        mistake("always the mean", RIGHT.but("(len(ids) - 1) ** alpha", "(len(ids) - 1)"), LENGTH,
            "The sums were divided by the length whatever alpha is. To the power of alpha: 0 divides by 1."),
        mistake("bos counted", RIGHT.but("(len(ids) - 1)", "len(ids)"), LENGTH,
            "bos was counted as a word. It was given, not generated: the length counts the tokens after it, "
            "eos among them.", shows=counts_bos),
        mistake("eos not counted", RIGHT.but("(len(ids) - 1)", "max(1, len(ids) - 2)"), LENGTH,
            "eos was not counted. It is generated like a word, with a probability of its own: the length counts all "
            "tokens after bos."),
        mistake("divided at every step",
                RIGHT.but(TOTAL, "(total + log_p) / len(ids) ** alpha").but(SCORED, "scored = list(pool)"), LENGTH,
            "The sum was divided by the length at every step, so early words count less and less. Add up to the end, "
            "and divide once."),
        mistake("k copies of bos", RIGHT.but(START, "live = [([bos], 0.0)] * k"), BEAM,
            "All your beams are equal: the search began with k copies of bos, which grow alike and fill the beam. "
            "Begin with one."),
        mistake("the best of each beam", RIGHT.but(
                  "for token, log_p in enumerate(row):",
                  "for token, log_p in [max(enumerate(row), key=lambda one: one[1])] if step else enumerate(row):"),
                  BEAM,
            """Each hypothesis was continued only by its likeliest word, so a beginning never gets two continuations
            and most are never looked at. All continuations of all hypotheses compete."""),
        mistake("the best k of each hypothesis", RIGHT.but(
                  "for token, log_p in enumerate(row):",
                  "for token, log_p in sorted(enumerate(row), key=lambda one: -one[1])[:k]:").but(
                  KEPT, "for ids, total in candidates:"), BEAM,
            """Up to k continuations of *each* hypothesis were kept, so the beam grows with every step. The
            continuations of all hypotheses compete, and only k of them stay."""),
        mistake("greedy", RIGHT.but(KEPT, "for ids, total in candidates[:1]:"), BEAM,
            "Only the likeliest hypothesis was kept: that is greedy, whatever k is. Keep k."),
        mistake("one more than k", RIGHT.but(KEPT, "for ids, total in candidates[:k + 1]:"), BEAM,
            "More than k hypotheses were kept. Of all continuations the k most probable stay; with k = 1 the search "
            "is greedy."),
        mistake("the least probable kept", RIGHT.but(SORT, "candidates.sort(key=lambda one: one[1])"), BEAM,
            "The k *least* probable continuations were kept. Logarithms of probabilities are negative: the largest is "
            "the one nearest to 0."),
        mistake("the worst first", RIGHT.but(SORT_END, "scored.sort(key=lambda one: one[1])"), FINISHED,
            "The worst hypothesis came first. Best first: scores are negative, and the best is the one nearest to 0."),
        mistake("not sorted at the end", RIGHT.without(SORT_END), FINISHED,
            "The hypotheses came in the order in which they ended. Best score first."),
        mistake("stops at the first that ends", RIGHT.but("if not live:", "if finished:"), FINISHED,
            """The search stopped as soon as one hypothesis had ended. A longer one may still be better: go on until
            none is left to extend, or k have ended."""),
        mistake("stops when the likeliest ends",
                RIGHT.but("if not live:", "if not live or candidates[0][0][-1] == eos:"), FINISHED,
            """The search stopped as soon as the most probable hypothesis of a step had ended, so those that end later
            are missing. Go on until none is left to extend, or k have ended."""),
        mistake("only the likeliest may end",
                RIGHT.but("if ids[-1] == eos:", "if ids[-1] == eos and (ids, total) == candidates[0]:").but(
                  "            else:\n                live", "            elif ids[-1] != eos:\n                live"),
                  FINISHED,
            """A hypothesis that ended was kept only where it was the likeliest of its step; the others were thrown
            away. Each of the k that ends in eos is finished."""),
        mistake("finished ones thrown away", RIGHT.but("finished.append((ids, total))", "pass"), FINISHED,
            "Hypotheses that ended were thrown away, and only those without an end came back. A finished one is set "
            "aside, with its score."),
        mistake("nothing where none ends", RIGHT.but(POOL, "pool = finished"), FINISHED,
            "Where no hypothesis has ended after max_len tokens, nothing came back. Then those that are left do, as "
            "they are."),
        mistake("unfinished ones alone", RIGHT.but(POOL, "pool = live if live else finished"), FINISHED,
            "Hypotheses that max_len cut came back instead of finished ones. Those count only if none has ended."),
        mistake("every end set aside", RIGHT.but(KEPT, """
        finished += [one for one in candidates if one[0][-1] == eos]
        candidates = [one for one in candidates if one[0][-1] != eos]
        for ids, total in candidates[:k]:"""), FINISHED,
            "Every continuation that ends was set aside, the unlikely ones too. They compete with all others for the "
            "k places."),
        mistake("every end set aside, and a stop at k", PAGE.but("grown[:k]:", "grown:"), FINISHED,
            """Continuations that end were set aside even where they were not among the k most probable of their step,
            so the search soon had k finished ones and stopped. They compete with all others for the k places."""),
        mistake("unfinished ones sorted among the finished, and a stop at k",
                PAGE.but("finished.sort", "finished += cut\n    finished.sort").but("(finished + cut)", "finished"),
                FINISHED,
            """An unfinished hypothesis came back before finished ones, because both kinds were sorted together. The
            log-probabilities of its last words are still missing, so its score cannot be compared: finished ones come
            first."""),
        mistake("unfinished before finished", RIGHT.but(POOL, "pool = finished + live"), FINISHED,
            "A hypothesis that max_len cut came back before finished ones. Finished ones come first, whatever the "
            "scores are."),
        mistake("the sum forgotten", RIGHT.but(TOTAL, "log_p"), BEAM,
            "Your score has only the probability of the last word. Add it to the sum of the words before."),
        mistake("logarithms multiplied", RIGHT.but(TOTAL, "total * log_p if total else log_p"), BEAM,
            "Logarithms were multiplied. It is the probabilities that are multiplied: their logarithms are *added*."),
        mistake("scores without their sign", RIGHT.but("total / (len(ids)", "-total / (len(ids)"), FINISHED,
            "Your scores are positive. A sum of logarithms of probabilities is negative: return it so, and the best "
            "is the one nearest to 0."),
        mistake("eos left out of the result", RIGHT.but(
                  "return scored[:k]", "return [([i for i in ids if i != eos], score) for ids, score in scored[:k]]"),
                  FINISHED,
            "eos is missing at the end. The ids go from bos to eos, both among them."),
        mistake("bos left out of the result",
                RIGHT.but("return scored[:k]", "return [(ids[1:], score) for ids, score in scored[:k]]"), FINISHED,
            "bos is missing in front. The ids go from bos to eos, both among them."),
        mistake("only the best", RIGHT.but("return scored[:k]", "return scored[0]"), FINISHED,
            "One pair came back. Return a list of pairs, even if it holds only one."),
        mistake("only the ids", RIGHT.but("return scored[:k]", "return [ids for ids, score in scored[:k]]"), FINISHED,
            "Only the ids came back. Each hypothesis is a pair (ids, score)."),
        mistake("score first", RIGHT.but("return scored[:k]", "return [(score, ids) for ids, score in scored[:k]]"),
                FINISHED,
            "The pairs are the wrong way round: first the ids, then the score."),
        mistake("one step too few", RIGHT.but("range(max_len)", "range(max_len - 1)"), FINISHED,
            "The search ended one step early. max_len counts the tokens after bos, so there are max_len steps."),
        mistake("one step too many", RIGHT.but("range(max_len)", "range(max_len + 1)"), FINISHED,
            "The search went one step too far. max_len counts the tokens after bos, so there are max_len steps."),
        mistake("no end", RIGHT.but("for step in range(max_len):", "while True:"), FINISHED,
            "Your loop has no end but eos: the model was given more tokens than max_len allows, and raised an error. "
            "Count the steps."),
        families.ID_WRITTEN_IN(RIGHT.but("== eos", "== 2"), FINISHED, id="2", token="eos"),
        families.ID_WRITTEN_IN(RIGHT.but("[([bos], 0.0)]", "[([1], 0.0)]"), BEAM, id="1", token="bos"),
        mistake("the wrong hypothesis continued", TENSORS.but("seqs[index // V]", "seqs[index % len(seqs)]"), BEAM,
            """This comes out if an index is taken apart the wrong way: words are then appended to hypotheses that they
            do not belong to, or different words are appended. In the flattened table (n, V), the row is the hypothesis
            and the column the word: which of the two is the quotient of the index and V, and which the remainder? n is
            not needed.""", shows=index_taken_apart),
        mistake("only the last word shown", RIGHT.but("[ids for ids, _ in live]", "[ids[-1:] for ids, _ in live]"),
                BEAM,
            "The model was shown only the last word of each hypothesis. Show it the whole prefix, bos in front."),
        mistake("a word of another hypothesis", RIGHT.but(
                  "for (ids, total), row in zip(live, log_probs.tolist()):",
                  "for (ids, total), row in zip(live, log_probs.flip(0).tolist()):"), BEAM,
            "The hypotheses were continued by the probabilities of others: row i of the table belongs to prefix i."),
    ),
    correct=(
        correct("lists", RIGHT),
        correct("as on the page", PAGE),
        correct("k finished are enough, places refilled", """
            def beam_search(step_fn, k, max_len, alpha, bos, eos):
                beams, done = [(0.0, [bos])], []
                for t in range(1, max_len + 1):
                    logp = step_fn(torch.tensor([b for _, b in beams]))
                    options = sorted(
                        ((s + lp, b + [v]) for (s, b), row in zip(beams, logp.tolist())
                            for v, lp in enumerate(row)), reverse=True)
                    done += [(s / t ** alpha, b) for s, b in options[:k] if b[-1] == eos]
                    beams = [(s, b) for s, b in options if b[-1] != eos][:k]
                    if len(done) >= k:
                        break
                if not done:
                    done = [(s / max_len ** alpha, b) for s, b in beams]
                return [(b, s) for s, b in sorted(done, reverse=True)[:k]]
        """),
        correct("a heap", """
            def beam_search(step_fn, k, max_len, alpha, bos, eos):
                import heapq
                frontier, ended = [(0.0, (bos,))], []
                for n in range(1, max_len + 1):
                    rows = step_fn(torch.tensor([p for _, p in frontier]))
                    heap = []
                    for (cost, prefix), row in zip(frontier, rows):
                        for token in range(len(row)):
                            entry = (-cost + float(row[token]), prefix + (token,))
                            if len(heap) < k:
                                heapq.heappush(heap, entry)
                            else:
                                heapq.heappushpop(heap, entry)
                    frontier = []
                    while heap:
                        total, prefix = heapq.heappop(heap)
                        (ended if prefix[-1] == eos else frontier).append((-total, prefix))
                    if not frontier:
                        break
                pool = ended or frontier
                out = [(list(p), -cost / (len(p) - 1) ** alpha) for cost, p in pool]
                return sorted(out, key=lambda pair: -pair[1])[:k]
        """),
        correct("tensors", TENSORS),
        correct("those without an end behind the others", RIGHT.but("return scored[:k]", """
            rest = sorted(((i, t / (len(i) - 1) ** alpha) for i, t in live),
                key=lambda one: -one[1]) if finished else []
            return (scored + rest)[:k]""")),
        correct("finished ones keep their place", """
            def beam_search(step_fn, k, max_len, alpha, bos, eos):
                beam = [([bos], 0.0)]
                over = lambda ids: len(ids) > 1 and ids[-1] == eos
                for _ in range(max_len):
                    options = [b for b in beam if over(b[0])]
                    for ids, s in (b for b in beam if not over(b[0])):
                        row = step_fn(torch.tensor([ids]))[0]
                        options += [(ids + [v], s + row[v].item()) for v in range(row.numel())]
                    beam = sorted(options, key=lambda b: b[1])[::-1][:k]
                    if all(over(ids) for ids, _ in beam):
                        break
                ended = [b for b in beam if over(b[0])] or beam
                return sorted([(ids, s / (len(ids) - 1) ** alpha) for ids, s in ended], key=lambda b: b[1],
                    reverse=True)
        """),
        correct("one prefix at a time, recursive", """
            def beam_search(step_fn, k, max_len, alpha, bos, eos):
                def grow(live, done, left):
                    if not live or left == 0:
                        return done or live
                    options = []
                    for ids, s in live:
                        for v, lp in enumerate(step_fn(torch.tensor([ids]))[0].tolist()):
                            options.append((ids + [v], s + lp))
                    top = sorted(options, key=lambda o: -o[1])[:k]
                    return grow([o for o in top if o[0][-1] != eos], done + [o for o in top if o[0][-1] == eos],
                        left - 1)
                found = grow([([bos], 0.0)], [], max_len)
                return sorted([(i, s / (len(i) - 1) ** alpha) for i, s in found], key=lambda o: o[1], reverse=True)[:k]
        """),
    ),
    hints=(
        "how many continuations compete in a step? What becomes of one that ends in eos?",
        "n prefixes (n, t) give log-probabilities (n, V): n times V continuations, of which k stay. A list of (ids, "
        "sum) is enough.",
        "begin with bos and sum 0; max_len times: all continuations of all live ones with their sums, the k largest "
        "stay, those with eos are set "
        "aside; at the end divide each sum by the length to the power of alpha and sort.",
    ),
)  # fmt: skip
