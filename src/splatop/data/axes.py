"""Axes of a file: their order and their spacing; its fields and what they may hold."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..errors import SplatopError, unknown_name

T = TypeVar("T")

SPATIAL = "xyz"
_UNEVEN = 1e-3  # of the spacing, beside the rounding of coordinates stored in float32
_ROUNDED = 0.08  # of the spacing: rounding to decimals may move a coordinate by no more


def parse_axes(axes: str, rank: int, *, source: str) -> str:
    """Check letters such as "btcxy": batch, time, channel, space; b and c may be absent."""
    spatial = "".join(letter for letter in axes if letter in SPATIAL)
    known = all(letter in "btcxyz" for letter in axes)
    if not known or len(set(axes)) != len(axes) or "t" not in axes or "x" not in spatial:
        raise SplatopError(
            f"expected axes from b (trajectory), t (time), c (channel), x, y, z, each once and at "
            f"least t and x, got '{axes}': write for example btcxy"
        )
    if set(spatial) != set(SPATIAL[: len(spatial)]):
        raise SplatopError(f"expected space as x, xy or xyz in some order, got axes '{axes}'")
    if len(axes) != rank:
        raise SplatopError(
            f"{source}: expected one letter for each of its {rank} axes, got '{axes}'"
        )
    return axes


def to_standard(block: np.ndarray, axes: str) -> np.ndarray:
    """A block with named axes, without b, as `(T, C, X[, Y[, Z]])` in single precision."""
    wanted = "tc" + "".join(letter for letter in SPATIAL if letter in axes)
    if "c" not in axes:
        block, axes = block[..., None], axes + "c"
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is told so
        return np.transpose(block, [axes.index(letter) for letter in wanted]).astype(
            np.complex64 if np.iscomplexobj(block) else np.float32, copy=False
        )


def uniform_spacing(coordinates: np.ndarray, name: str, *, source: str) -> float:
    """The spacing of evenly spaced coordinates; says where they are not."""
    coordinates = np.asarray(coordinates, float)
    if coordinates.ndim != 1 or len(coordinates) < 2 or not np.isfinite(coordinates).all():
        raise SplatopError(
            f"{source}: expected at least two finite values along {name}, "
            f"got an array of shape {coordinates.shape}"
        )
    spacing = (coordinates[-1] - coordinates[0]) / (len(coordinates) - 1)
    uneven = uneven_gaps(coordinates)
    if spacing <= 0 or uneven.any():
        raise uneven_axis(coordinates, name, source, "resample to even spacing first")
    return float(spacing)


def uneven_axis(
    coordinates: np.ndarray, name: str, source: str, cure: str = "repair them"
) -> SplatopError:
    """What is said of coordinates that are not even, with the place."""
    uneven = uneven_gaps(coordinates)
    first = int(np.argmax(uneven)) if uneven.any() else 0
    return SplatopError(
        f"{source}: expected evenly spaced, increasing values along {name}, got "
        f"{coordinates[first]:g} and then {coordinates[first + 1]:g} at index {first} "
        f"(the usual step is {np.median(np.diff(coordinates)):g}): {cure}"
    )


def mean_spacing(coordinates: np.ndarray, name: str, *, source: str) -> float:
    """The spacing of coordinates that rise or fall, on average; uneven ones are told apart later,
    where they can be resampled."""
    coordinates = np.asarray(coordinates, float)
    if coordinates.ndim != 1 or len(coordinates) < 2 or not np.isfinite(coordinates).all():
        return uniform_spacing(coordinates, name, source=source)
    gaps = np.diff(coordinates)
    if not ((gaps > 0).all() or (gaps < 0).all()):
        raise uneven_axis(coordinates, name, source)
    return float(abs(coordinates[-1] - coordinates[0]) / (len(coordinates) - 1))


def uneven_gaps(coordinates: np.ndarray) -> np.ndarray:
    """Which gaps between coordinates are not like the others, beyond rounding."""
    gaps = np.diff(coordinates)
    rounding = 4 * np.finfo(np.float32).eps * np.abs(coordinates).max()
    typical = np.median(gaps)
    uneven = np.abs(gaps - typical) > _UNEVEN * abs(typical) + rounding
    if uneven.any() and _even_before_rounding(coordinates, rounding):
        return np.zeros_like(uneven)
    return uneven


def _even_before_rounding(coordinates: np.ndarray, tolerance: float) -> bool:
    """Whether even coordinates, written with few decimals, would be these: 0.062 and 0.125."""
    index = np.arange(len(coordinates))
    slope, start = np.polyfit(index, coordinates, 1)
    off = float(np.max(np.abs(coordinates - (start + slope * index))))
    if not 0 < off < _ROUNDED * abs(slope):
        return False
    # Rounding moves by half a unit of the last decimal; the line is fitted to what it left.
    for unit in 10.0 ** (np.ceil(np.log10(off)) + np.arange(2)):
        rest = np.abs(coordinates - unit * np.round(coordinates / unit)).max()
        if off <= 0.8 * unit and rest <= tolerance:
            return True
    return False


def as_lengths(lengths: float | Sequence[float] | None, dims: int) -> tuple[float, ...] | None:
    """One length for all axes, or one for each."""
    if lengths is None:
        return None
    values = tuple(float(value) for value in np.ravel(np.asarray(lengths, float)))
    values = values * dims if len(values) == 1 else values
    if len(values) != dims:
        wanted = "1 length" if dims == 1 else f"1 or {dims} lengths"
        raise SplatopError(f"expected {wanted} for {dims}D data, got {values}")
    return values


def as_origin(
    origin: float | Sequence[float] | np.ndarray | None, dims: int
) -> tuple[float, ...] | None:
    """One coordinate that all axes begin at, or one for each."""
    if origin is None:
        return None
    values = tuple(float(value) for value in np.ravel(origin))
    values = values * dims if len(values) == 1 else values
    if len(values) != dims or not np.isfinite(values).all():
        raise SplatopError(
            f"expected an origin of one finite number, or {dims} of them for {dims}D data, "
            f"got {values}"
        )
    return values


def first_coordinate(along: np.ndarray | None, count: int) -> float:
    """The lower end of an axis of `count` points; 0 if it has no finite coordinate for each."""
    if along is None or along.shape != (count,) or not np.issubdtype(along.dtype, np.number):
        return 0.0
    return float(min(along[0], along[-1])) if np.isfinite([along[0], along[-1]]).all() else 0.0


def choose_fields(wanted: Sequence[str] | None, available: Iterable[str]) -> tuple[str, ...]:
    """The fields asked for, or all there are; a vector's name asks for all of its components."""
    available = tuple(available)
    found: list[str] = []
    for name in wanted or ():
        components = [name] if name in available else components_of(name, available)
        if not components:
            raise unknown_name("field", name, available)
        found += components
    return tuple(found or available)


