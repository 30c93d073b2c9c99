"""Where a period ends: repeated points, symmetric fields, flat ones, noise, walls."""

import numpy as np
import pytest

from splatop.data import open_trajectories
from splatop.data.held import as_trajectories
from splatop.errors import SplatopError

POINTS = 64
BOX = {"lengths": (2.0,), "dt": 0.1}
INCLUSIVE = np.linspace(0, 2, POINTS + 1)
TIMES = np.linspace(0, 1, 12)[:, None]


def travelling(x):
    return np.sin(np.pi * (x - TIMES)) + 0.3 * np.cos(3 * np.pi * (x + TIMES))


def symmetric(x):
    return np.cos(np.pi * x) * np.exp(-TIMES) + 0.2 * np.cos(3 * np.pi * x) * TIMES


def soliton(x):
    return 1 / np.cosh(20 * (x - 1 - 0.1 * TIMES)) ** 2


def frames(field, x):
    return field(x)[:, None].astype(np.float32)


@pytest.mark.parametrize("periodic", [None, True])
@pytest.mark.parametrize("field", [travelling, symmetric])
def test_a_repeated_end_is_refused_and_dropped(field, periodic):
    data = frames(field, INCLUSIVE)
    with pytest.raises(SplatopError, match=r"along x repeats the first.*--drop-end.*drop_end=True"):
        as_trajectories(data, **BOX, periodic=periodic)
    held = as_trajectories(data, **BOX, periodic=periodic, drop_end=True)
    assert held.grid.points == (POINTS,)
    assert held.grid.lengths == (2.0,)
    np.testing.assert_array_equal(held.window(0, 0, 12), data[..., :-1])


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("field", [travelling, symmetric])
def test_points_of_their_own_are_kept(field, offset):
    """At half a cell's offset a symmetric field has equal ends, which are two points."""
    x = (np.arange(POINTS) + offset) * 2 / POINTS
    assert as_trajectories(frames(field, x), **BOX).grid.points == (POINTS,)
    with pytest.raises(SplatopError, match="leave out --drop-end"):
        as_trajectories(frames(field, x), **BOX, drop_end=True)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_ends_that_do_not_tell_are_taken_at_the_word(noise):
    """A soliton far from the ends; noise there. Nothing is refused, and what is told is done."""
    data = frames(soliton, INCLUSIVE)
    data = data + noise * np.random.default_rng(0).normal(size=data.shape).astype(np.float32)
    assert as_trajectories(data, **BOX).grid.points == (POINTS + 1,)
    assert as_trajectories(data, **BOX, drop_end=True).grid.points == (POINTS,)


def test_walls_are_no_seam():
    parabola = frames(lambda x: x * (2 - x) * np.exp(-TIMES), INCLUSIVE)
    with pytest.raises(SplatopError, match="as at walls"):
        as_trajectories(parabola, **BOX)
    assert as_trajectories(parabola, **BOX, periodic=True).grid.points == (POINTS + 1,)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_files_of_all_dimensions(tmp_path, dims):
    """All axes but the last repeat their end; lengths that are given are the period's."""
    sides = (13, 11, 9)[:dims]
    ends = [n - 1 if dims == 1 or axis < dims - 1 else n for axis, n in enumerate(sides)]
    phase = sum(
        2 * np.pi * np.arange(n).reshape([-1 if a == axis else 1 for a in range(dims)]) / end
        for axis, (n, end) in enumerate(zip(sides, ends, strict=True))
    )
    states = np.sin(phase + np.arange(4).reshape(4, *(1,) * dims))
    np.save(tmp_path / "a.npy", states)
    told = {"axes": "txyz"[: dims + 1], "lengths": 3.0, "dt": 0.5}
    with pytest.raises(SplatopError, match="--drop-end"):
        open_trajectories(tmp_path / "a.npy", **told)
    with open_trajectories(tmp_path / "a.npy", **told, drop_end=True) as data:
        assert data.grid.points == tuple(ends)
        assert data.grid.lengths == (3.0,) * dims
        kept = (slice(None), *(slice(n) for n in ends))
        np.testing.assert_array_equal(data.window(0, 0, 4)[:, 0], states[kept].astype(np.float32))


def test_lengths_of_coordinates_lose_a_cell(tmp_path):
    xr = pytest.importorskip("xarray")
    coords = {"t": 0.1 * np.arange(12), "x": INCLUSIVE}
    data = xr.Dataset({"u": (("t", "x"), travelling(INCLUSIVE))}, coords)
    data.to_netcdf(tmp_path / "a.nc")
    with open_trajectories(tmp_path / "a.nc", drop_end=True) as held:
        assert held.grid.lengths == pytest.approx((2.0,))
    data.attrs["boundary_conditions"] = "periodic"
    data.to_netcdf(tmp_path / "b.nc")
    with pytest.raises(SplatopError, match="--drop-end"):
        open_trajectories(tmp_path / "b.nc")


def test_a_kink_at_an_end_that_is_there_twice(tmp_path):
    """x² cos(πx) on a period from -1 to 1 has a kink where it closes, as a well-known file of
    Allen-Cahn's equation has: the field is rough there with and without the last point."""
    x = np.linspace(-1, 1, POINTS + 1)
    u = x**2 * np.cos(np.pi * x) * np.exp(-TIMES)
    np.savez(tmp_path / "a.npz", x=x, t=TIMES[:, 0], u=u)
    with pytest.raises(
        SplatopError, match=r"first and last points are equal.*-1 and 1.*--drop-end"
    ):
        open_trajectories(tmp_path / "a.npz")
    with open_trajectories(tmp_path / "a.npz", drop_end=True) as held:
        assert held.grid.points == (POINTS,)
        assert held.grid.lengths == pytest.approx((2.0,))


def test_a_period_that_does_not_close_is_said(recwarn):
    """It was taken at the word, and the model of it was wrong without one more."""
    x = np.arange(POINTS) * 2 / POINTS
    torn = frames(lambda x: x + np.sin(np.pi * (x - TIMES)) / 9, x)
    with pytest.warns(UserWarning, match="x was said to be periodic.*the jump.*--boundary"):
        as_trajectories(torn, **BOX, periodic=True)
    recwarn.clear()
    for field in (travelling, symmetric, soliton):
        as_trajectories(frames(field, x), **BOX, periodic=True)
    assert not recwarn.list
