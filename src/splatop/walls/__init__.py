"""Equations on a box with walls: on Gaussians for Φ, on Chebyshev nodes for reference."""

from .conditions import check_conditions as check_conditions
from .conditions import check_flow as check_flow
from .conditions import check_stated as check_stated
from .conditions import check_told as check_told
from .galerkin import Galerkin as Galerkin
from .resolution import choose_sizes as choose_sizes
from .resolution import most_anchors as most_anchors
from .resolution import resolved_frames as resolved_frames
from .resolution import wall_space as wall_space
from .shape_resolution import choose_on_shape as choose_on_shape
from .shape_solver import random_starts as random_starts
from .shape_solver import solve_on_shape as solve_on_shape
from .wall_physics import WallPhysics as WallPhysics
from .wall_solver import random_state as random_state
from .wall_solver import solve_between_walls as solve_between_walls
