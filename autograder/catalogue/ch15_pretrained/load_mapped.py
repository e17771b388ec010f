"""15.4: weights under foreign names, fused and transposed, in a different dtype."""

from typing import Any

import torch
from torch import Tensor, nn

from autograder.catalogue.ch15_pretrained.foreign_file import (
    FUSED_BIASES,
    FUSED_PARTS,
    LOADED,
    NORMS,
    REFUSED,
    SIZES,
    among,
    as_it_was,
    damaged,
    files_dtype,
    foreign,
    other_weights,
    the_same,
    weights,
    what_got_through,
    what_is_held,
)  # fmt: skip
from autograder.catalogue.ch15_pretrained.shared import sections
from autograder.catalogue.exercise import Case, Exercise
from autograder.catalogue.families import Family, in_place
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.normal_forms import InWords
from autograder.catalogue.probes import PROMISED, UNTOUCHED, hidden, second_call, visible
from autograder.inside.wire import DTYPES

MAP, FUSED, STRICT = sections("map fused strict")


def load_mapped(sd: dict[str, Tensor], model: nn.Module) -> None:
    """Copy the weights of another library's file into a SmallEncoder. Raises ValueError for one that does not fit."""
    ours: dict[str, Tensor] = {}
    for name, value in sd.items():
        if not name.startswith("head.") and not name.endswith(".attn.mask"):
            ours |= _translated(name, value)
    model.load_state_dict(ours)  # strict: what is missing or too much is refused


BY_NAME = {"ln_1": "norm1", "ln_2": "norm2", "attn.out": "output", "mlp.up": "wide", "mlp.down": "narrow"}
KINDS = {"scale": "weight", "shift": "bias"}
OUTSIDE = {"embed": "words", "positions": "places", "ln_last": "norm"}


def _translated(name: str, value: Tensor) -> dict[str, Tensor]:
    """Our names and tensors of one entry."""
    part, _, kind = name.removeprefix("encoder.").rpartition(".")
    if not part.startswith("block."):
        return {f"{OUTSIDE.get(part, part)}.{KINDS.get(kind, kind)}": value}
    _, number, part = part.split(".", 2)
    transposed = value.mT if value.ndim == 2 else value  # (outputs, inputs)
    if part == "attn.kqv":
        return {f"layers.{number}.{ours}.{kind}": third for ours,
                third in zip(("key", "query", "value"), transposed.chunk(3), strict=True)}
    return {f"layers.{number}.{BY_NAME.get(part, part)}.{KINDS.get(kind, kind)}": transposed}


def held(case: Case, result: Any) -> Any:
    """What `what_is_held` finds, after the first parameter with a wrong value, in words."""
    found = what_is_held(case, result)
    if not isinstance(found, dict) or not isinstance(found.get("weights"), dict):
        return found
    return {"the first that is wrong": _in_words(case, found["weights"]), **found}


def _in_words(case: Case, weights: dict[str, Tensor]) -> str:
    sd, given = case.arguments
    dtype = DTYPES[given["dtype"]]
    right: dict[str, Tensor] = {}
    for theirs, value in sd.items():
        if not theirs.startswith("head.") and not theirs.endswith(".attn.mask"):
            right |= _translated(theirs, value.to(dtype))
    for name, wanted in right.items():
        got = weights.get(name)
        if not isinstance(got, Tensor) or got.shape != wanted.shape:
            return InWords(f"the model has no parameter {name} of shape {tuple(wanted.shape)} any more")
        if got.dtype != dtype:
            return InWords(f"{name} has dtype {str(got.dtype)[6:]} now, where the model's is {given['dtype']}")
        if not _equal(got, wanted):
            return InWords(_what_it_holds(name, got, right, given["start"]))
    return "as expected"


def _what_it_holds(name: str, got: Tensor, right: dict[str, Tensor], start: float) -> str:
    """What a wrong parameter holds: what it held before, the right values transposed, another parameter's, or other
    values, of which the one that is farthest off is named."""
    wanted = right[name]
    if bool((got == start).all()):
        return f"{name} was not written: it still holds what it held before"
    if wanted.ndim == 2 and got.mT.shape == wanted.shape and _equal(got.mT, wanted):
        return f"{name} holds the transpose of what is expected"
    for other, values in right.items():
        if values.shape == got.shape and _equal(got, values):
            return f"{name} holds what is expected in {other}"
    at = torch.unravel_index((got - wanted).abs().argmax(), wanted.shape)
    place = tuple(int(each) for each in at)
    return f"{name} holds {got[at]:.6g} at index {place}, where {wanted[at]:.6g} is expected"


