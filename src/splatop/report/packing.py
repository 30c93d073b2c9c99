"""Arrays as text inside the page: quantised, compressed, base64.

The page's script undoes each step. Neighbours differ little, so bytes are stored as differences
along the last axis, which halves the compressed size.
"""

import base64
import zlib
from dataclasses import dataclass

import numpy as np

# Codes of signed values: 128 is zero, 1 and 255 are the limits, 0 is a value that is not finite.
_ZERO, _SPAN = 128, 127


@dataclass(frozen=True)
class FieldScale:
    """Colour limits of one field, the same for every frame."""

    low: float
    high: float
    signed: bool

    @property
    def range(self) -> float:
        """Greatest minus least value that the colours tell apart."""
        return self.high - self.low


def field_scale(values: np.ndarray) -> FieldScale:
    """Limits of the reference: symmetric if the field takes both signs, else its own range."""
    low, high = float(values.min()), float(values.max())
    if low < 0 < high:
        limit = max(-low, high)
        return FieldScale(-limit, limit, True)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return FieldScale(low, high, False)


def quantise_field(frame: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """A frame to 0..255 linearly between its own extremes: half a level is 0.2 % of its range."""
    low, high = float(frame.min()), float(frame.max())
    levels = (frame - low) / ((high - low) or 1.0) * 255
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8), (low, high)


def error_limit(error: np.ndarray, scale: FieldScale) -> float:
    """The largest error worth telling: beyond the field's range a prediction is off the scale."""
    finite = np.abs(error[np.isfinite(error)])
    return min(float(finite.max(initial=0.0)), scale.range)


def quantise_signed(values: np.ndarray, limit: float) -> np.ndarray:
    """To 1..255 by the square root, which tells four decades apart; 0 is not finite."""
    finite = np.isfinite(values)
    share = np.clip(np.where(finite, values, 0.0) / (limit or 1.0), -1, 1)
    codes = np.rint(_SPAN * np.sign(share) * np.sqrt(np.abs(share))) + _ZERO
    return np.where(finite, codes, 0).astype(np.uint8)


def pack_bytes(codes: np.ndarray) -> str:
    """Bytes as differences along the last axis, deflated, base64."""
    codes = np.ascontiguousarray(codes, np.uint8)
    return _text(np.diff(codes, axis=-1, prepend=np.uint8(0)).tobytes())


def pack_floats(values: np.ndarray) -> str:
    """Little-endian float32 with 11 bits of fraction, enough to draw with; deflated, base64."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4")
    return _text(((bits + 0x800) & 0xFFFFF000).astype("<u4").tobytes())


def _text(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")
