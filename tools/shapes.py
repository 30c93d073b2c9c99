"""Shapes and scattered points: what Gaussians on them are right to, measured; the tables in the docs.

python tools/shapes.py measure [NAME ...]   # into results/shapes/NAME.json, minutes each
python tools/shapes.py tables               # docs/shapes.md from these
"""

import json
import time
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import jn_zeros, jnp_zeros, jv

import splatop
from measured import measure_or_tables, relative, write_between
from splatop.benchmarks import BENCHMARKS
from splatop.data import ArrayTrajectories
from splatop.derivative import gradient, value
from splatop.domain import Condition, Domain
from splatop.identify import identify_trajectories
from splatop.numerics import Numerics, build_physics
from splatop.points import random_points
from splatop.shapes import Box, Difference, Disk, Polygon, shape_of_mask
from splatop.spaces.shape_basis import build_basis, edge_points, fine_nodes, lattice, orthonormal
from splatop.walls import random_starts, solve_on_shape
from splatop.walls.shape_resolution import shape_anchors

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "shapes"
BENCH = ROOT / "results" / "bench.json"
SHIPPED = ROOT / "src/splatop/models/bounded/tracer_cylinder.metrics.json"
PAGE = ROOT / "docs" / "shapes.md"
BEGIN, END = "<!-- shapes:begin -->", "<!-- shapes:end -->"
UNIT = ((0.0, 0.0), (1.0, 1.0))
DISK = Disk(0.5, 0.5, 0.4)
FRAMES = 100
DRAWS = 2


def _roots(kind: str, count: int = 12) -> np.ndarray:
    """Wavenumbers of the disk by Bessel's functions."""
    zeros = jn_zeros if kind == "value" else jnp_zeros
    every = [zeros(0, 4), *(np.repeat(zeros(m, 3), 2) for m in range(1, 8))]
    every = np.concatenate([[0.0] if kind == "slope" else [], *every])
    return np.sort(every)[:count] / DISK.radius


def _wavenumbers(shape, kind: str, anchors: int) -> np.ndarray:
    kinds = tuple((name, kind) for name in shape.edge_names)
    gaussians = lattice(shape, (0.0, 0.0), (1.0, 1.0), (anchors, anchors), kinds)
    basis = build_basis(gaussians, shape, kinds, 1 / (anchors - 1))
    return np.sqrt(np.abs(basis.laplacian[:12]))


def _masked(points: int):
    x = (np.arange(points) + 0.5) / points
    mask = np.hypot(x[:, None] - 0.5, x - 0.5) <= DISK.radius
    return shape_of_mask(mask, (float(x[0]),) * 2, (1 / points,) * 2, *UNIT)


def disk() -> dict:
    """The first twelve wavenumbers of a disk, by its formula, a polygon, and masks."""
    angle = 2 * np.pi * np.arange(200) / 200
    corners = zip(0.5 + 0.4 * np.cos(angle), 0.5 + 0.4 * np.sin(angle), strict=True)
    polygon = Polygon(tuple((float(x), float(y)) for x, y in corners))
    found = {}
    for name, shape, kinds in (
        ("formula", DISK, ("value", "slope")),
        ("polygon of 200 corners", polygon, ("value",)),
        ("mask of 80²", _masked(80), ("value",)),
        ("mask of 160²", _masked(160), ("value",)),
    ):
        for kind in kinds:
            exact = _roots(kind)
            error = np.abs(_wavenumbers(shape, kind, 24) - exact)[exact > 0] / exact[exact > 0]
            found[f"{name}, {kind}s set"] = float(error.max())
    return {"anchors": 24, "errors": found}


def hole() -> dict:
    """Waves around a round hole from 2,254 random points: u and u_x at the walls and inside."""
    return {"points": 2254, "errors": {str(anchors): _around_hole(anchors) for anchors in (18, 20)}}


