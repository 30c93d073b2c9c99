"""Φ on a shape beside formulas: heat in a disk, a value that is set, models at other points."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jn_zeros, jv

import splatop
from splatop import SplatopError
from splatop.benchmarks import BENCHMARKS
from splatop.data import ArrayTrajectories
from splatop.domain import Condition, Domain
from splatop.identify import identify_trajectories
from splatop.model import Model, ModelSpec, build_model, load_model, save_model
from splatop.numerics import Numerics, build_physics
from splatop.points import random_points
from splatop.shapes import Disk
from splatop.walls import check_conditions, random_starts, solve_on_shape

DISK = Disk(0.5, 0.5, 0.4)
RATE, DT = 0.02, 0.02
HEAT = splatop.parse_equation("dt(u) = D*lap(u)", dims=2, fields=("u",))
NUMERICS = Numerics("none", (), 0.0, (14, 14), 1, integrator="etdrk4")


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setenv("SPLATOP_CACHE", "off")


def cold(places, t):
    """A few terms of the Bessel series: exact for a cold edge."""
    x, y = places.T - 0.5
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    return sum(
        np.exp(-RATE * (z / 0.4) ** 2 * t) * jv(m, z * r / 0.4) * np.cos(m * angle + q)
        for m in range(3)
        for q, z in enumerate(jn_zeros(m, 2))
    )


def domain_of(condition):
    box = replace(Domain.box((1.0, 1.0), periodic=(False, False)), shape=DISK)
    return box.with_conditions({("disk1", "u"): condition})


def points(count, seed=0):
    return random_points(DISK, count, seed, lengths=(1.0, 1.0), origin=(0.0, 0.0))


def spec_at(at):
    return ModelSpec(
        kind="physics",
        equation="dt(u) = D*lap(u)",
        fields=("u",),
        lengths=(1.0, 1.0),
        dt=DT,
        numerics=NUMERICS,
        coefficients={"D": RATE},
        domain=domain_of(Condition("value")),
        layout=at,
    )


@pytest.mark.parametrize("integrator", ["etdrk4", "rk4"])
def test_heat_in_a_disk_follows_bessels_series(integrator):
    at = points(900)
    steps = {"etdrk4": 1, "rk4": 6}[integrator]
    numerics = replace(NUMERICS, integrator=integrator, substeps=steps)
    physics = build_physics(HEAT, numerics, dt=DT, domain=domain_of(Condition("value")), layout=at)
    roll = eqx.filter_jit(lambda s, u: splatop.rollout(s, u, {"D": RATE}, steps=40))
    states = np.asarray(roll(physics, jnp.asarray(cold(at.places, 0)[None], jnp.float32)))
    for k in (0, 39):
        exact = cold(at.places, DT * (k + 1))
        # 14 anchors leave 1e-6 of two waves across; single precision 1e-7 a frame.
        assert np.linalg.norm(states[k, 0] - exact) < 1e-5 * np.linalg.norm(exact)


def test_a_value_that_is_set_is_where_heat_ends():
    """With u = 2 + x at the edge, heat settles to 2 + x, which is harmonic."""
    at = points(700)
    physics = build_physics(
        HEAT, NUMERICS, dt=2.0, domain=domain_of(Condition("value", "2 + x")), layout=at
    )
    u = jnp.asarray(2 + at.places[:, :1].T + cold(at.places, 0), jnp.float32)
    roll = eqx.filter_jit(lambda s, v: splatop.rollout(s, v, {"D": RATE}, steps=20))
    # The slowest harmonic decays by exp(-0.02 (2.405 / 0.4)² 40) = 3e-13. What is left is what 14
    # anchors leave of 2 + x, 1e-6, and single precision.
    assert np.abs(np.asarray(roll(physics, u))[-1, 0] - 2 - at.places[:, 0]).max() < 1e-5


def test_a_model_moves_to_other_points_and_through_a_file(tmp_path):
    at, other = points(700), points(900, seed=5)
    spec = spec_at(at)
    model = Model(spec, build_model(spec))
    loaded = load_model(save_model(tmp_path / "m.safetensors", model))
    assert loaded.spec == spec
    assert (tmp_path / "m.safetensors").stat().st_size < 200_000  # matrices are made again
    moved = loaded.at(other)
    found = np.asarray(
        moved.rollout(jnp.asarray(cold(other.places, 0)[None], jnp.float32), steps=3)
    )
    exact = cold(other.places, 3 * DT)
    assert np.linalg.norm(found[-1, 0] - exact) < 1e-5 * np.linalg.norm(exact)
    with pytest.raises(SplatopError, match="inside of the shape"):
        loaded.at(np.array([[0.0, 0.0], [0.5, 0.5]]))
    with pytest.raises(SplatopError, match="take fewer anchors"):
        loaded.at(points(60))


@pytest.mark.slow
def test_diffusivity_from_noisy_points():
    at = points(900)
    frames = np.stack([cold(at.places, DT * k) for k in range(31)])[None, :, None]
    frames = frames + 0.01 * frames.std() * np.random.default_rng(0).standard_normal(frames.shape)
    data = ArrayTrajectories(frames, at, dt=DT, fields=("u",), domain=domain_of(Condition("value")))
    (found,) = identify_trajectories(HEAT, None, data, unknown=("D",), frames="all")
    assert found.trusted
    assert found.estimates["D"] == pytest.approx(RATE, rel=0.01)


@pytest.mark.parametrize("name", ["heat_disk", "allen_cahn_lshape", "tracer_cylinder"])
def test_benchmarks_on_shapes_are_complete(name):
    benchmark = BENCHMARKS[name]
    check_conditions(benchmark.equation, benchmark.domain)
    assert benchmark.domain.shape is not None
    assert benchmark.grid.points[0] > 1000
    free = benchmark.domain.with_conditions({})
    with pytest.raises(SplatopError, match="expected a condition for u"):
        check_conditions(benchmark.equation, free)


def test_the_reference_on_a_shape_follows_edges_that_move():
    """With u = t (2 + x) at the edge and 2 + x as a source, the rest decays as at a cold edge."""
    domain = domain_of(Condition("value", "t*(2 + x)"))
    at = points(60)
    equation = splatop.parse_equation("dt(u) = D*lap(u) + 2 + x", dims=2, fields=("u",))
    starts = random_starts(HEAT, domain=domain, keys=[jax.random.key(0)], anchors=12)
    place = {"at": at, "dt": 0.1, "steps": 3, "anchors": 12}
    moved, _ = solve_on_shape(equation, {"D": RATE}, starts, domain=domain, **place)
    cold_edge = domain_of(Condition("value"))
    still, _ = solve_on_shape(HEAT, {"D": RATE}, starts, domain=cold_edge, **place)
    ramp = 0.1 * np.arange(4)[:, None, None] * (2 + at.places[:, 0])
    # 12 anchors leave 1e-6 of 2 + x.
    assert np.abs(moved[0] - ramp - still[0]).max() < 1e-5


def test_affine_equations_are_solved_exactly_on_a_shape(monkeypatch):
    """A velocity that varies, a source and an edge that is not 0, against ETDRK4."""
    from splatop.walls import shape_solver

    text = "dt(u) = -(1 + x*y)*dx(u) + D*lap(u) + x"
    equation = splatop.parse_equation(text, dims=2, fields=("u",))
    domain = domain_of(Condition("value", "2 + x"))
    starts = random_starts(equation, domain=domain, keys=[jax.random.key(0)], anchors=12)
    place = {"domain": domain, "at": points(60), "dt": 0.05, "steps": 4, "anchors": 12}
    found, error = solve_on_shape(equation, {"D": RATE}, starts, **place)
    monkeypatch.setattr(shape_solver, "is_affine", lambda *_: False)
    stepped, off = solve_on_shape(equation, {"D": RATE}, starts, **place)
    assert error == 0.0
    assert off > 0.0
    # The steps' own tolerance is 1e-7 a frame.
    assert np.abs(found - stepped).max() < 1e-6


@pytest.mark.parametrize(
    ("rate", "affine"),
    [("D*lap(u) - x*dx(u) + sin(y)", True), ("u/(1 + x)", True), ("u^2", False), ("1/u", False),
     ("sin(u)", False), ("(1 + u)*u", False), ("cos(t)*u", False)],
)  # fmt: skip
def test_what_is_affine(rate, affine):
    from splatop.equation.expansion import is_affine

    equation = splatop.parse_equation(f"dt(u) = {rate}", dims=2, fields=("u",))
    assert is_affine(equation, 2) == affine


@pytest.mark.parametrize(("count", "why"), [(900, "more were not tried"), (250, "points hold no")])
def test_the_number_of_gaussians_says_why_it_is_no_larger(monkeypatch, count, why):
    from splatop.walls import choose_on_shape, shape_resolution

    monkeypatch.setattr(shape_resolution, "CANDIDATES", (6, 8, 14)[: 2 if count == 900 else 3])
    at = points(count)
    given = {"domain": domain_of(Condition("value")), "at": at, "tail": 1e-9}
    sizes = choose_on_shape(HEAT, {"D": RATE}, cold(at.places, 0.0)[None, None], **given)
    assert why in sizes[0].reason
