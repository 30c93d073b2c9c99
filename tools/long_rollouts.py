"""Does a long rollout stay on the attractor? Statistics of 10,000 steps of Φ beside exponax's.

    python tools/long_rollouts.py measure [kuramoto_sivashinsky kolmogorov_flow] [--steps 10000]
    python tools/long_rollouts.py tables

`measure` writes results/long_rollouts/NAME.json, `tables` the block in docs/time.md. What a rollout
found is kept in runs/long_rollouts, so that `measure` goes on where it was stopped.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import exponax as ex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from rich.progress import track

import splatop
from measured import write_between
from splatop.equation import parse_equation
from splatop.stepper import rollout

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "runs" / "long_rollouts"
RESULTS, PAGE = ROOT / "results" / "long_rollouts", ROOT / "docs" / "time.md"
BEGIN, END = "<!-- long rollouts: written by tools/long_rollouts.py -->", "<!-- end -->"
CHUNK = 100
# Of so many states one is counted: neighbours say the same.
EVERY = 4
# Values of u kept of each chunk for its distribution.
KEPT = 4_000
# Bins of the spectrum that hold less than this of the energy are left out.
LEAST = 1e-4


@dataclass(frozen=True)
class Case:
    title: str
    text: str
    coefficients: dict[str, float]
    length: float
    points: int
    dims: int
    dt: float
    spin_up: int  # steps from random waves to the attractor
    starts: int  # rollouts that statistics are averaged over: one is too short for 5 %
    reference: Callable[[], Callable]


CASES = {
    "kuramoto_sivashinsky": Case(
        "Kuramoto-Sivashinsky, 128 points, box 60",
        "dt(u) = -u*dx(u) - lap(u) - bilap(u)",
        {},
        60.0,
        128,
        1,
        0.2,
        1000,
        64,
        lambda: ex.stepper.KuramotoSivashinskyConservative(1, 60.0, 128, 0.2, order=4),
    ),
    # Vorticity driven by a shear, with drag: without forcing it decays and has no attractor. The
    # signs are exponax's, whose flow is the mirror image of `navier_stokes_vorticity`. The spin-up is
    # five times as long as drag takes.
    "kolmogorov_flow": Case(
        "Navier-Stokes vorticity (Kolmogorov flow), 64 x 64",
        "dt(w) = dx(invlap(w))*dy(w) - dy(invlap(w))*dx(w) + nu*lap(w) - mu*w - k*cos(k*y)",
        {"nu": 0.02, "mu": 0.1, "k": 4.0},
        2 * np.pi,
        64,
        2,
        0.02,
        2500,
        24,
        lambda: ex.stepper.KolmogorovFlowVorticity(
            2,
            2 * np.pi,
            64,
            0.02,
            diffusivity=0.02,
            drag=-0.1,
            injection_mode=4,
            injection_scale=1.0,
            order=4,
        ),
    ),
}


class Statistics:
    """For each of S rollouts the mean energy of each shell of modes, and a sample of the values."""

    def __init__(self, case: Case):
        k = np.meshgrid(*[np.fft.fftfreq(case.points, 1 / case.points)] * case.dims, indexing="ij")
        shell = np.rint(np.sqrt(sum(one**2 for one in k))).astype(int).ravel()
        self.belongs = np.eye(shell.max() + 1)[shell]
        self.energy, self.frames, self.values = np.zeros(()), 0, []
        self.rng = np.random.default_rng(0)

    def add(self, states: np.ndarray) -> None:
        """States `(T, S, 1, *N)`."""
        states = np.moveaxis(states, 1, 0)
        axes = tuple(range(3, states.ndim))
        power = np.abs(np.fft.fftn(states.astype(float), axes=axes, norm="forward")) ** 2
        count, frames = states.shape[:2]
        self.energy = self.energy + power.sum(axis=(1, 2)).reshape(count, -1) @ self.belongs
        self.frames += frames
        values = states.reshape(count, -1)
        size = min(KEPT // count, values.shape[1])
        self.values.append(values[:, self.rng.choice(values.shape[1], size, replace=False)])

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        values = np.concatenate(self.values, axis=1)
        np.savez(path, energy=self.energy, frames=self.frames, values=values)

    def load(self, path: Path) -> "Statistics":
        kept = np.load(path)
        self.energy, self.frames = kept["energy"], int(kept["frames"])
        self.values = [kept["values"]]
        return self

    @property
    def spectrum(self) -> np.ndarray:
        """Of each rollout, without the mean."""
        return self.energy[:, 1:] / self.frames

    def beside(self, other: "Statistics") -> dict[str, float]:
        """Differences, and what of them so many rollouts leave to chance: the standard error of the
        worst shell's, how many shells are off by more than two of their own, and the distance
        between two halves of the reference's rollouts."""
        own, theirs = self.spectrum, other.spectrum
        ours, reference = own.mean(axis=0), theirs.mean(axis=0)
        counted = reference > LEAST * reference.sum()
        off = np.abs(ours / reference - 1)[counted]
        spread = [one.var(axis=0, ddof=1) / len(one) for one in (own, theirs)]
        chance = (np.sqrt(sum(spread)) / reference)[counted]
        mine, true = (np.concatenate(one.values, axis=1) for one in (self, other))
        half = len(true) // 2

        def distance(one: np.ndarray, two: np.ndarray) -> float:
            apart = scipy.stats.wasserstein_distance(one.ravel(), two.ravel())
            return float(apart / true.std())

        return {
            "energy": float(abs(ours.sum() / reference.sum() - 1)),
            "spectrum_mean": float(np.abs(ours - reference).sum() / reference.sum()),
            "spectrum_worst": float(off.max()),
            "its_standard_error": float(chance[off.argmax()]),
            "worst_shell": int(np.flatnonzero(counted)[off.argmax()]) + 1,
            "shells": int(counted.sum()),
            "beyond_two_errors": int((off > 2 * chance).sum()),
            "wasserstein": distance(mine, true),
            "wasserstein_by_chance": distance(true[:half], true[half:]),
        }


