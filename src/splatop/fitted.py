"""`fit`: trajectories and an equation in, a surrogate out, in whatever form the user holds them."""

import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .benchmarks import BENCHMARKS
from .data import Trajectories, split
from .data.complex_fields import as_parts, as_whole
from .data.held import as_trajectories, clock_unit, is_labelled
from .equation import EXAMPLES, Equation, format_equation, parse_equation
from .equation.text import check_number
from .errors import SplatopError, check_field, check_finite, is_concrete, unknown_name
from .evaluate import Metrics, evaluate
from .evaluate.report import Report, write_report
from .evaluate.report.runs import Run, StageHistory, read_history
from .grid import Grid
from .identify import Identified, identify_trajectories
from .model import Model, save_model
from .spectral import Field
from .stepper import Coefficients, Stepper, rollout
from .training import Problem, Settings, preset, train
from .training.loop import Reporter, silent
from .training.prepare import Say
from .training.run_folder import CONFIG, HISTORY, MODEL, read_json
from .training.settings import parse_overrides

if TYPE_CHECKING:
    import xarray as xr

    Data = np.ndarray | jax.Array | xr.Dataset | xr.DataArray | Trajectories | str | Path
    State = np.ndarray | jax.Array | xr.Dataset | xr.DataArray
else:
    Data = State = Any


def fit(
    data: Data,
    equation: str | Equation,
    *,
    coefficients: Mapping[str, Any] | None = None,
    dt: float | None = None,
    lengths: float | Sequence[float] | np.ndarray | None = None,
    origin: float | Sequence[float] | np.ndarray | None = None,
    fields: Sequence[str] | None = None,
    periodic: bool | None = None,
    drop_end: bool = False,
    drop_terms: Sequence[str] = (),
    operator: Callable[..., Field] | None = None,
    preset: str = "fast",
    settings: Mapping[str, Any] | None = None,
    hold_out: int | None = None,
    out: str | Path | None = None,
    report: Reporter = silent,
    say: Say = lambda _: None,
) -> "Fitted":
    """A surrogate of the trajectories, with whatever of its equation is known.

    `data` are arrays `(B, T, C, *N)` or `(T, C, *N)` with `dt` and `lengths` (one per axis), the
    `origin` that the coordinates of an equation begin at (else 0) and, unless the equation's order
    is theirs, the names of the `fields`; or xarray with named dimensions and coordinates; or
    trajectories, or a file of them. `equation` is text, or the name of a benchmark or example.
    `coefficients` are those known, the others are identified; `drop_terms` are terms that the
    physics shall not know.

    Complex arrays are those of complex fields: `psi` becomes the real fields `psi_re` and `psi_im`,
    and the equation may be written for either. `drop_end=True` leaves out a last point that repeats
    the first; `lengths` are then those of the period.

    `operator` is any equinox module `u -> u` of one state to use instead of the FNO. `settings`
    replace single ones of the `preset`. `hold_out` trajectories, the last ones, are kept from
    training for the report: without it one in five, and of fewer than five the last fifth in time
    of each; with 0 nothing is, and the report is about the training data and says so. The run is
    kept in the folder `out`, where an interrupted one is continued; without it, nowhere.
    """
    trajectories = as_trajectories(
        data,
        dt=dt,
        lengths=lengths,
        origin=origin,
        fields=fields,
        periodic=periodic,
        drop_end=drop_end,
        default_fields=_fields_of(equation),
    )
    text = _equation_text(equation, trajectories.grid.dims)
    for name, value in (coefficients or {}).items():
        check_number(name, value)
    known = {name: float(value) for name, value in (coefficients or {}).items()}
    problem = Problem(data=trajectories, equation_text=text, coefficients=known, hold_out=hold_out)
    chosen = replace(_settings(preset, settings or {}), drop_terms=tuple(drop_terms))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run" if out is None else Path(out)
        model = train(
            folder,
            problem,
            chosen,
            operator=operator,
            resume=(folder / CONFIG).exists(),
            report=report,
            say=say,
        )
        config, history = read_json(folder / CONFIG), read_history(folder / HISTORY)
    say(model.record["summary"])
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


