"""Coarse and fast

Kuramoto-Sivashinsky on 32 points instead of 128: the physics alone is lost after a few frames,
with its trained correction, a model that ships, it follows the fine solver for as long as chaos
allows.
"""

import exponax
import jax
import numpy as np

import splatop

FRAMES = 200

fine = exponax.stepper.KuramotoSivashinskyConservative(1, 60.0, 128, 0.2, order=4)
x = 60 * np.arange(128) / 128
start = np.cos(2 * np.pi * x / 60)[None] + 0.3 * np.sin(8 * np.pi * x / 60)
truth = np.asarray(exponax.rollout(fine, FRAMES + 400)(jax.numpy.asarray(start)))[400:]

model = splatop.load("coarse_ks")
predicted = model.rollout(truth[0], FRAMES - 1)
alone = model.physics_only().rollout(truth[0], FRAMES - 1)


def horizon(frames):
    """Frames until the error passes 0.3 standard deviations."""
    off = np.sqrt(np.mean((frames - truth[1:]) ** 2, axis=(1, 2))) > 0.3 * truth.std()
    return int(np.argmax(off)) if off.any() else len(off)


found = {"frames followed": horizon(predicted), "physics alone": horizon(np.nan_to_num(alone))}
error = np.linalg.norm(predicted[50] - truth[51]) / np.linalg.norm(truth[51])
pictures = {
    "fine solver": truth[1:, 0].T,
    "splatop on 32 points": predicted[:, 0].T,
    "its physics alone": np.clip(np.nan_to_num(alone[:, 0].T), -4, 4),
}
