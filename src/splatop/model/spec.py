"""What a model is: a plain value that JSON holds, and the stepper built from it for training."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from ..benchmarks import get_benchmark
from ..coarse import CoarseTrajectories
from ..data import Trajectories
from ..description import build
from ..domain import Domain
from ..equation import Equation, parse_equation
from ..errors import SplatopError, unknown_name
from ..grid import Grid
from ..numerics import Numerics
from ..operators import BASELINES
from ..points import Layout, Points, layout_as_json, layout_from_json
from ..stepper import INTERVAL

KINDS = ("surrogate", "physics", *BASELINES)
# What corrects the physics of a surrogate: our network, or one whose class has no registered name.
FNO_OPERATOR, OWN_OPERATOR = "fno", "own"
CONVOLUTIONS = "convolutions"
# Where a coarse model gives its states.
GRIDS = ("given", "coarse")
# Networks of a surrogate that are built from its spec.
NETWORKS = (FNO_OPERATOR, CONVOLUTIONS)


@dataclass(frozen=True)
class ModelSpec:
    """What was asked for and what is known about the problem, in a form that JSON can hold.

    The model itself is its stepper, which files store part by part. `equation` is the equation as
    text; where terms have no text, `terms` is its description (`splatop.description`). `operator`
    is the registered name of a surrogate's network. `unknown` coefficients belong to a trajectory
    and are identified from its first frames; `coefficients` are the same for all. `conditioned`
    says whether the network sees the unknown. The box begins at `origin`, which is 0 in files that
    do not say, and is periodic unless a `domain` says what holds at its edges; `layout` tells where
    the points of states lie along each axis. Where training saw frames at uneven times, `intervals`
    are the shortest and the longest between them, and a network is conditioned on it.

    A coarse model computes on `coarse` points per axis (none: on the states' own), takes `stride`
    frames of its data in one step, which is `dt` long, and gives states on the grid that it was
    `given`, or on its `coarse` one (`answers`). Those of a `refined` one hold a learned guess of
    what the coarse grid leaves out.
    """

    kind: str
    equation: str
    fields: tuple[str, ...]
    lengths: tuple[float, ...]
    dt: float
    numerics: Numerics | None = None
    benchmark: str | None = None
    coefficients: Mapping[str, float] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    conditioned: bool = False
    dropped_terms: tuple[str, ...] = ()
    coupling: str = "parallel"
    hidden: int = 6
    modes: int = 10
    blocks: int = 4
    tenfold: bool = False
    operator: str = FNO_OPERATOR
    members: int = 1  # of an ensemble
    origin: tuple[float, ...] = ()
    terms: Any = None
    domain: Domain | None = None
    layout: Layout = ()
    inputs: tuple[str, ...] = ()  # known fields that drive the others
    intervals: tuple[float, ...] = ()  # shortest and longest, of frames that are not even
    coarse: tuple[int, ...] = ()
    stride: int = 1
    answers: str = "given"
    refined: bool = False
    through_physics: bool = False
    conserves: bool = False

    def __post_init__(self):
        if self.answers not in GRIDS:
            raise unknown_name("grid", self.answers, GRIDS)
        if not self.origin:
            object.__setattr__(self, "origin", (0.0,) * self.dims)
        if self.domain is not None and self.domain.all_periodic:
            object.__setattr__(self, "domain", None)
        if not self.layout:
            object.__setattr__(self, "layout", ("left",) * self.dims)
        if not isinstance(self.members, int) or self.members < 1:
            raise SplatopError(f"expected at least one member of a model, got {self.members}")
        if self.kind not in KINDS:
            raise unknown_name("model", self.kind, KINDS)

    @cached_property
    def _key(self) -> str:
        return json.dumps(self.as_dict(), sort_keys=True, default=str)

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def dims(self) -> int:
        return len(self.lengths)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What a network of the model is told beside the state."""
        seen = self.unknown if self.conditioned else ()
        return (*seen, INTERVAL) if self.intervals else seen

    @property
    def rank(self) -> int:
        """Axes of one channel of a state: scattered points are one."""
        return 1 if isinstance(self.layout, Points) else self.dims

    @cached_property
    def full_equation(self) -> Equation:
        """The governing equation, with every term: the one that is stored.

        A benchmark has its own in the form that the reference solver takes.
        """
        if self.terms is not None:
            equation = build(self.terms, {})
            if not isinstance(equation, Equation):
                raise SplatopError(f"expected an equation, got {type(equation).__name__}")
            return equation.placed_at(self.origin)
        if self.benchmark is not None:
            benchmark = get_benchmark(self.benchmark)
            if self.equation == benchmark.equation_text:
                return benchmark.equation
        parsed = parse_equation(
            self.equation, dims=self.dims, fields=self.fields, inputs=self.inputs
        )
        return parsed.placed_at(self.origin)

    @property
    def known_equation(self) -> Equation:
        """The part of it that Φ knows."""
        return self.full_equation.without(*self.dropped_terms)

    def check_origin(self, grid: Grid | Points, source: str) -> None:
        """Refuse data that begin elsewhere, if the equation says where in the box it acts."""
        if not grid.begins_like(self.origin) and self.full_equation.uses_coordinates:
            here, there = (", ".join(f"{o:g}" for o in one) for one in (self.origin, grid.origin))
            raise SplatopError(
                f"expected coordinates that begin at {here}, as where the model was trained, "
                f"because its equation uses them, got {there} in {source}: use data of the same "
                "box, or train on these"
            )

    def check_edges(self, data: Any) -> None:
        """Refuse data (trajectories) with other edges, or other places for their points, than the
        model was trained on."""
        domain, layout = data.domain, data.grid.layout
        own = self.domain or Domain.box(self.lengths)
        said, held = ((d.periodic, d.conditions, d.shape) for d in (own, domain))
        if said != held:
            if own.shape != domain.shape:
                here, there = (
                    "a box" if d.shape is None else d.shape.text() for d in (own, domain)
                )
                raise SplatopError(
                    f"expected data on the shape of the model, {here}, got {there} in "
                    f"{data.source}: give --shape (shape= in Python), or train on these"
                )
            raise SplatopError(
                f"expected data with the edges of the model, '{own.describe(self.fields)}', got "
                f"'{domain.describe(self.fields)}' in {data.source}: give --boundary (boundary= in "
                "Python), or train on these"
            )
        if isinstance(layout, Points):
            return  # a model of a shape can be moved to other points (Model.at)
        own_layout: Any = self.layout
        if self.domain is not None and layout != own_layout:
            raise SplatopError(
                f"expected points that lie as where the model was trained ({', '.join(own_layout)} "
                f"along the axes), got {', '.join(layout)} in {data.source}: give --sampling, or "
                "train on these"
            )

    def without_operator(self, *, members: int = 1) -> "ModelSpec":
        """The description of its physics alone."""
        return replace(
            self, kind="physics", members=members, conditioned=False, operator=FNO_OPERATOR
        )

    def view(self, trajectories: Trajectories) -> Trajectories:
        """Trajectories as the model steps through them: every `stride`-th frame of those that have
        them all, and on the coarse grid if that is where it answers."""
        ratio = self.dt / trajectories.dt
        stride = self.stride if self.stride > 1 and abs(ratio - self.stride) < 1e-6 * ratio else 1
        points = self.coarse if self.coarse and self.answers == "coarse" else None
        if stride == 1 and points is None:
            return trajectories
        return CoarseTrajectories(trajectories, points=points, stride=stride)

    def as_dict(self) -> dict[str, Any]:
        plain = asdict(replace(self, domain=None, layout=()))
        domain = None if self.domain is None else self.domain.as_dict()
        return {**plain, "domain": domain, "layout": layout_as_json(self.layout)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ModelSpec":
        names = {f.name for f in fields(cls)}
        if not isinstance(values, dict) or not {"kind", "equation", "lengths"} <= set(values):
            raise SplatopError("expected a model description, got something else")
        extra = sorted(set(values) - names)
        if extra:
            raise SplatopError(
                f"unknown fields {', '.join(extra)} in the model description: "
                "the file was made by another version of splatop"
            )
        known: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) and k != "terms" else v for k, v in values.items()
        }
        if known.get("numerics") is not None:
            known["numerics"] = Numerics.from_dict(known["numerics"])
        if known.get("domain") is not None:
            known["domain"] = Domain.from_dict(known["domain"])
        if known.get("layout"):
            known["layout"] = layout_from_json(known["layout"])
        return cls(**known)
