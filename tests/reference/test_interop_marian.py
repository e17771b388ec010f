"""A Marian folder becomes our model and gives their logits, and the other way round."""

import json
import os
import stat

import pytest
import torch
from drawn import generator, tiny_config
from safetensors.torch import load_file, save_file
from sentence_piece_file import sentence_piece_model
from torch_oracle import assert_agree

from transformer_ref.decoding.greedy import greedy_decode
from transformer_ref.interop.marian import load_marian, save_marian
from transformer_ref.learn import learn
from transformer_ref.model.transformer import Transformer
from transformer_ref.translate import Translator

transformers = pytest.importorskip("transformers")

SHAPES = {
    "opus": dict(
        d_model=16,
        heads=4,
        encoder_layers=2,
        decoder_layers=3,
        d_ff=40,
        activation_function="swish",
        scale_embedding=True,
    ),
    "narrow": dict(
        d_model=6, heads=3, encoder_layers=1, decoder_layers=1, d_ff=7, activation_function="relu", scale_embedding=True
    ),
    "unscaled": dict(
        d_model=20,
        heads=2,
        encoder_layers=3,
        decoder_layers=1,
        d_ff=12,
        activation_function="gelu",
        scale_embedding=False,
    ),
    "two tables": dict(
        d_model=8,
        heads=2,
        encoder_layers=1,
        decoder_layers=2,
        d_ff=9,
        activation_function="silu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=False,
        decoder_vocab_size=29,
    ),
}
VOCABULARY, PAD, EOS = 31, 28, 0


def marian(seed, d_model, heads, d_ff, **changes):
    """Return a small Marian model with weights, biases and norms all drawn."""
    config = transformers.MarianConfig(
        **{
            "vocab_size": VOCABULARY,
            "pad_token_id": PAD,
            "decoder_start_token_id": PAD,
            "eos_token_id": EOS,
            "max_position_embeddings": 23,
            "d_model": d_model,
            "encoder_attention_heads": heads,
            "decoder_attention_heads": heads,
            "encoder_ffn_dim": d_ff,
            "decoder_ffn_dim": d_ff,
            **changes,
        }
    )
    with torch.random.fork_rng(devices=[]):  # the library draws its first weights from the global random state
        torch.manual_seed(seed)
        model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), ("", model.final_logits_bias)]:
            if "embed_positions" not in name:
                tensor.add_(0.2 * torch.randn(tensor.shape, generator=generator(seed)))
    return model


def example(vocabulary=28):
    source = torch.randint(1, vocabulary, (3, 7), generator=generator(1))
    source[1, 5:] = source[2, 3:] = PAD
    source[:, 0] = EOS
    target = torch.randint(1, vocabulary, (3, 5), generator=generator(2))
    target[:, 0] = PAD
    return source, target


def their_logits(model, source, target):
    with torch.inference_mode():
        return model(input_ids=source, attention_mask=source != PAD, decoder_input_ids=target).logits


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("seed", [3, 4])
def test_a_marian_folder_loaded_here_gives_marian_s_logits(shape, seed, tmp_path):
    theirs = marian(seed, **shape)
    theirs.save_pretrained(tmp_path)
    ours = load_marian(tmp_path)
    source, target = example()
    expected = their_logits(theirs, source, target)
    assert expected.std() > 0.1  # or everything would agree
    assert_agree(ours(source, target), expected)


def test_greedy_decoding_takes_marian_s_words(tmp_path):
    theirs = marian(5, **SHAPES["opus"])
    theirs.final_logits_bias[0, PAD] = -100  # their generation forbids it
    theirs.save_pretrained(tmp_path)
    source = example()[0]
    expected = theirs.generate(
        source, attention_mask=source != PAD, max_new_tokens=9, num_beams=1, do_sample=False, forced_eos_token_id=None
    )
    found = greedy_decode(load_marian(tmp_path), source, 9)
    assert found.tolist() == expected.tolist()


def test_an_older_folder_holds_its_weights_in_a_bin_file(tmp_path):
    theirs = marian(6, **SHAPES["opus"])
    theirs.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    source, target = example()
    assert_agree(load_marian(tmp_path)(source, target), their_logits(theirs, source, target))


