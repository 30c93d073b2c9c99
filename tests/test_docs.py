"""The pages: they build strictly, their Python runs, and what is generated is up to date."""

import importlib
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import splatop
from splatop.training import Settings, preset

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Pages whose Python runs from top to bottom; the others have tests of their own.
EXECUTED = [
    "index.md",
    "concepts.md",
    "time.md",
    "unknown.md",
    *(f"contributing/{name}.md" for name in ("own", "benchmark", "term", "encoder", "operator")),
]


def blocks(page: str) -> list[str]:
    """The Python of a page, also where it is indented in a list."""
    found = re.findall(r"^( *)```python\n(.*?)^\1```", page, re.DOTALL | re.MULTILINE)
    return [
        "\n".join(line.removeprefix(indent) for line in code.splitlines()) for indent, code in found
    ]


def test_files_that_pages_name_are_there():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    named = re.compile(r"\b(?:src|tests|tools|examples)/[\w/.-]+\.py\b")
    missing = {
        f"{page.name}: {path}"
        for page in pages
        for path in named.findall(page.read_text())
        if not (ROOT / path).exists()
    }
    assert not missing


@pytest.mark.parametrize("name", EXECUTED)
def test_python_of_a_page_runs(name, capsys):
    code = blocks((DOCS / name).read_text())
    assert code
    exec(compile("\n".join(code), name, "exec"), {})
    if name == "contributing/own.md":
        rate, gain = re.findall(r"= ([\d.]+)", capsys.readouterr().out)
        # Each mode decays by exp(-0.4 t); Adam brings the gain from 0.9 to 1 in a hundred steps.
        assert float(rate) == pytest.approx(0.4, abs=0.002)
        assert float(gain) == pytest.approx(1.0, abs=0.02)
        assert all(len(block.splitlines()) < 30 for block in code)
    if name == "concepts.md":
        # The largest value of this Laplacian is 20 π² = 197; derivatives on 20 anchors are exact
        # to six digits there.
        assert float(capsys.readouterr().out.split()[-1]) < 1e-2


def test_the_site_builds_strictly(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("latex2mathml")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, "-f", str(ROOT / "mkdocs.yml"), "-d", str(tmp_path / "site")],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "concepts.html").read_text()
    assert "<math" in page
    # Nothing is fetched from elsewhere when a page is read.
    for path in (tmp_path / "site").rglob("*.html"):
        fetched = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", path.read_text()
        )
        assert not fetched, (path.name, fetched)


def test_no_page_waits_for_what_a_command_should_have_written():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")):
        text = page.read_text()
        assert not re.search(r"^[A-Z]+_[A-Z]+$", text, re.MULTILINE), page.name
        assert not re.search(r"<!--[^>]+-->\s*<!-- ?\S*end", text), page.name


def test_what_pages_and_examples_import_is_public():
    pages = [ROOT / "README.md", *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    deep = re.compile(r"^ *(?:from|import) splatop\.\S+", re.MULTILINE)
    assert not {str(path): found for path in pages if (found := deep.findall(path.read_text()))}


def test_the_reference_lists_every_public_name_once():
    listed = re.findall(r"^::: splatop\.(\S+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    names = [path.rpartition(".")[2] for path in listed]
    assert sorted(names) == sorted({*splatop.__all__} - {"__version__"})
    for path, name in zip(listed, names, strict=True):
        if path != name:  # a package has the same name: the function is named where it is defined
            module = importlib.import_module(f"splatop.{path.rpartition('.')[0]}")
            assert getattr(module, name) is getattr(splatop, name)


def test_no_path_of_a_machine_is_in_the_pages():
    for path in DOCS.rglob("*.md"):
        assert not re.search(r"/(home|work|root|Users)/", path.read_text()), path.name


def test_results_are_those_of_the_committed_measurements(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    results = importlib.import_module("results")
    assert results.page() == results.PAGE.read_text(), "run `make results`"
    assert results.readme(results.README.read_text()) == results.README.read_text()
    shown = re.findall(r"\]\((images/[^)]+)\)", results.PAGE.read_text())
    assert len(shown) == 3 + bool(list((ROOT / "results").glob("rivals/*.json")))
    assert all((DOCS / image).exists() for image in shown)


def test_contributing_says_what_was_measured_of_the_tests():
    suite = importlib.import_module("suite")
    marked = f"{suite.BEGIN}\n{suite.said()}\n{suite.END}"
    assert marked in suite.PAGE.read_text(), "run `python tools/suite.py tables`"


def test_the_table_of_settings_has_all_of_them():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| ", (DOCS / "training.md").read_text(), re.MULTILINE)
    shown = {f.name: f.default for f in fields(Settings)}
    assert [name for name, _ in rows] == list(shown)
    for name, text in rows:
        if shown[name] is None:
            assert text == "–"
        elif shown[name] == ():
            assert text == "none"
        else:
            # What the table says is what `--set` would take.
            assert preset("fast").with_overrides({name: text}) == preset("fast"), name
