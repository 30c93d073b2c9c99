"""Six equations with known coefficients and a solver of their own: data for the study of
identification.

Nothing of splatop takes part: ETDRK4 of Kassam and Trefethen (2005) in NumPy, on complex modes,
with products on twice the points, which hold three factors without aliasing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
_CIRCLE = np.exp(2j * np.pi * (np.arange(64) + 0.5) / 64)


@dataclass(frozen=True)
class Problem:
    """`text` with the values `true`, on a periodic box sampled at `points`, `frames` in time.

    `rate(ik)` multiplies each mode in du/dt and `rest(u, slope)` are the other terms, at points; a
    complex field stands for two real ones. `initial(generator, x)` draws a state. `features` are
    the equation in the words of PySINDy's weak library: for each field and coefficient, a sum of
    its features.
    """

    text: str
    true: dict[str, float]
    lengths: tuple[float, ...]
    points: tuple[int, ...]
    dt: float
    frames: int
    rate: Callable[[Array], Array]
    rest: Callable[[Array, Array], Array] | None
    initial: Callable[[np.random.Generator, Array], Array]
    features: tuple[dict[str, dict[str, float]], ...]
    fields: tuple[str, ...] = ("u",)
    skip: int = 0  # frames left out at the beginning
    substeps: int = 16


def _burgers_start(generator: np.random.Generator, x: Array) -> Array:
    centres, widths = generator.uniform(-3.5, 3.5, 3), generator.uniform(0.8, 1.2, 3)
    heights = generator.choice([-1, 1], 3) * generator.uniform(0.5, 1.0, 3)
    bumps = zip(centres, widths, heights, strict=True)
    return np.sum([h * np.exp(-(((x - c) / w) ** 2)) for c, w, h in bumps], axis=0)


def _kdv_start(generator: np.random.Generator, x: Array) -> Array:
    """Two solitons; where the box ends they differ by about 1e-4."""
    speeds = generator.uniform(0.8, 1.2), generator.uniform(0.3, 0.6)
    centres = generator.uniform(-15, -10), generator.uniform(-5, 2)
    solitons = zip(speeds, centres, strict=True)
    return np.sum([c / 2 / np.cosh(np.sqrt(c) / 2 * (x - a)) ** 2 for c, a in solitons], axis=0)


def _ks_start(generator: np.random.Generator, x: Array) -> Array:
    a, b = generator.uniform(0, 2 * np.pi, 2)
    return np.cos(x / 16 + a) * (1 + np.sin(x / 16 + b))


def _nls_start(generator: np.random.Generator, x: Array) -> Array:
    height, centre = generator.uniform(1.5, 2.2), generator.uniform(-1, 1)
    return height / np.cosh(x - centre) * np.exp(2j * np.pi / 10 * generator.integers(-2, 3) * x)


def _allen_cahn_start(generator: np.random.Generator, x: Array) -> Array:
    k = np.arange(1, 5)[:, None]
    a, b = generator.normal(size=(2, 4, 1)) / k
    u = np.sum(a * np.cos(np.pi * k * x) + b * np.sin(np.pi * k * x), axis=0)
    return 0.9 * u / np.abs(u).max()


def _waves_2d(generator: np.random.Generator, x: Array) -> Array:
    k = np.abs(np.fft.fftfreq(len(x), 1 / len(x)))
    inside = (k[:, None] <= 5) & (k[None] <= 5) & (k[:, None] + k[None] > 0)
    u = np.fft.ifft2(inside * np.fft.fft2(generator.normal(size=(len(x), len(x))))).real
    return u / np.abs(u).max()


PROBLEMS = {
    "burgers": Problem(
        "dt(u) = -c*u*dx(u) + nu*d2x(u)",
        {"c": 1.0, "nu": 0.1},
        (16.0,),
        (256,),
        dt=0.1,
        frames=101,
        rate=lambda ik: 0.1 * ik**2,
        rest=lambda u, slope: -u * slope,
        initial=_burgers_start,
        features=({"c": {"x0x0_1": -1}, "nu": {"x0_11": 1}},),
    ),
    "kdv": Problem(
        "dt(u) = -c*u*dx(u) - b*d3x(u)",
        {"c": 6.0, "b": 1.0},
        (60.0,),
        (512,),
        dt=0.1,
        frames=201,
        rate=lambda ik: -(ik**3),
        rest=lambda u, slope: -6 * u * slope,
        initial=_kdv_start,
        features=({"c": {"x0x0_1": -1}, "b": {"x0_111": -1}},),
        substeps=64,
    ),
    "ks": Problem(
        "dt(u) = -a*u*dx(u) - b*d2x(u) - c*d4x(u)",
        {"a": 1.0, "b": 1.0, "c": 1.0},
        (32 * np.pi,),
        (1024,),
        dt=0.4,
        frames=151,
        rate=lambda ik: -(ik**2) - ik**4,
        rest=lambda u, slope: -u * slope,
        initial=_ks_start,
        features=({"a": {"x0x0_1": -1}, "b": {"x0_11": -1}, "c": {"x0_1111": -1}},),
        skip=100,
    ),
    "nls": Problem(
        "dt(p) = -D*d2x(q) - g*(p^2 + q^2)*q; dt(q) = D*d2x(p) + g*(p^2 + q^2)*p",
        {"D": 0.5, "g": 1.0},
        (10.0,),
        (256,),
        dt=np.pi / 200,
        frames=101,
        rate=lambda ik: 0.5j * ik**2,
        rest=lambda u, slope: 1j * np.abs(u) ** 2 * u,
        initial=_nls_start,
        features=(
            {"D": {"x1_11": -1}, "g": {"x0^2 x1": -1, "x1^3": -1}},
            {"D": {"x0_11": 1}, "g": {"x0^3": 1, "x0 x1^2": 1}},
        ),
        fields=("p", "q"),
        substeps=32,
    ),
    "allen_cahn": Problem(
        "dt(u) = D*d2x(u) + r*(u - u^3)",
        {"D": 1e-3, "r": 5.0},
        (2.0,),
        (256,),
        dt=0.005,
        frames=101,
        rate=lambda ik: 1e-3 * ik**2 + 5,
        rest=lambda u, slope: -5 * u**3,
        initial=_allen_cahn_start,
        features=({"D": {"x0_11": 1}, "r": {"x0": 1, "x0^3": -1}},),
    ),
    "advection_diffusion2d": Problem(
        "dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)",
        {"v": 0.5, "D": 1e-3},
        (1.0, 1.0),
        (64, 64),
        dt=0.05,
        frames=31,
        rate=lambda ik: -0.5 * (ik[:, None] + ik[None]) + 1e-3 * (ik[:, None] ** 2 + ik[None] ** 2),
        rest=None,
        initial=_waves_2d,
        features=({"v": {"x0_1": -1, "x0_2": -1}, "D": {"x0_11": 1, "x0_22": 1}},),
    ),
}


def draw(problem: Problem, seed: int) -> Array:
    """Frames `(T, C, *N)` from a random initial state."""
    n, length = problem.points[0], problem.lengths[0]
    start = problem.initial(np.random.default_rng(seed), (np.arange(n) - n // 2) * length / n)
    ik = 2j * np.pi * np.fft.fftfreq(n, length / n)
    if problem.rest is None:
        modes, rate = np.fft.fft2(start), problem.rate(ik)
        times = problem.dt * np.arange(problem.frames)
        return np.stack([np.fft.ifft2(modes * np.exp(rate * t)).real for t in times])[:, None]
    frames = np.stack(list(_frames(problem, start, ik)))[problem.skip :]
    parts = (frames.real, frames.imag)[: len(problem.fields)]
    return np.stack(parts, axis=1)


def _frames(problem: Problem, start: Array, ik: Array):
    """ETDRK4, frame by frame."""
    n, rest = len(start), problem.rest
    assert rest is not None
    step = problem.dt / problem.substeps
    z = problem.rate(ik) * step
    whole, half = np.exp(z), np.exp(z / 2)
    r = z[:, None] + _CIRCLE
    e = np.exp(r)
    q = step * np.mean((np.exp(r / 2) - 1) / r, axis=1)
    f1 = step * np.mean((-4 - r + e * (4 - 3 * r + r**2)) / r**3, axis=1)
    f2 = step * np.mean((2 + r + e * (r - 2)) / r**3, axis=1)
    f3 = step * np.mean((-4 - 3 * r - r**2 + e * (4 - r)) / r**3, axis=1)
    low, real = n // 2, np.isrealobj(start)

    def fine(modes: Array) -> Array:
        padded = np.zeros(2 * n, complex)
        padded[:low], padded[-low + 1 :] = modes[:low], modes[-low + 1 :]
        values = np.fft.ifft(padded) * 2
        return values.real if real else values

    def nonlinear(modes: Array) -> Array:
        product = np.fft.fft(rest(fine(modes), fine(ik * modes))) / 2
        kept = np.zeros(n, complex)
        kept[:low], kept[-low + 1 :] = product[:low], product[-low + 1 :]
        return kept

    v = np.fft.fft(start)
    v[low] = 0
    yield np.fft.ifft(v)
    for _ in range(problem.frames + problem.skip - 1):
        for _ in range(problem.substeps):
            nv = nonlinear(v)
            a = half * v + q * nv
            na = nonlinear(a)
            b = half * v + q * na
            nb = nonlinear(b)
            c = half * a + q * (2 * nb - nv)
            v = whole * v + f1 * nv + 2 * f2 * (na + nb) + f3 * nonlinear(c)
        yield np.fft.ifft(v)
