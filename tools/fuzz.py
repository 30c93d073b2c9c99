"""Fuzz what reads files and arguments: only `SplatopError` and clean exits may come out.

    python tools/fuzz.py [--count 400] [--seed 0] [--only TARGET]

Each target runs in a process of its own, so that a crash of a library below is seen and counted.
Writes results/fuzz.json and the table in docs/reliability.md; exits with 1 on any failure.
"""

import argparse
import contextlib
import io
import json
import os
import queue
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import typing
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measured import table, write_between

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "results" / "fuzz.json", ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- fuzz:begin -->", "<!-- fuzz:end -->"
SECONDS = 20  # of computing for one case: longer is a failure, however busy the machine is

Case = Callable[[random.Random, Path], None]

# ------------------------------------------------------------------ samples to mutate


def frames():
    import numpy as np

    x = np.arange(12) / 12
    wave = np.sin(2 * np.pi * x)[:, None] + np.cos(2 * np.pi * x)[None]
    return np.broadcast_to(wave.astype("f4"), (2, 4, 1, 12, 12)).copy()


def well(path: Path, scale: float = 1.0) -> None:
    from splatop import ArrayTrajectories, Grid, save_trajectories

    data = ArrayTrajectories(
        scale * frames(), Grid((12, 12), (1.0, 1.0)), dt=0.1, fields=("u",), coefficients={}
    )
    save_trajectories(path, data)


def walled(path: Path) -> None:
    import numpy as np

    from splatop import ArrayTrajectories, Grid, save_trajectories
    from splatop.equation import domain_from_text

    edges = {"lengths": (1.0, 1.0), "fields": ("u",)}
    save_trajectories(
        path,
        ArrayTrajectories(
            frames() + np.linspace(0, 1, 12, dtype="f4")[:, None],
            Grid((12, 12), (1.0, 1.0), layout=("cells", "left")),
            dt=0.1,
            fields=("u",),
            domain=domain_from_text("x0: u = a*y; x1: free; y: periodic", **edges),
        ),
    )


def pdebench(path: Path) -> None:
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        file["tensor"] = frames()[:, :, 0, :, 0]
        file["x-coordinate"] = np.arange(12) / 12
        file["t-coordinate"] = np.arange(5) * 0.1


def netcdf(path: Path, engine: str) -> None:
    import numpy as np
    import xarray as xr

    xr.Dataset(
        {"u": (("time", "x", "y"), frames()[0, :, 0])},
        coords={"time": np.arange(4) * 0.1, "x": np.arange(12) / 12, "y": np.arange(12) / 12},
    ).to_netcdf(path, engine=engine)


def pypde(path: Path) -> None:
    import h5py
    import numpy as np

    grid = {"bounds": [[0, 1], [0, 1]], "shape": [12, 12], "periodic": [True, True]}
    about = {
        "class": json.dumps("ScalarField"),
        "grid": json.dumps({**grid, "class": "CartesianGrid"}),
        "label": json.dumps("u"),
    }
    with h5py.File(path, "w") as file:
        file["data"], file["times"] = frames()[0, :, 0], np.arange(4) * 0.1
        file.attrs["field_attributes"] = json.dumps(about)


def matlab(path: Path) -> None:
    import numpy as np
    import scipy.io

    axes = {"x": np.arange(12) / 12, "t": np.arange(4) * 0.1}
    with path.open("wb") as file:
        scipy.io.savemat(file, {"u": frames()[0, :, 0, :, 0], **axes, "nu": 0.1})


def npy(path: Path) -> None:
    import numpy as np

    with path.open("wb") as file:
        np.save(file, frames())


def npz(path: Path) -> None:
    import numpy as np

    with path.open("wb") as file:
        np.savez(file, u=frames())


def model(path: Path) -> None:
    from splatop.model import Model, ModelSpec, build_model, save_model
    from splatop.numerics import Numerics

    spec = ModelSpec(
        kind="surrogate",
        equation="dt(u) = -v*dx(u) + D*lap(u)",
        fields=("u",),
        lengths=(1.0, 1.0),
        dt=0.1,
        numerics=Numerics("box", (3.0,), 0.0, (8, 8), substeps=1),
        coefficients={"v": 0.1, "D": 1e-3},
        hidden=2,
        modes=2,
        blocks=1,
    )
    save_model(path, Model(spec, build_model(spec), {"points": [12, 12]}))


