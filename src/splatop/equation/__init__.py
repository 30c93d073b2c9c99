"""Governing equations: sums of named terms with named coefficients."""

from .equation import Equation as Equation
from .examples import EXAMPLES as EXAMPLES
from .examples import Example as Example
from .grouping import ExpressionTerm as ExpressionTerm
from .learned import LearnedTerm as LearnedTerm
from .printing import format_equation as format_equation
from .printing import format_expression as format_expression
from .printing import format_partial as format_partial
from .printing import latex as latex
from .printing import latex_lines as latex_lines
from .terms import Advection as Advection
from .terms import ConservativeSelfAdvection as ConservativeSelfAdvection
from .terms import CustomTerm as CustomTerm
from .terms import Diffusion as Diffusion
from .terms import Reaction as Reaction
from .terms import SelfAdvection as SelfAdvection
from .terms import Term as Term
from .text import PartialEquation as PartialEquation
from .text import has_unknown as has_unknown
from .text import parse_coefficients as parse_coefficients
from .text import parse_equation as parse_equation
from .text import parse_partial_equation as parse_partial_equation
from .text import parse_valued_equation as parse_valued_equation
from .text import split_coefficients as split_coefficients
