"""Accuracy against cost: the solvers beside a model, and what is said of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from splatop.cli.evaluate import print_tradeoff
from splatop.coarse import CoarseStepper
from splatop.data import ArrayTrajectories
from splatop.equation import parse_equation
from splatop.errors import SplatopError
from splatop.evaluate import evaluate, tradeoff
from splatop.evaluate.results import Metrics
from splatop.evaluate.tradeoff import Row, from_json, judged_by, solvers, verdicts
from splatop.grid import Grid
from splatop.model import Model, ModelSpec
from splatop.numerics import Numerics, build_physics
from splatop.report.evaluated import EvaluatedRun
from splatop.report.sections import Charts
from splatop.report.tradeoff_section import tradeoff_section

MODEL = Row("fast", "model", (16,), 0.4, 2.0, 0.05, 3.0, 3.0, 10.0)


def solver(points, cost, horizon, rl2=0.1):
    name = f"solver, {points} points"
    return Row(name, "solver", (points,), 0.4, cost, rl2, horizon, horizon, 10.0)


def test_a_model_is_held_against_the_cheapest_solver_that_is_as_good():
    rows = [MODEL, solver(32, 1.0, 2.9), solver(96, 9.0, 10.0), solver(64, 4.0, 3.0)]
    assert judged_by(rows) == "horizon"
    (found,) = verdicts(rows)
    assert found.solver is rows[3]
    assert found.ratio == pytest.approx(0.5)
    assert "better choice" not in str(found)
    (found,) = verdicts([MODEL, solver(64, 1.0, 3.0)])
    assert found.ratio == pytest.approx(2.0)
    assert str(found).endswith("The solver is the better choice")
    (found,) = verdicts([MODEL, solver(64, 1.0, 2.0)])
    assert found.solver is None
    assert "no solver that was tried holds as long" in str(found)


def test_a_model_that_holds_to_the_end_is_held_against_errors():
    own = replace(MODEL, horizon=10.0)
    worse, better, lost = (
        solver(32, 1.0, 10.0, 0.06),
        solver(64, 4.0, 10.0, 0.05),
        solver(16, 0.1, 0.0, None),
    )
    assert judged_by([own, worse]) == "rl2"
    (found,) = verdicts([own, lost, worse, better])
    assert found.solver is better
    assert "is as accurate" in str(found)


def test_the_terminal_and_the_report_say_what_a_model_costs(capsys):
    rows = [MODEL, solver(64, 4.0, 10.0), solver(16, 0.1, 0.0, None)]
    measured = SimpleNamespace(tradeoff=tradeoff.as_json(rows))
    print_tradeoff(measured)
    said = " ".join(capsys.readouterr().out.split())
    assert "fast 2 0.0500 3 3" in said.replace("0.05 ", "0.0500 ")
    assert "solver, 64 points 4 0.1 to the end to the end" in said
    assert "diverged" in said
    assert "the model takes 0.5 times as long" in said
    print_tradeoff(SimpleNamespace(tradeoff=None))
    assert not capsys.readouterr().out
    charts, run = Charts(), object.__new__(EvaluatedRun)
    vars(run)["metrics"] = measured
    page = tradeoff_section(charts, [run])
    assert page is not None
    assert "the model takes 0.5 times as long" in page
    assert "Those at 10 hold until the end of the data." in page
    solvers_line, fast = charts.hover["tradeoff"]["lines"]
    assert (solvers_line["x"], solvers_line["y"]) == ([0.1, 4.0], [0.0, 10.0])
    assert (fast["x"], fast["y"]) == ([2.0], [3.0])
    assert tradeoff_section(charts, []) is None


@pytest.fixture(scope="module")
def travelling():
    """Waves of modes 2 and 11 that decay: 16 points hold the first alone, 32 both."""
    equation, decay = "dt(u) = -dx(u) + 1e-4*d2x(u)", 1e-4 * (2 * np.pi) ** 2
    x, dt = np.arange(64) / 64, 0.05
    t = dt * np.arange(9)[:, None]
    waves = [
        a * np.exp(-decay * k**2 * t) * np.cos(2 * np.pi * k * (x - t))
        for k, a in ((2, 1.0), (11, 0.2))
    ]
    frames = np.asarray(sum(waves), np.float32)[None, :, None]
    data = ArrayTrajectories(frames, Grid((64,), (1.0,)), dt=dt, fields=("u",))
    numerics = Numerics("box", (7.0,), 0.0, (16,), 1, jets="spectral", space="harmonics")
    spec = ModelSpec("physics", equation, ("u",), (1.0,), dt, numerics, coarse=(16,))
    physics = build_physics(parse_equation(equation, dims=1), numerics, lengths=(1.0,), dt=dt)
    return Model(spec, CoarseStepper(physics, (16,))), data


@pytest.mark.slow
def test_solvers_on_more_points_are_closer_and_all_are_timed(travelling, monkeypatch):
    monkeypatch.setattr(tradeoff, "PARTS", (1 / 4, 1 / 2))
    model, data = travelling
    metrics = evaluate(model, data, steps=8, name="fast", also=("solvers",))
    own, *others = rows = from_json(metrics.tradeoff)
    assert (own.name, own.role, own.points) == ("fast", "model", (16,))
    assert [(one.role, one.points) for one in others] == [("solver", (16,)), ("solver", (32,))]
    # What 16 points cannot hold is the second wave, 0.2 of the first; 32 hold both.
    assert own.rl2 == pytest.approx(0.2, rel=0.2)
    assert others[0].rl2 == pytest.approx(own.rl2, 1e-3)
    assert others[1].rl2 < 1e-3
    assert all(one.cost > 0 and one.length == pytest.approx(0.4) for one in rows)
    assert Metrics.from_dict(metrics.as_dict()).tradeoff == metrics.tradeoff


def test_a_model_that_answers_on_its_coarse_grid_has_no_solvers_beside_it(travelling):
    model, data = travelling
    model = replace(model, spec=replace(model.spec, answers="coarse"))
    with pytest.raises(SplatopError, match="--no-solvers"):
        next(solvers(model, data, {}))
