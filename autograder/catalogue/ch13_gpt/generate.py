"""13.4: a model writes on, one token at a time, and is shown no more than its context."""

from typing import Any

import torch
from torch import Tensor, nn

from autograder.catalogue import families
from autograder.catalogue.ch13_gpt.shared import generator, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.families import in_place
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import InWords
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, second_call, visible
from autograder.inside.fixtures.gpt import CosineModel
from transformer_ref.beyond import gpt

GENERATE, WINDOW = sections("generate window")
MANY = 5_000  # rows that are counted
# 2,500 rows of a kind: two shares near a half differ by 0.014 by chance, and never by five times as much
CHANCE = {"rtol": 0.0, "atol": 0.07}
ONE, TWO = "fraction of each next token, after the first prompt", "after the second prompt"
PAIRS = "fraction of each pair of next tokens, after the first prompt"
COMMON = 0.01  # of 2,500 rows, such a share is met by all but one answer in 10 to the 10
NEVER = "likely tokens that never came"
OTHER_TAUS = (1.0, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0001)  # with which a code may draw where tau is 0
LEFT = Remark("the model was left in a different mode than it came in")
TWO_SOURCES = Remark(
    "not all tokens are drawn with g itself: torch's global random numbers are used too, perhaps seeded with a number "
    "from g. Pass g to everything that draws"
)
WORDS, SOURCE = "in words", "random numbers drawn from"


def generate(model: nn.Module, ids: Tensor, n: int, context: int, tau: float, g: torch.Generator) -> Tensor:
    """The prompt followed by n tokens: (B, T0 + n)."""
    training = model.training
    model.eval()
    ids = gpt.generate(model, ids, n, context, tau, g).clone()
    model.train(training)
    return ids


def what_was_written(case: Case, result: Any) -> Any:
    """Only the ids; of many rows, which tokens follow how often. Where only the model's mode is wrong, that."""
    if not isinstance(result, dict) or "ids" not in result:
        return result
    given, prompt, n, _, tau, _ = case.arguments
    ids = result["ids"]
    wanted = (len(prompt), prompt.shape[1] + n)
    usable = isinstance(ids, Tensor) and ids.shape == wanted and ids.dtype == torch.int64
    if result.get("training") != given["training"] and usable and (tau or torch.equal(ids, _greedy(case))):
        return LEFT
    V = given["vocabulary"]
    if len(prompt) < MANY or not usable or not bool(((ids >= 0) & (ids < V)).all()) or not torch.equal(ids[:,
        : prompt.shape[1]], prompt):
        return ids
    told: dict[str, Any] = {}
    for kind, name in enumerate((ONE, TWO)):
        told[name] = _shares(ids[kind::2, prompt.shape[1]], V)
    probable = _probable(case)
    told = {WORDS: _in_words(probable, told), **told, NEVER: _never(probable, told)}
    if n > 1:
        told[PAIRS] = _shares(ids[::2, prompt.shape[1]] * V + ids[::2, prompt.shape[1] + 1], V * V)
    told[SOURCE] = TWO_SOURCES if given.get("looks") and result.get("two sources") else "g"
    return told


def _greedy(case: Case) -> Tensor:
    """The correct ids for tau = 0."""
    given, *arguments = case.arguments
    model = CosineModel(*(given[name] for name in ("vocabulary", "context", "sharp", "seed"))).eval()
    return gpt.generate(model, *arguments)


def _never(probable: Tensor, told: dict[str, Any]) -> str:
    """The tokens with a share of more than COMMON that came in no row, in words: as where only the likeliest few are
    drawn from."""
    for kind, name in enumerate((ONE, TWO)):
        for token in ((probable[kind] > COMMON) & (told[name] == 0)).nonzero().flatten().tolist():
            prompted, share = f"after the {'second' if kind else 'first'} prompt", float(probable[kind, token])
            return InWords(f"token {token} never came {prompted}, though its probability is {share:.2f}")
    return "none"


def _probable(case: Case) -> Tensor:
    """The probabilities of the first new token after the first and after the second prompt: (2, V)."""
    given, prompt, _, context, tau, _ = case.arguments
    model = CosineModel(*(given[name] for name in ("vocabulary", "context", "sharp", "seed"))).eval()
    return torch.softmax(model(prompt[:2, -context:])[:, -1].double() / tau, dim=-1)