def run(step: Callable, u0: jax.Array, steps: int, case: Case, what: str) -> Statistics:
    """Statistics of so many steps, in compiled chunks; as they were kept if they were."""
    kept = RUNS / f"{what} {len(u0)} x {steps}.npz".replace(":", "")
    if kept.exists():
        return Statistics(case).load(kept)

    @jax.jit
    def chunk(u):
        def advance(u, _):
            u = jax.vmap(step)(u)
            return u, u

        u, states = jax.lax.scan(advance, u, length=CHUNK)
        return u, states[EVERY - 1 :: EVERY]

    found, u = Statistics(case), u0
    for _ in track(range(steps // CHUNK), what):
        u, states = chunk(u)
        if not np.isfinite(states).all():
            raise SystemExit(f"{what}: left the finite numbers after {EVERY * found.frames} steps")
        found.add(np.asarray(states))
    found.save(kept)
    return found


def measure(name: str, steps: int) -> dict:
    case = CASES[name]
    reference = case.reference()
    draw = ex.ic.RandomTruncatedFourierSeries(case.dims, cutoff=4)
    keys = jax.random.split(jax.random.key(0), case.starts)
    kept = RUNS / f"{name} {case.starts} starts.npy"
    if not kept.exists():
        waves = jax.vmap(lambda key: draw(case.points, key=key))(keys)
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, jax.jit(jax.vmap(ex.repeat(reference, case.spin_up)))(waves))
    developed = jnp.asarray(np.load(kept))
    sample = np.asarray(jax.jit(lambda u: ex.rollout(reference, 64)(u))(developed[0]))
    equation = parse_equation(case.text, dims=case.dims)
    lengths = (case.length,) * case.dims
    tuned = splatop.choose_numerics(
        equation, case.coefficients, sample[::4], lengths=lengths, dt=case.dt
    )
    # In modes, where a substep costs least.
    numerics = replace(tuned.numerics, integrator="etdrk4")
    physics = splatop.build_physics(equation, numerics, lengths=lengths, dt=case.dt)
    values = dict(case.coefficients)
    # Chaos: after a few hundred steps only statistics can be compared. Short-time agreement shows
    # that it is the same equation.
    ahead = rollout(physics, developed[0], values, steps=10)
    apart = float(jnp.linalg.norm(ahead[-1] - sample[9]) / jnp.linalg.norm(sample[9]))
    theirs = run(reference, developed, steps, case, f"{name}: exponax")
    own = run(lambda u: physics(u, values), developed, steps, case, f"{name}: Φ")
    return {
        "title": case.title,
        "steps": steps,
        "starts": case.starts,
        "scheme": f"{numerics.substeps} of {numerics.integrator.upper()}",
        "error_after_10_steps": apart,
        **own.beside(theirs),
    }


def tables() -> None:
    rows = [
        "| | steps | substeps | energy | spectrum, mean | spectrum, worst shell | shells beyond two standard "
        "errors | Wasserstein (by chance) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, case in CASES.items():
        path = RESULTS / f"{name}.json"
        if not path.exists():
            rows.append(f"| {case.title} | not measured | | | | | | |")
            continue
        it = json.loads(path.read_text())
        percent = {k: f"{100 * v:.2g}" for k, v in it.items() if isinstance(v, float)}
        rows.append(
            f"| {it['title']} | {it['starts']} x {it['steps']:,} | {it['scheme']} | "
            f"{percent['energy']} % | {percent['spectrum_mean']} % | {percent['spectrum_worst']} ± "
            f"{percent['its_standard_error']} % (shell {it['worst_shell']}) | "
            f"{it['beyond_two_errors']} of {it['shells']} | "
            f"{it['wasserstein']:.2g} ({it['wasserstein_by_chance']:.2g}) |"
        )
    intro = (
        "By `python tools/long_rollouts.py measure`: rollouts of the physics alone, from "
        "developed states, beside exponax's ETDRK4 from the same states. Energy of all shells of modes "
        "together, mean and worst difference of shells with more than 1e-4 of it, and the "
        "Wasserstein distance of the distribution of values over their standard deviation. Chance: the "
        "standard error of the worst shell's difference, from how much the rollouts differ among each other; of shells "
        "that agree one in twenty is beyond two; and the distance between two halves of exponax's rollouts."
    )
    write_between(PAGE, BEGIN, END, f"{intro}\n\n" + "\n".join(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("measure", "tables"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--steps", type=int, default=10_000)
    given = parser.parse_args()
    if given.command == "tables":
        tables()
    else:
        RESULTS.mkdir(parents=True, exist_ok=True)
        for one in given.names or CASES:
            text = json.dumps(measure(one, given.steps), indent=1)
            (RESULTS / f"{one}.json").write_text(text + "\n")
            print(one, text, flush=True)