def archive(path: Path) -> None:
    from splatop.export import export_model, save_export
    from splatop.model import load_model

    model(path)
    loaded = load_model(path)
    save_export(path, export_model(loaded, platforms=["cpu"]), loaded, format="saved")


# ------------------------------------------------------------------ mutations

EXTREME = [b"\x00" * 4, b"\xff" * 4, b"\xff" * 8, struct.pack("<q", -1), struct.pack("<I", 2**31)]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few flips, cuts, copies and extreme numbers."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        if not changed:
            break
        place, kind = rng.randrange(len(changed)), rng.random()
        if rng.random() < 0.5:
            place %= min(len(changed), 2048)  # headers decide more than values
        if kind < 0.4:
            changed[place] ^= 1 << rng.randrange(8)
        elif kind < 0.6:
            number = rng.choice(EXTREME)
            changed[place : place + len(number)] = number
        elif kind < 0.75:
            start, size = rng.randrange(len(changed)), rng.randint(1, 64)
            changed[place : place + size] = changed[start : start + size]
        elif kind < 0.85:
            del changed[place : place + rng.randint(1, 64)]
        elif kind < 0.95:
            changed[place:place] = rng.randbytes(rng.randint(1, 16))
        else:
            del changed[place:]
    return bytes(changed)


JUNK = [None, True, -1, 0, 10**9, 1e308, -0.5, "", "u", "\x00", [], {}, [[]], ["u", "u"], {"a": 1}]


def mutated_json(value, rng: random.Random):
    """The same document with a part replaced, removed or doubled."""
    if rng.random() < 0.25 or not isinstance(value, dict | list) or not value:
        return rng.choice(JUNK)
    if isinstance(value, list):
        value = list(value)
        index = rng.randrange(len(value))
        value[index] = mutated_json(value[index], rng)
        return value
    value = dict(value)
    key = rng.choice(sorted(value))
    if rng.random() < 0.15:
        del value[key]
    elif rng.random() < 0.15:
        value[rng.choice(["", "x", "numerics", key + "s"])] = value.pop(key)
    else:
        value[key] = mutated_json(value[key], rng)
    return value


# ------------------------------------------------------------------ targets


def read_all(path: Path, rng: random.Random) -> None:
    from splatop import open_trajectories
    from splatop.data.summary import summarize

    # Arrays do not state their axes; the other formats do.
    given: dict[str, Any] = {}
    if rng.random() < (0.9 if path.read_bytes()[:1] in (b"\x93", b"P") else 0.3):
        given = {"axes": rng.choice(["btcxy"] * 8 + ["bxty", "tx", "", "btc", "xx"])}
        given |= {"fields": ["u"], "lengths": 1.0, "dt": 0.1}
    if rng.random() < 0.3:
        given["boundary"] = rng.choice(["x: free; y: periodic", "all: u = 0", "x: u = y", "x0:"])
        given["sampling"] = rng.choice([None, "cells", "ends", "left,cells", "", "cells,"])
    with open_trajectories(path, **given) as data:
        for index in range(min(data.trajectories, 3)):
            data.window(index, 0, min(data.frames, 4))
        summarize(data)


def reader(write: Callable[[Path], None]) -> Case:
    held: list[bytes] = []

    def case(rng: random.Random, folder: Path) -> None:
        path = folder / "sample"
        if not held:
            write(path)
            held.append(path.read_bytes())
        path.write_bytes(mutated(held[0], rng))
        read_all(path, rng)

    return case


