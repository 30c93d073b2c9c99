"""The scripts of examples/ are short and run, at a reduced size."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# What makes a script quick, and what its result must stay below.
SMALL = {
    "equation_as_text": ({"points": 32, "steps": 8}, 1e-3),
    "identify_coefficients": ({"points": 32, "trajectories": 1}, 1e-2),
    "export_and_run": ({"points": 32, "steps": 3, "batch": 2}, 1e-5),
    "inverse_problem": ({"points": 24, "steps": 2, "iterations": 60}, 0.2),
}
SLOW = {
    "train_and_compare": {"points": 32, "training_steps": 10, "steps": 10},
    "ensemble": {"points": 32, "seeds": 2, "training_steps": 6, "steps": 5},
}


def main_of(name: str):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def test_every_example_is_here_and_short():
    scripts = {path.stem: path for path in EXAMPLES.glob("*.py")}
    assert set(scripts) == set(SMALL) | set(SLOW)
    for path in scripts.values():
        assert len(path.read_text().splitlines()) <= 40, path.name


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n == "equation_as_text" else pytest.mark.slow) for n in SMALL],
)
def test_example(name, capsys):
    sizes, bound = SMALL[name]
    assert main_of(name)(**sizes) < bound
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_training_example(name, capsys):
    assert main_of(name)(**SLOW[name])
    assert capsys.readouterr().out
