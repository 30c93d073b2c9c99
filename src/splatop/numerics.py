"""Numerical settings of the embedded physics as a plain value, and the physics built from it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from .benchmarks import Benchmark
from .domain import Domain
from .encoders import Encoder, UNetEncoder
from .equation import Equation
from .errors import SplatopError, unknown_name
from .integrators import Integrator
from .jets import JetProvider, SplatJets
from .physics import EmbeddedPhysics, Physics
from .points import Layout, Points
from .registry import chosen, registered
from .render import Renderer
from .spectral import Filter, SharpFilter, SmoothFilter
from .walls import WallPhysics, wall_space

# What a physics on a periodic box computes with: fields on a working grid, or numbers of harmonics.
SPACES = ("grid", "harmonics")


@dataclass(frozen=True)
class Numerics:
    """Everything that turns an equation into Φ, in a form that JSON can hold.

    `cutoff` holds one wavenumber (cycles per unit length), or one per axis for the box filter.
    `jets`, `encoder`, `renderer` and `filter` are registered names: "splat", "spectral" or
    "finite-difference"; "lattice", "unet" (solved amplitudes) or "unet-predicted" (the paper's);
    "fourier", "local" or "dense"; "sharp", "smooth", "box" or "none"; or a user's own. So is
    `integrator`: "rk4" (the paper's) or "etdrk4". With `space` "harmonics" a periodic box is
    computed as one with walls is, by small matrices on the modes that `anchors` points tell apart,
    which is quicker than transforms on a coarse grid. On a box with walls, and there, only
    `anchors`, `integrator` and `substeps` count.
    """

    filter: str
    cutoff: tuple[float, ...]
    rolloff: float
    anchors: tuple[int, ...]
    substeps: int
    jets: str = "splat"
    encoder: str = "lattice"
    kernel_width: float = 1.2
    renderer: str = "fourier"
    window: int = 4
    working_grid: bool = True
    hold_geometry: bool = True
    integrator: str = "rk4"
    space: str = "grid"

    def __post_init__(self):
        for word, name, valid in (
            ("space", self.space, SPACES),
            ("derivative provider", self.jets, registered(JetProvider)),
            ("encoder", self.encoder, {**registered(Encoder), **_ENCODER_CHOICES}),
            ("renderer", self.renderer, registered(Renderer)),
            ("filter", self.filter, registered(Filter)),
            ("integrator", self.integrator, registered(Integrator)),
        ):
            if name not in valid:
                raise unknown_name(word, name, valid)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Numerics":
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        try:
            return cls(**known)
        except TypeError as error:
            raise SplatopError(f"expected the fields of Numerics, got {sorted(values)}") from error


def paper_numerics(benchmark: Benchmark) -> Numerics:
    """The published settings: cutoffs of appendix B, 20 anchors, window 4, one step, full grid."""
    paper = benchmark.paper_filter
    if isinstance(paper, SmoothFilter):
        kind, cutoff, rolloff = "smooth", paper.cutoff, paper.width
    elif isinstance(paper, SharpFilter):
        kind, cutoff, rolloff = "sharp", paper.cutoff, 0.0
    else:
        raise SplatopError(f"expected a sharp or smooth filter in the paper's table, got {paper}")
    return Numerics(
        filter=kind,
        cutoff=(cutoff,),
        rolloff=rolloff,
        anchors=(benchmark.paper_anchors,) * benchmark.dims,
        substeps=1,
        encoder="unet-predicted",
        renderer="local",
        working_grid=False,
        hold_geometry=False,
    )


# Choices that a class makes beyond its own name.
_ENCODER_CHOICES: dict[str, Callable[..., Encoder]] = {
    "unet-predicted": partial(UNetEncoder.from_numerics, predicted=True),
}


def build_filter(numerics: Numerics, dims: int) -> Filter:
    """The filter for a box of so many axes."""
    return chosen(Filter, "filter", numerics.filter).from_numerics(numerics, dims)


def build_encoder(numerics: Numerics, channels: int, *, key: PRNGKeyArray | None = None) -> Encoder:
    """An encoder for so many fields, with fresh weights if it has any."""
    make = _ENCODER_CHOICES.get(numerics.encoder)
    if make is None:
        make = chosen(Encoder, "encoder", numerics.encoder).from_numerics
    return make(numerics, channels, key=jax.random.key(0) if key is None else key)


def build_jets(
    numerics: Numerics,
    channels: int,
    *,
    lengths: tuple[float, ...],
    encoder: Encoder | None = None,
) -> JetProvider:
    """The derivative provider on a box of these sides; `encoder` replaces an untrained one."""
    filter = build_filter(numerics, len(lengths))
    provider = chosen(JetProvider, "derivative provider", numerics.jets)
    if not issubclass(provider, SplatJets):
        return provider(lengths=lengths, filter=filter)
    encoder = build_encoder(numerics, channels) if encoder is None else encoder
    return SplatJets(
        encoder=encoder,
        lengths=lengths,
        filter=filter,
        renderer=chosen(Renderer, "renderer", numerics.renderer).from_numerics(numerics),
        hold_geometry=numerics.hold_geometry,
    )


def build_integrator(numerics: Numerics) -> Integrator:
    return chosen(Integrator, "integrator", numerics.integrator)(numerics.substeps)


def build_physics(
    equation: Equation,
    numerics: Numerics,
    *,
    lengths: tuple[float, ...] | None = None,
    dt: float,
    encoder: Encoder | None = None,
    domain: Domain | None = None,
    layout: Layout = (),
) -> Physics:
    """The embedded physics of an equation: a stepper of states `(C, *N)` by the time `dt`.

    Without a `domain` the box of sides `lengths` is periodic. Between walls, `layout` says where
    the points of states lie along each axis ("ends", "cells" or "left"). `encoder` is used in
    place of the one that `numerics` name, which is untrained.
    """
    integrator = build_integrator(numerics)
    if domain is not None and not domain.all_periodic:
        if (numerics.jets, numerics.encoder) != ("splat", "lattice"):
            raise SplatopError(
                "expected jets=splat and encoder=lattice on a box with walls: conditions hold "
                "because the Gaussians obey them, as no learned ones, waves or differences do; got "
                f"jets={numerics.jets} and encoder={numerics.encoder}: leave them out"
            )
        at = layout if isinstance(layout, Points) else None
        space = wall_space(equation, domain, numerics.anchors, at)
        return WallPhysics(
            equation=equation, space=space, layout=layout, dt=dt, integrator=integrator
        )
    sides = lengths if domain is None else domain.lengths
    if sides is None:
        raise SplatopError("expected the lengths of the box, or a domain, got neither")
    if numerics.space == "harmonics":
        space = wall_space(equation, Domain.box(sides), numerics.anchors)
        layout = ("left",) * len(sides)
        return WallPhysics(
            equation=equation, space=space, layout=layout, dt=dt, integrator=integrator
        )
    jets = build_jets(numerics, len(equation.fields), lengths=sides, encoder=encoder)
    return EmbeddedPhysics(
        equation=equation,
        jets=jets,
        dt=dt,
        integrator=integrator,
        working_grid=numerics.working_grid,
    )


def with_anchors(numerics: Numerics, anchors: int) -> Numerics:
    return replace(numerics, anchors=(anchors,) * len(numerics.anchors))
