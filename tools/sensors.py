"""The state from sensors, measured: draws into results/sensors, one by one; the tables in the docs.

python tools/sensors.py study [CASE ...] [--draws 10] [--minutes 60]   # adds draws, case by case
python tools/sensors.py tables                                        # docs/sensors.md from these

A draw is a trajectory, places and noise of its own. Every case has its first draw before one has
its second; a study that was stopped goes on where it was. Times are of the processor: what a wall
clock shows on an idle machine is no more, on a busy one it may be anything.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.interpolate import RBFInterpolator

import splatop
from sensor_bound import bound
from splatop import Observations, assimilate, place
from splatop.benchmarks import get_benchmark
from splatop.cli.compiled import keep_compiled
from splatop.data import generate
from splatop.data.atomic import write_whole

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "sensors"
PAGE = ROOT / "docs" / "sensors.md"
BEGIN, END = "<!-- sensors:begin -->", "<!-- sensors:end -->"
POINTS, FRAMES, AHEAD = 64, 10, 50
KS = "dt(u) = -u*dx(u) - d2x(u) - d4x(u)"


def burgers(draw: int, *, noise=0.01, points=POINTS, **how: Any) -> dict[str, Any]:
    """2D Burgers on 64² from a share of the points over eleven frames."""
    truth, obs = _burgers_reports(draw, noise=noise, points=points, **how)
    began = time.process_time()
    found = assimilate(obs, "burgers2d", points=points)
    return _scores(found, truth, time.process_time() - began)


def interpolation(draw: int) -> dict[str, Any]:
    """What interpolation of the last frame's reports gives, for the same draws of Burgers."""
    truth, obs = _burgers_reports(draw)
    model, result = splatop.load("burgers2d"), {}
    for name, interpolate in (("splines", _splines), ("gaussian_process", _gaussian_process)):
        now = interpolate(obs, ("u_x", "u_y"))
        later_on = np.asarray(model.rollout(now.astype(np.float32), steps=AHEAD))[-1]
        result[name] = {
            "state": _relative(now, truth[FRAMES]),
            "forecast": _relative(later_on, truth[FRAMES + AHEAD]),
        }
    return result


