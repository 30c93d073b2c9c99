"""Points cut out of something larger: nothing holds at the edges, and nobody knows the shape."""

import numpy as np
import pytest

from splatop.data import ArrayTrajectories
from splatop.data.points_window import all_free, emptiest_place, window_of
from splatop.points import Points
from splatop.shapes import Box, Polygon


def scattered(places) -> Points:
    return Points.of(places, lengths=(10.0, 4.0), origin=(0.0, -2.0))


def random_places(count=2000):
    return np.random.default_rng(0).random((count, 2)) * (10, 4) - (0, 2)


def test_points_that_fill_their_box_look_through_it():
    places = random_places()
    window = window_of(scattered(places))
    assert isinstance(window, Box)
    assert np.allclose(window.bounds, [places.min(0), places.max(0)])


def test_points_in_a_disk_look_through_their_hull():
    places = random_places(6000)
    places = places[np.hypot(places[:, 0] - 5, places[:, 1]) < 1.9]
    window = window_of(scattered(places))
    assert isinstance(window, Polygon)
    assert window.inside(places).all()
    # The hull of n points in a disk misses a share of order n^(-2/3), 1 % here; the growth is 3 %.
    assert window.area == pytest.approx(np.pi * 1.9**2, rel=0.08)


def test_an_obstacle_without_points_is_found_and_random_gaps_are_not():
    places = random_places()
    box = Box((0.0, -2.0), (10.0, 2.0))
    assert emptiest_place(scattered(places), box) is None
    around = places[np.hypot(places[:, 0] - 3, places[:, 1] - 0.5) > 0.7]
    found = emptiest_place(scattered(around), box)
    assert found is not None
    # Points stand about 0.14 apart: that is what the disk may be off by.
    assert np.allclose(found, (3, 0.5, 0.75), atol=0.15)


def test_only_free_edges_need_no_shape():
    assert all_free(" all : free ;")
    assert not all_free("all: u = 0")
    assert not all_free(None)


def test_a_window_is_taken_where_all_edges_are_free_and_refused_otherwise():
    from splatop.data.edges import Told
    from splatop.data.shaped import settled_on_shape
    from splatop.errors import SplatopError

    places = random_places(500)
    data = ArrayTrajectories(np.zeros((1, 3, 1, 500)), Points.of(places), dt=0.1, fields=("u",))
    with pytest.raises(SplatopError, match='--boundary "all: free"'):
        settled_on_shape(data, Told())
    settled = settled_on_shape(data, Told(boundary="all: free"))
    assert settled.domain is not None
    assert settled.domain.shape == window_of(settled.grid)
