"""One colour and one line for each method, the same in every figure.

Colours are those of Okabe and Ito, which people with any colour vision tell apart.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluate.labels import default_name
from ..evaluate.results import Metrics

COLOURS: Mapping[str, str] = {
    "reference": "#000000",
    "surrogate": "#0072B2",
    "physics": "#56B4E9",
    "fno": "#D55E00",
    "unet": "#009E73",
    "resnet": "#CC79A7",
}
_OTHERS = ("#E69F00", "#7F7F7F", "#8C564B", "#B8A800")
# The order of rows and legends.
ORDER = ("surrogate", "physics", "fno", "unet", "resnet")

FIELD_MAP = "RdBu_r"  # signed fields, white at zero

RC: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}


# As the paper abbreviates them.
SHORT: Mapping[str, str] = {
    "advection2d": "Adv\n2D",
    "advection_diffusion2d": "Adv-diff\n2D",
    "burgers2d": "Burgers\n2D",
    "advection_allen_cahn2d": "Adv-AC\n2D",
    "advection_diffusion3d": "Adv-diff\n3D",
    "unknown_advection_diffusion2d": "Adv-diff\nunknown",
}


def method_colour(metrics: Metrics) -> str:
    """The colour of a model's kind."""
    return COLOURS.get(metrics.model["kind"], _OTHERS[0])


def line_style(metrics: Metrics) -> dict[str, Any]:
    """Matplotlib's arguments for a method's line."""
    model = metrics.model
    dashed = model.get("tenfold") or model["kind"] == "physics"
    return {
        "color": method_colour(metrics),
        "linestyle": (0, (4, 1.6)) if dashed else "-",
        "linewidth": 2.2 if model["kind"] == "surrogate" else 1.5,
        "zorder": 3 if model["kind"] == "surrogate" else 2,
    }


def styled_in_order(several: Sequence[Metrics]) -> list[tuple[Metrics, dict[str, Any]]]:
    """Models with their lines; a second variant of one method gets a colour that no method has."""
    found, seen, others = [], set(), 0
    for metrics in in_order(list(several)):
        style, method = line_style(metrics), default_name(metrics.model)
        if method in seen:
            style |= {"color": _OTHERS[others % len(_OTHERS)], "linewidth": 1.5}
            others += 1
        seen.add(method)
        found.append((metrics, style))
    return found


def in_order(several: list[Metrics]) -> list[Metrics]:
    """Surrogates first, then physics alone and the networks, matched before ten-fold."""
    return sorted(
        several,
        key=lambda m: (
            ORDER.index(m.model["kind"]) if m.model["kind"] in ORDER else len(ORDER),
            bool(m.model.get("tenfold")),
            len(m.name),  # "Surrogate" before "Surrogate without filter"
            m.model.get("ablation") or "",
        ),
    )