def _burgers_reports(
    draw: int, *, share=0.05, noise=0.01, moving=False, missing=0.0, later=0, points=POINTS
) -> tuple[np.ndarray, Observations]:
    benchmark = get_benchmark("burgers2d").with_points(points)
    truth = _test(benchmark, draw, later + FRAMES + AHEAD)[later:]
    rng = np.random.default_rng(draw)
    where = rng.permutation(points**2)[: round(share * POINTS**2)]
    at = np.stack([where // points, where % points], axis=1) / points
    fields = benchmark.fields
    return truth, _reports(truth, at, noise, rng, moving=moving, missing=missing, fields=fields)


def best(draw: int) -> dict[str, Any]:
    """The expected error of the best estimate that the reports of the first row allow."""
    return bound(*_burgers_reports(draw), FRAMES)


def transport(draw: int) -> dict[str, Any]:
    """2D advection-diffusion with both coefficients unknown."""
    benchmark = get_benchmark("advection_diffusion2d").with_points(POINTS)
    truth = _test(benchmark, draw, FRAMES + AHEAD)
    rng = np.random.default_rng(draw)
    at = rng.uniform(size=(round(0.03 * POINTS**2), 2))
    obs = _reports(truth, at, 0.01, rng, fields=benchmark.fields)
    began = time.process_time()
    start = {n: v * np.exp(0.4 * rng.normal()) for n, v in benchmark.coefficients.items()}
    found = assimilate(
        obs,
        benchmark.equation_text,
        unknown=start,
        lengths=(1.0, 1.0),
        points=POINTS,
        dt=benchmark.dt,
    )
    result = _scores(found, truth, time.process_time() - began)
    for name, true in benchmark.coefficients.items():
        one = found.estimates[name]
        result[name] = {
            "error": abs(one.value / true - 1),
            "std": one.std / true,
            "covered": bool(one.low <= true <= one.high),
        }
    return result


def kuramoto_sivashinsky(draw: int) -> dict[str, Any]:
    """Twelve sensors on a box of 60; windows of 40 frames for 400 frames. Data by exponax, in steps
    that are converged: its second order at dt = 0.2 is off by the noise after 40 frames."""
    import exponax

    length, points, dt, frames = 60.0, 128, 0.2, 400
    stepper = exponax.RepeatedStepper(
        exponax.stepper.KuramotoSivashinskyConservative(1, length, points, dt / 5, order=4), 5
    )
    rng = np.random.default_rng(draw)
    start = jnp.asarray(0.1 * rng.normal(size=(1, points)), jnp.float32)
    states = np.asarray(exponax.rollout(stepper, 2000 + frames)(start - start.mean()))
    truth = states[-frames - 1 :]
    spread = float(truth.std())
    at = (np.arange(12) + rng.uniform()) * length / 12 % length
    # Between grid points: the trigonometric interpolant of the solver's own modes.
    values = _trigonometric(truth[:, 0], at, length)
    sigma = 0.01 * spread
    t = np.repeat(dt * np.arange(frames + 1), 12)
    obs = Observations(
        t,
        np.tile(at, frames + 1),
        "u",
        values.ravel() + sigma * rng.normal(size=values.size),
        sigma=sigma,
    )
    began = time.process_time()
    found = assimilate(obs, KS, lengths=length, points=points, dt=dt, window=40, prior="climate")
    seconds = time.process_time() - began
    windows, one = [], found
    while one is not None:
        frame = round(one.end / dt)
        last = one.window
        error = last.mean[-1] - truth[frame]
        windows.append(
            {
                "end": float(np.sqrt(np.mean(error**2))) / spread,
                "ratio": float(one.check.ratio),
                "trusted": one.trusted,
                "covered": float(np.mean(np.abs(error) <= 2 * last.std[-1])),
                "covered_all": float(
                    np.mean(
                        np.abs(last.mean - truth[frame - one.frames : frame + 1]) <= 2 * last.std
                    )
                ),
            }
        )
        first, one = one, one.earlier
    free = first.forecast(frames - first.frames).mean[-1]
    return {
        "windows": windows[::-1],
        "worst": max(w["end"] for w in windows),
        "covered": float(np.mean([w["covered"] for w in windows])),
        "covered_all": float(np.mean([w["covered_all"] for w in windows])),
        "free_run": float(np.sqrt(np.mean((free - truth[-1]) ** 2))) / spread,
        "seconds": seconds,
    }


def reaction_diffusion(draw: int) -> dict[str, Any]:
    """FitzHugh-Nagumo between insulated walls, 100 sensors of both fields."""
    benchmark = get_benchmark("reaction_diffusion2d").with_points(POINTS)
    truth = _test(benchmark, draw, FRAMES + AHEAD)
    rng = np.random.default_rng(draw)
    where = rng.permutation(POINTS**2)[:100]
    along = np.asarray(benchmark.grid.coordinates()[0]).ravel()
    at = np.stack([along[where // POINTS], along[where % POINTS]], axis=1)
    obs = _reports(truth, at, 0.01, rng, fields=benchmark.fields, dt=benchmark.dt, at=where)
    began = time.process_time()
    found = assimilate(obs, "reaction_diffusion2d", points=POINTS)
    return _scores(found, truth, time.process_time() - began)


def cylinder(draw: int) -> dict[str, Any]:
    """A tracer that flows around a cylinder, 100 sensors at random points of the shape, by the model
    that ships."""
    benchmark = get_benchmark("tracer_cylinder")
    truth = _test(benchmark, draw, 2 * FRAMES)
    rng = np.random.default_rng(draw)
    places = benchmark.grid.places
    where = rng.permutation(len(places))[:100]
    obs = _reports(
        truth, places[where], 0.01, rng, fields=benchmark.fields, dt=benchmark.dt, at=where
    )
    began = time.process_time()
    found = assimilate(obs, "tracer_cylinder")
    seconds = time.process_time() - began
    scores = {}
    for name, frame in (("first", 0), ("state", FRAMES), ("forecast", 2 * FRAMES)):
        value, std = found.at(places, frame * benchmark.dt)
        scores[name] = _relative(value, truth[frame, 0])
        scores[f"covered_{name}"] = float(np.mean(np.abs(value - truth[frame, 0]) <= 2 * std))
    # The model's points are those of the benchmark.
    window = found.window
    within = np.abs(window.mean - truth[: FRAMES + 1]) <= 2 * window.std
    return {
        **scores,
        "covered": float(np.mean(within)),
        "ratio": float(found.check.ratio),
        "trusted": found.trusted,
        "warnings": [*found.warnings, *found.check.warnings],
        "prior": found.prior.source,
        "unknowns": found.forward.unknowns.size,
        "reports": len(obs),
        "seconds": seconds,
    }


def placement(draw: int) -> dict[str, Any]:
    """Twenty sensors of advection-diffusion in a channel: placed, and at random places."""
    benchmark = get_benchmark("advection_channel2d").with_points(48)
    truth = _test(benchmark, draw, FRAMES)
    rng = np.random.default_rng(draw)
    points = benchmark.grid.points
    mesh = np.meshgrid(*(c.ravel() for c in benchmark.grid.coordinates()), indexing="ij")
    every = np.stack([m.ravel() for m in mesh], axis=1)
    inner = rng.permutation(len(every))[:600]
    chosen = place(
        "advection_channel2d", sensors=20, frames=FRAMES, points=points, candidates=every[inner]
    )
    index = {tuple(np.round(p, 9)): i for i, p in enumerate(every)}
    placed = np.array([index[tuple(np.round(p, 9))] for p in chosen.places])
    errors = {}
    for name, where in (("placed", placed), ("random", rng.permutation(inner)[:20])):
        obs = _reports(
            truth,
            every[where],
            0.01,
            np.random.default_rng(1000 + draw),
            fields=benchmark.fields,
            dt=benchmark.dt,
            at=where,
        )
        found = assimilate(obs, "advection_channel2d", points=points, spread="none")
        errors[name] = _relative(found.window.mean[-1], truth[FRAMES])
    return {**errors, "gain": errors["random"] / errors["placed"]}


CASES: dict[str, Callable[[int], dict[str, Any]]] = {
    "burgers": burgers,
    "kuramoto_sivashinsky": kuramoto_sivashinsky,
    "transport": transport,
    "burgers_noise_5": lambda draw: burgers(draw, noise=0.05),
    "burgers_sensors_2": lambda draw: burgers(draw, share=0.02),
    "burgers_missing": lambda draw: burgers(draw, missing=0.5),
    "burgers_moving": lambda draw: burgers(draw, moving=True),
    "reaction_diffusion": reaction_diffusion,
    "cylinder": cylinder,
    "placement": placement,
    "burgers_later": lambda draw: burgers(draw, later=20),
    "interpolation": interpolation,
    "best": best,
    "burgers_160": lambda draw: burgers(draw, points=160),
}


def _test(benchmark, draw: int, steps: int) -> np.ndarray:
    """Frames of the reference solver that no training and no prior has seen."""
    made = generate(benchmark, split="test", trajectories=1, steps=steps, first=draw)
    return made.window(0, 0, steps + 1)


def _reports(
    truth: np.ndarray,
    places: np.ndarray,
    noise: float,
    rng: np.random.Generator,
    *,
    fields: tuple[str, ...],
    moving: bool = False,
    missing: float = 0.0,
    dt: float = 1.0,
    at: np.ndarray | None = None,
) -> Observations:
    """Each field at each place in each frame, between grid points by its own waves. `at` are the
    numbers of the grid's points, where places are such."""
    parts = []
    drift = 0.02 * rng.normal(size=places.shape) if moving else 0 * places
    for frame in range(FRAMES + 1):
        where = (places + frame * drift) % 1.0 if moving else places
        # As many in each frame and draw, so that all draws share compiled programs.
        kept = np.sort(rng.permutation(len(where))[round(missing * len(where)) :])
        for channel, name in enumerate(fields):
            u = truth[frame, channel]
            value = u.ravel()[at] if at is not None else _waves(u, where)
            sigma = noise * truth[: FRAMES + 1, channel].std()
            measured = value + sigma * rng.normal(size=len(where))
            names = np.array([f"s{i}" for i in range(len(where))])
            parts.append(
                Observations(
                    np.full(len(kept), frame * dt),
                    where[kept],
                    name,
                    measured[kept],
                    sigma=sigma,
                    sensors=names[kept],
                )
            )
    return Observations.joined(parts)


def _waves(u: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The trigonometric interpolant of a field on the unit square."""
    modes = np.fft.fft2(u, norm="forward")
    k = np.fft.fftfreq(len(u), 1 / len(u))
    modes[np.abs(k) == len(u) // 2] = 0
    modes[:, np.abs(k) == len(u) // 2] = 0
    x, y = (np.exp(2j * np.pi * np.outer(where[:, i], k)) for i in (0, 1))
    return np.einsum("pi,ij,pj->p", x, modes, y).real


def _trigonometric(u: np.ndarray, x: np.ndarray, length: float) -> np.ndarray:
    n = u.shape[-1]
    modes = np.fft.rfft(u, axis=-1, norm="forward")
    modes[..., 1:] *= 2
    waves = np.exp(2j * np.pi * np.outer(np.arange(n // 2), x) / length)
    return (modes[..., : n // 2] @ waves).real


def _splines(obs: Observations, fields: tuple[str, ...]) -> np.ndarray:
    """Thin-plate splines through the last frame's reports, on nine copies of the box."""
    return _interpolated(obs, fields, lambda x, v: RBFInterpolator(x, v, neighbors=100), margin=0.3)


def _gaussian_process(obs: Observations, fields: tuple[str, ...]) -> np.ndarray:
    """scikit-learn's Gaussian process with a fitted length and noise."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    def fit(x, v):
        kernel = 0.1 * RBF(0.1, (0.01, 1)) + WhiteKernel(1e-4, (1e-8, 1))
        return GaussianProcessRegressor(kernel, normalize_y=True).fit(x, v).predict

    return _interpolated(obs, fields, fit, margin=0.15)


def _interpolated(obs, fields, fit, *, margin: float) -> np.ndarray:
    grid = np.arange(POINTS) / POINTS
    mesh = np.stack([m.ravel() for m in np.meshgrid(grid, grid, indexing="ij")], axis=1)
    out = []
    for name in fields:
        own = obs.take((obs.times == obs.times.max()) & (obs.fields == name))
        copies = [own.places + np.array([i, j]) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        x, v = np.concatenate(copies), np.tile(own.values, 9)
        near = ((x > -margin) & (x < 1 + margin)).all(axis=1)
        out.append(fit(x[near], v[near])(mesh).reshape(POINTS, POINTS))
    return np.stack(out)


def _scores(found, truth: np.ndarray, seconds: float) -> dict[str, Any]:
    window, later = found.window, found.forecast(AHEAD)
    shares = [
        float(np.mean(np.abs(mean - true) <= 2 * std))
        for mean, std, true in (
            (window.mean, window.std, truth[: FRAMES + 1]),
            (later.mean, later.std, truth[FRAMES + 1 : FRAMES + AHEAD + 1]),
        )
    ]
    return {
        "state": _relative(window.mean[-1], truth[FRAMES]),
        "first": _relative(window.mean[0], truth[0]),
        "forecast": _relative(later.mean[-1], truth[FRAMES + AHEAD]),
        "covered": shares[0],
        "covered_forecast": shares[1],
        "ratio": float(found.check.ratio),
        "trusted": found.trusted,
        "warnings": [*found.warnings, *found.check.warnings],
        "prior": found.prior.source,
        "unknowns": found.forward.unknowns.size,
        "reports": len(found.observations),
        "seconds": seconds,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def study(names: list[str], draws: int, minutes: float) -> None:
    keep_compiled()
    RESULTS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    for draw in range(draws):
        for name in names:
            path = RESULTS / f"{name}.json"
            held = json.loads(path.read_text()) if path.exists() else {"draws": {}}
            if str(draw) in held["draws"]:
                continue
            if time.monotonic() - began > 60 * minutes:
                return
            result = CASES[name](draw)
            held["draws"][str(draw)] = result
            write_whole(path, (json.dumps(held, indent=1) + "\n").encode())
            short = {k: v for k, v in result.items() if isinstance(v, float | bool)}
            print(name, draw, short, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("study")
    run.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    run.add_argument("--draws", type=int, default=10)
    run.add_argument("--minutes", type=float, default=1e9, help="begin no draw after these")
    commands.add_parser("tables")
    given = parser.parse_args()
    if given.command == "study":
        study(given.cases or list(CASES), given.draws, given.minutes)
    else:
        from sensor_tables import write_tables

        write_tables(RESULTS, PAGE, BEGIN, END)


if __name__ == "__main__":
    main()
