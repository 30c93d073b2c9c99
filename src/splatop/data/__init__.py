"""Data sets of trajectories: generate, read, write, sample and describe them."""

from .axes import as_origin as as_origin
from .frames import frames_at as frames_at
from .frames import roughest_pairs as roughest_pairs
from .frames import spread_frames as spread_frames
from .frames import spread_pairs as spread_pairs
from .generate import generate as generate
from .generate import generate_to_file as generate_to_file
from .in_memory import ArrayTrajectories as ArrayTrajectories
from .in_memory import in_memory as in_memory
from .open import open_trajectories as open_trajectories
from .reference import reference_stepper as reference_stepper
from .sampler import Batch as Batch
from .sampler import WindowSampler as WindowSampler
from .sampling import sampling_words as sampling_words
from .shaped import shape_and_points as shape_and_points
from .solve_to_file import solve_to_file as solve_to_file
from .split import Split as Split
from .split import part as part
from .split import split as split
from .summary import plot as plot
from .summary import spectrum as spectrum
from .summary import summarize as summarize
from .tables import save_table as save_table
from .trajectories import Trajectories as Trajectories
from .well_writer import Progress as Progress
from .well_writer import save_trajectories as save_trajectories
