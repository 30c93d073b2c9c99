"""Ten thousand steps of chaos

No rollout can follow a chaotic system for ever, but its statistics must stay true. Φ alone,
Gaussians and exponential steps, for 10,000 frames of Kuramoto-Sivashinsky, beside exponax from
the same start.
"""

import exponax
import jax
import numpy as np

import splatop

STEPS = 10_000

reference = exponax.stepper.KuramotoSivashinskyConservative(1, 60.0, 128, 0.2, order=4)
x = 60 * np.arange(128) / 128
start = jax.numpy.asarray(np.cos(2 * np.pi * x / 60)[None] + 0.3 * np.sin(8 * np.pi * x / 60))
spun = exponax.repeat(reference, 500)(start)

equation = splatop.parse_equation("dt(u) = -u*dx(u) - lap(u) - bilap(u)", dims=1)
tuned = splatop.choose_numerics(equation, {}, np.asarray(spun)[None], lengths=(60.0,), dt=0.2)
physics = splatop.build_physics(equation, tuned.numerics, lengths=(60.0,), dt=0.2)
predicted = np.asarray(jax.jit(lambda u: splatop.rollout(physics, u, {}, steps=STEPS))(spun))
truth = np.asarray(exponax.rollout(reference, STEPS)(spun))

energy = [np.mean(np.abs(np.fft.rfft(u[:, 0])) ** 2, axis=0)[1:40] for u in (truth, predicted)]
found = {"standard deviation": predicted.std(), "of the reference": truth.std()}
error = np.sqrt(np.mean((np.sqrt(energy[1] / energy[0])[:20] - 1) ** 2))
curves = {"reference": energy[0], "splatop, 10,000 steps": energy[1]}
axes = ("mode", "mean energy")
