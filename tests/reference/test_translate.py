"""Lines become translated lines, in the same order, whatever they are batched with."""

import warnings

import pytest
import torch
from drawn import tiny_config, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel, says

from transformer_ref.model.transformer import Transformer
from transformer_ref.special_tokens import EOS, PAD
from transformer_ref.text.tokenizer import SubwordTokenizer, WordTokenizer
from transformer_ref.translate import Translator

TOKENIZER = WordTokenizer.build(["uno due tre quattro."])
LONGEST = 17  # tiny_config's max_length
words = st.sampled_from(["uno", "due", "tre", "x", "quattro."])
lines_of_words = st.lists(st.lists(words, max_size=6).map(" ".join), max_size=7)


def backwards():
    """Return a translator that says each line backwards."""
    config = tiny_config(source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size)
    script = says(lambda source: [*source[-2::-1], EOS], TOKENIZER.size, PAD)
    return Translator(ScriptedModel(script, config), TOKENIZER, TOKENIZER)


def neural():
    model = tiny_model(3, source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size)
    return Translator(model, TOKENIZER, TOKENIZER)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_translations_come_back_in_the_order_of_the_lines(beam, batch_size):
    lines = ["uno due tre", "tre", "", "due due uno", "  ", "uno"]
    translated = backwards().translate(lines, beam_size=beam, batch_size=batch_size)
    assert translated == ["tre due uno", "tre", "", "uno due due", "", "uno"]


@given(lines_of_words, st.integers(1, 4), st.integers(1, 3))
def test_a_line_is_translated_alike_whatever_stands_beside_it(lines, batch_size, beam):
    translator = neural()
    alone = [translator.translate([line], beam_size=beam)[0] for line in lines]
    assert translator.translate(lines, beam_size=beam, batch_size=batch_size) == alone


@pytest.mark.parametrize("beam", [1, 2])
def test_characters_never_seen_before_survive_a_model_that_repeats_its_source(beam):
    tokenizer = SubwordTokenizer.learn(["uno due tre"], 300)
    config = tiny_config(source_vocabulary=tokenizer.size, target_vocabulary=tokenizer.size, max_length=64)
    model = ScriptedModel(says(lambda source: source, tokenizer.size, PAD), config)
    lines = ["uno 窓 due", "🙂", "“Ça” va , œuf ?"]
    assert Translator(model, tokenizer, tokenizer).translate(lines, beam_size=beam) == lines


def test_where_words_are_tokens_a_character_never_seen_is_lost_and_nothing_else():
    assert backwards().translate(["uno 窓 due", "窓", "tre"], beam_size=1) == ["due uno", "", "tre"]


def test_an_empty_line_is_never_shown_to_the_model():
    translator = backwards()
    assert translator.translate(["", " \t"]) == ["", ""]
    assert translator.model.rows_decoded == 0


def test_no_line_gives_no_translation():
    assert neural().translate([]) == []


def test_a_line_too_long_is_cut_with_a_warning_that_says_so():
    line = " ".join(["uno"] * LONGEST)
    with pytest.warns(
        UserWarning, match="source: expected at most 16 tokens, got 17 in line 3; the rest is cut off"
    ) as seen:
        translated = backwards().translate([line, "due"], beam_size=1, first_line=3)
    assert translated == [" ".join(["uno"] * (LONGEST - 1)), "due"]
    assert [each.filename for each in seen] == [__file__]  # the line of the caller, not one of the package


