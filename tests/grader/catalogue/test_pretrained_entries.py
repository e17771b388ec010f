"""The inputs and references of chapter 15's exercises are correct."""

import json

import pytest
import torch

from autograder import catalogue
from autograder.catalogue.ch15_pretrained import load_mapped, mlm_mask
from autograder.catalogue.exercise import Case, Remark
from autograder.diagnosis.explain import judge_and_explain
from autograder.diagnosis.known_mistakes import namespace_of
from autograder.feedback.report import as_text
from autograder.inside.fixtures import encoder
from autograder.judging.judge import draw_key
from autograder.judging.observe import LocalEndpoint
from autograder.prepare.sample_class import ROOT
from transformer_ref.beyond import small_encoder

KEY = draw_key(b"secret", "assignment", "exercise", ["submission"])


def verdict_on(exercise_id, source):
    return judge_and_explain(
        catalogue.find(exercise_id), LocalEndpoint(namespace_of(catalogue.known_answers.answer(source))), KEY
    )


def test_the_notebook_shows_the_encoder_that_the_probes_hand_over():
    path = ROOT / "exercises" / "15_pretrained" / "pretrained.ipynb"
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    shown = cells["pretrained-small-encoder"]
    own = open(small_encoder.__file__, encoding="utf-8").read()
    assert own.endswith(shown + "\n") and shown.startswith("class SmallLayer")


def saved_by_the_other_program(model):
    """The foreign file of a model, written line by line from the notebook's table."""
    sd = {"encoder.embed.weight": model.words.weight, "encoder.positions.weight": model.places.weight}
    for n, layer in enumerate(model.layers):
        block, fused = f"encoder.block.{n}.", (layer.key, layer.query, layer.value)
        sd[block + "attn.kqv.weight"] = torch.cat([linear.weight.T for linear in fused], dim=1)
        sd[block + "attn.kqv.bias"] = torch.cat([linear.bias for linear in fused])
        for name, linear in (("attn.out", layer.output), ("mlp.up", layer.wide), ("mlp.down", layer.narrow)):
            sd |= {block + name + ".weight": linear.weight.T, block + name + ".bias": linear.bias}
        for name, norm in (("ln_1", layer.norm1), ("ln_2", layer.norm2)):
            sd |= {block + name + ".scale": norm.weight, block + name + ".shift": norm.bias}
    sd |= {"encoder.ln_last.scale": model.norm.weight, "encoder.ln_last.shift": model.norm.bias}
    return {name: value.detach() for name, value in sd.items()}