def _in_words(probable: Tensor, told: dict[str, Any]) -> str:
    """How often each token came after a prompt, if that differs from its probability by more than chance."""
    for kind, name in enumerate((ONE, TWO)):
        if float((told[name] - probable[kind]).abs().max()) > CHANCE["atol"]:
            got, wanted = (" ".join(number(share) for share in each.tolist()) for each in (told[name], probable[kind]))
            return InWords(
                f"after the {'second' if kind else 'first'} prompt the next tokens 0, 1, 2 and so on came with the "
                f"fractions {got}; softmax(logits / tau) gives {wanted}"
            )
    return "as expected"


def _shares(tokens: Tensor, kinds: int) -> Tensor:
    return torch.bincount(tokens, minlength=kinds).double() / len(tokens)


def told(
    g: torch.Generator, B: int, T0: int, n: int, context: int, tau: float = 0, V: int = 11, training: bool = False,
    limit: int | None = None, sharp: float = 3.0,
) -> Case:  # fmt: skip
    """A prompt to be continued. limit: tokens that the model bears, context unless it is given."""
    model = {"vocabulary": V, "context": limit or context, "sharp": sharp,
             "seed": int(torch.randint(50, (), generator=g)),
             "training": training}  # fmt: skip
    ids = torch.randint(V, (B, T0), generator=g)
    ids[0, 0] = 0
    return Case((model, ids, n, context, tau, generator(g)))


def twice(g: torch.Generator, *sizes: int) -> Case:
    """The same prompt twice in a batch."""
    case = told(g, *sizes)
    case.arguments[1][-1] = case.arguments[1][0]
    return case


def drawn(g: torch.Generator, tau: float, n: int = 2, V: int = 4, T0: int = 2, context: int = 4,
          sharp: float = 1.6, looks: bool = False) -> Case:
    """Many rows of two prompts by turns. Logits of a model differ by up to twice `sharp`. looks: whether it counts if
    the global random numbers are used as well as the generator."""
    case = told(g, MANY, T0, n, context, tau, V, sharp=sharp)
    ids = case.arguments[1]
    ids[1, -1] = (ids[0, -1] + 1) % V
    ids.copy_(ids[torch.arange(MANY) % 2])
    case.arguments[0]["looks"] = looks
    return case


def written(evidence: Evidence) -> str:
    """The first row that differs: what was written after the prompt."""
    if not isinstance(evidence.got, Tensor) or evidence.got.shape != evidence.expected.shape:
        return sizes(evidence)
    place = int((evidence.got != evidence.expected).any(1).int().argmax())
    prompt = evidence.arguments[1]
    start = f"After the prompt {_ids(prompt[place])}" if torch.equal(evidence.got[place, : prompt.shape[1]],
        prompt[place]) else "In all"
    cut = prompt.shape[1] if start != "In all" else 0
    return (
        f"{start} your row {place} is {_ids(evidence.got[place, cut:])}; it should be "
        f"{_ids(evidence.expected[place, cut:])}."
    )


def sizes(evidence: Evidence) -> str:
    """The shape that came back and the expected one."""
    if not isinstance(evidence.got, Tensor) or not isinstance(evidence.expected, Tensor):
        return ""
    return (
        f"You returned {tuple(evidence.got.shape)}; the prompt and n = {evidence.arguments[2]} tokens make "
        f"{tuple(evidence.expected.shape)}."
    )


def prompt_lost(evidence: Evidence) -> bool:
    """Whether only what was written came back; of drawn tokens, as many as were to be written."""
    got, wanted, n = evidence.got, evidence.expected, evidence.arguments[2]
    if not isinstance(got, Tensor) or got.shape != (len(evidence.arguments[1]), n):
        return False
    return isinstance(wanted, dict) or torch.equal(got, wanted[:, wanted.shape[1] - n :])


def _ids(row: Tensor) -> str:
    return " ".join(map(str, row.tolist()))


def lacking(evidence: Evidence) -> bool:
    """Whether likely tokens never came, and others by turns."""
    got = evidence.got
    return isinstance(got, dict) and isinstance(got[NEVER], InWords) and float(got[ONE].max()) < 0.95


