"""A trained surrogate, used with states in whatever form the user holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from .data import ArrayTrajectories, Trajectories
from .data.held import as_trajectories, is_labelled, state_time
from .errors import SplatopError, unknown_name
from .evaluate import Metrics, evaluate
from .grid import Grid
from .identify import Identified, identify_trajectories
from .model import Model, save_model
from .points import Points
from .predicting import (
    as_states,
    in_form_of,
    input_signals,
    roll_out,
    step_states,
    warn_unless_finite,
)
from .stepper import TIME, Coefficients, Stepper
from .threads import one_blas_thread
from .training.history import StageHistory
from .training.run_folder import MODEL

if TYPE_CHECKING:
    import xarray as xr

    from .report import Report

    Data = np.ndarray | jax.Array | xr.Dataset | xr.DataArray | Trajectories | str | Path
    State = np.ndarray | jax.Array | xr.Dataset | xr.DataArray
else:
    Data = State = Report = Any


class _Same:
    """Values that `jit` does not trace: equal if they are the same objects."""

    def __init__(self, values: tuple[Any, ...]):
        self.values = values

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.values)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and all(
            a is b for a, b in zip(self.values, other.values, strict=True)
        )


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class Fitted:
    """A trained surrogate. What goes in as NumPy, JAX or xarray comes out as the same. A pytree of
    the model's arrays and the coefficients, for `jit`, `vmap` and `grad`.

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

    def tree_flatten(self) -> tuple[tuple[Any, ...], "_Same"]:
        rest = (self.test, self.given, self.clock, self.config, self.history)
        return (self.model, dict(self.coefficients)), _Same(rest)

    @classmethod
    def tree_unflatten(cls, rest: "_Same", children: tuple[Any, ...]) -> "Fitted":
        return cls(*children, *rest.values)

    @property
    def summary(self) -> str:
        """One line: what was learned, from how much, and how far ahead it can be trusted."""
        return str(self.model.record["summary"])

    @property
    def stepper(self) -> Stepper:
        """`(u, coefficients) -> u_next`, a pytree for `jit`, `vmap` and `grad`."""
        return self.model.stepper

    def step(
        self, u: State, coefficients: Coefficients | None = None, *, t0: float | None = None
    ) -> Any:
        """The state `(C, *N)` one frame later; of states `(B, C, *N)`, each.

        `t0` is the time of `u`, where the equation depends on it.
        """
        own = self._complete(u, coefficients, t0)
        if is_labelled(u):
            frames, time = self._labelled(u, 1, own)
            return frames.isel({time: 0})
        states, batched = as_states(self.model.spec, u)
        return in_form_of(self.model.spec, step_states(self.stepper, states, own, batched), u)

    @one_blas_thread()
    def rollout(
        self,
        u0: State,
        steps: int | None = None,
        coefficients: Coefficients | None = None,
        *,
        times: Sequence[float] | np.ndarray | None = None,
        t0: float | None = None,
        inputs: Mapping[str, Any] | None = None,
        hold_inputs: bool = False,
    ) -> Any:
        """The `steps` states `(T, C, *N)` that follow `u0`, or `(B, T, C, *N)` of a batch.

        With `times` in place of `steps`, the states at these. `t0` is the time of `u0`: needed
        where the equation depends on it, else 0. `inputs` are the future values `(T, *N)` of each
        input, at the times of `u0` and of the frames that follow it, or a `Signal` of times of its
        own; with `hold_inputs` they may end early and then stay. In xarray the times follow that of
        `u0`.
        """
        if (steps is None) == (times is None):
            raise SplatopError(
                "expected either a number of steps or times to predict, got "
                + ("neither" if steps is None else "both")
            )
        if self.model.spec.inputs and t0 is None:
            t0 = 0.0
        own = self._complete(u0, coefficients, t0)
        begin = float(own.get(TIME, 0.0))
        until = begin + (steps or 0) * self.model.spec.dt if times is None else float(times[-1])
        own |= input_signals(
            self.model.spec, inputs or {}, begin=begin, until=until, hold=hold_inputs
        )
        if times is not None:
            return self._at_times(u0, times, own)
        assert steps is not None
        if steps < 1:
            raise SplatopError(f"expected at least one step, got {steps}")
        if is_labelled(u0):
            return self._labelled(u0, steps, own)[0]
        states, batched = as_states(self.model.spec, u0)
        return in_form_of(
            self.model.spec,
            self._frames(states, own, steps, batched),
            u0,
        )

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
        test = self.model.spec.view(self.test if data is None else self._as_trajectories(data))
        return evaluate(self.model, test, steps=steps or test.frames - 1)

    def report(
        self, path: str | Path, data: Data | None = None, *, steps: int | None = None
    ) -> Report:
        """Write the HTML page about rollouts of `data`, or of what was held out from training."""
        from .report import write_report  # with matplotlib, which all else does without
        from .report.evaluated import EvaluatedRun

        test = self.model.spec.view(self.test if data is None else self._as_trajectories(data))
        metrics = self.evaluate(test, steps=steps)
        run = EvaluatedRun("fit", Path("."), self.model, metrics, dict(self.config), self.history)
        return write_report([run], path, data=test)

    def plot(self, field: str | None = None, ax: Any = None) -> Any:
        """A field of the first test trajectory and its prediction after at most 50 steps, on
        matplotlib axes, which it returns; beyond 1D the prediction alone."""
        from .notebook import draw_state, new_axes

        if not self._foreseeable:
            raise SplatopError(
                "expected a model that needs nothing but a state to plot a rollout, got one with "
                "inputs, time or coefficients of a trajectory: use rollout and plot its frames"
            )
        test = self.model.spec.view(self.test)
        name = test.fields[0] if field is None else field
        if name not in test.fields:
            raise unknown_name("field", name, test.fields)
        channel, steps = test.fields.index(name), min(50, test.frames - 1)
        frames, axes = test.window(0, 0, steps + 1), new_axes(ax)
        predicted = np.asarray(self.model.rollout(frames[0], steps=steps))[-1, channel]
        if predicted.ndim == 1 and isinstance(test.grid, Grid):
            draw_state(axes, frames[-1, channel], test.grid, color="0.6", lw=3, label="data")
        draw_state(axes, predicted, test.grid, label="predicted")
        axes.set_title(f"{name} after {steps} steps, predicted")
        return axes

    @property
    def _foreseeable(self) -> bool:
        spec = self.model.spec
        return not spec.unknown and not spec.inputs and self.stepper.autonomous

    def _repr_html_(self) -> str:
        from .notebook import card

        draw = (lambda ax: self.plot(ax=ax)) if self._foreseeable else None
        return card("splatop surrogate", self.model._about(), draw=draw)

    def save(self, path: str | Path) -> Path:
        """Write the model to one file, or into a folder; `splatop.load` reads it."""
        path = Path(path)
        return save_model(path / MODEL if path.is_dir() else path, self.model)

    def _at_times(self, u0: State, times: Any, own: dict[str, Any]) -> Any:
        if is_labelled(u0):
            raise SplatopError(
                "expected a state as an array for times of one's own, got xarray: give its values, "
                "or a number of steps"
            )
        plan = self.model.timetable(times, t0=float(own.get(TIME, 0.0)))
        states, batched = as_states(self.model.spec, u0)
        every = {**own, **{name: jnp.asarray(v) for name, v in plan.when.items()}}
        frames = self._frames(states, every, plan.steps, batched)
        asked = frames[:, plan.asked] if batched else frames[plan.asked]
        return in_form_of(self.model.spec, asked, u0)

    def _frames(
        self, states: jax.Array, coefficients: Coefficients, steps: int, batched: bool
    ) -> jax.Array:
        frames = roll_out(self.stepper, states, coefficients, steps, batched)
        warn_unless_finite(self.model.spec, frames)
        return frames

    def _complete(
        self, u: State, coefficients: Coefficients | None, t0: float | None
    ) -> dict[str, Any]:
        """All coefficients of a rollout, and the time at which it begins."""
        own = self.model.complete(coefficients)
        if t0 is None and is_labelled(u) and self.clock is None:
            t0 = state_time(u)
        if t0 is not None:
            own[TIME] = float(t0)
        if not self.stepper.autonomous and TIME not in own:
            raise SplatopError(
                "expected the time of the state, because the equation depends on t, got none: give "
                "t0"
            )
        return own

    def _as_trajectories(self, data: Data) -> Trajectories:
        spec = self.model.spec
        if isinstance(data, Trajectories | str | Path):
            return as_trajectories(data)
        if isinstance(spec.layout, Points):
            array = np.asarray(data, np.float32)
            array = array[None] if array.ndim == 3 else array
            return ArrayTrajectories(
                array, spec.layout, dt=spec.dt, fields=spec.fields, domain=spec.domain
            )
        return as_trajectories(
            data,
            dt=spec.dt / spec.stride,
            lengths=spec.lengths,
            origin=None if is_labelled(data) else spec.origin,
            fields=spec.fields,
            periodic=True if spec.domain is None else None,
            boundary=None if spec.domain is None else spec.domain.describe(spec.fields),
            sampling=None if spec.domain is None or is_labelled(data) else spec.layout,
        )

    def _labelled(self, u: Any, steps: int, coefficients: Coefficients) -> tuple[Any, str]:
        """Frames in xarray, and the name of their time."""
        # xarray brings pandas, a second of import that arrays do without.
        from .data.labelled_states import labelled_frames, read_state

        spec = self.model.spec
        if isinstance(spec.layout, Points):
            raise SplatopError(
                "expected a state (C, P) at the points of the model as an array, got xarray: pass "
                "its values"
            )
        array, layout = read_state(
            u, fields=spec.fields, lengths=spec.lengths, sampling=spec.layout
        )
        points = tuple(array.shape[-spec.dims :])
        spec.check_origin(Grid(points, spec.lengths, layout.begins(spec.origin)), "the state")
        states, batched = as_states(self.model.spec, array)
        frames = self._frames(states, coefficients, steps, batched)
        frames = np.asarray(in_form_of(self.model.spec, frames, array))
        made = labelled_frames(frames, layout, dt=spec.dt, unit=self.clock)
        return made, layout.time
