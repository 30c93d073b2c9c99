"""Train a surrogate and a plain FNO on the same data, and compare their long rollouts."""

import tempfile
from dataclasses import replace
from pathlib import Path

import splatop


def main(points: int = 48, training_steps: int = 100, steps: int = 100) -> dict[str, float]:
    name = "burgers2d"
    settings = replace(
        splatop.preset("smoke", name), points=points, phases=((0, training_steps),), trajectories=8
    )
    problem = splatop.Problem(benchmark=name)
    with tempfile.TemporaryDirectory() as folder:
        models = {
            kind: splatop.train(Path(folder) / kind, problem, replace(settings, model=kind))
            for kind in ("surrogate", "fno")
        }
    unseen = splatop.ReferenceTrajectories(
        splatop.get_benchmark(name), trajectories=3, steps=steps, points=points
    )
    found = splatop.evaluate_all(models, unseen, steps=steps, also=["physics alone"])
    errors = {kind: metrics.rl2_mean for kind, metrics in found.items()}
    ours = found["surrogate"]  # which is its physics where the operator was left out
    errors["physics alone"] = (ours.physics_alone or ours).rl2_mean
    for kind, error in errors.items():
        print(f"{kind:14} mean relative error over {steps} steps: {error:.2e}")
    return errors


if __name__ == "__main__":
    main()
