"""Before the first step: identify what is unknown, choose the numerics, measure the data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..benchmarks import get_benchmark
from ..encoders import Encoder
from ..equation import Equation
from ..errors import SplatopError
from ..identify import Identified, identify_trajectories, told_once
from ..model import OWN_OPERATOR, ModelSpec, build_model
from ..numerics import build_encoder, paper_numerics
from ..operators import Conditioning
from ..registry import name_of
from ..spectral import Field
from ..stepper import INTERVAL, Stepper
from .checks import check_anchors, check_encoder, check_modes, check_operator
from .loaded import Loaded
from .settings import Settings

Say = Callable[[str], None]

# Estimates that differ by less than this from trajectory to trajectory are one coefficient.
POOLED_SPREAD = 0.02


@dataclass(frozen=True)
class Prepared:
    """What is decided before the first step: the model's description and the data's statistics.

    `coefficients` hold one value per training trajectory, identified where they were unknown.
    `identified` are the names of all that were, with the half width of their 95 % interval in one
    trajectory, the median one; None if that is unbounded. `doubts` say why they are not trusted.
    """

    spec: ModelSpec
    center: tuple[float, ...]
    spread: tuple[float, ...]
    coefficients: Mapping[str, tuple[float, ...]]
    reasons: tuple[str, ...]
    identified: Mapping[str, float | None] = field(default_factory=dict)
    inputs: tuple[tuple[float, float], ...] = ()  # mean and deviation of each
    doubts: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "spec": self.spec.as_dict(),
            "center": self.center,
            "spread": self.spread,
            "coefficients": {k: list(v) for k, v in self.coefficients.items()},
            "reasons": self.reasons,
            "identified": dict(self.identified),
            "inputs": self.inputs,
            "doubts": self.doubts,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Prepared":
        return cls(
            ModelSpec.from_dict(values["spec"]),
            tuple(values["center"]),
            tuple(values["spread"]),
            {k: tuple(v) for k, v in values["coefficients"].items()},
            tuple(values["reasons"]),
            dict(values.get("identified") or {}),
            tuple((float(m), float(s)) for m, s in values.get("inputs") or ()),
            tuple(values.get("doubts") or ()),
        )

    def coefficients_of(self, trajectories: np.ndarray) -> dict[str, np.ndarray]:
        """The coefficients of a batch: fixed ones repeated, identified ones by trajectory."""
        fixed = {
            name: np.full(len(trajectories), value, np.float32)
            for name, value in self.spec.coefficients.items()
        }
        own = {
            name: np.asarray(values, np.float32)[trajectories]
            for name, values in self.coefficients.items()
        }
        return {**fixed, **own}


def prepare(
    loaded: Loaded,
    settings: Settings,
    say: Say = lambda _: None,
    *,
    operator: Callable[..., Field] | None = None,
    encoder: Encoder | None = None,
) -> Prepared:
    """Identify what is unknown, choose the numerics, measure the data.

    A user's own `operator` takes the place of the FNO in a surrogate, `encoder` that of the one
    that the numerics name.
    """
    if operator is None:
        check_modes(loaded, settings)
    else:
        check_operator(operator, loaded, settings)
    if encoder is not None:
        check_encoder(encoder, loaded, settings)
    frames, moments = loaded.sample()
    axes = (0, *range(2, frames.ndim))
    center = np.zeros(frames.shape[1])
    spread = np.ones(frames.shape[1])
    if settings.residual_scaling:
        center, spread = frames.mean(axis=axes), frames.std(axis=axes) + 1e-12
    known = loaded.equation.without(*settings.drop_terms)
    unknown = tuple(n for n in loaded.unknown if n in known.coefficient_names)
    fixed, coefficients, identified, doubts = dict(loaded.known), {}, {}, ()
    if unknown:
        found = _identify(loaded, known, unknown, settings, say)
        shared, coefficients, identified = _pooled(found, unknown, say)
        doubts = tuple(told_once([one for one in found if not one.trusted]))
        fixed |= shared
        unknown = tuple(coefficients)
    needs_physics = settings.model in ("surrogate", "physics")
    numerics, reasons = None, ()
    if needs_physics:
        typical = {**fixed, **{k: float(np.mean(v)) for k, v in coefficients.items()}}
        if settings.numerics == "paper" and loaded.benchmark is not None:
            numerics = paper_numerics(get_benchmark(loaded.benchmark))
            reasons = ("numerics: the paper's published settings",)
        else:
            tuned = loaded.tuned(known, {**typical, **moments}, frames)
            numerics, reasons = tuned.numerics, (*loaded.reasons, *tuned.reasons)
        numerics = settings.overriding(numerics, loaded.grid.dims)
        if encoder is not None:
            name = name_of(type(encoder)) or ""
            numerics = replace(numerics, encoder=name, anchors=tuple(encoder.anchors))
        check_anchors(loaded, settings, numerics)
        for reason in reasons:
            say(reason)
    spec = ModelSpec(
        kind=settings.model,
        equation=loaded.equation_text,
        fields=loaded.equation.fields,
        lengths=loaded.grid.lengths,
        dt=loaded.dt,
        numerics=numerics,
        benchmark=loaded.benchmark,
        coefficients={k: v for k, v in fixed.items() if k in known.coefficient_names},
        unknown=unknown,
        conditioned=(
            bool(unknown)
            and settings.conditioned
            and settings.model in ("surrogate", "fno")
            and operator is None
        ),
        dropped_terms=settings.drop_terms,
        coupling=settings.coupling,
        hidden=settings.hidden,
        modes=settings.modes,
        blocks=settings.blocks,
        tenfold=settings.tenfold,
        operator=(
            settings.network if operator is None else name_of(type(operator)) or OWN_OPERATOR
        ),
        origin=loaded.grid.origin,
        terms=loaded.terms,
        domain=loaded.domain,
        layout=loaded.grid.layout,
        intervals=_intervals(loaded, settings, operator),
        coarse=loaded.coarse,
        stride=settings.stride,
        answers=settings.answers,
        through_physics=settings.through_physics,
        conserves=settings.is_coarse and loaded.keeps_mean(),
        inputs=loaded.inputs,
    )
    return Prepared(
        spec,
        tuple(float(c) for c in center),
        tuple(float(s) for s in spread),
        coefficients,
        tuple(reasons),
        identified,
        _measured_inputs(loaded, settings),
        doubts,
    )


def _measured_inputs(loaded: Loaded, settings: Settings) -> tuple[tuple[float, float], ...]:
    """Mean and deviation of each input over a few trajectories."""
    if not loaded.inputs:
        return ()
    if settings.coupling == "rhs" and settings.model == "surrogate":
        raise SplatopError(
            "expected coupling=parallel or sequential for data with inputs, got rhs: leave it out"
        )
    if settings.encoder not in (None, "lattice"):
        raise SplatopError(
            f"expected the lattice encoder for data with inputs, got {settings.encoder}"
        )
    data = loaded.at(settings.phases[0][0])
    few = [data.signals(b) for b in range(min(4, data.trajectories))]
    values = {name: np.stack([one[name].values for one in few]) for name in loaded.inputs}
    return tuple((float(v.mean()), float(v.std()) + 1e-12) for v in values.values())


def _intervals(
    loaded: Loaded, settings: Settings, operator: Callable[..., Field] | None
) -> tuple[float, ...]:
    """The shortest and the longest interval of uneven frames; nothing of even ones."""
    if loaded.intervals is None:
        return ()
    if settings.model not in ("physics", "surrogate", "fno") or operator is not None:
        raise SplatopError(
            "expected our own operator for uneven frames, which can be told how long a step is, "
            f"got {'one of your own' if operator is not None else settings.model}: interpolate to "
            "even times, or leave it out"
        )
    return float(loaded.intervals.min()), float(loaded.intervals.max())


def _identify(
    loaded: Loaded, equation: Equation, unknown: tuple[str, ...], settings: Settings, say: Say
) -> list[Identified]:
    """Unknown coefficients of each training trajectory, with what is to be said of them."""
    data = loaded.observed(settings.phases[0][0])
    # The paper's benchmarks are identified from as few frames as it takes; others from what is
    # worth its time.
    frames = None
    if loaded.benchmark is not None:
        frames = min(settings.calibration_frames, data.frames)
    many = "1 trajectory" if data.trajectories == 1 else f"each of {data.trajectories} trajectories"
    say(f"identifying {', '.join(unknown)} from {many}")
    found = identify_trajectories(
        equation, None, data, unknown=unknown, known=loaded.known, frames=frames
    )
    doubted = sum(not one.trusted for one in found)
    if doubted:
        say(f"not trusted: what was identified from {doubted} of {len(found)} trajectories")
    for warning in told_once(found):
        say(f"warning {warning}")
    return found


def _pooled(
    found: Sequence[Identified], unknown: tuple[str, ...], say: Say
) -> tuple[dict[str, float], dict[str, tuple[float, ...]], dict[str, float | None]]:
    """Coefficients shared by all trajectories, those of each by itself, and how far the 95 %
    interval of one trajectory reaches to each side."""
    shared, own, reach = {}, {}, {}
    for name in unknown:
        values = np.array([one.estimates[name] for one in found])
        errors = np.array([one.standard_errors[name] for one in found])
        middle = float(np.median(values))
        half = float(np.median([np.ptp(one.intervals[name]) / 2 for one in found]))
        reach[name] = half if math.isfinite(half) else None
        spread = float(np.median(np.abs(values - middle)))
        if spread <= max(POOLED_SPREAD * abs(middle), 3 * float(np.median(errors))):
            shared[name] = middle
            alike = f" for all trajectories (they differ by {spread:.1e})" if len(found) > 1 else ""
            say(f"{name} = {middle:.6g}{alike}")
        else:
            own[name] = tuple(float(v) for v in values)
            say(f"{name} differs by trajectory: {values.min():.4g} to {values.max():.4g}")
    return shared, own, reach


def fresh_stepper(
    prepared: Prepared,
    settings: Settings,
    *,
    operator: Callable[..., Field] | None = None,
    encoder: Encoder | None = None,
) -> Stepper:
    """The model before training: seeded weights, the data's statistics."""
    spec = prepared.spec
    encoder_key, network_key = jax.random.split(jax.random.key(settings.seed))
    if spec.numerics is not None and encoder is None:
        encoder = build_encoder(spec.numerics, len(spec.fields), key=encoder_key)
    conditioning = None
    if spec.conditions:
        seen = {k: np.asarray(prepared.coefficients[k]) for k in spec.conditions if k != INTERVAL}
        if spec.intervals:
            seen[INTERVAL] = np.asarray(spec.intervals)
        conditioning = Conditioning.fit(seen)
    stepper = build_model(
        spec, key=network_key, encoder=encoder, conditioning=conditioning, operator=operator
    )
    if spec.kind == "physics":
        return stepper
    if prepared.inputs:
        mean, deviation = jnp.asarray(prepared.inputs, jnp.float32).T
        stepper = eqx.tree_at(
            lambda s: (s.inputs.center, s.inputs.spread), stepper, (mean, deviation)
        )
    return eqx.tree_at(
        lambda s: (s.center, s.spread),
        stepper,
        (jnp.asarray(prepared.center, jnp.float32), jnp.asarray(prepared.spread, jnp.float32)),
    )
