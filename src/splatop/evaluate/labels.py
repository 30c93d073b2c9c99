"""What tables, legends and reports call a model and a benchmark."""

from collections.abc import Mapping
from typing import Any

from ..benchmarks import BENCHMARKS
from .results import Metrics

LABELS: Mapping[str, str] = {
    "surrogate": "Surrogate",
    "physics": "Physics alone",
    "fno": "FNO",
    "unet": "U-Net",
    "resnet": "ResNet",
}


def benchmark_label(name: str | None) -> str:
    """A benchmark's title, or what stands in for it on data of one's own."""
    return BENCHMARKS[name].title if name in BENCHMARKS else (name or "own data")


def default_name(model: Mapping[str, Any]) -> str:
    """What a model is called when nobody named it."""
    return LABELS.get(model["kind"], model["kind"]) + (" 10×" if model.get("tenfold") else "")


def method_label(metrics: Metrics) -> str:
    """What a table or legend calls a model: its name, and its kind where the name does not say."""
    model = metrics.model
    label, kind = str(model["name"]), default_name(model)
    if kind.lower() not in label.lower() and model["kind"] not in label.lower():
        label = f"{label} ({kind})"
    return f"{label}, {model['ablation']}" if model.get("ablation") else label
