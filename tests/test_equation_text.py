"""Equations as text: against hand-written spectral right-hand sides, and against bad input."""

import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

from oracles import relative
from splatop.derivative import along, bilaplacian, gradient, laplacian, partial
from splatop.equation import (
    EXAMPLES,
    Advection,
    ConservativeSelfAdvection,
    CustomTerm,
    Diffusion,
    Equation,
    Reaction,
    SelfAdvection,
    format_equation,
    latex,
    latex_lines,
    parse_coefficients,
    parse_equation,
    split_coefficients,
)
from splatop.errors import SplatopError
from splatop.grid import Grid
from splatop.jets import SpectralJets
from splatop.solver import initial_condition
from splatop.spectral import BoxFilter, PassThrough

# --- right-hand sides --------------------------------------------------------------------------


class Hand:
    """Derivatives by numpy's FFT in double precision, filtered: what a hand-written code has."""

    def __init__(self, u, lengths, cutoffs):
        self.u, self.cutoffs = u, cutoffs
        self.x = Grid(u.shape[1:], lengths).coordinates()
        self.k = np.meshgrid(
            *(
                2 * np.pi * np.fft.fftfreq(n, length / n)
                for n, length in zip(u.shape[1:], lengths, strict=True)
            ),
            indexing="ij",
        )
        self.inside = np.ones(u.shape[1:], bool)
        for k, cutoff in zip(self.k, cutoffs, strict=True):
            self.inside &= np.abs(k) <= 2 * np.pi * cutoff + 1e-6

    def apply(self, channel, symbol):
        return np.fft.ifftn(np.fft.fftn(self.u[channel]) * symbol * self.inside).real

    def d(self, channel, *orders):
        symbol = 1
        for k, order in zip(self.k, orders, strict=True):
            symbol = symbol * (1j * k) ** order
        return self.apply(channel, symbol)

    def lap(self, channel):
        return self.apply(channel, -sum(k**2 for k in self.k))


def fisher_kpp(h, D, r):
    (u,) = h.u
    return [D * h.lap(0) + r * (u - u * u)]


def kuramoto_sivashinsky(h, c, a, b):
    return [-c * h.u[0] * h.d(0, 1) - a * h.d(0, 2) - b * h.d(0, 4)]


def kdv(h, c, b):
    return [-c * h.u[0] * h.d(0, 1) - b * h.d(0, 3)]


def gray_scott(h, Da, Db, F, k):
    a, b = h.u
    return [
        Da * h.lap(0) - a * b * b + F * (1 - a),
        Db * h.lap(1) + a * b * b - (F + k) * b,
    ]


def navier_stokes_vorticity(h, nu):
    kx, ky = h.k
    k2 = np.where(kx**2 + ky**2 == 0, np.inf, kx**2 + ky**2)
    # lap(psi) = w, velocity (-psi_y, psi_x)
    vx = h.apply(0, 1j * ky / k2)
    vy = h.apply(0, -1j * kx / k2)
    return [-vx * h.d(0, 1, 0) - vy * h.d(0, 0, 1) + nu * h.lap(0)]


def burgers(h, c, D):
    u, v = h.u
    return [-c * (u * h.d(i, 1, 0) + v * h.d(i, 0, 1)) + D * h.lap(i) for i in range(2)]


def fitzhugh_nagumo(h, D, eps, g, s):
    u, w = h.u
    return [D * h.lap(0) + u - u**3 - w, eps * (u - g * w + s)]


def variable_advection(h, v, D):
    x, y = h.x
    speeds = 1 + np.sin(2 * np.pi * y) / 2, np.cos(2 * np.pi * x) / 2
    return [-v * (speeds[0] * h.d(0, 1, 0) + speeds[1] * h.d(0, 0, 1)) + D * h.lap(0)]


BY_HAND = {
    f.__name__: f
    for f in (
        fisher_kpp,
        kuramoto_sivashinsky,
        kdv,
        gray_scott,
        navier_stokes_vorticity,
        burgers,
        fitzhugh_nagumo,
        variable_advection,
    )
}


def state_of(name):
    example = EXAMPLES[name]
    grid = Grid(example.points, example.lengths)
    channels = len(example.equation.fields)
    return initial_condition(example.initial, grid, channels=channels, key=jax.random.key(3))


