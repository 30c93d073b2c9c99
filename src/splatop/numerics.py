"""Numerical settings of the embedded physics as a plain value, and the physics built from it."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from .benchmarks import Benchmark
from .encoders import Encoder, LatticeEncoder, UNetEncoder
from .encoders.solve import LARGEST_DIRECT_SOLVE
from .equation import Equation
from .errors import SplatopError, unknown_name
from .gaussians import BoundedScales, ClippedScales
from .jets import FiniteDifferenceJets, JetProvider, SpectralJets, SplatJets
from .physics import EmbeddedPhysics
from .render import DenseRenderer, FourierRenderer, LocalRenderer
from .spectral import BoxFilter, Filter, PassThrough, SharpFilter, SmoothFilter

JETS = ("splat", "spectral", "finite-difference")
ENCODERS = ("lattice", "unet", "unet-predicted")
RENDERERS = ("fourier", "local", "dense")
FILTERS = ("sharp", "smooth", "box", "none")


@dataclass(frozen=True)
class Numerics:
    """Everything that turns an equation into Φ, in a form that JSON can hold.

    `cutoff` holds one wavenumber (cycles per unit length), or one per axis for the box filter.
    `encoder` is "lattice", "unet" (solved amplitudes) or "unet-predicted" (the paper's).
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

    def __post_init__(self):
        for kind, name, valid in (
            ("derivative provider", self.jets, JETS),
            ("encoder", self.encoder, ENCODERS),
            ("renderer", self.renderer, RENDERERS),
            ("filter", self.filter, FILTERS),
        ):
            if name not in valid:
                raise unknown_name(kind, name, valid)

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


def build_filter(numerics: Numerics, dims: int) -> Filter:
    if numerics.filter == "none":
        return PassThrough()
    if numerics.filter == "box":
        cutoffs = numerics.cutoff * (dims if len(numerics.cutoff) == 1 else 1)
        return BoxFilter(tuple(cutoffs), numerics.rolloff)
    if len(numerics.cutoff) != 1:
        raise SplatopError(
            f"expected one cutoff for the radial filter '{numerics.filter}', "
            f"got {numerics.cutoff}: give one, or use filter=box"
        )
    if numerics.filter == "sharp":
        return SharpFilter(numerics.cutoff[0])
    return SmoothFilter(numerics.cutoff[0], numerics.rolloff)


def build_encoder(numerics: Numerics, channels: int, *, key: PRNGKeyArray | None = None) -> Encoder:
    if numerics.encoder == "lattice":
        return LatticeEncoder(numerics.anchors, numerics.kernel_width)
    predicted = numerics.encoder == "unet-predicted"
    # More than can be solved for are also too many to sum at every point.
    local = numerics.renderer == "local" or math.prod(numerics.anchors) > LARGEST_DIRECT_SOLVE
    return UNetEncoder(
        numerics.anchors,
        channels,
        key=jax.random.key(0) if key is None else key,
        amplitudes="predicted" if predicted else "solved",
        scales=ClippedScales() if predicted else BoundedScales(),
        renderer=LocalRenderer(numerics.window) if local else DenseRenderer(),
    )


def build_jets(
    numerics: Numerics,
    channels: int,
    *,
    lengths: tuple[float, ...],
    encoder: Encoder | None = None,
) -> JetProvider:
    filter = build_filter(numerics, len(lengths))
    if numerics.jets == "spectral":
        return SpectralJets(lengths, filter)
    if numerics.jets == "finite-difference":
        return FiniteDifferenceJets(lengths, filter)
    renderer = {
        "fourier": FourierRenderer(),
        "local": LocalRenderer(numerics.window),
        "dense": DenseRenderer(),
    }[numerics.renderer]
    encoder = build_encoder(numerics, channels) if encoder is None else encoder
    return SplatJets(
        encoder=encoder,
        lengths=lengths,
        filter=filter,
        renderer=renderer,
        hold_geometry=numerics.hold_geometry,
    )


def build_physics(
    equation: Equation,
    numerics: Numerics,
    *,
    lengths: tuple[float, ...],
    dt: float,
    encoder: Encoder | None = None,
) -> EmbeddedPhysics:
    """Φ of an equation with these numerics; `encoder` replaces an untrained one."""
    jets = build_jets(numerics, len(equation.fields), lengths=lengths, encoder=encoder)
    # Finite differences live on the grid of the data; a coarser one would be another scheme.
    working = numerics.working_grid and numerics.jets != "finite-difference"
    return EmbeddedPhysics(equation, jets, dt, numerics.substeps, working)


def with_anchors(numerics: Numerics, anchors: int) -> Numerics:
    return replace(numerics, anchors=(anchors,) * len(numerics.anchors))