@dataclass(frozen=True)
class Fitted:
    """A trained surrogate. What goes in as NumPy, JAX or xarray comes out as the same.

    `coefficients` are one number each, or one for each training trajectory where they differ.
    `test` is what was held out from training, else the training data themselves; its `source` and
    its attribute `held_out` say which.
    """

    model: Model
    coefficients: Mapping[str, float | np.ndarray]
    test: Trajectories
    given: tuple[str, ...]  # names of the coefficients that were known
    clock: np.timedelta64 | None  # one unit of time, if the data's time was a clock's
    config: Mapping[str, Any]
    history: tuple[StageHistory, ...]

    @property
    def summary(self) -> str:
        """One line: what was learned, from how much, and how far ahead it can be trusted."""
        return str(self.model.record["summary"])

    @property
    def stepper(self) -> Stepper:
        """`(u, coefficients) -> u_next`, a pytree for `jit`, `vmap` and `grad`."""
        return self.model.stepper

    def step(self, u: State, coefficients: Coefficients | None = None) -> Any:
        """The state `(C, *N)` one frame later; of states `(B, C, *N)`, each."""
        own = self.model.complete(coefficients)
        if is_labelled(u):
            frames, time = self._labelled(u, 1, own)
            return frames.isel({time: 0})
        states, batched = self._checked(u)
        return self._like(_step(self.stepper, states, own, batched), u)

    def rollout(self, u0: State, steps: int, coefficients: Coefficients | None = None) -> Any:
        """The `steps` states `(T, C, *N)` that follow `u0`, or `(B, T, C, *N)` of a batch.

        In xarray the times follow that of `u0`.
        """
        if steps < 1:
            raise SplatopError(f"expected at least one step, got {steps}")
        own = self.model.complete(coefficients)
        if is_labelled(u0):
            return self._labelled(u0, steps, own)[0]
        states, batched = self._checked(u0)
        return self._like(self._finite(_rollout(self.stepper, states, own, steps, batched)), u0)

    def identify(
        self, frames: State, *, unknown: Sequence[str] | None = None, method: str = "auto"
    ) -> Identified:
        """The coefficients behind frames `(T, C, *N)` of one trajectory, with 95 % intervals.

        Without `unknown` they are those that were not known when fitting, or all.
        """
        spec, equation = self.model.spec, self.model.spec.known_equation
        names = equation.coefficient_names
        for name in unknown or ():
            if name not in names:
                raise unknown_name("coefficient", name, names)
        wanted = tuple(unknown or (n for n in names if n not in self.given)) or names
        known = {n: v for n, v in spec.coefficients.items() if n in names and n not in wanted}
        trajectories = self._as_trajectories(frames)
        if trajectories.trajectories != 1:
            raise SplatopError(
                f"expected frames (T, C, *N) of one trajectory, got {trajectories.trajectories}: "
                "identify each by itself"
            )
        (found,) = identify_trajectories(
            equation,
            None,
            trajectories,
            frames=trajectories.frames,
            unknown=wanted,
            known=known,
            method=method,
        )
        return found

    def evaluate(self, data: Data | None = None, *, steps: int | None = None) -> Metrics:
        """Metrics of rollouts, with the physics alone beside.

        Without `data` they are of what was held out from training, or if nothing was, of the
        training data: `metrics.data["held_out"]` says so.
        """
        test = self.test if data is None else self._as_trajectories(data)
        return evaluate(self.model, test, steps=steps or test.frames - 1)

    def report(
        self, path: str | Path, data: Data | None = None, *, steps: int | None = None
    ) -> Report:
        """Write the HTML page about rollouts of `data`, or of what was held out from training."""
        test = self.test if data is None else self._as_trajectories(data)
        metrics = self.evaluate(test, steps=steps)
        run = Run("fit", Path("."), self.model, metrics, dict(self.config), self.history)
        return write_report([run], path, data=test)

    def save(self, path: str | Path) -> Path:
        """Write the model to one file, or into a folder; `splatop.load` reads it."""
        path = Path(path)
        return save_model(path / MODEL if path.is_dir() else path, self.model)

    def _as_trajectories(self, data: Data) -> Trajectories:
        spec = self.model.spec
        if isinstance(data, Trajectories | str | Path):
            return as_trajectories(data)
        return as_trajectories(
            data,
            dt=spec.dt,
            lengths=spec.lengths,
            origin=None if is_labelled(data) else spec.origin,
            fields=spec.fields,
            periodic=True,
        )

    def _checked(self, u: Any) -> tuple[jax.Array, bool]:
        """The state, or states, and which of the two."""
        spec = self.model.spec
        array = jnp.asarray(u)
        if jnp.iscomplexobj(array) and array.ndim > spec.dims:
            array = as_parts(array, spec.fields, axis=array.ndim - spec.dims - 1)
        batched = array.ndim == spec.dims + 2
        check_field(array[0] if batched else array, dims=spec.dims, channels=len(spec.fields))
        if batched and is_concrete(array):
            check_finite(array)
        return array, batched

    def _labelled(self, u: Any, steps: int, coefficients: Coefficients) -> tuple[Any, str]:
        """Frames in xarray, and the name of their time."""
        # xarray brings pandas, a second of import that arrays do without.
        from .data.labelled_states import labelled_frames, read_state

        spec = self.model.spec
        array, layout = read_state(u, fields=spec.fields, lengths=spec.lengths)
        points = tuple(array.shape[-spec.dims :])
        spec.check_origin(Grid(points, spec.lengths, layout.begins(spec.origin)), "the state")
        states, batched = self._checked(array)
        frames = self._finite(_rollout(self.stepper, states, coefficients, steps, batched))
        frames = np.asarray(self._like(frames, array))
        made = labelled_frames(frames, layout, dt=spec.dt, unit=self.clock)
        return made, layout.time

    def _like(self, values: jax.Array, given: Any) -> Any:
        """Predicted states in the form of the given one: complex, NumPy."""
        spec = self.model.spec
        if jnp.iscomplexobj(given):
            values = as_whole(values, spec.fields, axis=values.ndim - spec.dims - 1)
        return (
            np.asarray(values) if isinstance(given, np.ndarray) and is_concrete(values) else values
        )

    def _finite(self, frames: jax.Array) -> jax.Array:
        if is_concrete(frames):
            axis = frames.ndim - self.model.spec.dims - 2
            held = np.isfinite(np.moveaxis(np.asarray(frames), axis, 0))
            bad = ~held.reshape(held.shape[0], -1).all(axis=1)
            if bad.any():
                warnings.warn(
                    f"the rollout left the finite numbers at step {int(np.argmax(bad)) + 1}: ask "
                    "for fewer steps, or train with more substeps",
                    stacklevel=3,
                )
        return frames