def tendency(equation, jets, u, coefficients):
    def evaluate(u):
        return equation(jets(u, equation.derivatives(u.ndim - 1)), coefficients)

    return jax.jit(evaluate)(u)


def test_every_example_has_a_hand_written_twin():
    assert set(BY_HAND) == set(EXAMPLES)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("name", EXAMPLES)
def test_right_hand_side_is_the_hand_written_one(name, double):
    """Float32: rounding 6e-8 of the state, times the symbol at the cutoff over the tendency's
    size, which is below 50 for all examples with a quarter of the modes: 3e-6. Float64: 1e-14
    likewise."""
    example = EXAMPLES[name]
    u = state_of(name)
    cutoffs = tuple(
        n // 8 / length for n, length in zip(example.points, example.lengths, strict=True)
    )
    truth = BY_HAND[name](Hand(u, example.lengths, cutoffs), **example.coefficients)
    with jax.enable_x64(double):
        state = jnp.asarray(u, jnp.float64 if double else jnp.float32)
        jets = SpectralJets(example.lengths, BoxFilter(cutoffs))
        equation = example.equation
        found = tendency(equation, jets, state, example.coefficients)
        assert found.dtype == state.dtype
        assert relative(found, np.stack(truth)) < (1e-12 if double else 1e-5)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_right_hand_side_is_linear_in_the_columns(name):
    """What identification regresses on: each coefficient times the sum of its parts."""
    example = EXAMPLES[name]
    equation = example.equation
    jets = SpectralJets(example.lengths, PassThrough())

    @jax.jit
    def both(u):
        jet = jets(u, equation.derivatives(example.dims))
        columns = equation.columns(jet, example.coefficients)
        return equation(jet, example.coefficients), [
            (1.0 if term.coefficient is None else example.coefficients[term.coefficient]) * part
            for term in equation.terms
            for part in columns[term.name]
        ]

    whole, parts = both(jnp.asarray(state_of(name), jnp.float32))
    np.testing.assert_allclose(sum(parts), whole, rtol=1e-5, atol=1e-6)


# Each text beside the pointwise expression whose spectral derivative it must be. The fields hold
# modes up to 2 on 48 points, so products and functions are resolved to rounding (1e-13 of
# exp(sin) at mode 24), and derivatives of fourth order amplify it by (2 pi 24)^4 / (2 pi 4)^4.
EXPANDED_2D = {
    "dx(u^2)": lambda u, v, x, y, d: d(u**2, 1, 0),
    "dx(log(2 + u))": lambda u, v, x, y, d: d(np.log(2 + u), 1, 0),
    "exp(0.3*log(2 + u))": lambda u, v, x, y, d: (2 + u) ** 0.3,
    "d2y(u*v)": lambda u, v, x, y, d: d(u * v, 0, 2),
    "dx(dy(u*v))": lambda u, v, x, y, d: d(u * v, 1, 1),
    "lap(u^3)": lambda u, v, x, y, d: d(u**3, 2, 0) + d(u**3, 0, 2),
    "bilap(u^2)": lambda u, v, x, y, d: d(u**2, 4, 0) + 2 * d(u**2, 2, 2) + d(u**2, 0, 4),
    "div(u*grad(v))": lambda u, v, x, y, d: d(u * d(v, 1, 0), 1, 0) + d(u * d(v, 0, 1), 0, 1),
    "div(vec(u*v, u^2))": lambda u, v, x, y, d: d(u * v, 1, 0) + d(u**2, 0, 1),
    "lap(sin(u))": lambda u, v, x, y, d: d(np.sin(u), 2, 0) + d(np.sin(u), 0, 2),
    "dy(cos(u)*v)": lambda u, v, x, y, d: d(np.cos(u) * v, 0, 1),
    "dx(tanh(u/4)) * exp(v)": lambda u, v, x, y, d: d(np.tanh(u / 4), 1, 0) * np.exp(v),
    "dx(sqrt(3 + u))": lambda u, v, x, y, d: d(np.sqrt(3 + u), 1, 0),
    "d2x(u/(4 + u*v))": lambda u, v, x, y, d: d(u / (4 + u * v), 2, 0),
    "dx(dx(u)/(4 + v)^2)": lambda u, v, x, y, d: d(d(u, 1, 0) / (4 + v) ** 2, 1, 0),
    "d2x(sqrt(4 + u))": lambda u, v, x, y, d: d(np.sqrt(4 + u), 2, 0),
    "dx(abs(2 + u))": lambda u, v, x, y, d: d(2 + u, 1, 0),
    "dx(exp(sin(2*pi*x))*u)": lambda u, v, x, y, d: d(np.exp(np.sin(2 * np.pi * x)) * u, 1, 0),
    "d2x(u/(2 + cos(2*pi*x)))": lambda u, v, x, y, d: d(u / (2 + np.cos(2 * np.pi * x)), 2, 0),
    "dx(u)^2 - dy(v)^3": lambda u, v, x, y, d: d(u, 1, 0) ** 2 - d(v, 0, 1) ** 3,
    "dot(grad(u), grad(v))": lambda u, v, x, y, d: (
        d(u, 1, 0) * d(v, 1, 0) + d(u, 0, 1) * d(v, 0, 1)
    ),
    "invlap(2*lap(u) - v)": lambda u, v, x, y, d: 2 * (u - u.mean()) - d(v, 0, 0, inverse=1),
    "dx(d2y(lap(u)))": lambda u, v, x, y, d: d(u, 3, 2) + d(u, 1, 4),
    "u^0 + sin(2*pi*y)^2": lambda u, v, x, y, d: 1 + np.sin(2 * np.pi * y) ** 2 + 0 * u,
    "-u^2^1 / 2 * -v": lambda u, v, x, y, d: u**2 * v / 2,
    "4^(1/2)*u + 2^-2*v**2": lambda u, v, x, y, d: 2 * u + v**2 / 4,
}


