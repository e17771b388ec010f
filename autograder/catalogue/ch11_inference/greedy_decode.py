"""11.1: the likeliest next word, again and again, each row until its own end."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from autograder.catalogue import families
from autograder.catalogue.ch11_inference.models import Script
from autograder.catalogue.ch11_inference.shared import BOS, EOS, PAD, ids_as_text, sections
from autograder.catalogue.exercise import Case, Evidence, Exercise, Remark
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import JudgedParts
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, second_call, visible

STEPS, GREEDY, STOP = sections("steps greedy stop")


def greedy_decode(model: nn.Module, src: Tensor, max_len: int, bos: int, eos: int, pad: int) -> Tensor:
    """bos, then the likeliest tokens until eos or max_len of them, then pads: (B, at most max_len + 1)."""
    training = model.training
    model.eval()
    target = torch.full((len(src), 1), bos)
    ended = torch.zeros(len(src), dtype=torch.bool)
    for _ in range(max_len):
        chosen = model(src, target)[:, -1].argmax(dim=-1).masked_fill(ended, pad)  # (B,)
        target = torch.cat([target, chosen[:, None]], dim=1)
        ended |= chosen == eos
        if ended.all():
            break
    model.train(training)
    return target


def rows_of_ids(case: Case, result: Any) -> Any:
    """The rows, without what follows eos, and a remark about the first wrong one; only a remark, if the result is not a
    tensor of ids of the correct size."""
    model, src, max_len, _, eos, pad = case.arguments
    if not isinstance(result, Tensor):
        kind = {"NoneType": "None", "list": "a list", "tuple": "a tuple"}.get(type(result).__name__, "something else")
        return Remark(f"{kind} came back, where a tensor of ids is expected")
    if result.ndim != 2 or len(result) != len(src) or not 1 <= result.shape[1] <= max_len + 1:
        size = f"({len(src)}, at most {max_len + 1})"
        return Remark(f"shape {tuple(result.shape)} came back, where {size} is expected, one row for each source")
    if result.dtype != torch.int64:
        dtype = str(result.dtype)[6:]
        return Remark(f"ids of dtype {dtype} came back, where int64 (long) is expected: ids are row numbers of a table")
    right = greedy_decode(deepcopy(model), *case.arguments[1:])
    rows, expected = ([_until_end(row, eos, pad) for row in ids.tolist()] for ids in (result, right))
    wrong = [
        Remark(
            f"row {place} should be {ids_as_text(want)}, yours is {ids_as_text(row)}"
            f"{_about_eos(row, want, eos, result.shape[1])}"
        )
        for place, (row, want) in enumerate(zip(rows, expected, strict=True))
        if row != want
    ]
    return JudgedParts({"first wrong row": [*wrong, "none"][0], "rows": rows}, {"ids": result})


def _about_eos(row: list[int], want: list[int], eos: int, columns: int) -> str:
    """What is wrong with the eos at the end of a row, as the end of a sentence."""
    if [*row, eos] == want and columns == len(row):
        return ", without its eos: did the loop stop before that was appended?"
    if [*want[:-1], eos] == row and len(want) > 1:
        return ": an eos took the place of its last word. A row that max_len cuts ends without one"
    return ""


def _until_end(ids: list[int], eos: int, pad: int) -> list[int]:
    """A row without what may follow eos, which is pads and more eos, and without pads at its end."""
    end = ids.index(eos, 1) + 1 if eos in ids[1:] else len(ids)
    if all(token in (eos, pad) for token in ids[end:]):
        ids = ids[:end]
    while len(ids) > 1 and ids[-1] == pad:
        ids = ids[:-1]
    return ids


def scripted(
    g: torch.Generator, lengths: tuple[int, ...], max_len: int, bos: int = BOS, eos: int = EOS, pad: int = PAD,
    S: int = 4, training: bool = False, twice: bool = False, V: int = 14,
) -> Case:  # fmt: skip
    """One source for each length, with an answer of that many words before eos; one longer than max_len is cut."""
    words = [token for token in range(V) if token not in (bos, eos, pad)]
    src = torch.full((len(lengths), S), pad)
    answers = {}
    for row, length in enumerate(lengths):
        real = S if row == 0 else max(1, S - row)
        src[row, :real] = torch.tensor(words)[torch.randperm(len(words), generator=g)[:real]]
        src[row, 0] = words[row]  # so that no two sources are alike
        drawn = torch.randint(len(words), (length,), generator=g).tolist()
        answers[tuple(src[row, :real].tolist())] = [*(words[place] for place in drawn), eos]
    if twice:
        src[-1] = src[0]
    return Case((Script(answers, V, bos, eos, pad, max_len, training), src, max_len, bos, eos, pad))


def never_ends(evidence: Evidence) -> bool:
    """Whether the rows are those of a loop that only max_len ends. A loop that waits for a step in which all rows write
    eos at once gives them too, except where all answers have one length."""
    if not isinstance(evidence.got, JudgedParts):
        return False
    model, src, max_len, bos, *_ = evidence.arguments
    model, target = deepcopy(model).eval(), torch.full((len(src), 1), bos)
    for _ in range(max_len):
        target = torch.cat([target, model(src, target)[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return torch.equal(evidence.got.told["ids"], target)


RIGHT = answer("""
    def greedy_decode(model, src, max_len, bos, eos, pad):
        training = model.training
        model.eval()
        out = torch.full((src.shape[0], 1), bos)
        done = torch.zeros(src.shape[0], dtype=torch.bool)
        for step in range(max_len):
            logits = model(src, out)
            chosen = logits[:, -1].argmax(dim=-1)
            chosen = chosen.masked_fill(done, pad)
            out = torch.cat([out, chosen[:, None]], dim=1)
            done = done | (chosen == eos)
            if done.all():
                break
        model.train(training)
        return out
