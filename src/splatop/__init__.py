"""splatop: physics-integrated operator learning on Gaussian-splatting representations.

The public names are imported when they are first asked for: `import splatop` and `splatop --help`
cost next to nothing, and what a script does not use it does not wait for.
"""

from importlib import import_module as _import_module
from sys import modules as _modules
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

from ._version import __version__ as __version__

if TYPE_CHECKING:  # what type checkers and editors read; `_HOMES` is what Python reads
    from .assimilate import Analysis as Analysis
    from .assimilate import Frames as Frames
    from .assimilate import Observations as Observations
    from .assimilate import Placement as Placement
    from .assimilate import Reconstruction as Reconstruction
    from .assimilate import assimilate as assimilate
    from .assimilate import place as place
    from .assimilate import reconstruct as reconstruct
    from .benchmarks import BENCHMARKS as BENCHMARKS
    from .benchmarks import Benchmark as Benchmark
    from .benchmarks import get_benchmark as get_benchmark
    from .data import ArrayTrajectories as ArrayTrajectories
    from .data import Trajectories as Trajectories
    from .data import WindowSampler as WindowSampler
    from .data import generate as generate
    from .data import generate_to_file as generate_to_file
    from .data import in_memory as in_memory
    from .data import open_trajectories as open_trajectories
    from .data import save_trajectories as save_trajectories
    from .derivative import Derivative as Derivative
    from .derivative import gradient as gradient
    from .derivative import laplacian as laplacian
    from .derivative import partial as partial
    from .derivative import value as value
    from .discover import Discovered as Discovered
    from .discover import FoundTerm as FoundTerm
    from .discover import discover as discover
    from .domain import Axis as Axis
    from .domain import Condition as Condition
    from .domain import Domain as Domain
    from .encoders import Encoder as Encoder
    from .encoders import LatticeEncoder as LatticeEncoder
    from .encoders import UNetEncoder as UNetEncoder
    from .encoders import check_frame as check_frame
    from .ensemble import Ensemble as Ensemble
    from .equation import EXAMPLES as EXAMPLES
    from .equation import Advection as Advection
    from .equation import Diffusion as Diffusion
    from .equation import Equation as Equation
    from .equation import LearnedTerm as LearnedTerm
    from .equation import Reaction as Reaction
    from .equation import SelfAdvection as SelfAdvection
    from .equation import Term as Term
    from .equation import format_equation as format_equation
    from .equation import latex as latex
    from .equation import parse_equation as parse_equation
    from .errors import SplatopError as SplatopError
    from .estimate import estimate as estimate
    from .evaluate import Metrics as Metrics
    from .evaluate import ReferenceTrajectories as ReferenceTrajectories
    from .evaluate import evaluate as evaluate
    from .evaluate import evaluate_all as evaluate_all
    from .export import export_model as export_model
    from .export import save_export as save_export
    from .finite_differences import FiniteDifferenceJets as FiniteDifferenceJets
    from .fitted import Fitted as Fitted
    from .fitting import fit as fit
    from .gaussians import Gaussians as Gaussians
    from .grid import Grid as Grid
    from .identify import Identified as Identified
    from .identify import identify as identify
    from .identify import identify_data as identify_data
    from .identify import identify_trajectories as identify_trajectories
    from .identify import lattice_jets as lattice_jets
    from .integrators import ETDRK4 as ETDRK4
    from .integrators import RK4 as RK4
    from .integrators import Integrator as Integrator
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
    from .operators import OperatorStepper as OperatorStepper
    from .physics import EmbeddedPhysics as EmbeddedPhysics
    from .points import Points as Points
    from .registry import register as register
    from .render import DenseRenderer as DenseRenderer
    from .render import FourierRenderer as FourierRenderer
    from .render import LocalRenderer as LocalRenderer
    from .render import Renderer as Renderer
    from .solver import ReferenceSolver as ReferenceSolver
    from .solver import initial_condition as initial_condition
    from .solver import solve as solve
    from .solver import solve_trajectories as solve_trajectories
    from .spaces import BoxSpace as BoxSpace
    from .spaces import ShapeSpace as ShapeSpace
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
    from .training import preset as preset
    from .training import train as train
    from .tune import choose_numerics as choose_numerics
    from .walls import WallPhysics as WallPhysics

# The public names by the module that defines them; `new=old` is `import old as new`.
_HOMES = {
    "assimilate": "Analysis Frames Observations Placement Reconstruction assimilate place "
    "reconstruct",
    "benchmarks": "BENCHMARKS Benchmark get_benchmark",
    "data": "ArrayTrajectories Trajectories WindowSampler generate generate_to_file in_memory "
    "open_trajectories save_trajectories",
    "derivative": "Derivative gradient laplacian partial value",
    "discover": "Discovered FoundTerm discover",
    "domain": "Axis Condition Domain",
    "encoders": "Encoder LatticeEncoder UNetEncoder check_frame",
    "ensemble": "Ensemble",
    "equation": "EXAMPLES Advection Diffusion Equation LearnedTerm Reaction SelfAdvection Term "
    "format_equation latex parse_equation",
    "errors": "SplatopError",
    "estimate": "estimate",
    "evaluate": "Metrics ReferenceTrajectories evaluate evaluate_all",
    "export": "export_model save_export",
    "finite_differences": "FiniteDifferenceJets",
    "fitted": "Fitted",
    "fitting": "fit",
    "gaussians": "Gaussians",
    "grid": "Grid",
    "identify": "Identified identify identify_data identify_trajectories lattice_jets",
    "integrators": "ETDRK4 RK4 Integrator",
    "jets": "Jet JetProvider SpectralJets SplatJets",
    "model": "Model load=load_model save=save_model",
    "numerics": "Numerics build_physics",
    "operators": "FNO Conditioning OperatorStepper",
    "physics": "EmbeddedPhysics",
    "points": "Points",
    "registry": "register",
    "render": "DenseRenderer FourierRenderer LocalRenderer Renderer",
    "solver": "ReferenceSolver initial_condition solve solve_trajectories",
    "spaces": "BoxSpace ShapeSpace",
    "spectral": "BoxFilter Filter PassThrough SharpFilter SmoothFilter",
    "stepper": "Stepper rollout",
    "surrogate": "Surrogate",
    "training": "Problem Settings preset train",
    "tune": "choose_numerics",
    "walls": "WallPhysics",
}
_PUBLIC = {
    name.partition("=")[0]: (module, name.rpartition("=")[2])
    for module, names in _HOMES.items()
    for name in names.split()
}
__all__ = ["__version__", *_PUBLIC]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> _Any:
    """A public name or a module, imported the first time that it is asked for (PEP 562)."""
    if name in _PUBLIC:
        module, original = _PUBLIC[name]
        globals()[name] = getattr(_import_module(f".{module}", __name__), original)
        return globals()[name]
    try:
        return _import_module(f".{name}", __name__)
    except ModuleNotFoundError as missing:
        if missing.name != f"{__name__}.{name}":
            raise
    raise AttributeError(f"module 'splatop' has no attribute '{name}'")


class _Package(_ModuleType):
    """Keeps `splatop.identify` the function where a package has the same name: importing
    `splatop.identify` would otherwise put the package in its place."""

    def __setattr__(self, name: str, value: _Any) -> None:
        if not (name in _PUBLIC and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