@pytest.mark.parametrize("text", EXPANDED_2D)
def test_derivatives_are_expanded_by_the_product_and_chain_rules(text):
    n = 48
    grid = Grid((n, n), (1.0, 1.0))
    x, y = grid.coordinates()
    tau = 2 * np.pi
    u = 0.3 * np.sin(tau * x) * np.cos(2 * tau * y) + 0.2 * np.cos(tau * (x + y)) + 0.1
    v = 0.4 * np.cos(tau * (2 * x - y)) + 0.1 * np.sin(tau * y)
    kx, ky = np.meshgrid(*(tau * np.fft.fftfreq(n, 1 / n),) * 2, indexing="ij")

    def d(field, p, q, inverse=0):
        symbol = (1j * kx) ** p * (1j * ky) ** q
        if inverse:
            symbol = -symbol / np.where(kx**2 + ky**2 == 0, np.inf, kx**2 + ky**2)
        return np.fft.ifft2(np.fft.fft2(field) * symbol).real

    equation = parse_equation(f"dt(u) = {text}; dt(v) = 0", dims=2)
    with jax.enable_x64(True):
        jets = SpectralJets((1.0, 1.0), PassThrough())
        found = np.asarray(tendency(equation, jets, jnp.asarray(np.stack([u, v])), {}))
    truth = EXPANDED_2D[text](u, v, x, y, d)
    assert relative(found[0], truth) < 1e-9
    assert not found[1].any()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_every_dimension_and_axis(dims):
    """`Σ_i w_i d_i` of a plane wave, with an anisotropic box and other points per axis."""
    axes = "xyz"[:dims]
    text = " + ".join(f"w{a}*d{a}(u) + d3{a}(u)/100" for a in axes) + " - lap(u) + bilap(u)/1000"
    equation = parse_equation(f"dt(u) = {text}", dims=dims)
    lengths, points = (1.0, 2.0, 0.5)[:dims], (12, 15, 10)[:dims]
    k = 2 * np.pi * np.array([1, 2, 1][:dims]) / np.array(lengths)
    grid = Grid(points, lengths)
    phase = sum(ki * xi for ki, xi in zip(k, grid.coordinates(), strict=True))
    weights = {f"w{a}": 1.0 + i for i, a in enumerate(axes)}
    with jax.enable_x64(True):
        u = jnp.asarray(np.sin(phase))[None]
        found = tendency(equation, SpectralJets(lengths, PassThrough()), u, weights)[0]
    odd = sum((1.0 + i) * ki - ki**3 / 100 for i, ki in enumerate(k))
    even = np.sum(k**2) + np.sum(k**2) ** 2 / 1000
    np.testing.assert_allclose(found, odd * np.cos(phase) + even * np.sin(phase), rtol=1e-9)


# --- terms -------------------------------------------------------------------------------------


