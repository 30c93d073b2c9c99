"""Trainings that are killed, interrupted, damaged or raced, through the command line."""

import json
import os
import shutil
import signal
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


@pytest.mark.parametrize(
    "damage", ["flip", *(pytest.param(d, marks=pytest.mark.slow) for d in ("truncate", "delete"))]
)
def test_damaged_checkpoint_falls_back_with_a_message(tmp_path, straight, damage):
    folder = tmp_path / "run"
    shutil.copytree(straight, folder)
    (folder / "model.safetensors").unlink()
    files = [p for p in (folder / "checkpoints" / "operator" / "200").rglob("*") if p.is_file()]
    # The largest file holds the arrays.
    largest = max(files, key=lambda p: p.stat().st_size)
    content = bytearray(largest.read_bytes())
    if damage == "delete":
        largest.unlink()
    elif damage == "truncate":
        largest.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 0xFF
        largest.write_bytes(content)
    code, out, err = run(*train_arguments(folder, "--resume"))
    assert code == 0, err
    assert "checkpoint of step 200 of stage operator" in out
    assert "going back to the one before it" in out
    same_run(folder, straight)


def test_any_damage_to_any_file_of_a_checkpoint_is_noticed_or_harmless(tmp_path):
    """Each file in turn is flipped, cut and removed: the state that comes back is right."""
    said = []
    rng = np.random.default_rng(0)
    old, new = ({"a": rng.normal(size=(50, 20)).astype(np.float32)} for _ in range(2))
    pristine = tmp_path / "pristine"
    checkpoints = Checkpoints(pristine)
    checkpoints.save(1, old)
    checkpoints.save(2, new)
    files = [p.relative_to(pristine) for p in (pristine / "2").rglob("*") if p.is_file()]
    assert len(files) >= 4
    for index, file in enumerate(files):
        for damage in ("flip", "cut", "remove"):
            folder = tmp_path / f"{index}-{damage}"
            shutil.copytree(pristine, folder)
            content = bytearray((folder / file).read_bytes())
            if damage == "flip" and content:
                content[rng.integers(len(content))] ^= 0xFF
            if damage == "cut":
                content = content[: -1 - len(content) // 3]
            (folder / file).write_bytes(content)
            if damage == "remove":
                (folder / file).unlink()
            found = Checkpoints(folder, say=said.append).restore(new)
            assert found is not None
            step, state = found
            np.testing.assert_array_equal(state["a"], {1: old, 2: new}[step]["a"])
            if step == 1:
                assert (folder / "damaged-2").is_dir()
                assert "going back to the one before it" in said[-1]
    assert said


def test_all_checkpoints_damaged_starts_again(tmp_path):
    said = []
    checkpoints = Checkpoints(tmp_path / "c", say=said.append)
    for step in (1, 2):
        checkpoints.save(step, {"a": np.ones(3, np.float32)})
        shutil.rmtree(tmp_path / "c" / str(step))
        (tmp_path / "c" / str(step)).mkdir()
    assert checkpoints.restore({"a": np.ones(3, np.float32)}) is None
    assert len(said) == 2
    assert checkpoints.steps() == []


def test_checkpoint_of_another_model_is_not_taken(tmp_path):
    said = []
    checkpoints = Checkpoints(tmp_path / "c", say=said.append)
    checkpoints.save(5, {"a": np.ones(3, np.float32)})
    assert checkpoints.restore({"a": np.ones(4, np.float32)}) is None
    assert "of another model" in said[0]


def test_remains_of_a_killed_save_are_ignored_and_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path / "c")
    checkpoints.save(1, {"a": np.ones(3, np.float32)})
    begun = tmp_path / "c" / "2.orbax-checkpoint-tmp-17"
    begun.mkdir()
    (begun / "half").write_bytes(b"x")
    assert checkpoints.steps() == [1]
    checkpoints.save(3, {"a": np.ones(3, np.float32)})
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == ["1", "3"]


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
