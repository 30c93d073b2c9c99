"""What sensors reported: a value of one field at one place and time, each with its noise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..domain import AXES, Domain
from ..errors import SplatopError, check_finite, unknown_name

if TYPE_CHECKING:
    import pandas as pd

# Two reports of one place and time are in contradiction from so many of their standard deviations
# on, or from this share of the field's own spread where their noise is not known.
_FAR, _FAR_SHARE = 6.0, 0.5
# Reports of one value from which on a sensor is stuck.
_STUCK = 10


@dataclass(frozen=True, eq=False)
class Observations:
    """`n` reports: times `(n,)`, places `(n, d)`, names of fields `(n,)`, values `(n,)`.

    `sigma` is the standard deviation of each report's noise, in the unit of the field; NaN, or None
    for all, where it is not known and shall be estimated. `sensors` names who reported: by default
    each place is a sensor. `spans` `(n, k, d)` are the vectors, from side to side, of the area
    around the place that a report is the mean of: none for a point, one for a line, two for pixels.
    `since` is the moment from which times count, where a table had dates.
    """

    # Anything that NumPy takes; held as arrays.
    times: Any
    places: Any
    fields: Any
    values: Any
    sigma: Any = None
    sensors: Any = None
    spans: Any = None
    since: str | None = None

    def __post_init__(self):
        values = np.asarray(self.values, float)
        n = values.size
        places = np.asarray(self.places, float)
        places = places[:, None] if places.ndim == 1 else places
        names = np.asarray(self.fields)
        names = np.full(n, str(names)) if names.ndim == 0 else names.astype(str)
        given = {
            "times": np.asarray(self.times, float),
            "places": places,
            "fields": names,
            "values": values,
        }
        if self.sigma is not None:
            given["sigma"] = np.broadcast_to(np.asarray(self.sigma, float), (n,)).copy()
        if self.spans is not None:
            given["spans"] = np.asarray(self.spans, float)
        if self.sensors is None:
            given["sensors"] = np.char.add("s", _numbered(places).astype(str))
        else:
            given["sensors"] = np.asarray(self.sensors).astype(str)
        if values.ndim != 1 or places.ndim != 2 or not 1 <= places.shape[1] <= 3:
            raise SplatopError(
                "expected values (n,) at places (n, d) in 1 to 3 dimensions, got "
                f"{values.shape} and {places.shape}"
            )
        for name, array in given.items():
            if len(array) != n:
                raise SplatopError(f"expected {n} {name}, one for each value, got {len(array)}")
            object.__setattr__(self, name, array)
        for name in ("times", "places", "values"):
            check_finite(given[name], f"the {name} of the observations")
        if self.sigma is not None and (np.nan_to_num(given["sigma"], nan=1.0) <= 0).any():
            worst = float(np.nanmin(given["sigma"]))
            raise SplatopError(
                f"expected positive standard deviations in sigma, got {worst:g}: leave sigma out "
                "where the noise is not known"
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dims(self) -> int:
        return self.places.shape[1]

    @property
    def known_noise(self) -> bool:
        """Whether each report says how noisy it is."""
        return self.sigma is not None and bool(np.isfinite(self.sigma).all())

    @property
    def span_of_time(self) -> tuple[float, float]:
        return float(self.times.min()), float(self.times.max())

    def take(self, chosen: np.ndarray) -> "Observations":
        """Those that a mask or an array of indices chooses."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        whole = (None, self.since)
        return Observations(
            **{k: v if any(v is one for one in whole) else v[chosen] for k, v in values.items()}
        )

    def sigma_or(self, estimate: dict[str, float]) -> np.ndarray:
        """The noise of each report, where it is not known the estimate for its field."""
        own = np.array([estimate.get(name, np.nan) for name in self.fields])
        return own if self.sigma is None else np.where(np.isfinite(self.sigma), self.sigma, own)

    @classmethod
    def joined(cls, parts: Sequence["Observations"]) -> "Observations":
        """Several tables as one."""
        n = [len(part) for part in parts]

        def column(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            if all(one is None for one in columns):
                return None
            if name == "sigma":
                columns = [
                    np.full(m, np.nan) if one is None else one
                    for one, m in zip(columns, n, strict=True)
                ]
            if name == "spans" and any(one is None for one in columns):
                raise SplatopError("expected footprints in all parts of the table, or in none")
            return np.concatenate(columns)

        columns = {f.name: column(f.name) for f in fields(cls) if f.name != "since"}
        return cls(**columns, since=parts[0].since)

    def split_off(self, share: float, seed: int = 0) -> tuple["Observations", "Observations"]:
        """What is used, and what is held out: all reports of a share of the sensors, or where
        hardly a sensor reports twice, of the reports."""
        if not 0 < share < 1:
            raise SplatopError(f"expected a share between 0 and 1 to hold out, got {share:g}")
        names, own = np.unique(self.sensors, return_inverse=True)
        count = round(share * len(names))
        if count < 1 or count >= len(names):
            raise SplatopError(
                f"expected sensors to hold out and to use, got {count} of {len(names)} for a share "
                f"of {share:g}: choose another share, or add sensors"
            )
        chosen = np.random.default_rng(seed).permutation(len(names))[:count]
        out = np.isin(own, chosen)
        return self.take(~out), self.take(out)

    def to_pandas(self) -> "pd.DataFrame":
        """The table in its long form, as files hold it."""
        import pandas as pd

        columns: dict[str, Any] = {"t": self.times}
        columns |= {AXES[i]: self.places[:, i] for i in range(self.dims)}
        columns |= {"field": self.fields, "value": self.values, "sensor": self.sensors}
        if self.sigma is not None:
            columns["sigma"] = self.sigma
        return pd.DataFrame(columns)

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        fields: Iterable[str] | None = None,
        columns: Mapping[str, str] | None = None,
        time_unit: str = "s",
        places: Any = None,
        since: str | None = None,
    ) -> "Observations":
        """From a CSV, Parquet or NetCDF file, a folder of such, a pandas table, or an xarray data
        set; `columns` says what they are called there, `time_unit` what moments are counted in
        and `since` from when (else the first), `places` where stations are that the table only
        names."""
        from .observation_files import read_observations

        return read_observations(
            source,
            fields=fields,
            columns=columns,
            time_unit=time_unit,
            places=places,
            since=since,
        )


