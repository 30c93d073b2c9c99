"""What the study of identification found, and parts of it anew: no trusted interval misses by far.

`python tools/identification.py study` and `wrong` write what is read here, and what the tables in
docs/identification.md show.
"""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from identification import DRAWS, NOISE, RESULTS, TARGETS, WRONG, judged, wrong_equations
from splatop.data import ArrayTrajectories
from splatop.equation import parse_equation
from splatop.grid import Grid
from splatop.identify import add_noise, identify_trajectories
from study_problems import PROBLEMS, draw

# No trusted interval may miss the truth by more half-widths than this.
FARTHEST = 5.0


def _measured(name: str):
    return json.loads((RESULTS / f"{name}.json").read_text())


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_the_study_is_whole_and_no_trusted_interval_misses_by_far(name):
    """Reads results/identification, as docs/identification.md does."""
    rows = _measured(name)["rows"]
    assert {(row["noise"], row["draw"]) for row in rows} == set(product(NOISE, range(DRAWS)))
    for row in rows:
        far = {n: row["errors"][n] / row["half_widths"][n] for n in row["errors"]}
        assert not row["trusted"] or max(far.values()) <= FARTHEST, row
        if name in TARGETS:
            target = TARGETS[name][NOISE.index(row["noise"])]
            mean = np.mean([max(r["errors"].values()) for r in rows if r["noise"] == row["noise"]])
            assert 100 * mean <= target
    assert {(row["noise"], row["draw"]) for row in _measured(name)["peers"]} == set(
        product(NOISE, range(DRAWS))
    )


def test_intervals_of_the_study_cover_as_often_as_they_say():
    # Pooled over six equations; without noise errors are not random, and intervals hold them all.
    for noise in NOISE:
        every = [row for name in PROBLEMS for row in _measured(name)["rows"]]
        rows = [row for row in every if row["noise"] == noise]
        covered = np.mean([hit for row in rows for hit in row["covered"].values()])
        assert 0.9 <= covered <= (0.99 if noise else 1.0)


def test_two_hundred_wrong_equations_were_judged_and_none_is_trusted_far_off():
    rows = _measured("wrong")
    cases = list(wrong_equations(WRONG))
    assert [row["text"] for row in rows] == [case["text"] for case in cases]
    for row in rows:
        assert not row["trusted"] or max(row["misses"].values(), default=0.0) <= FARTHEST, row


@pytest.mark.parametrize(
    "number", [117, *(pytest.param(n, marks=pytest.mark.slow) for n in (18, 31, 121, 131))]
)
def test_wrong_equations_anew(number):
    case = list(wrong_equations(WRONG))[number]
    row = judged(case)
    assert not row["trusted"] or max(row["misses"].values(), default=0.0) <= FARTHEST, row


@pytest.mark.parametrize("noise", [0.0, pytest.param(0.01, marks=pytest.mark.slow)])
def test_the_answer_is_the_same_in_other_units(noise):
    """Micrometres, kiloseconds and 1e5 times the field: c is then 1e-6/(1e3 1e5) times what it
    was, nu 1e-12/1e3 times, intervals too. Rounding to single precision differs by a few 1e-8."""
    problem = replace(PROBLEMS["burgers"], points=(64,), frames=17)
    states = draw(problem, 0)
    states = add_noise(states, noise, 3) if noise else states
    found = []
    for x, t, u in ((1.0, 1.0, 1.0), (1e-6, 1e3, 1e5)):
        grid = Grid(problem.points, (x * problem.lengths[0],))
        data = ArrayTrajectories(
            (u * states[None]).astype(np.float32), grid, dt=t * problem.dt, fields=("u",)
        )
        (one,) = identify_trajectories(parse_equation(problem.text, dims=1), None, data)
        assert one.trusted, one.warnings
        units = {"c": x / (t * u), "nu": x**2 / t}
        found.append({n: np.array([one.estimates[n], *one.intervals[n]]) / units[n] for n in units})
    for name, true in problem.true.items():
        assert found[1][name] == pytest.approx(found[0][name], rel=1e-6)
        assert found[0][name][1] <= true <= found[0][name][2]
