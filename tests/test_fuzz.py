"""Damaged files and random arguments: only `SplatopError` and clean exits come out."""

import contextlib
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from splatop.errors import SplatopError
from test_package import tool

fuzz = tool("fuzz")
# Libraries below that are written in C may crash on others, which then run in their own process.
IN_PROCESS = ["npy", "npz", "model", "description", "export", "metrics"]


@pytest.mark.parametrize("target", IN_PROCESS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_case(tmp_path, target, seed):
    with contextlib.suppress(SplatopError):
        fuzz.TARGETS[target][1](random.Random(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", list(fuzz.TARGETS))
def test_many_cases(target):
    count = 12 if target in fuzz.COMMANDS else 60
    found = fuzz.fuzz(target, seed=1, count=count)
    assert found["cases"] == count
    assert not found["failures"]
    assert found["refused"] > 0
    # libhdf5 can loop or crash on damaged files (docs/reliability.md); nothing else of ours may.
    assert not found["library"] or target in ("well", "pdebench", "netcdf4")


@pytest.mark.slow
def test_faults():
    found = tool("faults").drill(trials=2, seed=1)
    assert not [held for held in found["faults"].values() if held["failures"]]
