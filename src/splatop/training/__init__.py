"""Training: settings, two stages, runs that survive interruption."""

from .problem import Problem as Problem
from .settings import PRESETS as PRESETS
from .settings import Settings as Settings
from .settings import coarser as coarser
from .settings import preset as preset
from .train import train as train
