"""Coefficients of an equation from frames, with intervals and warnings."""

from .api import check_window as check_window
from .api import chosen_frames as chosen_frames
from .api import identify as identify
from .api import identify_trajectories as identify_trajectories
from .api import lattice_jets as lattice_jets
from .noise import add_noise as add_noise
from .result import METHODS as METHODS
from .result import Identified as Identified
from .result import told_once as told_once
