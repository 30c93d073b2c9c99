"""Unknown terms: what is found, what is refused, and what is not trusted."""

import numpy as np
import pytest

import splatop
import unknown_problems
from splatop.data import ArrayTrajectories
from splatop.discover import discover
from splatop.discover.bells import bells
from splatop.discover.candidates import Candidate, check_independent, independent, parse_terms
from splatop.discover.gather import gather
from splatop.discover.library import library
from splatop.discover.moments import accumulate
from splatop.discover.question import ask
from splatop.discover.search import Normal, best_sets
from splatop.discover.symmetry import Setting
from splatop.discover.task import Task
from splatop.equation import parse_equation, parse_partial_equation
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.identify import add_noise, identify, lattice_jets
from study_problems import PROBLEMS, draw
from unknown_problems import solve

DT = 0.05


def waves(frames=41, points=64, seed=0, v=0.7, diffusion=0.02, growth=0.1):
    """An exact solution of u_t = -v u_x + D u_xx + g u: eight modes on a box of side 2π."""
    generator = np.random.default_rng(seed)
    x = 2 * np.pi * np.arange(points) / points
    t = DT * np.arange(frames)[:, None]
    u = np.zeros((frames, points))
    for k in range(1, 9):
        size, phase = generator.uniform(0.2, 1.0) / k, generator.uniform(0, 2 * np.pi)
        u += size * np.exp((growth - diffusion * k**2) * t) * np.cos(k * (x - v * t) + phase)
    return u[:, None]


def found_in(frames, text="dt(u) = ?", **options):
    options = {"dt": DT, "lengths": 2 * np.pi, "budget": 0.0, **options}
    return discover(frames, text, **options)


def coefficients(found):
    return {term.text: term.coefficient for term in found.terms}


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_terms_of_an_exact_solution(noise):
    frames = waves()
    found = found_in(add_noise(frames, noise, 0) if noise else frames)
    terms = coefficients(found)
    assert set(terms) == {"u", "dx(u)", "d2x(u)"}
    # Single precision and the time bell leave 1e-4; 1 % of noise in 41 frames of 8 modes, whose
    # rates are told to 1e-2 / sqrt(41 * 16) of themselves over each 0.05, some per cent.
    tolerance = 0.05 if noise else 1e-3
    for name, true in (("u", 0.1), ("dx(u)", -0.7), ("d2x(u)", 0.02)):
        assert terms[name] == pytest.approx(true, rel=tolerance)
    again = parse_equation(found.equation, dims=1)
    assert again.coefficient_names == ()
    for term in found.terms:
        assert term.low < term.coefficient < term.high
        assert term.without > 2 * found.relative_residual


def test_refining_in_time_gains_digits():
    frames = waves(frames=21)
    found = found_in(frames, budget=2.0, terms="u, dx(u), d2x(u), u^2")
    assert found.trusted, found.warnings
    assert found.method == "flow"
    terms = coefficients(found)
    # The flow is exact for linear terms: what is left is the rounding of single precision.
    assert terms["dx(u)"] == pytest.approx(-0.7, rel=1e-5)
    assert terms["d2x(u)"] == pytest.approx(0.02, rel=1e-3)


def test_known_terms_are_taken_out_and_named_ones_found_along():
    frames = waves()
    found = found_in(frames, "dt(u) = -v*dx(u) + D*d2x(u) + ?", known={"D": 0.02})
    assert set(coefficients(found)) == {"-dx(u)", "u"}
    assert found.coefficients["v"] == pytest.approx(0.7, rel=1e-3)
    assert " - v*dx(u)" in found.named
    assert " - 0.7" in found.equation
    parse_equation(found.equation, dims=1)


def test_arguments_limit_the_candidates():
    found = found_in(waves(), "dt(u) = -0.7*dx(u) + 0.02*d2x(u) + ?(u)")
    assert set(coefficients(found)) == {"u"}
    assert found.candidates == 4  # 1, u, u², u³


