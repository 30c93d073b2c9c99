"""`splatop bench`: it runs, says what it promises to, and its errors are as small as claimed."""

import importlib
import json
import re
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from splatop import bench
from splatop.cli import main
from splatop.errors import SplatopError

PAGE = (Path(__file__).parent.parent / "docs" / "rendering.md").read_text()

# Times are never judged here, only that there are some: a test must not depend on the machine.
PROMISED = {
    "render": (
        "render_local_over_dense_speedup",
        "render_fourier_over_dense_speedup",
        "render_local_error",
        "render_fourier_error",
    ),
    "physics": ("physics_working_grid_speedup", "physics_working_grid_error"),
    "operators": ("fno_step_speedup", "fno_gradient_speedup_batch20"),
    "training": ("train_step_speedup", "data_batch_over_train_step"),
}


# As small as a group can be.
TINY = {
    "render": {"points": 20, "anchors": 6},
    "surrogate": {"points": 24},
    "training": {"points": 24, "batch": 2, "horizon": 2},
    "shapes": {"anchors": 8, "points": 150, "pixels": 24},
    "walls": {},
}


@pytest.mark.parametrize("name", TINY)
def test_what_is_timed_can_be_compiled(name, monkeypatch):
    """Every contender is traced, which takes a tenth of the time that compiling takes."""

    def traced(contenders, repeats):
        shapes = {key: eqx.filter_eval_shape(f, *args) for key, (f, args) in contenders.items()}
        assert all(jax.tree.leaves(shape) for shape in shapes.values())
        return {key: float(number) for number, key in enumerate(contenders, start=1)}

    for module in ("steps", "shapes", "stiff", "rendering"):
        held = importlib.import_module(f"splatop.bench.{module}")
        monkeypatch.setattr(held, "measured_times", traced)
        monkeypatch.setattr(held, "relative_error", lambda found, truth: 0.5, raising=False)
    found = bench.GROUPS[name](repeats=1, **TINY[name])
    assert set(PROMISED.get(name, ())) <= set(found)
    assert all(np.isfinite(value) and value > 0 for value in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
def test_the_keys_that_are_promised(name):
    settings = {"render": {"anchors": 12}, "training": {"batch": 2}}.get(name, {})
    found = bench.GROUPS[name](repeats=1, points=36, **settings)
    assert set(PROMISED[name]) <= set(found)
    assert all(np.isfinite(value) and value > 0 for value in found.values())


@pytest.mark.slow
def test_a_step_on_a_shape_is_timed_beside_a_network():
    found = bench.GROUPS["shapes"](repeats=1, anchors=10, points=300, pixels=36)
    assert "shape_products_step_over_fno_step_each_of_20" in found
    assert all(np.isfinite(value) and value > 0 for value in found.values())


@pytest.mark.slow
def test_rendering_errors_are_as_claimed():
    # At the size of the claim but for the number of points: 1e-5 at σ <= 0.75 h.
    found = bench.render(repeats=1, points=60, anchors=20)
    assert found["render_local_error"] <= 1e-5
    assert found["render_fourier_error"] <= 1e-5


def test_the_lattice_s_table(monkeypatch):
    monkeypatch.setattr(bench.rendering, "LATTICE_CASES", (("advection2d", 0, 20),))
    found = bench.lattice(points=48, trajectories=1)
    assert found["lattice_advection2d_20_value_error_at_1.2h"] < 1e-4
    assert len(found) == 12


def test_groups_can_be_chosen(monkeypatch):
    monkeypatch.setattr(bench, "GROUPS", {"a": lambda: {"x": 1.0}, "b": lambda: {"y": 2.0}})
    assert bench.measure() == {"x": 1.0, "y": 2.0}
    assert bench.measure(["b"]) == {"y": 2.0}
    with pytest.raises(SplatopError, match="unknown group 'c'"):
        bench.measure(["c"])


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["splatop", "bench", *arguments])
    with pytest.raises(SystemExit) as done:
        main()
    return done.value.code


def test_the_command_prints_json_and_nothing_else(monkeypatch, capsys):
    monkeypatch.setattr(bench, "GROUPS", {"a": lambda: {"x": 1.5}, "b": lambda: {"y": 2.0}})
    assert run(monkeypatch, "--json", "--only", "a") == 0
    assert json.loads(capsys.readouterr().out) == {"x": 1.5}


def test_the_command_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr(bench, "GROUPS", {"a": lambda: {"some_speedup": 12.345}})
    assert run(monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "some speedup" in shown
    assert "12.3" in shown


def test_an_unknown_group_is_one_message(monkeypatch, capsys):
    assert run(monkeypatch, "--only", "rendr") == 1
    assert "did you mean 'render'" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_page_s_python_runs(code):
    exec(compile(code, "rendering.md", "exec"), {})


def test_the_page_s_groups_exist():
    for name in re.findall(r"--only (\w+)", PAGE):
        assert name in bench.GROUPS