def drawn_at_0(evidence: Evidence) -> bool:
    """Whether the ids for tau = 0 are those that are drawn with another temperature."""
    given, prompt, n, context, tau, g = evidence.arguments
    if tau or not isinstance(evidence.got, Tensor):
        return False
    model = CosineModel(*(given[name] for name in ("vocabulary", "context", "sharp", "seed"))).eval()
    for other in OTHER_TAUS:
        again = torch.Generator()
        again.set_state(g.get_state())
        if torch.equal(gpt.generate(model, prompt, n, context, other, again), evidence.got):
            return True
    return False


def always_one(evidence: Evidence) -> bool:
    """Whether one token took everything, in every kind of row."""
    shares = [share for name, share in evidence.got.items() if name in (ONE, TWO)] if isinstance(evidence.got,
        dict) else []
    return bool(shares) and all(float(share.max()) == 1.0 for share in shares) and evidence.arguments[4] > 0


def always_the_likeliest(evidence: Evidence) -> bool:
    """Whether one token took everything in every kind of row, and is the likeliest there, or nearly."""
    return always_one(evidence) and all(
        float(evidence.expected[name][int(evidence.got[name].argmax())]) > 0.9 * float(evidence.expected[name].max())
        for name in (ONE, TWO)
    )


RIGHT = answer("""
    def generate(model, ids, n, context, tau, g):
        training = model.training
        model.eval()
        for step in range(n):
            seen = ids[:, -context:]
            logits = model(seen)[:, -1]
            if tau == 0:
                new = logits.argmax(dim=-1, keepdim=True)
            else:
                shares = torch.softmax(logits / tau, dim=-1)
                new = torch.multinomial(shares, 1, generator=g)
            ids = torch.cat([ids, new], dim=1)
        model.train(training)
        return ids
""")
SEEN, GREEDY = "seen = ids[:, -context:]", "new = logits.argmax(dim=-1, keepdim=True)"
SHARES, DRAW = "shares = torch.softmax(logits / tau, dim=-1)", "new = torch.multinomial(shares, 1, generator=g)"
GROWN, MODE, LOOP = "ids = torch.cat([ids, new], dim=1)", "model.train(training)", "for step in range(n):"

