"""Ablations that need no training: the same weights in a stepper that is built differently."""

import re
from dataclasses import dataclass, fields, replace
from typing import Any

from ..encoders import Encoder
from ..errors import SplatopError, unknown_name
from ..model import Model, ensemble_of
from ..numerics import Numerics, build_encoder, build_physics, with_anchors
from ..physics import Physics
from ..spectral import Field
from ..stepper import Coefficients, StepperAround
from ..surrogate import Surrogate

_MOST = 10**6  # anchors, cells or substeps: beyond, it is a mistake
PARTS = ("operator", "physics", "filter")


@dataclass(frozen=True)
class Ablation:
    """What to change in a trained model; None leaves it as it was trained."""

    without: str | None = None
    jets: str | None = None
    anchors: int | None = None
    window: int | None = None
    cutoff: float | None = None
    coupling: str | None = None
    substeps: int | None = None

    def __post_init__(self):
        if self.without is not None and self.without not in PARTS:
            raise unknown_name("part to leave out", self.without, PARTS)
        for name in ("anchors", "window", "substeps", "cutoff"):
            number = getattr(self, name)
            if number is not None and not 0 < number <= _MOST:
                raise SplatopError(f"expected {name} above 0 and up to {_MOST:,}, got {number}")

    @property
    def label(self) -> str | None:
        """In words: "without filter, substeps 2"; None if nothing changes."""
        changes = [
            f"{f.name} {value:g}" if isinstance(value, int | float) else f"{f.name} {value}"
            for f in fields(self)
            if (value := getattr(self, f.name)) is not None
        ]
        return ", ".join(changes) or None

    @property
    def metrics_file(self) -> str:
        """The file for its metrics, beside the `metrics.json` of the model itself."""
        slug = re.sub(r"[^a-z0-9.]+", "-", (self.label or "").lower()).strip("-")
        return f"metrics.{slug}.json" if slug else "metrics.json"


class OperatorAlone(StepperAround):
    """A surrogate whose physics does nothing: `u_next = u + N_θ(u)`."""

    surrogate: Surrogate

    @property
    def inside(self) -> Surrogate:
        return self.surrogate

    def __call__(self, u: Field, coefficients: Coefficients) -> Field:
        return u + self.surrogate.correction(u, coefficients)


def ablate(model: Model, ablation: Ablation) -> Model:
    """The model with the change, its weights kept."""
    if ablation.label is None:
        return model
    if model.spec.members > 1:
        return ensemble_of([ablate(one, ablation) for one in model.members])
    physics = model.physics
    if physics is None or model.spec.numerics is None:
        raise SplatopError(
            f"expected a model with embedded physics to change ({ablation.label}), got a "
            f"'{model.spec.kind}' model: choose a surrogate"
        )
    numerics = _changed(model.spec.numerics, ablation)
    spec = replace(model.spec, numerics=numerics, coupling=ablation.coupling or model.spec.coupling)
    physics = build_physics(
        spec.known_equation,
        numerics,
        lengths=spec.lengths,
        dt=spec.dt,
        domain=spec.domain,
        layout=spec.layout,
        encoder=_encoder(physics, numerics, len(spec.fields)),
    )
    if ablation.without == "operator":
        return Model(replace(spec, kind="physics"), physics, model.record)
    if spec.kind == "physics":
        if ablation.without == "physics" or ablation.coupling is not None:
            raise SplatopError(
                f"expected a surrogate for '{ablation.label}', got physics alone: it has no "
                "operator"
            )
        return Model(spec, physics, model.record)
    surrogate: Any = model.stepper
    surrogate = replace(surrogate, physics=physics, coupling=spec.coupling)
    alone = ablation.without == "physics"
    return Model(spec, OperatorAlone(surrogate) if alone else surrogate, model.record)


def _changed(numerics: Numerics, ablation: Ablation) -> Numerics:
    if ablation.anchors is not None:
        numerics = with_anchors(numerics, ablation.anchors)
    if ablation.window is not None:
        # The Fourier renderer has no window: asking for one asks for the local renderer.
        numerics = replace(numerics, window=ablation.window, renderer="local")
    if ablation.cutoff is not None:
        numerics = replace(numerics, cutoff=(float(ablation.cutoff),))
    if ablation.without == "filter":
        numerics = replace(numerics, filter="none", working_grid=False)
    return replace(
        numerics,
        jets=ablation.jets or numerics.jets,
        substeps=ablation.substeps or numerics.substeps,
    )


def _encoder(physics: Physics, numerics: Numerics, channels: int) -> Encoder | None:
    """The trained encoder, or a closed-form one for the new lattice."""
    if numerics.jets != "splat":
        return None
    trained = physics.encoder
    fresh = build_encoder(numerics, channels)
    if not fresh.is_learned:
        return fresh
    if trained is None or not trained.is_learned:
        raise SplatopError(
            "expected a trained encoder for Gaussian derivatives, got a model that was trained "
            "with others: train one with `splatop train --set jets=splat`"
        )
    if trained.anchors == numerics.anchors:
        return trained
    raise SplatopError(
        f"expected {' x '.join(map(str, trained.anchors))} anchors, which the encoder was trained "
        f"for, got {' x '.join(map(str, numerics.anchors))}: train with `--set anchors=...`"
    )