def test_what_the_other_program_saved_says_the_same_here():
    sizes = (11, 4, 6, 2, 5)
    theirs, ours = small_encoder.SmallEncoder(*sizes), small_encoder.SmallEncoder(*sizes)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(parameter.numel()))
    load_mapped.load_mapped(saved_by_the_other_program(theirs), ours)
    ids = torch.randint(11, (3, 5), generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(ours(ids), theirs(ids))


def test_the_files_that_are_drawn_have_the_tables_names_and_shapes():
    sizes = (11, 4, 6, 2, 5)
    drawn = load_mapped.foreign(torch.Generator().manual_seed(1), sizes, torch.float32)
    wanted = saved_by_the_other_program(small_encoder.SmallEncoder(*sizes))
    left_out = {name for name in drawn if name.startswith("head.") or name.endswith(".attn.mask")}
    assert len(left_out) == 4 and drawn.keys() - left_out == wanted.keys()
    assert {name: drawn[name].shape for name in wanted} == {name: value.shape for name, value in wanted.items()}


def test_keys_taken_for_queries_change_what_the_model_says_and_no_shape():
    sizes = (11, 4, 6, 2, 5)
    sd = load_mapped.foreign(torch.Generator().manual_seed(1), sizes, torch.float32)
    right, exchanged = small_encoder.SmallEncoder(*sizes), small_encoder.SmallEncoder(*sizes)
    load_mapped.load_mapped(sd, right)
    load_mapped.load_mapped(sd, exchanged)
    for layer in exchanged.layers:
        layer.key, layer.query = layer.query, layer.key
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    assert {n: p.shape for n, p in right.named_parameters()} == {n: p.shape for n, p in exchanged.named_parameters()}
    assert float((right(ids) - exchanged(ids)).detach().abs().max()) > 0.05


GIVEN = {"layers": 2, "seed": 3, "training": True, "frozen": [], "stale": 0.0}


def frozen_by(answer, names, **given):
    return encoder.Freezing().around(answer)(GIVEN | given, names)


def test_the_stage_tells_an_untouched_model_from_a_frozen_one():
    untouched = frozen_by(lambda model, names: None, ["head"])
    assert len(untouched["what learns"]) == len(untouched["moved by a step"]) == 40
    right = frozen_by(catalogue.find("freeze-except").reference["freeze_except"], ["head"])
    assert right["what learns"] == right["moved by a step"] == ["head.weight", "head.bias"]


def test_what_learns_moves_whatever_the_weights():
    reference = catalogue.find("freeze-except").reference["freeze_except"]
    for seed in range(20):
        for layers, names in ((1, ["encoder", "head", "head_norm"]), (0, ["0", "2", "9", "factor"])):
            seen = frozen_by(reference, names, layers=layers, seed=seed)
            assert seen["moved by a step"] == seen["what learns"] and seen["what learns"]


@pytest.mark.parametrize(("stale", "moved"), [(0.0, 2), (1.0, 40)])
def test_an_old_gradient_moves_what_has_no_requires_grad(stale, moved):
    def flags_alone(model, names):
        for name, parameter in model.named_parameters():
            parameter.requires_grad = name.startswith("head.")

    assert len(frozen_by(flags_alone, ["head"], stale=stale)["moved by a step"]) == moved


def shares(answer, p=0.5):
    case = mlm_mask.inputs(torch.Generator().manual_seed(5), p)
    return mlm_mask.what_happened(case, answer(*case.arguments))


def test_what_the_paper_says_is_what_the_shares_say():
    seen = shares(mlm_mask.mlm_mask)
    wanted = {mlm_mask.CHOSEN: 0.5, mlm_mask.COVERED: 0.8, mlm_mask.OTHER: 0.1, mlm_mask.STAYED: 0.1}
    assert {what: seen[what] for what in wanted} == pytest.approx(wanted, abs=0.02)


def test_chance_alone_never_looks_like_a_draw_that_is_shared():
    for seed in range(60):
        for sizes in ((400, 50), (20_000, 1), (1, 20_000)):
            case = mlm_mask.inputs(torch.Generator().manual_seed(seed), 0.15 if seed % 2 else 0.5, *sizes)
            seen = mlm_mask.what_happened(case, mlm_mask.mlm_mask(*case.arguments))
            assert not (seen[mlm_mask.BY_SENTENCE] or seen[mlm_mask.BY_PLACE] or seen[mlm_mask.FATES]), (seed, sizes)
            assert not seen[mlm_mask.FIXED], (seed, sizes)
            assert seen[mlm_mask.WORDS] == 0 and seen[mlm_mask.BEYOND] == []


def test_a_generator_that_was_seeded_anew_is_told_of():
    seeded = """
        def mlm_mask(ids, p, g, mask_id, V, specials):
            g.manual_seed(1)
            chosen = (torch.rand(ids.shape, generator=g) < p)
            for special in specials:
                chosen &= ids != special
            fate = torch.rand(ids.shape, generator=g)
            inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)
            inputs = torch.where(chosen & (fate >= 0.9), torch.randint(V, ids.shape, generator=g), inputs)
            return inputs, torch.where(chosen, ids, -100)
    """
    report = " ".join(as_text(verdict_on("mlm-mask", seeded)).split())
    assert "was seeded" in report


def test_a_blank_that_raises_refuses_no_file():
    verdict = verdict_on("load-mapped", "def load_mapped(sd, model):\n    raise NotImplementedError\n")
    assert verdict.points == 0


def test_an_answer_that_refuses_every_file_earns_nothing():
    assert verdict_on("load-mapped", "def load_mapped(sd, model):\n    raise ValueError\n").points == 0


def test_a_report_on_a_loader_that_stops_does_not_print_the_file():
    stopping = "def load_mapped(sd, model):\n    model.load_state_dict(sd)\n"
    said = " ".join(as_text(verdict_on("load-mapped", stopping)).split())
    assert "your code stopped with RuntimeError" in said and "tensor(" not in said


def test_names_in_any_order_and_twice_are_the_same_names():
    result = {"what came back": ["b", "a", "b"], "what learns": ["a", "b"], "other mode": [""]}
    read = catalogue.find("freeze-except").normalize(Case((GIVEN, ["a"])), result)
    assert read["what came back"] == ["a", "b"] and read["other mode"] == ["the model itself"]


COUNTED = [probe for probe in catalogue.find("mlm-mask").probes if probe.atol in (mlm_mask.CHANCE, mlm_mask.CLOSE)]


@pytest.mark.parametrize("probe", COUNTED, ids=lambda probe: probe.name)
def test_no_share_is_called_wrong_for_what_chance_does_to_it(probe):
    seen = []
    for seed in range(40):
        case = probe.draw(torch.Generator().manual_seed(seed))
        ids, p, _, *rest = case.arguments  # a visible case is one object, whose generator other tests draw from
        g = torch.Generator().manual_seed(seed)
        seen.append(mlm_mask.what_happened(case, mlm_mask.mlm_mask(ids, p, g, *rest)))
    for share in (mlm_mask.CHOSEN, mlm_mask.COVERED, mlm_mask.STAYED, mlm_mask.OTHER, mlm_mask.TWINS):
        between_two = torch.tensor([each[share] for each in seen]).std() * 2**0.5
        assert 4.5 * between_two < probe.atol, share


MLM = catalogue.find("mlm-mask").correct[0].source


def said_of(exercise_id, source):
    return " ".join(as_text(verdict_on(exercise_id, source)).split())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fate < 0.8", "fate < 0.77"),
        ("chosen = chosen & ~special", "chosen = chosen & ~special & (ids != mask_id)"),
        (
            "torch.rand(ids.shape, generator=g) < p",
            "torch.rand(len(ids), (ids.shape[1] + 1) // 2, generator=g).repeat_interleave(2, 1)[:, :ids.shape[1]] < p",
        ),
    ],
    ids=["77 of 100 become the mask", "a mask in the text is never chosen", "one draw for two neighbors"],
)
def test_small_shifts_of_the_shares_lose_points(old, new):
    assert verdict_on("mlm-mask", MLM.but(old, new)).points < 5