def test_an_incomplete_library_is_not_trusted():
    found = found_in(waves(), terms="u, u^2, d2x(u), d3x(u)")
    assert not found.trusted
    assert any("unexplained" in text for text in found.warnings)
    assert str(found).startswith("not trusted")


def test_data_of_one_mode_cannot_tell_terms_apart():
    """A single travelling wave obeys u_t = -v u_x as well as u_t = v/k² u_xxx."""
    x = 2 * np.pi * np.arange(64) / 64
    frames = np.stack([np.cos(2 * (x - 0.7 * DT * n)) for n in range(41)])[:, None]
    assert not found_in(frames, terms="dx(u), d3x(u)").trusted


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_one_soliton_does_not_tell_advection_from_kdv(seed):
    """u = c/2 sech²(√c/2 (x - ct)) obeys u_t = -c u_x, and KdV, and every mean of the two; also
    with 1 % noise."""
    x, t = -30 + 60 * np.arange(256) / 256, 0.1 * np.arange(101)[:, None]
    frames = 1.5 / np.cosh(3**0.5 / 2 * (x + 12 - 3 * t))[:, None] ** 2
    if seed is not None:
        frames = frames + 0.01 * frames.std() * np.random.default_rng(seed).normal(
            size=frames.shape
        )
    found = found_in(frames, dt=0.1, lengths=60.0)
    assert not found.trusted
    if seed is None:
        assert "c*d3x(u) + c*u*dx(u)" in found.alternatives


def test_modes_that_turn_too_fast_between_frames_do_not_speak():
    """At 10 π/8 a frame the eighth mode seems to travel backwards."""
    found = found_in(waves(frames=61, v=10 * np.pi / 8 / 8 / DT))
    assert set(coefficients(found)) == {"u", "dx(u)", "d2x(u)"}
    # What is left of the band are five modes below 2.5 a frame, told as those of slow waves are.
    assert coefficients(found)["dx(u)"] == pytest.approx(-10 * np.pi / 64 / DT, rel=1e-3)


# Of each field of NLS the right terms, and those that once joined them: F'(u) F(u), of which modes
# that turn fast and coefficients that noise makes too small seem to consist.
NLS_TERMS = (
    "p, q, dx(p), dx(q), d2x(p), d2x(q), d3x(p), d3x(q), d4x(p), d4x(q), p*dx(p), p*dx(q), "
    "q*dx(p), q*dx(q), p^3, p^2*q, p*q^2, q^3, p^2*d2x(p), p^2*d2x(q), q^2*d2x(p), q^2*d2x(q), "
    "p*q*dx(p), q^2*dx(q), p*dx(p)*dx(q), q*dx(q)^2, p*dx(p)^2, q*dx(p)*dx(q)"
)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_complex_equation_is_found_as_two_real_ones(noise):
    """NLS with a kink where the box ends: modes beyond the 28th turn by more than 2.5 a frame."""
    problem = PROBLEMS["nls"]
    frames = add_noise(draw(problem, 0), noise, (7, 0)).astype(np.float32)
    found = found_in(
        frames,
        "dt(p) = ?; dt(q) = ?",
        terms=NLS_TERMS,
        fields=("p", "q"),
        dt=problem.dt,
        lengths=problem.lengths,
    )
    assert found.trusted, found.warnings
    true = {"d2x(q)": -0.5, "p^2*q": -1, "q^3": -1, "d2x(p)": 0.5, "p^3": 1, "p*q^2": 1}
    sides = {text: term for term in found.terms for _, text in term.sides}
    values = {text: term.coefficient for text, term in sides.items()}
    assert values == pytest.approx(true, rel=5e-3 if noise else 1e-5)
    # Of six intervals of 95 % one may miss; two do in 3 % of draws.
    assert sum(term.low <= true[text] <= term.high for text, term in sides.items()) >= 5