def summary(text, dims=2, **options):
    equation = parse_equation(text, dims=dims, **options)
    return [(t.name, t.coefficient, t.degree, t.inner_coefficients) for t in equation.terms]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (
            "dt(u) = -v*(dx(u)+dy(u)) + D*lap(u) + r*(u - u^3)",
            [
                ("advection", "v", 1, ()),
                ("diffusion", "D", 1, ()),
                ("reaction", "r", 3, ()),
            ],
        ),
        (
            EXAMPLES["gray_scott"].text,
            [
                ("diffusion_Da", "Da", 1, ()),
                ("reaction", None, 3, ()),
                ("reaction_F", "F", 1, ()),
                ("diffusion_Db", "Db", 1, ()),
                ("reaction_k", "k", 1, ()),
            ],
        ),
        (
            EXAMPLES["burgers"].text,
            [("self_advection", "c", 2, ()), ("diffusion", "D", 1, ())],
        ),
        (
            "dt(u) = -u*dx(u) - lap(u) - bilap(u) + d3x(u) + sin(x)",
            [
                ("self_advection", None, 2, ()),
                ("diffusion", None, 1, ()),
                ("hyperdiffusion", None, 1, ()),
                ("dispersion", None, 1, ()),
                ("forcing", None, 0, ()),
            ],
        ),
        (
            "dt(u) = div(D*u*grad(u)) + k*exp(-u) + dx(u)^2",
            [
                ("nonlinear_diffusion", "D", 2, ()),
                ("reaction", "k", float("inf"), ()),
                ("gradient_nonlinearity", None, 2, ()),
            ],
        ),
        # Two coefficients in a product: the one in most products leads, the other is inner.
        (
            "dt(u) = eps*(u - g*u^2 + s)",
            [("reaction", "eps", 2, ("s", "g"))],
        ),
        ("dt(u) = b*a*u", [("reaction", "a", 1, ("b",))]),
        # Not linear in its coefficient: none in front.
        ("dt(u) = a^2*lap(u)", [("diffusion", None, 1, ("a",))]),
        ("dt(u) = u/a", [("reaction", None, 1, ("a",))]),
        ("dt(u) = a*sin(a*u)", [("reaction", None, float("inf"), ("a",))]),
        # A factor that varies in space multiplies as another field would; forcing does not.
        ("dt(u) = -v*sin(y)*dx(u)", [("advection", "v", 2, ())]),
        ("dt(u) = k*cos(x)*u^2 + f*cos(x)", [("reaction", "k", 3, ()), ("forcing", "f", 0, ())]),
        # Mixed kinds under one coefficient take its name.
        ("dt(u) = q*(lap(u) + u) + lap(u)", [("q", "q", 1, ()), ("diffusion", None, 1, ())]),
    ],
)
def test_terms_have_names_coefficients_and_degrees(text, terms):
    assert summary(text) == terms


def test_an_unknown_coefficient_comes_to_the_front():
    assert summary("dt(u) = b*a*u", unknown=["b"]) == [("reaction", "b", 1, ("a",))]


def test_a_velocity_has_one_part_per_direction_and_a_reaction_one():
    equation = parse_equation("dt(u) = -v*(dx(u) + 2*dy(u)) + r*(u - u^2)", dims=2)
    jet = SpectralJets((1.0, 1.0), PassThrough())(
        jnp.asarray(
            initial_condition("fourier", Grid.unit(16, 2), channels=1, key=jax.random.key(0)),
            jnp.float32,
        ),
        equation.derivatives(2),
    )
    columns = equation.columns(jet, {})
    dx, dy = gradient(2)
    along_x, along_y = columns["advection"]
    np.testing.assert_allclose(along_x, -jet[dx], rtol=1e-6)
    np.testing.assert_allclose(along_y, -2 * jet[dy], rtol=1e-6)
    assert len(columns["reaction"]) == 1


def test_compositions_are_one_derivative_each():
    def needs(text, dims=2):
        return parse_equation(text, dims=dims).derivatives(dims)

    assert needs("dt(u) = a*lap(u) + b*bilap(u) + u") == {laplacian(2), bilaplacian(2)}
    assert needs("dt(u) = dx(dx(u)) + d2y(u)") == {laplacian(2)}
    assert needs("dt(u) = lap(lap(u))", dims=3) == {bilaplacian(3)}
    assert needs("dt(u) = d4x(u) + 2*d2x(d2y(u)) + d4y(u)") == {bilaplacian(2)}
    assert needs("dt(u) = dx(dy(u)) + d2x(u)") == {partial(1, 1), partial(2, 0)}
    assert needs("dt(u) = lap(u^2)") == {laplacian(2), *gradient(2)}
    assert needs("dt(u) = dx(lap(u))") == {along(0, 2) @ laplacian(2)}
    assert needs("dt(u) = lap(u) - d2x(u) - d2y(u) + u") == set()


