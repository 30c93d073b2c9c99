"""One or many devices and processes: the batch is split over all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..errors import SplatopError


@dataclass(frozen=True)
class Placement:
    """How batches and parameters reach the devices of all processes."""

    split: Callable[[Any], Any]
    replicate: Callable[[Any], Any]
    is_writer: bool


def start_distributed() -> None:
    """Join the other processes, as the standard JAX cluster variables tell."""
    try:
        jax.distributed.initialize()
    except (ValueError, RuntimeError) as error:
        raise SplatopError(
            "expected JAX's cluster variables (JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, "
            f"JAX_PROCESS_ID) or a scheduler that JAX knows, got none that work: {error}"
        ) from error


def placement(batch: int) -> Placement:
    """Split batches of this size evenly over all devices; on a single one do nothing."""
    count = jax.device_count()
    if count == 1:
        return Placement(lambda tree: jax.tree.map(jnp.asarray, tree), lambda tree: tree, True)
    if batch % count:
        raise SplatopError(
            f"expected a batch that {count} devices can share evenly, got {batch}: "
            f"use a multiple of {count}"
        )
    mesh = Mesh(np.asarray(jax.devices()), ("batch",))
    split = NamedSharding(mesh, PartitionSpec("batch"))
    whole = NamedSharding(mesh, PartitionSpec())
    mine = slice(
        jax.process_index() * batch // jax.process_count(),
        (jax.process_index() + 1) * batch // jax.process_count(),
    )

    def split_batch(tree):
        return jax.tree.map(
            lambda a: jax.make_array_from_process_local_data(split, np.asarray(a)[mine]), tree
        )

    def replicate(tree):
        return jax.tree.map(
            lambda a: jax.make_array_from_process_local_data(whole, np.asarray(a))
            if eqx.is_array(a)
            else a,
            tree,
        )

    return Placement(split_batch, replicate, jax.process_index() == 0)