@pytest.mark.parametrize("output_bias", [False, True])
def test_a_folder_saved_here_gives_our_logits_in_transformers_and_comes_back(output_bias, tmp_path):
    config = tiny_config(
        source_vocabulary=VOCABULARY,
        target_vocabulary=VOCABULARY,
        layout="concatenated",
        tie_embeddings=True,
        output_bias=output_bias,
        pad=PAD,
        bos=PAD,
        eos=EOS,
    )
    ours = Transformer(config, generator(7)).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator(8)))
    save_marian(ours, tmp_path)
    source, target = example()
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    assert_agree(their_logits(theirs, source, target), ours(source, target))
    assert_agree(load_marian(tmp_path)(source, target), ours(source, target))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("decoder_attention_heads", 2, "decoder_attention_heads: expected 4, got 2"),
        ("decoder_ffn_dim", 8, "decoder_ffn_dim: expected 40, got 8"),
        ("activation_function", "tanh", "activation_function: expected one of relu, gelu, silu, swish, got 'tanh'"),
        ("model_type", "bart", "model_type: expected 'marian', got 'bart'"),
        ("encoder_ffn_dim", 41, "decoder_ffn_dim: expected 41, got 40"),
        ("normalize_before", True, "normalize_before: expected False, the paper's model, got True"),
        ("normalize_embedding", True, "normalize_embedding: expected False, the paper's model, got True"),
        ("add_final_layer_norm", True, "add_final_layer_norm: expected False, the paper's model, got True"),
        (
            "static_position_embeddings",
            False,
            "static_position_embeddings: expected True, the paper's model, got False",
        ),
        ("vocab_size", 30, r"model.shared.weight: expected shape \(30, 16\), got \(31, 16\)"),
    ],
)
def test_a_folder_that_our_model_cannot_hold_is_refused_by_its_field(name, value, message, tmp_path):
    marian(9, **SHAPES["opus"]).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(ValueError, match=message):
        load_marian(tmp_path)


@pytest.mark.parametrize("name", ["d_model", "pad_token_id", "activation_function"])
def test_a_config_that_lacks_a_field_is_refused_by_its_name(name, tmp_path):
    marian(9, **SHAPES["narrow"]).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps({field: value for field, value in json.loads(path.read_text()).items() if field != name})
    )
    with pytest.raises(ValueError, match=f"{name}: expected this field in config.json, got none"):
        load_marian(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tensors: tensors.pop("model.decoder.layers.0.fc1.bias"),
            "layers.0.fc1.bias: expected a weight of this",
        ),
        (
            lambda tensors: tensors.update({"model.encoder.layer_norm.weight": torch.ones(6)}),
            "model.encoder.layer_norm.weight: expected no weight of this name",
        ),
        (lambda tensors: tensors["model.shared.weight"].fill_(float("nan")), "shared.weight: expected finite weights"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_their_name(change, message, tmp_path):
    marian(9, **SHAPES["narrow"]).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=message):
        load_marian(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "config.json"])
def test_a_damaged_file_is_one_sentence_that_names_it(name, tmp_path):
    marian(9, **SHAPES["narrow"]).save_pretrained(tmp_path)
    if name == "pytorch_model.bin":
        (tmp_path / "model.safetensors").unlink()
    (tmp_path / name).write_bytes(b"\x80\x02 damaged")
    with pytest.raises(ValueError, match=f"{name}: expected .*, got {tmp_path / name}") as error:
        load_marian(tmp_path)
    assert "\n" not in str(error.value)