def test_ten_percent_exchanged_by_one_draw_and_by_two_are_distinguished():
    one = said_of("mlm-mask", MLM.but("fate >= 0.9", "fate < 0.1"))
    two = said_of("mlm-mask", MLM.but("(fate >= 0.9)", "(torch.rand(ids.shape, generator=g) < 0.1)"))
    assert "must not overlap" in one and "second, independent draw" in two


def test_words_outside_the_chosen_and_masks_that_are_overwritten_are_named():
    everywhere = said_of("mlm-mask", MLM.but("chosen & (fate >= 0.9)", "(fate >= 0.9)"))
    overwritten = said_of("mlm-mask", MLM.but("(fate >= 0.9)", "(fate < 0.9)"))
    assert "Words that were not chosen were replaced by random ids too" in everywhere
    assert "they overwrite the masks below .8" in overwritten and "fourth argument" not in overwritten


def test_a_fixed_number_of_words_of_each_sentence_is_not_called_independent():
    drawn = "chosen = torch.rand(ids.shape, generator=g) < p"
    fixed = """
        wanted = round(p * ids.shape[1])
        chosen = torch.rand(ids.shape, generator=g).argsort(dim=1).argsort(dim=1) < wanted"""
    said = said_of("mlm-mask", MLM.but(drawn, fixed))
    assert (
        "p = 0.92, 20,000 tokens: the number of chosen words is fixed" in said and "A fixed number was chosen" in said
    )


def test_parameters_in_place_of_names_are_said_in_words():
    freeze = catalogue.find("freeze-except").correct[0].source
    said = said_of("freeze-except", freeze.but("[full for full", "[parameters[full] for full"))
    assert "other things than texts; it should hold full names" in said and "at [" not in said


