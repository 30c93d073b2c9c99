"""Imports point one way: a module imports only from rooms before its own."""

import ast
from pathlib import Path

import splatop

PACKAGE = Path(splatop.__file__).parent

# A room is a module or a folder directly below the package.
ROOMS = [
    *(
        "_version",
        "errors",
        "annotations",
        "grid",
        "derivative",
        "spectral",
        "stepper",
        "gaussians",
        "render",
    ),
    *(
        "encoders",
        "jets",
        "equation",
        "integrators",
        "physics",
        "stability",
        "initial",
        "etdrk4",
        "solver",
    ),
    *(
        "benchmarks",
        "data",
        "identify",
        "discover",
        "operators",
        "surrogate",
        "ensemble",
        "registry",
    ),
    *("description", "numerics"),
    *(
        "tune",
        "model",
        "export",
        "estimate",
        "training",
        "evaluate",
        "fit_arguments",
        "fitted",
        "bench",
        "cli",
    ),
    "__main__",
]


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    """Rooms of splatop that a file imports from, wherever in the file it does."""
    package = ("splatop", *path.relative_to(PACKAGE).parts[:-1])
    modules: list[tuple[str, ...]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            full = (*base, *(node.module.split(".") if node.module else ()))
            modules += (
                [(*full, alias.name) for alias in node.names] if full == ("splatop",) else [full]
            )
    return {m[1] for m in modules if m[0] == "splatop" and len(m) > 1}


def files():
    # The package's own __init__ gathers the public names and may import all.
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def test_every_module_has_a_room():
    unknown = {room(path) for path in files()} - set(ROOMS)
    assert not unknown, f"give {', '.join(sorted(unknown))} a place in ROOMS"


def test_imports_point_one_way():
    order = {name: position for position, name in enumerate(ROOMS)}
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path in files()
        for other in imported_rooms(path)
        if other != room(path) and order.get(other, 0) > order.get(room(path), len(ROOMS))
    ]
    assert not wrong, wrong


def test_a_backward_import_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "render").mkdir()
    for text in (
        "from ..physics import x",
        "from splatop import physics",
        "import splatop.physics",
    ):
        path = tmp_path / "render" / "dense.py"
        path.write_text(text)
        assert imported_rooms(path) == {"physics"}


def test_the_command_line_stays_at_the_surface():
    used = {
        other
        for path in files()
        for other in imported_rooms(path)
        if room(path) not in ("cli", "__main__")
    }
    assert "cli" not in used