@eqx.filter_jit
def _step(stepper, u, coefficients, batched):
    return jax.vmap(lambda v: stepper(v, coefficients))(u) if batched else stepper(u, coefficients)


@eqx.filter_jit
def _rollout(stepper, u, coefficients, steps, batched):
    def one(v):
        return rollout(stepper, v, coefficients, steps=steps)

    return jax.vmap(one)(u) if batched else one(u)


def _equation_text(equation: str | Equation, dims: int) -> str:
    if isinstance(equation, Equation):
        return format_equation(equation, dims=dims)
    named = {name: benchmark.equation_text for name, benchmark in BENCHMARKS.items()}
    named |= {name: example.text for name, example in EXAMPLES.items()}
    if equation in named:
        return named[equation]
    if "=" not in equation:
        raise unknown_name("equation", equation, named)
    return equation


def _settings(name: str, changes: Mapping[str, Any]) -> Settings:
    chosen = preset(name)
    valid = chosen.as_dict()
    for key in changes:
        if key not in valid:
            raise unknown_name("setting", key, valid)
    text = {k: v for k, v in changes.items() if isinstance(v, str)}
    values = {k: v for k, v in changes.items() if k not in text}
    return replace(chosen, **values, **parse_overrides(Settings, text))


def _fields_of(equation: str | Equation) -> tuple[str, ...]:
    """The fields that it has a left-hand side for, in their order."""
    if isinstance(equation, Equation):
        return equation.fields
    text = _equation_text(equation, 1)
    for dims in (1, 2, 3):  # which of them the data have is not known yet
        with suppress(SplatopError):
            return parse_equation(text, dims=dims).fields
    found = re.findall(r"dt\s*\(\s*(\w+)\s*\)\s*=", text)
    return tuple(dict.fromkeys(found)) or ("u",)
