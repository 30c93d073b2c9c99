"""The frames that terms are found from, as modes of their domain take them."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Trajectories
from ..derivative import Derivative
from ..equation import parse_equation
from ..errors import SplatopError
from ..identify.in_harmonics import Harmonics, times_of
from ..identify.inverse import NOISY
from ..identify.noise import Spectrum, measure
from ..spaces import ShapeSpace
from ..walls import Galerkin
from .modes import Bands, Modes, RingModes, WallModes, within

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
    noise: Callable[[np.random.Generator], np.ndarray]  # drawn for one piece, (L, C, *M)
    dt: float


def gather(
    data: Trajectories,
    begin: np.ndarray,
    length: int,
    degree: int,
    columns: int = 1,
    *,
    inputs: int = 0,
) -> Gathered:
    """The frames inside the band of all of them, on a grid that holds products without aliasing.

    The last `inputs` channels drive the others and have a band of their own: a potential with a
    kink must not open that of smooth fields to noise. So many columns must fit on the grid: where
    the band of clean data is too wide for that, what lies in its tail is left out.
    """
    owner = np.repeat(np.arange(data.trajectories), len(begin))
    places = np.array([[i, s] for i in range(data.trajectories) for s in begin])
    pieces = [data.windows(places[owner == i], length) for i in range(data.trajectories)]
    channels = pieces[0].shape[2]
    counts = [channels - inputs, inputs] if inputs else [channels]
    ends = np.cumsum(counts)[:-1]
    parts = [np.split(piece.astype(np.float64), ends, axis=2) for piece in pieces]

    def grid(bands: Bands) -> tuple[int, ...]:
        return tuple(
            _even((degree + 1) * int(b) + 2) for b in np.max([b for _, b in bands], axis=0)
        )

    for tail in _TAILS:
        spectra = [[measure(part[i], tail=tail) for part in parts] for i in range(len(counts))]
        bands: Bands = tuple(
            (count, tuple(int(b) for b in np.max([s.band for s in own], axis=0)))
            for count, own in zip(counts, spectra, strict=True)
        )
        if columns * math.prod(grid(bands)) <= _PER_FRAME:
            break
    while columns * math.prod(grid(bands)) > _PER_FRAME:
        widest = np.max([b for _, b in bands], axis=0)
        if widest.max() <= _LEAST_BAND:
            break
        most = np.maximum(_LEAST_BAND, (0.9 * widest).astype(int))
        bands = tuple((n, tuple(int(b) for b in np.minimum(band, most))) for n, band in bands)
    points = grid(bands)
    states = np.concatenate([within(np.concatenate(p, axis=2), bands, points) for p in parts])
    loudest = spectra[0][int(np.argmax([s.relative_noise for s in spectra[0]]))]
    size = np.sqrt(np.mean(states**2, axis=(0, 1, *range(3, states.ndim))))
    noise = np.concatenate(
        [np.sqrt(np.mean([np.square(s.noise) for s in own], axis=0)) for own in spectra]
    )
    noise = np.maximum(noise, np.finfo(np.float32).eps * size / 4)
    ratio = math.sqrt(math.prod(points) / math.prod(data.grid.points))
    modes = RingModes.of(bands, points, data.grid.lengths)
    deviation = (noise * ratio).reshape(-1, *(1,) * len(points))

    def drawn(generator: np.random.Generator) -> np.ndarray:
        return within(deviation * generator.standard_normal(states.shape[1:]), bands, points)

    return Gathered(states, owner, modes, data.grid.origin, loudest, drawn, data.dt)


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
        lifted = scheme.lifted(values)
        states = np.asarray(held.numbers)
    clean = held.unresolved > 0  # a rest that is no noise
    spectrum = Spectrum(
        noise=np.zeros_like(held.noise) if clean else held.noise,
        scale=held.sizes,
        band=held.scheme.space.shape,
        points=math.prod(data.grid.points),
        unresolved=held.unresolved,
    )
    # A fit gathers noise at the walls, so its numbers belong together: samples of it are drawn.
    own = np.maximum(spectrum.noise, held.rounding)
    ratio = own / np.maximum(held.noise, held.rounding)
    deviation = held.deviation * ratio.reshape(-1, *(1,) * (held.deviation.ndim - 1))
    band = _heard(states, deviation)
    inside = tuple(map(slice, band))
    heard = np.zeros(states.shape[2:])
    heard[(slice(None), *inside)] = 1.0
    noisy = not clean and held.relative_noise >= NOISY
    modes = WallModes.of(scheme, lifted, band, noisy=noisy)
    own = own.reshape(-1, *(1,) * len(frames.shape[3:]))
    enter = jax.jit(jax.vmap(lambda u: held.scheme.enter(u, held.along, None)))

    def drawn(generator: np.random.Generator) -> np.ndarray:
        samples = own * generator.standard_normal(frames.shape[1:])
        with jax.enable_x64(True):
            return np.asarray(enter(jnp.asarray(samples))) * heard

    states = states * heard
    return Gathered(states, owner, modes, data.grid.origin, spectrum, drawn, data.dt)


def _heard(states: np.ndarray, deviation: np.ndarray) -> tuple[int, ...]:
    """How many numbers of states `(S, L, C, *R)` to keep along each axis: up to the last one that
    stands out of its noise. Beyond, a product would be one of noise with noise."""
    count = states.shape[0] * states.shape[1]
    energy = np.mean(states**2, axis=(0, 1)) - deviation**2
    # The mean of so many squares of noise has this deviation.
    loud = energy > _DEVIATIONS * np.sqrt(2 / count) * deviation**2
    return tuple(
        1 + int(np.max(np.flatnonzero(loud.any(axis=others)), initial=0))
        for others in (
            tuple(i for i in range(loud.ndim) if i != axis) for axis in range(1, loud.ndim)
        )
    )


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
