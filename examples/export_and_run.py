"""A model that comes with the package as a function that needs JAX and flatbuffers only."""

import tempfile
from pathlib import Path

import jax
import numpy as np

import splatop


def main(points: int = 64, steps: int = 10, batch: int = 4) -> float:
    model = splatop.load("advection2d")
    exported = splatop.export_model(model, points=points, steps=steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rollout.bin"
        splatop.save_export(path, exported, model, format="stablehlo")
        data = path.read_bytes()
    print(f"{len(data) / 1e3:.0f} kB, returns {exported.description['output']['shape']}")

    function = jax.export.deserialize(bytearray(data))  # from here on, without splatop
    problem = splatop.get_benchmark("advection2d")
    starts = splatop.generate(problem, split="test", trajectories=batch, steps=1, points=points)
    states = np.stack([starts.window(b, 0, 1)[0] for b in range(batch)])
    found = function.call(states)
    difference = float(abs(found[0] - model.rollout(states[0], steps=steps)).max())
    print(f"largest difference from the model itself: {difference:.1e}")
    return difference


if __name__ == "__main__":
    main()
