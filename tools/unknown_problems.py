"""Nine equations whose terms are to be found, with a solver of their own: data for the study of
discovery.

Nothing of splatop takes part. Four equations are those of study_problems.py; the others are solved
here by ETDRK4 (Kassam and Trefethen 2005) in NumPy for any number of fields and axes, with
products on twice the points.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

import study_problems
from study_problems import Array

_CIRCLE = np.exp(2j * np.pi * (np.arange(32) + 0.5) / 32)


@dataclass(frozen=True)
class Unknown:
    """`true` are the coefficients of each field's terms; `frames(seed)` gives `(T, C, *N)`."""

    true: dict[str, dict[str, float]]
    lengths: tuple[float, ...]
    dt: float
    frames: Callable[[int], Array]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.true)

    @property
    def question(self) -> str:
        return "; ".join(f"dt({field}) = ?" for field in self.true)


def solve(
    start: Array,
    lengths: tuple[float, ...],
    dt: float,
    frames: int,
    *,
    rate: Callable[[Array], list[Array]],
    rest: Callable[[Array, Callable[..., Array]], Array],
    substeps: int = 8,
    skip: int = 0,
) -> Array:
    """Frames `(T, C, *N)` from a start `(C, *N)`.

    `rate(minus_k2)` multiplies the modes of each field, `rest(u, slope)` are the other terms on a
    grid of twice the points, where `slope(field, axis, inverse)` is a derivative there, of the
    inverse Laplacian if so asked.
    """
    points = start.shape[1:]
    axes = tuple(range(1, start.ndim))
    waves = [
        2 * np.pi * np.fft.fftfreq(n, side / n) for n, side in zip(points, lengths, strict=True)
    ]
    grid = np.meshgrid(*waves, indexing="ij")
    minus_k2 = -sum(k**2 for k in grid)
    held = np.all([np.abs(k) < np.abs(k).max() for k in grid], axis=0)
    step = dt / substeps
    z = step * np.stack([np.broadcast_to(r, points) for r in rate(minus_k2)])
    whole, half = np.exp(z), np.exp(z / 2)
    q, f1, f2, f3 = (np.zeros(z.shape, complex) for _ in range(4))
    for point in _CIRCLE:
        r = z + point
        e = np.exp(r)
        q += step * (np.exp(r / 2) - 1) / r / len(_CIRCLE)
        f1 += step * (-4 - r + e * (4 - 3 * r + r**2)) / r**3 / len(_CIRCLE)
        f2 += step * (2 + r + e * (r - 2)) / r**3 / len(_CIRCLE)
        f3 += step * (-4 - 3 * r - r**2 + e * (4 - r)) / r**3 / len(_CIRCLE)
    q, f1, f2, f3 = q.real, f1.real, f2.real, f3.real
    safe = np.where(minus_k2 == 0, 1.0, minus_k2)

    def fine(modes: Array) -> Array:
        padded = np.zeros((*modes.shape[: -len(points)], *(2 * n for n in points)), complex)
        for low in product((True, False), repeat=len(points)):
            own = tuple(
                slice(0, n // 2) if a else slice(n - n // 2 + 1, n)
                for a, n in zip(low, points, strict=True)
            )
            there = tuple(
                slice(0, n // 2) if a else slice(2 * n - n // 2 + 1, 2 * n)
                for a, n in zip(low, points, strict=True)
            )
            padded[(..., *there)] = modes[(..., *own)]
        return np.fft.ifftn(padded, axes=range(-len(points), 0)).real * 2 ** len(points)

    def coarse(values: Array) -> Array:
        padded = np.fft.fftn(values, axes=range(-len(points), 0)) / 2 ** len(points)
        modes = np.zeros((*values.shape[: -len(points)], *points), complex)
        for low in product((True, False), repeat=len(points)):
            own = tuple(
                slice(0, n // 2) if a else slice(n - n // 2 + 1, n)
                for a, n in zip(low, points, strict=True)
            )
            there = tuple(
                slice(0, n // 2) if a else slice(2 * n - n // 2 + 1, 2 * n)
                for a, n in zip(low, points, strict=True)
            )
            modes[(..., *own)] = padded[(..., *there)]
        return modes

    def nonlinear(modes: Array) -> Array:
        def slope(field: int, axis: int, inverse: bool = False) -> Array:
            own = 1j * grid[axis] * modes[field]
            return fine(np.where(minus_k2 == 0, 0.0, own / safe) if inverse else own)

        return coarse(rest(fine(modes), slope))

    v = np.fft.fftn(start, axes=axes) * held
    found = []
    for frame in range(skip + frames):
        if frame >= skip:
            found.append(np.fft.ifftn(v, axes=axes).real)
        for _ in range(substeps if frame < skip + frames - 1 else 0):
            nv = nonlinear(v)
            a = half * v + q * nv
            na = nonlinear(a)
            b = half * v + q * na
            nb = nonlinear(b)
            c = half * a + q * (2 * nb - nv)
            v = whole * v + f1 * nv + 2 * f2 * (na + nb) + f3 * nonlinear(c)
    return np.stack(found)


def waves(generator: np.random.Generator, points: tuple[int, ...], highest: int) -> Array:
    """A random field of modes up to `highest`, between -1 and 1."""
    modes = np.meshgrid(*(np.abs(np.fft.fftfreq(n, 1 / n)) for n in points), indexing="ij")
    inside = np.all([k <= highest for k in modes], axis=0)
    inside[(0,) * len(points)] = False
    u = np.fft.ifftn(inside * np.fft.fftn(generator.normal(size=points))).real
    return u / np.abs(u).max()


def _of_study(name: str, true: dict[str, dict[str, float]]) -> Unknown:
    problem = study_problems.PROBLEMS[name]
    return Unknown(
        true, problem.lengths, problem.dt, lambda seed: study_problems.draw(problem, seed)
    )


def _fisher(seed: int) -> Array:
    generator = np.random.default_rng(seed)
    start = 0.5 + 0.4 * waves(generator, (256,), 6)
    return solve(
        start[None],
        (20.0,),
        0.05,
        101,
        rate=lambda k: [0.1 * k + 1.0],
        rest=lambda u, slope: -(u**2),
    )


def _allen_cahn(seed: int) -> Array:
    start = 0.9 * waves(np.random.default_rng(seed), (64, 64), 5)
    return solve(
        start[None],
        (1.0, 1.0),
        0.02,
        51,
        rate=lambda k: [1e-3 * k + 1.0],
        rest=lambda u, slope: -(u**3),
        substeps=4,
    )


def _gray_scott(seed: int) -> Array:
    generator = np.random.default_rng(seed)
    seeds = np.exp(3 * waves(generator, (64, 64), 4))
    seeds = seeds / seeds.max()
    start = np.stack([1 - 0.5 * seeds, 0.25 * seeds + 0.02 * (1 + waves(generator, (64, 64), 6))])

    def rest(u: Array, slope: Callable[..., Array]) -> Array:
        reaction = u[0] * u[1] ** 2
        return np.stack([0.04 - reaction, reaction])

    return solve(
        start,
        (2.5, 2.5),
        4.0,
        101,
        rate=lambda k: [2e-5 * k - 0.04, 1e-5 * k - 0.1],
        rest=rest,
        skip=25,
    )


def _fitzhugh_nagumo(seed: int) -> Array:
    generator = np.random.default_rng(seed)
    start = np.stack([1.5 * waves(generator, (256,), 6), 0.5 * waves(generator, (256,), 6)])
    return solve(
        start,
        (100.0,),
        0.2,
        151,
        rate=lambda k: [k + 1.0, 0 * k - 0.08 * 0.8],
        rest=lambda u, slope: np.stack([-(u[0] ** 3) / 3 - u[1], 0.08 * u[0] + 0.08 * 0.7]),
    )


def _navier_stokes(seed: int) -> Array:
    start = 8 * waves(np.random.default_rng(seed), (64, 64), 4)

    def rest(u: Array, slope: Callable[..., Array]) -> Array:
        return (slope(0, 1, True) * slope(0, 0) - slope(0, 0, True) * slope(0, 1))[None]

    return solve(
        start[None],
        (2 * np.pi, 2 * np.pi),
        0.05,
        61,
        rate=lambda k: [0.02 * k],
        rest=rest,
        substeps=4,
    )


PROBLEMS = {
    "burgers": _of_study("burgers", {"u": {"u*dx(u)": -1.0, "d2x(u)": 0.1}}),
    "kdv": _of_study("kdv", {"u": {"u*dx(u)": -6.0, "d3x(u)": -1.0}}),
    "ks": _of_study("ks", {"u": {"u*dx(u)": -1.0, "d2x(u)": -1.0, "d4x(u)": -1.0}}),
    "fisher": Unknown({"u": {"u": 1.0, "u^2": -1.0, "d2x(u)": 0.1}}, (20.0,), 0.05, _fisher),
    "allen_cahn2d": Unknown(
        {"u": {"u": 1.0, "u^3": -1.0, "lap(u)": 1e-3}}, (1.0, 1.0), 0.02, _allen_cahn
    ),
    "gray_scott": Unknown(
        {
            "a": {"1": 0.04, "a": -0.04, "a*b^2": -1.0, "lap(a)": 2e-5},
            "b": {"b": -0.1, "a*b^2": 1.0, "lap(b)": 1e-5},
        },
        (2.5, 2.5),
        4.0,
        _gray_scott,
    ),
    "fitzhugh_nagumo": Unknown(
        {
            "u": {"u": 1.0, "u^3": -1 / 3, "v": -1.0, "d2x(u)": 1.0},
            "v": {"1": 0.056, "u": 0.08, "v": -0.064},
        },
        (100.0,),
        0.2,
        _fitzhugh_nagumo,
    ),
    "nls": _of_study(
        "nls",
        {
            "p": {"d2x(q)": -0.5, "p^2*q": -1.0, "q^3": -1.0},
            "q": {"d2x(p)": 0.5, "p^3": 1.0, "p*q^2": 1.0},
        },
    ),
    "navier_stokes": Unknown(
        {"w": {"dx(w)*dy(invlap(w)) - dy(w)*dx(invlap(w))": 1.0, "lap(w)": 0.02}},
        (2 * np.pi, 2 * np.pi),
        0.05,
        _navier_stokes,
    ),
}


@lru_cache(maxsize=16)
def draw(name: str, seed: int) -> Array:
    """Frames `(T, C, *N)` in single precision."""
    return PROBLEMS[name].frames(seed).astype(np.float32)
