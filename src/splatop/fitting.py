"""`fit`: trajectories and an equation in, a surrogate out."""

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .assimilate import Observations
from .assimilate.from_sensors import from_sensors, refuse_with_sensors
from .data import split
from .data.held import as_trajectories, clock_unit
from .discover.symmetry import symmetry_names
from .encoders import Encoder
from .equation import Equation
from .equation.text import check_number
from .fit_arguments import described_terms, equation_text, fields_of, settings_of
from .fitted import Data, Fitted
from .spectral import Field
from .training import Problem, train
from .training.history import read_history
from .training.loop import Reporter, silent
from .training.prepare import Say
from .training.run_folder import CONFIG, HISTORY, read_json


def fit(
    data: Data | Observations,
    equation: str | Equation,
    *,
    coefficients: Mapping[str, Any] | None = None,
    dt: float | None = None,
    lengths: float | Sequence[float] | np.ndarray | None = None,
    origin: float | Sequence[float] | np.ndarray | None = None,
    fields: Sequence[str] | None = None,
    periodic: bool | None = None,
    boundary: str | None = None,
    sampling: str | Sequence[str] | None = None,
    shape: str | None = None,
    mask: str | np.ndarray | None = None,
    points: np.ndarray | Sequence[int] | int | None = None,
    sensors: Mapping[str, Any] | None = None,
    drop_end: bool = False,
    t0: float | None = None,
    times: Sequence[float] | np.ndarray | None = None,
    inputs: Sequence[str] | None = None,
    drop_terms: Sequence[str] = (),
    symmetry: str | Sequence[str] = (),
    coarse: int | None = None,
    stride: int = 1,
    grid: str = "given",
    refine: bool = False,
    operator: Callable[..., Field] | None = None,
    encoder: Encoder | None = None,
    preset: str = "fast",
    settings: Mapping[str, Any] | None = None,
    hold_out: int | None = None,
    out: str | Path | None = None,
    report: Reporter = silent,
    say: Say = lambda _: None,
) -> Fitted:
    """Train a surrogate on trajectories, with whatever is known of their equation.

    `data` are an array `(B, T, C, *N)` of B trajectories of T frames, C fields and N points along
    each axis, or `(T, C, *N)` of one trajectory; or xarray with named dimensions and coordinates;
    or `Trajectories`; or the path of a file. An array needs `dt`, the time between frames, and
    `lengths`, the side of the box along each axis, in the units of the coefficients; `origin` is
    where the axes begin (else 0), `fields` names the channels where their order is not that of the
    equation.

    `equation` is text such as "dt(u) = D*lap(u) + ?", an `Equation`, or the name of a benchmark or
    example. `coefficients` are the known values, the others are identified; `drop_terms` names
    terms that the physics must not use. A term found for `?` respects each `symmetry`, as in
    `discover`.

    Complex arrays are those of complex fields: `psi` becomes the real fields `psi_re` and `psi_im`,
    and the equation may be written for either. An equation with `t` in it needs the time `t0` of
    the first frame of an array; `times` are those of all frames, in place of `dt`, which need not
    be even. `inputs` are fields of the data that drive the others and are not predicted; the
    equation may use their names. `drop_end=True` leaves out a last point that repeats
    the first; `lengths` are then those of the period.

    Values at fixed scattered `points` `(P, 2)` are arrays `(B, T, C, P)` or `(T, C, P)`; `shape`
    says what part of the plane they are of, as in "box(0, 0, 1, 1) - disk(0.4, 0.5, 0.15)", and
    `boundary` what holds at its edges. For data on a grid `mask` may be an array of the grid's
    points that is True inside, or "nan".

    Of `Observations`, what sensors reported, windows are analysed first, on a grid of `points` in
    the box of `lengths`, with frames of `dt`; the surrogate then learns what the equation leaves.
    `sensors` are other arguments of `assimilate`, such as {"unknown": {"D": 0.01}, "window": 20}.

    With `coarse=4` the surrogate computes on a quarter of the points along each axis, with
    `stride=4` one step of it is four frames long; states go in and come out on the data's own grid,
    or stay on the coarse one with `grid="coarse"`. With `refine` they hold a learned guess of what
    the coarse grid leaves out.

    `operator` is any equinox module `u -> u` of one state to use instead of the FNO, `encoder` one
    to use instead of the lattice; terms, encoders and operators of your own classes can be saved
    once these are registered (`splatop.register`). `settings`
    replace single ones of the `preset`. `hold_out` trajectories, the last ones, are kept from
    training for the report: without it one in five, and of fewer than five the last fifth in time
    of each; with 0 nothing is, and the report is about the training data and says so. The run is
    kept in the folder `out`, where an interrupted one is continued; without it, nowhere.
    """
    place: dict[str, Any] = {
        "dt": dt,
        "lengths": lengths,
        "origin": origin,
        "boundary": boundary,
        "sampling": sampling,
        "shape": shape,
        "points": points,
    }
    meaning: dict[str, Any] = {
        "fields": fields,
        "periodic": periodic,
        "mask": mask,
        "drop_end": drop_end,
        "t0": t0,
        "times": times,
        "inputs": inputs,
    }
    told = None
    if isinstance(data, Observations) or sensors is not None:
        refuse_with_sensors(**{**meaning, "drop_end": drop_end or None})
        asked = equation if isinstance(equation, Equation) else equation_text(equation, 1)
        told = from_sensors(
            data, asked, coefficients=coefficients, say=say, **place, **(sensors or {})
        )
        data, coefficients, settings = (
            told.trajectories,
            told.coefficients,
            told.settings(settings),
        )
        place, meaning = {}, {}
    trajectories = as_trajectories(data, **place, **meaning, default_fields=fields_of(equation))
    text = equation_text(equation, trajectories.grid.dims)
    for name, value in (coefficients or {}).items():
        check_number(name, value)
    known = {name: float(value) for name, value in (coefficients or {}).items()}
    problem = Problem(
        data=trajectories,
        equation_text=text,
        coefficients=known,
        hold_out=hold_out,
        terms=described_terms(equation, trajectories.grid.dims),
        symmetry=symmetry_names(symmetry),
    )
    chosen = settings_of(
        preset,
        settings or {},
        coarse={"factor": coarse, "stride": stride, "answers": grid, "refine": refine},
    )
    chosen = replace(chosen, drop_terms=tuple(drop_terms))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run" if out is None else Path(out)
        model = train(
            folder,
            problem,
            chosen,
            operator=operator,
            encoder=encoder,
            resume=(folder / CONFIG).exists(),
            report=report,
            say=say,
        )
        config, history = read_json(folder / CONFIG), read_history(folder / HISTORY)
    say(model.record["summary"])
    doubt = None if told is None else told.judge(model, say)
    if doubt is not None:
        warnings.warn(doubt, stacklevel=2)
    return Fitted(
        model=model,
        coefficients={
            **model.spec.coefficients,
            **{k: np.asarray(v) for k, v in config["prepared"]["coefficients"].items()},
        },
        test=split(trajectories, hold_out).reported,
        given=tuple(known),
        clock=clock_unit(data, trajectories.dt),
        config=config,
        history=history,
    )
