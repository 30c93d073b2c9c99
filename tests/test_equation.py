"""The built-in terms on waves whose derivatives calculus gives. Each sign matters."""

import jax.numpy as jnp
import numpy as np
import pytest

from oracles import relative, wave
from splatop.derivative import gradient, laplacian, partial
from splatop.equation import (
    Advection,
    ConservativeSelfAdvection,
    CustomTerm,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
    parse_equation,
)
from splatop.equation.about import about
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.jets import SpectralJets
from splatop.spectral import PassThrough, SharpFilter, differentiate

GRIDS = [Grid((32,), (2.0,)), Grid((24, 30), (1.0, 2.0)), Grid((12, 14, 16), (1.0, 2.0, 0.5))]
MODES = (2, -3, 1)
pytestmark = pytest.mark.usefixtures("x64")


def tendency(equation, u, grid, coefficients):
    jet = SpectralJets(grid.lengths, PassThrough())(u, equation.derivatives(grid.dims))
    return equation(jet, coefficients)


def scalar(grid):
    return wave(grid, MODES[: grid.dims])


def vector(grid):
    """One wave per component, all different."""
    return np.concatenate(
        [(i + 1) * wave(grid, np.roll(MODES[: grid.dims], i), phase=i) for i in range(grid.dims)]
    )


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_advection_carries_along_every_axis(grid):
    found = tendency(Equation((Advection(),)), jnp.asarray(scalar(grid)), grid, {"v": 0.3})
    expected = -0.3 * sum(wave(grid, MODES[: grid.dims], d) for d in gradient(grid.dims))
    assert relative(found, expected) < 1e-11


def test_advection_with_a_constant_velocity():
    grid = GRIDS[1]
    equation = Equation((Advection(jnp.asarray([0.5, -2.0])),))
    found = tendency(equation, jnp.asarray(scalar(grid)), grid, {"v": 3.0})
    dx, dy = (wave(grid, MODES[:2], d) for d in gradient(2))
    assert relative(found, -3.0 * (0.5 * dx - 2.0 * dy)) < 1e-11


def test_advection_with_a_velocity_field_of_another_grid():
    grid, coarse = GRIDS[1], Grid((8, 9), (1.0, 2.0))
    velocity = np.concatenate([wave(coarse, (1, 0)), wave(coarse, (0, 2))])
    equation = Equation((Advection(jnp.asarray(velocity)),))
    found = tendency(equation, jnp.asarray(scalar(grid)), grid, {"v": 1.0})
    dx, dy = (wave(grid, MODES[:2], d) for d in gradient(2))
    assert relative(found, -(wave(grid, (1, 0)) * dx + wave(grid, (0, 2)) * dy)) < 1e-11


def test_a_velocity_of_the_wrong_shape_is_refused():
    grid = GRIDS[1]
    with pytest.raises(SplatopError, match=r"expected a velocity of shape \(2,\) or \(2, \*M\)"):
        tendency(Equation((Advection(jnp.ones(3)),)), jnp.asarray(scalar(grid)), grid, {"v": 1.0})


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_diffusion_smooths(grid):
    u = scalar(grid)
    found = tendency(Equation((Diffusion(),)), jnp.asarray(u), grid, {"D": 0.1})
    k2 = sum((2 * np.pi * k / length) ** 2 for k, length in zip(MODES, grid.lengths, strict=False))
    assert relative(found, -0.1 * k2 * u) < 1e-10


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_self_advection_component_by_component(grid):
    u = vector(grid)
    found = tendency(
        Equation((SelfAdvection(),), tuple("uvw"[: grid.dims])), jnp.asarray(u), grid, {"c": 0.7}
    )
    for i in range(grid.dims):
        expected = np.zeros(grid.points)
        for axis, d in enumerate(gradient(grid.dims)):
            slope = (i + 1) * wave(grid, np.roll(MODES[: grid.dims], i), d, phase=i)[0]
            expected -= 0.7 * u[axis] * slope
        assert relative(found[i], expected) < 1e-11


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_conservative_self_advection_is_a_divergence(grid):
    u = vector(grid)
    equation = Equation((ConservativeSelfAdvection(),), tuple("uvw"[: grid.dims]))
    found = tendency(equation, jnp.asarray(u), grid, {"c": 0.7})
    for i in range(grid.dims):
        # The product u_i u_j has modes up to 6, below Nyquist here except in 3D (12, 14, 16).
        flux = jnp.asarray(u[i] * u)
        expected = -0.35 * sum(
            differentiate(flux[axis][None], d, grid.lengths)[0]
            for axis, d in enumerate(gradient(grid.dims))
        )
        assert relative(found[i], expected) < (2e-2 if grid.dims == 3 else 1e-10)
    assert float(jnp.abs(jnp.mean(found))) < 1e-12  # it conserves the mean, (u·∇)u does not


