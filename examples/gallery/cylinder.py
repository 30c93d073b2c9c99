"""A tracer around a cylinder

A potential flow carries a tracer around a cylinder in a channel: a box with a hole, inflow left,
outflow right. The velocity is written into the equation as functions of x and y; D is identified
from one trajectory, the other is predicted.
"""

from dataclasses import replace

import numpy as np

import splatop

STEPS, ANCHORS = 40, 20

problem = replace(splatop.get_benchmark("tracer_cylinder"), anchors=ANCHORS)
frames = splatop.generate(problem, split="test", trajectories=2, steps=STEPS)
truth = frames.window(1, 0, STEPS + 1)

surrogate = splatop.fit(
    frames,
    problem.equation_text,
    coefficients={"U": 0.5},
    hold_out=1,
    settings={"model": "physics", "anchors": ANCHORS},
)
predicted = np.asarray(surrogate.rollout(truth[0], STEPS))

found = surrogate.coefficients
error = np.linalg.norm(predicted[-1] - truth[-1]) / np.linalg.norm(truth[-1])
scattered = {
    "points": frames.grid.places,
    "start": truth[0, 0],
    f"reference, frame {STEPS}": truth[-1, 0],
    f"splatop, frame {STEPS}": predicted[-1, 0],
}
