"""The observation operator: what sensors see of the frames of a rollout, linear in each frame.

An observation is a sum of taps: the value of one field at one place in one frame, times a weight.
A report between two frames takes the four around it (cubic in time), a footprint the mean over
Gauss points. Places are evaluated by the functions that hold the state, one small matrix for each
axis, so that nothing is lost to interpolation on the grid.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import legendre

from ..domain import Domain
from ..grid import Grid
from ..points import Points
from ..spaces import BoxSpace
from ..spectral import Field
from ..stepper import Coefficients, Stepper, course
from .observations import Observations
from .on_shape import fitting, functions_of

# A time closer to a frame than this part of the step counts as the frame's.
ON_FRAME = 1e-4
# Gauss points of a footprint along one axis, at least, and for each spacing of the grid.
_FEWEST, _EACH = 3, 1.5


@dataclass(frozen=True)
class Evaluator:
    """States on a grid, evaluated anywhere: as waves around rings, as Gaussians between ends and on
    shapes."""

    domain: Domain
    grid: Grid | Points
    anchors: tuple[int, ...]  # along axes with ends; of others any number

    def rows(self, places: Float[np.ndarray, "P d"]) -> tuple[np.ndarray, ...]:
        """For each axis what the samples along it are multiplied by at these places, `(P, N)`; on a
        shape there is one matrix, of all samples."""
        if isinstance(self.grid, Points):
            there = functions_of(self.domain, self.anchors, places)
            return (there @ fitting(self.domain, self.anchors, self.grid),)
        return tuple(self.along(axis, x) for axis, x in enumerate(np.asarray(places, float).T))

    def along(self, number: int, x: np.ndarray) -> np.ndarray:
        """The same for coordinates along one axis."""
        assert isinstance(self.grid, Grid)
        sizes = tuple(
            (n - 1) // 2 if axis.periodic else anchors
            for axis, n, anchors in zip(
                self.domain.axes, self.grid.points, self.anchors, strict=True
            )
        )
        # Without conditions: states between walls have what is set there in them.
        space = BoxSpace(Domain(self.domain.axes), ("any",), sizes)
        axis = self.domain.axes[number]
        fraction = (np.asarray(x, float) - axis.origin) / axis.length
        fraction = np.ascontiguousarray(fraction % 1.0 if axis.periodic else fraction)
        return space._matrix(number, fraction, 0) @ space._fit(
            number, self.grid.fractions()[number]
        )


class Taps(eqx.Module):
    """What `n` observations take from frames 0 to F: `rows` for each axis `(F + 1, P, N)`, and for
    each tap its observation, frame, field, slot among the frame's places, and weight."""

    rows: tuple[Array, ...]
    observation: Array
    frame: Array
    field: Array
    slot: Array
    weight: Array
    count: int = eqx.field(static=True)

    @property
    def frames(self) -> int:
        """Steps of the rollout that is looked at."""
        return len(self.rows[0]) - 1

    def gather(self, seen: Float[Array, "F C P"]) -> Float[Array, " n"]:
        """The observations, of what is seen at all places in all frames."""
        taken = self.weight * seen[self.frame, self.field, self.slot]
        return jnp.zeros(self.count, seen.dtype).at[self.observation].add(taken)


def look(u: Field, rows: tuple[Array, ...]) -> Float[Array, "C P"]:
    """All fields at the places of one frame."""
    seen = jnp.einsum("pi,ci...->cp...", rows[0], u)
    for along in rows[1:]:
        seen = jnp.einsum("pi,cpi...->cp...", along, seen)
    return seen


def observed_rollout(
    stepper: Stepper,
    u0: Field,
    coefficients: Coefficients,
    taps: Taps,
    forcing: Callable[[Array], Field] | None = None,
    increments: Array | None = None,
) -> Float[Array, " n"]:
    """What the sensors of `taps` see of the rollout from `u0`. `forcing` of one of the `increments`
    is added after each step."""
    first = look(u0, tuple(rows[0] for rows in taps.rows))
    later = tuple(rows[1:] for rows in taps.rows)
    changing = course(stepper, coefficients, taps.frames)

    def advance(u, given):
        rows, increment, now = given
        u = stepper(u, {**coefficients, **now})
        if forcing is not None:
            u = u + forcing(increment)
        return u, look(u, rows)

    if taps.frames == 0:
        return taps.gather(first[None])
    if stepper.scannable:
        _, seen = jax.lax.scan(advance, u0, (later, increments, changing))
    else:
        u, each = u0, []
        for frame in range(taps.frames):
            given = jax.tree.map(lambda a, f=frame: a[f], (later, increments, changing))
            u, one = advance(u, given)
            each.append(one)
        seen = jnp.stack(each)
    return taps.gather(jnp.concatenate([first[None], seen]))


