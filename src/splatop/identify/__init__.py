"""Coefficients of an equation from frames, with intervals and warnings."""

from .identified import METHODS as METHODS
from .identified import Identified as Identified
from .identified import told_once as told_once
from .identifying import check_window as check_window
from .identifying import chosen_frames as chosen_frames
from .identifying import identify as identify
from .identifying import identify_trajectories as identify_trajectories
from .identifying import lattice_jets as lattice_jets
from .noise import add_noise as add_noise
from .of_data import identify_data as identify_data
