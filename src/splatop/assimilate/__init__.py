"""The state of a field from what a few sensors report, and where it goes next."""

from .assimilating import assimilate as assimilate
from .observations import Observations as Observations
from .place import Placement as Placement
from .place import place as place
from .reconstruct import Reconstruction as Reconstruction
from .reconstruct import reconstruct as reconstruct
from .state import Analysis as Analysis
from .uncertain_frames import Frames as Frames
