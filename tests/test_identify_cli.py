"""`splatop identify` as a user runs it."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from splatop.benchmarks import get_benchmark
from splatop.cli.app import app
from splatop.data import generate_to_file
from splatop.errors import SplatopError

NAME = "unknown_advection_diffusion2d"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "test.h5"
    generate_to_file(get_benchmark(NAME), path, split="test", trajectories=3, steps=8, points=32)
    return str(path)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["identify", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_json_holds_estimates_intervals_and_errors(file):
    found = json.loads(run(file, "--equation", NAME, "--json"))
    assert len(found["trajectories"]) == 3
    for row in found["trajectories"]:
        assert set(row) == {"v", "D"}
        for cell in row.values():
            assert cell["low"] < cell["estimate"] < cell["high"]
    errors = [
        [abs(row[name]["estimate"] / row[name]["true"] - 1) for row in found["trajectories"]]
        for name in ("v", "D")
    ]
    assert found["mean_relative_error"]["v"] == pytest.approx(np.mean(errors[0]))
    # The targets of the default method on clean data.
    assert found["mean_relative_error"]["v"] < 0.00034
    assert found["mean_relative_error"]["D"] < 0.0028
    assert {one["method"] for one in found["diagnostics"]} == {"flow"}


def test_an_equation_as_text_with_a_known_coefficient(file):
    text = "dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)"
    known = json.loads(
        run(file, "--equation", text, "--known", "D=2e-6", "--method", "weak", "--json")
    )
    assert set(known["trajectories"][0]) == {"v"}
    assert known["mean_relative_error"]["v"] < 1e-3  # D is wrong, but v does not care
    # What is not unknown comes from the file.
    rest = json.loads(run(file, "--equation", text, "--unknown", "D", "--method", "weak", "--json"))
    assert set(rest["trajectories"][0]) == {"D"}
    assert rest["mean_relative_error"]["D"] < 1e-3


def test_the_table_names_what_the_json_holds(file):
    output = run(file, "--method", "paper", "--frames", "5", "--trajectories", "2")
    assert "2 trajectories by the paper method" in output
    assert "v: mean error" in output
    assert "95 %" in output
    assert "order 4 instead of 6" in output


def test_noise_for_studies_is_reproducible(file):
    arguments = (file, "--noise", "0.01", "--method", "weak", "--json")
    first, again, other = (
        json.loads(run(*arguments, "--seed", seed))["trajectories"] for seed in ("1", "1", "2")
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--equation", "unknown_advection_difusion2d"), "did you mean"),
        (("--equation", "burgers2d"), "data of burgers2d, 2D with u_x, u_y, got"),
        (("--unknown", "w"), "unknown coefficient 'w'"),
        (("--known", "v"), "expected name=number"),
        (("--frames", "12"), "ask for fewer frames"),
        (("--frames", "2", "--method", "paper"), "at least 3 frames"),
        (("--method", "best"), "unknown method"),
        (("--trajectories", "9"), "1 to 3 trajectories"),
        (("--noise", "-1"), "noise level"),
    ],
)
def test_mistakes_are_named(file, arguments, message):
    with pytest.raises(SplatopError, match=message):
        run(file, *arguments)


def test_the_examples_of_the_docs_run(tmp_path):
    text = (Path(__file__).parent.parent / "docs" / "identification.md").read_text()
    script = tmp_path / "examples.py"
    script.write_text("".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    ran = runpy.run_path(str(script))
    for found in (ran["found"], ran["same"]):
        assert found.estimates == pytest.approx({"v": 0.3, "D": 1e-3}, rel=1e-5)
        assert found.warnings == ()


def test_warnings_that_differ_by_their_numbers_are_said_once(file):
    said = run(file, "--equation", "dt(u) = r*u", "--method", "weak")
    assert said.splitlines()[-1].startswith("warning")
    (one,) = [line for line in said.splitlines() if "of the change between frames" in line]
    assert one.startswith("warning (3 of 3): the equation leaves ")
