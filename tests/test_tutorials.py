"""The tutorials run, block after block, as a reader would run them."""

import re
import shlex
from pathlib import Path

import jax
import numpy as np
import pytest

from splatop.cli import main
from splatop.data import solve_to_file
from splatop.equation import EXAMPLES
from splatop.grid import Grid

FOLDER = Path(__file__).parent.parent / "docs" / "tutorials"
TUTORIALS = sorted(path.stem for path in FOLDER.glob("*.md"))


def prepare_own_data():
    """What the page calls the reader's own: an array, and trajectories to test on."""
    example = EXAMPLES["fisher_kpp"]
    np.save("array.npy", np.ones((2, 3, 1, 8, 4), np.float32) * np.arange(3)[:, None, None, None])
    solve_to_file(
        example.equation,
        "test.h5",
        coefficients=example.coefficients,
        grid=Grid((64, 32), (2.0, 1.0)),
        dt=0.2,
        steps=24,
        trajectories=2,
        initial="positive",
        seed=1,
    )


def prepare_unknown_coefficients():
    example = EXAMPLES["kdv"]
    solve_to_file(
        example.equation,
        "kdv.h5",
        coefficients=example.coefficients,
        grid=Grid((96,), (30.0,)),
        dt=0.05,
        steps=8,
        trajectories=1,
        initial="solitons",
    )


PREPARE = {
    "own_data": prepare_own_data,
    "unknown_coefficients": prepare_unknown_coefficients,
}


def run_commands(text, monkeypatch):
    """Each line through the command line's entry point."""
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        words = shlex.split(line, comments=True)
        assert words[0] == "splatop", line
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, line


@pytest.mark.slow  # half a minute each
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial(name, monkeypatch, tmp_path, capsys):
    page = (FOLDER / f"{name}.md").read_text()
    monkeypatch.chdir(tmp_path)
    PREPARE.get(name, lambda: None)()
    names: dict = {}
    for language, text in re.findall(r"```(python|bash)\n(.*?)```", page, re.DOTALL):
        if language == "bash":
            run_commands(text, monkeypatch)
        else:
            exec(compile(text, f"{name}.md", "exec"), names)
    jax.clear_caches()


def test_every_way_in_has_a_tutorial():
    assert set(TUTORIALS) == {
        "matlab",
        "own_data",
        "unknown_coefficients",
        "missing_term",
        "own_operator",
        "inside_jax",
        "walls",
        "sensors",
    }
