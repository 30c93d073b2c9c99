"""Colour maps and still pictures as data inside the page."""

import base64
import io

import matplotlib
import matplotlib.image
import numpy as np

SEQUENTIAL, DIVERGING, ERROR = "viridis", "RdBu_r", "PuOr_r"
_FAINT = 64  # of 255


def colour_table(name: str) -> str:
    """256 colours as base64 of their red, green and blue bytes."""
    colours = matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3]
    return base64.b64encode(np.ascontiguousarray(colours, np.uint8).tobytes()).decode("ascii")


def field_picture(
    values: np.ndarray, low: float, high: float, name: str, *, faint: np.ndarray | None = None
) -> str:
    """A 2D field, x to the right and y upwards, as the address of an embedded PNG; it is seen
    through where it is `faint`."""
    buffer = io.BytesIO()
    finite = np.where(np.isfinite(values), values, (low + high) / 2)
    scaled = (finite - low) / ((high - low) or 1.0)
    colours = matplotlib.colormaps[name](scaled, bytes=True)
    if faint is not None:
        colours[..., 3] = np.where(faint, _FAINT, 255)
    picture = colours.swapaxes(0, 1)[::-1]
    matplotlib.image.imsave(buffer, np.ascontiguousarray(picture), format="png")
    return picture_address(buffer.getvalue(), "png")


def picture_address(content: bytes, kind: str) -> str:
    """A picture as an address that holds it."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
