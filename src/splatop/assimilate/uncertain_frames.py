"""States on a grid with their standard deviations, at the times of frames."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..data import ArrayTrajectories, save_trajectories
from ..data.atomic import write_whole
from ..domain import AXES, Domain
from ..errors import SplatopError
from ..grid import Grid
from ..points import Points

if TYPE_CHECKING:
    import xarray as xr

STD = "_std"


@dataclass(frozen=True, eq=False)
class Frames:
    """`mean` and `std` `(T, C, *N)` of the fields at `times` `(T,)`; `std` is None where it was not
    asked for."""

    times: np.ndarray
    mean: Float[np.ndarray, "T C *N"]
    std: Float[np.ndarray, "T C *N"] | None
    grid: Grid | Points
    fields: tuple[str, ...]
    domain: Domain
    coefficients: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)

    def followed_by(self, later: "Frames") -> "Frames":
        """These, and later ones from where these end."""
        new = later.times > self.times[-1] + 1e-6 * max(abs(self.times[-1]), 1e-12)
        std = (
            None
            if self.std is None or later.std is None
            else np.concatenate([self.std, later.std[new]])
        )
        return Frames(
            np.concatenate([self.times, later.times[new]]),
            np.concatenate([self.mean, later.mean[new]]),
            std,
            self.grid,
            self.fields,
            self.domain,
            later.coefficients,
            later.attributes,
        )

    def on_grid(self, values: np.ndarray) -> np.ndarray:
        """Values of the grid's points, of points in a shape on the grid that they are of: NaN
        outside."""
        if isinstance(self.grid, Points) and self.grid.cells is not None:
            return self.grid.on_grid(values)
        return values

    def to_xarray(self) -> "xr.Dataset":
        """A data set with dimensions t, x[, y, z], and for each field its `_std`."""
        import xarray as xr

        axes = AXES[: self.grid.dims]
        grid, place = self.grid, axes
        if isinstance(grid, Points):
            grid, place = (grid.cells, axes) if grid.cells is not None else (grid, "p")
        coordinates: dict[str, Any] = {
            a: (tuple(place) if place == "p" else a, c.ravel())
            for a, c in zip(axes, grid.coordinates(), strict=True)
        }
        coordinates["t"] = self.times
        dims = ("t", *(("point",) if place == "p" else axes))
        if place == "p":
            coordinates = {a: ("point", c[1]) if a != "t" else c for a, c in coordinates.items()}
        values = {name: (dims, self.on_grid(self.mean[:, i])) for i, name in enumerate(self.fields)}
        if self.std is not None:
            values |= {
                f"{n}{STD}": (dims, self.on_grid(self.std[:, i])) for i, n in enumerate(self.fields)
            }
        return xr.Dataset(values, coords=coordinates, attrs=dict(self.attributes))

    def save(self, path: str | Path) -> Path:
        """Write them as HDF5 in the layout of our data sets, means and standard deviations as
        fields: `splatop inspect`, xarray and others read it. A name ending in .nc writes NetCDF."""
        path = Path(path)
        if path.suffix in (".nc", ".nc4"):
            with tempfile.TemporaryDirectory() as scratch:
                self.to_xarray().to_netcdf(Path(scratch) / "frames.nc", engine="h5netcdf")
                write_whole(path, (Path(scratch) / "frames.nc").read_bytes())
            return path
        steps = np.diff(self.times)
        if len(steps) and np.ptp(steps) > 1e-4 * steps.mean():
            raise SplatopError(
                f"expected times that are evenly apart for {path.name}, got steps from "
                f"{steps.min():g} to {steps.max():g}: write NetCDF instead, a name ending in .nc"
            )
        names, states = self.fields, self.mean
        if self.std is not None:
            names = (*names, *(f"{name}{STD}" for name in self.fields))
            states = np.concatenate([self.mean, self.std], axis=1)
        dt = float(self.times[1] - self.times[0]) if len(self) > 1 else 1.0
        held = ArrayTrajectories(
            states[None].astype(np.float32),
            self.grid,
            dt=dt,
            fields=names,
            coefficients={k: np.array([v]) for k, v in self.coefficients.items()},
            attributes={**self.attributes, "begin": float(self.times[0])},
        )
        held.domain = Domain(self.domain.axes, shape=self.domain.shape)
        save_trajectories(path, held)
        return path
