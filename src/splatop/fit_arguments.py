"""What `fit` is given, as what training takes."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .benchmarks import BENCHMARKS
from .description import describe
from .equation import EXAMPLES, Equation, format_equation, parse_equation
from .equation.expansion import expand
from .errors import SplatopError, unknown_name
from .training import Settings, coarser, preset
from .training.overrides import parse_overrides


def described_terms(equation: str | Equation, dims: int) -> Any:
    """The description of an equation with terms that have no text, else None."""
    if isinstance(equation, str) or all(
        expand(term, equation.fields, dims) is not None for term in equation.terms
    ):
        return None
    return describe(equation, inline=True)


def equation_text(equation: str | Equation, dims: int) -> str:
    """The text of an equation that is given as such, by a name, or as an object."""
    if isinstance(equation, Equation):
        return format_equation(equation, dims=dims)
    named = {name: benchmark.equation_text for name, benchmark in BENCHMARKS.items()}
    named |= {name: example.text for name, example in EXAMPLES.items()}
    if equation in named:
        return named[equation]
    if "=" not in equation:
        raise unknown_name("equation", equation, named)
    return equation


def settings_of(
    name: str, changes: Mapping[str, Any], *, coarse: Mapping[str, Any] | None = None
) -> Settings:
    """A preset, for a model that is `coarse` if need be, with single settings replaced, as values
    or as text."""
    chosen = coarser(preset(name), **coarse) if coarse else preset(name)
    valid = chosen.as_dict()
    for key in changes:
        if key not in valid:
            raise unknown_name("setting", key, valid)
    text = {k: v for k, v in changes.items() if isinstance(v, str)}
    values = {k: v for k, v in changes.items() if k not in text}
    return replace(chosen, **values, **parse_overrides(Settings, text))


def fields_of(equation: str | Equation) -> tuple[str, ...]:
    """The fields that it has a left-hand side for, in their order."""
    if isinstance(equation, Equation):
        return equation.fields
    text = equation_text(equation, 1)
    for dims in (1, 2, 3):  # which of them the data have is not known yet
        with suppress(SplatopError):
            return parse_equation(text, dims=dims).fields
    found = re.findall(r"dt\s*\(\s*(\w+)\s*\)\s*=", text)
    return tuple(dict.fromkeys(found)) or ("u",)
