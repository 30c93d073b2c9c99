"""Several seeds trained together: their mean, and how far they are apart."""

import tempfile
from dataclasses import replace
from pathlib import Path

import splatop


def main(points: int = 32, seeds: int = 4, training_steps: int = 60, steps: int = 50) -> float:
    name = "advection_allen_cahn2d"
    settings = replace(
        splatop.preset("smoke", name), points=points, seeds=seeds, phases=((0, training_steps),),
        trajectories=6, keep_if_better=False,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        model = splatop.train(Path(folder) / "run", splatop.Problem(benchmark=name), settings)
    unseen = splatop.ReferenceTrajectories(
        splatop.get_benchmark(name), trajectories=2, steps=steps, points=points
    )
    metrics = splatop.evaluate(model, unseen, steps=steps, also=())
    members = metrics.ensemble["rl2_mean"]
    print(f"each member by itself: {min(members):.2e} to {max(members):.2e}")
    print(f"their mean, step by step: {metrics.rl2_mean:.2e}")
    print(f"their spread: {metrics.ensemble['spread_mean']:.2e}")
    return metrics.ensemble["spread_mean"]


if __name__ == "__main__":
    main()
