"""Train a surrogate and a plain FNO on the same data, and compare their long rollouts."""

import tempfile
from dataclasses import replace
from pathlib import Path

import splatop
from splatop.evaluate import ReferenceTrajectories, evaluate_all
from splatop.training import Problem, preset, train


def main(points: int = 48, training_steps: int = 100, steps: int = 100) -> dict[str, float]:
    name = "burgers2d"
    settings = replace(
        preset("smoke", name), points=points, phases=((0, training_steps),), trajectories=8
    )
    with tempfile.TemporaryDirectory() as folder:
        models = {
            kind: train(Path(folder) / kind, Problem(benchmark=name), replace(settings, model=kind))
            for kind in ("surrogate", "fno")
        }
    unseen = ReferenceTrajectories(
        splatop.get_benchmark(name), trajectories=3, steps=steps, points=points
    )
    found = evaluate_all(models, unseen, steps=steps, also=["physics alone"])
    errors = {kind: metrics.rl2_mean for kind, metrics in found.items()}
    errors["physics alone"] = found["surrogate"].physics_alone.rl2_mean
    for kind, error in errors.items():
        print(f"{kind:14} mean relative error over {steps} steps: {error:.2e}")
    return errors


if __name__ == "__main__":
    main()