EXERCISE = Exercise(
    id="generate", number="13.4", difficulty=2, minutes=30, visible_points=1, hidden_points=3,
    reference=generate, normalize=what_was_written, harness="writing", section=GENERATE, quotes=written, seconds=40.0,
    omits={"precision": "ids are whole numbers, and the largest logit stays the largest"},
    probes=(
        visible("5 tokens, all in the context", told, 2, 3, 5, 9),
        visible("a context of 4 tokens, 7 are written", told, 3, 2, 7, 4),
        visible("tau = 4, 5,000 rows", drawn, 4.0, V=6, sharp=8.0, **CHANCE),
        visible("tau = 0.25, 5,000 rows", drawn, 0.25, V=6, sharp=0.8, **CHANCE),
        visible("a prompt that is longer than the context", told, 2, 7, 3, 4),
        visible("a model with more positions than the context", told, 2, 3, 6, 4, 0, 11, False, 12),
        hidden("tau = 1, by the generator g", drawn, 1.0, 2, 5, 3, 5, 3.0, looks=True, checks={"generator"},
               announced_by="drawn only with g", **CHANCE),
        hidden("tau = 0.25, beyond the context", drawn, 0.25, 3, 4, 2, 2, 0.8, looks=True,
               announced_by="tau: 0 or more", **CHANCE),
        # Logits so close to each other that only tau = 0 itself, and no small tau in its place, finds the largest.
        hidden("other sizes", told, 4, 5, 9, 6, 0, 17, sharp=0.01, announced_by=PROMISED),
        hidden("a context of one token", told, 3, 2, 4, 1, announced_by="context: at least 1"),
        hidden("one prompt of one token", told, 1, 1, 6, 3, announced_by=PROMISED),
        hidden("a prompt twice", twice, 3, 3, 6, 4, announced_by=PROMISED),
        hidden("nothing to write", told, 2, 3, 0, 4, 0, 11, True,
               announced_by="n: number of new tokens, 0 or more"),
        hidden("a model in training mode", told, 2, 3, 5, 4, 0, 11, True, checks=UNTOUCHED,
               announced_by="The model may be in training mode"),
        # With this context each of the models writes all three, so whichever is taken for an end is met.
        hidden("a vocabulary of three tokens", told, 1, 1, 14, 4, 0, 3, announced_by="Generation never stops early"),
        second_call(told, 3, 3, 5, 4),
    ),
    mistakes=(
        mistake("the context not cropped", RIGHT.but(SEEN, "seen = ids"), WINDOW,
            """Your code shows the model more than `context` tokens (all that has been written, or some other number of
            them), and it may have no position left for them. Show it only the last `context` tokens; the text itself
            keeps growing. If you do cut: do you cut the tokens, axis 1, or the rows of the batch?"""),
        mistake("the first tokens shown", RIGHT.but("ids[:, -context:]", "ids[:, :context]"), WINDOW,
            """The model is shown the *first* tokens of the text, again and again, so from some position on it repeats
            itself. It continues from the end: the last `context` tokens."""),
        mistake("one token too few shown",
                RIGHT.but("ids[:, -context:]", "ids[:, -context + 1:] if context > 1 else ids[:, -1:]"), WINDOW,
            "The model is shown one token fewer than it may be. *Show the model* the last `context` tokens, including "
            "the newest."),
        mistake("one token too many shown", RIGHT.but("ids[:, -context:]", "ids[:, -(context + 1):]"), WINDOW,
            "The model is shown one token more than `context`, for which it has no position. A slice from -k on holds "
            "k tokens."),
        mistake("counted from the front", RIGHT.but("-context:", "ids.shape[1] - context:"), WINDOW,
            """While the text is shorter than the context, the position at which you begin is below 0, and such an index
            counts from the end: the model is shown too little. In that case begin at 0."""),
        mistake("the text itself cropped", RIGHT.but(SEEN, "ids = seen = ids[:, -context:]"), WINDOW,
            "You cropped the text, and not just what is shown: its beginning is lost. Only the model's view is "
            "cropped; the text keeps growing."),
        mistake("the last tokens returned", RIGHT.but("return ids", "return ids[:, -context:]"), WINDOW,
            "You returned the last `context` tokens. Return the whole text, from the first token of the prompt on."),
        mistake("the context emptied when it is full",
                RIGHT.but(SEEN, "seen = ids[:, (ids.shape[1] - 1) // context * context:]"), WINDOW,
            """When the context is full you start an empty one, and the model loses all earlier tokens at once. Move it
            by one token in every step, so that it is always as full as possible."""),
        mistake("the beginning dropped in halves",
                RIGHT.but(SEEN, "seen = ids if ids.shape[1] <= context else ids[:, -max(context // 2, 1):]"), WINDOW,
            "Beyond the context you show the model fewer tokens than it may have. It is shown the last `context` "
            "tokens in every step."),
        mistake("the prompt alone shown",
                RIGHT.but(LOOP, f"prompt = ids\n    {LOOP}").but("ids[:, -context:]", "prompt[:, -context:]"), GENERATE,
            "In every step the model sees only the prompt, so it predicts the same token again. It has to read what "
            "it has written itself."),
        mistake("only the last token shown", RIGHT.but("ids[:, -context:]", "ids[:, -1:]"), GENERATE,
            "The model is shown only the last token. It remembers nothing between calls: show it the text so far, as "
            "far as the context reaches."),
        mistake("the prompt, then only the last token",
                RIGHT.but(SEEN, "seen = ids[:, -context:] if step == 0 else ids[:, -1:]"), GENERATE,
            """After the first step the model is shown only the last token, as if it had a cache. It remembers nothing
            between calls: show it the text so far."""),
        mistake("pads in front",
                RIGHT.but(SEEN, "seen = F.pad(ids, (max(context - ids.shape[1], 0), 0))[:, -context:]"), GENERATE,
            "You filled the text up to the context with zeros. A 0 is a token as others are: the model is shown as "
            "many as there are."),
        mistake("only what is new shown", RIGHT.but(LOOP, f"start = ids.shape[1] - 1\n    {LOOP}").but(
                  "ids[:, -context:]", "ids[:, start:][:, -context:]"), GENERATE,
            """The model no longer sees the prompt, except for its last token. It remembers nothing between
            calls: show it prompt and answer together."""),
        mistake("the first position asked", RIGHT.but("model(seen)[:, -1]", "model(seen)[:, 0]"), GENERATE,
            "You read the first position. It scores what follows the *first* token that is shown; the prediction of "
            "the next token is at the last position."),
        mistake("the position before the last",
                RIGHT.but("model(seen)[:, -1]", "model(seen)[:, max(seen.shape[1] - 2, 0)]"), GENERATE,
            """You read the position before the last: it scores the token that is there already. The *last* position
            scores the next token."""),
        mistake("the mean of all positions", RIGHT.but("model(seen)[:, -1]", "model(seen).mean(dim=1)"), GENERATE,
            """The scores of all positions were averaged. Each position scores what follows its own token; what comes
            next is scored at the last one."""),
        mistake("the prompt lost",
                RIGHT.but(LOOP, f"T0 = ids.shape[1]\n    {LOOP}").but("return ids", "return ids[:, T0:]"), GENERATE,
            "The prompt is missing in front of what was written. It comes back with it: (B, T0 + n).", quotes=sizes,
            shows=prompt_lost),
        mistake("new tokens in front", RIGHT.but("[ids, new]", "[new, ids]"), GENERATE,
            "New tokens were put in front of the text. It grows at its end."),
        mistake("one token too few", RIGHT.but("range(n)", "range(n - 1)"), GENERATE,
            "One token is missing. n counts the tokens that are written, so there are n steps, whatever "
            "the prompt is."),
        mistake("one token too many", RIGHT.but("range(n)", "range(n + 1)"), GENERATE,
            "One token too many was written. n counts the tokens that are written."),
        mistake("n tokens in all", RIGHT.but("range(n)", "range(max(n - ids.shape[1], 0))"), GENERATE,
            "There are n tokens in all, those of the prompt among them. n counts the tokens that are *written*: T0 + "
            "n in all."),
        mistake("at least one token", RIGHT.but("range(n)", "range(max(n, 1))"), GENERATE,
            "With n = 0 a token was written all the same. n may be 0, and then the prompt comes back."),
        families.DIVIDED_BY_TAU_0(RIGHT.but("tau == 0", "False"), GENERATE),
        mistake("the least likely token", RIGHT.but("logits.argmax", "logits.argmin"), GENERATE,
            "With tau = 0 the smallest logit was chosen, the least likely token."),
        mistake("the largest of the whole batch",
                RIGHT.but(GREEDY, "new = (logits.argmax() % logits.shape[-1]).expand(len(ids), 1)"), GENERATE,
            """With tau = 0 all rows got one and the same token: the largest logit of the whole batch was looked for.
            Each row chooses for itself, along the last axis."""),
        mistake("over the batch", RIGHT.but(GREEDY, "new = logits.argmax(dim=0)[:len(ids), None]"), GENERATE,
            "With tau = 0 the largest was looked for along axis 0, the rows. Which *token* is likeliest runs along "
            "the last axis."),
        mistake("the first row's token for all",
                RIGHT.but(GROWN, "ids = torch.cat([ids, new[:1].expand(len(ids), 1)], dim=1)"), GENERATE,
            "All rows got the token of row 0. Each prompt has a continuation of its own."),
        mistake("multiplied by tau", RIGHT.but("logits / tau", "logits * tau"), GENERATE,
            "A small tau made your draws more random, and a large tau less: the logits are *divided* by it."),
        mistake("tau not used", RIGHT.but("logits / tau", "logits"), GENERATE,
            """tau has no effect above 0. The logits are divided by it before the softmax. (Dividing the probabilities
            afterwards changes nothing: the factor is common to all.)"""),
        families.ROOT_OF_TAU(RIGHT.but("logits / tau", "logits / tau ** 0.5"), GENERATE),
        mistake("softmax twice", RIGHT.but("torch.softmax(logits / tau", "torch.softmax(logits.softmax(-1) / tau"),
                GENERATE,
            "A softmax was applied twice, which makes the probabilities nearly equal. tau divides the logits as they "
            "are; one softmax follows."),
        mistake("no softmax", RIGHT.but(SHARES, "shares = (logits / tau).clamp(min=1e-9)"), GENERATE,
            "You drew by the logits themselves, and those below 0 were never drawn. Probabilities come out of the "
            "softmax."),
        mistake("no softmax, negative logits left", RIGHT.but(SHARES, "shares = logits / tau"), GENERATE,
            """You drew by numbers that may be negative, such as the logits themselves or the logarithm of the softmax,
            and nothing can be drawn with a negative probability. Probabilities come out of the softmax."""),
        mistake("softmax over the batch",
                RIGHT.but("dim=-1)\n            new = torch", "dim=0)\n            new = torch"), GENERATE,
            """The softmax runs over the rows of the batch: how likely a token is in a row then depends on the other
            prompts. It runs over the vocabulary, the last axis."""),
        mistake("the likeliest few alone",
                RIGHT.but(SHARES, "least = logits.topk(3, dim=-1).values[:, -1:] if logits.shape[-1] > 3 else logits\n"
                  "            shares = torch.softmax(logits.masked_fill(logits < least, float('-inf')) "
                  "/ tau, dim=-1)"), GENERATE,
            "Some tokens never come, as where only the likeliest few are drawn from. Every token has its probability.",
            shows=lacking),
        mistake("all tokens alike", RIGHT.but(DRAW, "new = torch.multinomial(torch.ones_like(shares), 1, generator=g)"),
                GENERATE,
            """All tokens come nearly equally often. A likely one comes more often, with its probability. (A softmax on
            the logits *before* tau divides them makes them nearly alike too: tau divides the logits as they are.)"""),
        families.FIRST_ROW_FOR_ALL(RIGHT.but(
                  DRAW, "new = torch.multinomial(shares[0], len(shares), replacement=True, generator=g)[:, None]"),
            GENERATE),
        families.G_NOT_USED(RIGHT.but(", generator=g", ""), GENERATE),
        families.G_SEEDED(RIGHT.but(DRAW, "new = torch.multinomial(shares, 1, generator=g.manual_seed(step))"),
            GENERATE, same="call draws the same numbers"),
        mistake("one seed in every step",
                RIGHT.but(DRAW, "new = torch.multinomial(shares, 1, generator=g.manual_seed(0))"), GENERATE,
            """All steps draw the same numbers: in every step g, or a generator of your own, gets the same seed. Draw
            from g, make no other generator, and do not change its seed."""),
        mistake("dropout left on", RIGHT.without("model.eval()").without(MODE), GENERATE,
            """The model came in training mode, and you called it as it was: dropout then leaves out parts at random,
            and its tokens change from call to call. Switch to evaluation mode first."""),
        families.LEFT_IN_EVALUATION_MODE(RIGHT.without(MODE), GENERATE),
        families.PUT_IN_TRAINING_MODE(RIGHT.but(MODE, "model.train()"), GENERATE),
        mistake("left in another mode on one way out", RIGHT.after("model.eval()", "if n == 0:\n    return ids"),
                GENERATE,
            """On one of the ways through your code the model is left in a different mode than it came in, as by a
            return before its mode is set back. It goes back in the mode in which it came, whatever the arguments
            are.""",
            quotes=None,
            shows=lambda evidence: evidence.got == LEFT),
        mistake("lists instead of a tensor", RIGHT.but("return ids", "return ids.tolist()"), GENERATE,
            "A list came back. Return one tensor of ids, (B, T0 + n)."),
        mistake("floats", RIGHT.but(GROWN, "ids = torch.cat([ids, new.to(ids)], dim=1)").but("return ids",
            "return ids.float()"), GENERATE,
            "Your ids are floats. They are whole numbers, long, as the prompt is."),
        mistake("only the first prompt", RIGHT.but("model.eval()", "model.eval()\n    ids = ids[:1]"), GENERATE,
            "Only one row came back. Every prompt of the batch is continued."),
        mistake("the logits as well", RIGHT.but("return ids", "return ids, logits"), GENERATE,
            "Two things came back. Return only the ids."),
        mistake("drawn whatever tau is", RIGHT.but("tau == 0", "False").but("logits / tau", "logits / (tau or 1)"),
                GENERATE,
            """With tau = 0 you draw, with some other temperature: with 1 (`tau or 1` takes 0 for nothing), or with a
            small one, which still picks a less likely token now and then. With tau = 0 nothing is drawn: the likeliest
            token takes everything.""", shows=drawn_at_0),
        mistake("stops at an end", RIGHT.after(GROWN, "if bool((new == 2).all()):\n    break"), GENERATE,
            """Your text ended before n tokens were written: when all rows had written some token, you stopped. No token
            of this vocabulary means the end: write n tokens in any case."""),
        mistake("new tokens without their axis", RIGHT.but("[ids, new]", "[ids, new.squeeze(1)]"), GENERATE,
            "What you append to the text has one axis, (B,), and the text has two, (B, t). A new column is (B, 1)."),
        mistake("greedy whatever tau is", RIGHT.but(DRAW, "new = shares.argmax(dim=-1, keepdim=True)"), GENERATE,
            """In each kind of row the likeliest token took everything. That is what tau = 0 is for: above 0 a token is
            *drawn*, with its probability.""", shows=always_the_likeliest),
        mistake("one draw for all rows", RIGHT.but(DRAW, "new = torch.multinomial(shares[:1], 1, generator=g)\n"
                  "            new = new.expand(len(ids), 1)"), GENERATE,
            """In each kind of row one token took everything, and it is not always the likeliest: one draw decides for
            all rows. Draw separately for each row, with its own probabilities.""", shows=always_one),
        in_place("ids", RIGHT.but(LOOP, f"ids[:, 0] += 0 * ids[:, 0] + 1\n    {LOOP}"), GENERATE),
    ),
    correct=(
        correct("a step at a time", RIGHT),
        correct("a table filled in, no gradients", """
            @torch.no_grad()
            def generate(model, ids, n, context, tau, g):
                mode = model.training
                model.eval()
                B, T0 = ids.shape
                out = torch.empty(B, T0 + n, dtype=torch.long)
                out[:, :T0] = ids
                for t in range(T0, T0 + n):
                    scores = model(out[:, max(0, t - context):t])[:, -1, :]
                    if tau > 0:
                        p = F.softmax(scores / tau, -1)
                        out[:, t] = torch.multinomial(p, num_samples=1, generator=g).squeeze(1)
                    else:
                        out[:, t] = torch.topk(scores, 1)[1].squeeze(1)
                model.train(mode)
                return out
        """),
        correct("as nanoGPT writes it", """
            def generate(model, idx, max_new_tokens, block_size, temperature, g):
                device = next(model.parameters()).device
                was = model.training
                model.eval()
                with torch.no_grad():
                    for _ in range(max_new_tokens):
                        idx_cond = idx if idx.size(1) <= block_size else idx[:, -block_size:]
                        logits = model(idx_cond.to(device))
                        logits = logits[:, -1, :]
                        if temperature == 0:
                            idx_next = torch.topk(logits, 1).indices
                        else:
                            probs = F.softmax(logits / temperature, dim=-1)
                            idx_next = torch.multinomial(probs, num_samples=1, generator=g)
                        idx = torch.cat((idx, idx_next), dim=1)
                model.train(was)
                return idx
        """),
        correct("Gumbel noise",
                RIGHT.but(SHARES, "noise = -torch.log(-torch.log(torch.rand(logits.shape, generator=g, "
                                  "dtype=torch.float64)))").but(
            DRAW, "new = (logits / tau + noise).argmax(dim=-1, keepdim=True)")),
        correct("recursive, with the running sum", """
            def generate(model, ids, n, context, tau, g):
                if n == 0:
                    return ids
                mode = model.training
                model.train(False)
                z = model(ids[..., -context:])[..., -1, :].detach().double()
                if tau:
                    p = torch.exp(z / tau - torch.logsumexp(z / tau, -1, keepdim=True)).cumsum(-1)
                    u = torch.rand(len(ids), 1, generator=g, dtype=torch.float64)
                    new = torch.searchsorted(p, u).clamp(max=z.shape[-1] - 1)
                else:
                    new = z.max(-1, keepdim=True).indices
                model.train(mode)
                return generate(model, torch.hstack([ids, new]), n - 1, context, tau, g)
        """),
        correct("row by row, in lists", """
            def generate(model, ids, n, context, tau, g):
                mode = model.training
                model.eval()
                rows = []
                for row in ids.tolist():
                    for _ in range(n):
                        last = model(torch.tensor([row[-context:]]))[0, -1]
                        if tau == 0:
                            row.append(int(last.argmax()))
                        else:
                            row.append(int(torch.multinomial((last / tau).softmax(0), 1, generator=g)))
                    rows.append(row)
                model.train(mode)
                return torch.tensor(rows)
        """),
    ),
    hints=(
        "what does the model see in step 4 of the example, and which of its rows predicts the next token? Which token "
        "does a step with tau = 0 choose?",
        "ids (B, t); shown (B, at most context); logits (B, shown, V), of which (B, V) at the last position; one new "
        "token for each row, (B, 1), appended to ids.",
        "evaluation mode; n times: logits at the last position of the last `context` tokens; tau 0: the largest, else "
        "a draw by softmax(logits / tau) with g; append; at the end the mode as it was.",
    ),
)  # fmt: skip
