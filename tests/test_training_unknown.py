"""What decides what `?` stands for: rollouts in the data's own domain."""

import numpy as np

from splatop.data import ArrayTrajectories
from splatop.equation import domain_from_text, parse_equation
from splatop.grid import Grid
from splatop.training.found_terms import rollout_error


def test_rollouts_between_walls_obey_the_walls():
    """sin(πx/2) decays between a cold and an insulated wall; around a ring it would be torn."""
    x, t, D = np.linspace(0, 1, 33), 0.05 * np.arange(9), 0.1
    u = np.exp(-D * (np.pi / 2) ** 2 * t)[:, None] * np.sin(np.pi * x / 2)
    domain = domain_from_text("x0: u = 0; x1: dn(u) = 0", lengths=(1.0,), fields=("u",))
    grid = Grid((33,), (1.0,), (0.0,), ("ends",))
    data = ArrayTrajectories(
        u[None, :, None].astype(np.float32), grid, dt=0.05, fields=("u",), domain=domain
    )
    equation = parse_equation("dt(u) = D*d2x(u)", dims=1)
    # Single precision, a few roundings a step; without diffusion the last frame is off by 9 %.
    assert rollout_error(equation, {"D": D}, data, data) < 2e-5
    assert rollout_error(equation, {"D": 0.0}, data, data) > 0.03
