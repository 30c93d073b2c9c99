"""What results show of themselves in a notebook: escaped text, a picture, axes."""

import base64
import re

import jax.numpy as jnp
import numpy as np
import pytest

import splatop
from splatop.discover.discovered import FoundTerm
from splatop.identify.identified import Identified
from splatop.notebook import card, draw_state, new_axes


def pictures(html):
    return [
        base64.b64decode(found)
        for found in re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    ]


def identified(**changes):
    values = {
        "method": "weak",
        "estimates": {"D": 0.5, "v": -2.0},
        "standard_errors": {"D": 0.1, "v": np.inf},
        "intervals": {"D": (0.3, 0.7), "v": (-np.inf, np.inf)},
        "known": {},
        "frames": 3,
        "relative_residual": 0.1,
        "noise_level": 0.0,
        "condition_number": 1.0,
    }
    return Identified(**{**values, **changes})


def test_text_is_escaped():
    made = card("<b>", {"a & b": "<script>"}, notes=['"quoted" <i>'])
    assert "<script>" not in made
    assert "<i>" not in made
    assert "&lt;script&gt;" in made
    assert "a &amp; b" in made


def test_identified_shows_intervals_and_doubt():
    html = identified(warnings=("D < 0?",), trusted=False)._repr_html_()
    assert "not trusted" in html
    assert "D &lt; 0?" in html
    assert "unbounded" in html
    (picture,) = pictures(html)
    assert picture.startswith(b"\x89PNG")
    axes = identified().plot()
    drawn = [line.get_xdata() for line in axes.get_lines()]
    # The interval of D, 0.3 to 0.7 about 0.5, is 0.6 to 1.4 of it; v has none.
    np.testing.assert_allclose(drawn[0], [0.6, 1.4])
    assert len(drawn) == 3
    assert [t.get_text() for t in axes.get_yticklabels()] == ["D = 0.5", "v = -2"]


def test_discovered_shows_the_evidence():
    term = FoundTerm((("u", "u^3"),), -1.0, 0.01, -1.02, -0.98, without=0.8, support=1.0)
    found = splatop.Discovered(
        equation="dt(u) = -u^3",
        named="dt(u) = -u^3",
        terms=(term,),
        trusted=True,
        warnings=(),
        alternatives=(),
        relative_residual=0.01,
        noise_level=0.0,
        candidates=3,
        frames=4,
        method="weak",
    )
    axes = found.plot()
    assert [bar.get_width() for bar in axes.patches] == [0.8]
    html = found._repr_html_()
    assert "dt(u) = -u^3" in html
    assert pictures(html)


def test_own_axes_are_used_and_returned():
    axes = new_axes()
    assert identified().plot(axes) is axes


def test_a_field_stands_upright():
    """x to the right and y upwards, between the ends of the box; dots at scattered points."""
    grid = splatop.Grid((4, 2), (2.0, 1.0), (1.0, 0.0))
    values = np.arange(8.0).reshape(4, 2)
    image = draw_state(new_axes(), values, grid).images[0]
    np.testing.assert_array_equal(image.get_array(), values.T)
    assert list(image.get_extent()) == [1.0, 3.0, 0.0, 1.0]
    assert image.origin == "lower"
    places = splatop.Points.of(np.array([[0.1, 0.2], [0.5, 0.6], [0.9, 0.3]]))
    dots = draw_state(new_axes(), np.ones(3), places).collections[0]
    np.testing.assert_allclose(dots.get_offsets(), places.places)


@pytest.mark.slow
def test_fitted_and_model_show_themselves():
    """Heat between cold walls: the curve that is drawn is the analytic one."""
    x, t = np.linspace(0, 1, 33), 0.01 * np.arange(12)
    waves = [
        a * np.exp(-((k * np.pi) ** 2) * 0.1 * t)[:, None] * np.sin(k * np.pi * x)
        for a, k in ((1.0, 1), (0.5, 2), (0.7, 3))
    ]
    data = np.stack([waves[0] + waves[1], waves[0] - waves[1], waves[0] + waves[2]] * 2)
    surrogate = splatop.fit(
        data[:, :, None].astype(np.float32),
        "dt(u) = D*d2x(u)",
        coefficients={"D": 0.1},
        dt=0.01,
        lengths=(1.0,),
        boundary="x: u = 0",
        sampling="ends",
        preset="smoke",
        settings={"phases": ((0, 2),), "warmup": 1},
    )
    truth, predicted = surrogate.plot().get_lines()
    np.testing.assert_allclose(predicted.get_ydata(), truth.get_ydata(), atol=1e-3)
    np.testing.assert_allclose(predicted.get_xdata(), x, atol=1e-6)
    html = surrogate._repr_html_()
    assert "dt(u) = D*d2x(u)" in html
    assert pictures(html)
    assert "splatop model" in surrogate.model._repr_html_()
    start = jnp.asarray(data[0, 0][None], jnp.float32)
    drawn = surrogate.model.plot(start, steps=3).get_lines()[0].get_ydata()
    np.testing.assert_allclose(drawn, data[0, 3], atol=1e-3)
    with pytest.raises(splatop.SplatopError, match="field"):
        surrogate.plot("w")