def _equal(got: Tensor, wanted: Tensor) -> bool:
    return torch.allclose(got, wanted, rtol=0.0 if wanted.dtype == torch.float64 else 1e-4, atol=1e-5)


RIGHT = answer("""
    def load_mapped(sd, model):
        kinds = {"scale": "weight", "shift": "bias"}
        table = {"encoder.embed.weight": "words.weight", "encoder.positions.weight": "places.weight"}
        norms = {"encoder.ln_last": "norm"}
        for n in range(len(model.layers)):
            block, layer = f"encoder.block.{n}.", f"layers.{n}."
            norms |= {block + "ln_1": layer + "norm1", block + "ln_2": layer + "norm2"}
            for theirs, name in (("attn.out", "output"), ("mlp.up", "wide"), ("mlp.down", "narrow")):
                table[block + theirs + ".weight"] = layer + name + ".weight"
                table[block + theirs + ".bias"] = layer + name + ".bias"
        for theirs, name in norms.items():
            for kind in kinds:
                table[f"{theirs}.{kind}"] = f"{name}.{kinds[kind]}"
        ours = {}
        for name, value in sd.items():
            if name.startswith("head.") or name.endswith(".attn.mask"):
                continue
            transposed = ".attn." in name or ".mlp." in name
            if transposed and name.endswith(".weight"):
                value = value.t()
            if ".attn.kqv." in name:
                layer = "layers." + name.split(".")[2]
                kind = name.split(".")[-1]
                keys, queries, values = value.chunk(3, dim=0)
                ours[f"{layer}.key.{kind}"] = keys
                ours[f"{layer}.query.{kind}"] = queries
                ours[f"{layer}.value.{kind}"] = values
            elif name in table:
                ours[table[name]] = value
            else:
                raise ValueError(f"sd: {name} is in no line of the table")
        model.load_state_dict(ours, strict=True)
""")
TURN, LOAD = "value = value.t()", "model.load_state_dict(ours, strict=True)"
TURNED = 'transposed = ".attn." in name or ".mlp." in name'
THIRDS = "keys, queries, values = value.chunk(3, dim=0)"
UNKNOWN = 'raise ValueError(f"sd: {name} is in no line of the table")'
SKIP = 'if name.startswith("head.") or name.endswith(".attn.mask"):'
BY_HAND = """
    parameters = dict(model.named_parameters())
    if set(parameters) != set(ours):
        raise ValueError("sd: other entries than expected")
    for name, parameter in parameters.items():
        if parameter.shape != ours[name].shape:
            raise ValueError(f"sd: {name} has another shape")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(ours[name])
"""
HAND = RIGHT.but(LOAD, BY_HAND)
COPIED = "parameter.copy_(ours[name])"
LAX = RIGHT.but("strict=True", "strict=False")

# fmt: off
NOT_TURNED = Family("not turned", """The matrices of the file have inputs along their rows, and nn.Linear has outputs
    there: each must be transposed exactly once. If it is not, or twice, torch stops where inputs and outputs differ in
    number; a square one goes in as it is, and no error is raised.""")
ONE_DIGIT = Family("one digit for the layer", """Only one digit of the layer's number was read, so layer 10 was taken
    for layer 1, or its name was not found. Read up to the next dot, however many digits that takes.""")
HEAD_REFUSED = Family("the head refused", """The head's entries were refused or loaded. The table says what happens to
    them: they are left out.""")
MASK_LOOKED_UP = Family("masks looked up", """The file has an entry `attn.mask` in each block, and your code looked it
    up among the weights. It is not a weight: the last lines of the table say what is left out.""")
# fmt: on

