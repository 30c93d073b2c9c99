"""Reports of states between walls at which values are set, without what these account for."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from .dynamics import Dynamics
from .observations import Observations
from .observe import look


def without_lift(observations: Observations, dynamics: Dynamics) -> Observations:
    """Reports less what the values set at the edges account for."""
    scheme = dynamics.scheme
    if scheme is None:
        return observations
    values = observations.values.copy()
    zero = jnp.zeros((len(dynamics.fields), *dynamics.space.shape))
    along = dynamics.space.sampled(dynamics.grid.points, dynamics.grid.layout)
    rows = dynamics.evaluator.rows(observations.places)
    channel = np.array([dynamics.fields.index(name) for name in observations.fields])
    times = observations.times if scheme.moving else np.zeros(len(values))
    for time in np.unique(times):
        lifted = scheme.lifted({**dynamics.coefficients, **dynamics.clock(float(time))})
        if lifted is None:
            return observations
        here = np.flatnonzero(times == time)
        state = jnp.asarray(scheme.leave(zero, along, lifted))
        seen = np.asarray(look(state, tuple(jnp.asarray(r[here]) for r in rows)))
        values[here] -= seen[channel[here], np.arange(len(here))]
    return replace(observations, values=values)
