"""11.5: one number for a whole test set, and what it counts."""

import math
from collections import Counter

import torch

from autograder.catalogue.ch11_inference.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible

BLEU, CLIPPED, BREVITY = sections("bleu clipped brevity")
LONGEST = 4
WORDS = "the cat sat on mat a dog ran fast home".split()


def corpus_bleu(hyps: list[list[str]], refs: list[list[str]]) -> float:
    """BLEU of token lists, one reference each, from 0 to 100, without smoothing (Papineni et al. 2002, section 2.3)."""
    matches, counts = Counter(), Counter()
    for hyp, ref in zip(hyps, refs, strict=True):
        for n in range(1, LONGEST + 1):
            here, wanted = (Counter(tuple(line[i : i + n]) for i in range(len(line) - n + 1)) for line in (hyp, ref))
            matches[n] += (here & wanted).total()
            counts[n] += here.total()
    if any(matches[n] == 0 for n in range(1, LONGEST + 1)):
        return 0.0
    mean = sum(math.log(matches[n] / counts[n]) for n in range(1, LONGEST + 1)) / LONGEST
    length, wanted_length = sum(map(len, hyps)), sum(map(len, refs))
    return 100 * math.exp(min(0.0, 1 - wanted_length / length) + mean)


def lines(*texts: str) -> list[list[str]]:
    return [text.split() for text in texts]


def pair(hyp: str, ref: str) -> Case:
    return Case((lines(hyp), lines(ref)))


def corpus(g: torch.Generator, pairs: int, longer: int, numbers: bool = False) -> Case:
    """Sentences of 4 to 12 words and translations of them with words exchanged, repeated and left out or added.

    longer: how many words a translation has more, or fewer, than its reference.
    """
    hyps, refs = [], []
    for _ in range(pairs):
        length = int(torch.randint(5, 13, (), generator=g))
        ref = [WORDS[int(i)] for i in torch.randint(len(WORDS), (length,), generator=g)]
        hyp = list(ref)
        place = int(torch.randint(length, (), generator=g))
        hyp[place] = WORDS[int(torch.randint(len(WORDS), (), generator=g))]
        hyp = hyp[:longer] if longer < 0 else hyp + hyp[:1] * longer
        hyps.append(hyp)
        refs.append(ref)
    if numbers:  # tokens may be ids, of which 1 12 and 11 2 are written with the same digits
        hyps, refs = ([[WORDS.index(word) for word in line] for line in one] for one in (hyps, refs))
        hyps, refs = [*hyps, [1, 12, 111, 2]], [*refs, [11, 2, 111, 2]]
    return Case((hyps, refs))


def some_short(g: torch.Generator) -> Case:
    """Some translations have fewer than four words, one is far too long, and one shares no word with its reference."""
    hyps, refs = corpus(g, 5, 0).arguments
    hyps += lines("the mat", "home", "the the the the the the the the", "fast dog ran", "The Mat")
    refs += lines("the mat sat", "a dog ran home", "the cat sat on", "on the mat", "the mat")
    return Case((hyps, refs))


def across(g: torch.Generator) -> Case:
    """Word by word the two texts are one, and cut into other sentences."""
    hyps, refs = corpus(g, 4, 0).arguments
    flat = [word for line in refs for word in line]
    cut = len(hyps[0]) - 2
    return Case(([flat[:cut], flat[cut:], *hyps[2:]],
                 [refs[0], [word for line in refs[1:] for word in line], *refs[2:]]))


def four_words_each(g: torch.Generator) -> Case:
    """The first four words of references that are more than twice as long."""
    refs = [[*line, *line] for line in corpus(g, 4, 0).arguments[1]]
    return Case(([line[:4] for line in refs], refs))


def too_short_for_four(g: torch.Generator) -> Case:
    """Perfect translations, none of which has four words."""
    refs = [line[: 1 + n % 3] for n, line in enumerate(corpus(g, 4, 0).arguments[1])]
    return Case(([list(line) for line in refs], refs))