def test_weak_diffusion_beside_a_strong_reaction_is_found_in_clean_data():
    """Fronts that form from x² cos(πx), whose slope jumps where the box ends: the highest shells
    hold a 1e-8 of the change, and are off by a part of it, which many terms fit a little."""
    points = 512
    x = -1 + 2 * np.arange(points) / points
    frames = solve(
        (x**2 * np.cos(np.pi * x))[None],
        (2.0,),
        0.005,
        151,
        rate=lambda minus_k2: [1e-4 * minus_k2 + 5.0],
        rest=lambda u, slope: -5 * u**3,
    )
    found = found_in(frames.astype(np.float32), dt=0.005, lengths=2.0, periodic=True)
    assert found.trusted, found.warnings
    assert coefficients(found) == pytest.approx({"u": 5, "d2x(u)": 1e-4, "u^3": -5}, rel=1e-4)


def test_two_axes_merge_into_a_laplacian():
    generator = np.random.default_rng(1)
    x = 2 * np.pi * np.arange(32) / 32
    frames = np.zeros((25, 1, 32, 32))
    for n in range(25):
        t = 0.1 * n
        generator = np.random.default_rng(1)
        for _ in range(12):
            k, m = generator.integers(-3, 4, 2)
            size, phase = generator.uniform(0.3, 1), generator.uniform(0, 2 * np.pi)
            wave = np.cos(k * (x[:, None] - 0.4 * t) + m * x[None] + phase)
            frames[n, 0] += size * np.exp(-0.05 * (k**2 + m**2) * t) * wave
    found = found_in(frames, dt=0.1, lengths=[2 * np.pi, 2 * np.pi])
    terms = coefficients(found)
    assert set(terms) == {"dx(u)", "lap(u)"}
    assert terms["lap(u)"] == pytest.approx(0.05, rel=1e-3)
    assert terms["dx(u)"] == pytest.approx(-0.4, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "dt(u) = -v*dx(u)"}, "expected an equation with \\?"),
        ({"terms": "u, 2*u"}, "linearly independent, got 2\\*u, which is 2\\*u"),
        ({"terms": "lap(u), u, d2x(u)"}, "linearly independent"),
        ({"terms": "u, D*u"}, "column"),
        ({"terms": "u,, u^2"}, "column"),
        ({"symmetry": "rotated"}, "symmetry"),
        ({"degree": 9}, "expected a degree"),
        ({"velocity": ["w"]}, "field"),
        ({"known": {"D": 1.0}}, "coefficient"),
        ({"frames": 4}, "at least 5 frames"),
        ({"frames": 5}, "more data for 26 candidate"),
        ({"text": "dt(u) = sin(a*u) + ?"}, "not linear"),
    ],
)
def test_what_is_refused(options, message):
    text = options.pop("text", "dt(u) = ?")
    with pytest.raises(SplatopError, match=message):
        discover(waves(), text, **{"dt": DT, "lengths": 2 * np.pi, "budget": 0.0, **options})


@pytest.mark.parametrize("what", ["constant", "steady"])
def test_data_without_change_are_refused(what):
    frames = np.ones((20, 1, 64))
    if what == "steady":
        frames = frames * np.sin(2 * np.pi * np.arange(64) / 64)
    with pytest.raises(SplatopError, match="nothing can be learned"):
        found_in(frames)


def test_moments_are_those_of_the_weak_method():
    """The same bell and band: the same coefficients as `identify`'s weak form gives."""
    frames, grid = waves(), Grid((64,), (2 * np.pi,))
    equation = parse_equation("dt(u) = -v*dx(u) + D*d2x(u) + g*u", dims=1)
    weak = identify(equation, lattice_jets((8,), grid), frames, DT, method="weak")
    data = ArrayTrajectories(frames[None].astype(np.float32), grid, dt=DT, fields=("u",))
    question = ask(
        parse_partial_equation("dt(u) = -v*dx(u) + D*d2x(u) + g*u + ?(u)", dims=1),
        Setting.of(("u",), 1, (), None, 3, 4),
        known={},
    )
    held = gather(data, np.array([0]), len(frames), 1)
    narrow = accumulate(
        held, question.basis[0].expressions(), fields=("u",), known=None, coefficients={}
    )[0]
    task = question.task(question.groups[0], narrow)
    c, _ = task.normal(np.ones(task.rows.shape[1])).solve((0, 1, 2))
    for name, value in zip(question.groups[0].names, c, strict=True):
        assert value == pytest.approx(weak.estimates[name], rel=1e-4)


