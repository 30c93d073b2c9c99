"""What is to be learned: an equation, what is known of it, and where its data come from."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..benchmarks import get_benchmark
from ..coarse.projection import check_stride
from ..data import ArrayTrajectories, Trajectories, in_memory, open_trajectories, split
from ..description import build
from ..equation import Equation, has_unknown, parse_equation, split_coefficients
from ..errors import SplatopError
from .coarse_problem import CoarseProblem
from .loaded import FileProblem, GeneratedProblem, Loaded
from .settings import Settings

# What trajectories at hand, which no file holds, are called in a configuration.
_AT_HAND = re.compile(r" of shape \(.*\), sha256 [0-9a-f]{16}$")


@dataclass(frozen=True)
class Problem:
    """A benchmark by name, or data with an equation as text.

    `terms` is the description of an equation whose terms have no text, which then only shows it.
    `data` is a file, opened with the arguments `reading`, or trajectories at hand already.
    `hold_out` of its trajectories, the last ones, are kept from training (`data.split` has the
    rule). `symmetry` is what a term found for `?` must respect. `question` is the equation as it
    was asked, if it had a `?`, and `found` what was found for that.
    """

    benchmark: str | None = None
    data: str | Trajectories | None = None
    equation_text: str | None = None
    coefficients: Mapping[str, float] = field(default_factory=dict)
    hold_out: int | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    terms: Any = None
    symmetry: tuple[str, ...] = ()
    question: str | None = None
    found: Any = None

    def __post_init__(self):
        if self.benchmark is not None and self.hold_out is not None:
            raise SplatopError(
                f"expected trajectories to hold out of data of your own, got {self.hold_out} for "
                f"{self.benchmark}, which has a test split: leave it out"
            )
        if (self.benchmark is None) == (self.data is None):
            raise SplatopError(
                "expected either a benchmark or a data file to train on, "
                f"got {self.benchmark or 'no benchmark'} and {_named(self.data) or 'no data'}"
            )
        asks = self.question or self.equation_text
        if self.symmetry and not (asks and has_unknown(asks)):
            raise SplatopError(
                "expected ? in the equation for a term that respects "
                f"{', '.join(self.symmetry)}, got none: write one, or leave --symmetry out"
            )
        if self.data is not None and self.equation_text is None:
            raise SplatopError(
                "expected an equation for the data file: give --equation, for example "
                '"dt(u) = D*lap(u)", or "dt(u) = D*lap(u) + ?" and "dt(u) = ?" where terms are '
                "not known"
            )

    def as_dict(self) -> dict[str, Any]:
        """In a form that JSON can hold; trajectories are told by their shape and a checksum."""
        return {
            "benchmark": self.benchmark,
            "data": _named(self.data),
            "equation_text": self.equation_text,
            "coefficients": dict(self.coefficients),
            "hold_out": self.hold_out,
            "reading": dict(self.reading),
            **({} if self.terms is None else {"terms": self.terms}),
            **({} if not self.symmetry else {"symmetry": list(self.symmetry)}),
            **({} if self.question is None else {"question": self.question, "found": self.found}),
        }

    def load(self, settings: Settings, scratch: Path) -> "Loaded":
        """Make the training data available; what does not fit memory goes to `scratch`."""
        loaded = self._loaded(settings, scratch)
        return CoarseProblem(loaded, settings) if settings.is_coarse else loaded

    def _loaded(self, settings: Settings, scratch: Path) -> "Loaded":
        if self.benchmark is not None:
            return GeneratedProblem(get_benchmark(self.benchmark), settings, scratch)
        assert self.data is not None
        data = self.data
        if isinstance(data, str):
            data = open_trajectories(data, **self.reading)
        return _load_data(self, data, settings)


def reported_data(config: Mapping[str, Any]) -> Trajectories | None:
    """What a run that was trained on a file is reported on: what it held out of it, else all of it.

    `config` is the run's configuration. None if it was not trained on a file.
    """
    held = config.get("problem")
    path = held.get("data") if isinstance(held, dict) else None
    if not isinstance(path, str) or not isinstance(held, dict) or _AT_HAND.search(path):
        return None
    if not Path(path).exists():
        raise SplatopError(
            f"expected the file that the run was trained on, got '{path}', which is not there: go "
            "to the folder that the training was started in, or give --data"
        )
    hold_out = held.get("hold_out")
    data = open_trajectories(path, **(held.get("reading") or {}))
    return split(data, hold_out if isinstance(hold_out, int) else None).reported


def _named(data: str | Trajectories | None) -> str | None:
    if data is None or isinstance(data, str):
        return data
    digest = hashlib.sha256(str((data.dt, data.fields, data.grid)).encode())
    if isinstance(data, ArrayTrajectories):
        digest.update(np.ascontiguousarray(data.array).data)
    return f"{data.source} of shape {data.shape}, sha256 {digest.hexdigest()[:16]}"


def _load_data(problem: Problem, data: Trajectories, settings: Settings) -> FileProblem:
    assert problem.equation_text is not None
    if problem.terms is None:
        equation = parse_equation(
            problem.equation_text, dims=data.grid.dims, fields=data.fields, inputs=data.inputs
        )
    else:
        equation = _described(problem.terms, data)
    data.check_clock(equation)
    known, _ = split_coefficients(equation, problem.coefficients)
    parts = split(in_memory(data), problem.hold_out)
    check_stride(settings.stride, parts.training)
    frames = (parts.training.frames - 1) // settings.stride + 1
    if frames <= settings.fitting(frames).horizon and settings.model != "physics":
        raise SplatopError(
            f"expected trajectories of more than {settings.horizon} frames, which is what the "
            f"rollouts of training need, got {frames} in {parts.training.source}: give longer "
            f"ones, or set horizon={max(1, frames - 1)}"
        )
    equation = equation.placed_at(data.grid.origin)
    return FileProblem(equation, problem.equation_text, known, parts, settings, problem.terms)


def _described(terms: Any, data: Trajectories) -> Equation:
    """The equation that a description stands for, if it is one of the data's fields."""
    equation = build(terms, {})
    if not isinstance(equation, Equation) or set(equation.fields) != set(data.fields):
        held = getattr(equation, "fields", type(equation).__name__)
        raise SplatopError(
            f"expected an equation of the fields {', '.join(data.fields)}, which the data have, "
            f"got one of {held}"
        )
    if equation.fields != tuple(data.fields):
        raise SplatopError(
            f"expected fields in the order of the data, {', '.join(data.fields)}, got "
            f"{', '.join(equation.fields)}: terms of your own rely on it"
        )
    return equation
