"""Imports point one way: a module imports only from rooms before its own."""

import ast
import re
from functools import cache
from pathlib import Path

import splatop

PACKAGE = Path(splatop.__file__).parent

# A room is a module or a folder directly below the package.
ROOMS = """
_version errors threads annotations cache precomputed shapes domain grid points derivative notebook
spectral signal stepper exponential integrators
spaces gaussians render encoders jets finite_differences
equation etdrk4 physics stability initial walls solver
benchmarks data identify discover operators surrogate coarse ensemble registry description numerics
tune model export estimate training evaluate assimilate report reproduce
fit_arguments predicting fitted fitting
bench cli
__main__
""".split()  # noqa: SIM905


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def imported_rooms(path: Path) -> set[str]:
    """Rooms of splatop that a file imports from, wherever in the file it does."""
    return rooms_in(parsed(path.read_text()), path)


def rooms_in(tree: ast.Module, path: Path) -> set[str]:
    """Rooms of splatop that the imports of a tree name, as the file at a path would."""
    package = ("splatop", *path.relative_to(PACKAGE).parts[:-1])
    modules: list[tuple[str, ...]] = []
    for node in ast.walk(tree):
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


def test_the_map_has_every_room_in_the_order_of_imports():
    page = (Path(__file__).parent.parent / "docs" / "design.md").read_text()
    table = page.partition("| room |")[2].partition("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines()[2:]]
    shown = [name for cell in first for name in re.findall(r"`(\w+)/?`", cell)]
    assert shown == [name for name in ROOMS if not name.startswith("_")]


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


# What presents results: imported when asked for, and known to nobody that computes.
PRESENTING = {"report", "reproduce", "bench"}


def imported_at_once(path: Path) -> set[str]:
    """Rooms that a file imports when it is imported, not inside a function or for types alone."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            node.body = [ast.Pass()]
    return rooms_in(tree, path)


def test_nothing_that_computes_knows_what_presents():
    surface = {*PRESENTING, "cli", "fitted", "__main__"}
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path in files()
        if room(path) not in surface
        for other in imported_rooms(path) & PRESENTING
    ]
    assert not wrong, wrong


def test_reports_and_benchmarks_are_imported_when_asked_for():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {other} at once"
        for path in files()
        if room(path) not in PRESENTING
        for other in imported_at_once(path) & PRESENTING
    ]
    assert not wrong, wrong


def test_an_import_inside_a_function_is_told_from_one_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    path = tmp_path / "fitted.py"
    path.write_text("def f():\n    from .report import x")
    assert imported_rooms(path) == {"report"}
    assert imported_at_once(path) == set()
    path.write_text("from .report import x")
    assert imported_at_once(path) == {"report"}


def twins(named):
    """The names that stand in several files, with these."""
    places: dict[str, list[str]] = {}
    for name, path in named:
        places.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_two_modules_have_one_name():
    # A command may be called what it runs: `cli/train.py` runs `training/train.py`.
    own = [p for p in files() if p.name != "__init__.py" and room(p) not in ("cli", "bench")]
    assert not twins((path.stem, path) for path in own)


def test_no_two_classes_have_one_name():
    found = [(node, path) for path in files() for node in parsed(path.read_text()).body]
    classes = [(node.name, path) for node, path in found if isinstance(node, ast.ClassDef)]
    assert not twins((name, path) for name, path in classes if not name.startswith("_"))


def test_no_module_is_longer_than_one_reads_at_once():
    lengths = {path.name: path.read_text().count("\n") for path in files()}
    assert max(lengths.values()) <= 350, max(lengths, key=lambda name: lengths[name])


# Rooms that may ask of a domain which of its axes are rings: those that say where fields live,
# those that read and write what users say of edges, and those that choose a space or a method by
# it.
ASKING_FOR_RINGS = {
    *("domain", "spaces", "equation", "data", "cli"),
    *("initial", "walls", "solver", "numerics", "tune", "model", "coarse", "training"),
    *("identify", "discover", "assimilate"),
}


def asks_for_rings(path: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("periodic", "all_periodic")
        for node in ast.walk(parsed(path.read_text()))
    )


def test_what_steps_learns_and_judges_does_not_ask_what_is_periodic():
    asking = {room(path) for path in files() if asks_for_rings(path)}
    assert asking == ASKING_FOR_RINGS
