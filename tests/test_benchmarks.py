"""The table of benchmarks against the paper's tables, and its text against its terms."""

import jax
import numpy as np
import pytest

from splatop.benchmarks import BENCHMARKS, get_benchmark
from splatop.equation import parse_equation
from splatop.errors import SplatopError
from splatop.jets import SpectralJets
from splatop.spectral import PassThrough, SharpFilter, SmoothFilter

# Paper: table of benchmarks, table of cutoffs, appendix E.
PAPER = {
    "advection2d": ({"v": 0.025}, 160, 2, 1.0, SmoothFilter(6.0, 2.0)),
    "advection_diffusion2d": ({"v": 0.025, "D": 2e-6}, 160, 2, 1.0, SmoothFilter(6.0, 2.0)),
    "burgers2d": ({"c": 4.69e-3, "nu": 1e-4}, 160, 2, 1.0, SharpFilter(10.0)),
    "advection_allen_cahn2d": (
        {"v": 0.05, "nu": 1e-3, "r": 1.0},
        160,
        2,
        0.1,
        SharpFilter(14.0),
    ),
    "advection_diffusion3d": ({"v": 0.0125, "D": 1e-6}, 64, 3, 1.0, SmoothFilter(8.0, 2.0)),
    "unknown_advection_diffusion2d": ({}, 160, 2, 1.0, SharpFilter(7.0)),
    "burgers2d_conservative": ({"c": 4.69e-3, "nu": 1e-4}, 160, 2, 1.0, SharpFilter(10.0)),
}


@pytest.mark.parametrize("name", PAPER)
def test_table_is_the_papers(name):
    coefficients, points, dims, dt, paper_filter = PAPER[name]
    benchmark = BENCHMARKS[name]
    assert benchmark.name == name
    # The paper prints c with three digits.
    assert benchmark.coefficients == pytest.approx(coefficients, rel=1e-3)
    assert benchmark.grid.points == (points,) * dims
    assert benchmark.grid.lengths == (1.0,) * dims
    assert benchmark.dt == dt
    assert benchmark.paper_filter == paper_filter
    assert benchmark.size("train") == (256, 50)
    assert benchmark.size("test") == (30, 200)
    assert benchmark.channels == (2 if "burgers" in name else 1)
    assert benchmark.mean_evolves == (name == "advection_allen_cahn2d")
    named = {*benchmark.coefficients, *benchmark.coefficient_ranges}
    assert named == set(benchmark.equation.coefficient_names)


def test_table_is_complete():
    periodic = {name for name, benchmark in BENCHMARKS.items() if not benchmark.boundary}
    assert periodic == set(PAPER)
    # Those between walls (tests/test_walls.py) and on shapes (tests/test_shape_physics.py).
    assert len(BENCHMARKS) == len(periodic) + 6 + 3
    ranges = BENCHMARKS["unknown_advection_diffusion2d"].coefficient_ranges
    assert ranges == {"v": (0.0125, 0.025), "D": (1e-6, 4e-6)}


@pytest.mark.parametrize("name", PAPER)
def test_text_says_what_the_terms_do(name):
    benchmark = BENCHMARKS[name].reduced()
    parsed = parse_equation(benchmark.equation_text, dims=benchmark.dims, fields=benchmark.fields)
    shape = (benchmark.channels, *(12,) * benchmark.dims)
    with jax.enable_x64(True):
        u = jax.random.normal(jax.random.key(0), shape)
        jets = SpectralJets(benchmark.lengths, PassThrough())
        # Different sizes, so that a coefficient at the wrong term shows.
        coefficients = {k: 1.0 + 0.3 * i for i, k in enumerate(parsed.coefficient_names)}
        ours, theirs = (
            equation(jets(u, equation.derivatives(benchmark.dims)), coefficients)
            for equation in (benchmark.equation, parsed)
        )
    # The same sums in another order: rounding of a double, 1e-16, times the number of terms.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.abs(ours).max())


def test_sizes_are_options():
    benchmark = get_benchmark("advection_diffusion3d")
    assert benchmark.reduced().grid.points == (24, 24, 24)
    assert benchmark.reduced().train_trajectories < benchmark.train_trajectories
    assert get_benchmark("burgers2d").reduced().grid.points == (64, 64)
    assert benchmark.with_points(32).coefficients == benchmark.coefficients
    with pytest.raises(SplatopError, match="at least 12 points"):
        benchmark.with_points(11)


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(SplatopError, match="did you mean 'burgers2d'"):
        get_benchmark("burger2d")
    with pytest.raises(SplatopError, match="did you mean 'test'"):
        get_benchmark("burgers2d").size("tset")


def test_typical_coefficients_lie_in_the_middle():
    typical = get_benchmark("unknown_advection_diffusion2d").typical_coefficients()
    assert typical["D"] == pytest.approx(2e-6)
    assert typical["v"] == pytest.approx(0.0125 * 2**0.5)


def test_a_file_in_place_of_a_benchmark_gets_the_option_to_use():
    with pytest.raises(SplatopError, match=r"looks like a file: give it as --data frames\.h5"):
        get_benchmark("frames.h5")