def test_channels_follow_the_text_or_the_data():
    text = "dt(b) = a; dt(a) = -b"
    assert parse_equation(text, dims=1).fields == ("b", "a")
    equation = parse_equation(text, dims=1, fields=["a", "b"])
    assert equation.fields == ("a", "b")
    state = jnp.stack([jnp.full(4, 2.0), jnp.full(4, 3.0)])
    jet = SpectralJets((1.0,), PassThrough())(state, equation.derivatives(1))
    np.testing.assert_allclose(equation(jet, {})[:, 0], [-3.0, 2.0])


def test_gradients_reach_coefficients_also_inside_terms():
    equation = parse_equation("dt(u) = D*lap(u) + sin(k*u)", dims=1)
    jet = SpectralJets((1.0,), PassThrough())(jnp.linspace(0, 1, 8)[None], equation.derivatives(1))

    def total(k):
        return jnp.sum(equation(jet, {"D": 0.1, "k": k}))

    slope = jax.jit(jax.grad(total))(jnp.asarray(0.7))
    np.testing.assert_allclose(slope, jnp.sum(jnp.cos(0.7 * jet.state) * jet.state), rtol=1e-5)


def test_dropping_a_term_by_name():
    equation = EXAMPLES["fisher_kpp"].equation.without("reaction")
    assert format_equation(equation) == "dt(u) = D*lap(u)"


# --- printing ----------------------------------------------------------------------------------

TEXTS = [
    *((e.text, e.dims) for e in EXAMPLES.values()),
    *((f"dt(u) = {text}; dt(v) = 0", 2) for text in EXPANDED_2D),
    ("dt(u) = a*b^2*u/(1 + c)^2 - u/(2*a) + (1 + a)^(1/2)*u + a^-0.5 + (a*b)^(3/2)", 1),
    ("dt(a) = -b; dt(b) = k*lap(a) + F*x*y*z", 3),
    ("dt(u) = lap(u)*lap(u) + lap(u)*dx(dy(u)) + d2x(u)*dx(dy(u)) + d2y(u)*dx(dy(u))", 2),
]


@pytest.mark.parametrize(("text", "dims"), TEXTS)
def test_the_normal_form_parses_to_the_same_equation(text, dims):
    equation = parse_equation(text, dims=dims)
    assert parse_equation(format_equation(equation), dims=dims) == equation


def test_normal_forms():
    def normal(text, dims=2):
        return format_equation(parse_equation(text, dims=dims))

    assert normal("dt(u)=-v*(dx(u)+dy(u))+D*lap(u)") == "dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)"
    assert normal("dt(u) = r*u*(1-u)") == "dt(u) = r*(u - u^2)"
    assert normal("dt(u) = dx(u^2)/2") == "dt(u) = u*dx(u)"
    assert normal("dt(u) = d2x(u)*D + D*dy(dy(u))") == "dt(u) = D*lap(u)"
    assert normal("dt(u) = -1e-3*u/a**2 ; dt(v) = 0;") == "dt(u) = -0.001*u/a^2; dt(v) = 0"