def make_taps(
    observations: Observations,
    fields: tuple[str, ...],
    evaluator: Evaluator,
    *,
    begin: float,
    dt: float,
    frames: int,
) -> Taps:
    """The taps of observations in frames at `begin`, `begin + dt`, ..., `begin + frames dt`."""
    observation, where, weight = footprints(observations, np.array(evaluator.grid.spacing))
    frame, in_time = time_weights((observations.times - begin) / dt, frames)
    frame, in_time = frame[observation], in_time[observation]
    width = frame.shape[1]
    numbers = np.array([fields.index(name) for name in observations.fields], int)
    taps = {
        "observation": np.repeat(observation, width),
        "frame": frame.ravel(),
        "field": np.repeat(numbers[observation], width),
        "place": np.repeat(np.arange(len(where)), width),
        "weight": (weight[:, None] * in_time).ravel(),
    }
    used = taps["weight"] != 0
    taps = {name: values[used] for name, values in taps.items()}
    distinct, same = np.unique(where, axis=0, return_inverse=True)
    place = same.reshape(-1)[taps["place"]]
    pairs, slot_of = np.unique(np.stack([taps["frame"], place]), axis=1, return_inverse=True)
    begins = np.searchsorted(pairs[0], np.arange(frames + 1))
    slots = np.arange(pairs.shape[1]) - begins[pairs[0]]
    most = int(np.max(slots, initial=0)) + 1
    table = np.zeros((frames + 1, most), int)
    table[pairs[0], slots] = pairs[1]
    rows = evaluator.rows(distinct)
    return Taps(
        rows=tuple(jnp.asarray(along[table], jnp.float32) for along in rows),
        observation=jnp.asarray(taps["observation"]),
        frame=jnp.asarray(taps["frame"]),
        field=jnp.asarray(taps["field"]),
        slot=jnp.asarray(slots[slot_of.reshape(-1)]),
        weight=jnp.asarray(taps["weight"], jnp.float32),
        count=len(observations),
    )


def time_weights(position: np.ndarray, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Frames and weights `(n, w)` of times that are `position` steps after the first frame: one
    frame where the time is a frame's, else the cubic through the four around it."""
    nearest = np.round(position)
    exact = np.abs(position - nearest) <= ON_FRAME
    width = min(4, frames + 1)
    if exact.all() or width == 1:
        return np.clip(nearest, 0, frames).astype(int)[:, None], np.ones((len(position), 1))
    first = np.clip(np.floor(position).astype(int) - (width - 1) // 2, 0, frames + 1 - width)
    frame = first[:, None] + np.arange(width)
    weight = np.ones(frame.shape)
    at = np.where(exact, nearest, position)[:, None]
    for other in range(width):
        for own in range(width):
            if own != other:
                weight[:, own] *= ((at - frame[:, [other]]) / (own - other))[:, 0]
    return frame, weight


def footprints(
    observations: Observations, spacing: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points that each observation is a mean of: whose they are, where, and their weight.

    `spacing` is that of a grid that resolves the fields, along each axis.
    """
    n = len(observations)
    spans = observations.spans
    if spans is None:
        return np.arange(n), observations.places, np.ones(n)
    whose, where, weight = [], [], []
    for index in range(n):
        points, shares = observations.places[[index]], np.ones(1)
        for span in spans[index]:  # each vector of the footprint, from side to side
            reach = np.max(np.abs(span) / spacing)
            if reach == 0:
                continue
            x, w = legendre.leggauss(int(np.ceil(_FEWEST + _EACH * reach)))
            points = (points[:, None] + 0.5 * x[:, None] * span).reshape(-1, points.shape[1])
            shares = (shares[:, None] * (w / 2)).ravel()
        whose.append(np.full(len(points), index))
        where.append(points)
        weight.append(shares)
    return np.concatenate(whose), np.concatenate(where), np.concatenate(weight)
