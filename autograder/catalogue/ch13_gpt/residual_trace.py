"""13.5: the residual stream, before the first block and after each."""

from typing import Any

import torch
from torch import Tensor, nn

from autograder.catalogue.ch13_gpt.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from autograder.catalogue.quotes import row
from autograder.inside.fixtures.gpt import SmallGPT
from transformer_ref.beyond import gpt

STREAM, GUESSES = sections("stream guesses")
HOOKS = Remark("hooks were left on the model")
MODE = Remark("the model was left in evaluation mode")
GROWN = Remark("both calls of the check returned one and the same list")


def residual_trace(model: nn.Module, ids: Tensor) -> list[Tensor]:
    """The residual stream before the first block and after each: layers + 1 tensors (B, T, D)."""
    return gpt.residual_trace(model, ids)


def what_came_back(case: Case, result: Any) -> Any:
    """Only the entries; where only something was left behind, that."""
    if not isinstance(result, dict) or "trace" not in result:
        return result
    trace = result["trace"]
    if isinstance(trace, tuple):
        trace = list(trace)
    if result["kept"]:
        return GROWN
    if case.arguments[0]["looks"] and result["hooks"]:
        return HOOKS
    if case.arguments[0]["looks"] and not result["training"] and _is_right(case, trace):
        return MODE
    return trace


def _is_right(case: Case, trace: Any) -> bool:
    given, ids = case.arguments
    model = SmallGPT(given["vocabulary"], given["D"], given["layers"], torch.Generator().manual_seed(given["seed"]))
    wanted = gpt.residual_trace(model, ids)
    return isinstance(trace, list) and len(trace) == len(wanted) and all(
        isinstance(one, Tensor) and one.shape == other.shape and torch.allclose(one.to(other), other, 1e-4, 1e-5)
        for one, other in zip(trace, wanted, strict=True)
    )


def traced(g: torch.Generator, B: int, T: int, layers: int, D: int = 6, V: int = 11, looks: bool = False) -> Case:
    """looks: whether what is left on the model counts."""
    model = {"vocabulary": V, "D": D, "layers": layers, "seed": int(torch.randint(1 << 20, (), generator=g)),
             "looks": looks}
    ids = torch.randint(V, (B, T), generator=g)
    ids[0, 0] = 0
    return Case((model, ids))


def alike(g: torch.Generator) -> Case:
    """A text twice, and the same token everywhere."""
    case = traced(g, 3, 4, 2)
    case.arguments[1][0] = 5
    case.arguments[1][2] = case.arguments[1][1]
    return case


def entries(evidence: Evidence) -> str:
    """How many entries came back and how many are expected; if as many, the first that differs."""
    got, wanted = evidence.got, evidence.expected
    if not isinstance(got, list):
        return ""
    if len(got) != len(wanted):
        return (
            f"Your list has {len(got)} entries; there should be {len(wanted)}, one before the first of the "
            f"{len(wanted) - 1} blocks and one after each."
        )
    for place, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if not isinstance(one, Tensor) or one.shape != other.shape:
            return f"Entry {place} of your list is {_form(one)}; expected a tensor of shape {tuple(other.shape)}."
        if not torch.allclose(one, other, rtol=1e-4, atol=1e-5):
            where = "before the first block" if place == 0 else f"after block {place} of {len(wanted) - 1}"
            return (
                f"Entry {place} of your list, {where}, begins with {row(one.flatten()[:4])}; the stream there begins "
                f"with {row(other.flatten()[:4])}."
            )
    return ""


def without_the_end(evidence: Evidence) -> bool:
    """Whether the last entry is missing and the others are right; of a list with at least three, whether it ends too
    early."""
    got, wanted = evidence.got, evidence.expected
    if not isinstance(got, list) or not len(wanted) > len(got) >= min(len(wanted) - 1, 3):
        return False
    return all(
        isinstance(one, Tensor) and one.shape == other.shape and torch.allclose(one.to(other), other, 1e-4, 1e-5)
        for one, other in zip(got, wanted, strict=False)
    )


def scores(evidence: Evidence) -> bool:
    """Whether an entry has as many numbers a token as the vocabulary has tokens."""
    got, V = evidence.got, evidence.arguments[0]["vocabulary"]
    return isinstance(got, list) and any(isinstance(one, Tensor) and one.ndim == 3 and one.shape[-1] == V
                                         for one in got)


