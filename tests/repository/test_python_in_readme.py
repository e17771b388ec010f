"""README's lines of Python do what they say."""

import re
from pathlib import Path

from transformer_ref.learn import learn

README = Path(__file__).resolve().parents[2] / "README.md"
ENGLISH = ["we read", "you sing", "they eat"] * 4
ITALIAN = ["noi read", "voi sing", "loro eat"] * 4
TINY = dict(d_model=12, heads=2, encoder_layers=1, decoder_layers=1, d_ff=16)


def test_the_lines_of_python_run(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "steps=500" in code and code.count("print(") == 2
    monkeypatch.chdir(tmp_path)
    learn(ENGLISH, ITALIAN, "build/translator", vocabulary=300, model=TINY, steps=2, device="cpu")
    names = {"english": ENGLISH, "italian": ITALIAN}
    exec(code.replace("steps=500", "steps=2, tokens_per_batch=64"), names)
    assert "torch.Size([1, 2, " in capsys.readouterr().out
    assert names["mine"].model.config.d_model == 128 and (tmp_path / "build" / "mine" / "model.safetensors").is_file()