def no_four(g: torch.Generator) -> Case:
    """No four words in a row agree."""
    while True:
        refs = corpus(g, 3, 0).arguments[1]
        hyps = [[word for i, word in enumerate(line) if i % 3 != 2] for line in refs]
        if corpus_bleu(hyps, refs) == 0:
            return Case((hyps, refs))


def score(evidence: Evidence) -> str:
    return f"You got {number(evidence.got)}; by hand it is {number(evidence.expected)}."


def counted(evidence: Evidence) -> tuple[list[int], list[int], float]:
    """The matches and the n-grams of each length, and 100 times the brevity penalty."""
    hyps, refs = evidence.arguments
    matches, counts = [0] * LONGEST, [0] * LONGEST
    for hyp, ref in zip(hyps, refs, strict=True):
        for n in range(LONGEST):
            here, wanted = (Counter(tuple(line[i : i + n + 1]) for i in range(len(line) - n)) for line in (hyp, ref))
            matches[n] += (here & wanted).total()
            counts[n] += here.total()
    return matches, counts, 100 * math.exp(min(0.0, 1 - sum(map(len, refs)) / sum(map(len, hyps))))


def adds_one(evidence: Evidence) -> bool:
    """Whether this is the score with one added to every count."""
    matches, counts, most = counted(evidence)
    mean = sum(math.log((m + 1) / (t + 1)) for m, t in zip(matches, counts, strict=True)) / LONGEST
    return math.isclose(evidence.got, most * math.exp(mean), rel_tol=1e-6)


def leaves_out_zeros(evidence: Evidence) -> bool:
    """Whether the mean is over the lengths with matches, divided by their number or by four."""
    matches, counts, most = counted(evidence)
    logs = [math.log(m / t) for m, t in zip(matches, counts, strict=True) if m]
    scores = (most * math.exp(sum(logs) / by) for by in (LONGEST, max(1, len(logs))))
    return 0 in matches and any(math.isclose(evidence.got, one, rel_tol=1e-6) for one in scores)


RIGHT = answer("""
    from collections import Counter

    def corpus_bleu(hyps, refs):
        matches, totals = [0] * 4, [0] * 4
        for hyp, ref in zip(hyps, refs):
            for n in range(1, 5):
                have = Counter(tuple(hyp[i:i + n]) for i in range(len(hyp) - n + 1))
                want = Counter(tuple(ref[i:i + n]) for i in range(len(ref) - n + 1))
                matches[n - 1] += sum(min(count, want[gram]) for gram, count in have.items())
                totals[n - 1] += sum(have.values())
        if 0 in matches:
            return 0.0
        log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
        c = sum(len(hyp) for hyp in hyps)
        r = sum(len(ref) for ref in refs)
        penalty = math.exp(min(0.0, 1 - r / c))
        return 100 * penalty * math.exp(log_mean)
""")
CLIP, MEAN = (
    "sum(min(count, want[gram]) for gram, count in have.items())",
    "log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4"
)
PENALTY = "penalty = math.exp(min(0.0, 1 - r / c))"
NONE = "if 0 in matches:"
EACH = """
    from collections import Counter

    def one(hyp, ref):
        matches, totals = [0] * 4, [0] * 4
        for n in range(1, 5):
            have = Counter(tuple(hyp[i:i + n]) for i in range(len(hyp) - n + 1))
            want = Counter(tuple(ref[i:i + n]) for i in range(len(ref) - n + 1))
            matches[n - 1] += sum((have & want).values())
            totals[n - 1] += sum(have.values())
        if 0 in matches:
            return 0.0
        log_mean = sum(math.log(m / t) for m, t in zip(matches, totals)) / 4
        return 100 * math.exp(min(0.0, 1 - len(ref) / len(hyp))) * math.exp(log_mean)

    def corpus_bleu(hyps, refs):
        return MEAN
"""

