"""08.6: the same mask in the convention of nn.MultiheadAttention."""

import torch
from torch import Tensor

from autograder.catalogue.ch08_masks.shared import open_cells, sections
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.known_answers import answer, correct, formula, mistake
from autograder.catalogue.probes import visible

(CONVENTION,) = sections("convention")


def to_torch_mha(mask: Tensor, h: int) -> Tensor:
    """True where attention is forbidden, repeated for each head, (B * h, Tq, Tk)."""
    return ~mask.expand(-1, h, -1, -1).flatten(0, 1)


FUTURE = torch.ones(3, 3, dtype=torch.bool).tril()
PADS = torch.tensor([[True, True, False], [True, False, False]])[:, None, None, :]
MEMORY = torch.tensor([[[True, True, False, True], [False, True, True, False]],
                       [[True, False, False, True], [True, True, True, False]],
                       [[False, False, True, True], [True, False, True, False]]])[:, None]  # fmt: skip

RIGHT = answer("""
    def to_torch_mha(mask, h):
        forbidden = ~mask
        spread = forbidden.expand(-1, h, -1, -1)
        return spread.reshape(-1, mask.shape[2], mask.shape[3])
""")

EXERCISE = Exercise(
    id="to-torch-mha", number="08.6", difficulty=1, minutes=10, visible_points=1, hidden_points=0,
    reference=to_torch_mha, section=CONVENTION,
    probes=(
        visible("two sentences, two heads", Case((PADS & FUTURE, 2))),
        visible("three sentences, two queries, four keys, five heads", Case((MEMORY, 5))),
        visible("one sentence, one head", Case((FUTURE[None, None], 1)), checks=("inputs", "state")),
    ),
    mistakes=(
        mistake("not inverted", RIGHT.but("~mask", "mask"), CONVENTION,
            "PyTorch's module reads True as *forbidden*; your mask still means *may attend*.", quotes=open_cells),
        mistake("sentences and heads exchanged",
                RIGHT.but("forbidden.expand(-1, h, -1, -1)", "forbidden[:, 0].repeat(h, 1, 1)"), CONVENTION,
            """The sentences follow each other h times. The module counts sentence by sentence: first all heads of
            sentence 0, then all of sentence 1.""", quotes=open_cells),
        mistake("not inverted, and sentences and heads exchanged", RIGHT.but("~mask", "mask").but(
                  "forbidden.expand(-1, h, -1, -1)", "forbidden[:, 0].repeat(h, 1, 1)"), CONVENTION,
            """Two things at once. True still means *may attend*, and the module reads it as *forbidden*. And the
            sentences follow each other h times: first come all heads of sentence 0, then all of sentence 1.""",
            quotes=open_cells),
        mistake("not repeated", RIGHT.but("forbidden.expand(-1, h, -1, -1)", "forbidden"), CONVENTION,
            "There is one table for each sentence. The module expects one for each sentence *and* head, B times h of "
            "them."),
        mistake("repeated along the queries",
                RIGHT.but("forbidden.expand(-1, h, -1, -1)", "forbidden.repeat_interleave(h, dim=2)").but(
                  "-1, mask.shape[2], mask.shape[3]", "-1, h * mask.shape[2], mask.shape[3]"), CONVENTION,
            """Each row of a table was repeated h times, so axis 1, the queries, is h times too long, and axis 0 has B
            tables instead of B times h. Repeat the whole table of a sentence, once for each head."""),
        mistake("heads on an axis of their own",
                RIGHT.but("spread.reshape(-1, mask.shape[2], mask.shape[3])", "spread"), CONVENTION,
            "The shape is (B, h, Tq, Tk). The module expects sentences and heads in one axis: (B times h, Tq, Tk)."),
        mistake("additive", RIGHT.but("spread.reshape",
                                      "torch.zeros(spread.shape).masked_fill(spread, float('-inf')).reshape"),
            CONVENTION, "This is an additive mask. The module would accept it, but return a boolean one."),
        mistake("queries and keys exchanged", RIGHT.but("forbidden = ~mask", "forbidden = ~mask.transpose(2, 3)").but(
                  "mask.shape[2], mask.shape[3]", "mask.shape[3], mask.shape[2]"), CONVENTION,
            "Queries and keys are exchanged. The last axis runs over the keys, in both conventions."),
        mistake("ones and zeros", RIGHT.but("~mask", "(~mask).float()"), CONVENTION,
            "The mask holds ones and zeros. Return a boolean one: a float mask is *added* to the scores."),
        mistake("the first sentence's for all", RIGHT.but("~mask", "~mask[:1].expand_as(mask)"), CONVENTION,
            "Every sentence got the mask of the first.", quotes=open_cells),
    ),
    correct=(
        correct("repeat_interleave", formula("to_torch_mha(m, heads)", "(~m[:, 0]).repeat_interleave(heads, dim=0)")),
        correct("logical_not", """
            def to_torch_mha(mask, h):
                B, _, Tq, Tk = mask.shape
                return torch.logical_not(mask).repeat(1, h, 1, 1).view(B * h, Tq, Tk)
        """),
        correct("a list", """
            def to_torch_mha(mask, h):
                tables = [mask[b, 0] == False for b in range(len(mask)) for _ in range(h)]
                return torch.stack(tables)
        """),
        correct("flatten", formula("to_torch_mha(mask, h)", "mask.logical_not().expand(-1, h, -1, -1).flatten(0, 1)")),
    ),
    hints=(
        "two things differ: what True means, and how often each sentence's table is needed.",
        "(B, 1, Tq, Tk) becomes (B, h, Tq, Tk), then (B * h, Tq, Tk), sentence by sentence.",
        "exchange True and False; repeat the axis of size 1 h times; merge the first two axes.",
    ),
)  # fmt: skip
