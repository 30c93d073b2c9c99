"""Spaces: the smooth fields on a domain that a computation stays in."""

from .box import BoxSpace as BoxSpace
from .box import Fractions as Fractions
from .lift import Edges as Edges
from .lift import lift as lift
from .lift import unconstrained as unconstrained
from .spectrum import energy_spectrum as energy_spectrum
