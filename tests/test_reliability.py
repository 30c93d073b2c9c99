"""Trainings that are killed, interrupted, damaged or raced, through the command line."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from command import run, same_run, start, stop_when, train_arguments
from splatop.errors import SplatopError
from splatop.training.checkpoints import Checkpoints
from splatop.training.run_folder import claim, writing_run

TWO_STAGES = {"encoder": "unet", "anchors": 8, "encoder_steps": 80, "encoder_batch": 4}


def saved(folder: Path, stage: str = "operator") -> list[int]:
    return Checkpoints(folder / "checkpoints" / stage).steps()


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    code, out, err = run(*train_arguments(folder))
    assert code == 0, err
    # Nothing of the libraries below is to be seen.
    assert err == ""
    for noise in ("WARNING", "Warning", "absl"):
        assert noise not in out
    return folder


@pytest.mark.slow
def test_killed_run_resumes_to_the_same_bits(tmp_path, straight):
    folder = tmp_path / "run"
    code, _ = stop_when(start(*train_arguments(folder)), lambda: len(saved(folder)) >= 1)
    assert code == -signal.SIGKILL
    assert not (folder / "model.safetensors").exists()
    code, _, err = run(*train_arguments(folder, "--resume"))
    assert code == 0, err
    same_run(folder, straight)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_interrupted_run_writes_a_checkpoint_and_resumes(tmp_path, straight, number):
    folder = tmp_path / "run"
    process = start(*train_arguments(folder))
    code, out = stop_when(process, lambda: len(saved(folder)) >= 1, number)
    assert code == 130, out
    last = saved(folder)[-1]
    assert f"stopped after step {last} of stage operator" in out
    assert "continue with the same command and --resume" in out
    assert (folder / "history.csv").read_text().splitlines()[-1].startswith(f"operator,{last},")
    assert not (folder / "model.safetensors").exists()
    code, _, err = run(*train_arguments(folder, "--resume"))
    assert code == 0, err
    same_run(folder, straight)


@pytest.mark.parametrize("damage", ["truncate", pytest.param("flip", marks=pytest.mark.slow)])
def test_damaged_checkpoint_falls_back_with_a_message(tmp_path, straight, damage):
    folder = tmp_path / "run"
    shutil.copytree(straight, folder)
    (folder / "model.safetensors").unlink()
    newest = Checkpoints(folder / "checkpoints" / "operator").path(200)
    content = bytearray(newest.read_bytes())
    if damage == "truncate":
        newest.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 0xFF
        newest.write_bytes(content)
    code, out, err = run(*train_arguments(folder, "--resume"))
    assert (code, err) == (0, "")
    assert "checkpoint of step 200 of stage operator" in out
    assert "going back to the one before it" in out
    same_run(folder, straight)


def test_any_damage_to_a_checkpoint_is_noticed_or_harmless(tmp_path, capfd):
    """Flipped, cut and emptied in many places: the state that comes back is right."""
    said = []
    rng = np.random.default_rng(0)
    old, new = ({"a": rng.normal(size=(5, 20)).astype(np.float32), "n": k} for k in np.arange(2))
    checkpoints = Checkpoints(tmp_path, say=said.append)
    checkpoints.save(1, old)
    checkpoints.save(2, new)
    content = checkpoints.path(2).read_bytes()
    cuts = [content[:size] for size in (0, 7, 8, 9, len(content) // 2, len(content) - 1)]
    flips = []
    for place in [*range(0, 300, 7), *rng.integers(len(content), size=20)]:
        flips.append(bytearray(content))
        flips[-1][place] ^= 1 << int(rng.integers(8))
    for damaged in (*cuts, *flips):
        checkpoints.path(2).write_bytes(damaged)
        found = checkpoints.restore(new)
        assert found is not None
        step, state = found
        np.testing.assert_array_equal(state["a"], {1: old, 2: new}[step]["a"])
        if step == 1:
            assert (tmp_path / "damaged-2.safetensors").exists()
            assert "going back to the one before it" in said[-1]
    assert len(said) > len(cuts)
    assert capfd.readouterr() == ("", "")


def test_all_checkpoints_damaged_starts_again(tmp_path):
    said = []
    checkpoints = Checkpoints(tmp_path / "c", say=said.append)
    for step in (1, 2):
        checkpoints.save(step, {"a": np.ones(3, np.float32)})
        checkpoints.path(step).write_bytes(b"")
    assert checkpoints.restore({"a": np.ones(3, np.float32)}) is None
    assert len(said) == 2
    assert checkpoints.steps() == []


def test_checkpoints_of_an_earlier_version_are_named_and_left(tmp_path):
    said = []
    (tmp_path / "c" / "200").mkdir(parents=True)
    assert Checkpoints(tmp_path / "c", say=said.append).restore({"a": np.ones(3)}) is None
    assert "folders of an earlier version of splatop: stage c starts again" in said[0]
    assert (tmp_path / "c" / "200").is_dir()


@pytest.mark.parametrize("kept", [0, 2])
def test_a_disk_that_fills_under_a_checkpoint_is_one_line_and_leaves_the_ones_before(
    tmp_path, monkeypatch, kept
):
    state = {"a": np.ones(1000, np.float32)}
    checkpoints = Checkpoints(tmp_path / "c")
    for step in range(kept):
        checkpoints.save(step, state)

    def filling(path, data):
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", filling)
    with pytest.raises(SplatopError, match="the disk is full") as failed:
        checkpoints.save(7, state)
    message = str(failed.value)
    assert re.search(r"it needs 4\.\d+ kB and .*/c has [\d.]+ .B free", message)
    assert "make room there and continue with --resume" in message
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == [
        f"{step}.safetensors" for step in range(kept)
    ]


def test_a_disk_too_small_for_a_checkpoint_is_named_before_it_is_written(tmp_path, monkeypatch):
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**6, 10**6 - 2000, 2000))
    with pytest.raises(SplatopError, match=r"4\.\d+ kB of free disk .* got 2 kB in .*--resume"):
        Checkpoints(tmp_path / "c").save(1, {"a": np.ones(1000, np.float32)})
    assert list((tmp_path / "c").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.slow
def test_a_training_on_a_disk_that_fills_resumes_with_more_room(tmp_path, straight):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(disk)])
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        code, _, err = run(*train_arguments(disk / "run"))
        assert code == 1
        assert len(err.splitlines()) == 1
        assert "of free disk" in err
        assert "make room there and continue with --resume" in err
        assert not [p for p in disk.rglob("*") if "partial" in p.name]
        assert len(saved(disk / "run")) == 3
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        code, _, err = run(*train_arguments(disk / "run", "--resume"))
        assert code == 0, err
        same_run(disk / "run", straight)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_checkpoint_of_another_model_is_not_taken(tmp_path):
    said = []
    checkpoints = Checkpoints(tmp_path / "c", say=said.append)
    checkpoints.save(5, {"a": np.ones(3, np.float32)})
    assert checkpoints.restore({"a": np.ones(4, np.float32)}) is None
    assert "of another model" in said[0]


def test_remains_of_a_killed_save_are_ignored_and_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path / "c")
    checkpoints.save(1, {"a": np.ones(3, np.float32)})
    (tmp_path / "c" / ".2.safetensors.17.partial").write_bytes(b"half")
    assert checkpoints.steps() == [1]
    checkpoints.save(3, {"a": np.ones(3, np.float32)})
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == ["1.safetensors", "3.safetensors"]


def test_only_one_process_writes_a_run_folder(tmp_path):
    folder = tmp_path / "run"
    with writing_run(folder):
        code, _, err = run(*train_arguments(folder))
    assert code == 1
    assert "another process is writing" in err
    assert not folder.exists()


def test_a_run_with_other_settings_is_refused_and_untouched(splatop, straight):
    before = {p: p.stat().st_mtime_ns for p in straight.rglob("*") if p.name != ".lock"}
    code, _, err = splatop(*train_arguments(straight, "--resume", rate=0.5))
    assert code == 1
    assert "other settings" in err
    assert "rate was none, now 0.5" in err
    code, _, err = splatop(*train_arguments(straight))
    assert code == 1
    assert "continue it with --resume" in err
    assert before == {p: p.stat().st_mtime_ns for p in straight.rglob("*") if p.name != ".lock"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "advectoin2d"], "did you mean 'advection2d'"),
        (["train", "advection2d", "--preset", "fats"], "did you mean 'fast'"),
        (["train", "advection2d", "--set", "ratee=1"], "did you mean 'rate'"),
        (["train", "advection2d", "--set", "rate"], "expected --set key=value, got 'rate'"),
        (["train", "advection2d", "--model", "surogate"], "did you mean 'surrogate'"),
        (["train", "advection2d", "--drop-term", "difusion"], "unknown term 'difusion'"),
        (["train", "advection2d", "--set", "phases=0:0"], "at least one training step"),
        (["train"], "either a benchmark or a data file"),
    ],
)
def test_what_cannot_be_trained_is_named_and_leaves_nothing(splatop, tmp_path, arguments, message):
    folder = tmp_path / "deep" / "run"
    code, _, err = splatop(*arguments, "--out", folder)
    assert (code, "Traceback" in err) == (1, False)
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_coarse_grid_for_the_modes_is_named_and_leaves_nothing(splatop, tmp_path):
    folder = tmp_path / "run"
    code, _, err = splatop(*train_arguments(folder, modes=12))
    assert (code, "Traceback" in err) == (1, False)
    assert "modes" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_folder_is_refused(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(SplatopError, match="folder that can be written"), writing_run(closed / "a"):
        pass


def test_a_file_in_the_way_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(SplatopError, match="folder that can be written"), writing_run(folder):
            pass
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_folder_of_something_else_is_refused_and_untouched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "train-64.h5").write_text("data")
    with pytest.raises(SplatopError, match=r"thesis.tex"), writing_run(tmp_path) as folder:
        claim(folder, {"settings": {}}, resume=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.tex", "train-64.h5"]


def test_what_a_killed_start_leaves_does_not_block_the_next(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (".lock", ".config.json.77.partial", ".splatop-train-64.h5"):
        (folder / name).write_text("")
    with writing_run(folder):
        assert claim(folder, {"settings": {}}, resume=True) is None
        assert [p.name for p in folder.iterdir()] == [".lock"]
    # The folder was there before: it stays.
    assert list(folder.iterdir()) == []


def test_configuration_that_is_not_one_is_refused(tmp_path):
    for content in ("{", "[]", json.dumps({"a": 1})):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(SplatopError, match="expected"), writing_run(tmp_path) as folder:
            claim(folder, {"settings": {}}, resume=True)


@pytest.mark.slow
def test_killed_again_and_again_in_both_stages_resumes_to_the_same_bits(tmp_path):
    folder, whole = tmp_path / "run", tmp_path / "whole"
    code, _, err = run(*train_arguments(whole, **TWO_STAGES))
    assert code == 0, err
    rng = np.random.default_rng(int.from_bytes(os.urandom(4)))
    # Three kills in each stage, each a random moment after the next checkpoint of that stage.
    for stage in ("encoder", "operator"):
        for _ in range(3):
            resume = ["--resume"] if (folder / "config.json").exists() else []
            before, delay = saved(folder, stage), rng.uniform(0, 0.3)

            def ready(before=before, delay=delay, stage=stage):
                if saved(folder, stage) == before:
                    return False
                time.sleep(delay)
                return True

            process = start(*train_arguments(folder, *resume, **TWO_STAGES))
            code, out = stop_when(process, ready)
            assert code == -signal.SIGKILL, out
    code, _, err = run(*train_arguments(folder, "--resume", **TWO_STAGES))
    assert code == 0, err
    same_run(folder, whole)
