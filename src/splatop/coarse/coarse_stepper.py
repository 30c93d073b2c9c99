"""A stepper of a coarse grid, seen from the user's own."""

from typing import Any

import equinox as eqx

from ..spectral import Field
from ..stepper import Coefficients, Stepper, StepperAround
from .projection import Other, expand, truncate
from .refiner import Refiner


class CoarseStepper(StepperAround):
    """Projects a state into the coarse space, steps there, and evaluates the result on the state's
    own grid, or with `stays` on the coarse one. A `refiner` adds its guess of smaller scales.

    A rollout stays in the coarse space from its first step to its last (`stepper.rollout`), which
    changes nothing: what comes out of the space is in it.
    """

    coarse: Stepper
    points: tuple[int, ...] = eqx.field(static=True)
    stays: bool = eqx.field(static=True, default=False)
    refiner: Refiner | None = None
    words: tuple[str, ...] = eqx.field(static=True, default=())  # of the axes: `axis_words`

    def __call__(self, u: Field, coefficients: Coefficients) -> Other:
        return self.leave(self.coarse(self.enter(u), coefficients), tuple(u.shape[1:]))

    def enter(self, u: Field) -> Other:
        return truncate(u, self.points, self.words)

    def leave(self, state: Field, points: tuple[int, ...]) -> Other:
        if self.stays:
            return state
        finer = self.refiner is not None and all(
            n > m for n, m in zip(points, state.shape[1:], strict=True)
        )
        field = expand(state, points, self.words)
        return field + self.refiner(state, points) if finer and self.refiner else field

    @property
    def carried(self) -> Stepper:
        return self.coarse

    @property
    def inside(self) -> Stepper:
        return self.coarse

    @property
    def embedded(self) -> Any:
        return self.coarse.embedded

    @property
    def physics_alone(self) -> Stepper | None:
        physics = self.coarse.embedded
        return (
            None
            if physics is None
            else CoarseStepper(physics, self.points, self.stays, words=self.words)
        )
