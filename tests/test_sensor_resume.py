"""An interrupted analysis goes on where it stopped, and ends in the same numbers."""

import numpy as np
import pytest

from splatop import Observations, SplatopError, assimilate
from splatop.assimilate.resume import Journal


def test_a_journal_gives_back_what_was_done(tmp_path):
    path, calls = tmp_path / "kept.npz", []

    def compute(number):
        calls.append(number)
        return {"x": np.arange(number), "done": np.array(True)}

    first = Journal(path)
    first.once("a", lambda: compute(2))
    first.once("b", lambda: compute(3))
    again = Journal(path)
    assert again.once("b", lambda: compute(9))["x"].tolist() == [0, 1, 2]
    assert again.once("a", lambda: compute(9))["x"].tolist() == [0, 1]
    assert again.once("a", lambda: compute(4))["x"].tolist() == [0, 1, 2, 3]
    assert calls == [2, 3, 4]
    again.remove()
    assert not path.exists()
    path.write_bytes(b"PK damaged")
    with pytest.raises(SplatopError, match="remove it"):
        Journal(path)


@pytest.mark.slow
def test_an_interrupted_run_ends_in_the_same_numbers(tmp_path):
    rng = np.random.default_rng(1)
    t, x = np.repeat(0.1 * np.arange(13), 6), np.tile(rng.uniform(0, 1, 6), 13)
    u = np.sin(2 * np.pi * (x - 0.1 * t)) + 0.02 * rng.normal(size=len(x))
    obs = Observations(t, x, "u", u, sigma=0.02)

    def run(**how):
        return assimilate(
            obs,
            "dt(u) = -c*dx(u) - u*dx(u) + D*d2x(u)",
            coefficients={"c": 0.1, "D": 0.02},
            lengths=1.0,
            points=24,
            dt=0.1,
            window=6,
            **how,
        )

    class Interrupt(Exception):
        pass

    steps = {"whole": 0, "cut": 0, "again": 0}

    def counting(name, most=1000):
        def count(_):
            steps[name] += 1
            if steps[name] == most:
                raise Interrupt

        return count

    whole = run(report=counting("whole"))
    kept = tmp_path / "kept.npz"
    with pytest.raises(Interrupt):
        run(keep=kept, report=counting("cut", 4))
    assert kept.exists()
    again = run(keep=kept, report=counting("again"))
    assert not kept.exists()
    assert np.array_equal(again.minimum.x, whole.minimum.x)
    assert np.array_equal(again.record().std, whole.record().std)
    assert steps["again"] < steps["whole"]
