"""Small, forgiving access to HDF5 files that others wrote."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ..errors import SplatopError

SIGNATURE = b"\x89HDF\r\n\x1a\n"
PYPDE = "field_attributes"  # the attribute in which py-pde describes what it stores


def open_hdf5(path: Path) -> h5py.File:
    """An HDF5 file, or why it is none."""
    try:
        return h5py.File(path, "r")
    except OSError as error:
        if isinstance(error, PermissionError):
            raise
        reason = "it is truncated" if "truncated" in str(error) else str(error)
        raise SplatopError(
            f"expected a complete HDF5 file, {path} cannot be opened ({reason}): "
            "copy or generate it again"
        ) from error


def error_line(error: BaseException) -> str:
    """What a library says of a file, short and without the file's own bytes."""
    lines = str(error).splitlines() or [type(error).__name__]
    return "".join(c if c.isprintable() else "?" for c in lines[0])[:160]


def datasets(parent: h5py.Group) -> dict[str, h5py.Dataset]:
    return {name: item for name, item in parent.items() if isinstance(item, h5py.Dataset)}


def all_datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """The datasets of all groups, by their last name where it is the only one of its kind."""
    found: dict[str, h5py.Dataset] = {}

    def visit(path: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[path] = item

    file.visititems(visit)
    last = [path.rsplit("/", 1)[-1] for path in found]
    return {
        (name if last.count(name) == 1 else path): item
        for name, (path, item) in zip(last, found.items(), strict=True)
    }


def datasets_of_one_group(
    file: h5py.File, fields: Sequence[str] | None, source: str
) -> dict[str, h5py.Dataset]:
    """All datasets; where groups such as train and valid repeat each other's names, those of the
    group that the fields asked for are in, and of the groups above it."""
    found = all_datasets(file)
    repeated = [name for name in found if "/" in name]
    inside = {name.strip("/").rpartition("/")[0] for name in fields or () if "/" in name}
    if len(inside) == 1:
        (chosen,) = inside
        above = ("", *itertools.accumulate(chosen.split("/"), "{}/{}".format))
        near = {
            str(item.name).rpartition("/")[2]: item
            for place in above
            for item in found.values()
            if str(item.name).strip("/").rpartition("/")[0] == place
        }
        return near or found
    fields_there = [name for name in repeated if found[name].ndim > 1]
    if (
        fields is None
        and fields_there
        and len(fields_there) == sum(item.ndim > 1 for item in found.values())
    ):
        groups = sorted({name.partition("/")[0] for name in fields_there})
        raise SplatopError(
            f"{source}: expected one group of fields, got {', '.join(groups[:4])} with fields of "
            f"the same names: read one of them (--fields {fields_there[0]}); if each is a "
            "trajectory stack them first, in Python with numpy.stack, and save them with x and t "
            "as .npz"
        )
    return found


def attributes_of(
    found: Iterable[h5py.Dataset], wanted: Callable[[str], object]
) -> list[dict[str, np.ndarray]]:
    """The numbers in attributes with wanted names of each dataset, the groups above and the file;
    no others are read, whatever they hold."""
    told = []
    for item in found:
        above, held = item, {}
        while True:
            held = {k: np.asarray(above.attrs[k]) for k in above.attrs if wanted(k)} | held
            if above.name == "/":
                break
            above = above.parent
        told.append({k: v for k, v in held.items() if v.size and v.dtype.kind in "iuf"})
    return told


def groups_of(path: Path) -> list[str]:
    """The groups that hold datasets of a file, if it is HDF5."""
    if not h5py.is_hdf5(path):
        return []
    found: list[str] = []
    with h5py.File(path, "r") as file:
        file.visititems(
            lambda name, item: (
                found.append(name) if isinstance(item, h5py.Group) and datasets(item) else None
            )
        )
    return found


def group(parent: h5py.Group, name: str) -> h5py.Group | None:
    item = parent.get(name)
    return item if isinstance(item, h5py.Group) else None


def numbers(dataset: h5py.Dataset, *, source: str) -> np.ndarray:
    """The values of a small dataset, as float."""
    if not np.issubdtype(dataset.dtype, np.number):
        raise SplatopError(
            f"{source}: expected numbers in {dataset.name}, got values of type {dataset.dtype}"
        )
    return np.asarray(dataset[()], float)


def text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def strings(values: Any) -> list[str]:
    return [text(value) for value in np.atleast_1d(values)]
