"""The problems that coarse models ship for: how their data are made, and the solver beside them.

exponax makes the data and is the solver that a model is up against, so that neither is our own.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..benchmarks import get_benchmark
from ..coarse import truncate
from ..coarse.chaos import correlated, horizon, mean_errors
from ..data import reference_stepper
from ..data.reference import initial_state
from ..spectral import resample
from ..stepper import Stepper

Step = Callable[[Float[Array, "C *N"]], Float[Array, "C *N"]]


@dataclass(frozen=True)
class CoarseCase:
    """A problem on a periodic box, its solver and its protocol.

    `solver(points, dt)` is one step of exponax. `warmup` frames from random states come before the
    first that counts. `coarse` and `stride` are what the shipped model computes with. A chaotic
    problem is judged by its horizon in frames ("horizon") or by the frames that its correlation
    with the truth stays above 0.9 ("correlation"), any other by its mean relative error over
    `judged` frames ("error"). `grids` and `steps` (points, and frames in one step) are what is
    tried of the solver.
    """

    name: str
    equation: str
    fields: tuple[str, ...]
    dims: int
    length: float
    points: int
    dt: float
    coarse: int
    stride: int
    solver: Callable[[int, float], Step]
    initial: Callable[[Array, int], Array]
    judge: str
    frames: int
    grids: tuple[int, ...]
    steps: tuple[int, ...]
    warmup: int = 0
    substeps: int = 1  # of the solver, for a frame of the reference
    trajectories: int = 88
    held_out: int = 17
    judged: int = 200
    training_points: int = 0  # of the grid that training data are made on; 0: the fine one
    model: str = "surrogate"
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def chaotic(self) -> bool:
        """Whether trajectories part whatever the model."""
        return self.judge != "error"

    def reference(
        self, count: int, *, seed: int, frames: int, points: int | None = None
    ) -> np.ndarray:
        """Trajectories `(count, frames, C, *N)` on the fine grid, or one of so many points."""
        points = points or self.points
        advance = self.fine(points).step

        def frame(u, _):
            u = advance(u)
            return u, u

        @jax.jit
        def run(u):
            u = jax.lax.scan(lambda v, _: (frame(v, None)[0], None), u, length=self.warmup)[0]
            return jnp.concatenate([u[None], jax.lax.scan(frame, u, length=frames - 1)[1]])

        keys = jax.random.split(jax.random.key(seed), count)
        return np.stack([np.asarray(run(self.initial(key, points))) for key in keys])

    def fine(self, points: int | None = None) -> "Rollout":
        """The solver as the reference takes it, on the fine grid or one of so many points."""
        points = points or self.points
        step = self.solver(points, self.dt / self.substeps)

        def frame(u: Array) -> Array:
            for _ in range(self.substeps):
                u = step(u)
            return u

        return Rollout(frame, (points,) * self.dims, 1)

    def score(self, roll: "Rollout", truth: np.ndarray) -> float:
        """How good rollouts of `truth` `(B, T, C, *N)` are, the larger the better: frames that they
        hold, or the mean relative error with its sign turned."""
        made = roll.frames(truth)
        true = truth[:, roll.stride : (made.shape[1] * roll.stride) + 1 : roll.stride]
        if self.judge == "correlation":
            return correlated(made, true, stride=roll.stride)
        if self.judge == "horizon":
            return horizon(mean_errors(made, true), float(truth.std()), stride=roll.stride)
        axes = tuple(range(2, true.ndim))
        with np.errstate(all="ignore"):
            error = np.sqrt(np.sum((made - true) ** 2, axis=axes) / np.sum(true**2, axis=axes))
        return -float(np.nan_to_num(np.mean(error), nan=np.inf))

    def solvers(self) -> Iterator["Rollout"]:
        """The solver on every grid and with every step that is tried, the cheapest first."""

        def cost(candidate: tuple[int, int]) -> float:
            points, stride = candidate
            return points**self.dims * np.log2(points) / stride

        for points, stride in sorted(((p, s) for p in self.grids for s in self.steps), key=cost):
            yield Rollout(self.solver(points, self.dt * stride), (points,) * self.dims, stride)

    def matching_solver(self, score: float, truth: np.ndarray) -> "Rollout | None":
        """The cheapest solver, of the coarsest grid and longest step, that is no worse."""
        return next((s for s in self.solvers() if self.score(s, truth) >= score), None)


@dataclass(frozen=True)
class Rollout:
    """A step, the grid that it is on, and how many frames it takes."""

    step: Step
    points: tuple[int, ...]
    stride: int

    def states(self, u: Array, steps: int) -> Array:
        """The states that follow `u`, all on the step's own grid, in one compiled loop."""

        def advance(v, _):
            v = self.step(v)
            return v, v

        return jax.lax.scan(advance, u, length=steps)[1]

    def frames(self, truth: np.ndarray) -> np.ndarray:
        """Rollouts from the first frame of each trajectory, on the fine grid."""
        fine, steps = truth.shape[3:], (truth.shape[1] - 1) // self.stride

        @eqx.filter_jit
        def one(u):
            start = u if self.points == fine else truncate(u, self.points)
            states = self.states(start, steps)
            return jax.vmap(lambda v: resample(v, fine))(states)

        return np.stack([np.asarray(one(jnp.asarray(t[0]))) for t in truth])