@pytest.mark.parametrize("half", [2, 3, 6, 12, 24])
def test_bells_integrate_by_parts(half):
    a, b, _ = bells(60, half)
    n = np.arange(60)
    # The narrowest bell is of order 9 in the turn per frame, 3.7e-7 at 0.6.
    for turn in (0.1, 0.3, 0.6):
        wave = np.exp(1j * turn * n)
        assert np.abs(b @ wave - 1j * turn * (a @ wave)).max() < 1e-6


def test_the_best_set_is_found_among_correlated_candidates():
    generator = np.random.default_rng(3)
    columns = generator.normal(size=(300, 12))
    columns[:, 1] = columns[:, 0] + 0.1 * columns[:, 1]  # forward selection begins with this one
    target = columns[:, 0] - columns[:, 5] + 0.5 * columns[:, 7]
    gram, moment = columns.T @ columns, columns.T @ target
    normal = Normal(gram, moment, float(target @ target), gram, 1e-6)
    assert best_sets(normal)[3] == (0, 5, 7)
    c, left = normal.solve((0, 5, 7))
    assert c == pytest.approx([1.0, -1.0, 0.5])
    assert abs(left) < 1e-9 * float(target @ target)


def test_noise_that_is_known_is_taken_out_of_the_normal_equations():
    """Noise across the signal, the same in a column and in the target: its moments just add."""
    generator = np.random.default_rng(4)
    signal, _ = np.linalg.qr(generator.normal(size=(40, 7)))
    columns, noise = signal[:, :3], 0.5 * signal[:, 3:6]
    true = np.array([1.0, -2.0, 0.5])
    seen, other = columns + noise, noise @ np.array([0.3, 0.9, -0.4])
    target = columns @ true + other
    full, share = np.column_stack([seen, target]), np.column_stack([noise, other])
    none = np.zeros((1, 4, 4))
    task = Task(
        full=(full.T @ full - share.T @ share)[None, None],
        noise=(share.T @ share)[None],
        rows=np.array([[40.0]]),
        hidden=none,
        lean=none,
    )
    c, left = task.normal(np.ones(1)).solve((0, 1, 2))
    assert c == pytest.approx(true)
    assert abs(left) < 1e-9
    assert task.left((0, 1, 2), true) == pytest.approx(0.0, abs=1e-9)


def test_what_the_equation_says_wrongly_is_put_right_and_said():
    found = found_in(waves(), "dt(u) = 0.05*d2x(u) + ?")
    assert coefficients(found)["d2x(u)"] == pytest.approx(0.02 - 0.05, rel=1e-3)
    assert any("d2x(u) is among the known terms" in warning for warning in found.warnings)


def test_data_that_stay_the_same_tell_of_no_equation():
    frames = np.repeat(waves()[:1], 40, axis=0)
    found = found_in(add_noise(frames, 0.01, 0))
    assert not found.trusted
    assert "changes by no more than noise" in found.warnings[0]
    assert "a grid too coarse" in found.warnings[0]


def test_coefficients_are_those_that_their_own_errors_call_for():
    """Fronts at rest: the rounding of what stays the same is no noise in time, and shells that hold
    next to nothing must not weigh more than what is left in them allows for."""
    frames = unknown_problems.draw("allen_cahn2d", 1)
    found = found_in(frames, terms="u, u^2, u^3, d2x(u), d2y(u)", dt=0.02, lengths=(1.0, 1.0))
    true = {"u": 1.0, "u^3": -1.0, "lap(u)": 1e-3}
    assert coefficients(found) == pytest.approx(true, rel=2e-5)
    assert all(term.low <= true[term.text] <= term.high for term in found.terms)