def _around_hole(anchors: int) -> dict[str, float]:
    """The largest errors of three draws of points and fields, by anchors across the square."""
    shape, worst = Difference(Box(*UNIT), Disk(0.5, 0.5, 0.2)), np.zeros(4)
    gaussians = lattice(shape, (0.0, 0.0), (1.0, 1.0), (anchors, anchors))
    combine = orthonormal(gaussians, fine_nodes(shape, 1 / (anchors - 1)))

    def rows(places, derivative):
        (index, _), *_ = derivative.terms
        return gaussians.at(places, index) @ combine

    for seed in range(3):
        rng = np.random.default_rng(seed)
        drawn = rng.random((4000, 2))
        places = drawn[shape.inside(drawn)][:2254]
        waves = rng.uniform(-3 * np.pi, 3 * np.pi, (8, 2))
        phase, size = rng.uniform(0, 2 * np.pi, 8), rng.normal(size=8)
        fields = (
            lambda p: np.sin(p @ waves.T + phase) @ size,  # noqa: B023
            lambda p: (np.cos(p @ waves.T + phase) * waves[:, 0]) @ size,  # noqa: B023
        )
        c = np.linalg.pinv(rows(places, value(2)), rcond=1e-6) @ fields[0](places)
        walls, inside = edge_points(shape, 0.01)[1], drawn[shape.distance(drawn) < -0.1][:500]
        found = [
            np.abs(rows(where, d) @ c - exact(where)).max() / np.abs(exact(where)).max()
            for where in (walls, inside)
            for d, exact in zip((value(2), gradient(2)[0]), fields, strict=True)
        ]
        worst = np.maximum(worst, found)
    names = ("u at the walls", "u_x at the walls", "u inside", "u_x inside")
    return dict(zip(names, worst.tolist(), strict=True))


def _cold_disk(text: str):
    """The equation, and the disk with a cold edge."""
    box = replace(Domain.box((1.0, 1.0), periodic=(False, False)), shape=DISK)
    domain = box.with_conditions({("disk1", "u"): Condition("value", 0.0)})
    return splatop.parse_equation(text, dims=2, fields=("u",)), domain


def _series(p: np.ndarray, t: float, rate: float, drift: float = 0.0) -> np.ndarray:
    """Heat in the disk by Bessel's functions; what drifts is heat times an exponential."""
    x, y = p.T
    r, angle = np.hypot(x - 0.5, y - 0.5), np.arctan2(y - 0.5, x - 0.5)
    carried = np.exp(drift * (x - 0.5) / (2 * rate) - drift**2 * t / (4 * rate))
    return carried * sum(
        np.exp(-rate * (z / DISK.radius) ** 2 * t)
        * jv(m, z * r / DISK.radius)
        * np.cos(m * angle + q)
        / (1 + q)
        for m in range(4)
        for q, z in enumerate(jn_zeros(m, 3))
    )


def heat() -> dict:
    """Heat in a disk with a cold edge against the Bessel series, from 2,000 random points."""
    rate, dt = 0.02, 0.02
    at = random_points(DISK, 2000, 0, lengths=(1.0, 1.0), origin=(0.0, 0.0))
    equation, domain = _cold_disk("dt(u) = D*lap(u)")
    frames = np.stack([_series(at.places, dt * k, rate) for k in range(FRAMES + 1)])[:, None]
    numerics = Numerics("none", (), 0.0, (16, 16), 1, integrator="etdrk4")
    physics = build_physics(equation, numerics, dt=dt, domain=domain, layout=at)
    roll = eqx.filter_jit(lambda s, u: splatop.rollout(s, u, {"D": rate}, steps=FRAMES))
    states = np.asarray(roll(physics, jnp.asarray(frames[0], jnp.float32)))
    errors = [relative(a, b) for a, b in zip(states, frames[1:], strict=True)]
    return {
        "points": 2000,
        "frames": FRAMES,
        "functions": int(physics.space.shape[0]),
        "rl2_mean": float(np.mean(errors)),
        "rl2_largest": float(max(errors)),
    }


