"""Coarse and fast

Kuramoto-Sivashinsky on 32 points instead of 128, four frames in one step: the physics alone is lost
soon, with its trained correction, a model that ships, it follows the fine solver for as long as
chaos allows.
"""

import exponax
import jax
import numpy as np

import splatop

FRAMES = 200

fine = exponax.stepper.KuramotoSivashinskyConservative(1, 60.0, 128, 0.2, order=4)
x = 60 * np.arange(128) / 128
start = np.cos(2 * np.pi * x / 60)[None] + 0.3 * np.sin(8 * np.pi * x / 60)
frames = np.asarray(exponax.rollout(fine, FRAMES + 400)(jax.numpy.asarray(start)))[400:]

model = splatop.load("coarse_ks")
truth = frames[:: model.spec.stride]
predicted = np.asarray(model.rollout(truth[0], len(truth) - 1))
alone = np.asarray(model.physics_only().rollout(truth[0], len(truth) - 1))


def followed(made):
    """Frames until the error passes 0.3 standard deviations."""
    off = np.sqrt(np.mean((made - truth[1:]) ** 2, axis=(1, 2))) > 0.3 * truth.std()
    return model.spec.stride * int(np.argmax(off) if off.any() else len(off))


found = {"frames followed": followed(predicted), "physics alone": followed(np.nan_to_num(alone))}
error = np.linalg.norm(predicted[11] - truth[12]) / np.linalg.norm(truth[12])
pictures = {
    "fine solver": truth[1:, 0],
    "splatop on 32 points": predicted[:, 0],
    "its physics alone": np.clip(np.nan_to_num(alone[:, 0]), -4, 4),
}