def hdf5_structure(rng: random.Random, folder: Path) -> None:
    """A whole HDF5 file that says something else than it should."""
    import h5py
    import numpy as np

    path = folder / "sample"
    rng.choice([well, pdebench, walled])(path)
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        for _ in range(rng.randint(1, 3)):
            name = rng.choice(["/", *names])
            item = file.get(name)
            if item is None:
                continue
            kind = rng.random()
            junk = rng.choice(
                [0, -1, 1e300, "", "u", "\N{GREEK SMALL LETTER ALPHA}", [], [1, 2], ["a"]]
            )
            if kind < 0.4 and len(item.attrs):
                item.attrs[rng.choice(sorted(item.attrs))] = junk
            elif kind < 0.6 and name != "/":
                del file[name]
            elif name != "/":
                shape = rng.choice([(), (0,), (3,), (2, 4, 12), (2, 4, 12, 12), (2, 4, 12, 12, 2)])
                dtype = rng.choice(["f4", "i8", "S3", "f2", "c8", "O", "b1"])
                del file[name]
                if dtype == "O":
                    file[name] = "text"
                else:
                    file[name] = np.zeros(shape, dtype)
    read_all(path, rng)


def csv_table(path: Path) -> None:
    rows = [
        f"{0.1 * t},{x / 4},{y / 4},{x * y + t}"
        for t in range(3)
        for x in range(5)
        for y in range(5)
    ]
    path.write_text("\n".join(["t,x,y,u", *rows]))


def parquet(path: Path) -> None:
    import pandas as pd

    csv_table(path.with_suffix(".text"))
    pd.read_csv(path.with_suffix(".text")).to_parquet(path)


def mesh(path: Path) -> None:
    import meshio
    import numpy as np

    corners = np.array([[x, y, 0.0] for x in (0, 1, 2) for y in (0, 1, 2)])
    squares = np.array([[a, a + 3, a + 4, a + 1] for a in (0, 1, 3, 4)])
    meshio.Mesh(corners, [("quad", squares)], {"u": corners[:, 0]}).write(path, file_format="vtk")


def collection(path: Path) -> None:
    mesh(path.with_name("a.vtk"))
    listed = "".join(f'<DataSet timestep="{t}" file="a.vtk"/>' for t in range(3))
    path.write_text(f'<VTKFile type="Collection"><Collection>{listed}</Collection></VTKFile>')


def mesh_bytes(rng: random.Random, folder: Path, held: list[bytes] = []) -> None:  # noqa: B006
    """A mesh as a shape: read, and its outline found."""
    from splatop.shapes.mesh import read_mesh, shape_of_mesh

    path = folder / "sample.vtk"
    if not held:
        mesh(path)
        held.append(path.read_bytes())
    path.write_bytes(mutated(held[0], rng))
    shape_of_mesh(read_mesh(path), path.name)


def at_places(write: Callable[[Path], None], suffix: str) -> Case:
    """A file that is told by its name, damaged, with nothing known at its edges."""
    held: list[bytes] = []

    def case(rng: random.Random, folder: Path) -> None:
        from splatop import open_trajectories

        path = folder / f"sample{suffix}"
        if not held:
            write(path)
            held.append(path.read_bytes())
        path.write_bytes(mutated(held[0], rng))
        if suffix == ".pvd":
            mesh(path.with_name("a.vtk"))
        with open_trajectories(path, boundary="all: free") as data:
            data.window(0, 0, min(data.frames, 2))

    return case


def table_cells(rng: random.Random, folder: Path) -> None:
    """A table that says something else than it should: bytes at random rarely get past its text."""
    from splatop import open_trajectories

    path = folder / f"sample{rng.choice(['.csv', '.csv', '.tsv', '.txt'])}"
    csv_table(path)
    head, *rows = [line.split(",") for line in path.read_text().splitlines()]
    junk = [
        "",
        "nan",
        "inf",
        "-1",
        "1e300",
        "1e-300",
        "0.1.2",
        "u",
        "2020-02-30",
        "2020-02-29",
        "9" * 30,
    ]
    names = ["t", "x", "y", "z", "u", "u", "trajectory", "time", "lon", "", "T", "0.5", "u v"]
    for _ in range(rng.randint(0, 3)):
        match rng.randrange(7):
            case 0:
                rng.choice(rows)[rng.randrange(len(head))] = rng.choice(junk)
            case 1:
                head[rng.randrange(len(head))] = rng.choice(names)
            case 2:
                rows = rows[: rng.randint(1, len(rows))]
            case 3:
                rows += [list(rng.choice(rows)) for _ in range(rng.randint(1, 3))]
            case 4:
                del rows[rng.randrange(len(rows))]
                rows = rows or [head]
            case 5:
                rng.shuffle(rows)
            case _:
                number, value = rng.randrange(len(head)), rng.choice([*junk, "0", "1"])
                rows = [[*row[:number], value, *row[number + 1 :]] for row in rows]
    between = rng.choice([",", ",", ";", "\t", " ", " , "])
    path.write_text("\n".join(between.join(row) for row in [head, *rows]))
    asked = rng.choice(
        [{}, {}, {"dt": 0.1}, {"fields": ["u"]}, {"lengths": 1.0}, {"fields": ["q=u"]}]
    )
    with open_trajectories(path, boundary="all: free", **asked) as data:
        data.window(0, 0, min(data.frames, 2))


