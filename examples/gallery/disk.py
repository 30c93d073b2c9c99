"""A disk, known at random points

Heat leaves a disk through its cold edge. The data are values at scattered points, made from
Bessel functions, with 1 % of noise; there is no grid anywhere. D is identified and the future
predicted at the same points.
"""

import numpy as np
from scipy.special import jn_zeros, jv

import splatop

POINTS, STEPS, D = 2000, 60, 0.01

rng = np.random.default_rng(0)
radius, angle = 0.4 * np.sqrt(rng.random(POINTS)), 2 * np.pi * rng.random(POINTS)
points = 0.5 + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
truth = np.zeros((STEPS + 1, 1, POINTS))
for n, k in [(0, 1), (1, 1), (2, 1), (0, 2), (3, 2)]:
    wave = jn_zeros(n, k)[-1] / 0.4
    shape = jv(n, wave * radius) * np.cos(n * angle + k)
    truth += np.exp(-D * wave**2 * 0.02 * np.arange(STEPS + 1))[:, None, None] * shape
noise = 0.01 * truth.std()

surrogate = splatop.fit(
    truth[: STEPS // 2] + noise * rng.standard_normal((STEPS // 2, 1, POINTS)),
    "dt(u) = D*lap(u)",
    points=points,
    shape="disk(0.5, 0.5, 0.4)",
    boundary="disk1: u = 0",
    dt=0.02,
    settings={"model": "physics"},
)
predicted = surrogate.rollout(truth[0], STEPS)

found = surrogate.coefficients
error = np.linalg.norm(predicted[-1] - truth[-1]) / np.linalg.norm(truth[-1])
scattered = {
    "points": points,
    "start": truth[0, 0],
    f"Bessel series, frame {STEPS}": truth[-1, 0],
    f"splatop, frame {STEPS}": predicted[-1, 0],
}
