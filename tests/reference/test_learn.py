"""The package in a few lines of Python: learn, load, translate, look at the attention."""

import pytest
import torch

from transformer_ref.learn import learn
from transformer_ref.translate import Translator

ENGLISH = [f"{subject} {verb}" for subject in ("we", "you", "they") for verb in ("read", "sleep", "sing", "eat")] * 4
ITALIAN = [f"{dict(we='noi', you='voi', they='loro')[a]} {b}" for a, b in map(str.split, ENGLISH)]
TINY = dict(d_model=24, heads=3, encoder_layers=2, decoder_layers=1, d_ff=32, dropout=0.0)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    return folder, learn(
        ENGLISH,
        ITALIAN,
        folder,
        vocabulary=300,
        model=TINY,
        device="cpu",
        steps=220,
        warmup_steps=20,
        tokens_per_batch=200,
        precision="fp32",
        ema_decay=0.0,
        label_smoothing=0.0,
    )


def test_what_was_learned_from_two_lists_is_translated(learned):
    assert learned[1].translate(ENGLISH[:12], beam_size=1) == ITALIAN[:12]


def test_a_loaded_translator_says_the_same(learned):
    folder, translator = learned
    assert Translator.load(folder).translate(["they sing", "we read"]) == translator.translate(["they sing", "we read"])


def test_the_attention_names_its_tokens_and_each_row_shares_out_one(learned):
    seen = learned[1].attention("they sing")
    assert seen.source[-1] == "<eos>" and "".join(seen.source[:-1]).split() == ["they", "sing"]
    assert seen.target[0] == "<bos>" and "".join(seen.target[1:]).split() == ["loro", "sing"]
    source, target = len(seen.source), len(seen.target)
    assert seen.encoder.shape == (2, 3, source, source)
    assert (seen.decoder.shape, seen.cross.shape) == ((1, 3, target, target), (1, 3, target, source))
    for weights in seen[2:]:
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert seen.decoder.triu(1).eq(0).all()


def test_another_target_is_read_with_its_own_tokens(learned):
    assert "".join(learned[1].attention("they sing", "noi eat").target[1:]).split() == ["noi", "eat"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["one"], ["uno", "due"]), r"targets: expected one for each of 1 sources \(at least two\), got 2"),
        (([], []), r"targets: expected one for each of 0 sources \(at least two\), got 0"),
    ],
)
def test_lists_that_do_not_fit_are_refused_by_name(arguments, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        learn(*arguments, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_setting_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ValueError, match="TrainingConfig: expected fields among .*, got .'step'."):
        learn(["a", "b"], ["c", "d"], tmp_path, step=5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ab", "cd"), "sources: expected a list of lines, got the str 'ab'"),
        ((["a", "b"], "cd"), "targets: expected a list of lines, got the str 'cd'"),
        ((["a", 3], ["c", "d"]), "sources: expected strings, got 3 in place 1"),
        ((["a", "b"], [None, "d"]), "targets: expected strings, got None in place 0"),
    ],
)
def test_what_is_no_list_of_sentences_is_named(arguments, words, tmp_path):
    with pytest.raises(TypeError, match=words):
        learn(*arguments, tmp_path / "none")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"vocabulary": "8000"}, TypeError, "vocabulary: expected int, got '8000'"),
        ({"vocabulary": 100}, ValueError, "vocabulary: expected at least 260"),
        ({"model": {"width": 3}}, ValueError, "ModelConfig: expected fields among"),
        ({"model": {"source_vocabulary": 300}}, ValueError, "model: expected fields that the vocabulary does not"),
        ({"steps": 2.5}, TypeError, "steps: expected int, got 2.5"),
        ({"steps": "5"}, TypeError, "steps: expected int, got '5'"),
        ({"minutes": float("inf")}, ValueError, "minutes: expected a finite number, got inf"),
        ({"weight_decay": float("nan")}, ValueError, "weight_decay: expected a finite number, got nan"),
        ({"learning_rate": float("inf")}, ValueError, "learning_rate: expected a finite number, got inf"),
        ({"schedule": "sine"}, ValueError, "schedule: expected one of cosine, linear, inverse_sqrt, got 'sine'"),
        ({"start": "x", "vocabulary": 300}, ValueError, "start: expected no vocabulary and no field .* got vocabulary"),
        ({"start": "x", "model": {"heads": 3}}, ValueError, "start: expected no vocabulary .* got heads"),
        ({"steps": 2, "minutes": 1}, ValueError, "minutes: expected none together with steps, got 1"),
        ({"languages": "de"}, ValueError, "languages: expected two names, .* got 'de'"),
        ({"languages": ("de",)}, ValueError, "languages: expected two names"),
        ({"start": "no/where"}, FileNotFoundError, "checkpoint: expected the file no/where/model.safetensors"),
    ],
)
def test_a_setting_that_does_not_fit_is_named_before_anything_is_written(settings, error, words, tmp_path):
    with pytest.raises(error, match=words):
        learn(["a", "b"], ["c", "d"], tmp_path / "none", **settings)
    assert not (tmp_path / "none").exists()


