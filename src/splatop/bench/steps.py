"""One step of the physics, of the networks and of training, against the straightforward way."""

import time
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pdequinox

from ..benchmarks import get_benchmark
from ..data import WindowSampler, generate
from ..encoders import UNetEncoder
from ..numerics import build_physics, paper_numerics
from ..operators import FNO, baseline
from ..physics import Physics
from ..render import LocalRenderer
from ..render.renderer import grid_positions
from ..spectral import PassThrough
from ..surrogate import Surrogate
from ..training import preset
from ..training.loop import only
from ..training.losses import batch_rollout_loss
from ..tune import choose_numerics
from .timing import Measured, measured_times, relative_error


def physics(repeats: int = 9, points: int = 160) -> Measured:
    """One step of Φ on the working grid and on the full one, for a state inside the band."""
    embedded, frames, coefficients = _automatic("advection_diffusion2d", points)
    u = frames[0]
    full = replace(embedded, working_grid=False)
    times = measured_times(
        {
            "work": (lambda v: embedded(v, coefficients), (u,)),
            "full": (lambda v: full(v, coefficients), (u,)),
        },
        repeats,
    )
    return {
        "physics_working_grid_speedup": times["full"] / times["work"],
        "physics_working_grid_error": relative_error(
            embedded(u, coefficients), full(u, coefficients)
        ),
    }


def operators(repeats: int = 9, points: int = 160) -> Measured:
    """Our FNO against pdequinox's, with the same weights."""
    peer = reference_fno(2)
    ours = FNO.from_pdequinox(peer)
    found = {}
    for batch in (1, 20):
        u = jax.random.normal(jax.random.key(1), (batch, 1, points, points))
        times = measured_times(
            {
                "ours": (_batched, (ours, u)),
                "peer": (_batched, (peer, u)),
                "our gradient": (_gradient, (ours, u)),
                "peer gradient": (_gradient, (peer, u)),
            },
            repeats,
        )
        found[f"fno_step_speedup_batch{batch}"] = times["peer"] / times["ours"]
        found[f"fno_gradient_speedup_batch{batch}"] = times["peer gradient"] / times["our gradient"]
    found["fno_step_speedup"] = min(
        found["fno_step_speedup_batch1"], found["fno_step_speedup_batch20"]
    )
    return found


def surrogate(repeats: int = 9, points: int = 160) -> Measured:
    """The whole composite step over pdequinox's plain FNO step, and its other networks."""
    return _composite("advection_diffusion2d", repeats, points)


def surrogate3d(repeats: int = 2, points: int = 64) -> Measured:
    """The same in 3D, with predicted amplitudes: 8,000 of them are too many to solve for."""
    found = _composite("advection_diffusion3d", repeats, points)
    return {name.replace("_step_", "_3d_step_", 1): ratio for name, ratio in found.items()}


def _composite(benchmark: str, repeats: int, points: int) -> Measured:
    embedded, frames, coefficients = _automatic(benchmark, points)
    u = frames[0]
    dims, channels = u.ndim - 1, u.shape[0]
    peer = reference_fno(dims)
    ours = _surrogate(embedded, FNO.from_pdequinox(peer))
    learned = eqx.tree_at(
        lambda s: s.physics.jets.encoder,
        ours,
        UNetEncoder(
            (20,) * dims,
            channels,
            amplitudes="solved" if dims < 3 else "predicted",
            key=jax.random.key(2),
        ),
    )
    times = measured_times(
        {
            "fno": (lambda v: peer(v), (u,)),
            "lattice": (lambda v: ours(v, coefficients), (u,)),
            "unet encoder": (lambda v: learned(v, coefficients), (u,)),
            "unet": (baseline("unet", dims, channels, key=jax.random.key(3)), (u,)),
            "resnet": (baseline("resnet", dims, channels, key=jax.random.key(4)), (u,)),
        },
        repeats,
    )
    return {
        "surrogate_step_over_fno_step": times["lattice"] / times["fno"],
        "surrogate_unet_encoder_step_over_fno_step": times["unet encoder"] / times["fno"],
        "unet_step_over_fno_step": times["unet"] / times["fno"],
        "resnet_step_over_fno_step": times["resnet"] / times["fno"],
    }


class _Gathered(LocalRenderer):
    """The obvious local renderer: each pixel gathers the primitives of its window."""

    def __call__(self, splats, derivatives, grid, filter=PassThrough()):
        derivatives = tuple(derivatives)
        positions = grid_positions(grid) * np.asarray(grid.lengths)
        found = self.at(splats, derivatives, jnp.asarray(positions, jnp.float32), grid.lengths)
        return {d: filter(v.reshape(-1, *grid.points), grid.lengths) for d, v in found.items()}


