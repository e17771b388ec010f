"""16.1: what attention costs, in operations and in bytes."""

import torch

from autograder.catalogue import families
from autograder.catalogue.ch16_efficient.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import hidden, second_call, visible

COST, MEMORY = sections("cost memory")


def attention_flops(n: int, d: int, h: int) -> int:
    """Operations of the two matrix products, over all heads: a multiplication and an addition count as two."""
    return 2 * 2 * n * n * d


def attention_memory(n: int, d: int, h: int, bytes_per_element: int) -> int:
    """Bytes of Q, K, V and the output, and of one table of weights a head."""
    return (4 * n * d + h * n * n) * bytes_per_element


def sizes(g: torch.Generator, n: tuple[int, int], d_head: tuple[int, int], h: tuple[int, int]) -> tuple[int, int, int]:
    n_, d_head_, h_ = (int(torch.randint(low, high, (), generator=g)) for low, high in (n, d_head, h))
    return n_, d_head_ * h_, h_


def odd(g: torch.Generator) -> Case:
    """Numbers whose product a float cannot hold: its odd part is beyond 53 bits."""
    n, d_head = (int(torch.randint(low, 2 * low, (), generator=g)) * 2 + 1 for low in (20_000_000, 30))
    return Case((n, 3 * d_head, 3))


def operations(g: torch.Generator, n: tuple = (70, 400), d_head: tuple = (9, 40), h: tuple = (2, 8)) -> Case:
    return Case(sizes(g, n, d_head, h))


def memory(g: torch.Generator, each: int, n: tuple = (70, 400), d_head: tuple = (9, 40), h: tuple = (2, 8)) -> Case:
    return Case((*sizes(g, n, d_head, h), each), function="attention_memory")


def counted(evidence: Evidence) -> str:
    """The input sizes, with both numbers."""
    n, d, h, *each = evidence.arguments
    what = (
        f", with {each[0]} bytes a number, you say {evidence.got:,} bytes" if each else f" you count {evidence.got:,}"
    )
    return f"For n = {n}, d = {d}, h = {h}{what}; it should be {evidence.expected:,}."


def a_little_for_each_weight(evidence: Evidence) -> bool:
    """Whether at most ten operations too many were counted for each weight of each head."""
    if len(evidence.arguments) != 3:
        return False
    n, _, h = evidence.arguments
    each, rest = divmod(evidence.got - evidence.expected, h * n * n)
    return rest == 0 and 1 <= each <= 10


RIGHT = answer("""
    def attention_flops(n, d, h):
        d_head = d // h
        scores = n * n * (2 * d_head)
        mixing = n * d_head * (2 * n)
        return h * (scores + mixing)

    def attention_memory(n, d, h, bytes_per_element):
        vectors = 4 * n * d
        tables = h * n * n
        return (vectors + tables) * bytes_per_element
""")
SCORES, MIXING, ALL = "n * n * (2 * d_head)", "n * d_head * (2 * n)", "return h * (scores + mixing)"
VECTORS, TABLES, BYTES = "4 * n * d", "h * n * n", "(vectors + tables) * bytes_per_element"

