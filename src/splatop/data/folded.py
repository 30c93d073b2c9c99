"""Fields that a file holds in pieces or in one column: what to do before they can be read."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence

# Sides that scalars of a file must have to be those of a grid.
_LEAST = 2
_NUMBERED = re.compile(r"(.*?)(\d+)")


def how_to_unfold(shapes: Mapping[str, Sequence[int]], scalars: Mapping[str, float]) -> str:
    """Advice for fields whose grid is one column (of `nx * ny` values, both of which the file
    holds), or whose frames are variables of their own; empty where neither shows."""
    return _one_column(shapes, scalars) or _frame_by_frame(shapes)


def _one_column(shapes: Mapping[str, Sequence[int]], scalars: Mapping[str, float]) -> str:
    sides = {k: int(v) for k, v in scalars.items() if v >= _LEAST and float(v).is_integer()}
    for count in (3, 2):
        for names in itertools.combinations(sides, count):
            product = math.prod(sides[name] for name in names)
            for field, shape in shapes.items():
                if len(shape) == 2 and product in shape:
                    each = [sides[name] for name in names]
                    new = ", ".join(map(str, each))
                    new = f"{new}, -1" if shape[0] == product else f"-1, {new}"
                    return (
                        f"{field} seems to hold a grid of {' x '.join(map(str, each))} points "
                        f"({', '.join(names)}) in one column of {product}: unfold it first, in "
                        f'Python with {field}.reshape({new}, order="F") as MATLAB counts, look at '
                        "a frame whether the sides are in this order, and save it with x, y and t "
                        "as .npz"
                    )
    return ""


def _frame_by_frame(shapes: Mapping[str, Sequence[int]]) -> str:
    found: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for name, shape in shapes.items():
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            found.setdefault((numbered[1], tuple(shape)), []).append(int(numbered[2]))
    for (stem, _), numbers in found.items():
        numbers.sort()
        if len(numbers) > _LEAST and len(set(numbers)) == len(numbers):
            names = [one for one in shapes if re.fullmatch(re.escape(stem) + r"\d+", one)]
            return (
                f"{names[0]} to {names[-1]} seem to be one frame each: stack them first, in Python "
                f"with numpy.stack over these {len(names)} names, and save the array with x, y and "
                "t as .npz"
            )
    return ""
