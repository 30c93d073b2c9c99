"""Checkpoints of a training stage: Orbax on disk, verified when read."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from ..errors import SplatopError

KEPT = 3


class Checkpoints:
    """The newest few states of a stage, by step number."""

    def __init__(self, folder: Path, *, say: Callable[[str], None] = lambda _: None):
        self.folder = folder.absolute()
        self.say = say
        self.folder.mkdir(parents=True, exist_ok=True)

    def steps(self) -> list[int]:
        """Steps that have a complete checkpoint, oldest first."""
        return sorted(int(p.name) for p in self.folder.iterdir() if p.name.isdigit())

    def save(self, step: int, state: Any) -> None:
        """Write a state, complete or not at all, and drop the oldest beyond the few kept."""
        target = self.folder / str(step)
        if target.exists():
            return
        arrays = _as_arrays(state)
        with ocp.PyTreeCheckpointer() as writer:
            writer.save(target, {"leaves": arrays, "sha256": _digest(arrays)})
        for old in self.steps()[:-KEPT]:
            shutil.rmtree(self.folder / str(old), ignore_errors=True)

    def restore(self, like: Any) -> tuple[int, Any] | None:
        """The newest state that is whole, as (step, state), or None where there is none.

        A damaged one is set aside with a message, and the one before it is used.
        """
        for step in reversed(self.steps()):
            try:
                return step, self._read(step, like)
            except SplatopError as error:
                self.say(f"{error}: going back to the checkpoint before it")
                damaged = self.folder / f"damaged-{step}"
                shutil.rmtree(damaged, ignore_errors=True)
                (self.folder / str(step)).rename(damaged)
        return None

    def _read(self, step: int, like: Any) -> Any:
        leaves, structure = jax.tree.flatten(like)
        path = self.folder / str(step)
        try:
            with ocp.PyTreeCheckpointer() as reader:
                held = reader.restore(path)
            arrays = {name: np.asarray(a) for name, a in held["leaves"].items()}
            whole = np.array_equal(np.asarray(held["sha256"]), _digest(arrays))
        except Exception as error:  # whatever a damaged file makes the reader raise
            raise SplatopError(f"the checkpoint of step {step} cannot be read") from error
        if not whole:
            raise SplatopError(f"the checkpoint of step {step} does not match its checksum")
        restored = [arrays.get(_name(i)) for i in range(len(leaves))]
        for leaf, array in zip(leaves, restored, strict=True):
            if array is None or array.shape != np.shape(leaf):
                raise SplatopError(f"the checkpoint of step {step} is of another model")
        return jax.tree.unflatten(structure, [
            jax.numpy.asarray(array, leaf.dtype)
            for leaf, array in zip(leaves, restored, strict=True)
        ])


def _name(index: int) -> str:
    return f"leaf{index:05d}"


def _as_arrays(state: Any) -> dict[str, np.ndarray]:
    return {_name(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}


def _digest(arrays: dict[str, np.ndarray]) -> np.ndarray:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