def of_stepper(stepper: Stepper, coefficients: Mapping, points: tuple[int, ...], stride: int):
    """A model in the coarse space that it computes in."""
    carried = stepper.carried
    return Rollout(lambda u: carried(u, coefficients), points, stride)


def _ks(points: int, dt: float) -> Step:
    import exponax

    return exponax.stepper.KuramotoSivashinskyConservative(1, 60.0, points, dt, order=4)


def _rough(key: Array, points: int) -> Array:
    noise = 0.5 * jax.random.normal(key, (1, points))
    return noise - jnp.mean(noise)


def _kolmogorov(points: int, dt: float) -> Step:
    import exponax

    return exponax.stepper.KolmogorovFlowVorticity(
        2,
        2 * math.pi,
        points,
        dt,
        diffusivity=1e-3,
        drag=-0.1,
        injection_mode=4,
        injection_scale=0.25,
        order=4,
    )


def _eddies(key: Array, points: int) -> Array:
    """Random vorticity in the lowest modes, the same function on every grid."""
    modes = jnp.asarray(range(1, 5))
    x = 2 * math.pi * jnp.arange(points) / points
    amplitudes, phases = jax.random.normal(key, (4, 4)), 6.3 * jax.random.uniform(key, (2, 4, 4))
    along = [jnp.cos(modes[:, None, None] * x + phases[i][:, :, None]) for i in range(2)]
    return jnp.einsum("jk,jkx,jky->xy", amplitudes, along[0], along[1].swapaxes(0, 1))[None]


def _burgers(points: int, dt: float) -> Step:
    benchmark = replace(get_benchmark("burgers2d").with_points(points), dt=dt)
    stepper, values = reference_stepper(benchmark), dict(benchmark.coefficients)
    return lambda u: stepper(u, values)


def _series(key: Array, points: int) -> Array:
    return initial_state(get_benchmark("burgers2d").with_points(points), key)


@functools.cache
def cases() -> dict[str, CoarseCase]:
    """By the short name that stands in the keys of `splatop bench`."""
    burgers = get_benchmark("burgers2d")
    return {
        "ks": CoarseCase(
            name="kuramoto_sivashinsky",
            equation="dt(u) = -u*dx(u) - lap(u) - bilap(u)",
            fields=("u",),
            dims=1,
            length=60.0,
            points=128,
            dt=0.2,
            coarse=4,
            stride=4,
            solver=_ks,
            initial=_rough,
            judge="horizon",
            frames=600,
            grids=(32, 48, 56, 64, 80),
            steps=(2, 4, 6, 8),
            warmup=200,
            substeps=2,
            settings={"phases": "0:6000"},
        ),
        "burgers2d": CoarseCase(
            name="burgers2d",
            equation=(
                "dt(u_x) = -0.0046875*(u_x*dx(u_x) + u_y*dy(u_x)) + 0.0001*lap(u_x); "
                "dt(u_y) = -0.0046875*(u_x*dx(u_y) + u_y*dy(u_y)) + 0.0001*lap(u_y)"
            ),
            fields=burgers.fields,
            dims=2,
            length=1.0,
            points=burgers.points,
            dt=burgers.dt,
            coarse=3,
            stride=6,
            solver=_burgers,
            initial=_series,
            judge="error",
            frames=201,
            grids=(28, 32, 36, 40),
            steps=(4, 6, 7, 8),
            trajectories=44,
            held_out=5,
            # 64² hold these fields to 3e-7 of their amplitude; a third of that is 22². They are so
            # smooth that the physics alone does there.
            training_points=64,
            model="physics",
        ),
        # The advection of exponax 0.2 turns the other way round than the curl of a velocity: this
        # is the mirror image of the flow, which the forcing along y leaves as it is.
        "navier_stokes": CoarseCase(
            name="navier_stokes",
            equation=(
                "dt(w) = dx(invlap(w))*dy(w) - dy(invlap(w))*dx(w) + 0.001*lap(w) - 0.1*w "
                "- cos(4*y)"
            ),
            fields=("w",),
            dims=2,
            length=2 * math.pi,
            points=128,
            dt=0.05,
            coarse=4,
            stride=4,
            solver=_kolmogorov,
            initial=_eddies,
            judge="correlation",
            frames=201,
            grids=(32, 48, 64, 80, 96),
            steps=(1, 2),  # on 96 points two frames in one step are unstable already
            # Twenty units of time, two of the drag's own: the flow has forgotten how it began.
            warmup=400,
            substeps=2,
            trajectories=48,
            held_out=4,
            # The solver to compare with is so quick that a wider network would be slower than it.
            settings={"phases": "0:700", "batch": "8", "hidden": "16"},
        ),
    }
