"""The package builds, installs into an empty environment, and works there."""

import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

import splatop

ROOT = Path(__file__).parent.parent


def tool(name: str):
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_versions_agree():
    assert f"version: {splatop.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {splatop.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_type_information_is_there():
    assert (Path(splatop.__file__).parent / "py.typed").exists()


def test_pre_commit_runs_what_lint_runs_and_fetches_nothing():
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert "repo: local" in text
    assert text.count("language: system") == text.count("- id:")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in ("ruff", "pyright"):
        assert f".venv/bin/{name}" in text
        assert any(wanted.startswith(name) for wanted in _extra(project, "lint"))


def _extra(project: dict, name: str) -> list[str]:
    return project["project"]["optional-dependencies"][name]


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path):
    pytest.importorskip("build")
    package = tool("package")
    wheel, sdist = package.build(tmp_path)
    held = package.contents(wheel)
    assert held["models"] >= 1
    # A package that is quick to fetch: twice what the models of six benchmarks need.
    assert held["wheel_bytes"] < 30e6
    assert sdist.stat().st_size > 0
    found = package.try_in(sys.executable, wheel)
    assert found["python"] == sys.version.split()[0]
