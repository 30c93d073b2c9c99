"""An equation from nothing

One noisy trajectory of Kuramoto-Sivashinsky, made by another solver (exponax). Nothing is told.
`discover` names the terms, with intervals, what the error becomes without each, and whether to
trust it.
"""

import exponax
import jax
import numpy as np

import splatop

POINTS, FRAMES = 128, 200

stepper = exponax.stepper.KuramotoSivashinskyConservative(1, 60.0, POINTS, 0.2, order=4)
x = 60 * np.arange(POINTS) / POINTS
start = np.cos(2 * np.pi * x / 60)[None] + 0.3 * np.sin(6 * np.pi * x / 60)
frames = np.asarray(exponax.rollout(stepper, FRAMES + 300)(jax.numpy.asarray(start)))[300:]
noisy = frames + 0.01 * frames.std() * np.random.default_rng(0).standard_normal(frames.shape)

discovered = splatop.discover(noisy, "dt(u) = ?", dt=0.2, lengths=60.0)
print(discovered)

found = {term.text: term.coefficient for term in discovered.terms}
error = max(abs(abs(term.coefficient) - 1) for term in discovered.terms)
pictures = {"the data: space and time, 1 % noise": noisy[:, 0]}