def _form(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"of type {type(value).__name__}"


RIGHT = answer("""
    def residual_trace(model, ids):
        x = model.embed(ids)
        trace = [x]
        for block in model.blocks:
            x = block(x)
            trace.append(x)
        return trace
""")
START, FIRST, STEP, KEPT = "x = model.embed(ids)", "trace = [x]", "x = block(x)", "trace.append(x)"
HOOKED = answer("""
    def residual_trace(model, ids):
        trace = [model.embed(ids)]
        hooks = [block.register_forward_hook(lambda module, given, out: trace.append(out)) for block in model.blocks]
        model(ids)
        for hook in hooks:
            hook.remove()
        return trace
""")

EXERCISE = Exercise(
    id="residual-trace", number="13.5", difficulty=2, minutes=15, visible_points=1, hidden_points=2,
    reference=residual_trace, normalize=what_came_back, harness="tracing", section=STREAM, quotes=entries,
    omits={"precision": "ids go in, which are small whole numbers"},
    probes=(
        visible("3 blocks, 2 texts of 4 tokens", traced, 2, 4, 3),
        visible("1 block, and what is left on the model", traced, 2, 3, 1, looks=True),
        hidden("other sizes", traced, 3, 5, 4, 8, 13, announced_by=PROMISED),
        hidden("one text of one token", traced, 1, 1, 2, announced_by=PROMISED),
        hidden("a text twice, and one token everywhere", alike, announced_by=PROMISED),
        hidden("as many blocks as tokens", traced, 2, 5, 5, announced_by="any number of blocks"),
        second_call(traced, 2, 4, 3),
    ),
    mistakes=(
        mistake("the embedding missing", RIGHT.but(FIRST, "trace = []"), STREAM,
            """The beginning is missing: the stream before the first block, which is tokens plus positions. It is entry
            0. (Hooks on the blocks' results do not see it.)"""),
        mistake("the last block's entry missing",
                RIGHT.but(FIRST, "trace = []").but(f"{STEP}\n        {KEPT}", f"{KEPT}\n        {STEP}"), STREAM,
            """The end is missing: what the last block returns. Perhaps the last block was not called, as where the
            number of blocks is written into the code, or you stored what each block *reads* and not what the last one
            returns.""", shows=without_the_end),
        mistake("a normed entry more", RIGHT.but("return trace", "trace.append(model.norm(x))\n    return trace"),
                STREAM,
            "You appended the output of the last norm. It is not part of the stream: only the head reads it."),
        mistake("the last entry normed",
                RIGHT.but("return trace", "trace[-1] = model.norm(trace[-1])\n    return trace"), STREAM,
            "The last entry went through the last norm. It is the stream as the last block leaves it, "
            "before that norm."),
        mistake("every entry normed",
                RIGHT.but(KEPT, "trace.append(model.norm(x))").but(FIRST, "trace = [model.norm(x)]"), STREAM,
            "Every entry went through the last norm. That is what the logit lens does *with* the stream; the stream "
            "itself is not normed."),
        mistake("the blocks' entries normed", RIGHT.but(KEPT, "trace.append(model.norm(x))"), STREAM,
            "What the blocks return went through the last norm. Store the stream as it is."),
        mistake("the norm between the blocks", RIGHT.but(STEP, "x = model.norm(block(x))"), STREAM,
            """The last norm was applied after every block, so the next one reads something that it never reads in the
            model. The stream runs from block to block as it is."""),
        mistake("what each block adds",
                RIGHT.but(STEP, f"before = x\n        {STEP}").but(KEPT, "trace.append(x - before)"), STREAM,
            "These are the differences, what each block *adds*. The stream is their sum so far: what the block "
            "returns."),
        mistake("added to x once more", RIGHT.but(STEP, "x = x + block(x)"), STREAM,
            "What a block returns was added to x. But a block returns the stream already, with x in it: its residuals "
            "are inside."),
        mistake("every block reads the embedding", RIGHT.but(STEP, "y = block(x)").but(KEPT, "trace.append(y)"), STREAM,
            "Every block was given the embedding. Each reads what the block before it returned."),
        mistake("the sum of all entries",
                RIGHT.but("return trace", "return [sum(trace[: i + 1]) for i in range(len(trace))]"), STREAM,
            "You added up the entries. The stream is a sum already: what a block returns holds all that came before."),
        mistake("one tensor under many names", RIGHT.but(START, "x = model.embed(ids).detach().clone()").but(
                  STEP, "x.copy_(block(x).detach())"), STREAM,
            """All entries show the end of the stream: one tensor was stored again and again, or overwritten in place.
            Entry i is a tensor of its own, the stream as it was after block i."""),
        mistake("logits behind", RIGHT.but("return trace", "trace.append(model.head(model.norm(x)))\n    return trace"),
                STREAM,
            "You appended the logits. The stream ends after the last block."),
        mistake("logits", RIGHT.but("return trace", "return [model.head(model.norm(x)) for x in trace]"), GUESSES,
            """Some of these are scores of the vocabulary, as the page makes them of the stream by the logit lens.
            Here, return the stream itself, D numbers a token, without a head.""", quotes=entries, shows=scores),
        mistake("normed before each block", RIGHT.but(STEP, "x = block(model.norm(x))"), STREAM,
            "Each block was given the stream after the last norm. A block has its own norms inside; it reads the "
            "stream as it is."),
        mistake("the embedding multiplied",
                RIGHT.but(START, "x = model.embed(ids) * model.token_embedding.shape[1] ** 0.5"), STREAM,
            "The embedding was multiplied by the root of D, as in chapter 09. This model does not do that: take what "
            "model.embed gives."),
        mistake("a generator", RIGHT.but("return trace", "yield from trace"), STREAM,
            "A generator came back: a function with `yield` computes nothing until the next value is requested. Return "
            "a list."),
        mistake("words without positions", RIGHT.but(START, "x = model.token_embedding[ids]"), STREAM,
            "Entry 0 holds the tokens without their positions, and the blocks read on from there. "
            "model.embed gives both."),
        mistake("the words before the embedding", RIGHT.but(FIRST, "trace = [model.token_embedding[ids], x]"), STREAM,
            "There is one entry too many: tokens without positions, and then tokens with them. The stream begins with "
            "both."),
        mistake("the ids in front", RIGHT.but(FIRST, "trace = [ids, x]"), STREAM,
            "The ids come first. They are not vectors: the stream begins with the embedding."),
        mistake("each state before its block, the embedding twice",
                RIGHT.but(f"{STEP}\n        {KEPT}", f"{KEPT}\n        {STEP}"), STREAM,
            "You recorded what each block *reads*, so the embedding is there twice and the end is missing. "
            "Store what it returns."),
        mistake("entry 0 without positions", RIGHT.but(FIRST, "trace = [model.token_embedding[ids]]"), STREAM,
            "Entry 0 holds the tokens without their positions. The stream begins with both, as model.embed gives "
            "them."),
        mistake("the embedding twice", RIGHT.but(FIRST, "trace = [x, x]"), STREAM,
            "The embedding is there twice. There is one entry before the first block and one after each."),
        mistake("the first block left out", RIGHT.but("in model.blocks:", "in model.blocks[1:]:"), STREAM,
            "The first block was left out, perhaps because counting began at 1."),
        mistake("the end of the stream alone", RIGHT.but("return trace", "return [x]"), STREAM,
            "Only the end of the stream came back. Return every state on the way, in order."),
        mistake("one tensor", RIGHT.but("return trace", "return x"), STREAM,
            "One tensor came back. Return a list: the stream before the first block, and after each."),
        mistake("the end first", RIGHT.but("return trace", "return trace[::-1]"), STREAM,
            "The list is reversed: entry 0 is the beginning, the embedding, and the last block comes last."),
        mistake("the blocks in the opposite order", RIGHT.but("in model.blocks:", "in reversed(model.blocks):"), STREAM,
            "The blocks were applied in the opposite order. The first of model.blocks reads the embedding."),
        mistake("one block again and again", RIGHT.but(STEP, "x = model.blocks[0](x)"), STREAM,
            "The first block was applied again and again. Each block is applied once, in its order."),
        mistake("the last token alone", RIGHT.but("return trace", "return [x[:, -1] for x in trace]"), STREAM,
            "Only the last token came back. The stream has a vector for every token: (B, T, D).", quotes=entries),
        mistake("the first text alone", RIGHT.but("return trace", "return [x[0] for x in trace]"), STREAM,
            "Only the first text of the batch came back, without its axis. Every entry is (B, T, D).", quotes=entries),
        mistake("an axis of size 1 lost", RIGHT.but("return trace", "return [x.squeeze() for x in trace]"), STREAM,
            "An axis of size 1 vanished, as that of a batch of one text: squeeze() removes every such axis. Every "
            "entry is (B, T, D)."),
        mistake("averaged over the tokens", RIGHT.but("return trace", "return [x.mean(dim=1) for x in trace]"), STREAM,
            "The tokens were averaged. Each has a stream of its own: every entry is (B, T, D).", quotes=entries),
        mistake("the layers behind", RIGHT.but("return trace", "return torch.stack(trace, dim=1)"), STREAM,
            "The entries were put into one tensor. Return a list with an entry for each state.",
            shows=lambda evidence: isinstance(evidence.got, Tensor) and evidence.got.ndim == 4),
        mistake("a dictionary", RIGHT.but("return trace", "return dict(enumerate(trace))"), STREAM,
            "A dictionary came back. Return a list: its order says which state is which."),
        mistake("numbers without their tensors", RIGHT.but("return trace", "return [x.tolist() for x in trace]"),
                STREAM,
            "Your entries are lists of numbers. Return tensors, (B, T, D) each.", quotes=entries),
        mistake("hooks left behind", HOOKED.without("for hook in hooks:").without("hook.remove()"), STREAM,
            """The list is right, but your hooks are still on the model: each call adds more of them, and they write
            into lists that are no longer used. Remove whatever you register."""),
        mistake("the model left in evaluation mode", RIGHT.before(START, "model.eval()"), STREAM,
            "You switched the model to evaluation mode and left it there. The caller goes on training: "
            "leave it as it came."),
        mistake("hooks that write twice", HOOKED.but("model(ids)", "model(ids)\n    model(ids)"), STREAM,
            "Every block wrote twice: the model was called twice while the hooks were on it. There is one entry after "
            "each block."),
        mistake("a list that is kept",
                RIGHT.but("def residual_trace(model, ids):", "def residual_trace(model, ids, trace=[]):").but(
                  FIRST, KEPT), STREAM,
            """Your list is kept from call to call, and each call writes on in it: a default such as [] is made once,
            with the function. Make a new list in every call."""),
    ),
    correct=(
        correct("block by block", RIGHT),
        correct("hooks, removed again", HOOKED),
        correct("accumulated", """
            def residual_trace(model, ids):
                from itertools import accumulate
                return list(accumulate(model.blocks, lambda x, block: block(x), initial=model.embed(ids)))
        """),
        correct("by the parts of the model", """
            @torch.no_grad()
            def residual_trace(net, tokens):
                states = (net.token_embedding[tokens] + net.position_embedding[:tokens.shape[1]],)
                for i in range(len(net.blocks)):
                    states += (net.blocks[i](states[i]).detach().clone(),)
                return states
        """),
        correct("recursive", """
            def residual_trace(model, ids):
                def after(k):
                    if k == 0:
                        return [model.embed(ids)]
                    before = after(k - 1)
                    return before + [model.blocks[k - 1].forward(before[-1])]
                return after(len(model.blocks))
        """),
        correct("hooks before each block, and the end", """
            def residual_trace(model, ids):
                seen = []
                hooks = []
                try:
                    for block in model.blocks:
                        hooks.append(block.register_forward_pre_hook(lambda m, args: seen.append(args[0])))
                    hooks.append(model.blocks[-1].register_forward_hook(lambda m, args, out: seen.append(out)))
                    model(ids)
                finally:
                    for h in hooks:
                        h.remove()
                return seen
        """),
    ),
    hints=(
        "how many states does the stream have on its way through 3 blocks? What does it hold before the first?",
        "layers + 1 tensors, all (B, T, D): the embedding, then what each block returns for the one before.",
        "x = embedding; store it; for each block in order: x = what the block returns for x; store it.",
    ),
)  # fmt: skip
