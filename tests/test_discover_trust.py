"""What makes an equation found trusted or not, on exact solutions."""

import sys

import numpy as np
import pytest

from splatop import discover
from splatop.data import ArrayTrajectories
from splatop.discover.candidates import Candidate, parse_terms
from splatop.discover.discovering import _surer, _without_vague
from splatop.discover.evidence import Choice
from splatop.discover.refine import Refined, seconds_for_noisy, slowness
from splatop.discover.rivals import _as_good
from splatop.discover.task import Task
from splatop.grid import Grid

DT = 0.05
X = 2 * np.pi * np.arange(64) / 64
T = DT * np.arange(61)[:, None]
MODES = [(k, *np.random.default_rng((7, k)).uniform(0.3, 1.0, 2)) for k in range(1, 6)]

POWERS = ("", "u*", "u^2*")


def noisy(u, level):
    return u + level * u.std() * np.random.default_rng(0).normal(size=u.shape)


def found_in(frames, text="dt(u) = ?", **options):
    frames = frames[:, None] if frames.ndim == 2 else frames
    return discover(frames, text, dt=DT, lengths=2 * np.pi, **{"budget": 0.0, **options})


def test_a_clean_set_that_leaves_half_of_the_change_is_no_rival():
    """Though modes beyond the band could make anything of its products of many factors."""
    full = np.array([[1.0, 0.7, 1.0], [0.7, 1.0, 0.7], [1.0, 0.7, 1.0]])
    full[:2, :2] += 1e-6 * np.eye(2)
    hidden = np.diag([0.0, 10.0, 0.0])[None]
    one = full[None, None]
    task = Task(one, 0 * one[0], np.full((1, 1), 50.0), hidden, 0 * hidden)
    assert task.clean
    assert not _as_good(task, np.ones(1), other=(1,), own=(0,))
    assert _as_good(task, np.ones(1), other=(0,), own=(0,))


def test_all_powers_of_a_field_may_be_a_series_cut_short():
    """u_t = 0.3 exp(-2u) is a cubic polynomial as far as 1 % of noise lets one see."""
    start = 0.5 * np.cos(X) + 0.3 * np.sin(2 * X + 1)
    u = noisy(0.5 * np.log(np.exp(2 * start) + 0.6 * T), 0.01)
    found = found_in(u, terms="1, u, u^2, u^3, dx(u), d2x(u)")
    assert {term.text for term in found.terms} == {"1", "u", "u^2", "u^3"}
    assert not found.trusted
    assert any("series of another function" in text for text in found.warnings)
    # The function itself, if it is among the candidates, needs no others.
    right = found_in(u, terms="1, u, u^2, u^3, dx(u), d2x(u), exp(-2*u)")
    assert [term.text for term in right.terms] == ["exp(-2*u)"]
    assert right.terms[0].coefficient == pytest.approx(0.3, rel=0.01)
    assert not any("series" in text for text in right.warnings)


def test_a_fractional_laplacian_is_no_sum_of_whole_ones():
    """exp(-0.3 k^1.5 t): u, u_xx and u_xxxx leave a percent of the change, which noise does not."""
    u = sum(a * np.exp(-0.3 * k**1.5 * T) * np.cos(k * X + 9 * p) for k, a, p in MODES)
    found = found_in(noisy(u, 0.003), terms="u, dx(u), d2x(u), d3x(u), d4x(u), u^2, u*dx(u)")
    assert {term.text for term in found.terms} == {"u", "d2x(u)", "d4x(u)"}
    assert not found.trusted
    assert any("unexplained" in text for text in found.warnings)


def test_what_finite_differences_add_is_named():
    """u_t = (u(x+h) - 2u + u(x-h))/h² is u_xx + h²/12 u_xxxx: the second is the solver's."""
    h = 2 * np.pi / 256
    rate = {k: -(2 - 2 * np.cos(k * h)) / h**2 for k, _, _ in MODES}
    u = sum(a * np.exp(0.3 * rate[k] * T) * np.cos(k * X + 9 * p) for k, a, p in MODES)
    found = found_in(u, terms="u, dx(u), d2x(u), d3x(u), d4x(u), u^2, u*dx(u)")
    assert {term.text for term in found.terms} == {"d2x(u)", "d4x(u)"}
    assert found.terms[1].coefficient == pytest.approx(0.3 * h**2 / 12, rel=0.01)
    assert not found.trusted
    assert any("error of a solver" in text for text in found.warnings)