def load(path: Path) -> None:
    from splatop.model import load_model

    load_model(path)


def model_bytes(rng: random.Random, folder: Path) -> None:
    path = folder / "m.safetensors"
    model(path)
    path.write_bytes(mutated(path.read_bytes(), rng))
    load(path)


def model_header(rng: random.Random, folder: Path) -> None:
    """A description that means something else, with a checksum that fits it."""
    import safetensors.numpy
    from safetensors import safe_open

    from splatop.model.file import _checksum

    path = folder / "m.safetensors"
    model(path)
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = dict(file.metadata())
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(["spec", "parts", "parts", "record"])
        metadata[part] = json.dumps(mutated_json(json.loads(metadata[part]), rng))
    metadata["sha256"] = _checksum(tensors, metadata)
    path.write_bytes(safetensors.numpy.save(tensors, metadata))
    load(path)


def export_bytes(rng: random.Random, folder: Path, held: list[bytes] = []) -> None:  # noqa: B006
    from splatop.export import is_export, read_export

    path = folder / "e.zip"
    if not held:
        archive(path)
        held.append(path.read_bytes())
    path.write_bytes(mutated(held[0], rng))
    if is_export(path):
        read_export(path)


def metrics(rng: random.Random, folder: Path) -> None:
    from splatop.evaluate import load_metrics

    path = folder / "metrics.json"
    whole = json.loads((ROOT / "src/splatop/models/advection2d.metrics.json").read_text())
    path.write_text(json.dumps(mutated_json(whole, rng)))
    load_metrics(path)


