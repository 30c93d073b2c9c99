"""Spaces: the smooth fields on a domain that a computation stays in."""

from typing import Any

from .box import BoxSpace as BoxSpace
from .box import Fractions as Fractions
from .harmonics import shape_harmonics as shape_harmonics
from .kept import telling as telling
from .lift import Edges as Edges
from .lift import lift as lift
from .lift import unconstrained as unconstrained
from .potentials import inverse_numbers as inverse_numbers
from .shape import ShapeSpace as ShapeSpace
from .spectrum import energy_spectrum as energy_spectrum

# What a computation stays in. Where the samples of a state lie is whatever its `sampled` answers:
# fractions of each axis, or points.
Space = BoxSpace | ShapeSpace
Sampling = Any