def disk_identified() -> dict:
    """D and v from 41 frames of a formula at 2,000 random points with 1 % noise, some draws."""
    true, dt = {"D": 0.02, "v": 0.1}, 0.02
    equation, domain = _cold_disk("dt(u) = -v*dx(u) + D*lap(u)")
    percent, covered, trusted, said = dict.fromkeys(true, 0.0), 0, 0, []
    for draw in range(DRAWS):
        at = random_points(DISK, 2000, draw, lengths=(1.0, 1.0), origin=(0.0, 0.0))
        frames = np.stack([_series(at.places, dt * k, *true.values()) for k in range(41)])[:, None]
        noise = np.random.default_rng(draw).standard_normal(frames.shape)
        noisy = (frames + 0.01 * frames.std() * noise)[None]
        data = ArrayTrajectories(noisy, at, dt=dt, fields=("u",), domain=domain)
        (one,) = identify_trajectories(equation, None, data, unknown=tuple(true), frames="all")
        for name, value_ in true.items():
            low, high = one.intervals[name]
            percent[name] = max(percent[name], 100 * abs(one.estimates[name] / value_ - 1))
            covered += low <= value_ <= high
        trusted += one.trusted
        said += [w for w in one.warnings if w not in said]
    return {
        "draws": DRAWS,
        "largest_percent": percent,
        "covered": covered,
        "intervals": DRAWS * len(true),
        "trusted": trusted,
        "warnings": said,
    }


def _against_twice(name: str, anchors: int, trajectories: int = 1) -> dict:
    """Φ with so many anchors across, against a reference with twice as many and its step halved
    until frames agree to 1e-7."""
    benchmark = BENCHMARKS[name]
    domain, at = benchmark.domain, benchmark.grid
    own = dict(benchmark.coefficients)
    keys = jax.random.split(jax.random.key(0), trajectories)
    place = {"domain": domain, "anchors": 2 * anchors}
    starts = random_starts(benchmark.equation, keys=keys, **place)
    truth, step_error = solve_on_shape(
        benchmark.equation, own, starts, at=at, dt=benchmark.dt, steps=FRAMES, **place
    )
    frames = truth.astype(np.float32)
    errors, used = [], {}
    for integrator, substeps in (("etdrk4", 1), ("etdrk4", 2), ("etdrk4", 4)):
        numerics = Numerics(
            "none", (), 0.0, shape_anchors(domain, anchors), substeps, integrator=integrator
        )
        physics = build_physics(
            benchmark.equation, numerics, dt=benchmark.dt, domain=domain, layout=at
        )
        roll = eqx.filter_jit(lambda s, u: splatop.rollout(s, u, own, steps=FRAMES))
        states = [np.asarray(roll(physics, jnp.asarray(one[0]))) for one in frames]
        curve = [
            [relative(a, b) for a, b in zip(s, f[1:], strict=True)]
            for s, f in zip(states, frames, strict=True)
        ]
        errors.append(float(np.mean(curve)))
        used[f"{substeps}"] = {"mean": errors[-1], "last": float(np.mean([c[-1] for c in curve]))}
    return {
        "frames": FRAMES,
        "trajectories": trajectories,
        "points": len(at.places),
        "anchors": anchors,
        "functions": int(physics.space.shape[0]),
        "reference_functions": int(starts.shape[-1]),
        "reference_step_error": step_error,
        "rl2_by_substeps": used,
        "rl2": min(errors),
    }