def test_intervals_allow_for_errors_that_shells_have_in_common():
    """A product carries the noise of one mode into all others: the error of a block of time is
    shared by its shells, of which there are as good as twelve numbers here, not 96."""
    generator = np.random.default_rng(5)
    blocks, shells, away = 12, 8, []
    none = np.zeros((shells, 2, 2))
    for _ in range(200):
        column = generator.normal(size=(blocks, shells, 30)) + 1.0
        target = 2 * column + generator.normal(size=(blocks, 1, 30))
        both = np.stack([column, target])
        full = np.einsum("ibkr,jbkr->bkij", both, both)
        task = Task(full, none, np.full((blocks, shells), 30.0), none, none)
        c, _ = task.normal(np.ones(shells)).solve((0,))
        away.append((c[0] - 2) / np.sqrt(task.covariance((0,), c, np.ones(shells))[0, 0]))
    assert 0.9 <= np.mean(np.abs(away) <= 2) <= 0.99


def test_intervals_allow_for_modes_beyond_the_band():
    """The columns lack some of what they should hold: about as much as what is known to be lost
    when a part of the band is left out. Where nothing is left, nothing lacks."""
    generator = np.random.default_rng(6)
    column, other = generator.normal(size=(2, 12, 1, 500))
    change = 0.03 * (column + other)
    seen, none = column - change, np.zeros((1, 2, 2))
    for target, least, most in ((column, 0.02, 0.1), (seen, 0.0, 1e-4)):
        both, changes = np.stack([seen, target]), np.stack([change, 0 * change])
        full, lean, hidden = (
            np.einsum("ibkr,jbkr->bkij", one, two)
            for one, two in ((both, both), (both, changes), (changes, changes))
        )
        lean, hidden = lean.sum(axis=0), hidden.sum(axis=0)
        task = Task(full, none, np.full((12, 1), 500.0), hidden, lean)
        c, _ = task.normal(np.ones(1)).solve((0,))
        error = np.sqrt(task.covariance((0,), c, np.ones(1))[0, 0])
        assert abs(c[0] - 1) <= 2 * error + 1e-12
        assert least <= 2 * error <= most


def test_symmetries_leave_what_respects_them():
    def names(dims, fields, symmetry, field="u", **options):
        setting = Setting.of(fields, dims, symmetry, options.get("velocity"), 3, 4)
        return [str(c) for c in library(setting, field)]

    whole = names(1, ("u",), [])
    assert {"1", "u", "u*dx(u)", "d4x(u)", "u^2*d2x(u)"} <= set(whole)
    assert "d5x(u)" not in whole
    higher = [str(c) for c in library(Setting.of(("u",), 1, [], None, 3, 6), "u")]
    assert set(higher) == {*whole, "d5x(u)", "d6x(u)"}
    assert "dx(u)" not in names(1, ("u",), ["mirror"])
    flipped = names(1, ("u",), ["mirror"], velocity=["u"])
    assert {"u*dx(u)", "d2x(u)", "u^3"} <= set(flipped)
    assert "u^2" not in flipped
    galilean = names(1, ("u",), ["galilei"])
    assert "u*dx(u)" in galilean
    assert not {"u", "u^2", "u*d2x(u)"} & set(galilean)
    assert "u" not in names(1, ("u",), ["conservation"])
    turned = names(2, ("w",), ["rotation"], field="w")
    assert {"lap(w)", "bilap(w)", "dy(w)*dx(invlap(w)) - dx(w)*dy(invlap(w))"} <= set(turned)
    assert "dx(w)" not in turned
    vectors = names(2, ("u", "v"), ["rotation", "galilei"])
    assert "[u: u*dx(u) + v*dy(u); v: u*dx(v) + v*dy(v)]" in vectors


def test_dependent_candidates_are_named():
    sides = parse_terms("u, u^2, lap(u), d2x(u), d2y(u)", dims=2, fields=("u",))
    candidates = [Candidate.of("u", side) for side in sides]
    assert len(independent(candidates)) == 4
    with pytest.raises(SplatopError, match=r"d2y\(u\), which is 1\*lap\(u\) \+ -1\*d2x\(u\)"):
        check_independent(candidates)


def test_it_is_part_of_the_package():
    assert splatop.discover is discover
