"""The names of the parts that models are made of.

An encoder, renderer, filter, operator, term, integrator or jet provider is an equinox module whose
class has a name. What splatop ships stands in one table here; a user's class joins it by
`register`. `description.py` writes models as trees of these names.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import pdequinox as pdeqx

from .coarse import CoarseStepper, Refiner
from .derivative import Derivative
from .domain import Axis, Condition, Domain
from .encoders import LatticeEncoder, UNetEncoder
from .encoders import unet as _unet
from .ensemble import Ensemble
from .equation import (
    Advection,
    ConservativeSelfAdvection,
    CustomTerm,
    Diffusion,
    Equation,
    ExpressionTerm,
    LearnedTerm,
    Reaction,
    SelfAdvection,
)
from .equation import expression as _expression
from .errors import SplatopError, unknown_name
from .finite_differences import FiniteDifferenceJets
from .gaussians import BoundedScales, ClippedScales
from .grid import Grid
from .integrators import ETDRK4, RK4
from .jets import SpectralJets, SplatJets
from .operators import FNO, Conditioning, OperatorStepper
from .operators.convolutions import Convolutions
from .operators.fno import FiLM, FourierBlock
from .operators.harmonic import HarmonicBlock, HarmonicOperator
from .operators.on_box import OnBox
from .operators.padded import PaddedFNO
from .physics import EmbeddedPhysics
from .points import Points
from .render import DenseRenderer, FourierRenderer, LocalRenderer
from .shapes.combinations import KINDS
from .spaces import BoxSpace, ShapeSpace
from .spectral import BoxFilter, PassThrough, SharpFilter, SmoothFilter
from .surrogate import Inputs, ScaledOperator, Surrogate
from .walls import WallPhysics

T = TypeVar("T")


def _modules_in(prefix: str, *namespaces: Any) -> dict[str, Any]:
    """The public modules of a library that networks are built from."""
    return {
        f"{prefix}.{name}": value
        for namespace in namespaces
        for name, value in vars(namespace).items()
        if inspect.isclass(value) and issubclass(value, eqx.Module) and not name.startswith("_")
    }


SHIPPED: dict[str, Any] = {
    # Steppers.
    "surrogate": Surrogate,
    "scaled-operator": ScaledOperator,
    "operator": OperatorStepper,
    "inputs": Inputs,
    "physics": EmbeddedPhysics,
    "ensemble": Ensemble,
    "coarse": CoarseStepper,
    "refiner": Refiner,
    # Physics.
    "equation": Equation,
    "rk4": RK4,
    "etdrk4": ETDRK4,
    "wall-physics": WallPhysics,
    "box-space": BoxSpace,
    "shape-space": ShapeSpace,
    "points": Points,
    "grid": Grid,
    **{f"shape.{name}": kind for name, kind in KINDS.items()},
    "domain": Domain,
    "axis": Axis,
    "condition": Condition,
    "harmonic-operator": HarmonicOperator,
    "harmonic-block": HarmonicBlock,
    "padded-fno": PaddedFNO,
    "on-box": OnBox,
    "splat": SplatJets,
    "spectral": SpectralJets,
    "finite-difference": FiniteDifferenceJets,
    "sharp": SharpFilter,
    "smooth": SmoothFilter,
    "box": BoxFilter,
    "none": PassThrough,
    "derivative": Derivative,
    # Representation.
    "lattice": LatticeEncoder,
    "unet": UNetEncoder,
    "unet-network": _unet._UNet,
    "periodic-convolution": _unet.PeriodicConv,
    "bounded-scales": BoundedScales,
    "clipped-scales": ClippedScales,
    "fourier": FourierRenderer,
    "local": LocalRenderer,
    "dense": DenseRenderer,
    # Terms.
    "advection": Advection,
    "diffusion": Diffusion,
    "self-advection": SelfAdvection,
    "conservative-self-advection": ConservativeSelfAdvection,
    "reaction": Reaction,
    "function-term": CustomTerm,
    "text-term": ExpressionTerm,
    "learned-term": LearnedTerm,
    "expression": _expression.Expression,
    "expression.pi": _expression.Pi,
    "expression.coefficient": _expression.Coefficient,
    "expression.coordinate": _expression.Coordinate,
    "expression.time": _expression.Time,
    "expression.derivative": _expression.FieldDerivative,
    "expression.function": _expression.Function,
    "expression.group": _expression.Group,
    # Networks.
    "fno": FNO,
    "convolutions": Convolutions,
    "fno-block": FourierBlock,
    "film": FiLM,
    "conditioning": Conditioning,
    **_modules_in("equinox.nn", eqx.nn),
    **_modules_in("pdequinox", pdeqx.arch, pdeqx.blocks, pdeqx.conv),
    # Functions that networks hold.
    **{
        f"jax.nn.{name}": getattr(jax.nn, name)
        for name in ("relu", "gelu", "silu", "tanh", "elu", "softplus", "sigmoid", "leaky_relu")
    },
    "jax.numpy.tanh": jnp.tanh,
    "jax.numpy.sin": jnp.sin,
    "equinox.nn.identity": inspect.signature(eqx.nn.MLP).parameters["final_activation"].default,
}

_OWN: dict[str, Any] = {}


@overload
def register(part: T, *, name: str) -> T: ...
@overload
def register(*, name: str) -> Callable[[T], T]: ...
def register(part: Any = None, *, name: str) -> Any:
    """Give a class of your own a name, so that models made of it can be saved and loaded.

    `register(Mine, name="mine")`, or `@register(name="mine")` above the class: an equinox module,
    a frozen dataclass, or a function that such a module holds. The name also works wherever a part
    is chosen by one, such as `--set encoder=mine`. Whoever loads the model must have run the same
    line.
    """
    if part is None:
        return lambda given: register(given, name=name)
    storable = inspect.isclass(part) and (
        issubclass(part, eqx.Module) or dataclasses.is_dataclass(part)
    )
    if not storable and (inspect.isclass(part) or not callable(part)):
        raise SplatopError(
            "expected an equinox module, a frozen dataclass or a function to register, got "
            f"{part!r}: derive the class from splatop.Encoder, splatop.Term or equinox.Module"
        )
    if not isinstance(name, str) or not name.strip():
        raise SplatopError(f"expected a name to register {where(part)} under, got {name!r}")
    held = SHIPPED.get(name, _OWN.get(name))
    # A notebook cell that is run again defines the same class once more.
    if held is not None and (name in SHIPPED or where(held) != where(part)):
        raise SplatopError(
            f"expected a name that is free, got '{name}', which {where(held)} has: choose another"
        )
    _OWN[name] = part
    return part


def registered(kind: type) -> dict[str, type]:
    """The classes of one kind, such as `Encoder`, by name: those shipped, then the user's own."""
    return {
        name: part
        for name, part in {**SHIPPED, **_OWN}.items()
        if inspect.isclass(part) and issubclass(part, kind)
    }


def name_of(part: Any) -> str | None:
    """The registered name of a class or function, or None."""
    return next((n for n, held in {**_OWN, **SHIPPED}.items() if held is part), None)


def chosen(kind: type, word: str, name: str) -> Any:
    """The registered class of a kind, for a choice by name; `word` is what users call the kind."""
    table = registered(kind)
    if name not in table:
        raise unknown_name(word, name, table)
    return table[name]


def named(name: str, hint: Any = None) -> Any:
    """The registered class or function of this name; `hint` says where it was defined."""
    part = _OWN.get(name, SHIPPED.get(name))
    if part is not None:
        return part
    if isinstance(hint, str) and hint:
        package, _, short = hint.rpartition(".")
        raise SplatopError(
            f"expected a registered part, got '{name}', which nothing here has registered: it was "
            f"{hint}, so import {package} first, or run splatop.register({short}, name={name!r})"
        )
    raise unknown_name("part of a model", name, {**SHIPPED, **_OWN})


def is_shipped(part: Any) -> bool:
    return any(held is part for held in SHIPPED.values())


def where(part: Any) -> str:
    return f"{getattr(part, '__module__', '?')}.{getattr(part, '__qualname__', repr(part))}"
