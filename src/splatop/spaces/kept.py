"""Bases of shapes, kept by value in memory and in the user's cache folder: set-up takes seconds.

Files hold arrays alone; a damaged one is made again.
"""

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..cache import cache_folder
from ..domain import Domain
from ..shapes import shape_as_dict
from ..threads import one_blas_thread
from . import holes, shape_basis
from .shape_basis import (
    Beside,
    Kinds,
    ShapeBasis,
    ShapeGaussians,
    build_basis,
    fine_nodes,
    lattice,
    orthonormal,
    spacing_of,
)

_MOST_BYTES = 512 * 2**20
# Part of the names of files: raise it when a change of the code changes the numbers of a basis.
_VERSION = 4

_say: ContextVar[Callable[[str], None]] = ContextVar("say", default=lambda _: None)


@contextlib.contextmanager
def telling(say: Callable[[str], None]) -> Iterator[None]:
    """Have a line said before each set-up that takes seconds, and after it."""
    before = _say.set(say)
    try:
        yield
    finally:
        _say.reset(before)


@lru_cache(maxsize=64)
def shape_basis_of(
    domain: Domain, anchors: tuple[int, ...], kinds: Kinds, held: bool = True
) -> ShapeBasis:
    """The functions of a lattice of so many anchors on a domain with a shape that obey these
    conditions; all of them, whatever they do at the edges, if the conditions are not `held`."""
    shape = domain.shape
    assert shape is not None
    gaussians = lattice(shape, domain.origin, domain.lengths, anchors, kinds)
    kinds = kinds if held else ()
    spacing = max(spacing_of(domain.lengths, anchors))
    path = _path(domain, gaussians, kinds, spacing)
    found = None if path is None else _read(path, gaussians)
    if found is not None:
        return found
    _say.get()(
        f"setting up {gaussians.count} Gaussians on the shape, once "
        f"({' x '.join(map(str, anchors))} anchors in its box)"
    )
    with one_blas_thread():
        free = _free(domain, anchors, gaussians.beside)
        found = build_basis(gaussians, shape, kinds, spacing, free)
    if path is not None:
        _write(path, found)
    return found


@lru_cache(maxsize=2)
def _free(domain: Domain, anchors: tuple[int, ...], beside: Beside) -> np.ndarray:
    """What several conditions on the same Gaussians begin with, and take most of their time for."""
    assert domain.shape is not None
    gaussians = lattice(domain.shape, domain.origin, domain.lengths, anchors)
    gaussians = replace(gaussians, beside=beside)
    spacing = max(spacing_of(domain.lengths, anchors))
    nodes = fine_nodes(domain.shape, spacing, gaussians.singular)
    return orthonormal(gaussians, nodes)


def _path(domain: Domain, gaussians: ShapeGaussians, kinds: Kinds, spacing: float) -> Path | None:
    root = cache_folder()
    if root is None or domain.shape is None:
        return None
    said = {
        "version": _VERSION,
        "shape": shape_as_dict(domain.shape),
        "kinds": kinds,
        "spacing": spacing,
        "width": gaussians.width,
        "beside": [asdict(one) for one in gaussians.beside],
        "constants": [
            shape_basis.NEGLIGIBLE,
            shape_basis.PER_SPACING,
            shape_basis.AROUND,
            *shape_basis.FINE,
            holes.WAVES,
            holes.POWERS,
            shape_basis._REDUNDANT,
        ],
    }
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    digest.update(np.ascontiguousarray(gaussians.centres).tobytes())
    return root / "shapes" / f"{digest.hexdigest()[:32]}.npz"


def _read(path: Path, gaussians: ShapeGaussians) -> ShapeBasis | None:
    try:
        with np.load(path, allow_pickle=False) as held:
            combine, energies = held["combine"], held["energies"]
            laplacian, asymmetry = held["laplacian"], float(held["asymmetry"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
        return None
    whole = np.isfinite(combine).all() and np.isfinite(energies).all()
    if not whole or combine.shape != (gaussians.count, len(energies)):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return ShapeBasis(
        gaussians, combine, laplacian if len(laplacian) else None, energies, asymmetry
    )


def _write(path: Path, basis: ShapeBasis) -> None:
    """Keep it, if that is possible; room is made by what was not used for longest."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".partial", delete=False) as file:
            try:
                np.savez(
                    file,
                    combine=basis.combine,
                    energies=basis.energies,
                    laplacian=np.empty(0) if basis.laplacian is None else basis.laplacian,
                    asymmetry=basis.asymmetry,
                )
                file.close()
                os.replace(file.name, path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
        held = sorted(path.parent.glob("*.npz"), key=lambda one: one.stat().st_mtime)
        total = sum(one.stat().st_size for one in held)
        while total > _MOST_BYTES and len(held) > 1:
            oldest = held.pop(0)
            total -= oldest.stat().st_size
            oldest.unlink(missing_ok=True)