def _identified(name: str) -> dict:
    """Coefficients from 61 frames at 2,000 scattered points with 1 % noise."""
    benchmark = BENCHMARKS[name]
    domain, own = benchmark.domain, dict(benchmark.coefficients)
    points = random_points(domain.shape, 2000, 0, lengths=domain.lengths, origin=domain.origin)
    place = {"domain": domain, "anchors": benchmark.anchors}
    starts = random_starts(benchmark.equation, keys=[jax.random.key(0)], **place)
    clean, _ = solve_on_shape(
        benchmark.equation, own, starts, at=points, dt=benchmark.dt, steps=60, **place
    )
    size = clean.std(axis=(0, 1, 3), keepdims=True)
    noisy = clean + 0.01 * size * np.random.default_rng(1).standard_normal(clean.shape)
    data = ArrayTrajectories(noisy, points, dt=benchmark.dt, fields=benchmark.fields, domain=domain)
    (one,) = identify_trajectories(benchmark.equation, None, data, unknown=tuple(own), frames="all")
    return {
        "percent": {k: 100 * abs(one.estimates[k] / v - 1) for k, v in own.items()},
        "trusted": one.trusted,
        "warnings": list(one.warnings),
    }


def _tracer(settings: dict) -> dict:
    """The tracer around the cylinder at 1,500 random points, five trajectories to learn from and two
    to judge by."""
    benchmark = BENCHMARKS["tracer_cylinder"]
    domain, own = benchmark.domain, dict(benchmark.coefficients)
    at = random_points(domain.shape, 1500, 0, lengths=domain.lengths, origin=domain.origin)
    place = {"domain": domain, "anchors": benchmark.anchors}
    keys = jax.random.split(jax.random.key(1), 7)
    starts = random_starts(benchmark.equation, keys=keys, **place)
    truth, _ = solve_on_shape(
        benchmark.equation, own, starts, at=at, dt=benchmark.dt, steps=40, **place
    )
    frames = truth.astype(np.float32)
    begun = time.process_time()
    fitted = splatop.fit(
        frames[:5],
        benchmark.equation_text,
        points=at.places,
        shape=domain.shape.text(),
        boundary=benchmark.boundary,
        lengths=domain.lengths,
        dt=benchmark.dt,
        settings=settings,
    )
    seconds = time.process_time() - begun
    curves = [
        [relative(a, b) for a, b in zip(fitted.rollout(u[0], steps=40), u[1:], strict=True)]
        for u in frames[5:]
    ]
    sizes = {"points": 1500, "training": 5, "tests": 2, "frames": 40}
    return {**sizes, "rl2": float(np.mean(curves)), "processor_seconds": seconds}


def tracer() -> dict:
    """A surrogate that identifies U and D."""
    return _tracer({"phases": ((0, 40),), "warmup": 5})


def tracer_fno() -> dict:
    """An FNO on the box around with a mask, as people do without a shape."""
    return _tracer({"model": "fno", "phases": ((0, 300),), "warmup": 20})


def lshape() -> dict:
    return _against_twice("allen_cahn_lshape", 14)


def cylinder() -> dict:
    return _against_twice("tracer_cylinder", 28)


def lshape_identified() -> dict:
    return _identified("allen_cahn_lshape")


def cylinder_identified() -> dict:
    return _identified("tracer_cylinder")


MEASURES = {
    "disk": disk,
    "hole": hole,
    "heat": heat,
    "disk_identified": disk_identified,
    "lshape": lshape,
    "cylinder": cylinder,
    "tracer": tracer,
    "tracer_fno": tracer_fno,
    "lshape_identified": lshape_identified,
    "cylinder_identified": cylinder_identified,
}


