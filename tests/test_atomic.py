"""Files that appear complete or not at all, also when their writer is killed or the disk full."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from splatop.data.atomic import complete_or_absent, write_whole
from splatop.errors import SplatopError

WRITER = """
import sys, time
from splatop.data.atomic import complete_or_absent
with complete_or_absent(sys.argv[1]) as partial:
    partial.write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(600)
"""


def start_writer(path) -> subprocess.Popen:
    """A process that has begun to write."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def names(folder) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path):
    path = tmp_path / "data.h5"
    path.write_text("before")
    # The partial of another file whose name begins alike is not ours to remove.
    (tmp_path / ".data.h5.copy.77.partial").write_text("")
    process = start_writer(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = f".data.h5.{process.pid}.partial"
    assert left in names(tmp_path)
    assert path.read_text() == "before"
    with complete_or_absent(path) as partial:
        assert left not in names(tmp_path)
        partial.write_text("after")
    assert names(tmp_path) == [".data.h5.copy.77.partial", "data.h5"]
    assert path.read_text() == "after"


def test_a_living_writer_is_left_alone(tmp_path):
    path = tmp_path / "data.h5"
    process = start_writer(path)
    try:
        with complete_or_absent(path) as partial:
            partial.write_text("ours")
        assert f".data.h5.{process.pid}.partial" in names(tmp_path)
    finally:
        process.kill()
        process.wait()


def test_two_writers_in_one_process_do_not_mix(tmp_path):
    with (
        complete_or_absent(tmp_path / "a") as partial,
        pytest.raises(SplatopError, match="another thread"),
        complete_or_absent(tmp_path / "a"),
    ):
        partial.write_text("")
    with complete_or_absent(tmp_path / "a") as partial:
        partial.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_leaves_what_was_there(tmp_path):
    path = tmp_path / "a"
    path.write_text("before")
    with (
        pytest.raises(SplatopError, match="the disk is full"),
        complete_or_absent(path),
        open("/dev/full", "w") as full,
    ):
        full.write("x")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["a"]


def test_a_full_disk_is_named_with_what_was_needed(tmp_path, monkeypatch):
    usage = type(shutil.disk_usage(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**6, 10**6 - 300, 300))
    with pytest.raises(SplatopError, match=r"expected 5 kB of free disk .* got 300 bytes in .*"):
        write_whole(tmp_path / "a", b"x" * 5000)
    assert names(tmp_path) == []
