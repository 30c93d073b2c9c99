"""Spaces: the smooth fields on a domain that a computation stays in."""

from .box import BoxSpace as BoxSpace
from .harmonics import shape_harmonics as shape_harmonics
from .kept import telling as telling
from .lift import Edges as Edges
from .lift import lift as lift
from .lift import unconstrained as unconstrained
from .potentials import inverse_numbers as inverse_numbers
from .samples import Fractions as Fractions
from .samples import Sampling as Sampling
from .samples import between_ends as between_ends
from .samples import resampled_between as resampled_between
from .shape import ShapeSpace as ShapeSpace
from .spectrum import energy_spectrum as energy_spectrum

# What a computation stays in.
Space = BoxSpace | ShapeSpace
