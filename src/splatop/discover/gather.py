"""The frames that terms are found from, as modes of their domain take them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import jax
import numpy as np

from ..data import Trajectories
from ..derivative import Derivative
from ..equation import parse_equation
from ..errors import SplatopError
from ..identify.in_harmonics import Harmonics, times_of
from ..identify.noise import Spectrum, measure, project
from ..spaces import ShapeSpace
from ..walls import Galerkin
from .modes import Modes, RingModes, WallModes

# Values of all columns in one frame, and what may be left out of clean data to keep below that.
_PER_FRAME = 6e6
_TAILS = (1e-6, 1e-5, 1e-4, 1e-3)
_LEAST_BAND = 4
# Standard deviations of its noise by which the energy of a harmonic stands out.
_DEVIATIONS = 5.0


@dataclass(frozen=True)
class Gathered:
    """Pieces of trajectories, `states` `(S, L, C, *M)` in the form that `modes` take."""

    states: np.ndarray
    owner: np.ndarray  # the trajectory of each piece
    modes: Modes
    origin: tuple[float, ...]
    spectrum: Spectrum
    noise: np.ndarray  # deviation of noise in each number of a state, broadcastable to it
    dt: float


def gather(
    data: Trajectories, begin: np.ndarray, length: int, degree: int, columns: int = 1
) -> Gathered:
    """The frames inside the band of all of them, on a grid that holds products without aliasing.

    So many columns must fit on it: where the band of clean data is too wide for that, what lies in
    its tail is left out.
    """
    owner = np.repeat(np.arange(data.trajectories), len(begin))
    places = np.array([[i, s] for i in range(data.trajectories) for s in begin])
    pieces = [data.windows(places[owner == i], length) for i in range(data.trajectories)]
    for tail in _TAILS:
        spectra = [measure(piece.astype(np.float64), tail=tail) for piece in pieces]
        band = tuple(int(b) for b in np.max([s.band for s in spectra], axis=0))
        points = tuple(_even((degree + 1) * b + 2) for b in band)
        if columns * math.prod(points) <= _PER_FRAME:
            break
    while columns * math.prod(points) > _PER_FRAME and max(band) > _LEAST_BAND:
        band = tuple(max(_LEAST_BAND, int(0.9 * b)) for b in band)
        points = tuple(_even((degree + 1) * b + 2) for b in band)
    states = np.concatenate([project(p.astype(np.float64), band, points) for p in pieces])
    loudest = spectra[int(np.argmax([s.relative_noise for s in spectra]))]
    size = np.sqrt(np.mean(states**2, axis=(0, 1, *range(3, states.ndim))))
    noise = np.sqrt(np.mean([np.square(s.noise) for s in spectra], axis=0))
    noise = np.maximum(noise, np.finfo(np.float32).eps * size / 4)
    ratio = math.sqrt(math.prod(points) / math.prod(data.grid.points))
    modes = RingModes.of(band, points, data.grid.lengths)
    deviation = (noise * ratio).reshape(-1, *(1,) * len(band))
    return Gathered(states, owner, modes, data.grid.origin, loudest, deviation, data.dt)


def gather_between_walls(
    data: Trajectories,
    begin: np.ndarray,
    length: int,
    degree: int,
    values: Mapping[str, float],
    wanted: Iterable[Derivative] = (),
) -> Gathered:
    """The frames as numbers of Gaussians that obey the conditions at the edges of a box or shape.

    `values` are those of coefficients that the conditions name. Derivatives that are `wanted` are
    ready on a shape, others are made when asked for.
    """
    domain, fields = data.domain, data.fields
    # Of an equation the space needs to know the fields and the degree of its products alone.
    power = min(max(degree, 2), 4)
    stand_in = parse_equation(
        "; ".join(f"dt({name}) = {name}^{power}" for name in fields),
        dims=domain.dims,
        fields=fields,
    )
    owner = np.repeat(np.arange(data.trajectories), len(begin))
    places = np.array([[i, s] for i in range(data.trajectories) for s in begin])
    frames = data.windows(places, length).astype(np.float64)
    times = np.tile(times_of(data, begin.tolist(), length), (data.trajectories, 1))
    with jax.enable_x64(True):
        held = Harmonics(stand_in, data, frames, times, values)
        if held.scheme.moving:
            raise SplatopError(
                f"{data.source}: expected values at the edges that stay the same to find terms, "
                "got ones that change in time: identify coefficients of a whole equation instead"
            )
        scheme = held.scheme
        if isinstance(space := scheme.space, ShapeSpace):
            ready = ShapeSpace(space.domain, fields, space.sizes, tuple(sorted(wanted)))
            scheme = Galerkin(stand_in, ready)
        modes = WallModes.of(scheme, scheme.lifted(values))
        states = np.asarray(held.numbers)
    clean = held.unresolved > 0  # a rest that is no noise
    spectrum = Spectrum(
        noise=np.zeros_like(held.noise) if clean else held.noise,
        scale=held.sizes,
        band=held.scheme.space.shape,
        points=math.prod(data.grid.points),
        unresolved=held.unresolved,
    )
    ratio = np.maximum(spectrum.noise, held.rounding) / np.maximum(held.noise, held.rounding)
    deviation = held.deviation * ratio.reshape(-1, *(1,) * (held.deviation.ndim - 1))
    heard = _heard(states, deviation)
    states, deviation = states * heard, deviation * heard
    return Gathered(states, owner, modes, data.grid.origin, spectrum, deviation, data.dt)


def _heard(states: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Which numbers `(C, *R)` of states `(S, L, C, *R)` to keep: along each axis those up to the
    last one that stands out of its noise. Beyond, a product would be one of noise with noise."""
    count = states.shape[0] * states.shape[1]
    energy = np.mean(states**2, axis=(0, 1)) - deviation**2
    # The mean of so many squares of noise has this deviation.
    loud = energy > _DEVIATIONS * np.sqrt(2 / count) * deviation**2
    kept = np.ones(states.shape[3:], bool)
    for axis in range(kept.ndim):
        others = tuple(i for i in range(loud.ndim) if i != axis + 1)
        last = np.max(np.flatnonzero(loud.any(axis=others)), initial=0)
        place = [1] * kept.ndim
        place[axis] = kept.shape[axis]
        kept &= (np.arange(kept.shape[axis]) <= last).reshape(place)
    return np.broadcast_to(kept, loud.shape)


def _even(n: int) -> int:
    """An even number that FFTs like, not below n."""
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1 and n % 2 == 0:
            return n
        n += 1
