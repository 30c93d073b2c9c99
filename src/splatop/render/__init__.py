"""Gaussians to fields and their derivatives: one interface, three ways to compute them."""

from .dense import DenseRenderer as DenseRenderer
from .fourier import FourierRenderer as FourierRenderer
from .fourier import fourier_modes as fourier_modes
from .local import LocalRenderer as LocalRenderer
from .renderer import PointRenderer as PointRenderer
from .renderer import Renderer as Renderer