def tables() -> None:
    rows = ["| what | target | measured |", "| --- | --- | --- |"]
    held = {
        n: json.loads((RESULTS / f"{n}.json").read_text())
        for n in MEASURES
        if (RESULTS / f"{n}.json").exists()
    }

    def add(what: str, target: str, name: str, cell) -> None:
        rows.append(
            f"| {what} | {target} | {cell(held[name]) if name in held else 'not measured'} |"
        )

    for key, target in (
        ("formula, values set", "1e-7"),
        ("formula, slopes set", "1e-7"),
        ("polygon of 200 corners, values set", "1e-3"),
        ("mask of 80², values set", "falling with the grid"),
        ("mask of 160², values set", "1e-2"),
    ):
        add(
            f"disk, 24 anchors: first twelve wavenumbers, {key}",
            target,
            "disk",
            lambda d, k=key: f"{d['errors'][k]:.1e}",
        )
    for key, target in (
        ("u at the walls", "1e-4"),
        ("u_x at the walls", "1e-3"),
        ("u inside", "1e-6"),
        ("u_x inside", "1e-5"),
    ):
        add(
            f"square with a hole, 2,254 random points, 20 anchors (18): {key}",
            target,
            "hole",
            lambda d, k=key: f"{d['errors']['20'][k]:.1e} ({d['errors']['18'][k]:.1e})",
        )
    add(
        "heat in a disk against the Bessel series, 2,000 random points, 100 frames: largest rL2",
        "1e-5",
        "heat",
        lambda d: f"{d['rl2_largest']:.1e}",
    )
    add(
        "reaction-diffusion in the L, 100 frames, against twice the anchors and half the step: mean rL2",
        "1e-3",
        "lshape",
        lambda d: (
            f"{d['rl2']:.1e} ({d['functions']} functions; reference {d['reference_functions']})"
        ),
    )
    shipped = json.loads(SHIPPED.read_text())
    rows.append(
        "| tracer around the cylinder, 100 frames, the model that ships (28 anchors) against the "
        f"benchmark's reference ({BENCHMARKS['tracer_cylinder'].anchors}): mean rL2 | 1e-3 | "
        f"{shipped['rl2_mean']:.1e} |"
    )
    if "cylinder" in held:
        add(
            "the same against twice the anchors and half the step",
            "1e-3",
            "cylinder",
            lambda d: f"{d['rl2']:.1e} ({d['functions']} functions)",
        )
    fno = held.get("tracer_fno", {})
    if not fno:
        held.pop("tracer", None)
    add(
        "tracer around the cylinder from 1,500 random points, 40 frames: surrogate over "
        "interpolation, mask and FNO",
        "0.1",
        "tracer",
        lambda d: (
            f"{d['rl2'] / fno['rl2']:.1e} ({d['rl2']:.1e} in {d['processor_seconds']:.0f} s of a "
            f"processor, {fno['rl2']:.2g} in {fno['processor_seconds']:.0f} s)"
        ),
    )
    add(
        "D and v from 2,000 random points in the disk, 1 % noise: the worst of the draws",
        "1 %",
        "disk_identified",
        lambda d: (
            ", ".join(f"{k} {v:.2g} %" for k, v in d["largest_percent"].items())
            + f" ({d['draws']} draws); {d['covered']} of {d['intervals']} intervals cover, "
            f"{d['trusted']} of {d['draws']} trusted"
        ),
    )
    for name in ("lshape", "cylinder"):
        add(
            f"coefficients of `{'allen_cahn_lshape' if name == 'lshape' else 'tracer_cylinder'}` from 2,000 random points, 1 % noise",
            "1 %",
            f"{name}_identified",
            lambda d: (
                ", ".join(f"{k} {v:.2g} %" for k, v in d["percent"].items())
                + ("" if d["trusted"] else ", not trusted")
            ),
        )
    timed = json.loads(BENCH.read_text())
    for what, key, target in (
        ("linear equation, one run", "shape_linear_step_over_fno_step", "1.0"),
        ("with products, one run", "shape_products_step_over_fno_step", "6"),
        (
            "with products, each of a batch of 20",
            "shape_products_step_over_fno_step_each_of_20",
            "1.5",
        ),
    ):
        cell = "not measured"
        if key in timed:
            cell = f"{timed[key]:.2g} ({timed['shape_functions']:.0f} functions)"
        rows.append(f"| a step over pdequinox's FNO at 160²: {what} | {target} | {cell} |")
    intro = "By `python tools/shapes.py measure`, times by `splatop bench --only shapes`; errors are relative to the largest value."
    write_between(PAGE, BEGIN, END, f"{intro}\n\n" + "\n".join(rows))


if __name__ == "__main__":
    measure_or_tables(__doc__, MEASURES, tables, RESULTS)