@pytest.mark.parametrize(("terms", "calls"), [("1, u, u^2", 0), ("u, dx(u), d2x(u)", 2)])
def test_terms_are_followed_in_time_where_none_is_missing(monkeypatch, terms, calls):
    asked = []

    def refined(question, terms, start, *_, **__):
        asked.append(len(terms))
        some = np.abs(start)
        first = (0,) if len(asked) == 1 else ()
        return Refined(start, some, some, 0.0, 0.0, "flow", True, 61, first, (), ())

    monkeypatch.setattr(sys.modules["splatop.discover.discovering"], "refine", refined)
    u = 0.5 * np.log(np.exp(2 * np.cos(X)) + 0.6 * T)
    if calls == 2:
        u = sum(a * np.exp(-0.05 * k**2 * T) * np.cos(k * (X - T) + 9 * p) for k, a, p in MODES)
    found = found_in(u, terms=terms, budget=1.0)
    assert len(asked) == calls
    assert len(found.terms) == (asked[-1] if calls else 3)


def test_of_each_field_the_vaguer_half_of_the_terms_goes_at_once():
    def choice(terms):
        found = tuple(Candidate.of("u", parse_terms(t, dims=1, fields=("u",))[0]) for t in terms)
        n = len(found)
        ones = (1.0,) * n
        return Choice(found, (), np.ones(n), np.eye(n), 0.0, ones, ones, ones, 1.0, (), 0.0, ones)

    def left(*args):
        return [[str(c) for c in one.candidates] for one in _without_vague(*args)]

    both = [choice(["u", "u^2", "u^3"]), choice(["dx(u)"])]
    assert left(both, {1: 0.5, 2: 0.2}) == [["u", "u^2"], ["dx(u)"]]
    assert left(both, {0: 0.1, 1: 0.5, 2: 0.2}) == [["u^2"], ["dx(u)"]]
    assert left(both, {1: 0.5, 3: 0.2}) == [["u", "u^3"], []]
    assert left([choice(["u"]), choice(["dx(u)"])], {0: 0.5, 1: 0.2}) == [["u"], []]


def test_waves_that_turn_fast_take_longer_to_follow():
    """Fifty modes of u_t = -u_xxx on a box of 2π turn by 75³ dt in half as wide a band again; what
    damps is exact, however fast."""
    data = ArrayTrajectories(
        np.zeros((1, 3, 1, 256)), Grid((256,), (2 * np.pi,)), dt=1e-3, fields=("u",)
    )
    third, second = (
        Candidate.of("u", parse_terms(t, dims=1, fields=("u",))[0]) for t in ("d3x(u)", "d2x(u)")
    )
    assert slowness([(third, -1.0)], data, (50,)) == pytest.approx((75**3 * 1e-3 / 5) ** 2)
    assert slowness([(second, 1.0)], data, (50,)) == 1.0
    assert seconds_for_noisy(data, 10.0) == pytest.approx(10 * seconds_for_noisy(data))


def test_what_could_not_be_followed_in_time_gives_no_coefficients():
    def refined(error, noise):
        e = np.full(2, error)
        return Refined(np.ones(2), e, e, 0.0, noise, "flow", True, 16, (), (), ())

    weak, errors = np.ones(2), np.full(2, 1e-5)
    assert _surer(refined(5e-5, 0.0), weak, errors)
    assert not _surer(refined(1e-2, 0.0), weak, errors)
    assert _surer(refined(5e-5, 0.0), weak, 1e-3 * errors)
    assert not _surer(refined(5e-5, 0.01), weak, errors)
    assert _surer(refined(5e-6, 0.01), weak, errors)


def test_a_large_mean_makes_terms_look_alike():
    """Temperatures around 300 K: u u_x is 300 u_x to a hundredth."""
    u = sum(a * np.exp(-0.05 * k**2 * T) * np.cos(k * (X - T) + 9 * p) for k, a, p in MODES)
    both = ", ".join(f"{power}{slope}" for slope in ("dx(u)", "d2x(u)") for power in POWERS)
    warm = found_in(noisy(u, 0.01) + 300.0, terms=both)
    assert not warm.trusted
    assert any("u varies by little about a large mean" in text for text in warm.warnings)
