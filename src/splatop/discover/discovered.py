"""What discovery returns: an equation, the evidence for its terms, and whether to trust it."""

import math
from dataclasses import dataclass
from typing import Any

from ..errors import finite
from .detect import LeftOut

# Candidates left out that are shown on screen; all are in `left_out`.
SHOWN = 4


@dataclass(frozen=True)
class FoundTerm:
    """One term: `sides` is its text in the equation of each field, without the coefficient.

    `low` and `high` are the 95 % interval. `without` is the share of the change (in amplitude, 1 is
    all of it) that the equation leaves if this term is taken away and the others are fitted anew;
    `support` the share of random selections of the data that choose it. `name` is that of the
    coefficient if the user wrote the term.
    """

    sides: tuple[tuple[str, str], ...]
    coefficient: float
    standard_error: float
    low: float
    high: float
    without: float
    support: float
    name: str | None = None

    @property
    def text(self) -> str:
        if len(self.sides) == 1:
            return self.sides[0][1]
        return "; ".join(f"{field}: {text}" for field, text in self.sides)

    def as_dict(self) -> dict[str, Any]:
        return {
            "fields": [field for field, _ in self.sides],
            "term": self.text,
            "name": self.name,
            "coefficient": finite(self.coefficient),
            "low": finite(self.low),
            "high": finite(self.high),
            "standard_error": finite(self.standard_error),
            "error_without": finite(self.without),
            "support": self.support,
        }


@dataclass(frozen=True)
class Discovered:
    """An equation found: `equation` is its text with numbers, which every command accepts.

    `named` is the same with the names that the user gave to coefficients. `relative_residual` is
    the share of the change that it leaves, `noise_level` the noise over the fields' standard
    deviation. `alternatives` are other sets of terms that the data cannot exclude, `left_out` how
    large a single term could be that was not found, largest first. `trusted` is
    false if one of the `warnings` puts the terms or their coefficients in doubt.
    """

    equation: str
    named: str
    terms: tuple[FoundTerm, ...]
    trusted: bool
    warnings: tuple[str, ...]
    alternatives: tuple[str, ...]
    relative_residual: float
    noise_level: float
    candidates: int
    frames: int
    method: str
    left_out: tuple[LeftOut, ...] = ()

    @property
    def coefficients(self) -> dict[str, float]:
        """Values of the coefficients that the user named."""
        return {term.name: term.coefficient for term in self.terms if term.name is not None}

    def as_dict(self) -> dict[str, Any]:
        return {
            "equation": self.equation,
            "trusted": self.trusted,
            "terms": [term.as_dict() for term in self.terms],
            "alternatives": list(self.alternatives),
            "left_out": [one.as_dict() for one in self.left_out],
            "warnings": list(self.warnings),
            "relative_residual": finite(self.relative_residual),
            "noise_level": finite(self.noise_level),
            "candidates": self.candidates,
            "frames": self.frames,
            "method": self.method,
        }

    def plot(self, ax: Any = None) -> Any:
        """What the error becomes without each term, on matplotlib axes, which it returns."""
        from ..notebook import new_axes

        axes = new_axes(ax)
        rows = range(len(self.terms))
        axes.barh(rows, [term.without for term in self.terms])
        axes.set_yticks(rows, [f"{t.coefficient:.4g} {t.text}" for t in self.terms])
        axes.axvline(self.relative_residual, color="k", linestyle=":")
        axes.set(xlabel="error without the term (dotted: with all)")
        axes.invert_yaxis()
        return axes

    def _repr_html_(self) -> str:
        from ..notebook import card

        trust = "" if self.trusted else " (not trusted)"
        rows = {
            term.text: f"{term.coefficient:.6g} ({term.low:.6g} to {term.high:.6g})"
            for term in self.terms
        }
        notes = [f"not excluded: {text}" for text in self.alternatives]
        notes += [f"warning: {text}" for text in self.warnings]
        return card(self.equation + trust, rows, notes=notes, draw=self.plot)

    def __str__(self) -> str:
        doubt = [] if self.trusted else ["not trusted: see the warnings"]
        lines = [
            f"{term.coefficient:+.6g} {term.text} (95 %: {term.low:.6g} to {term.high:.6g}; "
            f"error without it {term.without:.2g})"
            for term in self.terms
        ]
        close = [f"left out: {one}" for one in self.left_out[:SHOWN]]
        close += [f"not excluded: {text}" for text in self.alternatives]
        warned = [f"warning: {text}" for text in self.warnings]
        return "\n".join([*doubt, self.equation, *lines, *close, *warned])


def number_text(value: float, error: float) -> str:
    """A number with the digits that its error allows for, and two more."""
    if not math.isfinite(value):
        return "0"
    digits = 6
    if value and math.isfinite(error) and error > 0:
        digits = math.ceil(math.log10(abs(value) / error)) + 3
    return f"{value:.{min(max(digits, 4), 10)}g}"
