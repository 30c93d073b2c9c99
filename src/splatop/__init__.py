"""splatop: physics-integrated operator learning on Gaussian-splatting representations."""

import os as _os
from typing import TYPE_CHECKING, Any

# Factorising a few hundred unknowns, OpenBLAS with two threads spends its time waiting for the
# other one: a hundredfold on a busy machine. It reads this when it is loaded; XLA is not concerned.
_os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from ._version import __version__ as __version__
from .benchmarks import BENCHMARKS as BENCHMARKS
from .benchmarks import Benchmark as Benchmark
from .benchmarks import get_benchmark as get_benchmark
from .data import ArrayTrajectories as ArrayTrajectories
from .data import Trajectories as Trajectories
from .data import generate as generate
from .data import open_trajectories as open_trajectories
from .data import save_trajectories as save_trajectories
from .derivative import Derivative as Derivative
from .derivative import gradient as gradient
from .derivative import laplacian as laplacian
from .derivative import partial as partial
from .discover import Discovered as Discovered
from .discover import discover as discover
from .encoders import Encoder as Encoder
from .encoders import LatticeEncoder as LatticeEncoder
from .encoders import UNetEncoder as UNetEncoder
from .ensemble import Ensemble as Ensemble
from .equation import Equation as Equation
from .equation import Term as Term
from .equation import parse_equation as parse_equation
from .errors import SplatopError as SplatopError
from .export import export_model as export_model
from .gaussians import Gaussians as Gaussians
from .grid import Grid as Grid
from .identify import identify as identify
from .integrators import RK4 as RK4
from .integrators import Integrator as Integrator
from .jets import FiniteDifferenceJets as FiniteDifferenceJets
from .jets import Jet as Jet
from .jets import JetProvider as JetProvider
from .jets import SpectralJets as SpectralJets
from .jets import SplatJets as SplatJets
from .model import Model as Model
from .model import load_model as load
from .model import save_model as save
from .numerics import Numerics as Numerics
from .numerics import build_physics as build_physics
from .operators import FNO as FNO
from .operators import Conditioning as Conditioning
from .physics import EmbeddedPhysics as EmbeddedPhysics
from .registry import register as register
from .render import DenseRenderer as DenseRenderer
from .render import FourierRenderer as FourierRenderer
from .render import LocalRenderer as LocalRenderer
from .render import Renderer as Renderer
from .spectral import BoxFilter as BoxFilter
from .spectral import Filter as Filter
from .spectral import PassThrough as PassThrough
from .spectral import SharpFilter as SharpFilter
from .spectral import SmoothFilter as SmoothFilter
from .stepper import Stepper as Stepper
from .stepper import rollout as rollout
from .surrogate import Surrogate as Surrogate
from .training import Problem as Problem
from .training import Settings as Settings
from .training import train as train
from .tune import choose_numerics as choose_numerics

if TYPE_CHECKING:
    from .fitted import Fitted as Fitted
    from .fitted import fit as fit


def __getattr__(name: str) -> Any:
    """`fit`, when it is asked for: it brings matplotlib, which all else does without."""
    if name in ("fit", "Fitted"):
        from . import fitted

        return getattr(fitted, name)
    raise AttributeError(f"module 'splatop' has no attribute '{name}'")