def components_of(name: str, available: Iterable[str]) -> list[str]:
    """The fields `v_x`, `v_xy`, ... of a vector or tensor `v`."""
    return [
        one
        for one in available
        if one.startswith(f"{name}_") and set(one[len(name) + 1 :]) <= set(SPATIAL)
    ]


def component_names(name: str, count: int, dims: int) -> list[str]:
    """Names for the channels of a variable: those of a vector have the letters of its axes."""
    if count == 1:
        return [name]
    return [f"{name}_{k}" for k in (SPATIAL[:dims] if count == dims else range(count))]


def common_shape(shapes: Mapping[str, tuple[int, ...]], source: str) -> tuple[int, ...]:
    """The shape that all of them have."""
    if len(set(shapes.values())) != 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise SplatopError(
            f"{source}: expected fields of one shape, got {listed}: name the fields to read, "
            "or repair the file"
        )
    return next(iter(shapes.values()))


def is_complex(dtype: Any, what: str, source: str) -> bool:
    """Whether the numbers are complex; text and objects are refused."""
    if np.issubdtype(dtype, np.complexfloating):
        return True
    check_real(dtype, what, source)
    return False


def check_real(dtype: Any, what: str, source: str) -> None:
    """Refuse complex numbers, text and objects."""
    if not (np.issubdtype(dtype, np.floating) or np.issubdtype(dtype, np.integer)):
        raise SplatopError(f"{source}: expected real numbers in {what}, got {dtype}")


def name_channels(fields: Sequence[str] | None, channels: int, source: str) -> tuple[str, ...]:
    """Names for channels that the file leaves unnamed; a single one is `u`."""
    if fields is None and channels == 1:
        return ("u",)
    if fields is None or len(fields) != channels:
        raise SplatopError(
            f"{source}: expected names for its {channels} channel(s), "
            f"got {', '.join(fields or ()) or 'none'}: give the fields, in order (--fields "
            f"{','.join('uvwpqrst'[:channels])})"
        )
    for name in fields:
        if not name.isidentifier() or name.lower() in ("nan", "inf", "infinity"):
            raise SplatopError(
                f"{source}: expected names that an equation can hold, such as u or u_x, got "
                f"'{name}' (--fields)"
            )
    return tuple(fields)


def need(value: T | None, what: str, option: str, source: str) -> T:
    """A value that the file does not hold and the user has to give."""
    if value is None:
        raise SplatopError(f"{source}: expected {what}, which this file does not hold: {option}")
    return value
