"""Shapes cut out of a box in 2D: what lies inside, their named edges, integrals over them."""

from .mask import shape_of_mask as shape_of_mask
from .pieces import Arc as Arc
from .pieces import Edge as Edge
from .pieces import Piece as Piece
from .pieces import Place as Place
from .pieces import Run as Run
from .pieces import Segment as Segment
from .quadrature import Quadrature as Quadrature
from .quadrature import quadrature as quadrature
from .shape import Box as Box
from .shape import Difference as Difference
from .shape import Disk as Disk
from .shape import Intersection as Intersection
from .shape import Outline as Outline
from .shape import Polygon as Polygon
from .shape import Shape as Shape
from .shape import Union as Union
from .shape import shape_as_dict as shape_as_dict
from .shape import shape_from_dict as shape_from_dict
