"""What a step on a shape costs beside a network's on the box around it."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from ..domain import Condition, Domain
from ..equation import parse_equation
from ..numerics import Numerics, build_physics
from ..points import random_points
from ..shapes import Disk
from ..walls import WallPhysics
from .steps import reference_fno
from .timing import Measured, measured_times

_EQUATIONS = {
    "linear": "dt(u) = -v*dx(u) + D*lap(u)",
    "products": "dt(u) = -u*dx(u) - u*dy(u) + D*lap(u)",
}
_BATCH = 20


def shapes(repeats: int = 9, anchors: int = 42, points: int = 2500, pixels: int = 160) -> Measured:
    """One step with about 1,000 functions in a disk, alone and in a batch, over one of pdequinox's
    FNO on a grid."""
    disk = Disk(0.5, 0.5, 0.4)
    box = replace(Domain.box((1.0, 1.0), periodic=(False, False)), shape=disk)
    domain = box.with_conditions({("disk1", "u"): Condition("value", 0.0)})
    at = random_points(disk, points, 0, lengths=(1.0, 1.0), origin=(0.0, 0.0))
    numerics = Numerics("none", (), 0.0, (anchors, anchors), 1, integrator="etdrk4")
    key, found = jax.random.key(1), {}
    contenders: dict[str, tuple[Callable, tuple]] = {
        "fno": (lambda n, u: n(u), (reference_fno(2), jax.random.normal(key, (1, pixels, pixels))))
    }
    for name, text in _EQUATIONS.items():
        equation = parse_equation(text, dims=2, fields=("u",))
        values = dict.fromkeys(equation.coefficient_names, 1e-3)
        physics = build_physics(equation, numerics, dt=1e-3, domain=domain, layout=at)
        assert isinstance(physics, WallPhysics)
        found["shape_functions"] = float(physics.space.shape[0])

        def step(p, u, values=values):
            return p(u, values)

        def each(p, u, values=values):
            return jax.vmap(lambda v: p(v, values))(u)

        u = 0.1 * jnp.sin(5 * jnp.asarray(at.places[:, 0], jnp.float32))[None]
        contenders[name] = (step, (physics, u))
        contenders[f"{name}_batch"] = (each, (physics, jnp.stack([u] * _BATCH)))
    times = measured_times(contenders, repeats)
    for name in _EQUATIONS:
        found[f"shape_{name}_step_over_fno_step"] = times[name] / times["fno"]
        found[f"shape_{name}_step_over_fno_step_each_of_{_BATCH}"] = (
            times[f"{name}_batch"] / _BATCH / times["fno"]
        )
    return found
