"""An equation is a value: terms that add up to du/dt."""

import equinox as eqx
import jax.numpy as jnp

from ..derivative import Derivative
from ..errors import SplatopError, unknown_name
from ..jets import Jet
from ..spectral import Field
from ..stepper import Coefficients
from .terms import Term


class Equation(eqx.Module):
    """`du/dt = Σ_m λ_m F_m[u, derivatives]` for the fields named, one name per channel."""

    terms: tuple[Term, ...]
    fields: tuple[str, ...] = eqx.field(static=True, default=("u",))

    def __check_init__(self):
        names = self.term_names
        if not names or len(set(names)) != len(names):
            raise SplatopError(
                f"expected at least one term, each with a name of its own, got {names}"
            )

    @property
    def term_names(self) -> tuple[str, ...]:
        return tuple(term.name for term in self.terms)

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Every coefficient the terms use, in order of appearance."""
        names = [
            name
            for term in self.terms
            for name in (term.coefficient, *term.inner_coefficients)
            if name is not None
        ]
        return tuple(dict.fromkeys(names))

    @property
    def degree(self) -> float:
        """Polynomial degree in the state, where a factor that varies in space counts as one more;
        1 if the equation acts on each Fourier mode by itself."""
        return float(max(term.degree for term in self.terms))

    @property
    def leaves_the_band(self) -> bool:
        """Products and what is given do; linear terms stay inside the band of a state."""
        return self.degree > 1 or bool(self.inputs)

    @property
    def uses_coordinates(self) -> bool:
        """Whether a term's text says where in the box it acts."""
        return any(getattr(term, "uses_coordinates", False) for term in self.terms)

    @property
    def uses_time(self) -> bool:
        """Whether a term changes in time by itself: t stands in it, or an input."""
        return any(term.uses_time or term.reads for term in self.terms)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Known fields that terms read, which a jet has as channels behind the equation's own."""
        return next((term.reads for term in self.terms if term.reads), ())

    @property
    def rates(self) -> frozenset[str]:
        """Coefficients that multiply the time inside a function, such as a frequency."""
        return frozenset().union(*(term.rates for term in self.terms))

    def placed_at(self, origin: tuple[float, ...]) -> "Equation":
        """The equation on a box that begins at `origin`, which is where x, y, z then begin.

        As it is parsed it stands on a box that begins at 0.
        """
        return Equation(tuple(term.placed_at(tuple(origin)) for term in self.terms), self.fields)

    def derivatives(self, dims: int) -> frozenset[Derivative]:
        """What a jet must supply."""
        return frozenset().union(*(term.derivatives(dims) for term in self.terms))

    def __call__(self, jet: Jet, coefficients: Coefficients) -> Field:
        self.check_coefficients(coefficients)
        given = jet.state.shape[0]
        if given not in (len(self.fields), len(self.fields) + len(self.inputs)):
            names = ", ".join((*self.fields, *self.inputs))
            raise SplatopError(
                f"expected a state with the channels {names}, got shape {jet.state.shape}"
            )
        return total(self.terms, jet, coefficients, channels=len(self.fields))

    def columns(self, jet: Jet, coefficients: Coefficients) -> dict[str, tuple[Field, ...]]:
        """The parts of each term without its coefficient: what identification regresses on."""
        return {term.name: term.parts(jet, coefficients) for term in self.terms}

    def without(self, *names: str) -> "Equation":
        """The equation with these terms dropped: partially known physics."""
        for name in names:
            if name not in self.term_names:
                raise unknown_name("term", name, self.term_names)
        return Equation(tuple(term for term in self.terms if term.name not in names), self.fields)

    def check_coefficients(self, coefficients: Coefficients) -> None:
        missing = [name for name in self.coefficient_names if name not in coefficients]
        if missing:
            raise SplatopError(
                f"expected coefficients {', '.join(self.coefficient_names)}, "
                f"got {', '.join(coefficients) or 'none'}: "
                f"give {', '.join(missing)}, or identify it from data"
            )


def total(terms: tuple[Term, ...], jet: Jet, coefficients: Coefficients, *, channels: int) -> Field:
    """The sum of terms for the first `channels` of a jet; inputs are behind these."""
    own = jet.first(channels)
    return sum(
        (term(jet if term.reads else own, coefficients) for term in terms),
        start=jnp.zeros_like(own.state),
    )