def test_a_maximum_that_writes_into_h_is_seen_without_gradients():
    pool = catalogue.find("pool").correct[0].source
    failing = [o.probe.name for o in verdict_on("pool", pool.but("h.masked_fill(", "h.masked_fill_(")).outcomes
               if not o.passed]  # fmt: skip
    assert "max of other sizes" in failing and "max, pads anywhere" in failing


def test_a_special_that_is_chosen_is_named():
    said = said_of("mlm-mask", MLM.but("for s in specials:", "for s in specials[1:]:"))
    assert "your code chose or changed 0, and not 1" in said


def test_words_that_stay_without_a_label_are_named_and_a_missing_return_too():
    stays = MLM.before("return inputs, labels", "labels[chosen & (fate >= 0.8) & (inputs == ids)] = -100")
    assert "A chosen word that stays as it is has a label too" in said_of("mlm-mask", stays)
    assert "returned nothing" in said_of("mlm-mask", MLM.without("return inputs, labels"))


def test_a_mean_in_float32_loses_points_and_no_advice_gives_the_code():
    pool = catalogue.find("pool").correct[0].source
    assert verdict_on("pool", pool.but("return total / count", "return (total.float() / count).to(h.dtype)")).points < 5
    assert not any("clamp(" in known.message for known in catalogue.find("pool").mistakes)


def test_a_mask_taken_for_pads_in_both_branches_is_named():
    pool = catalogue.find("pool").correct[0].source
    source = pool.but("h * real", "h * ~real").but("masked_fill(~real, float", "masked_fill(real, float")
    assert "The pads were kept" in said_of("pool", source)


def test_a_name_with_a_dot_at_its_end_is_refused():
    freeze = catalogue.find("freeze-except").correct[0].source
    source = freeze.replace('full.startswith(name + ".")', 'full.startswith(name.rstrip(".") + ".")')
    assert verdict_on("freeze-except", source).points < 5


def test_a_head_that_is_looked_up_and_a_layer_of_two_digits_are_named():
    load = (
        catalogue.find("load-mapped")
        .correct[0]
        .source.but('raise ValueError(f"sd: {name} is in no line of the table")', "raise KeyError(name)")
    )
    head = load.but('if name.startswith("head.") or name.endswith(".attn.mask"):', 'if name.endswith(".attn.mask"):')
    assert "they are left out" in said_of("load-mapped", head)
    digit = load.before(
        'if ".attn.kqv." in name:',
        'if name.startswith("encoder.block.1") and name[15] != ".":\n    raise KeyError(name)',
    )
    assert "Only one digit of the layer's number" in said_of("load-mapped", digit)


@pytest.mark.parametrize("exercise_id", ["mlm-mask", "freeze-except", "load-mapped"])
def test_nothing_that_a_correct_answer_does_is_called_wrong(exercise_id):
    for outcome in verdict_on(exercise_id, catalogue.find(exercise_id).correct[0].source).outcomes:
        assert outcome.passed
        found = outcome.expected.result
        told = [value for value in found.values() if isinstance(value, str)] if isinstance(found, dict) else []
        assert not any(isinstance(value, Remark) for value in told), (outcome.probe.name, told)


@pytest.mark.parametrize(
    ("exercise_id", "old", "new", "told"),
    [
        ("mlm-mask", "chosen = chosen & ~special", "chosen = chosen", "a special has the label"),
        ("mlm-mask", "fate < 0.8", "fate < 0.7", "of the chosen words became the mask, where about 80% are expected"),
        ("mlm-mask", "ids, -100)", "ids.roll(1), -100)", "a label is not the original id of its word"),
        ("freeze-except", "parameter.grad = None", "pass", "the next step of an optimizer still moved"),
        (
            "freeze-except",
            " for full in parameters if chosen(full)]",
            " for full in parameters]",
            "that came back holds",
        ),
        ("load-mapped", "strict=True", "strict=False", "a file that does not fit was loaded without an error"),
        ("load-mapped", "keys, queries, values = value", "values, queries, keys = value", "layers.0.key.weight holds"),
    ],
)
def test_what_came_of_a_call_is_said_in_words(exercise_id, old, new, told):
    report = said_of(exercise_id, catalogue.find(exercise_id).correct[0].source.but(old, new))
    assert told in report and "at key" not in report and "at [" not in report


