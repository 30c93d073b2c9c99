"""The gallery: runs the scripts of examples/gallery, draws what they made, writes their pages.

    python tools/gallery.py measure [NAME ...]   # results/gallery/NAME.json, docs/gallery/NAME.png
    python tools/gallery.py pages                # docs/gallery/*.md from these

A script leaves behind `error`, and what is to be shown: `film` (title to frames `(T, X, Y)`), `pictures`
(title to a field), `scattered` (points and values at them) or `curves` with the names of their `axes`; `found` is
what it tells.
"""

import argparse
import ast
import json
import resource
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from splatop.evaluate.written import plain

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS, PAGES, RESULTS = (
    ROOT / p for p in ("examples/gallery", "docs/gallery", "results/gallery")
)
ORDER = (
    "walls", "channel", "disk", "cylinder", "sensors", "placement",
    "term_found", "term_learned", "coarse", "long_run", "three_d",
)  # fmt: skip
WHAT = {  # what `error` is, where it is not the relative L2 error at the last frame
    "sensors": "relative L2 error of the forecast, fifty frames ahead",
    "placement": "expected spread that the sensors leave, of the one before",
    "term_found": "largest error of a coefficient",
    "coarse": "relative L2 error after 48 frames of chaos",
    "long_run": "root mean square deviation of the amplitudes of twenty modes",
}
MOST_BYTES, FILM_FRAMES = 500_000, 24


def title_and_text(name: str) -> tuple[str, str]:
    said = ast.get_docstring(ast.parse((SCRIPTS / f"{name}.py").read_text())) or ""
    title, _, text = said.partition("\n\n")
    return title, " ".join(text.split())


def shown_code(name: str) -> str:
    """The script without its docstring."""
    source = (SCRIPTS / f"{name}.py").read_text()
    return source.split('"""', 2)[2].strip()


