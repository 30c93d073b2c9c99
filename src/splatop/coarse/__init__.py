"""Coarse models: fewer points and longer steps than the data have, on the user's own grid."""

from .coarse_stepper import CoarseStepper as CoarseStepper
from .projection import CoarseTrajectories as CoarseTrajectories
from .projection import axis_words as axis_words
from .projection import coarse_points as coarse_points
from .projection import expand as expand
from .projection import truncate as truncate
from .projection import truncated_frames as truncated_frames
from .refiner import Refiner as Refiner
