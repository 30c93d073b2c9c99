"""Accuracy of identification on the paper's benchmark, beside PySINDy's weak form.

    python tests/identification_study.py --noise 0 0.01 0.05 --trials 10 --peer

prints a table in Markdown: mean relative errors, how often the 95 % intervals cover the truth, and
seconds per trajectory once compiled. `--peer` adds PySINDy (`pip install pysindy`), same frames.
"""

import argparse
import time
import warnings

import numpy as np

from splatop.benchmarks import get_benchmark
from splatop.data import ArrayTrajectories, Trajectories, generate
from splatop.identify import add_noise, identify_trajectories

BENCHMARK = "unknown_advection_diffusion2d"
FRAMES = 7
# The best of the subdomain sizes that were tried for PySINDy (half widths 0.05 to 0.3 in space, 2
# and 3 frames in time) at 1 and 5 % noise, and five times its default number of subdomains.
PEER_DOMAINS = 500
PEER_HALF_WIDTHS = (0.1, 0.1, 2.99)


def data(trajectories: int, points: int, seed: int) -> ArrayTrajectories:
    return generate(
        get_benchmark(BENCHMARK),
        split="test",
        trajectories=trajectories,
        steps=FRAMES - 1,
        points=points,
        seed=seed,
    )


def noisy(clean: ArrayTrajectories, level: float, seed: int) -> ArrayTrajectories:
    """The same noise as `splatop identify --noise LEVEL --seed SEED`."""
    return ArrayTrajectories(
        np.stack([add_noise(one, level, (seed, i)) for i, one in enumerate(clean.array)]),
        clean.grid,
        dt=clean.dt,
        fields=clean.fields,
        coefficients=clean.coefficients,
    )


def splatop_errors(trajectories: Trajectories, method: str) -> dict[str, np.ndarray]:
    """Relative errors and coverage `(trajectories, 2)`, seconds per trajectory, method used."""
    equation = get_benchmark(BENCHMARK).equation
    stamps = [time.perf_counter()]
    found = identify_trajectories(
        equation,
        None,
        trajectories,
        method=method,
        progress=lambda *_: stamps.append(time.perf_counter()),
    )
    true = [trajectories.trajectory_coefficients(i) for i in range(len(found))]
    pairs = list(zip(found, true, strict=True))
    return {
        "errors": np.array([[one.relative_errors(t)[k] for k in ("v", "D")] for one, t in pairs]),
        "covered": np.array([[one.covers(t)[k] for k in ("v", "D")] for one, t in pairs]),
        "seconds": np.diff(stamps)[1:],  # the first one compiles
        "method": np.array([one.method for one in found]),
    }


def peer_errors(trajectories: Trajectories, seed: int = 0) -> np.ndarray:
    """Relative errors `(trajectories, 2)` of PySINDy's weak form, told the same terms.

    Its library supplies the weak-form integrals; the regression has the two columns of the
    equation, so it need not find out which terms there are.
    """
    import pysindy

    grid, dt = trajectories.grid, trajectories.dt
    axes = [np.arange(n) * h for n, h in zip(grid.points, grid.spacing, strict=True)]
    mesh = np.stack(np.meshgrid(*axes, dt * np.arange(FRAMES), indexing="ij"), axis=-1)
    np.random.seed(seed)  # noqa: NPY002  (PySINDy draws its subdomains from the global state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pysindy.WeakPDELibrary(
            function_library=pysindy.PolynomialLibrary(degree=1, include_bias=False),
            derivative_order=2,
            spatiotemporal_grid=mesh,
            K=PEER_DOMAINS,
            H_xt=list(PEER_HALF_WIDTHS),
            p=4,
            include_interaction=False,
        )
        errors = []
        for i in range(trajectories.trajectories):
            frames = trajectories.window(i, 0, FRAMES).astype(np.float64)
            u = np.moveaxis(frames[:, 0], 0, -1)[..., None]
            u = pysindy.AxesArray(u, pysindy.utils.comprehend_axes(u))
            library.fit([u])
            names = library.get_feature_names()
            terms = dict(zip(names, np.asarray(library.transform([u])[0]).T, strict=True))
            columns = [-(terms["x0_1"] + terms["x0_2"]), terms["x0_11"] + terms["x0_22"]]
            target = np.asarray(library.convert_u_dot_integral(u)).ravel()
            scale = [np.linalg.norm(column) for column in columns]
            matrix = np.stack([c / s for c, s in zip(columns, scale, strict=True)], axis=1)
            estimate = np.linalg.lstsq(matrix, target)[0] / scale
            true = trajectories.trajectory_coefficients(i)
            errors.append([abs(e / true[k] - 1) for e, k in zip(estimate, ("v", "D"), strict=True)])
    return np.array(errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.01, 0.05])
    parser.add_argument("--methods", nargs="+", default=["auto"])
    parser.add_argument("--trials", type=int, default=1, help="Draws of the noise.")
    parser.add_argument("--trajectories", type=int, default=30)
    parser.add_argument("--points", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0, help="Of the trajectories.")
    parser.add_argument("--peer", action="store_true", help="PySINDy, on the first draw.")
    options = parser.parse_args()
    clean = data(options.trajectories, options.points, options.seed)
    print("| noise | method | error of v | error of D | v covered | D covered | s/trajectory |")
    print("|---|---|---|---|---|---|---|")
    for level in options.noise:
        draws = [noisy(clean, level, s) for s in range(options.trials if level else 1)]
        for method in options.methods:
            runs = [splatop_errors(draw, method) for draw in draws]
            errors = np.concatenate([r["errors"] for r in runs]).mean(axis=0)
            covered = np.concatenate([r["covered"] for r in runs]).mean(axis=0)
            seconds = np.median(np.concatenate([r["seconds"] for r in runs]))
            used = sorted({name for r in runs for name in r["method"]})
            label = method if used == [method] else f"{method} ({', '.join(used)})"
            cells = [f"{100 * e:.3g} %" for e in errors] + [f"{100 * c:.0f} %" for c in covered]
            print(
                f"| {100 * level:g} % | {label} | {' | '.join(cells)} | {seconds:.3f} |", flush=True
            )
        if options.peer:
            started = time.perf_counter()
            errors = peer_errors(draws[0]).mean(axis=0)
            seconds = (time.perf_counter() - started) / options.trajectories
            cells = [f"{100 * e:.3g} %" for e in errors]
            print(f"| {100 * level:g} % | PySINDy weak | {' | '.join(cells)} | | | {seconds:.1f} |")


if __name__ == "__main__":
    main()