def test_built_in_terms_have_a_text():
    velocity = (Advection(), Diffusion(), Reaction((0.0, 1.0, 0.0, -1.0)))
    assert format_equation(Equation(velocity), dims=3) == (
        "dt(u) = -v*(dx(u) + dy(u) + dz(u)) + D*lap(u) + r*(u - u^3)"
    )
    assert format_equation(Equation((SelfAdvection(),), ("u", "v"))) == (
        "dt(u) = -c*(u*dx(u) + v*dy(u)); dt(v) = -c*(u*dx(v) + v*dy(v))"
    )
    own = CustomTerm(lambda jet, c: jet.state, frozenset(), name="mine", coefficient="q")
    assert format_equation(Equation((own,))) == "dt(u) = q*<mine>"
    assert latex(Equation((Diffusion("nu"),))) == r"\partial_t u = \nu\,\Delta u"


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        (
            (Advection(), Diffusion()),
            "dt(u) = -v*(dx(u)+dy(u)) + D*lap(u); dt(v2) = -v*(dx(v2)+dy(v2)) + D*lap(v2)",
        ),
        (
            (SelfAdvection(), Diffusion()),
            "dt(u) = -c*dot(vec(u, v2), grad(u)) + D*lap(u); "
            "dt(v2) = -c*dot(vec(u, v2), grad(v2)) + D*lap(v2)",
        ),
        (
            (ConservativeSelfAdvection(), Reaction((0.5, 0.0, 2.0))),
            "dt(u) = -c/2*div(vec(u*u, u*v2)) + r*(0.5 + 2*u^2); "
            "dt(v2) = -c/2*div(vec(v2*u, v2*v2)) + r*(0.5 + 2*v2^2)",
        ),
    ],
)
def test_built_in_terms_and_their_text_are_the_same_equation(terms, text):
    built_in = Equation(terms, ("u", "v2"))
    written = parse_equation(text, dims=2)
    assert format_equation(built_in) == format_equation(written)
    assert written.coefficient_names == built_in.coefficient_names
    assert written.term_names == built_in.term_names
    u = initial_condition("fourier", Grid.unit(16, 2), channels=2, key=jax.random.key(0))
    jet = SpectralJets((1.0, 1.0), PassThrough())(
        jnp.asarray(u, jnp.float32), [*gradient(2), laplacian(2)]
    )
    values = {"v": 0.3, "D": 0.01, "c": 0.7, "r": 0.2}
    np.testing.assert_allclose(written(jet, values), built_in(jet, values), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("text", "dims"), TEXTS)
def test_latex_can_be_drawn(text, dims):
    equation = parse_equation(text, dims=dims)
    parser = MathTextParser("agg")
    for line in latex_lines(equation):
        parser.parse(f"${line}$")
    assert latex(equation).count("{") == latex(equation).count("}")


def test_latex_of_fractions_functions_and_names():
    equation = parse_equation("dt(u_1) = D0*sqrt(a)*lap(u_1)/tau^2 - 1e-6*abs(u_1)", dims=2)
    assert latex(equation) == (
        r"\partial_t u_{\mathrm{1}} = \frac{D_{\mathrm{0}}\,\sqrt{a}\,\Delta u_{\mathrm{1}}}"
        r"{\tau^{2}} - 10^{-6}\,\left|u_{\mathrm{1}}\right|"
    )


# --- bad input ---------------------------------------------------------------------------------

