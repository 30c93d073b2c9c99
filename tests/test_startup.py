"""A start imports no more than it needs, changes no environment, keeps what it compiled."""

import ast
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import pytest
import typer

import splatop
from splatop.cli import app, compiled
from splatop.threads import one_blas_thread

HEAVY = ("jax", "numpy", "scipy", "matplotlib", "xarray", "equinox", "h5py", "pandas", "exponax")
COMMANDS = (
    *("benchmarks", "generate", "inspect", "convert", "train", "tune", "rollout", "evaluate"),
    *("identify", "discover", "assimilate", "reconstruct", "place", "models", "info", "export"),
    *("estimate", "report", "reproduce", "bench", "demo"),
)


def python(code: str, **environment: str) -> str:
    """What a Python process prints that none of the tests' settings reach."""
    kept = ("PATH", "PYTHONPATH", "HOME", "XDG_CACHE_HOME", "TMPDIR")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**given, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported_by(*lines: str) -> set[str]:
    """The heavy packages that are loaded after these lines."""
    shown = python("\n".join((*lines, "import sys, json", "print(json.dumps(list(sys.modules)))")))
    return set(json.loads(shown.splitlines()[-1])) & set(HEAVY)


RUN = (
    "import sys",
    "from splatop.cli import main",
    "sys.argv = ['splatop', *{}]",
    "try: main()",
    "except SystemExit as done: assert not done.code",
)


def test_version_and_help_import_nothing_heavy():
    several = ([["--version"], ["--help"]], [[name, "--help"] for name in COMMANDS])
    lines = [line.format(arguments) for group in several for arguments in group for line in RUN[2:]]
    assert imported_by(*RUN[:2], *lines) == set()


def test_every_command_is_looked_at():
    assert set(typer.main.get_command(app).commands) == set(COMMANDS)  # pyright: ignore


def test_what_is_heavy_would_be_seen():
    assert "numpy" in imported_by("import splatop", "splatop.Grid")


@pytest.mark.slow
def test_importing_splatop_imports_nothing_heavy_and_changes_no_environment():
    assert imported_by("import splatop") == set()
    # JAX sets variables of its own, matplotlib and h5py may: theirs come first.
    python(
        "import os, jax, equinox, matplotlib, h5py; before = dict(os.environ); import splatop; "
        "splatop.fit, splatop.load, splatop.generate, splatop.cli; assert os.environ == before"
    )


def test_reading_and_rolling_out_do_without_matplotlib():
    heavy = imported_by("import splatop", "splatop.load, splatop.open_trajectories, splatop.FNO")
    assert not heavy & {"matplotlib", "xarray", "pandas", "exponax"}


def test_the_names_for_type_checkers_are_those_of_python():
    tree = ast.parse(Path(splatop.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (alias.asname, node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {(name, *home) for name, home in splatop._PUBLIC.items()}
    for name in splatop.__all__:
        assert getattr(splatop, name) is not None
    assert set(splatop.__all__) <= set(dir(splatop))


def test_a_function_keeps_its_name_beside_a_package_that_has_it():
    python(
        "import splatop, splatop.identify.identifying; from splatop.identify import Identified\n"
        "assert splatop.identify.__doc__.startswith('The unknown coefficients')\n"
        "assert splatop.identify is __import__('sys').modules['splatop.identify'].identify"
    )


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'modle'"):
        _ = splatop.modle
    assert splatop.training.Problem  # modules are there as after an import of their own


def test_blas_has_one_thread_inside_and_its_own_outside(monkeypatch):
    import threadpoolctl

    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)

    def counts():
        return {
            lib["filepath"]: lib["num_threads"]
            for lib in threadpoolctl.threadpool_info()
            if lib["user_api"] == "blas"
        }

    with threadpoolctl.threadpool_limits(2, "blas"):
        with one_blas_thread():
            assert set(counts().values()) == {1}
        assert set(counts().values()) == {2}
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
        with one_blas_thread():
            assert set(counts().values()) == {2}


@pytest.fixture
def no_cache():
    """JAX without the tests' own cache, for one test."""
    names = (
        "jax_compilation_cache_dir",
        "jax_compilation_cache_max_size",
        "jax_persistent_cache_min_compile_time_secs",
    )
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    with warnings.catch_warnings():
        yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_compiled_programs_go_to_the_user_s_cache_folder(no_cache, monkeypatch, tmp_path):
    monkeypatch.delenv("SPLATOP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = compiled.keep_compiled()
    assert folder is not None
    assert folder.is_dir()
    if sys.platform == "linux":
        assert folder.parent == tmp_path / "splatop" / "compiled"
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert jax.config.jax_compilation_cache_max_size == compiled.MOST_BYTES


def test_off_is_off_and_a_folder_of_one_s_own(no_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("SPLATOP_CACHE", "off")
    assert compiled.keep_compiled() is None
    assert jax.config.jax_compilation_cache_dir is None
    monkeypatch.setenv("SPLATOP_CACHE", str(tmp_path / "own"))
    folder = compiled.keep_compiled()
    assert folder is not None
    assert folder.parent == tmp_path / "own"


def test_a_folder_that_was_chosen_for_jax_stays():
    chosen = jax.config.jax_compilation_cache_dir
    assert chosen is not None  # that of the tests
    assert compiled.keep_compiled() is None
    assert jax.config.jax_compilation_cache_dir == chosen


def test_a_place_where_no_folder_can_be_is_no_error(no_cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("SPLATOP_CACHE", str(tmp_path / "file"))
    assert compiled.keep_compiled() is None
    assert jax.config.jax_compilation_cache_dir is None


def test_half_an_entry_is_removed(no_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("SPLATOP_CACHE", str(tmp_path))
    folder = compiled.keep_compiled()
    assert folder is not None
    for name in ("whole-cache", "whole-atime", "half-cache"):
        (folder / name).write_bytes(b"0")
    jax.config.update("jax_compilation_cache_dir", None)
    compiled.keep_compiled()
    assert sorted(path.name for path in folder.iterdir()) == ["whole-atime", "whole-cache"]


COMPILES = """
import jax, jax.numpy as jnp, os, pathlib
from splatop.cli.compiled import keep_compiled
folder = keep_compiled()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
print(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((3, 3)))[0, 0])
print(len(list(folder.glob("*-cache"))))
"""


def test_the_second_start_finds_what_the_first_compiled(tmp_path):
    first, kept = python(COMPILES, SPLATOP_CACHE=str(tmp_path)).split()
    assert int(kept) > 0
    log = "import logging; logging.getLogger('jax').setLevel('DEBUG')\n"
    shown = python(
        log + "logging.basicConfig(level='DEBUG', stream=__import__('sys').stdout)\n" + COMPILES,
        SPLATOP_CACHE=str(tmp_path),
    )
    assert "Persistent compilation cache hit" in shown
    assert {first, kept} <= set(shown.split())


def test_help_lists_every_command_once_under_a_heading():
    from splatop.cli.app import COMMANDS, app

    listed = [name for names in COMMANDS.values() for name in names]
    registered = [c.name or c.callback.__name__ for c in app.registered_commands]
    assert sorted(listed) == sorted(registered)
