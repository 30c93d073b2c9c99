"""More than one device and more than one process: the same training."""

import csv
import os
import socket
from pathlib import Path

import numpy as np
import pytest

from command import run, start, stop_when, tensors, train_arguments
from splatop.training.checkpoints import Checkpoints

# Without advection the physics misses most of the step, so that the loss is of order one and its
# rounding error that of the sums themselves.
OPTIONS = ("--drop-term", "advection")
SETTINGS = {"phases": "0:12", "rate": 1e-3, "checkpoint_every": 4}
# Added to the flags of these tests: another level of optimisation would round differently.
TWO_DEVICES = {"XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"}
ENCODER = {"encoder": "unet", "anchors": 8, "encoder_steps": 6, "encoder_batch": 4}


def arguments(folder: Path, *options: str, **settings) -> list[str]:
    found = train_arguments(folder, *OPTIONS, *options, **{**SETTINGS, **settings})
    return [a.replace("advection2d", "advection_diffusion2d") for a in found]


def curves(folder: Path) -> dict[str, np.ndarray]:
    with (folder / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        stage: np.array([[float(r["loss"]), float(r["gradient_norm"])] for r in rows
                         if r["stage"] == stage])
        for stage in dict.fromkeys(row["stage"] for row in rows)
    }  # fmt: skip


def assert_same_curve(one: Path, other: Path) -> None:
    left, right = curves(one), curves(other)
    assert left.keys() == right.keys()
    for stage in left:
        # A mean over 4 x 2 x 256 float32 numbers, summed in another order: a few 1e-7 of a loss.
        # Weights that no loss depends on have gradients of rounding alone, which Adam divides by
        # their own size: gradients differ by what these do to each other.
        np.testing.assert_allclose(left[stage][:, 0], right[stage][:, 0], rtol=1e-5)
        np.testing.assert_allclose(left[stage][:2, 1], right[stage][:2, 1], rtol=1e-5)
        np.testing.assert_allclose(left[stage][:, 1], right[stage][:, 1], rtol=5e-3)


@pytest.fixture(scope="module")
def single(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("single") / "run"
    code, _, err = run(*arguments(folder))
    assert code == 0, err
    return folder


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start_two(*command: str, **variables: str):
    """The same command in two processes that find each other on the loopback interface."""
    address = f"127.0.0.1:{free_port()}"
    return [
        start(
            *command,
            JAX_COORDINATOR_ADDRESS=address,
            JAX_NUM_PROCESSES="2",
            JAX_PROCESS_ID=str(index),
            **variables,
        )
        for index in range(2)
    ]


def finish(processes) -> list[tuple[int, str, str]]:
    ended = []
    for process in processes:
        out, err = process.communicate(timeout=600)
        ended.append((process.returncode, out, err))
    return ended


@pytest.mark.slow
def test_two_devices_train_like_one(tmp_path, single):
    folder = tmp_path / "run"
    code, _, err = run(*arguments(folder), **TWO_DEVICES)
    assert code == 0, err
    assert_same_curve(folder, single)


@pytest.mark.slow
def test_a_batch_that_devices_cannot_share_is_refused(tmp_path):
    code, _, err = run(*arguments(tmp_path / "run", batch=3), **TWO_DEVICES)
    assert code == 1
    assert "use a multiple of 2" in err


@pytest.mark.slow
def test_two_processes_train_like_one_and_one_of_them_writes(tmp_path, single):
    folder = tmp_path / "run"
    first, second = finish(start_two(*arguments(folder, "--distributed")))
    assert first[0] == 0, first[2]
    assert second[0] == 0, second[2]
    assert_same_curve(folder, single)
    assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in single.iterdir())
    assert "trained in" in first[1]
    assert "trained in" not in second[1]
    weights, expected = tensors(folder), tensors(single)
    for name, tensor in expected.items():
        # Twelve steps of at most 1e-3 each, of which rounding decides a small part.
        np.testing.assert_allclose(weights[name], tensor, atol=1e-4)


@pytest.mark.slow
def test_a_refusal_of_the_writer_stops_the_other_process(tmp_path, single):
    ended = finish(start_two(*arguments(single, "--distributed", rate=0.5)))
    assert [code for code, _, _ in ended] == [1, 1]
    for _, _, err in ended:
        assert "other settings" in err


@pytest.mark.slow
def test_cluster_variables_that_are_missing_or_senseless_are_named(tmp_path):
    code, _, err = run(*arguments(tmp_path / "run", "--distributed"))
    assert code == 1
    assert "JAX_COORDINATOR_ADDRESS" in err
    code, _, err = run(*arguments(tmp_path / "run", "--distributed"), JAX_NUM_PROCESSES="two")
    assert code == 1
    assert "JAX_NUM_PROCESSES, got 'two'" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_processes_stop_together_and_resume(tmp_path):
    """A signal to the process that does not write reaches both."""
    folder, whole = tmp_path / "run", tmp_path / "whole"
    longer = {"phases": "0:400", "checkpoint_every": 20}
    first, second = finish(start_two(*arguments(whole, "--distributed", **longer)))
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    writer, other = start_two(*arguments(folder, "--distributed", **longer))
    checkpoints = Checkpoints(folder / "checkpoints" / "operator")
    code, _ = stop_when(other, lambda: len(checkpoints.steps()) >= 1, 15)
    assert code == 130
    ((code, out, _),) = finish([writer])
    assert code == 130
    assert f"stopped after step {checkpoints.steps()[-1]}" in out
    first, second = finish(start_two(*arguments(folder, "--distributed", "--resume", **longer)))
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    assert (folder / "history.csv").read_bytes() == (whole / "history.csv").read_bytes()
    for name, tensor in tensors(whole).items():
        assert tensors(folder)[name].tobytes() == tensor.tobytes()


@pytest.mark.slow
def test_both_stages_on_two_devices(tmp_path):
    code, _, err = run(*arguments(tmp_path / "one", **ENCODER))
    assert code == 0, err
    code, _, err = run(*arguments(tmp_path / "two", **ENCODER), **TWO_DEVICES)
    assert code == 0, err
    assert_same_curve(tmp_path / "two", tmp_path / "one")
