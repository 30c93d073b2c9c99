"""Lengths and steps that are NumPy's or JAX's numbers, as a user passes them."""

import subprocess
import sys

import pytest

# In a process of its own: without the tests' type checker, and with every warning an error.
SCRIPT = """
import warnings
import equinox as eqx, jax, jax.numpy as jnp, numpy as np
warnings.simplefilter("error")
from splatop import FiniteDifferenceJets, SpectralJets
from splatop.data import ArrayTrajectories
from splatop.equation import parse_equation
from splatop.grid import Grid
from splatop.numerics import build_physics
from splatop.physics import EmbeddedPhysics
from splatop.solver import ReferenceSolver, solve
from splatop.spectral import BoxFilter, SharpFilter
from splatop.tune import choose_numerics

equation = parse_equation("dt(u) = -v*dx(u) + D*lap(u)", dims=1)
numbers = {"v": 1.0, "D": 0.01}
u = jnp.asarray(np.sin(2 * np.pi * np.arange(32) / 32)[None], jnp.float32)
plain = EmbeddedPhysics(equation, SpectralJets((1.0,), SharpFilter(8.0)), 0.125)
tuned = choose_numerics(equation, numbers, np.asarray(u)[None], lengths=(1.0,), dt=0.125)
for one in (np.float64, np.float32, np.array, jnp.asarray):
    dt, cutoff = one(0.125), one(8.0)
    for lengths in ((one(1.0),), [one(1.0)], np.array([1.0])):
        grid = Grid((np.int64(32),), lengths)
        assert grid == Grid((32,), (1.0,)) and hash(grid) == hash(Grid((32,), (1.0,)))
        jets = SpectralJets(lengths, SharpFilter(cutoff))
        for physics in (
            EmbeddedPhysics(equation, jets, dt),
            EmbeddedPhysics(equation, FiniteDifferenceJets(lengths, BoxFilter((cutoff,))), dt),
            build_physics(equation, tuned.numerics, lengths=lengths, dt=dt),
            ReferenceSolver(equation, lengths, dt),
        ):
            assert type(physics.dt) is float, type(physics.dt)
            eqx.filter_jit(physics)(u, numbers)
        assert eqx.tree_equal(EmbeddedPhysics(equation, jets, dt), plain)
        found = choose_numerics(equation, numbers, np.asarray(u)[None], lengths=lengths, dt=dt)
        assert found == tuned
        solve(equation, numbers, u, lengths=lengths, dt=dt, steps=1)
        data = ArrayTrajectories(np.asarray(u)[None, None], grid, dt=dt, fields=("u",))
        assert type(data.dt) is float
"""


@pytest.mark.slow
def test_numpy_numbers_need_no_warning():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.mark.slow
def test_fit_takes_them_without_a_warning():
    script = """
import warnings
import numpy as np
import pytest
import splatop
warnings.filterwarnings("error", message=".*static.*")
x, t = np.arange(32) / 32, np.arange(8)[:, None] * 0.05
u = np.sin(2 * np.pi * (x - t))[:, None]
for one in (np.float32, np.array):
    made = splatop.fit(
        u, "dt(u) = -v*dx(u)", coefficients={"v": one(1.0)}, dt=one(0.05), lengths=one(1.0),
        preset="smoke", settings={"model": "physics"},
    )
    assert made.model.spec.lengths == (1.0,)
    made.rollout(u[0], 2)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.mark.parametrize(
    "option", ["anchors", "substeps", "hidden", "modes", "batch", "horizon", "devices", "seeds"]
)
@pytest.mark.parametrize("number", ["0", "-1", "9" * 30])
def test_estimate_counts_what_can_be(splatop, option, number):
    code, out, err = splatop("estimate", "advection2d", f"--{option}", number)
    assert (code, out) == (1, "")
    assert f"expected --{option} from 1 to 1,000,000, got {number}" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("export", "advection2d", "--out", "a.zip", "--steps", "9" * 30),
            "at most 1,000,000 steps",
        ),
        (("export", "advection2d", "--out", ""), "the name of a file to write, got the folder"),
        (
            ("rollout", "advection2d", "--out", "a.h5", "--steps", "9" * 30),
            "at most 10,000,000 steps",
        ),
    ],
)
def test_more_steps_than_can_be_are_refused(splatop, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "rollout":
        made = ("advection2d", "--trajectories", "1", "--steps", "1", "--points", "64")
        assert splatop("generate", *made, "--out", "d.h5")[0] == 0
        arguments = (*arguments, "--data", "d.h5")
    before = sorted(tmp_path.iterdir())
    code, _, err = splatop(*arguments)
    assert code == 1
    assert message in err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--begin", "nan"), "a finite time at which the window begins, got nan"),
        (("--out", ""), "a file to write, got the folder .: add a file name"),
    ],
)
def test_what_assimilate_cannot_begin_or_write_at_is_refused(splatop, tmp_path, options, message):
    rows = [f"{0.1 * t},{x / 8},{x * t}" for t in range(4) for x in range(8)]
    (tmp_path / "s.csv").write_text("\n".join(["t,x,u", *rows]))
    how = ("--equation", "dt(u) = D*d2x(u)", "--coefficients", "D=0.1", "--lengths", "1")
    sizes = ("--points", "16", "--dt", "0.1")
    code, out, err = splatop("assimilate", tmp_path / "s.csv", *how, *sizes, *options)
    assert (code, out) == (1, "")
    assert message in err