def training(repeats: int = 2, batch: int = 20, horizon: int = 5, points: int = 160) -> Measured:
    """A stage-2 step of the `fast` preset's first grid against the straightforward one.

    That one is pdequinox's FNO at full resolution beside the paper's Φ: 20 anchors rendered by
    gathering, one RK4 step on the full grid.
    """
    coarse = min(points, preset("fast").phases[0][0])
    name = "advection_diffusion2d"
    paper = replace(
        paper_numerics(get_benchmark(name)), encoder="lattice", anchors=(20, 20), kernel_width=0.75
    )
    contenders = {}
    for label, size in (("ours", coarse), ("straightforward", points)):
        embedded, frames, coefficients = _automatic(name, size, steps=horizon)
        peer = reference_fno(2)
        if label == "ours":
            model = _surrogate(embedded, FNO.from_pdequinox(peer))
        else:
            benchmark = get_benchmark(name)
            slow = build_physics(
                benchmark.equation, paper, lengths=benchmark.lengths, dt=benchmark.dt
            )
            slow = eqx.tree_at(lambda p: p.jets.renderer, slow, _Gathered())
            model = _surrogate(slow, peer)
        contenders[label] = _training_step(model, frames, coefficients, batch)
    data = generate(get_benchmark(name), split="train", trajectories=4, steps=50, points=coarse)
    sampler = WindowSampler(data, batch=batch, frames=horizon + 1, seed=0)
    sampler.batch(0)
    start = time.perf_counter()
    for step in range(20):
        sampler.batch(step)
    loading = (time.perf_counter() - start) / 20
    times = measured_times(contenders, repeats)
    return {
        "train_step_speedup": times["straightforward"] / times["ours"],
        "data_batch_over_train_step": loading / times["ours"],
    }


def memory() -> Measured:
    """Peak memory of a stage-2 step, in GB, as the compiler plans it: 160² x 20 and 64³ x 12."""
    found = {}
    for name, points, batch in (
        ("advection_diffusion2d", 160, 20),
        ("advection_diffusion3d", 64, 12),
    ):
        embedded, frames, coefficients = _automatic(name, points, steps=5)
        dims = frames.ndim - 2
        model = _surrogate(embedded, FNO.from_pdequinox(reference_fno(dims)))
        step, arguments = _training_step(model, frames, coefficients, batch)
        parameters, rest = eqx.partition(arguments, eqx.is_array)
        compiled = jax.jit(lambda p, f=step, r=rest: f(*eqx.combine(p, r))).lower(parameters)
        plan = compiled.compile().memory_analysis()
        if plan is None:  # a device whose compiler does not tell
            continue
        total = plan.temp_size_in_bytes + plan.argument_size_in_bytes + plan.output_size_in_bytes
        found[f"train_step_memory_{dims}d_gigabytes"] = total / 1e9
    return found


def reference_fno(dims: int) -> pdequinox.arch.ClassicFNO:
    """pdequinox's FNO of the paper's size, for a scalar field."""
    return pdequinox.arch.ClassicFNO(
        dims, 1, 1, hidden_channels=6, num_modes=10, num_blocks=4, key=jax.random.key(0)
    )


def _surrogate(embedded: Physics, network: Any) -> Surrogate:
    one = jnp.ones(len(embedded.equation.fields))
    return Surrogate(embedded, network, 0 * one, one, one)


def _training_step(model: Surrogate, frames: jax.Array, coefficients: Any, batch: int):
    """The loss and its gradient over a batch of one window, as `measured_times` takes it."""
    windows = jnp.broadcast_to(frames, (batch, *frames.shape))
    own = {name: jnp.full(batch, value) for name, value in coefficients.items()}
    scale = jnp.ones(frames.shape[1])
    parameters, rest = eqx.partition(model, only(model, lambda s: s.network))

    def step(parameters, windows, own):
        def loss(p):
            return batch_rollout_loss(eqx.combine(p, rest), windows, own, scale=scale)

        return jax.value_and_grad(loss, has_aux=True)(parameters)

    return step, (parameters, windows, own)


def _automatic(name: str, points: int, steps: int = 4):
    """A benchmark's physics with automatic numerics, and frames inside its band."""
    benchmark = get_benchmark(name).with_points(points)
    frames = generate(benchmark, split="test", trajectories=1, steps=steps)
    frames = frames.window(0, 0, steps + 1)
    tuned = choose_numerics(
        benchmark.equation,
        benchmark.coefficients,
        frames,
        lengths=benchmark.lengths,
        dt=benchmark.dt,
    )
    embedded = build_physics(
        benchmark.equation, tuned.numerics, lengths=benchmark.lengths, dt=benchmark.dt
    )
    return embedded, jnp.asarray(frames), dict(benchmark.coefficients)


def _batched(network, u):
    return jax.vmap(network)(u)


def _gradient(network, u):
    return eqx.filter_grad(lambda n: jnp.mean(jax.vmap(n)(u) ** 2))(network)
