"""Spaces: the smooth fields on a domain that a computation stays in."""

from ..points import Points
from .box import BoxSpace as BoxSpace
from .box import Fractions as Fractions
from .kept import telling as telling
from .lift import Edges as Edges
from .lift import lift as lift
from .lift import unconstrained as unconstrained
from .shape import ShapeSpace as ShapeSpace
from .shape import shape_harmonics as shape_harmonics
from .spectrum import energy_spectrum as energy_spectrum

# What a computation stays in, and where the samples of a state lie: whatever `sampled` answers.
Space = BoxSpace | ShapeSpace
Sampling = Fractions | Points
