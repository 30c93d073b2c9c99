"""Spaces: the smooth fields on a domain that a computation stays in."""

from .box import BoxSpace as BoxSpace
from .kept import telling as telling
from .lift import Edges as Edges
from .lift import lift as lift
from .lift import unconstrained as unconstrained
from .potentials import inverse_numbers as inverse_numbers
from .resampling import Fractions as Fractions
from .resampling import Sampling as Sampling
from .resampling import between_ends as between_ends
from .resampling import resampled_between as resampled_between
from .shape_harmonics import shape_harmonics as shape_harmonics
from .shape_space import ShapeSpace as ShapeSpace
from .spectrum import energy_spectrum as energy_spectrum

# Either kind of space: the finite set of fields that a computation stays in.
Space = BoxSpace | ShapeSpace