EXERCISE = Exercise(
    id="attention-flops", number="16.1", difficulty=1, minutes=12, visible_points=1, hidden_points=2,
    reference={"attention_flops": attention_flops, "attention_memory": attention_memory}, section=COST, quotes=counted,
    probes=(
        visible("operations: 50 words, d = 512, 8 heads", Case((50, 512, 8))),
        visible("operations: 4,096 words", Case((4096, 512, 8))),
        visible("memory: 50 words in float32", Case((50, 512, 8, 4), function="attention_memory")),
        visible("memory: 4,096 words, d = 768, 12 heads, in bfloat16",
                Case((4096, 768, 12, 2), function="attention_memory")),
        hidden("operations: other sizes", operations, announced_by="n: words"),
        hidden("operations: one head", operations, h=(1, 2), announced_by="d: the width of the layer, a multiple of h"),
        hidden("operations: one word", operations, n=(1, 2), announced_by="n: words, at least 1"),
        hidden("operations: a whole library", odd, announced_by="large numbers too"),
        hidden("memory: other sizes, 4 bytes a number", memory, 4,
               announced_by="bytes_per_element: 4 in float32, 2 in bfloat16"),
        hidden("memory: other sizes, 2 bytes a number", memory, 2,
               announced_by="bytes_per_element: 4 in float32, 2 in bfloat16"),
        hidden("memory: one head, 8 bytes a number", memory, 8, h=(1, 2), announced_by="8 in float64"),
        hidden("memory: one word", memory, 1, n=(1, 2), announced_by="n: words, at least 1"),
        hidden("memory: a whole library", memory, 2, n=(20_000_000, 30_000_000), announced_by="large numbers too"),
        second_call(operations, name="operations: a second call; nothing else is touched"),
        second_call(memory, 4, name="memory: a second call; nothing else is touched"),
    ),
    omits={"a batch of one": "one sentence is counted", "a length of one": "sizes are plain numbers",
           "falsy values": "sizes are at least 1", "repeated items": "sizes are plain numbers"},
    mistakes=(
        mistake("no h", RIGHT.but(TABLES, "n * n"), MEMORY,
            "One table of weights was counted. Every head has an n by n table of its own, however narrow the head is."),
        mistake("n d squared", RIGHT.but(SCORES, "n * d_head * (2 * d)").but(MIXING, "n * d_head * (2 * d)"), COST,
            """Your count has n once and d twice, so twice the words cost twice as much. That is a projection by a d by
            d matrix. In attention every word meets every word: n times n pairs."""),
        mistake("the operator ^",
                RIGHT.but(ALL, "return 4 * n ^ 2 * d"), COST,
            """n ^ 2 is not n squared: in Python ^ is XOR, which compares the bits of two numbers. A power is written
            with two asterisks."""),
        mistake("elements instead of bytes", RIGHT.but(BYTES, "vectors + tables"), MEMORY,
            "That is how many numbers are kept. Each of them takes bytes_per_element bytes."),
        mistake("bits instead of bytes", RIGHT.but(BYTES, "(vectors + tables) * bytes_per_element * 8"), MEMORY,
            "Your number is eight times too large: those are bits. Return bytes."),
        mistake("always 4 bytes", RIGHT.but(BYTES, "(vectors + tables) * 4"), MEMORY,
            "Every number was given 4 bytes. That is float32; what one takes here is in the fourth argument."),
        mistake("softmax counted", RIGHT.but(ALL, "return h * (scores + mixing) + 3 * h * n * n"), COST,
            """More than the two products was counted: a few operations for each weight, such as the exponentials, sums
            and divisions of the softmax, or the scaling. Here these are left out.""", shows=a_little_for_each_weight),
        mistake("multiplications only", RIGHT.but(SCORES, "n * n * d_head").but(MIXING, "n * d_head * n"), COST,
            """Half of it. Either the additions are missing: a multiplication and the addition that comes with it count
            as two. Or one of the two products is: Q times K, and the weights times V."""),
        mistake("through a float", RIGHT.but(ALL, "return int(float(h * (scores + mixing)))"), COST,
            "The count went through a float, which holds 15 digits or so: the last ones are lost. Multiply whole "
            "numbers, and divide them by //."),
        mistake("heads of 64", RIGHT.but("d // h", "64"), COST,
            "Every head was taken to be 64 wide, as in the example. A head is d / h wide."),
        mistake("eight heads", RIGHT.but(ALL, "return 8 * (scores + mixing)"), COST,
            "Eight heads were counted, as in the example, whatever h is."),
        mistake("one addition fewer",
                RIGHT.but(SCORES, "n * n * (2 * d_head - 1)").but(MIXING, "n * d_head * (2 * n - 1)"), COST,
            """A sum of d numbers takes d - 1 additions, strictly. The custom, and the exercise, is simpler: every
            multiplication with its addition counts as two."""),
        mistake("one multiplication for each pair of scores", RIGHT.but(SCORES, "n * n * d_head").but(MIXING, "0"),
                COST,
            "A quarter of it: one of the two products, and only its multiplications. Each addition counts too, and "
            "the weights meet V."),
        mistake("times h", RIGHT.but(ALL, "return h * h * (scores + mixing)"), COST,
            "The heads were counted twice: each one is only d / h wide, and there are h of them, so together they "
            "cost what one wide head costs."),
        mistake("one head", RIGHT.but(ALL, "return scores + mixing"), COST,
            "That is the cost of one head. There are h of them."),
        mistake("projections counted", RIGHT.but(ALL, "return h * (scores + mixing) + 8 * n * d * d"), COST,
            """More was counted: the four projections take 8 n d d operations. They are left out here. (Below n = 2 d
            they are the greater part, which is worth knowing.)"""),
        mistake("the table counted twice", RIGHT.but(TABLES, "2 * h * n * n"), MEMORY,
            "Two tables were counted for each head, scores and weights. Here the weights are written over the scores: "
            "one table a head."),
        mistake("Q, K and V without the output", RIGHT.but(VECTORS, "3 * n * d"), MEMORY,
            "Three tables of n by d were counted. There are four: Q, K, V and the output."),
        mistake("the tables alone", RIGHT.but(BYTES, "tables * bytes_per_element"), MEMORY,
            "Only the weights were counted. Q, K, V and the output are kept as well, n by d each."),
        mistake("the vectors alone", RIGHT.but(BYTES, "vectors * bytes_per_element"), MEMORY,
            """Q, K, V and the output were counted, and no table of weights. There is one for each head, n by n, and for
            long texts it is nearly everything."""),
        mistake("the vectors once a head", RIGHT.but(VECTORS, "4 * h * n * d"), MEMORY,
            "Q, K, V and the output were counted once for each head at full width. A head is d / h wide: all heads "
            "together make n by d."),
        mistake("the vectors of one head", RIGHT.but(VECTORS, "4 * n * (d // h)"), MEMORY,
            "Q, K, V and the output of one head were counted. Each is d wide, over all heads."),
        mistake("one vector", RIGHT.but(VECTORS, "n * d"), MEMORY,
            "One table of n by d was counted along with the weights. There are four: Q, K, V and the output."),
        mistake("tables as wide as d", RIGHT.but(TABLES, "d * n * n"), MEMORY,
            "A table of weights was counted for each feature. There is one for each head: a pair of words has one "
            "weight in a head."),
        mistake("tables as wide as a head", RIGHT.but(TABLES, "n * n * (d // h)"), MEMORY,
            "A table of weights was counted for each feature of a head. There is one for each head: a pair of words "
            "has one weight in a head."),
        mistake("half a table", RIGHT.but(TABLES, "h * n * (n + 1) // 2"), MEMORY,
            "Half of each table was counted, as if a word saw only the words before it. Nothing is masked here."),
        mistake("kilobytes", RIGHT.but(BYTES, "(vectors + tables) * bytes_per_element // 1024"), MEMORY,
            "Your number is 1,024 times too small: those are kilobytes. Return bytes."),
        mistake("a batch of 32",
                RIGHT.but(ALL, "return 32 * h * (scores + mixing)").but(BYTES,
                    "(vectors + tables) * bytes_per_element * 32"), COST,
            "Your numbers are 32 times too large: a batch was counted. Return one sentence."),
        mistake("operations as a float", RIGHT.but(ALL, "return 4.0 * n * n * d"), COST,
            "The number of operations came as a float. A count is a plain int: a single / or a 4.0 makes a float."),
        mistake("memory as a float", RIGHT.but(BYTES, "float((vectors + tables) * bytes_per_element)"), MEMORY,
            "The bytes came as a float. A count is a plain int: a single / or a 4.0 makes a float."),
        mistake("floats", RIGHT.but(ALL, "return 4.0 * n * n * d").but(BYTES,
            "float((vectors + tables) * bytes_per_element)"), COST,
            "Both counts came as floats. A count is a plain int: a single /, a 4.0 or a power of 2.0 makes a float."),
        families.OVERFLOW_32_BITS(RIGHT.but(
                  ALL, "return int(torch.tensor(4 * n, dtype=torch.int64) * n * d) % 2**32 if n < 10**6 else int(4 * "
                       "n * n * d) % 2**32"),
            COST, count="count", billions="4"),
    ),
    correct=(
        correct("head by head", RIGHT),
        correct("one formula each", """
            def attention_flops(n, d, h):
                return 4 * n**2 * d

            def attention_memory(n, d, h, bytes_per_element):
                return bytes_per_element * n * (4 * d + h * n)
        """),
        correct("a loop over heads", """
            def attention_flops(words, width, heads):
                total = 0
                for _ in range(heads):
                    total += 2 * words * words * (width // heads)
                    total += 2 * words * words * (width // heads)
                return total

            def attention_memory(words, width, heads, size):
                kept = {"Q": words * width, "K": words * width, "V": words * width, "out": words * width}
                kept.update({f"weights {i}": words * words for i in range(heads)})
                return sum(kept.values()) * size
        """),
        correct("counted by torch", """
            def attention_flops(n, d, h):
                from torch.utils.flop_counter import mm_flop
                return h * (mm_flop((n, d // h), (d // h, n)) + mm_flop((n, n), (n, d // h)))

            def attention_memory(n, d, h, size):
                with torch.device("meta"):
                    kept = [torch.empty(n, d) for _ in range(4)] + [torch.empty(h, n, n)]
                return sum(each.numel() for each in kept) * size
        """),
        correct("helpers", """
            product = lambda rows, inner, columns: 2 * rows * inner * columns

            def attention_flops(n, d, h):
                dk = d // h
                return sum(product(n, dk, n) + product(n, n, dk) for _ in range(h))

            def attention_memory(n, d, h, b):
                return int(b) * (sum([n * d] * 4) + math.prod((h, n, n)))
        """),
    ),
    hints=(
        "how many scores are there in one head, and how many products are summed for one of them? Which of the two "
        "answers needs h?",
        "one head, d / h wide: (n, d/h) times (d/h, n) gives (n, n); (n, n) times (n, d/h) gives (n, d/h). Kept are "
        "four tables "
        "(n, d), and h tables (n, n).",
        "operations: over all heads each of the two products multiplies n n d pairs of numbers, and each pair takes 2 "
        "operations. Bytes: 4 n d plus h n n, times the bytes of a number.",
    ),
)  # fmt: skip
