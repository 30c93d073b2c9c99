"""Checkpoints of a training stage: one safetensors file each, verified when read.

One process writes and reads them, also where several train; the others get the state from it.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from ..data.atomic import write_whole
from ..errors import SplatopError

KEPT = 3
SUFFIX = ".safetensors"


class Checkpoints:
    """The newest few states of a stage, by step number."""

    def __init__(self, folder: Path, *, say: Callable[[str], None] = lambda _: None):
        self.folder = folder.absolute()
        self.say = say

    def path(self, step: int) -> Path:
        return self.folder / f"{step}{SUFFIX}"

    def steps(self) -> list[int]:
        """Steps that have a complete checkpoint, oldest first."""
        found = self.folder.glob(f"*{SUFFIX}")
        return sorted(int(path.stem) for path in found if path.stem.isdecimal())

    def save(self, step: int, state: Any) -> None:
        """Write a state, complete or not at all, and drop the oldest beyond the few kept."""
        if self.path(step).exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for begun in self.folder.glob(".*.partial"):
            begun.unlink(missing_ok=True)  # of a process that was killed
        arrays = _as_arrays(state)
        content = safetensors.numpy.save(arrays, {"sha256": _digest(arrays)})
        write_whole(self.path(step), content, remedy="make room there and continue with --resume")
        for old in self.steps()[:-KEPT]:
            self.path(old).unlink(missing_ok=True)

    def restore(self, like: Any) -> tuple[int, Any] | None:
        """The newest state that is whole, as (step, state), or None where there is none.

        A damaged one is set aside with a message, and the one before it is used.
        """
        for step in reversed(self.steps()):
            try:
                return step, self._read(step, like)
            except SplatopError as error:
                damaged = self.folder / f"damaged-{step}{SUFFIX}"
                self.say(f"{error}: set aside as {damaged.name}, going back to the one before it")
                self.path(step).replace(damaged)
        if self.folder.is_dir() and any(path.name.isdecimal() for path in self.folder.iterdir()):
            self.say(
                f"expected checkpoints named STEP{SUFFIX} in {self.folder}, got folders of an "
                f"earlier version of splatop: stage {self.folder.name} starts again"
            )
        return None

    def _read(self, step: int, like: Any) -> Any:
        leaves, structure = jax.tree.flatten(like)
        what = f"the checkpoint of step {step} of stage {self.folder.name}"
        try:
            with safetensors.safe_open(self.path(step), framework="numpy") as file:
                digest = (file.metadata() or {}).get("sha256")
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except Exception as error:  # whatever a damaged file makes the reader raise
            raise SplatopError(f"{what} cannot be read") from error
        if digest != _digest(arrays):
            raise SplatopError(f"{what} does not match its checksum")
        restored = [arrays.get(_name(i)) for i in range(len(leaves))]
        for leaf, array in zip(leaves, restored, strict=True):
            if array is None or array.shape != np.shape(leaf) or array.dtype != leaf.dtype:
                raise SplatopError(f"{what} is of another model")
        return jax.tree.unflatten(structure, [jnp.asarray(array) for array in restored])


def _name(index: int) -> str:
    return f"leaf{index:05d}"


def _as_arrays(state: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree.leaves(state)
    return {_name(i): np.asarray(leaf, order="C") for i, leaf in enumerate(leaves)}


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
