"""One thread for BLAS while splatop factorises: more of them would wait for each other.

Matrices of a few hundred rows are factorised by OpenBLAS: numpy's and scipy's copies, and XLA calls
scipy's. With two threads on a busy machine most of that time is spent waiting for the other thread
(`splatop bench --only threads` measures it). The entry points that factorise limit it for as long
as they run; other code in the process keeps its threads. Whoever sets OPENBLAS_NUM_THREADS decides.
"""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context, and a decorator `@one_blas_thread()`, in which BLAS uses one thread.

    What JAX computes in it must be waited for in it: a result that is still being computed at the
    end gets the threads back.
    """
    if "OPENBLAS_NUM_THREADS" in os.environ:
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> Any:
    """Both copies of OpenBLAS, loaded first: a limit does not reach what is loaded later."""
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401

    before = "KMP_DUPLICATE_LIB_OK" in os.environ
    from threadpoolctl import ThreadpoolController

    if not before:  # threadpoolctl sets it for Intel's OpenMP, which is none of ours
        os.environ.pop("KMP_DUPLICATE_LIB_OK", None)
    return ThreadpoolController()