def test_a_line_that_just_fits_is_not_cut():
    line = " ".join(["uno"] * (LONGEST - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert backwards().translate([line], beam_size=1) == [line]


def test_a_model_that_never_ends_is_stopped_at_its_last_position():
    config = tiny_config(source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size)
    (uno,) = TOKENIZER.encode("uno")
    model = ScriptedModel(lambda source, target: [float(id == uno) for id in range(TOKENIZER.size)], config)
    assert Translator(model, TOKENIZER, TOKENIZER).translate(["due"], beam_size=1) == [" ".join(["uno"] * LONGEST)]


@pytest.mark.parametrize("token", ["uno", "o\uffed", "."])
def test_the_attention_of_a_translation_has_the_tokens_that_the_model_generated(token):
    model = tiny_model(3, source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size, output_bias=True)
    with torch.no_grad():
        model.output.bias[TOKENIZER.vocabulary.encode([token])] = 1e3  # says this token and nothing else
    seen = Translator(model, TOKENIZER, TOKENIZER).attention("due " * (LONGEST - 1))
    assert seen.target == ["<bos>", *[token] * (LONGEST - 1)] and seen.cross.shape[-2:] == (LONGEST, LONGEST)
    assert Translator(model, TOKENIZER, TOKENIZER).attention("").target == ["<bos>"]


def test_a_target_that_the_model_cannot_read_is_named():
    with pytest.raises(ValueError, match="target: expected at most 16 tokens, got 17"):
        neural().attention("due", "uno " * LONGEST)


def test_nothing_is_translated_with_dropout():
    translator = neural()
    translator.model.train()
    with pytest.raises(ValueError, match="model: expected evaluation mode"):
        translator.translate(["uno"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beam_size": 0}, "beam_size: expected at least 1, got 0"),
        ({"batch_size": 0}, "batch_size: expected at least 1, got 0"),
        ({"batch_size": -3}, "batch_size: expected at least 1, got -3"),
        ({"extra_length": -1}, "extra_length: expected at least 0, got -1"),
        ({"length_penalty": float("nan")}, "length_penalty: expected a finite number, got nan"),
        ({"length_penalty": float("inf")}, "length_penalty: expected a finite number, got inf"),
        ({"length_penalty": 1e9}, r"length_penalty: expected a number from 0 to 10, got 1e.09"),
        ({"length_penalty": -1}, "length_penalty: expected a number from 0 to 10, got -1"),
        ({"beams": 4}, "DecodingConfig: expected fields among .*, got .'beams'."),
    ],
)
def test_a_setting_that_does_not_fit_is_named(settings, words):
    with pytest.raises(ValueError, match=words):
        backwards().translate(["uno"], **settings)


def test_one_string_is_no_list_of_lines():
    with pytest.raises(TypeError, match="lines: expected a list of lines, got the str 'uno due'"):
        backwards().translate("uno due")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (b"uno due", "lines: expected a list of lines, got the bytes"),
        (7, "lines: expected a list of lines, got the int '7'"),
        (None, "lines: expected a list of lines, got the NoneType"),
        (["uno", 2], "lines: expected strings, got 2 in place 1"),
        ([["uno"]], r"lines: expected strings, got \['uno'\] in place 0"),
    ],
)
def test_what_is_no_list_of_lines_is_named(lines, words):
    with pytest.raises(TypeError, match=words):
        backwards().translate(lines)


@pytest.mark.parametrize(
    "tokenizer", [TOKENIZER, SubwordTokenizer.learn(["uno due tre"], 300)], ids=["word", "subword"]
)
def test_bytes_that_are_no_text_are_refused_whatever_the_tokenizer(tokenizer):
    config = tiny_config(source_vocabulary=tokenizer.size, target_vocabulary=tokenizer.size)
    model = ScriptedModel(says(lambda source: source, tokenizer.size, PAD), config)
    with pytest.raises(ValueError, match=r"lines: expected text that UTF-8 can hold, got '.udce9' in 'caf"):
        Translator(model, tokenizer, tokenizer).translate(["uno", "caf\udce9"])


@pytest.mark.parametrize("lines", [lambda: (line for line in ("uno due", "tre")), lambda: {"uno due": 1, "tre": 2}])
def test_whatever_gives_lines_one_after_another_is_translated(lines):
    assert backwards().translate(lines(), beam_size=1) == ["due uno", "tre"]


