"""A model, its name, a benchmark or the text of an equation as dynamics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..benchmarks import BENCHMARKS, Benchmark, get_benchmark
from ..equation import EXAMPLES, Equation, parse_equation
from ..errors import SplatopError, unknown_name
from ..model import Model, bounded_models, load_model, shipped_models
from .dynamics import Dynamics, dynamics_of_equation, dynamics_of_model
from .on_shape import shape_box


@dataclass(frozen=True)
class EquationSetting:
    """What a model or an equation does not say of itself: the box, the grid that states are written
    on, and the time between them."""

    coefficients: Mapping[str, float] | None = None
    lengths: Sequence[float] | float | None = None
    points: Sequence[int] | int | None = None
    dt: float | None = None
    origin: Sequence[float] | float | None = None
    boundary: str | None = None
    sampling: Sequence[str] | str | None = None
    shape: str | None = None


def as_dynamics(model: Any, setting: EquationSetting, unknown: Sequence[str] = ()) -> Dynamics:
    """What a model, its name, an equation or its text stands for."""
    given = dict(setting.coefficients or {})
    model = getattr(model, "model", model)  # what `fit` returns holds one
    if isinstance(model, str | Path) and "=" not in str(model):
        name = str(model)
        ships = name in shipped_models() or (name in bounded_models() and _says_nothing(setting))
        if not Path(name).exists() and not ships and name in BENCHMARKS:
            return _of_benchmark(get_benchmark(name), given, setting)
        if not Path(name).exists() and name in EXAMPLES:
            model = EXAMPLES[name].text
        else:
            model = load_model(model)
    points = _per_axis(setting.points, None, int)
    if isinstance(model, Model):
        refused = {
            "lengths": setting.lengths,
            "dt": setting.dt,
            "origin": setting.origin,
            "boundary": setting.boundary,
            "sampling": setting.sampling,
            "shape": setting.shape,
        }
        for name, value in refused.items():
            if value is not None:
                raise SplatopError(
                    f"expected no {name} with a model, which has its own, got {value}: leave it out"
                )
        ranges = (
            BENCHMARKS[model.spec.benchmark].typical_coefficients()
            if (model.spec.benchmark in BENCHMARKS)
            else {}
        )
        for name in model.spec.unknown:
            if name not in given and name in unknown and name in ranges:
                given[name] = ranges[name]
        model.complete(given)
        return dynamics_of_model(model, given, points)
    return _of_equation(model, given, setting)


def _of_equation(model: Any, given: dict[str, float], setting: EquationSetting) -> Dynamics:
    if setting.shape is not None and setting.lengths is None:
        sides, begin = shape_box(setting.shape)
        setting = replace(setting, lengths=sides, origin=setting.origin or begin)
    for name, value, example in (
        ("lengths", setting.lengths, "1,1"),
        ("points", setting.points, "64,64"),
        ("dt", setting.dt, "0.1"),
    ):
        if value is None:
            raise SplatopError(
                f"expected {name} for an equation, which does not say it, got none: give --{name} "
                f"{example} ({name}= in Python)"
            )
    sides = _per_axis(setting.lengths, None, float)
    count = _per_axis(setting.points, None, int)
    assert sides is not None
    assert count is not None
    dims = max(len(sides), len(count))
    sides, count = (one * dims if len(one) == 1 else one for one in (sides, count))
    if len(sides) != len(count):
        raise SplatopError(f"expected as many points as lengths, got {len(count)} and {len(sides)}")
    equation = model if isinstance(model, Equation) else parse_equation(str(model), dims=dims)
    for name in given:
        if name not in equation.coefficient_names:
            raise unknown_name("coefficient", name, equation.coefficient_names)
    assert setting.dt is not None
    if not setting.dt > 0:
        raise SplatopError(f"expected a positive time between frames, got dt = {setting.dt:g}")
    return dynamics_of_equation(
        equation,
        given,
        lengths=sides,
        points=count,
        dt=setting.dt,
        origin=_per_axis(setting.origin, dims, float) or (),
        boundary=setting.boundary,
        layout=_layout(setting.sampling, dims),
        shape=setting.shape,
    )


def _says_nothing(setting: EquationSetting) -> bool:
    """Whether a model may be taken as it is: on points of the user's own it is its equation."""
    return setting.points is None and setting.dt is None


def _of_benchmark(
    benchmark: Benchmark, given: dict[str, float], setting: EquationSetting
) -> Dynamics:
    points = _per_axis(setting.points, benchmark.dims, int)
    points = points or (benchmark.points,) * benchmark.dims
    return dynamics_of_equation(
        benchmark.equation,
        {**benchmark.typical_coefficients(), **given},
        lengths=benchmark.lengths,
        points=points,
        dt=benchmark.dt if setting.dt is None else setting.dt,
        origin=benchmark.corner,
        boundary=benchmark.boundary or None,
        layout=benchmark.layout,
        # On shapes the reports say what is expected: no states are sampled there.
        benchmark=None if benchmark.shape else benchmark.name,
        shape=benchmark.shape or None,
    )


def _per_axis(values: Any, dims: int | None, kind: type) -> tuple[Any, ...] | None:
    if values is None:
        return None
    many = tuple(np.atleast_1d(np.asarray(values)).tolist())
    if dims is not None and len(many) == 1:
        many = many * dims
    return tuple(kind(value) for value in many)


def _layout(sampling: Any, dims: int) -> tuple[str, ...]:
    if sampling is None:
        return ()
    words = tuple(sampling.split(",")) if isinstance(sampling, str) else tuple(sampling)
    return words * dims if len(words) == 1 else words
