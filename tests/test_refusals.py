"""What is refused on entering, in Python and on the command line: one line that says what came."""

import dataclasses
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import splatop
from splatop import Observations, SplatopError
from splatop.assimilate.state import Analysis
from splatop.cli.reading import moments
from splatop.coarse import truncate
from splatop.data import ArrayTrajectories, WindowSampler, open_trajectories
from splatop.data.axes import common_shape
from splatop.data.held import as_trajectories
from splatop.data.inputs import open_inputs
from splatop.data.masks import read_mask
from splatop.data.rates import WithRates
from splatop.description import build
from splatop.discover import discover
from splatop.domain import Condition
from splatop.equation import parse_equation
from splatop.equation.shape_text import parse_shape
from splatop.evaluate.ablations import Ablation
from splatop.finite_differences import FiniteDifferenceJets
from splatop.grid import Grid
from splatop.identify import identify_trajectories
from splatop.initial import initial_condition
from splatop.model import load_model
from splatop.numerics import Numerics, build_filter, build_physics
from splatop.operators.baselines import baseline
from splatop.operators.on_box import OnBox
from splatop.points import Points
from splatop.report.evaluated import read_runs
from splatop.report.sensors import write_sensor_report
from splatop.shapes import Polygon
from splatop.shapes.mask import shape_of_mask
from splatop.shapes.mesh import triangles_of
from splatop.shapes.primitives import Outline
from splatop.spectral import BoxFilter, PassThrough, resample
from splatop.training import preset
from splatop.training.settings import coarser
from splatop.tune import propose

HEAT = parse_equation("dt(u) = D*lap(u)", dims=1)
LINE = np.sin(2 * np.pi * np.arange(16) / 16)[None, None].repeat(9, 0).astype(np.float32)
PLANE = np.ones((9, 1, 8, 8), np.float32)
DATA = ArrayTrajectories(LINE[None], Grid((16,), (1.0,)), dt=0.1, fields=("u",))
ROWS = {"t": [0.0, 0.1], "x": [0.2, 0.4], "u": [1.0, 2.0]}
NUMERICS = Numerics("box", (5.0,), 0.0, (14,), substeps=2)


def table(**columns):
    return pd.DataFrame({**ROWS, **columns})


def given(array, dims=1, **told):
    return as_trajectories(array, dt=0.1, lengths=(1.0,) * dims, **told)


def settings(**changes):
    return dataclasses.replace(preset("fast"), **changes)


def placed(**how):
    where = {"coefficients": {"D": 0.1}, "lengths": 1.0, "points": 16, "dt": 0.1, "sensors": 2}
    return splatop.place("dt(u) = D*d2x(u)", **{**where, **how})


def mask_shape(mask):
    return shape_of_mask(mask, (0.0, 0.0), (1.0, 1.0), (0.0, 0.0), (8.0, 8.0))


def mesh(kind, cells):
    corners = np.array([[0.0, 0.0, 0], [1, 0, 0], [0, 1, 0]])
    return SimpleNamespace(points=corners, cells=[SimpleNamespace(type=kind, data=cells)])