@given(lines_of_words, st.integers(1, 4))
def test_of_the_n_best_the_first_is_the_translation_and_none_scores_higher(lines, beam):
    translator = neural()
    found = translator.n_best(lines, beam, beam_size=beam)
    assert [each[0].text if each else "" for each in found] == translator.translate(lines, beam_size=beam)
    assert all(len(each) == beam * bool(line.strip()) for line, each in zip(lines, found, strict=True))
    assert translator.n_best(lines, 1, beam_size=beam) == [each[:1] for each in found]


@pytest.mark.parametrize("count", [0, -1, 4])
def test_more_translations_than_hypotheses_are_refused(count):
    with pytest.raises(ValueError, match=f"count: expected 1 to 3, the beam, got {count}"):
        neural().n_best(["uno"], count, beam_size=3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_model_whose_weights_are_no_numbers_is_refused_by_their_name(bad):
    model = tiny_model(3, source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size)
    with torch.no_grad():
        model.encoder.layers[1].feed_forward.fc1.bias[3] = bad
    with pytest.raises(
        ValueError, match="expected finite weights, got NaN or infinity in encoder.layers.1.feed_f.*bias"
    ):
        Translator(model, TOKENIZER, TOKENIZER)


def test_a_model_without_weights_is_refused():
    with torch.device("meta"):
        model = Transformer(tiny_config())
    with pytest.raises(ValueError, match="expected finite weights, got none in source_embedding.weight"):
        Translator(model, TOKENIZER, TOKENIZER)


def test_scores_that_are_no_numbers_are_said():
    config = tiny_config(source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size)
    model = ScriptedModel(lambda source, target: [float("nan")] * TOKENIZER.size, config)
    with pytest.raises(ValueError, match="model: expected finite logits, got NaN"):
        Translator(model, TOKENIZER, TOKENIZER).translate(["uno"])


@given(lines_of_words, st.integers(1, 4), st.integers(1, 3), st.integers(0, 3))
def test_the_length_limit_of_a_line_does_not_depend_on_its_batch(lines, batch_size, beam, extra):
    translator = neural()  # untrained: hardly any line ends before its limit
    alone = [translator.n_best([line], 1, beam_size=beam, extra_length=extra)[0] for line in lines]
    together = translator.n_best(lines, 1, beam_size=beam, extra_length=extra, batch_size=batch_size)
    assert [[each.text for each in line] for line in together] == [[each.text for each in line] for line in alone]
    greedy = [translator.translate([line], beam_size=1, extra_length=extra)[0] for line in lines]
    assert translator.translate(lines, beam_size=1, extra_length=extra, batch_size=batch_size) == greedy


def test_a_line_without_an_end_leaves_the_limits_of_the_others():
    (uno,) = TOKENIZER.encode("uno")
    config = tiny_config(source_vocabulary=TOKENIZER.size, target_vocabulary=TOKENIZER.size)
    model = ScriptedModel(lambda source, target: [float(id == uno) for id in range(TOKENIZER.size)], config)
    lines = ["due", "due tre", "due tre due tre"]
    for beam in (1, 2):
        found = Translator(model, TOKENIZER, TOKENIZER).translate(lines, beam_size=beam, extra_length=2)
        assert [len(TOKENIZER.encode(line)) for line in found] == [4, 5, 7]  # the line, eos, and two more


def test_a_translation_is_one_line_whatever_the_model_writes():
    tokenizer = SubwordTokenizer.learn(["uno"], 300)
    config = tiny_config(source_vocabulary=tokenizer.size, target_vocabulary=tokenizer.size, max_length=64)
    lone = [id for id in range(tokenizer.size) if tokenizer.tokens([id])[0] in ("\n", "\r", "\x1e")]
    model = ScriptedModel(says(lambda source: [*source[:-1], *lone, *source], tokenizer.size, PAD), config)
    (found,) = Translator(model, tokenizer, tokenizer).translate(["uno"], beam_size=1)
    assert len(lone) == 3 and len(found.splitlines()) == 1 and found.split() == ["uno", "uno"]