def test_a_word_that_begins_with_the_letter_of_one_of_the_three_is_refused():
    source = catalogue.find("pool").correct[0].source.but('how == "cls"', 'how.startswith("c")')
    assert not verdict_on("pool", source).passed


def test_a_name_that_is_accepted_is_said_to_raise_no_error():
    freeze = catalogue.find("freeze-except").correct[0].source
    said = said_of("freeze-except", freeze.replace("if not any(", "if False and not any("))
    assert "a name that the model does not have: expected ValueError to be raised, got a result" in said
    assert "a dictionary of" not in said


def test_ids_that_are_never_chosen_are_named():
    left_out = "special = special | (ids == s)"
    endpoint = LocalEndpoint(namespace_of(MLM.but(left_out, "special = ids <= max(specials)")))
    said = as_text(judge_and_explain(catalogue.find("mlm-mask"), endpoint, KEY, disclosed=True))
    said = " ".join(said.split())
    assert "0.0% of the words have a label, where p = 0.5; words with the ids 0, 1, 2 and" in said
    assert "never have one, and specials = [5, 11, 43]" in said


def test_a_new_parameter_is_named_and_a_name_compared_up_to_its_first_dot():
    freeze = catalogue.find("freeze-except").correct[0].source
    exchanged = """
        home, _, last = full.rpartition(".")
        setattr(model.get_submodule(home), last, nn.Parameter(parameter.detach().clone(), False))"""
    said = said_of("freeze-except", freeze.but("parameter.grad = None", exchanged))
    assert "a new parameter has taken the place of encoder.words.weight" in said and "at [" not in said
    up_to_a_dot = freeze.but(
        'return any(full == name or full.startswith(name + ".") for name in names)',
        'return full.split(".")[0] in names',
    )
    assert "up to the first dot, were compared with the names" in said_of("freeze-except", up_to_a_dot)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("queries = queries", "queries = queries.t() if queries.ndim == 2 else queries",
         "layers.0.query.weight holds the transpose of what is expected"),
        ("keys = keys", "keys = queries", "layers.0.key.weight holds what is expected in layers.0.query.weight"),
    ],
    ids=["transposed", "another's"],
)  # fmt: skip
def test_what_a_wrong_parameter_holds_is_said(old, new, told):
    thirds = "keys, queries, values = value.chunk(3, dim=0)"
    load = catalogue.find("load-mapped").correct[0].source
    same = load.after(thirds, "keys = keys\nqueries = queries")
    assert verdict_on("load-mapped", same).passed
    assert told in said_of("load-mapped", same.but(f"{old}\n", f"{new}\n"))


def test_a_parameter_that_is_not_written_is_said_to_hold_what_it_held():
    load = catalogue.find("load-mapped").correct[0].source
    source = load.but("model.load_state_dict(ours, strict=True)", """
        ours.pop("norm.bias")
        model.load_state_dict(ours, strict=False)""")  # fmt: skip
    assert "norm.bias was not written: it still holds what it held before" in said_of("load-mapped", source)


CHAIN = """
    def load_mapped(sd, model):
        new = {}
        for name, tensor in sd.items():
            if name.startswith("head.") or name.endswith(".attn.mask"):
                continue
            name = name.lstrip("encoder.")
            for old, ours in (("block.", "layers."), ("embed.", "words."), ("positions.", "places."),
                              ("ln_last.", "norm."), ("ln_1.", "norm1."), ("ln_2.", "norm2."), ("scale", "weight"),
                              ("shift", "bias"), ("attn.out.", "output."), ("mlp.up.", "wide."),
                              ("mlp.down.", "narrow.")):
                name = name.replace(old, ours)
            tensor = tensor.T if tensor.ndim == 2 and "layers" in name else tensor
            if "attn.kqv." in name:
                for part, third in zip(("key.", "query.", "value."), tensor.chunk(3)):
                    new[name.replace("attn.kqv.", part)] = third
            else:
                new[name] = tensor
        model.load_state_dict(new)
"""


def test_a_prefix_stripped_letter_by_letter_is_found_in_a_chain_of_replacements():
    assert verdict_on("load-mapped", CHAIN.replace("lstrip", "removeprefix")).passed
    assert "The prefix was taken off letter by letter" in said_of("load-mapped", CHAIN)