BAD = [
    # text, dimensions, column counted from 1, part of the message
    ("dt(u) = lapl(u)", 2, 9, "did you mean 'lap'"),
    ("dt(u) = sinn(u)", 2, 9, "did you mean 'sin'"),
    ("dt(u) = D*(lap(u)", 2, 11, "never closed"),
    ("dt(u) = lap(u))", 2, 15, "nothing is open"),
    ("dt(u) = sin(", 2, 13, "end of the equation"),
    ("lap(u)", 2, 1, "left-hand side"),
    ("d2t(u) = lap(u)", 2, 1, "name the rate"),
    ("dt(u) = u; dt(dt(v)) = lap(v)", 2, 12, "name the rate"),
    ("u = lap(u)", 2, 1, "left-hand side"),
    ("", 2, 1, "left-hand side"),
    (";", 2, 1, "left-hand side"),
    ("dt(u) =", 2, 8, "end of the equation"),
    ("dt(2) = u", 2, 4, "not a name"),
    ("dt(x) = x", 2, 4, "a coordinate"),
    ("dt(sin) = 1", 2, 4, "a function"),
    ("dt(u) = u; dt(u) = 2*u", 2, 15, "a second"),
    ("dt(u) = lap(v)", 2, 9, "v has no equation"),
    ("dt(u) = D*grad(2)", 2, 11, "expected a field inside grad"),
    ("dt(u) = dz(u)", 2, 9, "2D equation"),
    ("dt(u) = dy(u)", 1, 9, "1D equation"),
    ("dt(u) = z*u", 2, 9, "2D equation"),
    ("dt(u) = 1/(u - u)", 2, 10, "division by zero"),
    ("dt(u) = u^-0.5", 2, 10, "sqrt"),
    ("dt(u) = u^0.5", 2, 10, "sqrt"),
    ("dt(u) = u^1000", 2, 10, "exponents up to 16"),
    ("dt(u) = (u^9)^9", 2, 14, "exponents up to 16"),
    ("dt(u) = 9^9^9^9*u", 2, 12, "exponents up to 16"),
    ("dt(u) = u^u", 2, 11, "number as exponent"),
    ("dt(u) = u^(pi)", 2, 11, "number as exponent"),
    ("dt(u) = u/0", 2, 10, "division by zero"),
    ("dt(u) = u/(a - a)", 2, 10, "division by zero"),
    ("dt(u) = (-2)^(1/2)*u", 2, 13, "positive"),
    ("dt(u) = sqrt(-1)*u", 2, 9, "finite value"),
    ("dt(u) = exp(1000)*u", 2, 9, "finite value"),
    ("dt(u) = 1e999*u", 2, 9, "finite numbers"),
    ("dt(u) = u.__class__", 2, 10, "attribute access"),
    ("dt(u) = __import__('os')", 2, 20, "strings are not part"),
    ("dt(u) = __import__(u)", 2, 9, "unknown function"),
    ("import os", 2, 1, "left-hand side"),
    ("dt(u) = u; import os", 2, 12, "left-hand side"),
    ("dt(u) = 'a'", 2, 9, "unexpected character"),
    ("dt(u) = u[0]", 2, 10, "indexing"),
    ("dt(u) = Δu", 2, 9, "write lap(u)"),
    ("dt(u) = 2u", 2, 10, "written with *"),
    ("dt(u) = u v", 2, 11, "written with *"),
    ("dt(u) = u(1 - u)", 2, 9, "written with *"),
    ("dt(u) = u * ", 2, 12, "end of the equation"),
    ("dt(u) = u * * u", 2, 13, "expected a name"),
    ("dt(u) = u, u", 2, 10, "unexpected ','"),
    ("dt(u) = u = u", 2, 11, "';'"),
    ("dt(u) = sin*u", 2, 9, "sin(...)"),
    ("dt(u) = sin(u, u)", 2, 9, "1 argument"),
    ("dt(u) = sin()*u", 2, 9, "1 argument"),
    ("dt(u) = dt(u)", 2, 9, "left-hand side only"),
    ("dt(u) = grad(u)", 2, 9, "got a vector"),
    ("dt(u) = u + grad(u)", 2, 11, "got a vector"),
    ("dt(u) = grad(u)*grad(u)", 2, 16, "got a vector"),
    ("dt(u) = div(u)", 2, 9, "vec(a, b)"),
    ("dt(u) = div(vec(u, u, u))", 2, 9, "2 component"),
    ("dt(u) = dot(grad(u), vec(u, u, u))", 2, 9, "one length"),
    ("dt(u) = dot(u, u)", 2, 9, "two vectors"),
    ("dt(u) = sin(grad(u))", 2, 9, "got a vector"),
    ("dt(u) = invlap(u^2)", 2, 9, "fields times constants"),
    ("dt(u) = d13x(u)", 2, 9, "order 1 to 12"),
    ("dt(u) = d0x(u)", 2, 9, "order 1 to 12"),
    ("dt(u) = d8x(d8x(u))", 2, 9, "order up to 12"),
    ("dt(u) = u - u", 2, 4, "nothing changes"),
    ("dt(u) = " + "(" * 100 + "u" + ")" * 100, 2, 49, "levels of nesting"),
    ("dt(u) = " + "u^" * 100 + "2", 2, 90, "levels of nesting"),
    ("dt(u) = " + "sin(" * 10 + "u" + ")" * 10, 2, 21, "within one another"),
]


@pytest.mark.parametrize(("text", "dims", "column", "message"), BAD)
def test_bad_input_is_refused_with_its_column(text, dims, column, message):
    with pytest.raises(SplatopError) as caught:
        parse_equation(text, dims=dims)
    said = str(caught.value)
    assert message in said
    _, line, caret = said.split("\n")
    assert said.startswith(f"column {column}:")
    assert caret.strip() == "^"
    assert len(caret) <= len(line) + 1


def test_the_caret_stands_below_the_place_in_its_line():
    with pytest.raises(SplatopError) as caught:
        parse_equation("dt(u) = lap(u);\ndt(v) = lapp(v)", dims=2)
    assert str(caught.value).startswith("column 9 of line 2:")
    _, line, caret = str(caught.value).split("\n")
    assert line[caret.index("^") :].startswith("lapp")


