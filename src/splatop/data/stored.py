"""A variable of an HDF5 file that xarray reads when it is asked for."""

from typing import Any

import h5py
import numpy as np
from xarray.backends import BackendArray
from xarray.core import indexing

COMPLEX = ("real", "imag")  # how MATLAB stores complex numbers in HDF5
_BLOCK_BYTES = 2**28  # of neighbours that are read at once


class Stored(BackendArray):
    """A variable of an HDF5 file, read when it is asked for; MATLAB has its axes the other way."""

    def __init__(self, dataset: h5py.Dataset, *, transposed: bool):
        self._dataset, self._transposed = dataset, transposed
        self.shape = tuple(dataset.shape[::-1] if transposed else dataset.shape)
        self._complex = dataset.dtype.names == COMPLEX
        self._kept: tuple[tuple[int | slice, ...], np.ndarray] | None = None
        self.dtype = (
            np.result_type(dataset.dtype["real"], np.complex64) if self._complex else dataset.dtype
        )

    def __getitem__(self, key: Any) -> np.ndarray:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self.part
        )

    def part(self, key: tuple[int | slice, ...]) -> np.ndarray:
        block = self._stored(key[::-1]).T if self._transposed else self._stored(key)
        return (block["real"] + 1j * block["imag"]).astype(self.dtype) if self._complex else block

    def _stored(self, key: tuple[int | slice, ...]) -> np.ndarray:
        """A part in the order of the file.

        One place along the last axis, where the neighbours lie side by side, costs as much as many:
        a MATLAB file of (5000, 64, 64, 50) has its trajectories there. The neighbours are kept.
        """
        last = key[-1] if len(key) > 1 else None
        if not isinstance(last, int | np.integer):
            return np.asarray(self._dataset[key])
        whole = self._dataset.shape
        sizes = [len(range(n)[k]) for n, k in zip(whole, key, strict=True) if isinstance(k, slice)]
        one = int(np.prod(sizes, dtype=float)) * self._dataset.dtype.itemsize
        width = int(np.clip(_BLOCK_BYTES // max(one, 1), 1, whole[-1]))
        begin = int(last) % whole[-1] // width * width
        asked = (*key[:-1], slice(begin, min(begin + width, whole[-1])))
        if self._kept is None or self._kept[0] != asked:
            self._kept = asked, np.asarray(self._dataset[asked])
        return self._kept[1][..., int(last) % whole[-1] - begin]