def checked(
    observations: Observations, fields: tuple[str, ...], domain: Domain
) -> tuple[Observations, list[str]]:
    """The observations without exact duplicates, and warnings; refuses what contradicts the
    problem or itself."""
    if len(observations) == 0:
        raise SplatopError("expected observations, got a table without any")
    for name in np.unique(observations.fields):
        if name not in fields:
            raise unknown_name("field in the observations", str(name), fields)
    if observations.dims != domain.dims:
        raise SplatopError(
            f"expected places with {domain.dims} coordinates ({', '.join(AXES[: domain.dims])}), "
            f"as the equation has axes, got {observations.dims}"
        )
    _check_inside(observations, domain)
    return _without_duplicates(observations)


def stuck(observations: Observations) -> list[str]:
    """Sensors that report one value all the time while most others vary: what may be wrong where
    reports are not explained, or a boundary where they are."""
    assert observations.sensors is not None
    found = []
    for name in np.unique(observations.fields):
        own = observations.fields == name
        who, number = np.unique(observations.sensors[own], return_inverse=True)
        order = np.argsort(number, kind="stable")
        each = np.split(observations.values[own][order], np.cumsum(np.bincount(number))[:-1])
        same = np.array([len(one) >= _STUCK and np.ptp(one) == 0 for one in each])
        vary = np.array([np.ptp(one) > 0 for one in each])
        if same.any() and vary.sum() > same.sum():
            which = ", ".join(who[same][:3])
            found.append(
                f"{int(same.sum())} sensors of {name} report one value all the time ({which}): "
                "leave them out if they are stuck"
            )
    return found


def _check_inside(observations: Observations, domain: Domain) -> None:
    low = np.array(domain.origin)
    high = low + np.array(domain.lengths)
    slack = 1e-6 * np.array(domain.lengths)
    outside = (observations.places < low - slack) | (observations.places > high + slack)
    rows = outside.any(axis=1)
    if domain.shape is not None:
        away = np.asarray(domain.shape.distance(observations.places))
        rows = away > 1e-5 * max(domain.lengths)
        if rows.any():
            worst = int(np.argmax(away))
            x, y = observations.places[worst]
            raise SplatopError(
                f"expected sensors inside the shape {domain.shape.text()}, got {int(rows.sum())} "
                f"reports outside, the farthest at ({x:g}, {y:g}), {away[worst]:.3g} from its "
                "edge: check the units of the places, or correct --shape"
            )
    if rows.any():
        first = observations.places[rows][0]
        box = " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high, strict=True))
        raise SplatopError(
            f"expected sensors inside the domain {box}, got {int(rows.sum())} reports outside, the "
            f"first at ({', '.join(f'{x:g}' for x in first)}): check the units of the places, or "
            "give --lengths and --origin"
        )


def _without_duplicates(observations: Observations) -> tuple[Observations, list[str]]:
    key = [observations.times, *observations.places.T, _numbered(observations.fields[:, None])]
    if observations.spans is not None:
        key += list(observations.spans.reshape(len(observations), -1).T)
    _, group = np.unique(np.stack(key), axis=1, return_inverse=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    same = np.flatnonzero(np.diff(group[order]) == 0)
    if not len(same):
        return observations, []
    one, two = order[same], order[same + 1]
    apart = np.abs(observations.values[one] - observations.values[two])
    spread = {f: observations.values[observations.fields == f].std() for f in observations.fields}
    limit = np.array([_FAR_SHARE * spread[f] for f in observations.fields[one]])
    if observations.sigma is not None:
        noise = np.hypot(observations.sigma[one], observations.sigma[two])
        limit = np.where(np.isfinite(noise), _FAR * noise, limit)
    same_sensor = observations.sensors[one] == observations.sensors[two]  # type: ignore[index]
    bad = apart > limit
    if bad.any():
        i, j = one[bad][0], two[bad][0]
        place = ", ".join(f"{x:g}" for x in observations.places[i])
        raise SplatopError(
            f"expected reports that agree, got {int(bad.sum())} pairs for the same place, time and "
            f"field that contradict each other, the first at ({place}), t = "
            f"{observations.times[i]:g}: {observations.fields[i]} = {observations.values[i]:g} and "
            f"{observations.values[j]:g}: remove the wrong ones"
        )
    repeated = two[(apart == 0) & same_sensor]
    if not len(repeated):
        return observations, []
    kept = np.ones(len(observations), bool)
    kept[repeated] = False
    return observations.take(kept), [
        f"{len(repeated)} rows repeat others exactly and are counted once"
    ]


def _numbered(rows: np.ndarray) -> np.ndarray:
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
