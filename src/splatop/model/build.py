"""The stepper that a specification describes, with fresh parameters."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..coarse import CoarseStepper, axis_words
from ..encoders import Encoder
from ..ensemble import Ensemble, repeat
from ..errors import SplatopError
from ..numerics import build_encoder, build_physics
from ..operators import BASELINES, FNO, Conditioning, Convolutions, baseline
from ..operators.harmonic import HarmonicOperator
from ..operators.on_box import OnBox, sides_for
from ..operators.padded import PaddedFNO
from ..points import Points
from ..spectral import Field
from ..stepper import Stepper
from ..surrogate import Inputs, ScaledOperator, Surrogate
from .spec import CONVOLUTIONS, NETWORKS, ModelSpec


def build_model(
    spec: ModelSpec,
    *,
    key: PRNGKeyArray | None = None,
    encoder: Encoder | None = None,
    conditioning: Conditioning | None = None,
    operator: Callable[..., Field] | None = None,
) -> Stepper:
    """The stepper that is asked for, with fresh weights and unit scales, ready to be trained.

    `encoder`, `conditioning` and `operator` are used as they are; a surrogate whose operator is not
    our FNO needs it, because the spec has only its name.
    """
    key = jax.random.key(0) if key is None else key
    channels = len(spec.fields)
    if spec.members > 1:
        one = build_model(
            replace(spec, members=1),
            key=key,
            encoder=encoder,
            conditioning=conditioning,
            operator=operator,
        )
        return Ensemble(repeat(one, spec.members), spec.members)
    if spec.conditions and conditioning is None:
        zeros = np.zeros(len(spec.conditions))
        conditioning = Conditioning(spec.conditions, zeros, zeros + 1)
    zero, one = jnp.zeros(channels), jnp.ones(channels)
    count = len(spec.inputs)
    given = Inputs(spec.inputs, jnp.zeros(count), jnp.ones(count)) if count else None
    if spec.kind in BASELINES:
        if spec.conditions and spec.kind != "fno":
            raise SplatopError(
                f"expected an FNO for coefficients or intervals that vary, got '{spec.kind}': "
                "only the FNO can be conditioned"
            )
        if spec.domain is not None and spec.domain.shape is not None:
            network = _on_box(spec, key)
        elif spec.kind == "fno" and not spec.tenfold:
            network = _fno(spec, key, zero_projection=False)
        else:
            network = baseline(
                spec.kind,
                spec.dims,
                channels + count,
                key=key,
                tenfold=spec.tenfold,
                walls=spec.domain is not None,
            )
        return ScaledOperator(network, zero, one, conditioning, given)
    if spec.numerics is None:
        raise SplatopError(f"a {spec.kind} model expected numerics for its physics, got none")
    if encoder is None:
        encoder = build_encoder(spec.numerics, channels)
    physics = build_physics(
        spec.known_equation,
        spec.numerics,
        lengths=spec.lengths,
        dt=spec.dt,
        encoder=encoder,
        domain=spec.domain,
        layout=spec.layout,
    )
    if spec.kind == "physics":
        return physics
    if (spec.operator not in NETWORKS) != (operator is not None):
        raise SplatopError(
            "expected the Python model that is this surrogate's operator, got none: pass one of "
            "the same structure, load(path, operator=...)"
            if operator is None
            else "expected no operator for a surrogate with an FNO of its own, got "
            f"{type(operator).__name__}: leave it out"
        )
    if spec.operator == CONVOLUTIONS:
        operator = _convolutions(spec, key)
    network = _fno(spec, key, zero_projection=True) if operator is None else operator
    return Surrogate(
        physics,
        network,
        zero,
        one,
        one,
        conditioning,
        spec.coupling,
        inputs=given,
        through_physics=spec.through_physics,
        confined=bool(spec.coarse),
        conserves=spec.conserves,
        longest=max(spec.intervals, default=None),
    )


def on_given_grid(stepper: Stepper, spec: ModelSpec) -> Stepper:
    """A model's stepper as users meet it: one of a coarse grid takes states of any."""
    if not spec.coarse:
        return stepper
    words = () if spec.domain is None else axis_words(spec.domain, spec.layout)
    return CoarseStepper(stepper, spec.coarse, spec.answers == "coarse", words=words)


def _convolutions(spec: ModelSpec, key: PRNGKeyArray) -> Convolutions:
    if spec.domain is not None and spec.domain.shape is not None:
        raise SplatopError(
            "expected a grid for convolutions, got points of a shape: use network=fno"
        )
    return Convolutions(
        spec.dims,
        len(spec.fields) + len(spec.inputs),
        hidden=spec.hidden,
        blocks=spec.blocks,
        conditions=len(spec.conditions),
        closed=() if spec.domain is None else spec.domain.periodic,
        key=key,
    )


def _on_box(spec: ModelSpec, key: PRNGKeyArray) -> OnBox:
    """A baseline on a shape: on the box around it, with a mask."""
    domain, layout = spec.domain, spec.layout
    assert domain is not None
    assert isinstance(layout, Points)
    channels = len(spec.fields) + len(spec.inputs) + 1
    sides = sides_for(domain, layout)
    if spec.kind == "fno" and not spec.tenfold:
        network = _box_fno(spec, channels, key, zero_projection=False)
    else:
        how = {"key": key, "tenfold": spec.tenfold, "walls": True}
        network = baseline(spec.kind, spec.dims, channels, **how)
    # The FNO takes the box for periodic: an eighth of it lies between its two ends.
    padding = max(sides) // 8 if spec.kind == "fno" else 0
    return OnBox(network, domain, layout, sides, padding)


def _fno(
    spec: ModelSpec, key: PRNGKeyArray, *, zero_projection: bool
) -> FNO | PaddedFNO | HarmonicOperator:
    """On the harmonics of a shape and between insulated walls, else on the box, which is padded
    between other walls: measured in docs/walls.md."""
    if spec.domain is not None and (spec.domain.shape is not None or _insulated(spec)):
        return HarmonicOperator(
            len(spec.fields) + len(spec.inputs),
            closed=spec.domain.periodic,
            layout=spec.layout,
            domain=spec.domain,
            hidden=spec.hidden,
            modes=spec.modes,
            blocks=spec.blocks,
            conditions=len(spec.conditions),
            key=key,
            zero_projection=zero_projection,
        )
    channels = len(spec.fields) + len(spec.inputs)
    network = _box_fno(spec, channels, key, zero_projection=zero_projection)
    return network if spec.domain is None else PaddedFNO(network, spec.domain.periodic)


def _insulated(spec: ModelSpec) -> bool:
    """Whether slopes are set at every end, for every field: cosines are then the fields' own."""
    domain = spec.domain
    return domain is not None and all(
        domain.at(side, name).kind == "slope" for side in domain.sides for name in spec.fields
    )


def _box_fno(spec: ModelSpec, channels: int, key: PRNGKeyArray, *, zero_projection: bool) -> FNO:
    return FNO(
        spec.dims,
        channels,
        hidden=spec.hidden,
        modes=spec.modes,
        blocks=spec.blocks,
        conditions=len(spec.conditions),
        key=key,
        zero_projection=zero_projection,
    )
