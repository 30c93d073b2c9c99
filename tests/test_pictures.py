"""What pictures show, read back from the figures: fields, surfaces, ellipses, places of sensors."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure

from splatop.assimilate import Placement
from splatop.assimilate.source import EquationSetting, as_dynamics
from splatop.data import ArrayTrajectories, plot
from splatop.domain import Domain
from splatop.equation.shape_text import parse_shape
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.points import Points, points_inside
from splatop.report import isosurface, sensor_pictures
from splatop.report.isosurface import LEVEL
from splatop.report.raster import raster
from splatop.report.sensor_pictures import write_placement_picture
from splatop.report.term_curves import Curve, Map
from splatop.reproduce.encoding import Encoding
from splatop.reproduce.learned_term import _curves, _map
from splatop.reproduce.rollout_frames import RolloutFrames
from splatop.reproduce.schematic import architecture_figure
from splatop.reproduce.snapshots import isosurface_figure, snapshot_figure

X = 2 * np.pi * np.arange(16) / 16


def frames_of(reference, prediction=None, **changes):
    given = {"steps": (0, 5), "name": "splatop", "kind": "surrogate", "benchmark": "b", "dt": 0.1}
    given |= {"lengths": (1.0,) * (reference.ndim - 2), **changes}
    prediction = reference if prediction is None else prediction
    return RolloutFrames(reference=reference, prediction=prediction, **given)


def images(figure):
    return [ax.images[0].get_array() for ax in figure.axes if ax.images]


def test_snapshots_show_the_vorticity_in_its_deviations_and_grey_where_it_diverged():
    # u = (sin 2πx cos 2πy, -cos 2πx sin 2πy): its vorticity 4π sin 2πx sin 2πy has deviation 2π.
    x, y = np.meshgrid(X, X, indexing="ij")
    state = np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)]).astype(np.float32)
    reference = np.stack([state, 3 * state])
    prediction = reference.copy()
    prediction[1] = np.nan
    shown = images(snapshot_figure([frames_of(reference, prediction)]))
    for picture in shown[:3]:  # two of the reference and the first prediction
        np.testing.assert_allclose(picture, 2 * (np.sin(x) * np.sin(y)).T, atol=1e-5)
    assert shown[3].mask.all()


def test_snapshots_of_a_scalar_are_its_values_and_methods_have_an_order():
    reference = np.random.default_rng(0).normal(size=(2, 1, 16, 16))
    rivals = [frames_of(reference, 2 * reference, name="FNO", kind="fno"), frames_of(reference)]
    figure = snapshot_figure(rivals)
    labels = [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()]
    assert labels[:3] == ["Reference", "splatop", "FNO"]
    np.testing.assert_array_equal(images(figure)[4], 2 * reference[0, 0].T)
    with pytest.raises(SplatopError, match="expected frames of the same benchmark"):
        snapshot_figure([rivals[0], frames_of(reference, benchmark="other")])
    with pytest.raises(SplatopError, match="expected frames of at least one rollout"):
        snapshot_figure([])


def test_isosurfaces_lie_where_the_field_has_their_value(monkeypatch):
    drawn = []

    def recorded(values, level, found=isosurface.isosurface):
        drawn.append(found(values, level))
        return drawn[-1]

    monkeypatch.setattr(isosurface, "isosurface", recorded)
    wave = np.broadcast_to(np.cos(X)[:, None, None], (16, 16, 16))
    reference = np.stack([wave, wave])[:, None]
    prediction = reference.copy()
    prediction[1] = np.nan
    figure = isosurface_figure([frames_of(reference, prediction)])
    # Linear interpolation of a cosine over a cell: (2π/16)² / 8 = 0.02 of its value.
    for triangles, level in zip(drawn, 3 * (LEVEL, -LEVEL), strict=True):
        x = triangles[..., 0] / 16  # they are in grid cells
        np.testing.assert_allclose(np.cos(2 * np.pi * x), level, atol=0.02)
    assert "diverged" in {text.get_text() for text in figure.axes[3].texts}


def test_the_method_shows_each_gaussian_as_its_ellipse():
    field = np.sin(X)[:, None] * np.cos(X)[None]
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    covariance = turn @ np.diag([0.1**2, 0.02**2]) @ turn.T
    encoding = Encoding(
        field=field,
        center=np.array([[0.3, 0.4], [0.6, 0.7]]),
        covariance=np.stack([covariance, covariance]),
        amplitude=np.array([1.0, -0.5]),
        rendered=field,
        slope=field,
        laplacian=field,
        encoder="lattice",
    )
    figure = architecture_figure(encoding)
    shown = [ax for part in figure.subfigs for ax in part.axes]
    (ellipses,) = (c for ax in shown for c in ax.collections if isinstance(c, EllipseCollection))
    np.testing.assert_allclose(ellipses.get_widths(), 0.2, rtol=1e-6)  # two deviations
    np.testing.assert_allclose(ellipses.get_heights(), 0.04, rtol=1e-6)
    np.testing.assert_allclose(np.tan(np.radians(ellipses.get_angles())), np.tan(0.3), rtol=1e-6)
    np.testing.assert_array_equal(shown[0].images[0].get_array(), field.T)


@pytest.mark.parametrize(("lengths", "points"), [((1.0,), (16,)), ((1.0, 2.0), (8, 8))])
def test_places_are_drawn_on_what_is_left_of_the_spread(lengths, points, tmp_path, monkeypatch):
    dynamics = as_dynamics("dt(u) = D*lap(u)", EquationSetting({"D": 0.1}, lengths, points, 0.1))
    places, left = np.full((2, len(points)), 0.5), np.full((1, *points), 0.5)
    fall = np.array([3.0, 2.0, 1.0])
    found = Placement(places, fall, places, left, dynamics, "a prior")
    drawn = []
    monkeypatch.setattr(sensor_pictures, "_bytes", lambda figure, kind: drawn.append(figure) or b"")
    write_placement_picture(found, tmp_path / "places.png")
    shown, falling = drawn[0].axes[:2]
    np.testing.assert_array_equal(falling.lines[0].get_ydata(), fall)
    np.testing.assert_array_equal(shown.lines[-1].get_xdata(), places[:, 0])
    values = shown.images[0].get_array() if len(points) == 2 else shown.lines[0].get_ydata()
    np.testing.assert_allclose(values, 0.5)
    with pytest.raises(SplatopError, match=r"expected a picture named \.png"):
        write_placement_picture(found, tmp_path / "places.gif")


def test_pixels_show_the_nearest_point_inside_of_the_shape():
    shape = parse_shape("disk(0.5, 0.5, 0.3)")
    at = Points.of([[0.3, 0.5], [0.7, 0.5]], lengths=(1.0, 1.0), origin=(0.0, 0.0))
    pixels = raster(at, replace(Domain.box((1.0, 1.0), periodic=(False, False)), shape=shape))
    shown = pixels(np.array([1.0, 2.0]), outside=np.nan)
    x, y = np.broadcast_arrays(*pixels.grid.coordinates())
    inside = np.hypot(x - 0.5, y - 0.5) < 0.3
    np.testing.assert_array_equal(np.isfinite(shown), inside)
    np.testing.assert_array_equal(shown[inside], np.where(x > 0.5, 2.0, 1.0)[inside])


def test_surfaces_of_the_page_have_two_colours_and_there_are_none_where_it_diverged():
    wave = np.broadcast_to(np.cos(X)[:, None, None], (16, 16, 16))

    def surfaces(field):
        axes = Figure().add_subplot(projection="3d")
        isosurface._draw(axes, field, LEVEL, (1.0, 1.0, 1.0))
        return [part.get_facecolor() for part in axes.collections]

    (colours,) = surfaces(wave)
    red, blue = colours[:, 0] > colours[:, 2], colours[:, 0] < colours[:, 2]
    assert (red.sum(), blue.sum()) == (len(colours) / 2,) * 2  # the wave is its own negative, moved
    assert surfaces(np.full_like(wave, np.nan)) == []


def test_a_learned_term_is_drawn_over_the_range_of_its_data():
    x = np.linspace(-2, 2, 9)
    one = Curve("u", x, np.stack([x**2]), -1.0, 1.0)
    (ax,) = _curves([one], ("in dt(u)",)).axes
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), x**2)
    shaded = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches]
    np.testing.assert_allclose(shaded, [(-2, -1), (1, 2)])
    values = np.add.outer(x, 10 * x)[None]
    figure = _map(Map(("u", "v"), x, x, values, np.zeros((9, 9), bool)), ("in dt(u)",))
    drawn, empty = figure.axes[0].collections
    np.testing.assert_array_equal(drawn.get_array(), values[0].T)  # v upwards
    assert empty.get_array().mask.all()


def test_a_shape_is_drawn_with_its_points_frames_and_harmonics(monkeypatch, tmp_path):
    figures = []
    save = Figure.savefig

    def kept(figure, *given, **how):
        figures.append(figure)
        save(figure, *given, **how)

    monkeypatch.setattr(Figure, "savefig", kept)
    shape = parse_shape("box - disk(0.5, 0.5, 0.2)", box=((0.0, 0.0), (1.0, 1.0)))
    grid = Grid((12, 12), (1.0, 1.0), layout=("cells", "cells"))
    at = points_inside(shape, grid)
    x = at.places[:, 0]
    domain = replace(Domain.box((1.0, 1.0), periodic=(False, False)), shape=shape)
    frames = np.stack([x - 0.5, 2 * x - 1])[None, :, None]
    data = ArrayTrajectories(frames, at, dt=0.5, fields=("u",), domain=domain)
    plot(data, tmp_path / "hole.png")
    (figure,) = figures
    titles = [ax.get_title() for ax in figure.axes]
    assert {f"{len(x)} points", "u, t = 0", "u, t = 0.5", "harmonic 4"} <= set(titles)
    assert {"x0", "disk1"} <= {text.get_text() for text in figure.axes[0].texts}
    (drawn,) = figure.axes[titles.index("u, t = 0.5")].collections
    np.testing.assert_allclose(drawn.get_array(), 2 * x - 1, atol=1e-6)
    assert drawn.get_clim() == pytest.approx((-np.abs(2 * x - 1).max(), np.abs(2 * x - 1).max()))
    assert (tmp_path / "hole.png").stat().st_size > 1000
    with pytest.raises(SplatopError, match=r"a picture named \.png, \.pdf or \.svg, got hole.gif"):
        plot(data, tmp_path / "hole.gif")