def test_the_two_forms_are_one_in_1d_and_two_in_2d():
    for grid in GRIDS[:2]:
        u = jnp.asarray(vector(grid))
        names = tuple("uvw"[: grid.dims])
        a, b = (
            tendency(Equation((term,), names), u, grid, {"c": 1.0})
            for term in (SelfAdvection(), ConservativeSelfAdvection())
        )
        assert (relative(a, b) < 1e-11) == (grid.dims == 1)


def test_reaction_is_a_polynomial_of_the_state():
    grid = GRIDS[1]
    u = 0.5 + scalar(grid)
    equation = Equation((Reaction((0.25, 1.0, 0.0, -2.0)),))
    found = tendency(equation, jnp.asarray(u), grid, {"r": 3.0})
    assert relative(found, 3.0 * (0.25 + u - 2.0 * u**3)) < 1e-14
    assert equation.degree == 3
    assert not equation.derivatives(2)


def test_a_term_of_ones_own():
    grid = GRIDS[1]
    needs = frozenset({partial(2, 1)})
    term = CustomTerm(
        lambda jet, c: c["a"] * jet.state * jet[partial(2, 1)], needs=needs, name="odd"
    )
    u = scalar(grid)
    found = tendency(Equation((term,)), jnp.asarray(u), grid, {"a": 2.0})
    assert relative(found, 2 * u * wave(grid, MODES[:2], partial(2, 1))) < 1e-11


def test_algebraic_factors_use_the_state_and_derivatives_the_filtered_jet():
    grid = GRIDS[0]
    u = jnp.asarray(wave(grid, (1,)) + wave(grid, (7,)))
    equation = Equation((SelfAdvection(), Reaction((0.0, 1.0))))
    jet = SpectralJets(grid.lengths, SharpFilter(2.0))(u, equation.derivatives(1))
    found = equation(jet, {"c": 1.0, "r": 2.0})
    slope = wave(grid, (1,), partial(1))  # mode 7 is 3.5 cycles per unit length: dropped
    assert relative(found, -u * slope + 2 * u) < 1e-12


def test_an_equation_is_the_sum_of_its_terms():
    grid = GRIDS[1]
    u = jnp.asarray(scalar(grid))
    equation = Equation((Advection(), Diffusion(), Reaction((0.0, 1.0, 0.0, -1.0))))
    coefficients = {"v": 0.2, "D": 0.01, "r": 1.5}
    parts = sum(tendency(Equation((t,)), u, grid, coefficients) for t in equation.terms)
    assert relative(tendency(equation, u, grid, coefficients), parts) < 1e-13
    assert equation.derivatives(2) == {*gradient(2), laplacian(2)}
    assert equation.coefficient_names == ("v", "D", "r")


def test_columns_times_coefficients_are_the_tendency():
    grid = GRIDS[1]
    u = jnp.asarray(scalar(grid))
    equation = Equation((Advection(), Diffusion()))
    jet = SpectralJets(grid.lengths, PassThrough())(u, equation.derivatives(2))
    columns = equation.columns(jet, {})
    assert {name: len(parts) for name, parts in columns.items()} == {"advection": 2, "diffusion": 1}
    total = 0.2 * sum(columns["advection"]) + 0.01 * sum(columns["diffusion"])
    assert relative(total, equation(jet, {"v": 0.2, "D": 0.01})) < 1e-13


def test_a_term_can_be_left_out():
    equation = Equation((Advection(), Diffusion()))
    assert equation.without("diffusion").term_names == ("advection",)
    with pytest.raises(SplatopError, match="did you mean 'diffusion'"):
        equation.without("difusion")


def test_a_missing_coefficient_is_named():
    grid = GRIDS[1]
    equation = Equation((Advection(), Diffusion()))
    with pytest.raises(SplatopError, match="expected coefficients v, D, got v: give D"):
        tendency(equation, jnp.asarray(scalar(grid)), grid, {"v": 1.0})


def test_terms_need_names_of_their_own():
    with pytest.raises(SplatopError, match="a name of its own"):
        Equation((Advection(), Advection()))


def test_self_advection_needs_a_velocity():
    grid = GRIDS[1]
    with pytest.raises(SplatopError, match="one velocity component per axis"):
        tendency(Equation((SelfAdvection(),)), jnp.asarray(scalar(grid)), grid, {"c": 1.0})


def test_an_equation_about_a_constant_state_is_the_same_equation():
    grid = Grid((32,), (2.0,))
    u = 0.2 * np.concatenate([wave(grid, (2,)), wave(grid, (3,))])
    text = "dt(u) = -c*u*dx(u)*w + D*d2x(u^2); dt(w) = a*u^3 - w*dx(w) + k*sin(pi*x)*w"
    equation = parse_equation(text, dims=1)
    values = {"c": 0.3, "D": 0.2, "a": 1.1, "k": 0.7}
    offsets = np.array([3.0, -2.0])
    moved = about(equation, offsets.tolist())
    assert moved is not None
    expected = tendency(equation, jnp.asarray(u + offsets[:, None]), grid, values)
    assert relative(tendency(moved, jnp.asarray(u), grid, values), expected) < 1e-12
    assert about(parse_equation("dt(u) = sin(u)", dims=1), [1.0]) is None
