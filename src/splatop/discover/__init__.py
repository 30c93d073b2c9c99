"""Unknown terms of an equation, found as formulas."""

from .discovered import Discovered as Discovered
from .discovered import FoundTerm as FoundTerm
from .discovering import discover as discover
from .symmetry import SYMMETRIES as SYMMETRIES