@pytest.fixture
def opus(tmp_path):
    """Return a folder as OPUS-MT's are, and its model, which the library made."""
    sides = [["▁a", "b", "▁", "ab"], ["▁c", "d", "▁", "c"]]
    words = ["</s>", "<unk>", *dict.fromkeys([*sides[0], *sides[1]]), ">>ita<<"]
    words += [f"more{number}" for number in range(PAD - len(words))] + ["<pad>"]
    theirs = marian(3, **{**SHAPES["opus"], "vocab_size": len(words)})
    with torch.no_grad():  # or it would say the same to everybody
        theirs.final_logits_bias.zero_()
        theirs.model.shared.weight.mul_(4)
        for name, parameter in theirs.named_parameters():
            if "fc" in name or ("attn" in name and parameter.dim() == 2):
                parameter.mul_(2)
    theirs.save_pretrained(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({word: id for id, word in enumerate(words)}))
    for name, pieces in zip(("source.spm", "target.spm"), sides, strict=True):
        (tmp_path / name).write_bytes(sentence_piece_model([("<unk>", 0.0), *((piece, -2.0) for piece in pieces)]))
    return tmp_path, theirs


def test_a_whole_folder_translates_as_the_library_s_model_does(opus):
    folder, theirs = opus
    translator = Translator.load(folder)
    lines = ["ab a", ">>ita<< a bb", "b"]
    sources = [translator.source_tokenizer.encode(line) + [EOS] for line in lines]
    longest = max(map(len, sources))
    source = torch.tensor([ids + [PAD] * (longest - len(ids)) for ids in sources])
    expected = theirs.generate(
        source,
        attention_mask=source != PAD,
        max_new_tokens=23,
        num_beams=1,
        do_sample=False,
        forced_eos_token_id=None,
        bad_words_ids=[[PAD]],
    )
    decode = translator.target_tokenizer.decode
    assert translator.translate(lines, beam_size=1) == [decode(ids) for ids in expected[:, 1:].tolist()]
    assert len(set(translator.translate(lines, beam_size=1))) > 1


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json"])
def test_a_folder_that_lacks_a_tokenizer_s_file_names_it(name, opus):
    (opus[0] / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"folder: expected the file {opus[0] / name}, got nothing"):
        Translator.load(opus[0])


def test_a_folder_with_too_few_pieces_is_refused(opus):
    (opus[0] / "vocab.json").write_text('{"</s>": 0, "<unk>": 1, "<pad>": 2}')
    with pytest.raises(ValueError, match=r"vocab.json: expected 29 pieces, as the model has them, got 3"):
        Translator.load(opus[0])


def test_a_folder_is_a_start_for_a_training_and_its_pieces_travel_along(opus, tmp_path):
    lines = ["a b", "ab", "b a b"] * 4
    settings = dict(device="cpu", steps=1, warmup_steps=1, tokens_per_batch=64, precision="fp32")
    tuned = learn(lines, ["c d", "d", "c"] * 4, tmp_path / "tuned", start=opus[0], **settings)
    assert tuned.model.config.pad == PAD and tuned.target_tokenizer.encode("c d") == tuned.target_tokenizer.encode(
        "c  d"
    )
    assert tuned.source_tokenizer.to_json() != tuned.target_tokenizer.to_json()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm_first": True}, "norm_first: expected False, which Marian has, got True"),
        ({}, "layout: expected 'concatenated', which Marian has, got 'interleaved'"),
        ({"layout": "concatenated"}, "tie_embeddings: expected True, which Marian has, got False"),
    ],
)
def test_a_model_that_marian_cannot_hold_is_refused_by_its_field(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save_marian(Transformer(tiny_config(**changes)), tmp_path)


def test_the_weights_that_were_written_can_be_read_by_others(tmp_path):
    theirs = tiny_config(
        source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY, layout="concatenated", tie_embeddings=True
    )
    before = os.umask(0o022)
    try:
        save_marian(Transformer(theirs), tmp_path)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o644}


def test_a_folder_without_a_config_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder: expected the file .*config.json, got nothing"):
        load_marian(tmp_path)


def test_a_folder_with_two_tables_and_no_size_of_the_second_is_refused_by_that_field(tmp_path):
    shape = dict(d_model=8, heads=2, encoder_layers=1, decoder_layers=1, d_ff=9)
    marian(1, **shape).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    config["share_encoder_decoder_embeddings"] = False
    config.pop("decoder_vocab_size", None)
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ValueError, match="decoder_vocab_size: expected this field in config.json"):
        load_marian(tmp_path)
