"""Encoders: a gridded field to Gaussians."""

from .amplitudes import modes_of_samples as modes_of_samples
from .amplitudes import sample_points as sample_points
from .amplitudes import solve_amplitudes as solve_amplitudes
from .encoder import Encoder as Encoder
from .encoder import check_frame as check_frame
from .lattice import LatticeEncoder as LatticeEncoder
from .lattice import anchors_for as anchors_for
from .unet import HeldGeometry as HeldGeometry
from .unet import UNetEncoder as UNetEncoder
