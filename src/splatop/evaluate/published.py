"""Numbers printed in the paper, for comparison. They are shown as published, never as measured."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

# The paper's method has the kind "surrogate" here.
_KINDS = {"fno": "fno", "unet": "unet", "resnet": "resnet", "paper": "surrogate"}


@dataclass(frozen=True)
class PublishedRollout:
    """A row of the paper's table of rollout accuracy: means and deviations over 30 trajectories."""

    kind: str
    parameters: int
    rl2: tuple[float, float]
    psnr: tuple[float, float]
    spectral_error: float

    @property
    def label(self) -> str:
        """What tables call it."""
        names = {"fno": "FNO", "unet": "U-Net", "resnet": "ResNet", "surrogate": "surrogate"}
        return f"published {names[self.kind]}"


def published_rollout(benchmark: str | None) -> dict[str, PublishedRollout]:
    """The published rows of a benchmark by kind of model; empty where the paper has none."""
    rows = _numbers()["rollout"].get(benchmark or "", {})
    return {
        _KINDS[name]: PublishedRollout(
            _KINDS[name],
            row["params"],
            tuple(row["rl2"]),
            tuple(row["psnr_db"]),
            row["spectral_error"],
        )
        for name, row in rows.items()
    }


def published_representation(benchmark: str | None) -> dict[str, float]:
    """`e_u`, `e_grad` and `e_lap` of the paper's trained encoder; empty where it has none."""
    return _numbers()["representation"].get(benchmark or "", {})


def published_local_rendering(benchmark: str | None) -> dict[str, float]:
    """Local against dense rendering: `u`, `dx`, `dy`, `lap`, `speedup`; empty where it has none."""
    return _numbers()["local_rendering"].get(benchmark or "", {})


def published_identification() -> dict[str, float]:
    """Relative errors of the identified coefficients `v` and `D`."""
    numbers = _numbers()["identification"]
    return {"v": numbers["velocity_relative_error"], "D": numbers["diffusivity_relative_error"]}


@cache
def _numbers() -> dict[str, Any]:
    return json.loads(resources.files("splatop.evaluate").joinpath("published.json").read_text())
