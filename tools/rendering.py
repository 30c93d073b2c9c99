"""Speed and errors of the renderers, and of the lattice encoder's width: the tables of docs/rendering.md.

python tools/rendering.py measure [render window lattice]   # into results/rendering/NAME.json, minutes
python tools/rendering.py tables                            # the page from these
"""

import json
from pathlib import Path

from measured import measure_or_tables, table, write_between
from splatop.bench.rendering import LATTICE_CASES, lattice, render, window

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "results" / "rendering", ROOT / "docs" / "rendering.md"
KINDS = ("value", "gradient", "laplacian")
NAMES = {"advection2d": "advection", "burgers2d": "Burgers", "advection_allen_cahn2d": "Allen-Cahn"}


def ratios(found: dict) -> list[str]:
    """The widths, over the anchors' spacing, that were measured."""
    return list(dict.fromkeys(key.rpartition("_at_")[2].removesuffix("h") for key in found))


def rendered(found: dict) -> str:
    rows = [
        [name, f"{found[f'render_{kind}_over_dense_speedup']:.0f} times", said]
        for name, kind, said in (
            (
                "`LocalRenderer`",
                "local",
                f"{found['render_local_error']:.1e} (Laplacian {found['render_local_laplacian_error']:.1e})",
            ),
            (
                "`FourierRenderer`",
                "fourier",
                f"{found['render_fourier_error']:.1e} (the worst of all derivatives, filtered)",
            ),
        )
    ]
    return table(["", "faster than `DenseRenderer`", "relative difference from it"], rows)


def windows(found: dict) -> str:
    rows = [
        [
            f"{r} h",
            *(
                f"{found[f'{kind}_at_{r}h']:.1e}"
                for kind in ("window_error", "window_laplacian_error")
            ),
        ]
        for r in ratios(found)
    ]
    return table(["σ", "value", "Laplacian"], rows)


def widths(found: dict) -> str:
    several = ratios(found)
    rows = [
        [
            f"{NAMES[name]}, step {step}, A = {anchors}",
            *(
                ", ".join(
                    f"{found[f'lattice_{name}_{anchors}_{kind}_error_at_{r}h']:.1e}"
                    for kind in KINDS
                )
                for r in several
            ),
        ]
        for name, step, anchors in LATTICE_CASES
    ]
    return table(["field", *(f"σ = {r} h" for r in several)], rows)


def tables() -> None:
    for name, written in (("render", rendered), ("window", windows), ("lattice", widths)):
        found = json.loads((RESULTS / f"{name}.json").read_text())
        write_between(PAGE, f"<!-- {name}:begin -->", f"<!-- {name}:end -->", written(found))


if __name__ == "__main__":
    measures = {"render": render, "window": window, "lattice": lattice}
    measure_or_tables(__doc__, measures, tables, RESULTS)
