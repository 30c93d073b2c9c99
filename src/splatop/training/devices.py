"""One or many devices and processes: the batch is split over all, the first process writes."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..errors import SplatopError


@dataclass(frozen=True)
class OnDevices:
    """How batches and parameters reach the devices of all processes, and come back.

    `average` makes of a function of (replicated trees, batch) the mean of its values over the
    devices, each with its part of the batch. `each` lets every device run a function of trees with
    a member axis first on its members; then "replicated" means spread by member.
    """

    split: Callable[[Any], Any]
    replicate: Callable[[Any], Any]
    collect: Callable[[Any], Any]
    average: Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]
    each: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda function: function


def start_distributed() -> None:
    """Join the other processes, as the standard JAX cluster variables or a scheduler tell."""
    # JAX itself reads the address alone from its variables.
    numbers = {}
    for argument, variable in (
        ("num_processes", "JAX_NUM_PROCESSES"),
        ("process_id", "JAX_PROCESS_ID"),
    ):
        text = os.environ.get(variable)
        if text is not None and not text.strip().isdigit():
            raise SplatopError(f"expected a number in the variable {variable}, got '{text}'")
        numbers[argument] = None if text is None else int(text)
    # Its own handler of SIGTERM would take the place of the one that writes a checkpoint.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(**numbers)
    except (ValueError, RuntimeError) as error:
        raise SplatopError(
            "expected JAX's cluster variables (JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, "
            f"JAX_PROCESS_ID) or a scheduler that JAX knows, got none that work: {error}"
        ) from error


def is_writer() -> bool:
    """Whether this is the process that writes the run folder."""
    return jax.process_index() == 0


def from_writer(make: Callable[[], Any]) -> Any:
    """What `make` returns in the writing process, handed to all; its errors are raised in all.

    The value must be one that JSON can hold.
    """
    if jax.process_count() == 1:
        return make()
    told, failure = {}, None
    if is_writer():
        try:
            told = {"value": make()}
        except Exception as error:
            failure, told = error, {"error": str(error)}
    message = np.frombuffer(json.dumps(told).encode(), np.uint8)
    size = int(multihost_utils.broadcast_one_to_all(np.asarray(len(message), np.int32)))
    if not is_writer():
        message = np.zeros(size, np.uint8)
    told = json.loads(multihost_utils.broadcast_one_to_all(message).tobytes())
    if failure is not None:
        raise failure
    if "error" in told:
        raise SplatopError(f"the writing process stopped: {told['error']}")
    return told["value"]


def arrays_from_writer(tree: Any) -> Any:
    """The arrays of the writing process in all of them, bit by bit."""
    if jax.process_count() == 1:
        return tree

    def share(leaf):
        if not eqx.is_array(leaf):
            return leaf
        array = np.asarray(leaf)
        # The broadcast adds zeros, which would turn -0.0 into 0.0; bytes stay as they are.
        sent = multihost_utils.broadcast_one_to_all(
            np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        )
        return jnp.asarray(np.frombuffer(sent.tobytes(), array.dtype).reshape(array.shape))

    return jax.tree.map(share, tree)


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    if jax.process_count() == 1:
        return flag
    return bool(multihost_utils.process_allgather(np.asarray(flag, np.uint8)).any())


def placement(batch: int) -> OnDevices:
    """Split batches of this size evenly over all devices; on a single one do nothing."""
    if jax.device_count() == 1:
        return single_device()
    mesh, mine = _shared_evenly(batch, "batch", f"a batch of {batch}")
    split = NamedSharding(mesh, PartitionSpec("batch"))
    whole = NamedSharding(mesh, PartitionSpec())

    def split_batch(tree):
        return jax.tree.map(
            lambda a: jax.make_array_from_process_local_data(split, np.asarray(a)[mine]), tree
        )

    def replicate(tree):
        return _map_arrays(
            lambda a: jax.make_array_from_process_local_data(whole, np.asarray(a)), tree
        )

    def collect(tree):
        return _map_arrays(lambda a: jnp.asarray(np.asarray(a)), tree)

    def average(function):
        def averaged(whole_tree, batch):
            arrays, rest = eqx.partition(whole_tree, eqx.is_array)

            def on_device(arrays, batch):
                return jax.lax.pmean(function(eqx.combine(arrays, rest), batch), "batch")

            # Each device runs the single-device program on its part: left to itself, the compiler
            # would split every operation, which XLA's Fourier transform on CPUs does not survive.
            return jax.shard_map(
                on_device,
                mesh=mesh,
                in_specs=(PartitionSpec(), PartitionSpec("batch")),
                out_specs=PartitionSpec(),
                check_vma=False,
            )(arrays, batch)

        return averaged

    return OnDevices(split_batch, replicate, collect, average)


def member_placement(members: int) -> OnDevices:
    """Spread the members of an ensemble evenly over all devices; on a single one do nothing."""
    if jax.device_count() == 1:
        return single_device()
    mesh, mine = _shared_evenly(members, "member", f"{members} members of an ensemble")
    spread = NamedSharding(mesh, PartitionSpec("member"))

    def place(tree):
        return _map_arrays(
            lambda a: jax.make_array_from_process_local_data(spread, np.asarray(a)[mine]), tree
        )

    def collect(tree):
        return _map_arrays(lambda a: jnp.asarray(_gathered(a)), tree)

    def each(function):
        # As in `placement`: each device runs the single-device program.
        return jax.shard_map(
            function,
            mesh=mesh,
            in_specs=PartitionSpec("member"),
            out_specs=PartitionSpec("member"),
            check_vma=False,
        )

    return OnDevices(place, place, collect, lambda function: function, each)


def _shared_evenly(number: int, axis: str, given: str) -> tuple[Mesh, slice]:
    """All devices along one axis, and which of `number` things this process holds."""
    count = jax.device_count()
    if number % count:
        raise SplatopError(
            f"expected what {count} devices can share evenly, got {given}: "
            f"use a multiple of {count}"
        )
    process, processes = jax.process_index(), jax.process_count()
    mine = slice(process * number // processes, (process + 1) * number // processes)
    return Mesh(np.asarray(jax.devices()), (axis,)), mine


def _gathered(array: jax.Array) -> np.ndarray:
    if jax.process_count() == 1:
        return np.asarray(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))


def single_device() -> OnDevices:
    """Everything on JAX's default device."""

    def same(value):
        return value

    return OnDevices(lambda tree: jax.tree.map(jnp.asarray, tree), same, same, same)


def _map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    return jax.tree.map(lambda a: function(a) if eqx.is_array(a) else a, tree)