""")
PADDED, DONE, STOPS = "chosen = chosen.masked_fill(done, pad)", "done = done | (chosen == eos)", "if done.all():"
CHOICE, GROWN = "chosen = logits[:, -1].argmax(dim=-1)", "out = torch.cat([out, chosen[:, None]], dim=1)"
MODE, STARTS = "model.train(training)", "out = torch.full((src.shape[0], 1), bos)"

EXERCISE = Exercise(
    id="greedy-decode", number="11.1", difficulty=2, minutes=30, visible_points=2, hidden_points=6,
    reference=greedy_decode, normalize=rows_of_ids, section=GREEDY,
    omits={"precision": "ids are whole numbers, and the largest logit stays the largest"},
    probes=(
        visible("answers of 2, 1 and 4 words", scripted, (2, 1, 4), 7),
        visible("one answer is longer than max_len", scripted, (1, 7, 2), 5),
        hidden("other words, other ids", scripted, (3, 17, 1, 2, 6, 4), 20, bos=7, eos=9, pad=11, S=7,
               announced_by="bos, eos, pad: ids, any three"),
        hidden("one sentence of one word", scripted, (3,), 5, S=1, announced_by=PROMISED),
        hidden("one step only", scripted, (1, 3), 1,
               announced_by="max_len: the largest allowed number of tokens after bos, at least 1"),
        hidden("the answer of every sentence is cut", scripted, (4, 6, 5), 3, bos=3, eos=0, pad=4,
               announced_by="A row without eos by then is cut there"),
        hidden("an empty answer, and the same sentence twice", scripted, (0, 3, 2), 6, twice=True,
               announced_by="An answer may be empty"),
        hidden("a model in training mode", scripted, (4, 2, 3), 6, training=True, checks=UNTOUCHED,
               announced_by="It may come in training mode"),
        second_call(scripted, (2, 4, 1), 6),
    ),
    mistakes=(
        mistake("finished rows go on", RIGHT.without(PADDED).but(STOPS, "if False:").without(DONE), STOP,
            """A row went on after eos, up to max_len. Once a row has written eos its sentence is over: whatever the
            model outputs there is not part of it. Remember which rows have ended, and stop when all have; a step in
            which all rows write eos at once may never come.""", shows=never_ends),
        mistake("finished rows go on until all have ended", RIGHT.without(PADDED), STOP,
            """The loop ends when every row has its eos, as it should, but until then the finished rows are written on.
            Each row remembers whether it is over, and gets pads from then on."""),
        mistake("stops when any row ends", RIGHT.but("done.all()", "done.any()"), STOP,
            "The first eos in any row ended the whole batch, so longer sentences were cut. Go on until *every* row "
            "has ended."),
        mistake("stops when the first row ends", RIGHT.but("done.all()", "done[0]"), STOP,
            "The loop ended with row 0, and longer rows were cut. Every row has an end of its own."),
        mistake("stops when the last row ends", RIGHT.but("done.all()", "done[-1]"), STOP,
            "The loop ended with the last row, and longer rows were cut. Every row has an end of its own."),
        mistake("done only in the step of eos", RIGHT.but(DONE, "done = chosen == eos"), STOP,
            "A row paused for one step after its eos and then wrote on. `done` has to remember: once true, "
            "it stays true."),
        mistake("eos is not kept", RIGHT.without(PADDED).without(DONE).after(CHOICE, f"""
            {DONE}
            {PADDED}
        """), STOP,
            "There is a pad where eos belongs: the row was marked as done before its eos was written. The "
            "result keeps eos."),
        mistake("nothing appended", RIGHT.but(GROWN, GROWN.removeprefix("out = ")), STEPS,
            """Your result holds nothing but bos: no word was ever appended. Joining two tensors makes a new one and
            leaves both as they were. Do you assign the result of the line that appends to a variable?"""),
        mistake("the first position asked", RIGHT.but("logits[:, -1]", "logits[:, 0]"), STEPS,
            """The first word came again and again. The output at position 0 predicts what follows bos; what follows the
            last word, at the *last* position, and only if the model was shown all that is written so far."""),
        mistake("one choice for all rows",
                RIGHT.but(CHOICE, "chosen = logits[:, -1].argmax().expand(len(src)) % logits.shape[-1]"), GREEDY,
            """All rows got one and the same token: the largest logit of the whole batch was looked for. Each row
            chooses for itself, over the vocabulary, the last axis."""),
        mistake("the first row's choice for all", RIGHT.but(CHOICE, "chosen = logits[0, -1].argmax().expand(len(src))"),
                GREEDY,
            "All rows got the words of row 0. Each source has its own answer."),
        mistake("places in a flattened table", RIGHT.but(CHOICE, "chosen = logits.flatten(1).argmax(dim=-1)"), GREEDY,
            """Your numbers are beyond the vocabulary, or repeat: the largest was looked for among all positions at
            once, and its index counted through all of them. Look only at the last position."""),
        mistake("over the batch", RIGHT.but(CHOICE, "chosen = logits[:, -1].argmax(dim=0)[:len(src)]"), GREEDY,
            "The largest was looked for over axis 0, the sentences. Which *token* is likeliest runs along "
            "the last axis."),
        mistake("the value instead of its place", RIGHT.but(CHOICE, "chosen = logits[:, -1].max(dim=-1).values.long()"),
                GREEDY,
            "You wrote down how large the largest logit is, and not which token has it. The token's id is its "
            "*index*."),
        mistake("the least likely token", RIGHT.but("argmax", "argmin"), GREEDY,
            "The smallest logit was chosen, the least likely token."),
        mistake("the second likeliest", RIGHT.but("argmax(dim=-1)", "topk(2, dim=-1).indices[:, 1]"), GREEDY,
            "The second likeliest token was chosen. Greedy takes the first."),
        mistake("only the last token shown", RIGHT.but("model(src, out)", "model(src, out[:, -1:])"), STEPS,
            "The model was shown only the last token. It keeps no memory of the earlier ones: show it all that has "
            "been written so far."),
        mistake("the newest word shown first", RIGHT.but("[out, chosen[:, None]]", "[chosen[:, None], out]"), STEPS,
            "New words were put in front. A sentence grows at its end."),
        mistake("the position before the last", RIGHT.but("logits[:, -1]", "logits[:, -2 if step else -1]"), STEPS,
            """You read the position before the last, which predicts what follows the last word but one: the word that
            is there already. The *last* position predicts what comes next."""),
        mistake("pads shown as words",
                RIGHT.but("model(src, out)", "model(src, F.pad(out, (0, max_len - step), value=pad))"), STEPS,
            """The model was shown the pads that fill up your table, and the last position is one of them. Show it only
            what has been written so far."""),
        mistake("bos after the end", RIGHT.but("masked_fill(done, pad)", "masked_fill(done, bos)"), STOP,
            "Rows that have ended are filled up with bos. Pads belong there, or more eos."),
        mistake("starts from eos", RIGHT.but(STARTS, "out = torch.full((src.shape[0], 1), eos)"), STEPS,
            "Your sentences begin with eos. The model was trained to begin after bos."),
        mistake("starts from pad", RIGHT.but(STARTS, "out = torch.full((src.shape[0], 1), pad)"), STEPS,
            "Your sentences begin with a pad. The model was trained to begin after bos."),
        mistake("bos cut off", RIGHT.but("return out", "return out[:, 1:]"), STEPS,
            "bos is missing in front. The result begins with it, here as in training."),
        mistake("bos and eos written as 1 and 2", RIGHT.but("1), bos)", "1), 1)").but("== eos", "== 2"), STOP,
            "The ids 1 and 2 are written into your code. Other vocabularies have other ids: bos and eos are "
            "arguments."),
        mistake("bos, eos and pad written as 1, 2 and 0",
                RIGHT.but("1), bos)", "1), 1)").but("== eos", "== 2").but("(done, pad)", "(done, 0)"), STOP,
            """The ids 1, 2 and 0 are written into your code. Other vocabularies have other ids: bos, eos and pad are
            arguments."""),
        families.ID_WRITTEN_IN(RIGHT.but("1), bos)", "1), 1)"), STEPS, id="1", token="bos"),
        families.ID_WRITTEN_IN(RIGHT.but("== eos", "== 2"), STOP, id="2", token="eos"),
        mistake("pad written as 0", RIGHT.but("masked_fill(done, pad)", "masked_fill(done, 0)"), STOP,
            """The id 0 is written into your code where pad belongs. Other vocabularies have other ids: there, your
            finished rows went on with a word."""),
        mistake("one token too few", RIGHT.but("range(max_len)", "range(max_len - 1)"), STOP,
            "Rows are cut one token early. max_len counts the tokens *after* bos, so there are max_len steps."),
        mistake("one token too many", RIGHT.but("range(max_len)", "range(max_len + 1)"), STOP,
            "max_len + 1 tokens came after bos. max_len counts the tokens after bos, so there are max_len steps."),
        mistake("no end but eos", RIGHT.but("for step in range(max_len):", "while True:"), STOP,
            """Your loop has no end but eos. A model may never produce it: it was given more tokens than max_len allows,
            and raised an error. Count the steps."""),
        mistake("no end at all", RIGHT.but("for step in range(max_len):", "while True:").but(STOPS, "if False:"), STOP,
            """Your loop never ends: the model was given more tokens than max_len allows, and raised an error. A loop
            ends when every row has its eos, or after max_len steps."""),
        mistake("dropout left on", RIGHT.without("model.eval()").without(MODE), GREEDY,
            """The model came in training mode, and you called it as it was: dropout then leaves out parts at random,
            and its words change from call to call. Switch to evaluation mode first."""),
        families.LEFT_IN_EVALUATION_MODE(RIGHT.without(MODE), GREEDY),
        families.PUT_IN_TRAINING_MODE(RIGHT.but(MODE, "model.train()"), GREEDY),
        mistake("floats", RIGHT.but("return out", "return out.float()"), STEPS,
            """The dtype of your result is wrong; its values were not compared. Ids are row numbers of a table, so they
            are whole numbers: long (int64). ones() and zeros() without a dtype return floats, and joining ids to
            floats turns the ids into floats, too."""),
        mistake("lists instead of a tensor", RIGHT.but("return out", "return out.tolist()"), STEPS,
            "A list came back. Return one tensor of ids, (B, at most max_len + 1); pads make the "
            "rows equally long."),
        mistake("only the first sentence", RIGHT.but("model.eval()", "model.eval()\n    src = src[:1]"), STEPS,
            "Only one row came back. Every source of the batch has an answer."),
    ),
    correct=(
        correct("a batch at a time", RIGHT),
        correct("no early end", RIGHT.without(STOPS).without("break")),
        correct("eos after eos", RIGHT.but("masked_fill(done, pad)", "masked_fill(done, eos)")),
        correct("one sentence at a time", """
            def greedy_decode(model, src, max_len, bos, eos, pad):
                mode = model.training
                model.eval()
                rows = []
                for b in range(len(src)):
                    ids = [bos]
                    while len(ids) <= max_len:
                        logits = model(src[b:b + 1], torch.tensor([ids]))
                        ids.append(int(logits[0, -1].argmax()))
                        if ids[-1] == eos:
                            break
                    rows.append(ids)
                model.train(mode)
                width = max(len(ids) for ids in rows)
                return torch.tensor([ids + [pad] * (width - len(ids)) for ids in rows])
        """),
        correct("a table filled in", """
            def greedy_decode(model, src, max_len, bos, eos, pad):
                was = model.training
                model.eval()
                B = src.size(0)
                table = torch.full((B, max_len + 1), pad, dtype=torch.long)
                table[:, 0] = bos
                open_rows = torch.arange(B)
                for step in range(1, max_len + 1):
                    if len(open_rows) == 0:
                        break
                    with torch.no_grad():
                        logits = model(src[open_rows], table[open_rows, :step])
                    best = logits[:, -1, :].max(-1).indices
                    table[open_rows, step] = best
                    open_rows = open_rows[best != eos]
                model.train(was)
                return table
        """),
        correct("recursive, without pads of the source", """
            def greedy_decode(model, src, max_len, bos, eos, pad):
                def grow(row, ids):
                    if len(ids) == max_len + 1 or (len(ids) > 1 and ids[-1] == eos):
                        return ids + [pad] * (max_len + 1 - len(ids))
                    scores = model(row, torch.tensor([ids]))[0, -1].tolist()
                    return grow(row, ids + [scores.index(max(scores))])

                mode = model.training
                model.eval()
                try:
                    return torch.tensor([grow(row[row != pad][None], [bos]) for row in src])
                finally:
                    model.train(mode)
        """),
    ),
    hints=(
        "what is the model shown in step 3? And which of its rows is still being written?",
        "out (B, t), logits (B, t, V); only (B, V) at the last position counts; its largest along V gives (B,), a new "
        "column of out.",
        "begin with a column of bos; max_len times: choose at the last position, put pads into rows that have ended, "
        "append the column, "
        "note which rows wrote eos, and stop when all have.",
    ),
)  # fmt: skip