SHORT = dict(device="cpu", steps=2, warmup_steps=1, tokens_per_batch=200, precision="fp32", ema_decay=0.0)


def test_generators_of_sentences_are_learned_from_as_lists_are(tmp_path):
    lists = learn(ENGLISH, ITALIAN, tmp_path / "lists", vocabulary=300, model=TINY, **SHORT)
    generators = (iter(ENGLISH), iter(ITALIAN))
    same = learn(*generators, tmp_path / "generators", vocabulary=300, model=TINY, **SHORT)
    assert same.model.output.weight.equal(lists.model.output.weight)


@pytest.mark.parametrize("name", ["a file", "a file/in it"])
def test_a_folder_that_cannot_be_is_said_before_anything_is_learned(name, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_ref.learn.prepare", None)
    (tmp_path / "a file").write_text("")
    with pytest.raises(ValueError, match="output: expected a folder to write into, got .*a file"):
        learn(ENGLISH, ITALIAN, tmp_path / name, vocabulary=300, model=TINY, **SHORT)


def test_a_model_is_written_over_on_request_only(tmp_path):
    first = learn(ENGLISH, ITALIAN, tmp_path, vocabulary=300, model=TINY, **SHORT)
    with pytest.raises(
        ValueError, match=f"output: expected a folder without a model, got {tmp_path} with model.*overwrite=True$"
    ):
        learn(ENGLISH, ITALIAN, tmp_path, vocabulary=300, model=TINY, **SHORT)
    assert Translator.load(tmp_path).model.output.weight.equal(first.model.output.weight)
    (tmp_path / "run.json").write_text("{}")
    learn(ENGLISH, ITALIAN, tmp_path, vocabulary=300, model=TINY, overwrite=True, **{**SHORT, "steps": 3})
    assert not Translator.load(tmp_path).model.output.weight.equal(first.model.output.weight)
    assert not (tmp_path / "run.json").exists()  # it told of the model that is gone


def test_a_training_that_starts_from_a_model_goes_on_where_that_one_was(learned, tmp_path):
    folder, translator = learned
    settings = {**SHORT, "learning_rate": 1e-6, "muon_rate": 0.0, "steps": 1}
    tuned = learn(ENGLISH, ITALIAN, tmp_path, start=folder, model={"dropout": 0.25}, **settings)
    assert (tuned.model.config.d_ff, tuned.model.config.dropout) == (TINY["d_ff"], 0.25)
    assert tuned.source_tokenizer.to_json() == translator.source_tokenizer.to_json()
    before, after = (dict(each.model.named_parameters()) for each in (translator, tuned))
    for name, weight in after.items():
        torch.testing.assert_close(weight, before[name], rtol=0, atol=1e-5)
    assert any(not weight.equal(before[name]) for name, weight in after.items())
    assert tuned.translate(ENGLISH[:12], beam_size=1) == ITALIAN[:12]


def test_the_pairs_for_validation_are_drawn_and_not_the_last_ones(tmp_path, monkeypatch):
    import transformer_ref.learn as module

    seen = []

    def prepare(corpus, train, validation, *rest, **named):
        seen.append((train, validation))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "prepare", prepare)
    numbers = [str(i) for i in range(1_000)]
    for number, seed in enumerate((1, 1, 2)):
        with pytest.raises(KeyboardInterrupt):
            learn(numbers, numbers, tmp_path / str(number), seed=seed)
    for train, validation in seen:
        assert len(validation.source) == 20 and validation.source != numbers[-20:]
        assert sorted([*train.source, *validation.source], key=int) == numbers and train.source == train.target
        assert train.source == sorted(train.source, key=int)
    assert seen[0] == seen[1] != seen[2]


def test_pairs_with_an_empty_side_are_never_all_that_is_validated(tmp_path, monkeypatch):
    import transformer_ref.learn as module

    def prepare(corpus, train, validation, *rest, **named):
        assert len(validation.source) == 1 and validation.target[0].strip() and len(train.source) == 59
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "prepare", prepare)
    sources, targets = [str(i) for i in range(60)], ["\u200b " if i % 2 else str(i) for i in range(60)]
    for seed in range(12):
        with pytest.raises(KeyboardInterrupt):
            learn(sources, targets, tmp_path, seed=seed)
    with pytest.raises(ValueError, match="targets: expected at least two pairs with text on both sides, got 1"):
        learn(["a", "b", ""], ["c", "", "d"], tmp_path)


def test_pairs_with_more_words_than_positions_are_never_all_that_is_validated(tmp_path, monkeypatch):
    import transformer_ref.learn as module

    def prepare(corpus, train, validation, *rest, **named):
        assert len(validation.source) == 1 and len(validation.target[0].split()) == 1 and len(train.source) == 59
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "prepare", prepare)
    sources, targets = [str(i) for i in range(60)], [" ".join([str(i)] * (40 if i % 2 else 1)) for i in range(60)]
    for seed in range(12):
        with pytest.raises(KeyboardInterrupt):
            learn(sources, targets, tmp_path, seed=seed, model=dict(max_length=32))
