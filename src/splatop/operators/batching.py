"""`vmap` that keeps one piece of the batch in the processor's cache at a time.

A batched network writes and reads whole batches of hidden fields, which do not fit the cache of a
CPU. Running the network to its end for a few samples, then for the next few, is about twice as
fast and needs the memory of a few samples only. Elsewhere `vmap` is left as it is.
"""

from collections.abc import Callable

import jax
from jax.custom_batching import custom_vmap

CACHE_BYTES = 1 << 21


def batch_in_pieces(sample_bytes: Callable[..., int]) -> Callable[[Callable], Callable]:
    """Decorates a function of arrays so that `vmap` runs it piece by piece.

    `sample_bytes` takes the same arguments and estimates the memory that one sample keeps busy.
    """

    def decorate(function: Callable) -> Callable:
        batched_function = custom_vmap(function)

        @batched_function.def_vmap
        def rule(size, batched, *args):
            leaves, structure = jax.tree.flatten(args)
            mapped = jax.tree.leaves(batched)
            shared = [None if m else leaf for leaf, m in zip(leaves, mapped, strict=True)]

            def one(own):
                own = iter(own)
                merged = [next(own) if m else leaf for leaf, m in zip(shared, mapped, strict=True)]
                return function(*jax.tree.unflatten(structure, merged))

            own = [leaf for leaf, m in zip(leaves, mapped, strict=True) if m]
            shapes = [
                jax.ShapeDtypeStruct(leaf.shape[int(m) :], leaf.dtype)
                for leaf, m in zip(leaves, mapped, strict=True)
            ]
            # The size of an exported function's batch is not known yet: it stays in one piece.
            piece = size
            if isinstance(size, int):
                piece = piece_size(size, sample_bytes(*jax.tree.unflatten(structure, shapes)))
            out = jax.vmap(one)(own) if piece == size else _map_pieces(one, own, piece)
            return out, jax.tree.map(lambda _: True, out)

        return batched_function

    return decorate


def piece_size(batch: int, sample_bytes: int) -> int:
    """How many samples to run at once: a divisor of the batch.

    A multiple of the number of devices if possible, so that a batch sharded over them stays so.
    """
    devices = jax.device_count()
    if jax.default_backend() != "cpu":
        return batch
    divisors = [n for n in range(1, batch + 1) if batch % n == 0]
    sharded = [n for n in divisors if n % devices == 0] or divisors
    return max(
        (n for n in sharded if n * sample_bytes <= CACHE_BYTES * devices), default=sharded[0]
    )


def _map_pieces(function: Callable, own: list[jax.Array], piece: int):
    """Piece j takes the samples `j, n + j, ...`: its axis is then the one a sharded batch keeps."""
    steps = own[0].shape[0] // piece
    pieces = [leaf.reshape(piece, steps, *leaf.shape[1:]).swapaxes(0, 1) for leaf in own]
    out = jax.lax.map(jax.vmap(function), pieces)
    return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1).reshape(-1, *leaf.shape[2:]), out)
