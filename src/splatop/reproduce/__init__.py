"""The reproduction of the paper: its tables and figures, from runs that are trained if missing."""

from .making import Reproduced as Reproduced
from .making import reproduce as reproduce
from .workshop import Size as Size
