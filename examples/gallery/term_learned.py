"""A term that no formula names

A reaction sin(3u) exp(-u²) is in no library of candidate terms. Told is the diffusion, and that
something depends on u. What was learned is a function, drawn over the range of the data.
"""

import numpy as np

import splatop

POINTS, STEPS, TRAJECTORIES = 64, 40, 10

nature = splatop.parse_equation("dt(u) = D*d2x(u) + sin(3*u)*exp(-u^2)", dims=1)
grid = splatop.Grid((POINTS,), (1.0,))
made = splatop.solve_trajectories(
    nature, {"D": 0.002}, grid=grid, dt=0.05, steps=STEPS, trajectories=TRAJECTORIES, seed=0
)
data = np.stack(list(made))

surrogate = splatop.fit(
    data[:-1],
    "dt(u) = D*d2x(u) + ?(u)",
    coefficients={"D": 0.002},
    dt=0.05,
    lengths=(1.0,),
    preset="smoke",
)
predicted = surrogate.rollout(data[-1, 0], STEPS)

found = {"said": surrogate.model.record["unknown"]["said"]}
error = np.linalg.norm(predicted[-1] - data[-1, -1]) / np.linalg.norm(data[-1, -1])
u = np.linspace(data.min(), data.max(), 60)
term = [(surrogate.step(np.full((1, POINTS), v, np.float32))[0, 0] - v) / 0.05 for v in u]
curves = {"sin(3u) exp(-u²)": (u, np.sin(3 * u) * np.exp(-(u**2))), "learned": (u, term)}
axes = ("u", "the missing term")
