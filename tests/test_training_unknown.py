"""What decides what `?` stands for: rollouts in the data's own domain."""

import numpy as np
import pytest

from splatop.data import ArrayTrajectories
from splatop.equation import domain_from_text, parse_equation
from splatop.grid import Grid
from splatop.training import Problem, found_terms, preset, train
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


def test_what_explains_nothing_is_said_to():
    names = ("u", "dx(u)")
    said = found_terms.learned_text(names, -0.5, "")
    assert said.startswith("not trusted: nothing was found for ?; a function of u, dx(u)")
    assert found_terms.learned_text(names, 0.98, "all").endswith(
        "explains 98 % of what the known terms leave: all"
    )


@pytest.mark.slow
def test_what_explains_nothing_is_no_finding(tmp_path):
    """Noise from frame to frame: no function of the fields is what changes them."""
    noise = np.random.default_rng(0).normal(size=(1, 40, 1, 16)).astype(np.float32)
    data = ArrayTrajectories(noise, Grid((16,), (1.0,)), dt=1.0, fields=("u",))
    problem = Problem(data=data, equation_text="dt(u) = ?(u, dx(u))")
    settings = preset("smoke").with_overrides({"model": "physics"})
    model = train(tmp_path / "run", problem, settings)
    assert "not trusted: nothing was found for ?" in model.record["summary"]
    assert model.record["unknown"]["distilled"] is None
