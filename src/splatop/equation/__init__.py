"""Governing equations: sums of named terms with named coefficients."""

from .equation import Equation as Equation
from .terms import Advection as Advection
from .terms import ConservativeSelfAdvection as ConservativeSelfAdvection
from .terms import CustomTerm as CustomTerm
from .terms import Diffusion as Diffusion
from .terms import Reaction as Reaction
from .terms import SelfAdvection as SelfAdvection
from .terms import Term as Term
