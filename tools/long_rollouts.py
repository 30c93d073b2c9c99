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
        8,
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
    """The mean energy of each shell of modes, and a sample of the values."""

    def __init__(self, case: Case):
        k = np.meshgrid(*[np.fft.fftfreq(case.points, 1 / case.points)] * case.dims, indexing="ij")
        self.shell = np.rint(np.sqrt(sum(one**2 for one in k))).astype(int).ravel()
        self.energy, self.frames, self.values = 0.0, 0, []
        self.rng = np.random.default_rng(0)

    def add(self, states: np.ndarray) -> None:
        """States `(T, S, 1, *N)` of S rollouts."""
        states = states.reshape(-1, *states.shape[2:])
        axes = tuple(range(2, states.ndim))
        power = np.abs(np.fft.fftn(states[:, :1].astype(float), axes=axes, norm="forward")) ** 2
        total = power.sum(axis=(0, 1)).ravel()
        self.energy = self.energy + np.bincount(self.shell, total)
        self.frames += len(states)
        self.values.append(self.rng.choice(states.ravel(), min(KEPT, states.size), replace=False))

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        values = np.concatenate(self.values)
        np.savez(path, energy=self.energy, frames=self.frames, values=values)

    def load(self, path: Path) -> "Statistics":
        kept = np.load(path)
        self.energy, self.frames, self.values = (
            kept["energy"],
            int(kept["frames"]),
            [kept["values"]],
        )
        return self

    @property
    def spectrum(self) -> np.ndarray:
        return np.asarray(self.energy) / self.frames

    def beside(self, other: "Statistics") -> dict[str, float]:
        own, theirs = self.spectrum[1:], other.spectrum[1:]
        counted = theirs > LEAST * theirs.sum()
        mine, reference = np.concatenate(self.values), np.concatenate(other.values)
        return {
            "energy": float(abs(own.sum() / theirs.sum() - 1)),
            "spectrum_mean": float(np.abs(own - theirs).sum() / theirs.sum()),
            "spectrum_worst": float(np.max(np.abs(own / theirs - 1)[counted])),
            "shells": int(counted.sum()),
            "wasserstein": float(
                scipy.stats.wasserstein_distance(mine, reference) / reference.std()
            ),
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

        return jax.lax.scan(advance, u, length=CHUNK)

    found, u = Statistics(case), u0
    for _ in track(range(steps // CHUNK), what):
        u, states = chunk(u)
        if not np.isfinite(states).all():
            raise SystemExit(f"{what}: left the finite numbers after {found.frames} steps")
        found.add(np.asarray(states))
    found.save(kept)
    return found


def measure(name: str, steps: int) -> dict:
    case = CASES[name]
    reference = case.reference()
    draw = ex.ic.RandomTruncatedFourierSeries(case.dims, cutoff=4)
    keys = jax.random.split(jax.random.key(0), 2 * case.starts)
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
    first, others = jnp.split(developed, 2)
    one = run(reference, first, steps, case, f"{name}: exponax")
    other = run(reference, others, steps, case, f"{name}: exponax, other starts")
    own = run(lambda u: physics(u, values), first, steps, case, f"{name}: Φ")
    return {
        "title": case.title,
        "steps": steps,
        "starts": case.starts,
        "scheme": f"{numerics.substeps} of {numerics.integrator.upper()}",
        "error_after_10_steps": apart,
        "physics": own.beside(one),
        "reference_beside_itself": other.beside(one),
    }


def tables() -> None:
    rows = [
        "| | steps | substeps | energy | spectrum, mean | spectrum, worst shell | Wasserstein |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in CASES:
        path = RESULTS / f"{name}.json"
        if not path.exists():
            rows.append(f"| {CASES[name].title} | not measured | | | | | |")
            continue
        found = json.loads(path.read_text())
        for what, label in (("physics", found["title"]), ("reference_beside_itself", "exponax")):
            it = found[what]
            scheme = found["scheme"] if what == "physics" else "from other starts"
            cells = [f"{100 * it[k]:.2g} %" for k in ("energy", "spectrum_mean", "spectrum_worst")]
            rows.append(
                f"| {label} | {found.get('starts', 1)} x {found['steps']:,} | {scheme} | {' | '.join(cells)} | "
                f"{it['wasserstein']:.2g} |"
            )
    intro = (
        "By `python tools/long_rollouts.py measure`: rollouts of the physics alone, from "
        "developed states, beside exponax's ETDRK4 from the same states. Energy of all shells of modes "
        "together, mean and worst difference of shells with more than 1e-4 of it, and the "
        "Wasserstein distance of the distribution of values over their standard deviation. The "
        "second line of each pair is exponax beside itself from other starts: what so many steps "
        "leave to chance."
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