EXERCISE = Exercise(
    id="corpus-bleu", number="11.5", difficulty=2, minutes=25, visible_points=1, hidden_points=3,
    reference=corpus_bleu, section=BLEU, quotes=score, forbidden=("sacrebleu", "nltk", "torchtext", "torchmetrics"),
    omits={"precision": "counts of words are small"},
    probes=(
        visible("the cat sat on mat", pair("the cat sat on mat", "the cat sat on the mat")),
        visible("words repeated, and too long", pair("the the cat sat on the mat the", "the cat sat on the mat")),
        visible("two sentences",
                Case((lines("the cat sat on the mat today", "a dog ran home"),
                      lines("the cat sat on a mat", "a dog ran home fast")))),
        hidden("fifty sentences, too short", corpus, 50, -1, announced_by="hyps, refs: lists"),
        hidden("less than half of the words", four_words_each, announced_by="hyps, refs: lists"),
        hidden("fifty sentences, too long", corpus, 50, 2, announced_by="hyps, refs: lists"),
        hidden("ids for tokens", corpus, 20, 0, numbers=True, announced_by="words or ids"),
        hidden("some have fewer than four words", some_short, announced_by="A sentence may have fewer than n words"),
        hidden("one sentence", corpus, 1, 0, announced_by=PROMISED),
        hidden("other ends of sentences", across, announced_by="No n-gram reaches into another sentence"),
        hidden("no sentence has four words", too_short_for_four,
               announced_by="or no sentence has n tokens", atol=0.0),
        hidden("no four words in a row agree", no_four, announced_by="no n-gram agrees in the whole corpus",
               atol=0.0),
        second_call(corpus, 12, -1),
    ),
    mistakes=(
        mistake("pairs of words at most",
                RIGHT.but("range(1, 5)", "range(1, 3)").but("[0] * 4, [0] * 4", "[0] * 2, [0] * 2").but(
                  "totals)) / 4", "totals)) / 2"), BLEU,
            "Only words and pairs were counted. BLEU counts n-grams of 1, 2, 3 and 4 tokens, and takes the mean of "
            "all four."),
        mistake("a mean over sentences",
                answer(EACH.replace("MEAN", "sum(one(h, r) for h, r in zip(hyps, refs)) / len(hyps)")), BLEU,
            """A score was computed for each sentence, and their mean taken. Corpus BLEU adds up matches and counts over
            *all* sentences first, and divides once."""),
        mistake("a mean over sentences by their length", answer(EACH.replace(
                  "MEAN", "sum(one(h, r) * len(h) for h, r in zip(hyps, refs)) / sum(len(h) for h in hyps)")), BLEU,
            """A score was computed for each sentence, and a mean taken that is weighted by length. Add up matches and
            counts over all sentences first, and divide once."""),
        mistake("not clipped", RIGHT.but(CLIP, "sum(count for gram, count in have.items() if gram in want)"), CLIPPED,
            """A word of the reference was counted as often as the translation repeats it: 'the the the' scored 3 of 3.
            It counts at most as often as the *reference* has it."""),
        mistake("every n-gram once",
                RIGHT.but(CLIP, "len(have.keys() & want.keys())").but("sum(have.values())", "len(have)"), CLIPPED,
            "Each n-gram was counted once, however often it occurs (a set forgets how often). 'the' that is "
            "twice in both counts twice."),
        mistake("matches once, counts all", RIGHT.but(CLIP, "len(have.keys() & want.keys())"), CLIPPED,
            "Matches were counted once for each n-gram, while the counts below hold them all. 'the' that is twice in "
            "both matches twice."),
        mistake("divided by the reference's n-grams",
                RIGHT.but("totals[n - 1] += sum(have.values())", "totals[n - 1] += sum(want.values())"), BLEU,
            """The matches were divided by the n-grams of the *reference*, which is recall. BLEU's precisions divide by
            those of the translation, and leave what is missing to the brevity penalty."""),
        mistake("no brevity penalty", RIGHT.but(PENALTY, "penalty = 1.0"), BREVITY,
            "Your score is not lowered, although the translations have fewer words than the references. The brevity "
            "penalty compares the two lengths, c and r, and is below 1 as soon as c is the smaller one."),
        mistake("the penalty reversed", RIGHT.but("1 - r / c", "1 - c / r"), BREVITY,
            "The brevity penalty is the wrong way round: long translations are punished and short ones are not."),
        mistake("the quotient in the exponent reversed",
                RIGHT.but(PENALTY, "penalty = 1.0 if c >= r else math.exp(1 - c / r)"), BREVITY,
            """A translation that is too short was rewarded: with r and c exchanged in the exponent, the penalty is
            above 1. It is never more than 1."""),
        mistake("a reward for length", RIGHT.but("min(0.0, 1 - r / c)", "1 - r / c"), BREVITY,
            """A translation that is longer than its reference was rewarded: the penalty was above 1. It is never more
            than 1; what is too long costs precision already."""),
        mistake("the quotient as penalty", RIGHT.but(PENALTY, "penalty = min(1.0, c / r)"), BREVITY,
            "The quotient of the lengths itself was taken as the penalty. It is exp(1 - r/c) where the translation is "
            "shorter."),
        mistake("a penalty for each sentence", RIGHT.but(PENALTY,
                  "penalty = sum(math.exp(min(0.0, 1 - len(y) / len(x))) for x, y in zip(hyps, refs)) / len(hyps)"),
                  BREVITY,
            """The brevity penalty was computed for each sentence. It compares the lengths of the two whole texts, so a
            short sentence may be made up for by a long one."""),
        mistake("arithmetic mean",
                RIGHT.but(MEAN, "log_mean = math.log(sum(m / t for m, t in zip(matches, totals)) / 4)"), BLEU,
            """The four precisions were averaged as they are. BLEU takes the geometric mean, the fourth root of their
            product, so that one that is near 0 pulls the whole down."""),
        mistake("the product without a root", RIGHT.but("totals)) / 4", "totals))"), BLEU,
            "The four precisions were multiplied, and no fourth root taken."),
        mistake("all lengths in one fraction", RIGHT.but(MEAN, "log_mean = math.log(sum(matches) / sum(totals))"), BLEU,
            "Matches of all four lengths were added up before dividing. Each length has a precision of its own; their "
            "geometric mean counts."),
        mistake("from 0 to 1", RIGHT.but("return 100 * penalty", "return penalty"), BLEU,
            "Your score is between 0 and 1. Here BLEU runs from 0 to 100."),
        mistake("only single words",
                RIGHT.but("range(1, 5)", "range(1, 2)").but("[0] * 4, [0] * 4", "[0], [0]").but("totals)) / 4",
                    "totals))"), BLEU,
            "Only single words were counted. Their order shows in pairs, triples and fours."),
        mistake("up to three", RIGHT.but("range(1, 5)", "range(1, 4)").but("[0] * 4, [0] * 4", "[0] * 3, [0] * 3").but(
                  "totals)) / 4", "totals)) / 3"), BLEU,
            "n-grams of one to three words were counted; range ends before its second number. BLEU goes up to four."),
        mistake("up to three, and a fourth root",
                RIGHT.but("range(1, 5)", "range(1, 4)").but("[0] * 4, [0] * 4", "[0] * 3, [0] * 3"), BLEU,
            "n-grams of one to three words were counted (range ends before its second number), and the fourth root "
            "taken of three factors."),
        mistake("pieces at the end counted",
                RIGHT.but("len(hyp) - n + 1)", "len(hyp))").but("len(ref) - n + 1)", "len(ref))"), BLEU,
            """The ends of sentences were counted as n-grams of every length, though fewer than n words are left
            there. A sentence of T words has T - n + 1 of them."""),
        mistake("from two on",
                RIGHT.but("range(1, 5)", "range(2, 5)").but("[0] * 4, [0] * 4",
                    "[0] * 3, [0] * 3").but("matches[n - 1]", "matches[n - 2]").but(
                  "totals[n - 1]", "totals[n - 2]").but("totals)) / 4", "totals)) / 3"), BLEU,
            "n-grams of two to four words were counted. Single words belong to it."),
        mistake("only fours",
                RIGHT.but("range(1, 5)", "range(4, 5)").but("[0] * 4, [0] * 4", "[0], [0]").but("matches[n - 1]",
                    "matches[0]").but(
                  "totals[n - 1]", "totals[0]").but("totals)) / 4", "totals))"), BLEU,
            "Only fours were counted. BLEU is the geometric mean of the precisions of one to four words."),
        mistake("the last n-gram forgotten",
                RIGHT.but("len(hyp) - n + 1)", "len(hyp) - n)").but("len(ref) - n + 1)", "len(ref) - n)"), BLEU,
            "The last n-gram of every sentence was left out: a sentence of T words has T - n + 1 of them."),
        mistake("the last n-gram of the translations forgotten", RIGHT.but("len(hyp) - n + 1)", "len(hyp) - n)"), BLEU,
            "The last n-gram of every translation was left out: a sentence of T words has T - n + 1 of them."),
        mistake("n-grams across sentences", RIGHT.but("matches, totals = [0] * 4, [0] * 4", """
                  c, r = sum(len(hyp) for hyp in hyps), sum(len(ref) for ref in refs)
                  hyps, refs = [[word for line in hyps for word in line]], [[word for line in refs for word in line]]
                  matches, totals = [0] * 4, [0] * 4"""), BLEU,
            """The sentences were joined to one text, so n-grams reach over their ends, and a word of one sentence
            matches that of another. Count sentence by sentence, and add up."""),
        mistake("matches anywhere in the corpus",
                RIGHT.but("want = Counter(tuple(ref[i:i + n]) for i in range(len(ref) - n + 1))",
                  "want = Counter(tuple(other[i:i + n]) for other in refs for i in range(len(other) - n + 1))"), BLEU,
            "A translation's n-grams were looked for in *all* references. Each has its own."),
        mistake("one count for the whole corpus", RIGHT.but("zip(hyps, refs):", "[(hyps, refs)]:").but(
                  "tuple(hyp[i:i + n]) for i in range(len(hyp)",
                  "tuple(line[i:i + n]) for line in hyp for i in range(len(line)").but(
                  "tuple(ref[i:i + n]) for i in range(len(ref)",
                  "tuple(line[i:i + n]) for line in ref for i in range(len(line)"), BLEU,
            """The n-grams of all sentences were counted together before they were compared, so an n-gram of one
            translation matches the reference of another. Compare sentence by sentence, and add up the matches."""),
        mistake("words as sets of letters", RIGHT.but("tuple(hyp[i:i + n])", "frozenset(hyp[i:i + n])").but(
                  "tuple(ref[i:i + n])", "frozenset(ref[i:i + n])"), BLEU,
            "The words of an n-gram were compared without their order ('on the' and 'the on' are two pairs)."),
        mistake("stops at a precision of 0", RIGHT.but(NONE, "if False:"), BLEU,
            "Your code stops where a precision is 0: there is no logarithm of 0. The geometric mean is then 0."),
        mistake("a precision of 0 left out", RIGHT.but(NONE, "if False:").but(
                  "for m, t in zip(matches, totals)) / 4", "for m, t in zip(matches, totals) if m) / 4"), BLEU,
            "Where no n-gram of a length agrees, that length was left out. Without smoothing the score is then 0.",
            shows=leaves_out_zeros),
        mistake("a precision of 0 smoothed",
                RIGHT.but(NONE, "if False:").but("math.log(m / t)", "math.log((m or 1e-9) / t)"), BLEU,
            """A small number took the place of a precision of 0. That is smoothing, and its signature has to say so;
            here there is none: the score is 0."""),
        mistake("one added to every count",
                RIGHT.but(NONE, "if False:").but("math.log(m / t)", "math.log((m + 1) / (t + 1))"), BLEU,
            "One was added to every count. That is smoothing; here there is none.", shows=adds_one),
        mistake("n-grams as joined text", RIGHT.but("tuple(hyp[i:i + n])", '"".join(map(str, hyp[i:i + n]))').but(
                  "tuple(ref[i:i + n])", '"".join(map(str, ref[i:i + n]))'), CLIPPED,
            "The tokens of an n-gram were joined to one text, so 1 12 and 11 2 become the same text. Compare them "
            "token by token, as tuples."),
        mistake("capitals taken for small letters", RIGHT.beginning_with(
                  "hyps, refs = ([[str(word).lower() for word in line] for line in side] for side in (hyps, refs))"),
                  CLIPPED,
            "*The* was taken for *the*. These are two tokens, and a token agrees only with itself."),
        mistake("references and translations exchanged",
                RIGHT.but("zip(hyps, refs):", "zip(refs, hyps):").but("for hyp in hyps)", "for hyp in refs)").but(
                  "for ref in refs)", "for ref in hyps)"), BLEU,
            "Translations and references are exchanged: the first argument holds the translations."),
        mistake("rounded", RIGHT.but("return 100 * penalty * math.exp(log_mean)",
                                     "return round(100 * penalty * math.exp(log_mean), 1)"), BLEU,
            "The score was rounded. Return it unrounded; rounding is up to the caller."),
        mistake("base-ten logarithms", RIGHT.but("math.log(m", "math.log10(m"), BLEU,
            "The logarithms have base 10 and the exponential base e, so they do not undo each other."),
    ),
    correct=(
        correct("counters", RIGHT),
        correct("counters met by &", """
            def corpus_bleu(hyps, refs):
                from collections import Counter
                grams = lambda line, n: Counter(zip(*[line[i:] for i in range(n)]))
                product = 1.0
                for n in (1, 2, 3, 4):
                    hit = total = 0
                    for h, r in zip(hyps, refs):
                        a = grams(h, n)
                        hit += sum((a & grams(r, n)).values())
                        total += sum(a.values())
                    product *= hit / total if total else 0.0
                c, r = sum(map(len, hyps)), sum(map(len, refs))
                bp = 1.0 if c > r else math.exp(1 - r / c)
                return 100.0 * bp * product ** 0.25
        """),
        correct("loops and crossing out", """
            def corpus_bleu(hyps, refs):
                precisions = []
                for n in range(1, 5):
                    good, all_of_them = 0, 0
                    for b in range(len(hyps)):
                        left = [refs[b][i:i + n] for i in range(len(refs[b]) - n + 1)]
                        for i in range(len(hyps[b]) - n + 1):
                            all_of_them += 1
                            if hyps[b][i:i + n] in left:
                                left.remove(hyps[b][i:i + n])
                                good += 1
                    if good == 0:
                        return 0.0
                    precisions.append(good / all_of_them)
                c = r = 0
                for b in range(len(hyps)):
                    c += len(hyps[b])
                    r += len(refs[b])
                score = 100 * math.prod(precisions) ** (1 / 4)
                if c < r:
                    score = score * math.exp(1 - r / c)
                return score
        """),
        correct("tensors of counts", """
            def corpus_bleu(hyps, refs):
                stats = torch.zeros(2, 4, dtype=torch.float64)
                for h, r in zip(hyps, refs):
                    for n in range(4):
                        seen = {}
                        for i in range(len(r) - n):
                            key = repr(r[i:i + n + 1])
                            seen[key] = seen.get(key, 0) + 1
                        for i in range(len(h) - n):
                            key = repr(h[i:i + n + 1])
                            stats[1, n] += 1
                            if seen.get(key, 0) > 0:
                                seen[key] -= 1
                                stats[0, n] += 1
                if (stats[0] == 0).any():
                    return 0
                c, r = sum(len(h) for h in hyps), sum(len(r) for r in refs)
                return float(100 * min(1.0, math.exp(1 - r / c)) * (stats[0] / stats[1]).log().mean().exp())
        """),
    ),
    hints=(
        "which numbers are added up over all sentences, and what is computed only once at the end?",
        "for n = 1 to 4 two numbers over the whole corpus: n-grams that agree, and n-grams of the translations; "
        "along with two lengths in words.",
        "per sentence and n: count the n-grams of both, add the smaller of the two counts to the matches; precisions, "
        "their geometric mean, times "
        "exp(1 - r/c) where c is less than r, times 100; 0 where a precision is 0.",
    ),
)  # fmt: skip
