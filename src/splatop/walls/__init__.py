"""Equations on a box with walls: projected onto Gaussians for Φ, on Chebyshev nodes as reference."""

from .conditions import check_conditions as check_conditions
from .galerkin import Galerkin as Galerkin
from .physics import WallPhysics as WallPhysics
from .solver import solve_between_walls as solve_between_walls
