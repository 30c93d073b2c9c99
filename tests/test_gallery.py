"""The gallery's scripts run at a reduced size, and its pages are those of its results."""

import json

import numpy as np
import pytest

import gallery

# What makes a script quick, and what its error must stay below there.
SMALL = {
    "walls": ({"POINTS": 32, "STEPS": 20}, 0.02),
    "channel": ({"STEPS": 30}, 5e-5),  # fewer points do not resolve what leaves: 7e-6
    "disk": ({"POINTS": 800, "STEPS": 20}, 0.01),
    "cylinder": ({"STEPS": 8, "ANCHORS": 12}, 0.1),
    "sensors": ({"POINTS": 40, "SENSORS": 160, "AHEAD": 10}, 0.03),  # its spread tells 0.009
    "placement": ({"SENSORS": 4}, 0.8),
    "term_found": ({"FRAMES": 120}, 0.02),
    "term_learned": ({"STEPS": 20, "TRAJECTORIES": 6}, 0.1),
    "coarse": ({"FRAMES": 60}, 0.5),
    "long_run": ({"STEPS": 200}, 1.0),
    "three_d": ({"POINTS": 24, "STEPS": 8}, 1e-3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.ORDER)
def test_a_script_runs_and_draws(name, tmp_path):
    sizes, bound = SMALL[name]
    left = gallery.run(name, **sizes)
    assert 0 <= left["error"] < bound
    gallery.draw(left, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_sizes_replace_the_capitals_of_a_script(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text('"""A\n\nB."""\nA, B = 3, 4\nC = 5\nerror = A + B + C\n')
    monkeypatch.setattr(gallery, "SCRIPTS", tmp_path)
    assert gallery.run("a", B=40, C=50)["error"] == 93
    assert gallery.title_and_text("a") == ("A", "B.")


@pytest.mark.parametrize("name", gallery.ORDER)
def test_a_page_is_that_of_its_result(name):
    page = gallery.PAGES / f"{name}.md"
    assert page.read_text() == gallery.page(name)
    assert np.isfinite(json.loads((gallery.RESULTS / f"{name}.json").read_text())["error"])
    assert (gallery.PAGES / f"{name}.png").stat().st_size <= gallery.MOST_BYTES
    # Ten lines of Python and what makes the data: a page is read at a glance.
    assert len(gallery.shown_code(name).splitlines()) <= 45


def test_every_script_has_its_page():
    assert {path.stem for path in gallery.SCRIPTS.glob("*.py")} == set(gallery.ORDER) == set(SMALL)
