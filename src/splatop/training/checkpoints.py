"""Checkpoints of a training stage: Orbax on disk, verified when read.

One process writes and reads them, also where several train; the others get the state from it.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from ..errors import SplatopError

KEPT = 3


class Checkpoints:
    """The newest few states of a stage, by step number."""

    def __init__(self, folder: Path, *, say: Callable[[str], None] = lambda _: None):
        self.folder = folder.absolute()
        self.say = say

    def steps(self) -> list[int]:
        """Steps that have a complete checkpoint, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(int(p.name) for p in self.folder.iterdir() if p.name.isdigit())

    def save(self, step: int, state: Any) -> None:
        """Write a state, complete or not at all, and drop the oldest beyond the few kept."""
        target = self.folder / str(step)
        if target.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for begun in self.folder.glob("*.orbax-checkpoint-tmp*"):
            shutil.rmtree(begun, ignore_errors=True)  # of a process that was killed
        arrays = _as_arrays(state)
        with _checkpointer() as writer:
            held = {"leaves": arrays, "sha256": _digest(arrays)}
            writer.save(target, ocp.args.PyTreeSave(held))
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
                damaged = self.folder / f"damaged-{step}"
                self.say(f"{error}: set aside as {damaged.name}, going back to the one before it")
                shutil.rmtree(damaged, ignore_errors=True)
                (self.folder / str(step)).rename(damaged)
        return None

    def _read(self, step: int, like: Any) -> Any:
        leaves, structure = jax.tree.flatten(like)
        path = self.folder / str(step)
        what = f"the checkpoint of step {step} of stage {self.folder.name}"
        try:
            with _checkpointer() as reader:
                held = reader.restore(path, ocp.args.PyTreeRestore())
            arrays = {name: np.asarray(a) for name, a in held["leaves"].items()}
            whole = np.array_equal(np.asarray(held["sha256"]), _digest(arrays))
        except Exception as error:  # whatever a damaged file makes the reader raise
            raise SplatopError(f"{what} cannot be read") from error
        if not whole:
            raise SplatopError(f"{what} does not match its checksum")
        restored = [arrays.get(_name(i)) for i in range(len(leaves))]
        for leaf, array in zip(leaves, restored, strict=True):
            if array is None or array.shape != np.shape(leaf) or array.dtype != leaf.dtype:
                raise SplatopError(f"{what} is of another model")
        return jax.tree.unflatten(structure, [jnp.asarray(array) for array in restored])


def _checkpointer() -> ocp.Checkpointer:
    # Orbax would wait for all processes of the cluster.
    alone = ocp.options.MultiprocessingOptions(primary_host=0, active_processes={0})
    handler = ocp.PyTreeCheckpointHandler(multiprocessing_options=alone)
    return ocp.Checkpointer(handler, multiprocessing_options=alone)


def _name(index: int) -> str:
    return f"leaf{index:05d}"


def _as_arrays(state: Any) -> dict[str, np.ndarray]:
    return {_name(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}


def _digest(arrays: dict[str, np.ndarray]) -> np.ndarray:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
