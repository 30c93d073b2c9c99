"""What is said of files and folders that are not read: what they seem to be, and what to do."""

import re
from collections import Counter
from pathlib import Path

_STACK = (
    "read all frames into one array, such as numpy.stack([imageio.v3.imread(p) for p in paths]) "
    "with numbers instead of colours, numpy.save it as one .npy, and give --axes tyx, --lengths "
    "and --dt"
)
JOIN = (
    "if each file is a frame join them into one table with a column t, such as pandas.concat("
    "[pandas.read_csv(p).assign(t=k * dt) for k, p in enumerate(paths)]).to_csv('all.csv')"
)
_IMAGES = (".png", ".tif", ".tiff", ".jpg", ".jpeg", ".bmp", ".gif")
_TEXT = (".csv", ".txt", ".dat", ".tsv", ".parquet")
_ARRAYS = (".npy", ".npz", ".mat")
# Beginnings of files, what they are and what to do.
_BEGIN = (
    *((begin, "an image", _STACK) for begin in (b"\x89PNG", b"II*\0", b"MM\0*", b"\xff\xd8\xff")),
    (b"GIF8", "an image", _STACK),
    (b"\x1f\x8b", "compressed by gzip", "unpack it first (gunzip)"),
    (b"BZh", "compressed by bzip2", "unpack it first (bunzip2)"),
    (b"\xfd7zXZ", "compressed by xz", "unpack it first (unxz)"),
    (b"ARROW1", "Feather", "pandas.read_feather(path).to_parquet('table.parquet') makes a table"),
    (b"\x80", "a pickle", "pickles are never loaded: save what it holds with numpy.savez"),
    (
        b"GRIB",
        "GRIB",
        "xarray.open_dataset(path, engine='cfgrib').to_netcdf('file.nc') converts it",
    ),
    (b"FoamFile", "a file of an OpenFOAM case", "write VTK (foamToVTK) or probes, and read these"),
    (b"#!TDV", "Tecplot's binary", "export it as text: rows of t, x, y and fields"),
    (b"%PDF", "a PDF", "take the file that the figures were made from"),
)
_JSON = re.compile(rb"\s*(\{\s*\"|\[\s*[\[{\"\d-])")
# What else is a ZIP archive, by the end of a name in it.
_ARCHIVES = (
    (
        "data.pkl",
        "PyTorch's",
        "pickles are never loaded: numpy.savez('p.npz', **{k: v.numpy() for k, v in "
        "torch.load(path).items()}) makes a file of arrays",
    ),
    (
        "xl/workbook.xml",
        "a workbook",
        "export a sheet as CSV, such as pandas.read_excel(path).to_csv('sheet.csv', index=False)",
    ),
    (".zarray", "a packed Zarr store", "unpack it first (unzip)"),
    ("zarr.json", "a packed Zarr store", "unpack it first (unzip)"),
)
_FIELDS = 6  # arrays that may be the fields of one case
_WIDEST = 8  # bytes of a beginning that are shown


def what_to_do(start: bytes) -> str:
    """What a file that begins so is, and what to do with it."""
    begin = start[:_WIDEST]
    for known, what, cure in _BEGIN:
        if start.startswith(known):
            return f"it is {what}: {cure}"
    if _JSON.match(start):
        return (
            "it is JSON: pandas.read_json(path).to_parquet('table.parquet') makes a table of rows"
        )
    return f"it begins with {begin!r}: convert it first"


def what_the_archive_is(names: list[str]) -> str | None:
    """What a ZIP archive with these names in it is, and what to do; None of NumPy's own."""
    if any(name.endswith(".npy") for name in names):
        return None
    for end, what, cure in _ARCHIVES:
        if any(name.endswith(end) for name in names):
            return f"it is {what}: {cure}"
    held = ", ".join(names[:4]) or "nothing"
    return f"it is an archive with {held} in it: unpack it first, and give a file of it"


def of_a_folder(path: Path) -> str:
    """What the files of a folder seem to be, and how they become one."""
    try:
        held = sorted(path.iterdir())
    except OSError:
        return "which cannot be read"
    kinds = Counter(one.suffix.lower() for one in held if one.is_file())
    inner = [one.name for one in held if one.is_dir()]
    if not kinds and inner:
        return f"which holds folders ({', '.join(inner[:3])}): name a file in one of them"
    if not kinds:
        return "in which there are no files"
    suffix, count = kinds.most_common(1)[0]
    said = f"which holds {count} {suffix or 'nameless'} file{'s' if count > 1 else ''}"
    if suffix in _IMAGES:
        return f"{said}: {_STACK}"
    if suffix in _TEXT:
        return f"{said}: name one, or {JOIN}"
    fields = [one.stem for one in held if one.suffix == ".npy" and one.stem.isidentifier()]
    if suffix == ".npy" and 1 < len(fields) == count <= _FIELDS:
        load = ", ".join(f"{name}=numpy.load('{name}.npy')" for name in fields)
        return (
            f"{said}: name one, or if they are fields numpy.savez('all.npz', {load}) makes one "
            "file; if each is a frame stack them into one array"
        )
    if suffix in _ARRAYS:
        return f"{said}: name one, or if each is a frame stack them into one array"
    return f"{said}: name one of them"
