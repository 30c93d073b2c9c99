"""Frames as states in which an equation can be followed in time, whatever their domain."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..equation import Equation
from ..signal import Signal, held
from ..stepper import INTERVAL, TIME, Coefficients
from .noise import Spectrum

# A step from one frame to the next, of a state and when it is.
Advance = Callable[..., Array]
# Derivatives of frames `(S, L, C, *Q)` by the number of an axis and the order, at the points where
# products are made.
Derived = dict[tuple[int, int], np.ndarray]


class Followed(eqx.Module):
    """What `flow` and `trajectory` ask of frames in a space.

    `states` are `(S, L, C, *M)`: S pieces of L successive frames at the `times` `(S, L)`, in
    numbers of the space. Rows carry `weights`, one per channel. `intervals` between frames are
    given where they differ. `restraint` holds initial states to their expected size, see
    `restraint.py`; without it they are free.
    """

    states: eqx.AbstractVar[np.ndarray]
    times: eqx.AbstractVar[np.ndarray]
    driving: eqx.AbstractVar[np.ndarray | None]
    inputs: eqx.AbstractVar[tuple[str, ...]]
    intervals: eqx.AbstractVar[np.ndarray | None]
    weights: eqx.AbstractVar[np.ndarray]
    restraint: eqx.AbstractVar[np.ndarray | None]

    # --- what differs from domain to domain --------------------------------------------------

    @property
    @abstractmethod
    def freedom(self) -> int:
        """Real degrees of freedom of one frame."""

    @property
    @abstractmethod
    def directions(self) -> float:
        """How many directions of a state are worth following each; beyond, conjugate gradients
        take fewer."""

    @property
    @abstractmethod
    def dims(self) -> int:
        """Dimensions of space."""

    @property
    @abstractmethod
    def waves(self) -> int:
        """How many axes of a state are points around a ring, whose modes are independent."""

    @property
    @abstractmethod
    def multiplicity(self) -> np.ndarray:
        """How many modes of a state each of its `modes` stands for; 0 for those it lacks."""

    @abstractmethod
    def modes(self, states: np.ndarray) -> np.ndarray:
        """States `(..., C, *M)` by modes `(..., C, *K)` of which sizes can be expected."""

    @abstractmethod
    def smoothed(self, states: np.ndarray) -> np.ndarray:
        """Noisy states `(S, C, *M)`, each mode as large as the restraint expects of it."""

    @abstractmethod
    def shells(self, spectrum: Spectrum) -> np.ndarray:
        """The wavenumber of each mode, `(*K)` or `(C, *K)`, that of the highest heard being 1."""

    @abstractmethod
    def carried(self, spectrum: Spectrum) -> np.ndarray:
        """Which modes may carry what is heard of the fields."""

    @abstractmethod
    def floor(self, spectrum: Spectrum) -> np.ndarray:
        """The energy of noise in each mode of a frame: broadcasts with `(C, *K)`."""

    @abstractmethod
    def noise_energy(self, spectrum: Spectrum) -> np.ndarray:
        """The variance of noise in each number of a weighed state, per channel."""

    @abstractmethod
    def weigh(self, states: Any) -> Any:
        """States as residuals are compared: noise is white in them."""

    @abstractmethod
    def rows(self, weighed: np.ndarray) -> np.ndarray:
        """Weighed states `(..., C, *M)` by modes, whose noise is as large as that of numbers."""

    @abstractmethod
    def basis(self) -> np.ndarray:
        """States `(n, C, *M)` that span all of them."""

    @abstractmethod
    def confined(self, states: Array) -> Array:
        """States `(S, C, *M)` as an equation begins with them."""

    @abstractmethod
    def held(self, states: Array) -> Array:
        """States `(S, C, *M)` over their expected size, in units of the noise: zeros are expected
        of them."""

    @abstractmethod
    def propagator(
        self, equation: Equation, coefficients: Coefficients, dt: float, substeps: int | Array
    ) -> Advance:
        """The map from one frame to the next, of a state and when it is."""

    @abstractmethod
    def seen(self, coefficients: Coefficients, dt: float) -> Array | None:
        """In how many frames each mode is seen; None where modes are coupled.

        A mode that is m times as large from frame to frame is seen `Σ m^2n` times in L frames.
        """

    @abstractmethod
    def frames_seen(self, coefficients: Coefficients, dt: float) -> np.ndarray:
        """The same in the layout of `modes`; all frames where they are coupled."""

    @abstractmethod
    def preconditioner(self, coefficients: Coefficients, dt: float) -> Callable[[Array], Array]:
        """About the inverse of the normal matrix of one state, if modes only decayed."""

    @abstractmethod
    def derived(
        self, states: np.ndarray, coefficients: Coefficients, wanted: set[tuple[int, int]]
    ) -> Derived:
        """Derivatives of frames `(S, L, C, *M)`."""

    @abstractmethod
    def project(self, values: np.ndarray) -> np.ndarray:
        """Values where derivatives are as states `(S, L, C, *M)`."""

    # --- what is the same for all -------------------------------------------------------------

    @property
    def drive(self) -> dict[str, Any]:
        """The inputs of each piece over time, by name."""
        if self.driving is None:
            return {}
        return {
            name: Signal(self.driving[:, :, n], self.times) for n, name in enumerate(self.inputs)
        }

    def moment(self, piece: int, frame: int) -> dict[str, Any]:
        """When one of the frames is, and what its inputs are."""
        return moment_of(self.inputs, self.times, self.driving, piece, frame)

    @property
    def when(self) -> dict[str, Any]:
        """When each step from frame to frame begins, `(S, L - 1)`, and how long it is where that
        differs."""
        found = {TIME: self.times[:, :-1]}
        return found if self.intervals is None else {**found, INTERVAL: self.intervals}

    def of(self, choose: Callable[[np.ndarray], np.ndarray]) -> "Followed":
        """The same of other pieces, cut from these."""
        times = choose(self.times)
        intervals = None if self.intervals is None else np.diff(times, axis=1)
        driving = None if self.driving is None else choose(self.driving)
        return replace(
            self, states=choose(self.states), times=times, intervals=intervals, driving=driving
        )

    @property
    def size(self) -> float:
        """The norm of all frames, weighted as residuals are."""
        return float(np.linalg.norm(self.weigh(self.states)))

    @property
    def change(self) -> float:
        """The size of what happens between the frames, weighted as residuals are."""
        return float(np.linalg.norm(self.weigh(np.diff(self.states, axis=1))))

    def noise(self, spectrum: Spectrum) -> float:
        """The expected size of white noise in one frame, weighted as residuals are."""
        share = self.freedom / len(self.weights)
        return float(np.sqrt(share * np.sum(self.noise_energy(spectrum))))


def as_precise(state: Array, values: Any) -> Any:
    """Numbers as precise as those of a state: what is computed with it stays so."""

    def cast(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        kind = jnp.result_type(state.dtype, jnp.complex64)
        return jnp.asarray(leaf).astype(kind if jnp.iscomplexobj(leaf) else state.dtype)

    return jax.tree.map(cast, values)


def moment_of(
    inputs: tuple[str, ...], times: np.ndarray, driving: np.ndarray | None, piece: int, frame: int
) -> dict[str, Any]:
    """When a frame of a piece is, and what its inputs are."""
    found: dict[str, Any] = {TIME: jnp.asarray(times[piece, frame])}
    if driving is not None:
        for n, name in enumerate(inputs):
            found[name] = held(driving[piece, frame, n], times[piece, frame])
    return found
