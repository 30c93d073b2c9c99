"""Complex data as real fields: `psi` becomes `psi_re` and `psi_im`."""

import warnings
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError, is_concrete
from .trajectories import Trajectories

# An imaginary part that stays below this share of the real one is what transforms and tolerances of
# a solver leave: published KdV files of pseudospectral solvers hold 2e-6, and nothing at all else.
ROUNDING = 1e-5
RE, IM = "_re", "_im"


class RealFields(Trajectories):
    """The real and imaginary parts of complex trajectories as fields of their own."""

    def __init__(self, whole: Trajectories, kept: Sequence[bool]):
        self.whole, self._kept = whole, tuple(kept)
        self._like(whole)
        self.fields = part_names(whole.fields, kept, source=whole.source)

    def read(self, trajectory: int, start: int, frames: int) -> np.ndarray:
        return parts(self.whole.read(trajectory, start, frames), self._kept, axis=1)

    def close(self) -> None:
        self.whole.close()


def real_fields(data: Trajectories) -> Trajectories:
    """The data itself, or its complex fields as real ones; reads all frames once for these."""
    if not data.complex_fields:
        return data
    blocks = (data.states(*block) for block in data.blocks())
    kept = _kept(blocks, data.fields, 1, complex_fields=data.complex_fields, source=data.source)
    return RealFields(data, kept)


def real_array(
    array: np.ndarray, fields: Sequence[str], *, axis: int, source: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """An array with the complex channels `fields` along `axis`, and its names, both made real."""
    kept = _kept([array], fields, axis, complex_fields=fields, source=source)
    return parts(array, kept, axis=axis), part_names(fields, kept, source=source)


def parts(states: np.ndarray, kept: Sequence[bool], *, axis: int) -> np.ndarray:
    """The real parts in float32, each followed by the imaginary one where that is kept."""
    channels = np.moveaxis(states, axis, 0)
    found = [
        part
        for channel, both in zip(channels, kept, strict=True)
        for part in ((channel.real, channel.imag) if both else (channel.real,))
    ]
    return np.moveaxis(np.stack(found).astype(np.float32, copy=False), 0, axis)


def part_names(fields: Sequence[str], kept: Sequence[bool], *, source: str) -> tuple[str, ...]:
    """Names of the real fields: `n_re` and `n_im` where both parts are kept."""
    names = tuple(
        name
        for field, both in zip(fields, kept, strict=True)
        for name in ((field + RE, field + IM) if both else (field,))
    )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SplatopError(
            f"{source}: expected fields of different names, got '{twice}' both as a field and as "
            "a part of a complex one: name the fields to read"
        )
    return names


def whole_names(fields: Sequence[str]) -> tuple[str, ...]:
    """Names with each pair `psi_re`, `psi_im` as the complex `psi` that it is the parts of."""
    held = set(fields)
    found = []
    for name in fields:
        stem = name.removesuffix(RE).removesuffix(IM)
        paired = stem != name and {stem + RE, stem + IM} <= held
        found.append(stem if paired else name)
    return tuple(dict.fromkeys(found))


def as_parts(states: jax.Array, fields: Sequence[str], *, axis: int) -> jax.Array:
    """Complex states, one channel for each complex field, as the real channels `fields`."""
    whole = whole_names(fields)
    if whole == tuple(fields) and not _only_rounding(states):
        raise SplatopError(
            f"expected real states, the fields {', '.join(fields)} have no imaginary parts, got "
            "complex ones: pass their real part"
        )
    if states.shape[axis] != len(whole):
        raise SplatopError(
            f"expected complex states with {len(whole)} channel(s), {', '.join(whole)}, got shape "
            f"{tuple(states.shape)}: add a channel axis, or vmap over a batch"
        )
    found = []
    for name in fields:
        stem = name if name in whole else name.removesuffix(RE).removesuffix(IM)
        channel = jnp.take(states, whole.index(stem), axis=axis)
        found.append(channel.imag if stem != name and name.endswith(IM) else channel.real)
    return jnp.stack(found, axis=axis)


def _only_rounding(states: jax.Array) -> bool:
    if not is_concrete(states):
        return False
    return bool(jnp.max(jnp.abs(states.imag)) <= ROUNDING * jnp.max(jnp.abs(states.real)))


def as_whole(states: jax.Array, fields: Sequence[str], *, axis: int) -> jax.Array:
    """The inverse of `as_parts`."""

    def channel(name: str) -> jax.Array:
        return jnp.take(states, tuple(fields).index(name), axis=axis)

    found = [
        channel(name) + 0j if name in fields else channel(name + RE) + 1j * channel(name + IM)
        for name in whole_names(fields)
    ]
    return jnp.stack(found, axis=axis)


def _kept(
    blocks: Iterable[np.ndarray],
    fields: Sequence[str],
    axis: int,
    *,
    complex_fields: Sequence[str],
    source: str,
) -> tuple[bool, ...]:
    """Which imaginary parts are more than rounding; says what becomes of each field."""
    real, imaginary = np.zeros(len(fields)), np.zeros(len(fields))
    for block in blocks:
        flat = np.moveaxis(block, axis, 0).reshape(len(fields), -1)
        finite = np.where(np.isfinite(flat), flat, 0)
        real = np.maximum(real, np.abs(np.real(finite)).max(axis=1, initial=0.0))
        imaginary = np.maximum(imaginary, np.abs(np.imag(finite)).max(axis=1, initial=0.0))
    kept = imaginary > ROUNDING * real
    for name, both, size, whole in zip(fields, kept, imaginary, real, strict=True):
        if name in complex_fields:
            text = _split_text(name) if both else _dropped_text(name, size / (whole or 1.0))
            warnings.warn(f"{source}: {text}", stacklevel=4)
    return tuple(bool(both) for both in kept)


def _dropped_text(name: str, share: float) -> str:
    return (
        f"the imaginary part of {name} is rounding or a solver's tolerance ({share:.1e} of the "
        f"real part) and was dropped: {name} is a real field"
    )


def _split_text(name: str) -> str:
    re, im = name + RE, name + IM
    return (
        f"{name} is complex, its parts are the fields {re} and {im}. Write the equation for "
        f'{name}, such as "dt({name}) = i*(D*lap({name}) + g*abs2({name})*{name})", or for the '
        f'parts, such as "dt({re}) = -D*lap({im}); dt({im}) = D*lap({re})"'
    )