SENSORS = {
    "1 to 3 dimensions": lambda: Observations([0.0], [[0.0] * 4], "u", [1.0]),
    "a pandas table, xarray or .*got int": lambda: Observations.read(3),
    "a column x, the place": lambda: Observations.read(pd.DataFrame({"t": [0.0], "u": [1.0]})),
    "a table without rows": lambda: Observations.read(table()[:0], fields=("u",)),
    "got only missing ones": lambda: Observations.read(table(u=[np.nan] * 2), fields=("u",)),
    "which of u, v a value is of": lambda: Observations.read(
        table(value=[1.0, 2.0]).drop(columns="u"), fields=("u", "v")
    ),
    "or the end of a line": lambda: Observations.read(table(wx=0.1, x2=0.5), fields=("u",)),
    "sensors to hold out and to use, got 0 of 2": lambda: Observations(
        [0.0, 0.0], [0.1, 0.2], "u", [1.0, 2.0]
    ).split_off(0.01),
    "at least 5 reports to tell a field": lambda: splatop.reconstruct(table(), lengths=1.0),
    "sensors at different x, or the lengths": lambda: splatop.reconstruct(table(x=0.2)),
    "such as 0.01, or auto, got 'much'": lambda: splatop.assimilate(
        table(), HEAT, model_error="much"
    ),
    "noise above 0, got 0": lambda: placed(noise=0.0),
    r"candidate places \(n, 1\), got": lambda: placed(candidates=np.zeros((3, 2))),
    "at least 2 candidate places, got 1": lambda: placed(candidates=[0.5]),
    "a report named .html": lambda: write_sensor_report(object.__new__(Analysis), "page.txt"),
}
FILES = {
    "fields of one shape, got u .*v ": lambda: common_shape({"u": (2,), "v": (3,)}, "a.h5"),
    "--boundary or --periodic, got both": lambda: given(LINE, boundary="x: u = 0", periodic=True),
    "mask as an array, or 'nan', got 'land'": lambda: given(PLANE, 2, mask="land"),
    "a mask of ones .* and zeros": lambda: given(PLANE, 2, mask=np.full((8, 8), 0.5)),
    "--shape or --periodic, got both": lambda: given(
        PLANE, 2, shape="disk(0.5, 0.5, 0.4)", periodic=True
    ),
    "2D data for a shape, got 1D": lambda: given(LINE, shape="disk(0.5, 0.5, 0.4)"),
    "--shape or --mask, got both": lambda: open_trajectories("a.h5", shape="box", mask="nan"),
    "9 times, one for each frame, got 2": lambda: as_trajectories(
        np.ones((9, 1, 20), np.float32),
        times=[0.0, 1.0],
        lengths=(1.0, 1.0),
        points=np.random.default_rng(0).random((20, 2)),
        shape="box",
    ),
    "a new name for the rate of u, got 'u'": lambda: WithRates(DATA, {"u": "u"}),
    "a batch of at least 1": lambda: WindowSampler(DATA, batch=0, frames=2),
    "a step of at least 0": lambda: WindowSampler(DATA, batch=1, frames=2).pairs(-1),
    "a domain of 1 axes for this grid, got 2": lambda: setattr(
        DATA, "domain", splatop.Domain.box((1.0, 1.0))
    ),
    "a model with inputs for a file of them": lambda: open_inputs("a.h5", (), {}),
    "a degree of 1 to 5": lambda: discover(DATA, "dt(u) = ?", degree=9),
}
SHAPES = {
    "finite coordinates, got .* for point 1": lambda: Points.of([[0, 0], [np.nan, 1]]),
    "at least three corners, got 2": lambda: Polygon(((0.0, 0.0), (1.0, 1.0))),
    "without repeated corners": lambda: Polygon(((0.0, 0.0), (1.0, 0.0), (1.0, 0.0))),
    "it is empty": lambda: parse_shape("disk(0, 0, 1) - disk(0, 0, 2)").edges,
    "points inside, got none": lambda: mask_shape(np.zeros((9, 9), bool)),
    "got specks": lambda: mask_shape(np.eye(40, dtype=bool)[::-1] & (np.arange(40) == 20)),
    "a mesh of triangles, got none": lambda: triangles_of(mesh("line", [[0, 1]]), "a.msh"),
    "got cells of type 'triangle6'": lambda: triangles_of(mesh("triangle6", [[0] * 6]), "a.msh"),
}
PARTS = {
    "got it as both": lambda: identify_trajectories(
        HEAT, None, DATA, unknown="D", known={"D": 1.0}
    ),
    "a 1D box for solitons, got 2D": lambda: initial_condition(
        "solitons", Grid.unit(8, 2), channels=1, key=jax.random.key(0)
    ),
    "nested at most": lambda: build(_deep(100), {}),
    "a name to register": lambda: splatop.register(eqx.nn.MLP, name=" "),
    "1 target sizes": lambda: resample(jnp.zeros((1, 8)), (4, 4)),
    "accuracy 2 or 4, got 3": lambda: FiniteDifferenceJets((1.0,), BoxFilter((2.0,)), accuracy=3),
    "substeps above 0": lambda: Ablation(substeps=0),
    "have over a million parameters": lambda: baseline(
        "unet", 3, 1, key=jax.random.key(0), tenfold=True
    ),
    "a pdequinox ClassicFNO to copy": lambda: splatop.FNO.from_pdequinox(eqx.nn.Identity()),
    "or a domain, got neither": lambda: build_physics(HEAT, NUMERICS, dt=0.1),
    "at least one run folder": lambda: read_runs([]),
    "each run once": lambda: read_runs(["a", "b", "a"]),
    "speed-up of at least 1": lambda: propose(HEAT, {"D": 1.0}, DATA, speed=0.5),
    "batch of at least 1": lambda: settings(batch=0),
    "refine_steps of at least 1": lambda: settings(refine_steps=0),
    "noise of at least 0": lambda: settings(noise=-1.0),
    "another preset for a coarse model": lambda: coarser(preset("paper", "burgers2d"), factor=2),
    "a coarse grid to answer on": lambda: coarser(preset("fast"), factor=None, answers="own"),
    "has no physics to run alone": lambda: dataclasses.replace(
        load_model("burgers2d"), stepper=splatop.OperatorStepper(eqx.nn.Identity())
    ).physics_only(),
}
VALUES = {
    "no value at a free edge, got 1": lambda: Condition("free", 1.0),
    "1 to 3 axes, got 0": lambda: splatop.Domain(()),
    "one word on its ends for each of the 2 axes, got 1 and 2": lambda: splatop.Domain.box(
        (1.0, 1.0), origin=(0.0,)
    ),
    "at an end of the domain .*got one for u at x0": lambda: splatop.Domain.box(
        (1.0,)
    ).with_conditions({("x0", "u"): Condition("value", 1.0)}),
    "one layout of points for each of the 2 axes": lambda: Grid(
        (8, 8), (1.0, 1.0), layout=("ends",)
    ),
    "along each of 1 axes, got ends, ends": lambda: FiniteDifferenceJets(
        (1.0,), PassThrough(), layout=("ends", "ends")
    ),
    "one cutoff for the radial filter 'sharp'": lambda: build_filter(
        dataclasses.replace(NUMERICS, filter="sharp", cutoff=(5.0, 4.0)), 2
    ),
    r"points as an array \(P, 2\) of x and y": lambda: Points.of([0.0, 1.0]),
    "points inside the mask, got 0": lambda: Points.of_mask(
        Grid.unit(8, 2), np.zeros((8, 8), bool)
    ),
    "points of a masked grid, got scattered": lambda: SCATTERED.on_grid(np.ones(3)),
    "packed numbers, got something damaged": lambda: Points("?", (1.0, 1.0), (0.0, 0.0)).places,
    "one size for each of the 1 axes": lambda: splatop.BoxSpace(
        splatop.Domain.box((1.0,)), ("u",), (8, 8)
    ),
    "one name for each side of each ring": lambda: Outline((((0.0, 0.0), (1.0, 0.0)),), ()),
    "one angle for each side of each ring": lambda: Outline(
        (((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)),), (("a", "b", "c"),), sweeps=((0.0,),)
    ),
    r"1 numbers of points for \(1, 8\)": lambda: truncate(jnp.zeros((1, 8)), (4, 4)),
    "points on a shape, got a grid": lambda: OnBox(
        eqx.nn.Identity(), splatop.Domain.box((1.0, 1.0)), SCATTERED, (8, 8)
    ),
    "finite times to predict": lambda: MODEL.timetable([np.nan], t0=0.0),
    "that increase from .* t0 = 1, on, got 0.5 after 1": lambda: MODEL.timetable([0.5], t0=1.0),
    "frames that sensors report in, got -1": lambda: placed(frames=-1),
    "no dt with a model, which has its own": lambda: splatop.assimilate(
        table(), "burgers2d", dt=0.1
    ),
    "lengths for an equation, .*give --lengths": lambda: splatop.assimilate(table(), HEAT),
    "2 sensors, one for each value, got 1": lambda: Observations(
        [0.0, 0.0], [0.1, 0.2], "u", [1.0, 2.0], sensors=["a"]
    ),
    "no mask for what sensors reported": lambda: splatop.fit(
        table(), "dt(u) = D*lap(u)", sensors={}, mask="nan"
    ),
    "lengths to train from sensors": lambda: splatop.fit(
        table(), "dt(u) = D*lap(u)", sensors={}, points=16
    ),
}
MODEL = load_model("burgers2d")
SCATTERED = Points.of([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def _deep(levels):
    return {"list": [_deep(levels - 1)]} if levels else 0


@pytest.mark.parametrize(
    ("says", "call"),
    [*SENSORS.items(), *FILES.items(), *SHAPES.items(), *PARTS.items(), *VALUES.items()],
)
def test_what_came_is_said(says, call):
    with pytest.raises(SplatopError, match=says) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("generate --equation dt(u)=u --dt 1 --points a", "with commas, for --points, got 'a'"),
        ("generate --equation dt(u)=u --dt 1 --scattered 9", "--scattered with --shape"),
        (
            "generate --equation dt(u)=u --dims 1 --dt 1 --boundary all:free --shape box",
            "--dims 2 for a shape, got 1",
        ),
        ("inspect a.npy --lengths one", "such as 1 or 1,2, got 'one'"),
        ("assimilate a.csv --model dt(u)=0", "use --equation"),
        ("reconstruct a.csv --columns x", "such as t=date,x=lon, got 'x'"),
        ("train burgers2d --out run --set x", "expected --set key=value, got 'x'"),
        ("train burgers2d --out run --sensors a.csv", "other data to train on, got both"),
        ("evaluate", "or --shipped for all that come with splatop, got neither"),
        ("generate --equation dt(u)=u", "expected --dt, the time from frame to frame"),
        ("reconstruct a.csv --points nan", "such as 64 or 64,32, got 'nan'"),
        ("export burgers2d --out a.bin --points 1e9", "such as 64 or 64,32, got '1e9'"),
    ],
)
def test_what_was_typed_is_said(splatop, words, says):
    code, _, err = splatop(*words.split(), *("--out", "out.h5") * words.startswith("gen"))
    assert code
    assert says in " ".join(err.split())
    assert "Traceback" not in err


def test_moments_are_typed_as_numbers_or_a_range():
    assert moments("0:1:0.5") == [0.5, 1.0]
    for text in ("1:0:1", "0:1:0", "0:b:1"):
        with pytest.raises(SplatopError, match=r"0:10:0.25 \(from, to, step\), got"):
            moments(text)


def test_a_mask_of_an_unknown_kind(tmp_path):
    (tmp_path / "a.txt").write_text("1 0")
    with pytest.raises(SplatopError, match=r"a mask in HDF5, NetCDF 4 or \.npz, got a"):
        read_mask(tmp_path / "a.txt", "mask", DATA)
