"""The shape that a mesh of triangles shows; groups of its boundary name the edges."""

import contextlib
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SplatopError
from .bends import bent
from .primitives import Outline

# Sides that turn by less (radians) are one: coordinates in single precision turn fine ones so.
_STRAIGHT = 1e-4
SUFFIXES = (".msh", ".vtk", ".vtu", ".xdmf", ".xmf", ".e", ".exo", ".ex2")


def read_mesh(path: str | Path) -> Any:
    """A mesh file, read by meshio."""
    import meshio

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return meshio.read(path)
    except SystemExit as error:  # what meshio does of a file that it does not know
        raise _unreadable(path, said.getvalue() or str(error)) from None
    except (Exception, RecursionError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: str | Path, reason: str) -> SplatopError:
    lines = [line for line in reason.splitlines() if line.strip()] or ["no reason given"]
    shown = "".join(c if c.isprintable() else "?" for c in lines[0])[:160]
    return SplatopError(
        f"expected a mesh that meshio reads (Gmsh, VTK, XDMF, Exodus), {Path(path).name} cannot be "
        f"read ({shown}): convert it, or describe the shape as text"
    )


def triangles_of(mesh: Any, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Places `(P, 2)` of the vertices and the triangles `(n, 3)`, checked."""
    points = np.asarray(mesh.points, float)
    if points.ndim != 2 or points.shape[1] not in (2, 3) or not np.isfinite(points).all():
        raise SplatopError(f"{source}: expected finite points (P, 2), got shape {points.shape}")
    if points.shape[1] == 3 and np.ptp(points[:, 2]) > 1e-9 * max(np.ptp(points[:, :2]), 1e-300):
        raise SplatopError(
            f"{source}: expected a mesh in the plane, got points with different z: shapes are 2D"
        )
    found = []
    for block in mesh.cells:
        cells = np.asarray(block.data)
        if block.type == "triangle":
            found.append(cells)
        elif block.type == "quad":
            found += [cells[:, [0, 1, 2]], cells[:, [0, 2, 3]]]
        elif block.type not in ("line", "vertex"):
            raise SplatopError(
                f"{source}: expected triangles, or quadrilaterals, with straight sides, got cells "
                f"of type '{block.type}': write a linear mesh"
            )
    if not found or not sum(map(len, found)):
        raise SplatopError(f"{source}: expected a mesh of triangles, got none")
    triangles = np.concatenate(found).astype(int)
    if triangles.min() < 0 or triangles.max() >= len(points):
        bad = int(np.argmax((triangles < 0).any(1) | (triangles >= len(points)).any(1)))
        raise SplatopError(
            f"{source}: expected triangles of its {len(points)} points, got triangle {bad} with "
            f"the corners {triangles[bad].tolist()}: mesh and points do not match"
        )
    return points[:, :2], triangles


def shape_of_mesh(mesh: Any, source: str) -> Outline:
    """The outline of a mesh: the sides that only one triangle has. Those that follow a curve are
    arcs."""
    points, triangles = triangles_of(mesh, source)
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    count = Counter(tuple(sorted(pair)) for pair in sides.tolist())
    if max(count.values()) > 2:
        a, b = next(pair for pair, times in count.items() if times > 2)
        raise SplatopError(
            f"{source}: expected sides that at most two triangles share, got one of "
            f"{count[a, b]} near ({points[a, 0]:.4g}, {points[a, 1]:.4g}): mesh the shape again"
        )
    outer = {pair for pair, times in count.items() if times == 1}
    names = _groups(mesh)
    rings, labels, sweeps = [], [], []
    beside: dict[int, list[int]] = {}
    for a, b in outer:
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    wrong = next((n for n, others in beside.items() if len(others) != 2), None)
    if wrong is not None:
        x, y = points[wrong]
        raise SplatopError(
            f"{source}: expected edges that meet two by two, got {len(beside[wrong])} at "
            f"({x:.4g}, {y:.4g}): mesh the shape so that it does not touch itself"
        )
    while outer:
        ring = [min(min(outer))]
        while True:
            at = ring[-1]
            onward = next((n for n in beside[at] if tuple(sorted((at, n))) in outer), None)
            if onward is None:
                break
            outer.discard((min(at, onward), max(at, onward)))
            if onward == ring[0]:
                break
            ring.append(onward)
        pairs = zip(ring, ring[1:] + ring[:1], strict=True)
        named = [names.get(tuple(sorted(p)), f"edge{len(rings) + 1}") for p in pairs]
        kept = _corners(points[ring], named)
        many = np.diff([*kept, kept[0] + len(ring)]) > 1
        places, turns, own = bent(points[ring][kept], many, [named[k] for k in kept])
        rings.append(tuple(places))
        sweeps.append(tuple(turns))
        labels.append(tuple(own))
    return Outline(tuple(rings), tuple(labels), sweeps=tuple(sweeps))


def _corners(ring: np.ndarray, names: list[str]) -> list[int]:
    """Where an outline turns, or its name changes: a straight edge is one side, however many
    triangles lie along it."""
    on = np.roll(ring, -1, axis=0) - ring
    before = np.roll(on, 1, axis=0)
    turn = np.abs(before[:, 0] * on[:, 1] - before[:, 1] * on[:, 0])
    ahead = np.sum(before * on, axis=1)
    other = [name != names[k - 1] for k, name in enumerate(names)]
    return [k for k in range(len(ring)) if other[k] or turn[k] > _STRAIGHT * ahead[k]]


def _groups(mesh: Any) -> dict[tuple[int, ...], str]:
    """The name of each side that a group of lines has."""
    found: dict[tuple[int, ...], str] = {}
    tags = {int(v[0]): str(k) for k, v in (mesh.field_data or {}).items() if int(v[1]) == 1}
    for number, block in enumerate(mesh.cells):
        if block.type != "line":
            continue
        lines = np.sort(np.asarray(block.data), axis=1)
        physical = (mesh.cell_data or {}).get("gmsh:physical")
        if physical is not None:
            for line, tag in zip(lines.tolist(), physical[number], strict=True):
                found[tuple(line)] = _plain(tags.get(int(tag), f"group{int(tag)}"))
    for name, members in (mesh.cell_sets_dict or {}).items():
        if name.startswith("gmsh:") or "line" not in members:
            continue
        every = np.sort(np.asarray(mesh.cells_dict["line"]), axis=1)
        for line in every[np.asarray(members["line"])].tolist():
            found[tuple(line)] = _plain(name)
    return found


def _plain(name: str) -> str:
    """A name that the language of boundaries can write."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain[:1].isalpha() else f"edge_{plain}"
