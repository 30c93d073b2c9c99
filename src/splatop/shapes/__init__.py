"""Shapes cut out of a box in 2D: what lies inside, their named edges, integrals over them."""

from .combinations import Difference as Difference
from .combinations import Intersection as Intersection
from .combinations import Union as Union
from .combinations import shape_as_dict as shape_as_dict
from .combinations import shape_from_dict as shape_from_dict
from .mask import shape_of_mask as shape_of_mask
from .pieces import Arc as Arc
from .pieces import Edge as Edge
from .pieces import Piece as Piece
from .pieces import Place as Place
from .pieces import Run as Run
from .pieces import Segment as Segment
from .primitives import Box as Box
from .primitives import Disk as Disk
from .primitives import Outline as Outline
from .primitives import Polygon as Polygon
from .quadrature import Quadrature as Quadrature
from .quadrature import quadrature as quadrature
from .shape import Shape as Shape
