"""`splatop demo`: what the first screen of the README shows."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from splatop.cli import demo
from splatop.model import load_model


def model(record, **coefficients):
    return SimpleNamespace(record=record, spec=SimpleNamespace(coefficients=coefficients))


def test_the_answer_says_what_was_found_beside_the_truth():
    term = {"name": "D", "coefficient": 0.00501}
    record = {"unknown": {"said": "the missing term is u - u^3", "formula": {"terms": [term]}}}
    said = demo.answer(model(record))
    assert said == "D = 0.00501; the missing term is u - u^3. True: D = 0.005, r = 1."
    assert demo.answer(model({}, D=0.02)).startswith("D = 0.02; no term was found")
    assert demo.answer(model({})).startswith("D was not found")


def test_contenders_stand_in_one_table_and_one_picture(tmp_path, capsys):
    steps, points = 4, 8
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((steps + 1, 1, points))
    tests = SimpleNamespace(frames=steps + 1, window=lambda *_: truth)
    rolls = SimpleNamespace(rollout=lambda u, count: truth[1 : count + 1])
    metrics = {
        name: SimpleNamespace(rl2_curve=[0.1] * steps, rl2_mean=mean)
        for name, mean in (("splatop", 0.0021), ("fno", None), ("physics", 0.63))
    }
    demo._print_errors(metrics)
    shown = capsys.readouterr().out
    assert "diverged" in shown
    assert all(title.partition(":")[0] in shown for title in demo.TITLES.values())
    path = demo._picture(dict.fromkeys(metrics, rolls), tests, metrics, tmp_path / "demo.png")
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_whole_of_it_small_and_again(splatop, monkeypatch):
    small = {"POINTS": 48, "TRAINING": (5, 30), "TEST": (2, 30), "STEPS": {"splatop": 4, "fno": 8}}
    for name, value in small.items():
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setattr(demo, "FNO", {"hidden": 4, "modes": 6, "rate": 1e-3})
    code, shown, _ = splatop("demo", "--out", "demo")
    assert code == 0
    assert "the missing term is" in shown
    written = {path.name for path in Path("demo").iterdir()}
    assert {"report.html", "demo.png", "splatop", "fno", "physics"} <= written
    # D within a tenth, although an eighth of the demo's data are there.
    found = demo.named_values(load_model("demo/splatop"))["D"]
    assert abs(found / demo.VALUES["D"] - 1) < 0.1
    code, shown, _ = splatop("demo", "--out", "demo")
    assert code == 0
    assert "trained before" in shown
