"""What tools that measure share: their command line, and the part of a page that they write."""

import argparse
import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """The norm of the difference over that of `b`."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def digest(folder: Path, *, but: str) -> str:
    """Of the Python in a folder, without its comments and one file: which code a row was measured
    by."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        if file.name != but:
            found.update(ast.dump(ast.parse(file.read_text())).encode())
    return found.hexdigest()[:12]


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put text in the place of what stands between two marks of a page."""
    head, rest = page.read_text().split(begin)
    page.write_text(f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def measure_or_tables(
    description: str | None,
    measures: Mapping[str, Callable[[], dict]],
    tables: Callable[[], None],
    results: Path,
) -> None:
    """`measure [NAMES]` writes one JSON file for each name, `tables` the page from them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("command", choices=("measure", "tables"))
    parser.add_argument("names", nargs="*", choices=[*measures, []])
    given = parser.parse_args()
    if given.command == "tables":
        tables()
        return
    results.mkdir(parents=True, exist_ok=True)
    for name in given.names or measures:
        print(name, flush=True)
        (results / f"{name}.json").write_text(json.dumps(measures[name](), indent=1) + "\n")