def test_very_long_text_is_refused():
    with pytest.raises(SplatopError, match="10000 characters"):
        parse_equation("dt(u) = " + "u+" * 10_000 + "u", dims=2)
    with pytest.raises(SplatopError, match="1, 2 or 3 dimensions"):
        parse_equation("dt(u) = u", dims=4)


def test_coefficients_that_are_limited_get_a_suggestion():
    with pytest.raises(SplatopError, match="did you mean 'diff'"):
        parse_equation("dt(u) = dif*lap(u)", dims=2, coefficients=["diff", "v"])
    assert parse_equation("dt(u) = v*lap(u)", dims=2, coefficients=["v"])


def test_fields_of_the_data_must_match():
    with pytest.raises(SplatopError, match=r"column 1: unknown field of the data 'u'"):
        parse_equation("dt(u) = lap(u)", dims=2, fields=["v"])
    with pytest.raises(SplatopError, match=r"valid names are pde_1-2; read it as u: --fields u=pd"):
        parse_equation("dt(u) = lap(u)", dims=2, fields=["pde_1-2"])  # no name of an equation
    with pytest.raises(SplatopError, match=r"got none for b: add '; dt\(b\) = ...'"):
        parse_equation("dt(a) = lap(a)", dims=2, fields=["a", "b"])


def test_a_state_of_another_shape_is_refused():
    equation = parse_equation("dt(a) = lap(a); dt(b) = a", dims=2)
    with pytest.raises(SplatopError, match="expected a 2D field"):
        equation.derivatives(1)
    jets = SpectralJets((1.0, 1.0), PassThrough())
    jet = jets(jnp.zeros((3, 8, 8)), equation.derivatives(2))
    with pytest.raises(SplatopError, match="channels a, b"):
        equation(jet, {})


def test_coefficients_as_text():
    assert parse_coefficients("v=0.025, D = 2e-6") == {"v": 0.025, "D": 2e-6}
    for text, message in [
        ("v=abc", "finite number for v, got 'abc'"),
        ("v=1,D=nan", "column 5: expected a finite number for D"),
        ("v=inf", "finite number"),
        ("v", "name=number"),
        ("", "name=number"),
        ("2=3", "name=number"),
        ("v=1,v=2", "a second"),
        ("v=1,,D=2", "name=number"),
        ("v=__import__('os')", "finite number"),
    ]:
        with pytest.raises(SplatopError, match="column") as caught:
            parse_coefficients(text)
        assert message in str(caught.value)


def test_known_and_unknown_coefficients():
    equation = parse_equation("dt(u) = -v*dx(u) + D*lap(u)", dims=1)
    assert split_coefficients(equation, {"D": 2}) == ({"D": 2.0}, ("v",))
    with pytest.raises(SplatopError, match="unknown coefficient 'd'"):
        split_coefficients(equation, {"d": 2.0})
    for wrong in ("1", None, float("nan"), True, 1j, [1.0]):
        with pytest.raises(SplatopError, match="finite number"):
            split_coefficients(equation, {"D": wrong})  # type: ignore[dict-item]


# --- documentation -----------------------------------------------------------------------------

PAGE = (Path(__file__).parent.parent / "docs" / "equations.md").read_text()


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.S))
def test_the_python_of_the_documentation_runs(block):
    exec(block, {})


def test_the_documentation_shows_every_example_and_the_error_as_it_is():
    for name, example in EXAMPLES.items():
        assert f"`{name}`" in PAGE
        assert f"| `{example.text}` |" in PAGE
    with pytest.raises(SplatopError) as caught:
        parse_equation("dt(u) = D*lapp(u)", dims=2)
    first, *picture = str(caught.value).split("\n")
    assert first.split(", conj")[0] in PAGE
    assert "\n".join(picture) in PAGE


# --- fuzzing -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_fuzzed_text_gives_an_equation_or_an_error_with_a_column():
    """10,000 random and mutated texts, 400 grammatical ones and some made to run away."""
    script = Path(__file__).with_name("fuzz_equation_text.py")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    counts = [int(n) for n in re.findall(r"(\d+) equations", run.stdout)]
    assert counts[0] > 100, run.stdout
    assert counts[1] > 200, run.stdout
