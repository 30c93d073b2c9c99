"""How `train` and `tune` come to the points and the stride of a coarse model."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import SplatopError
from .app import say

CoarseOption = Annotated[
    str | None,
    typer.Option(
        "--coarse",
        help="Compute on so many times fewer points along each axis; auto: by --budget.",
    ),
]


def factor_of(text: str | None) -> int | None:
    """A number of times, or None for one that is chosen."""
    if text is None or text == "auto":
        return None
    if not text.isdecimal():
        raise SplatopError(f"expected a whole number or auto for --coarse, got '{text}'")
    return int(text)


def within_budget(problem, coarse, stride, budget, out, resume) -> tuple[int, int]:
    """What `tune --speed` proposes first; of a run that is continued, what it began with."""
    if coarse != "auto" or budget is None or stride != 1:
        raise SplatopError(
            "expected --coarse auto together with --budget, and no --stride, got "
            f"coarse={coarse}, budget={budget}, stride={stride}"
        )
    if not 0 < budget <= 1:
        raise SplatopError(f"expected a budget above 0 and up to 1, got {budget:g}")
    if resume and (out / "config.json").exists():
        from ..training.run_folder import read_json

        held = read_json(out / "config.json")["settings"]
        return held["coarse"], held["stride"]
    best = proposals(problem, 1 / budget)[0]
    say(f"• {best}")
    return best.factor, best.stride


def proposals(problem, speed: float):
    """Coarse grids and strides that make a step so many times faster, the best first."""
    import tempfile

    from ..training import PRESETS
    from ..tune import propose

    with tempfile.TemporaryDirectory() as scratch:
        loaded = problem.load(PRESETS["fast"], Path(scratch))
        return propose(loaded.equation, typical(loaded), loaded.at(0), speed=speed)


def typical(loaded) -> dict:
    """A value for every coefficient: given, of the benchmark, or the mean of what is identified."""
    import numpy as np

    from ..benchmarks import get_benchmark
    from ..identify import identify_trajectories

    if not loaded.unknown:
        return dict(loaded.known)
    if loaded.benchmark is not None:
        return get_benchmark(loaded.benchmark).typical_coefficients()
    found = identify_trajectories(
        loaded.equation, None, loaded.at(0), unknown=loaded.unknown, known=loaded.known
    )
    means = {name: np.mean([one.estimates[name] for one in found]) for name in loaded.unknown}
    return {**loaded.known, **{name: float(mean) for name, mean in means.items()}}
