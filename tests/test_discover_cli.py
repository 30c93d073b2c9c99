"""`splatop discover`, and `?` in other commands."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from splatop.cli.app import app
from splatop.equation import parse_equation
from splatop.errors import SplatopError


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    x, t = 2 * np.pi * np.arange(64) / 64, 0.05 * np.arange(41)[:, None]
    frames = sum(
        np.exp(-0.02 * k**2 * t) * np.cos(k * (x - 0.7 * t) + k**2) / k for k in range(1, 9)
    )
    path = tmp_path_factory.mktemp("data") / "waves.npy"
    np.save(path, frames[None, :, None].astype(np.float32))
    return path


READING = ("--axes", "btcx", "--dt", "0.05", "--lengths", "6.283185307179586", "--fields", "u")
TERMS = ("--terms", "u, u^2, dx(u), d2x(u), d3x(u), u*dx(u)")


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_equation_is_printed_and_parses(file):
    shown = run("discover", file, "--equation", "dt(u) = ?", *READING, *TERMS, "--budget", "2")
    first = shown.splitlines()[0]
    assert first.startswith("dt(u) = ")
    assert parse_equation(first, dims=1).term_names
    assert "error without it" in shown


def test_json_has_what_scripts_need(file):
    found = json.loads(run("discover", file, *READING, *TERMS, "--budget", "0", "--json"))
    assert {term["term"] for term in found["terms"]} == {"dx(u)", "d2x(u)"}
    assert found["trusted"] is True
    values = {term["term"]: term["coefficient"] for term in found["terms"]}
    # Rounding to single precision is 1e-4 of the change from frame to frame.
    assert values["dx(u)"] == pytest.approx(-0.7, rel=1e-3)
    assert values["d2x(u)"] == pytest.approx(0.02, rel=1e-2)
    parse_equation(found["equation"], dims=1)


def test_an_incomplete_library_is_said_first(file):
    shown = run("discover", file, *READING, "--terms", "u, d2x(u), d3x(u)", "--budget", "0")
    assert shown.startswith("not trusted")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--equation", "dt(u) = ? + ?"), "column 13"),
        (("--equation", "dt(u) = -v*dx(u)"), "splatop identify"),
        (("--terms", "u, 3*u"), "linearly independent"),
        (("--symmetry", "spin"), "symmetry"),
    ],
)
def test_bad_input_is_refused(file, arguments, message):
    with pytest.raises(SplatopError, match=message):
        run("discover", file, *READING, *arguments)


def test_identify_looks_for_the_unknown_part_first(file):
    text = "dt(u) = -v*dx(u) + ?"
    (row,) = json.loads(run("identify", file, "--equation", text, *READING, "--json"))[
        "trajectories"
    ]
    assert row["v"]["estimate"] == pytest.approx(0.7, rel=1e-4)
