"""Unknown terms of an equation, found as formulas."""

from .api import discover as discover
from .result import Discovered as Discovered
from .result import FoundTerm as FoundTerm
from .symmetry import SYMMETRIES as SYMMETRIES