EXERCISE = Exercise(
    id="load-mapped", number="15.4", difficulty=3, minutes=45, visible_points=1, hidden_points=4,
    reference=load_mapped, normalize=held, harness="loading", section=MAP, quotes=other_weights, seconds=30.0,
    probes=(
        visible("two layers, in float16", the_same()),
        visible("an entry that is in no line",
                lambda g: damaged(torch.Generator().manual_seed(15), put=(("encoder.kinds.weight", (2, 4)),))),
        visible("an entry is missing",
                lambda g: damaged(torch.Generator().manual_seed(15), ("encoder.block.1.ln_2.shift",))),
        hidden("other sizes", weights, (13, 6, 10, 3, 7), announced_by="any sizes"),
        hidden("one layer, width 1", weights, (1, 1, 1, 1, 1), announced_by="any sizes"),
        hidden("eleven layers, entries by name", weights, (3, 2, 3, 11, 2), order="by name",
               announced_by="may be in any order"),
        hidden("entries in another order", weights, SIZES, order="backwards", announced_by="may be in any order"),
        hidden("bfloat16", weights, SIZES, torch.bfloat16, announced_by="floats of any dtype"),
        hidden("float32 into float32", weights, SIZES, torch.float32, announced_by="floats of any dtype"),
        hidden("float64 into float64, large numbers", weights, SIZES, torch.float64, "float64", 1e8, rtol=0.0,
               announced_by="floats of any dtype"),
        hidden("without masks and head", weights, (9, 3, 4, 2, 6), whole=False,
               announced_by="may be present or missing"),
        hidden("the last norm is missing", damaged, ("encoder.ln_last.scale",),
               announced_by="an entry that is missing"),
        hidden("a fused bias is missing", damaged, ("encoder.block.0.attn.kqv.bias",),
               announced_by="an entry that is missing"),
        hidden("a layer is missing", damaged, tuple(
                   name for name in foreign(torch.Generator(), SIZES, torch.float16) if ".block.1." in name),
                   announced_by="an entry that is missing"),
        hidden("a layer too many", damaged, put=tuple(
                   (name.replace(".1.", ".2."), tuple(value.shape))
                   for name, value in foreign(torch.Generator(), SIZES, torch.float16).items() if ".block.1." in name),
                   announced_by="one that is in no line of the table"),
        hidden("an unknown entry", damaged, put=(("encoder.block.0.attn.extra.weight", (4, 4)),),
               announced_by="one that is in no line of the table"),
        hidden("a name that only begins like the head's", damaged, put=(("header.weight", (2, 4)),),
               announced_by="one that is in no line of the table"),
        hidden("a mask that is none of attention's", damaged, put=(("encoder.block.1.mlp.mask", (2, 4)),),
               announced_by="one that is in no line of the table"),
        hidden("a part beside the encoder", damaged, put=(("decoder.ln_last.scale", (4,)),),
               announced_by="one that is in no line of the table"),
        hidden("a fused matrix that is too wide", damaged, put=(("encoder.block.0.attn.kqv.weight", (4, 16)),),
               announced_by="one whose shape does not fit"),
        hidden("as many numbers in another shape", damaged, put=(("encoder.block.1.mlp.up.weight", (6, 4)),),
               announced_by="one whose shape does not fit"),
        hidden("a row for a whole table", damaged, put=(("encoder.positions.weight", (1, 4)),),
               announced_by="one whose shape does not fit"),
        hidden("one number for a norm", damaged, put=(("encoder.block.0.ln_1.scale", (1,)),),
               announced_by="one whose shape does not fit"),
        second_call(weights, SIZES, checks=UNTOUCHED, announced_by=PROMISED),
    ),
    mistakes=(
        NOT_TURNED(RIGHT.but(TURN, "value = value"), FUSED),
        NOT_TURNED(RIGHT.but(TURN, "value = value").but("dim=0", "dim=-1"),
            FUSED, name="not turned, cut along the columns"),
        mistake("square matrices not turned", RIGHT.but(
                  'if transposed and name.endswith(".weight"):',
                  'if transposed and name.endswith(".weight") and value.shape[0] != value.shape[1]:'), FUSED,
            """The square matrix of attn.out was not transposed. Its shape is right either way, so nothing stops; the
            table says which ones are transposed, not their shape."""),
        mistake("reshaped, not transposed",
                RIGHT.but(TURN, "value = value.reshape(value.shape[1], value.shape[0])"), FUSED,
            """The shapes are right and the values are in a different order: reshape and view read a matrix row by row
            and fill the new rows in the same order. To transpose is to make each row a column."""),
        mistake("everything turned", RIGHT.but(TURNED, "transposed = True"), FUSED,
            "The tables of words and positions were transposed as well. They are not linear layers: row i "
            "belongs to id i, "
            "in the file as here."),
        mistake("queries, keys, values", RIGHT.but("keys, queries, values = value", "queries, keys, values = value"),
                FUSED,
            """Queries and keys are exchanged. No shape can show it, and the model runs, but its scores are transposed:
            each row holds what the column of that number should hold. The file has the keys first."""),
        *(mistake(order, RIGHT.but("keys, queries, values = value", f"{order} = value"), FUSED,
                "The three thirds went to the wrong projections. The file has keys, queries, values, in this order.")
          for order in ("queries, values, keys", "values, keys, queries", "values, queries, keys",
                        "keys, values, queries")),
        mistake("the thirds of the bias in another order", RIGHT.but(THIRDS, f"""
                  {THIRDS}
                  if kind == "bias":
                      queries, keys, values = value.chunk(3)"""), FUSED,
            "The matrices went to the right projections and their biases did not: kqv.bias has the same order, keys, "
            "queries, values."),
        mistake("every third column",
                RIGHT.but(THIRDS, "keys, queries, values = value[0::3], value[1::3], value[2::3]"), FUSED,
            """Every third column was taken, as if keys, queries and values took turns. The table has them one after
            another: D columns of the keys, then D of the queries, then D of the values."""),
        mistake("cut along the inputs", RIGHT.but(THIRDS, """
                  whole = value.t().reshape(3, value.shape[1], -1).transpose(1,
                      2) if value.ndim == 2 else value.view(3, -1)
                  keys, queries, values = whole"""), FUSED,
            """The fused matrix was reshaped into three, row by row, so the columns of keys, queries and values were
            mixed. Split it along the axis of 3D."""),
        mistake("the thirds not turned", RIGHT.but(THIRDS, """
                  keys, queries, values = value.chunk(3, dim=0)
                  if kind == "weight":
                      keys, queries, values = keys.t(), queries.t(), values.t()"""), FUSED,
            """The three projections were not transposed. Each is square, so its shape is right either way and nothing
            stops: it has inputs along its rows in the file, and outputs in nn.Linear."""),
        mistake("up and down exchanged",
                RIGHT.but('("mlp.up", "wide"), ("mlp.down", "narrow")',
                          '("mlp.up", "narrow"), ("mlp.down", "wide")').but(
                  TURNED, 'transposed = ".attn." in name'), MAP,
            """mlp.up and mlp.down were exchanged. Transposed, one has the shape of the other; their biases show it, if
            they differ in length. up widens from D to d_ff."""),
        mistake("the two norms exchanged", RIGHT.but(
                  '"ln_1": layer + "norm1", block + "ln_2": layer + "norm2"',
                  '"ln_2": layer + "norm1", block + "ln_1": layer + "norm2"'), MAP,
            "The two norms of each layer were exchanged. Their shapes are alike; ln_1 comes before the attention, as "
            "norm1 does."),
        mistake("scale and shift exchanged",
                RIGHT.but('"scale": "weight", "shift": "bias"', '"scale": "bias", "shift": "weight"'), MAP,
            "Scale and shift of the norms were exchanged. A norm's weight multiplies: that is the scale. Its bias is "
            "the shift."),
        mistake("the first layer for all",
                RIGHT.but('layer = "layers." + name.split(".")[2]', 'layer = "layers.0"').but(LOAD, """
                  for n in range(1, len(model.layers)):
                      for part in ("key", "query", "value"):
                          for kind in ("weight", "bias"):
                              ours[f"layers.{n}.{part}.{kind}"] = ours[f"layers.0.{part}.{kind}"]
                  model.load_state_dict(ours, strict=True)"""), MAP,
            "All layers have the keys, queries and values of one and the same. Each block of the file belongs to the "
            "layer of its number."),
        mistake("layers counted from 1",
                RIGHT.but('f"encoder.block.{n}.", f"layers.{n}."', 'f"encoder.block.{n}.", f"layers.{n + 1}."'), MAP,
            "The layers were counted from 1 on one side. Both the file and the model count from 0."),
        ONE_DIGIT(RIGHT.but('name.split(".")[2]', "name[14]"), MAP),
        ONE_DIGIT(RIGHT.before(SKIP, """
                  if name.startswith("encoder.block.") and name[15] != ".":
                      raise KeyError(name)"""), MAP, name="one digit for the layer, and the rest not found"),
        # what is not in its table goes on to load_state_dict under its own name, as in a chain of replacements
        mistake("the prefix stripped letter by letter", RIGHT.before(
                  TURNED, 'name = "encoder." + name.lstrip("encoder.")').but(
                  UNKNOWN, 'ours[name.removeprefix("encoder.")] = value'), MAP,
            """The prefix was taken off letter by letter: lstrip("encoder.") removes any of these letters from the
            front, also those of the name that follows, and `embed` lost its e. removeprefix takes off a text."""),
        mistake("the prefix left on", RIGHT.but(
                  LOAD, 'model.load_state_dict({f"encoder.{name}": value for name, value in ours.items()}, '
                        'strict=True)'), MAP,
            "Your names still begin with `encoder.`, and nothing in the model is called so. Take the prefix off."),
        mistake("foreign names, and nobody minds", """
            def load_mapped(sd, model):
                model.load_state_dict(sd, strict=False)
        """, STRICT,
            "Not one weight was loaded: the file's names are not the model's, and strict=False passes over what does "
            "not fit without a word."),
        mistake("what is missing goes by", LAX, STRICT,
            """A file that lacks an entry was taken: that weight keeps what chance gave it when the model was made, and
            the model still answers. strict=False does not make a file fit; it keeps quiet about it. Refuse such a
            file."""),
        mistake("what is in no line goes by", RIGHT.but(UNKNOWN, "continue"), STRICT,
            """An entry that is in no line of the table was passed over. It may be a layer that your model lacks, or a
            part that the file's model needs. Leave out what the table says, and refuse anything else."""),
        mistake("parts beside the encoder go by",
                RIGHT.but('name.startswith("head.")', 'not name.startswith("encoder.")'), STRICT,
            "Whatever does not begin with `encoder.` was left out. The table leaves out only `head.`; refuse "
            "anything else."),
        mistake("the rest of a wide matrix goes by",
                RIGHT.but("value.chunk(3, dim=0)", "value[: 3 * len(model.norm.weight)].chunk(3, dim=0)"), STRICT,
            "A fused matrix with more than 3D columns was cut to size, and the rest thrown away. Compare "
            "its shape first."),
        mistake("shapes that are bent",
                HAND.but("if parameter.shape != ours[name].shape:", "if parameter.numel() != ours[name].numel():").but(
                  COPIED, "parameter.copy_(ours[name].reshape(parameter.shape))"), STRICT,
            "A tensor of a different shape was reshaped to fit: the same number of values, at different positions. "
            "Refuse it."),
        mistake("shapes that broadcast", HAND.but("if parameter.shape != ours[name].shape:", "if False:"), STRICT,
            """A tensor of a different shape was written: copy_ repeats a single row, or a single number, over the whole
            parameter, without an error. Compare the shapes, and refuse what does not fit."""),
        mistake("asserted", HAND.but('raise ValueError("sd: other entries than expected")', "assert False").but(UNKNOWN,
            "assert False"), STRICT,
            "An assertion fails where an error should be raised. Python skips assertions under -O; then a file may "
            "be loaded that does not fit."),
        HEAD_REFUSED(RIGHT.but(SKIP, 'if name.endswith(".attn.mask"):'), MAP),
        HEAD_REFUSED(RIGHT.but(SKIP, 'if name.endswith(".attn.mask"):').but(UNKNOWN, "raise KeyError(name)"), MAP,
                     name="the head looked up"),
        mistake("masks refused", RIGHT.but(SKIP, 'if name.startswith("head."):').but(
                  'if transposed and name.endswith(".weight")',
                  'if transposed and value.is_floating_point() and name.endswith(".weight")'), MAP,
            "The entries `attn.mask` were refused. They are not weights, and the table says what happens to them: they "
            "are left out."),
        MASK_LOOKED_UP(RIGHT.but(SKIP, 'if name.startswith("head."):').but(
                  UNKNOWN, 'raise KeyError(name.split(".", 3)[-1])'), MAP),
        MASK_LOOKED_UP(RIGHT.but(SKIP, 'if name.startswith("head."):').but(UNKNOWN, "raise KeyError(name)"),
            MAP, name="masks looked up by their whole names"),
        mistake("the model made float32", RIGHT.but(LOAD, f"model.float()\n    {LOAD}"), MAP,
            """The model has become float32, whatever it was. It keeps its own dtype: the numbers go into the parameters
            that are there, and become what these are."""),
        mistake("assigned instead of copied", RIGHT.but("strict=True", "strict=True, assign=True"), MAP,
            """The parameters were replaced by the file's tensors, dtype and all. An optimizer that holds the old ones
            would train what the model does not use any more. Copy the numbers into the parameters that are there.""",
            quotes=None),
        mistake("new parameters", HAND.but(COPIED, """
                  home, _, last = name.rpartition(".")
                  setattr(model.get_submodule(home), last,
                      nn.Parameter(ours[name].to(parameter.dtype).contiguous().clone()))"""), MAP,
            """The values are correct, but they are in new parameters. An optimizer that holds the old ones would train
            parameters that the model no longer uses. Copy the values into the existing parameters."""),
        mistake("the model in the file's dtype", HAND.but(COPIED, "parameter.data = ours[name].clone()"), MAP,
            "The model has the dtype of the file now, float16 for one. It keeps its own: what goes in becomes what "
            "the parameter is."),
        mistake("the file's own memory", HAND.but(COPIED, "parameter.data = ours[name].to(parameter.dtype)"), MAP,
            """Where the dtypes agree, the parameters share memory with sd: training the model changes the file's
            tensors too, and a second model that is loaded from them. Copy the values."""),
        mistake("the file's tensors as the model's", HAND.but(COPIED, "parameter.data = ours[name]"), MAP,
            """Parameters of the model have the dtype of the file now. That happens where a tensor of the file is put
            into the model as it is, for example by .data =. The model keeps its own dtype and memory: copy the values
            into its parameters.""", quotes=None, shows=files_dtype),
        mistake("frozen on the way", HAND.but(COPIED, f"{COPIED}\n            parameter.requires_grad_(False)"), MAP,
            "The model's parameters do not learn any more: requires_grad was switched off and stayed so. Leave the "
            "flag as it is."),
        mistake("through float32", RIGHT.but("for name, value in sd.items():", """
                  for name, value in sd.items():
                      value = value.float()"""), MAP,
            "The numbers became float32 on the way, also where file and model are float64: float32 holds seven "
            "digits. Let the parameter decide."),
        mistake("through float16", RIGHT.but("for name, value in sd.items():", """
                  for name, value in sd.items():
                      value = value.half()"""), MAP,
            """The numbers became float16 on the way, whatever the file holds: float16 has three digits, and nothing
            above 65,504. Let the parameter decide."""),
        mistake("names in the file's order", """
            def load_mapped(sd, model):
                values = []
                for name, value in sd.items():
                    if name.startswith("head.") or name.endswith(".mask"):
                        continue
                    if value.dim() == 2 and "block" in name:
                        value = value.t()
                    if "kqv" in name:
                        k, q, v = value.chunk(3)
                        values += [q, k, v]
                    else:
                        values.append(value)
                parameters = list(model.parameters())
                if len(values) != len(parameters):
                    raise ValueError("sd: another number of entries")
                with torch.no_grad():
                    for parameter, value in zip(parameters, values):
                        parameter.copy_(value)
        """, MAP,
            """The entries were taken in the order of the file and the parameters in the order of the model. They only
            go together by their names: the orders differ, and the file's may be any."""),
        in_place("sd", RIGHT.but(SKIP, f"""
                  if name.endswith(".attn.mask"):
                      continue
                  {SKIP}""").but("ours = {}",
                                 "for name in [name for name in sd if name.startswith('head.')]:\n        "
                                 "sd.pop(name)\n    ours = {}"), MAP,
               "pop and del take entries out of the dictionary that the caller still needs."),
        mistake("a copy of the model", RIGHT.but(LOAD, f"""
                  import copy
                  model = copy.deepcopy(model)
                  {LOAD}
                  return model"""), MAP,
            """The model that you were given is unchanged: the weights went into a different one, or nowhere. The check
            ignores what you return; the caller's model has to hold the weights.""", shows=as_it_was),
        mistake("the fused biases in another order", RIGHT.but(THIRDS, f"""
                  {THIRDS}
                  if kind == "bias":
                      values, keys, queries = value.chunk(3)"""), FUSED,
            """Only the biases of keys, queries and values are wrong. kqv.bias has the order of its matrix: D
            numbers of the keys, D of the queries, D of the values.""", shows=among(FUSED_BIASES)),
        mistake("the fused matrix cut otherwise", RIGHT.but(THIRDS, f"""
                  {THIRDS}
                  if kind == "weight":
                      values, keys, queries = value.chunk(3)"""), FUSED,
            """Only keys, queries and values are wrong, all else is right. The fused matrix has D columns of the keys,
            then D of the queries, then D of the values, and each third is transposed: reshape and view would only fill
            the same values into other rows.""", shows=among(FUSED_PARTS)),
        mistake("norms otherwise", RIGHT.but('ours = {}', 'first = "layers.0.norm1."\n    ours = {}').but(LOAD, """
                  ours[first + "weight"], ours[first + "bias"] = ours[first + "bias"], ours[first + "weight"]
                  model.load_state_dict(ours, strict=True)"""), MAP,
            """Only norms are wrong. ln_1 becomes norm1 and ln_2 norm2 of the same layer; the scale is the weight, which
            multiplies, and the shift the bias.""", shows=among(NORMS)),
        mistake("what does not fit goes by", HAND.but("if set(parameters) != set(ours):", "if False:").but(
                  "if parameter.shape != ours[name].shape:", "if False:").but(UNKNOWN, "continue").but(COPIED,
                  "parameter.copy_(ours.get(name, parameter))"), STRICT,
            """A file that does not fit was loaded without an error. Three things make a file unfit. Two of them
            strict=False accepts without an error, so do not use it: an entry that is missing, and one that is in no
            line of the table. The third, an entry of a different shape, copy_ may repeat until it fits. Refuse each,
            and leave out only what the table leaves out.""",
            quotes=what_got_through,
            shows=lambda evidence: evidence.got.get(REFUSED) == LOADED),
    ),
    correct=(
        correct("a table and load_state_dict", RIGHT),
        correct("copied by hand", HAND),
        correct("from the model's side", """
            def load_mapped(sd, model):
                sd = {k: v for k, v in sd.items() if not k.startswith("head.") and not k.endswith("attn.mask")}
                used = set()

                def take(name):
                    used.add(name)
                    return sd[name]

                def copy(parameter, value):
                    if parameter.shape != value.shape:
                        raise ValueError(f"{tuple(value.shape)} for {tuple(parameter.shape)}")
                    parameter.data.copy_(value)

                def norm(ours, theirs):
                    copy(ours.weight, take(theirs + ".scale"))
                    copy(ours.bias, take(theirs + ".shift"))

                def linear(ours, theirs):
                    copy(ours.weight, take(theirs + ".weight").T)
                    copy(ours.bias, take(theirs + ".bias"))

                copy(model.words.weight, take("encoder.embed.weight"))
                copy(model.places.weight, take("encoder.positions.weight"))
                for i, layer in enumerate(model.layers):
                    b = f"encoder.block.{i}"
                    norm(layer.norm1, b + ".ln_1")
                    norm(layer.norm2, b + ".ln_2")
                    linear(layer.output, b + ".attn.out")
                    linear(layer.wide, b + ".mlp.up")
                    linear(layer.narrow, b + ".mlp.down")
                    w, bias = take(b + ".attn.kqv.weight"), take(b + ".attn.kqv.bias")
                    D = w.shape[0]
                    if w.shape[1] != 3 * D: raise ValueError(w.shape)
                    for place, ours in enumerate((layer.key, layer.query, layer.value)):
                        copy(ours.weight, w[:, place * D:(place + 1) * D].T)
                        copy(ours.bias, bias[place * D:(place + 1) * D])
                norm(model.norm, "encoder.ln_last")
                left = set(sd) - used
                if left:
                    raise ValueError(f"not known: {left}")
                return model
        """),
        correct("regular expressions", """
            import re

            RULES = [
                (r"embed\\.weight", r"words.weight"),
                (r"positions\\.weight", r"places.weight"),
                (r"ln_last\\.(scale|shift)", r"norm.\\1"),
                (r"block\\.(\\d+)\\.ln_([12])\\.(scale|shift)", r"layers.\\1.norm\\2.\\3"),
                (r"block\\.(\\d+)\\.attn\\.out\\.(weight|bias)", r"layers.\\1.output.\\2"),
                (r"block\\.(\\d+)\\.mlp\\.up\\.(weight|bias)", r"layers.\\1.wide.\\2"),
                (r"block\\.(\\d+)\\.mlp\\.down\\.(weight|bias)", r"layers.\\1.narrow.\\2"),
                (r"block\\.(\\d+)\\.attn\\.kqv\\.(weight|bias)", r"layers.\\1.FUSED.\\2"),
            ]

            def rename(name):
                for pattern, ours in RULES:
                    if re.fullmatch(pattern, name):
                        return re.sub(pattern, ours, name).replace(".scale", ".weight").replace(".shift", ".bias")
                raise KeyError(name)

            def load_mapped(state, net):
                new = {}
                for old, tensor in state.items():
                    if old[:5] == "head." or old.endswith("attn.mask"):
                        continue
                    target = rename(old.removeprefix("encoder."))
                    if old.endswith("weight") and "block" in old:
                        tensor = tensor.permute(1, 0)
                    if "FUSED" in target:
                        rows = tensor.shape[0] // 3
                        for i, part in enumerate(["key", "query", "value"]):
                            new[target.replace("FUSED", part)] = tensor[i * rows:(i + 1) * rows].clone()
                    else:
                        new[target] = tensor
                return net.load_state_dict(new)
        """),
        correct("two small dictionaries and a set", """
            class Misfit(RuntimeError):
                pass

            def load_mapped(sd, model):
                names = {"ln_1": "norm1", "ln_2": "norm2", "out": "output", "up": "wide", "down": "narrow"}
                kinds = {"scale": "weight", "shift": "bias", "weight": "weight", "bias": "bias"}
                tops = {"embed.weight": "words.weight", "positions.weight": "places.weight",
                        "ln_last.scale": "norm.weight", "ln_last.shift": "norm.bias"}
                own = {n: p for n, p in model.named_parameters()}
                pending = set(own)

                def put(name, value):
                    if name not in pending or own[name].shape != value.shape:
                        raise Misfit(name)
                    own[name].data[...] = value.to(own[name].dtype)
                    pending.discard(name)

                for full in sorted(sd):
                    if full.split(".")[0] == "head":
                        continue
                    words = full.split(".")[1:]
                    if ".".join(words) in tops:
                        put(tops[".".join(words)], sd[full])
                        continue
                    if words[0] != "block":
                        raise Misfit(full)
                    layer, kind, part = words[1], words[-1], words[-2]
                    if words[2:] == ["attn", "mask"]:
                        continue
                    value = sd[full]
                    if kind == "weight":
                        value = torch.einsum("io->oi", value)
                    if part == "kqv":
                        for name, piece in zip(("key", "query", "value"), value.split(len(value) // 3)):
                            put(f"layers.{layer}.{name}.{kind}", piece)
                    else:
                        put(f"layers.{layer}.{names[part]}.{kinds[kind]}", value)
                if pending:
                    raise Misfit(f"missing: {pending}")
        """),
    ),
    hints=(
        "which of the file's names have no partner of the same shape in the model, and which have one although they "
        "must be transposed?",
        "the fused `kqv.weight` (D, 3D) is transposed to (3D, D), and its rows are cut into three of (D, D); every "
        "bias (3D,) into three of (D,).",
        "build a new dictionary with the model's names: leave out head and masks; take the prefix off; transpose what "
        "belongs to linear layers; cut kqv into keys, queries, values; anything else unknown is refused. Then load it "
        "strictly.",
    ),
)  # fmt: skip