def run(name: str, **sizes: int) -> dict:
    """The names that a script leaves behind; capitals of its own are replaced by `sizes`."""
    tree = ast.parse((SCRIPTS / f"{name}.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.Name):
            _resize(node, sizes)
    left: dict = {"__name__": name}
    exec(compile(tree, f"{name}.py", "exec"), left)
    return left


def _resize(node: ast.Assign, sizes: dict[str, int]) -> None:
    target = node.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    for number, one in enumerate(names):
        if isinstance(one, ast.Name) and one.id in sizes:
            values[number] = ast.copy_location(ast.Constant(sizes[one.id]), values[number])
    if isinstance(node.value, ast.Tuple):
        node.value.elts = values
    else:
        node.value = values[0]


def measure(name: str) -> None:
    began, cpu = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
    left = run(name)
    found = {k: v if isinstance(v, str) else float(v) for k, v in left.get("found", {}).items()}
    result = {
        "error": float(left["error"]),
        "found": found,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(resource.getrusage(resource.RUSAGE_SELF).ru_utime - cpu, 1),
    }
    for folder in (RESULTS, PAGES):
        folder.mkdir(parents=True, exist_ok=True)
    draw(left, PAGES / f"{name}.png")
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(name, result)


# --- pictures ------------------------------------------------------------------------------------


def draw(left: dict, path: Path) -> None:
    if "film" in left:
        frames = _film(left["film"])
        frames[0].save(
            path, save_all=True, append_images=frames[1:], duration=120, loop=0, optimize=True
        )
    elif "curves" in left:
        _curves(left["curves"], left["axes"]).savefig(path, dpi=80)
    elif "scattered" in left:
        _scattered(dict(left["scattered"])).savefig(path, dpi=80)
    else:
        _panels(left["pictures"], left.get("marks")).savefig(path, dpi=80)
    plt.close("all")
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(
            f"{path.name}: expected at most {MOST_BYTES} bytes, got {path.stat().st_size}"
        )


def _panels(fields: dict, marks: np.ndarray | None = None) -> plt.Figure:
    figure, axes = plt.subplots(
        1,
        len(fields),
        figsize=(max(5.0, 3.4 * len(fields)), 3.1),
        layout="constrained",
        squeeze=False,
    )
    limit = max(
        np.nanmax(np.abs(f)) for title, f in fields.items() if not title.startswith("error")
    )
    for axis, (title, field) in zip(axes[0], fields.items(), strict=True):
        own = np.nanmax(np.abs(field)) if title.startswith("error") else limit
        positive = np.nanmin(field) >= 0
        image = axis.imshow(
            np.asarray(field).T, origin="lower", cmap="Reds" if positive else "RdBu_r",
            vmin=0 if positive else -own, vmax=own, extent=(0, 1, 0, 1), aspect=_aspect(field),
        )  # fmt: skip
        axis.set(title=title, xticks=[], yticks=[])
        if marks is not None:
            axis.plot(*np.asarray(marks).T, "k^", ms=7, mfc="white")
        figure.colorbar(image, ax=axis, shrink=0.8, format="%.1e" if own < 0.01 else None)
    return figure


def _aspect(field: np.ndarray) -> float:
    across, up = np.shape(field)
    return min(1.0, up / across) if across > up else 1.0


def _film(fields: dict) -> list[Image.Image]:
    """A few panels beside each other, as small pictures with one palette."""
    count = len(next(iter(fields.values())))
    chosen = np.unique(np.linspace(0, count - 1, FILM_FRAMES).astype(int))
    frames = []
    for t in chosen:
        limit = max(np.nanmax(np.abs(f)) for f in fields.values())
        figure, axes = plt.subplots(
            1, len(fields), figsize=(2.6 * len(fields), 2.6), layout="constrained", squeeze=False
        )
        for axis, (title, f) in zip(axes[0], fields.items(), strict=True):
            field = np.asarray(f[t])
            axis.imshow(
                field.T, origin="lower", cmap="RdBu_r", vmin=-limit, vmax=limit,
                extent=(0, 1, 0, 1), aspect=_aspect(field),
            )  # fmt: skip
            axis.set(title=f"{title}, frame {t + 1}", xticks=[], yticks=[])
        figure.canvas.draw()
        frames.append(Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3]))
        plt.close(figure)
    # One palette for all: that of the first, the middle and the last frame above each other.
    some = [frames[0], frames[len(frames) // 2], frames[-1]]
    palette = Image.fromarray(np.concatenate([np.asarray(f) for f in some])).quantize(96)
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]


def _scattered(values: dict) -> plt.Figure:
    points = values.pop("points")
    figure, axes = plt.subplots(
        1, len(values), figsize=(3.4 * len(values), 3.1), layout="constrained", squeeze=False
    )
    for axis, (title, u) in zip(axes[0], values.items(), strict=True):
        limit = np.abs(u).max()
        shown = axis.scatter(*points.T, c=u, s=5, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axis.set(title=title, xticks=[], yticks=[], aspect="equal")
        figure.colorbar(shown, ax=axis, shrink=0.8)
    return figure


def _curves(curves: dict, names: tuple[str, str]) -> plt.Figure:
    """Values by their number, on a log axis, or pairs of both coordinates."""
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for (title, values), style in zip(curves.items(), ("k-", "C3--"), strict=True):
        if isinstance(values, tuple):
            axis.plot(*values, style, label=title)
        else:
            axis.semilogy(np.arange(1, len(values) + 1), values, style, label=title)
    axis.set(xlabel=names[0], ylabel=names[1])
    axis.legend(frameon=False)
    return figure


# --- pages ---------------------------------------------------------------------------------------


def pages() -> None:
    done = [name for name in ORDER if (RESULTS / f"{name}.json").exists()]
    for name in done:
        (PAGES / f"{name}.md").write_text(page(name))
    lines = [
        "# Gallery",
        "",
        "One problem a page: what is told, a few lines of Python, what comes out. Each page is a script of `examples/gallery`, which "
        "`python tools/gallery.py measure` runs and draws; times are CPU seconds on a busy machine, compilation and making the data included; each error is that of one draw.",
        "",
        "| | | error | CPU seconds |",
        "| --- | --- | --- | --- |",
    ]
    for name in done:
        title, _ = title_and_text(name)
        result = json.loads((RESULTS / f"{name}.json").read_text())
        lines.append(
            f"| [![{title}]({name}.png){{ width=220 }}]({name}.md) | [{title}]({name}.md) | "
            f"{plain(result['error'], 2)} | {result['cpu_seconds']:.0f} |"
        )
    (PAGES / "index.md").write_text("\n".join(lines) + "\n")


def page(name: str) -> str:
    title, text = title_and_text(name)
    result = json.loads((RESULTS / f"{name}.json").read_text())
    kind = WHAT.get(name, "relative L2 error at the last frame")
    lines = [
        f"# {title}",
        "",
        text,
        "",
        f"![{title}]({name}.png)",
        "",
        f"**{plain(result['error'], 2)}**: {kind}. {result['cpu_seconds']:.0f} seconds of CPU, data and "
        "compilation included.",
        "",
    ]
    for key, value in result["found"].items():
        lines.append(f"- {key}: {value if isinstance(value, str) else plain(value, 4)}")
    lines += [
        "",
        "```python",
        shown_code(name),
        "```",
        "",
        f"Written from `results/gallery/{name}.json` by `tools/gallery.py`.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=("measure", "pages"))
    parser.add_argument("names", nargs="*", choices=[*ORDER, []])
    given = parser.parse_args()
    if given.command == "measure":
        for one in given.names or ORDER:
            measure(one)
    else:
        pages()