def equation(rng: random.Random, folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from fuzz_equation_text import mutated_text, random_text
    from splatop import parse_equation

    text = rng.choice([mutated_text, random_text])(rng)
    parse_equation(text, dims=rng.choice([1, 2, 3]))


def boundary(rng: random.Random, folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    from fuzz_boundary_text import check, grammatical, mutated
    from splatop.errors import SplatopError

    if not check(rng.choice([mutated, mutated, grammatical])(rng)):
        raise SplatopError("an error with its column")


VALUES = ["", "0", "-1", "1", "nan", "inf", "1e400", "9" * 30, "é", "a,b", "u", "../x", "=", "x=1"]
VALUES += ["-5", "1e-300", "1e308", "-inf", "9" * 400, "100000", "999999999999", "D=1e308"]
VALUES += ["v=0.1", "btcxy", "dt(u) = lap(u)", "dt(u) = ", "true", "none", "0:1", "1:2:3", "lap"]
# Commands that could work for minutes get something that they must refuse in the end.
REFUSED = {
    "train": ["no-such-benchmark", "--out", "run"],
    "tune": ["no-such-benchmark"],
    "generate": ["no-such-benchmark", "--out", "x.h5"],
    "demo": ["--no-such-option"],
    "bench": ["--only", "no-such-part"],
    "reproduce": ["no-such-table"],
}


def arguments(rng: random.Random, folder: Path) -> None:
    """Random options of random commands; the exit code must be one of ours."""
    import typer

    from splatop.cli import app

    group: Any = typer.main.get_command(app)
    sample, trained = folder / "data.h5", folder / "m.safetensors"
    if not sample.exists():
        well(sample)
        model(trained)
    name = rng.choice(sorted(group.commands))
    options = [p for p in group.commands[name].params if p.param_type_name == "option"]
    given = [name]
    for option in rng.sample(options, rng.randint(0, min(4, len(options)))):
        given.append(option.opts[0])
        if not option.is_flag:
            given.append(rng.choice([*VALUES, str(sample), str(trained), str(folder / "out.h5")]))
    if name in REFUSED:
        given += REFUSED[name]
    else:
        pool = [*VALUES, str(sample), str(trained), str(folder), str(folder / "absent")]
        given += [rng.choice(pool) for _ in range(rng.randint(0, 2))]
    command(given, folder)


def command(given: list[str], folder: Path, codes: tuple[int, ...] = (0, 1, 2)) -> None:
    """Run a command in this process: an exit code of ours, and no warning of NumPy's."""
    from splatop.cli import app, run

    output = io.StringIO()
    before = sys.argv
    sys.argv = ["splatop", *given]
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("always", RuntimeWarning)
            code = run(app)
    except Exception as error:
        error.add_note(shown(given))
        raise
    finally:
        sys.argv = before
    said = output.getvalue()
    if code not in codes:
        raise AssertionError(f"exit code {code} of {shown(given)}")
    if "RuntimeWarning" in said or "Traceback" in said:
        raise AssertionError(f"{said[-300:]} (of {shown(given)})")
    if code in (1, 2):
        raise refused()(f"exit {code}: {said[-300:]}")


def shown(given: list[str]) -> str:
    return " ".join(part if len(part) < 40 else f"{part[:30]}..." for part in given)


# Huge, tiny, negative, of many digits, not finite, none.
NUMBERS = ["0", "-1", "-5", "1e-300", "-1e-300", "1e308", "1e400", "nan", "inf", "-inf", "0.5"]
NUMBERS += [
    "1e5",
    "1e-12",
    "100000",
    "999999999999",
    "9" * 30,
    "9" * 400,
    "9" * 5000,
    "-0",
    "",
    "1e30",
]
WHOLE = [number for number in NUMBERS if number.removeprefix("-").isdecimal()]
SCALES = [1.0, 1.0, 1.0, 1e30, 1e38, 1e-30, 1e-44, 0.0]
EQUATION = "dt(u) = -v*dx(u) + D*lap(u)"
# So little work that a case takes seconds; a number takes the place of one or two of these.
SETTINGS = "points=16 trajectories=2 data_steps=4 hidden=2 modes=2 blocks=1 batch=2 horizon=1"
SETTINGS += " phases=0:2 warmup=1 substeps=1 encoder_steps=1 checkpoint_every=1"


class Numbers(typing.NamedTuple):
    """Options of a command that take a number, and how many times fewer cases it gets."""

    options: list[str]
    fewer: int


COMMANDS = {
    "generate": Numbers(["seed", "dims", "dt", "steps", "trajectories"], 4),
    "train": Numbers(["seed", "seeds"], 10),
    "tune": Numbers([], 4),
    "rollout": Numbers(["steps", "trajectories"], 4),
    "evaluate": Numbers(
        ["seed", "points", "trajectories", "anchors", "window", "cutoff", "substeps"], 4
    ),
}
PATIENCE = 40.0  # seconds until Ctrl-C: a training of 1e12 steps is no mistake


def numbers(name: str) -> Case:
    """A command that works, with numbers in its options, coefficients, settings and data."""

    def case(rng: random.Random, folder: Path) -> None:
        data, trained, out = folder / "data.h5", folder / "m.safetensors", folder / "out"
        well(data, rng.choice(SCALES))
        model(trained)
        shutil.rmtree(out, ignore_errors=True)
        number = lambda: rng.choice(NUMBERS)  # noqa: E731
        whole = lambda usual: number() if rng.random() < 0.3 else usual  # noqa: E731
        known = ",".join(f"{name}={whole('0.01')}" for name in "vD")
        problem = ["--data", str(data), "--equation", EQUATION, "--coefficients", known]
        benchmark = rng.choice(["advection2d", "burgers2d"])
        own = ["--equation", EQUATION, "--coefficients", known, "--dims", "1"]
        own += ["--points", whole("16"), "--dt", whole("0.1"), "--length", whole("1")]
        steps = ["--steps", whole("3")]
        shipped = ["advection2d", "--points", whole("16"), "--trajectories", whole("1")]
        given = {
            "generate": [
                *rng.choice([[benchmark, "--points", whole("16")], own]),
                *["--trajectories", whole("2"), "--steps", whole("2"), "--out", "out.h5"],
            ],
            "train": ["--preset", "smoke", "--out", str(out)]
            + (problem if rng.random() < 0.6 else [benchmark])
            + [f"--set={setting}" for setting in SETTINGS.split()],
            "tune": problem,
            "rollout": [str(trained), "--data", str(data), "--out", "out.h5", *steps],
            "evaluate": rng.choice([[str(trained), "--data", str(data)], shipped]) + steps,
        }[name]
        if name == "train":
            fields = typing.get_type_hints(settings_type())
            for _ in range(rng.randint(0, 2)):
                key = rng.choice([key for key, kind in fields.items() if kind not in (str, bool)])
                taken = WHOLE if fields[key] in (int, int | None) else NUMBERS
                given.append(f"--set={key}={'0:' * (key == 'phases')}{rng.choice(taken)}")
        options = COMMANDS[name].options
        for option in rng.sample(options, rng.randint(0, min(2, len(options)))):
            taken = NUMBERS if option in ("dt", "cutoff") or rng.random() < 0.1 else WHOLE
            given += [f"--{option}", rng.choice(taken)]

        def interrupt(*_):
            signal.raise_signal(signal.SIGINT)

        before = (
            signal.signal(signal.SIGALRM, interrupt),
            signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            command([name, *given], folder, codes=(0, 1, 2, 130))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before[0])
            signal.signal(signal.SIGINT, before[1])

    return case


def settings_type() -> type:
    from splatop.training.settings import Settings

    return Settings


def refused() -> type[Exception]:
    from splatop.errors import SplatopError

    return SplatopError


TARGETS: dict[str, tuple[str, Case]] = {
    "well": ("The Well's HDF5, bytes", reader(well)),
    "pdebench": ("PDEBench's HDF5, bytes", reader(pdebench)),
    "structure": ("HDF5, datasets and attributes", hdf5_structure),
    "netcdf4": ("NetCDF 4, bytes", reader(lambda path: netcdf(path, "h5netcdf"))),
    "netcdf3": ("NetCDF 3, bytes", reader(lambda path: netcdf(path, "scipy"))),
    "pypde": ("py-pde's HDF5, bytes", reader(pypde)),
    "matlab": ("MATLAB's .mat, bytes", reader(matlab)),
    "npy": (".npy, bytes", reader(npy)),
    "npz": (".npz, bytes", reader(npz)),
    "table": ("tables (.csv), bytes", at_places(csv_table, ".csv")),
    "cells": ("tables, cells and columns", table_cells),
    "parquet": ("tables (.parquet), bytes", at_places(parquet, ".parquet")),
    "mesh": ("meshes (VTK), bytes", mesh_bytes),
    "series": ("meshes over time (.pvd), bytes", at_places(collection, ".pvd")),
    "model": ("model file, bytes", model_bytes),
    "description": ("model file, description", model_header),
    "export": ("export, bytes", export_bytes),
    "metrics": ("metrics.json", metrics),
    "equation": ("equations as text", equation),
    "boundary": ("boundaries as text", boundary),
    "arguments": ("command-line arguments", arguments),
    **{name: (f"numbers given to `{name}`", numbers(name)) for name in COMMANDS},
}

# ------------------------------------------------------------------ running


def work(target: str, seed: int, first: int, count: int) -> None:
    """Cases of one target, one line of JSON for each, written before and after it."""
    warnings.simplefilter("ignore")
    case = TARGETS[target][1]
    out = sys.stdout

    def say(value) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    def late(*_):
        raise TimeoutError(f"more than {SECONDS} seconds of computing")

    signal.signal(signal.SIGPROF, late)
    with tempfile.TemporaryDirectory() as folder:
        for index in range(first, count):
            say({"begin": index})
            rng = random.Random(f"{target} {seed} {index}")
            allowed = SECONDS if index > first else 3 * SECONDS  # the first one imports
            allowed *= 4 if target in COMMANDS else 1  # others compile
            signal.setitimer(signal.ITIMER_PROF, allowed)
            try:
                case(rng, Path(folder))
                outcome = "accepted"
            except refused():
                outcome = "refused"
            except BaseException as error:
                frames_here = traceback.extract_tb(error.__traceback__)
                where = [f for f in frames_here if "splatop" in f.filename] or frames_here
                place = f"{Path(where[-1].filename).name}:{where[-1].lineno}"
                notes = "; ".join(getattr(error, "__notes__", []))
                outcome = f"{type(error).__name__} at {place}: {str(error)[:160]} {notes}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            say({"end": index, "outcome": outcome})


def fuzz(target: str, seed: int, count: int) -> dict:
    """Outcomes of all cases.

    A process that dies, or gives no answer although an alarm was due, is stuck or crashed in a
    library that is not Python; that is counted apart, and the next process goes on after it.
    """
    found = {"cases": 0, "accepted": 0, "refused": 0, "failures": [], "library": []}
    first, started = 0, time.monotonic()
    while first < count:
        command = [sys.executable, __file__, "--work", target]
        command += ["--seed", str(seed), "--first", str(first), "--count", str(count)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quick())
        begun, last = first, first
        for event in events(process):
            if "begin" in event:
                begun = event["begin"]
                continue
            last = event["end"] + 1
            found["cases"] += 1
            outcome = event["outcome"]
            if outcome in ("accepted", "refused"):
                found[outcome] += 1
            else:
                found["failures"].append({"case": event["end"], "what": outcome})
        stuck = process.poll() is None
        process.kill()
        code = process.wait()
        first = last
        if last < count:
            what = "no answer" if stuck else f"ended by signal {-code}"
            found["cases"] += 1
            found["library" if stuck or code < 0 else "failures"].append(
                {"case": begun, "what": what}
            )
            first = begun + 1
    found["seconds"] = round(time.monotonic() - started, 1)
    return found


def quick() -> dict[str, str]:
    """Most of a command's time is compilation of what runs once."""
    return {"XLA_FLAGS": "--xla_backend_optimization_level=0", **os.environ}


def events(process: subprocess.Popen) -> Iterator[dict]:
    """Lines of a worker as they come; ends when it does, or says nothing for too long."""
    assert process.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()

    def forward(stream) -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=forward, args=(process.stdout,), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=12 * SECONDS)
        except queue.Empty:
            return
        if line is None:
            process.wait()
            return
        yield json.loads(line)


def said(results: dict) -> str:
    rows = [
        [
            TARGETS[name][0],
            *(f"{held[key]:,}" for key in ("cases", "accepted", "refused")),
            *(str(len(held[key])) for key in ("failures", "library")),
        ]
        for name, held in results["targets"].items()
    ]
    header = ["what was changed", "cases", "accepted", "refused", "failures", "lost in a library"]
    total = sum(held["cases"] for held in results["targets"].values())
    return (
        f"Written by `tools/fuzz.py` (seed {results['seed']}, {total:,} cases, Python "
        f"{results['python']}): *accepted* means that the change did no harm, *refused* that a "
        "`SplatopError` or a clean exit came out; any other exception, a "
        f"warning of NumPy's, or more than {SECONDS} seconds of computing ({4 * SECONDS} where models are "
        "compiled), is a *failure*. In the last column a library that is not Python "
        "crashed or never came back.\n\n" + table(header, rows)
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=400)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", action="append", choices=list(TARGETS))
    options.add_argument("--work", choices=list(TARGETS), help=argparse.SUPPRESS)
    options.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.work:
        work(given.work, given.seed, given.first, given.count)
        return 0
    results = {"seed": given.seed, "python": sys.version.split()[0], "targets": {}}
    for target in given.only or TARGETS:
        count = -(-given.count // (COMMANDS[target].fewer if target in COMMANDS else 1))
        found = fuzz(target, given.seed, count)
        results["targets"][target] = found
        print(
            f"{target:12} {found['cases']:6} cases  {found['refused']:6} refused  {len(found['failures'])} failures  "
            f"{len(found['library'])} lost in a library",
            flush=True,
        )
        for failure in (*found["failures"][:5], *found["library"][:5]):
            print(f"    case {failure['case']}: {failure['what']}", flush=True)
    if not given.only:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_between(PAGE, BEGIN, END, said(results))
    return int(any(held["failures"] for held in results["targets"].values()))


if __name__ == "__main__":
    sys.exit(main())
