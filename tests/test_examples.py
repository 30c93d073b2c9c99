"""The example equations: generated, trained, evaluated, and compared, at reduced size."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import jax
import pytest

from splatop.equation import EXAMPLES

ROOT = Path(__file__).parent.parent
_spec = importlib.util.spec_from_file_location("examples_tool", ROOT / "tools" / "examples.py")
tool = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tool)

SMALL = replace(tool.SETTINGS[1], phases=((0, 12),), batch=4, modes=4, hidden=4, warmup=2)


def small(name):
    example = EXAMPLES[name]
    points = tuple(n // 2 for n in example.points)
    return {"points": points, "steps": 10, "counts": {"train": 4, "test": 2}}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_surrogate_beats_the_network_alone_and_is_no_worse_than_its_physics(name):
    found = tool.example_results(name, SMALL, sizes=small(name))
    for case in (found["complete"], *found["partial"].values()):
        # An operator stays only if it lowers the error of the training data; on the test data it
        # may then cost a little, after 12 steps of training.
        assert case["surrogate"] <= 1.1 * case["physics_alone"]
        assert found["complete"]["physics_alone"] <= case["physics_alone"]
    assert found["complete"]["surrogate"] < found["complete"]["fno"]
    jax.clear_caches()


def test_every_example_names_a_term_to_leave_out():
    assert set(tool.DROPPED) == set(EXAMPLES)
    for name, terms in tool.DROPPED.items():
        assert terms
        assert set(terms) <= set(EXAMPLES[name].equation.term_names)


def test_the_page_is_what_was_measured():
    results = json.loads(tool.RESULTS.read_text())
    assert list(results) == list(EXAMPLES)
    assert tool.PAGE.read_text() == tool.page(results)
    for name, held in results.items():
        assert held["equation"] == EXAMPLES[name].text
        assert held["coefficients"] == dict(EXAMPLES[name].coefficients)


@pytest.mark.parametrize(
    ("surrogate", "physics", "fno", "said"),
    [
        (1e-3, 2e-3, 1e-1, "beats both"),
        (1e-3, None, 1e-1, "beats both"),
        (2e-6, 2e-6, 1e-1, "equals its physics, which is at rounding"),
        (1e-3, 1e-3, 1e-1, "no better than its physics"),
        (2e-1, 3e-1, 1e-1, "the FNO is better"),
        (None, None, 1e-1, "the FNO is better"),
    ],
)
def test_the_verdict_follows_the_numbers(surrogate, physics, fno, said):
    case = {
        "surrogate": surrogate,
        "physics_alone": physics,
        "fno": fno,
        "operator_earned_its_place": True,
    }
    assert tool.verdict(case) == said
