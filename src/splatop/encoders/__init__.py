"""Encoders: a gridded field to Gaussians."""

from .encoder import Encoder as Encoder
from .lattice import LatticeEncoder as LatticeEncoder
from .lattice import anchors_for as anchors_for
from .solve import fit_points as fit_points
from .solve import solve_amplitudes as solve_amplitudes
from .unet import UNetEncoder as UNetEncoder
