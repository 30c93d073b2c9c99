"""What a data set holds: ranges, spectrum, frames that are not finite, and a picture."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import SplatopError
from ..points import Points
from ..spaces import energy_spectrum
from ..spectral import radial_spectrum
from .atomic import complete_or_absent
from .trajectories import Trajectories
from .well_writer import Progress

_SPECTRUM_FRAMES = 64
_LISTED = 20
_SHARES = (0.99, 0.9999, 0.999999)


def summarize(trajectories: Trajectories, *, progress: Progress | None = None) -> dict[str, Any]:
    """Everything worth knowing before training, ready for JSON. Reads every frame once."""
    ranges = _Ranges(trajectories.fields)
    bad: list[dict[str, Any]] = []
    for index, start, count in trajectories.blocks():
        states = trajectories.states(index, start, count)
        flat = states.reshape(*states.shape[:2], -1)
        for step, channel in np.argwhere(~np.isfinite(flat).all(axis=-1)):
            field = trajectories.fields[channel]
            bad.append({"trajectory": index, "step": start + int(step), "field": field})
        ranges.add(flat)
        if progress:
            progress(index + 1, trajectories.trajectories)
    attributes = dict(trajectories.attributes)
    summary = {
        "source": attributes.pop("source", None),
        "format": attributes.pop("format", None),
        "boundary_conditions": attributes.pop("boundary_conditions", None),
        "sampling": attributes.pop("sampling", None),
        "domain": trajectories.domain.as_dict(),
        "layout": _layout(trajectories),
        **_shape(trajectories),
        "fields": list(trajectories.fields),
        "trajectories": trajectories.trajectories,
        "frames": trajectories.frames,
        "points": list(trajectories.grid.points),
        "lengths": list(trajectories.grid.lengths),
        "origin": list(trajectories.grid.origin),
        "dt": trajectories.dt,
        "times": _times(trajectories),
        "gigabytes": trajectories.nbytes / 1e9,
        "coefficients": {
            name: {"min": float(values.min()), "max": float(values.max())}
            for name, values in trajectories.coefficients.items()
        },
        "ranges": ranges.summary(),
        "spectrum": spectrum(trajectories),
        "not_finite": {"frames": len(bad), "first": bad[:_LISTED]},
        "attributes": attributes,
    }
    return _without_nan(summary)


def _times(trajectories: Trajectories) -> dict[str, Any] | None:
    """When the frames are, if that is known."""
    times = trajectories.times
    if times is None:
        return None
    gaps = np.diff(times)
    return {
        "first": float(times[0]),
        "last": float(times[-1]),
        "even": trajectories.even,
        "shortest": float(gaps.min()),
        "longest": float(gaps.max()),
    }


def _layout(trajectories: Trajectories) -> list[str]:
    grid = trajectories.grid
    if isinstance(grid, Points):
        return ["scattered points" if grid.cells is None else "the points of a masked grid"]
    return list(grid.layout)


def _shape(trajectories: Trajectories) -> dict[str, Any]:
    """What is worth knowing of a shape."""
    shape = trajectories.domain.shape
    if shape is None:
        return {}
    grid, sure = trajectories.grid, "its formula"
    if not shape.is_exact:
        step = max(grid.spacing)
        sure = f"a mask: the edge is known to a cell ({step:.3g}) only; give --shape if you know it"
    return {
        "shape": {
            "text": shape.text(),
            "edges": list(shape.edge_names),
            "area": shape.area,
            "points": int(grid.points[0]),
            "known_by": sure,
        }
    }


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: null stands for it."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def spectrum(trajectories: Trajectories) -> dict[str, Any]:
    """Mean energy per shell over frames spread through the data, and how far it has decayed.

    `holds` gives the wavenumber below which a share of the energy without the mean lies; `tail` is
    the energy of the highest eighth of the shells per shell, relative to the largest shell.
    Wavenumbers count waves in `box`, the longest side; of a bounded axis twice its length, because
    fields are continued beyond its ends by reflection.
    """
    if isinstance(trajectories.grid, Points):
        return _spectrum_on_shape(trajectories)
    count = min(_SPECTRUM_FRAMES, trajectories.trajectories * trajectories.frames)
    flat = np.linspace(0, trajectories.trajectories * trajectories.frames - 1, count).astype(int)
    energies = []
    sides = tuple(
        length if ring else 2 * length
        for length, ring in zip(
            trajectories.grid.lengths, trajectories.domain.periodic, strict=True
        )
    )
    for index, step in zip(*np.divmod(flat, trajectories.frames), strict=True):
        state = trajectories.states(int(index), int(step), 1)[0]
        if np.isfinite(state).all():
            # Of values near 1: the square of 1e30 is more than single precision holds.
            size = 2.0 ** int(np.frexp(np.abs(state).max())[1])
            whole = _reflected(state / size, trajectories)
            energy = radial_spectrum(jnp.asarray(whole), sides)
            energies.append(np.asarray(energy, float) * size**2)
    return _described(energies, max(sides))


def _described(energies: list[np.ndarray], box: float) -> dict[str, Any]:
    if not energies:
        return {"frames": 0, "box": box, "energy": [], "holds": {}, "tail": None}
    energy = np.mean(energies, axis=0)
    fluctuation = energy[1:]
    total, largest = fluctuation.sum(), fluctuation.max(initial=0.0)
    cumulative = np.cumsum(fluctuation) / total if total > 0 else np.ones_like(fluctuation)
    tail = fluctuation[-max(1, len(fluctuation) // 8) :]
    return {
        "frames": len(energies),
        "box": box,
        "energy": energy.tolist(),
        "holds": {f"{share:g}": _reaches(cumulative, share) for share in _SHARES},
        "tail": float(tail.mean() / largest) if largest > 0 else None,
    }


def _spectrum_on_shape(trajectories: Trajectories) -> dict[str, Any]:
    """The same by the harmonics of the insulated shape."""
    domain, at = trajectories.domain, trajectories.grid.layout
    frames = [
        trajectories.states(0, int(step), 1)[0]
        for step in np.linspace(0, trajectories.frames - 1, 8).astype(int)
    ]
    energies = [
        np.asarray(energy_spectrum(jnp.asarray(frame), domain, at), float)
        for frame in frames
        if np.isfinite(frame).all()
    ]
    return _described(energies, max(domain.lengths))


def _reflected(state: np.ndarray, trajectories: Trajectories) -> np.ndarray:
    """The state `(C, *N)` as a period: bounded axes go on as in a mirror.

    A field that is 0 at both ends goes on with the opposite sign, which is as smooth as it is.
    """
    domain, grid = trajectories.domain, trajectories.grid
    for axis, ring in enumerate(domain.periodic):
        if ring:
            continue
        zero = [
            all(one.kind == "value" and one.value == 0 for one in domain.ends(axis, name))
            for name in trajectories.fields
        ]
        signs = np.where(zero, -1.0, 1.0).reshape(-1, *(1,) * grid.dims)
        kept = slice(1, -1) if grid.layout[axis] == "ends" else slice(None)
        inner = np.moveaxis(np.moveaxis(state, axis + 1, 0)[kept][::-1], 0, axis + 1)
        state = np.concatenate([state, signs * inner], axis=axis + 1).astype(np.float32)
    return state


def _reaches(cumulative: np.ndarray, share: float) -> int:
    """The wavenumber, from 1, up to which this share of the energy lies."""
    return int(np.argmax(cumulative >= min(share, cumulative[-1]))) + 1


def plot(trajectories: Trajectories, path: str | Path) -> None:
    """Draw a few frames of the first trajectory, one row per field, and the spectrum."""
    from matplotlib.figure import Figure  # slow to import, and only pictures need it

    if isinstance(trajectories.grid, Points):
        from .shape_picture import plot_shape

        plot_shape(trajectories, path)
        return
    path = Path(path)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise SplatopError(f"expected a picture named .png, .pdf or .svg, got {path.name}")
    steps = np.unique(np.linspace(0, trajectories.frames - 1, 4).astype(int))
    rows, columns = len(trajectories.fields), len(steps) + 1
    figure = Figure(figsize=(2.6 * columns, 2.5 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    frames = [trajectories.states(0, int(step), 1)[0] for step in steps]
    for row, name in enumerate(trajectories.fields):
        limit = max(float(np.nanmax(np.abs(frame[row]), initial=0.0)) for frame in frames) or 1.0
        for ax, step, frame in zip(axes[row], steps, frames, strict=False):
            _draw(ax, frame[row], limit, trajectories)
            ax.set_title(f"{name}, t = {_time(trajectories, int(step)):g}", fontsize=9)
    energy = spectrum(trajectories)["energy"]
    axes[0][-1].semilogy(range(1, len(energy)), np.maximum(energy[1:], 1e-30))
    axes[0][-1].set_title("energy per wavenumber", fontsize=9)
    for ax in axes[1:, -1]:
        ax.axis("off")
    with complete_or_absent(path) as partial:
        figure.savefig(partial, format=path.suffix[1:].lower(), dpi=120)


def _draw(ax: Any, state: np.ndarray, limit: float, trajectories: Trajectories) -> None:
    grid = trajectories.grid
    if state.ndim == 1:
        ax.plot(grid.coordinates()[0], state)
        ax.set_ylim(-1.05 * limit, 1.05 * limit)
        return
    if state.ndim == 3:
        state = state[..., state.shape[-1] // 2]
    # A point at an end is in the middle of its pixel.
    beyond = [h / 2 if k == "ends" else 0.0 for h, k in zip(grid.spacing, grid.layout, strict=True)]
    sides = list(zip(grid.origin, grid.lengths, beyond, strict=True))[:2]
    ax.imshow(
        state.T,
        origin="lower",
        extent=[end for a, length, h in sides for end in (a - h, a + length + h)],
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
    )


class _Ranges:
    """Least, greatest, mean and spread of each field, over finite values."""

    def __init__(self, fields: tuple[str, ...]):
        self.fields = fields
        self.least = np.full(len(fields), np.inf)
        self.greatest = np.full(len(fields), -np.inf)
        self.count, self.sum, self.squares = np.zeros((3, len(fields)))

    def add(self, states: np.ndarray) -> None:
        finite = np.isfinite(states)
        whole = finite.all()
        for channel in range(len(self.fields)):
            values = states[:, channel] if whole else states[:, channel][finite[:, channel]]
            if values.size:
                self.least[channel] = min(self.least[channel], values.min())
                self.greatest[channel] = max(self.greatest[channel], values.max())
                self.count[channel] += values.size
                self.sum[channel] += values.sum(dtype=float)
                self.squares[channel] += np.square(values, dtype=float).sum()

    def summary(self) -> dict[str, dict[str, float] | None]:
        out: dict[str, dict[str, float] | None] = {}
        for channel, name in enumerate(self.fields):
            if not self.count[channel]:
                out[name] = None
                continue
            mean = self.sum[channel] / self.count[channel]
            variance = self.squares[channel] / self.count[channel] - mean**2
            out[name] = {
                "min": float(self.least[channel]),
                "max": float(self.greatest[channel]),
                "mean": float(mean),
                "std": float(np.sqrt(max(variance, 0.0))),
            }
        return out


def _time(trajectories: Trajectories, frame: int) -> float:
    """Of a frame; from 0 on where that is not known."""
    return frame * trajectories.dt if trajectories.times is None else trajectories.times[frame]
