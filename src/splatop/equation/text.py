"""Equations as text: `dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)`. docs/equations.md has the grammar."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from ..errors import SplatopError, unknown_name
from .equation import Equation
from .expression import Expression, FieldDerivative
from .grouping import group_terms
from .limits import bounded_work
from .parser import COMPLEX_FUNCTIONS, IM, RE, Parser
from .questions import split
from .statements import Statement, statements_of
from .tokens import Source, Token


@dataclass(frozen=True)
class PartialEquation:
    """What is known of an equation, and the fields in whose equations something is not.

    `known` is None if nothing is. `unknown` holds, for each field whose equation has a `?`, what
    that may depend on: derivatives of fields, or None for anything.
    """

    known: Equation | None
    unknown: dict[str, tuple[FieldDerivative, ...] | None]
    fields: tuple[str, ...]

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return () if self.known is None else self.known.coefficient_names


def parse_equation(
    text: str,
    *,
    dims: int,
    coefficients: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    unknown: Iterable[str] = (),
    inputs: Iterable[str] = (),
) -> Equation:
    """The equation that a text stands for, as a sum of named terms.

    `inputs` are fields that are known at all times and have no equation of their own.

    Any name that is neither a field, a coordinate nor a function is a coefficient; `coefficients`
    limits which names those may be. `fields` are those of the data, in the order of its channels:
    each then needs a `dt(...)` of its own. Where several coefficients multiply one another, one in
    `unknown` stands in front of the term, as identification needs it.

    A complex equation of a field psi becomes the real ones of `psi_re` and `psi_im`. A field is
    complex where the data have these two instead of it; without data, where its right-hand side
    has the imaginary unit in it and is not real, or becomes complex by such a field.
    In such an equation, and wherever a function of complex values or a number such as `1i` stands,
    `i` is the imaginary unit, unless it is a field or one of `coefficients` or `unknown`.
    """
    source = Source(text)
    found = _parsed(source, dims, coefficients, fields, tuple(unknown), tuple(inputs))
    if found.unknown:
        at = next(token.at for token in source.tokens() if token.text == "?")
        raise source.error(
            "expected an equation without an unknown part here, got ?: find it first with "
            "`splatop discover`, or leave it out",
            at,
        )
    assert found.known is not None
    return found.known


def parse_partial_equation(
    text: str,
    *,
    dims: int,
    fields: Iterable[str] | None = None,
    unknown: Iterable[str] = (),
    inputs: Iterable[str] = (),
) -> PartialEquation:
    """The same for a text in which `?` may stand for what is not known, once for each field."""
    return _parsed(Source(text), dims, None, fields, tuple(unknown), tuple(inputs))


def has_unknown(text: str) -> bool:
    """Whether a `?` stands in the text of an equation."""
    return "?" in text


def _parsed(
    source: Source,
    dims: int,
    coefficients: Iterable[str] | None,
    fields: Iterable[str] | None,
    unknown: tuple[str, ...],
    inputs: tuple[str, ...] = (),
) -> PartialEquation:
    if dims not in (1, 2, 3):
        raise SplatopError(f"expected an equation in 1, 2 or 3 dimensions, got {dims}")
    statements = statements_of(source)
    names = tuple(left.text for left, _ in statements)
    allowed = None if coefficients is None else tuple(coefficients)
    held: frozenset[str] | None = None  # the complex fields, if data say which
    if fields is not None:
        fields = tuple(fields)
        held = frozenset(n for n in names if n not in fields and {n + RE, n + IM} <= {*fields})
        _check_fields(source, names, fields, held)
    for left, _ in statements:
        if left.text in inputs:
            raise source.error(
                f"expected no equation for {left.text}, which is an input: it is given", left.at
            )
    named = {*names, *(fields or ()), *(allowed or ()), *unknown, *inputs}
    unit = "i" not in named and (bool(held) or _marked(statements, names) or allowed is not None)
    parsers = partial(
        Parser, source, dims=dims, fields=names, coefficients=allowed, unit=unit, inputs=inputs
    )

    def has_unit(tokens: list[Token]) -> bool:
        return any(t.kind == "imaginary" or (unit and t.text == "i") for t in tokens)

    with bounded_work():
        sides, found, missing = _right_sides(statements, parsers, held, has_unit)
    real = _real_sides(source, statements, sides, found)
    if not any(real.values()) and not missing:
        raise source.error("every right-hand side is zero: nothing changes", statements[0][0].at)
    order = tuple(real) if fields is None else fields
    ordered = {name: real[name] for name in order}
    known = None
    if any(real.values()):
        known = Equation(group_terms(ordered, dims=dims, preferred=unknown, inputs=inputs), order)
    whole = {name + part: name for name in found for part in (RE, IM)}
    asked = {n: missing[w] for n in order if (w := whole.get(n, n)) in missing}
    return PartialEquation(known, asked, order)


def parse_valued_equation(text: str, *, dims: int, values: Iterable[str]) -> Equation:
    """The equation with these coefficients; an `i` that is none of them is the imaginary unit."""
    values = tuple(values)
    equation = parse_equation(text, dims=dims)
    if "i" not in equation.coefficient_names or "i" in values:
        return equation
    others = [name for name in equation.coefficient_names if name != "i"]
    return parse_equation(text, dims=dims, coefficients=others)


def parse_coefficients(text: str) -> dict[str, float]:
    """`"v=0.025, D=2e-6"` as numbers by name."""
    source = Source(text)
    values: dict[str, float] = {}
    at = 0
    for piece in text.split(","):
        place = at + len(piece) - len(piece.lstrip())
        name, equals, number = (part.strip() for part in piece.partition("="))
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise source.error(
                f"expected name=number, got {piece.strip()!r}: write for example v=0.025,D=2e-6",
                place,
            )
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise source.error(f"expected a finite number for {name}, got {number!r}", place)
        if name in values:
            raise source.error(f"expected one value for {name}, got a second", place)
        values[name] = value
        at += len(piece) + 1
    return values


def split_coefficients(
    equation: Equation, given: Mapping[str, Any]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """The values given, and the names left to identify; a name the equation lacks is refused."""
    for name, value in given.items():
        if not equation.coefficient_names:
            raise SplatopError(
                f"expected no coefficient for this equation, which names none, got '{name}': leave "
                "it out, or write its name into the equation"
            )
        if name not in equation.coefficient_names:
            raise unknown_name("coefficient", name, equation.coefficient_names)
        check_number(name, value)
    missing = tuple(name for name in equation.coefficient_names if name not in given)
    return {name: float(value) for name, value in given.items()}, missing


def check_number(name: str, value: object) -> None:
    """Refuse a coefficient that is not one finite real number."""
    try:
        if isinstance(value, str | bytes | bool):
            raise TypeError
        finite = math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        finite = False
    if not finite:
        raise SplatopError(f"expected a finite number for the coefficient {name}, got {value!r}")


def _marked(statements: list[Statement], names: tuple[str, ...]) -> bool:
    """Whether the text itself says that it is about complex values."""
    functions = {name for name in COMPLEX_FUNCTIONS if name not in names}
    return any(
        token.kind == "imaginary" or (token.text in functions and after.text == "(")
        for _, tokens in statements
        for token, after in pairwise(tokens)
    )


def _right_sides(
    statements: list[Statement],
    parsers: Callable[..., Parser],
    held: frozenset[str] | None,
    has_unit: Callable[[list[Token]], bool],
) -> tuple[dict[str, Expression], frozenset[str], dict[str, tuple[FieldDerivative, ...] | None]]:
    """The right-hand sides by field, the fields that are complex, and what has a `?`.

    Without data these are the ones whose right-hand side has the imaginary unit in it and is not
    real for complex fields, and those whose right-hand side is complex because of them.
    """

    missing: dict[str, tuple[FieldDerivative, ...] | None] = {}

    def right_side(name: str, tokens: list[Token], complex_fields: frozenset[str]) -> Expression:
        parser = parsers(tokens=tokens, complex_fields=complex_fields)
        side = parser.right_side()
        if parser.unknown is not None:
            missing[name] = parser.unknown.arguments
        return side

    found, again, sides = held or frozenset(), statements, {}
    if held is None:
        every = frozenset(left.text for left, _ in statements)
        found = frozenset(
            left.text
            for left, tokens in statements
            if has_unit(tokens) and _has_imaginary(right_side(left.text, tokens, every))
        )
    while again:
        for left, tokens in again:
            sides[left.text] = right_side(left.text, tokens, found)
        if held is not None:
            break
        more = {left.text for left, _ in again if _has_imaginary(sides[left.text])} - found
        found |= more
        changed = more | {name + part for name in more for part in (RE, IM)}
        again = [one for one in statements if any(token.text in changed for token in one[1])]
    return sides, found, missing


def _has_imaginary(side: Expression) -> bool:
    """Whether there is more of an imaginary part than rounding leaves where it cancels."""
    _, imaginary = split(side)
    largest = max((abs(number) for _, number in side.monomials), default=0.0)
    return any(abs(number) > 1e-15 * largest for _, number in imaginary.monomials)


def _real_sides(
    source: Source,
    statements: list[Statement],
    sides: Mapping[str, Expression],
    complex_fields: frozenset[str],
) -> dict[str, Expression]:
    """One right-hand side for each real field: a complex field has two."""
    real: dict[str, Expression] = {}
    for left, tokens in statements:
        name, side = left.text, sides[left.text]
        if name not in complex_fields and _has_imaginary(side):
            raise source.error(
                f"expected a real right-hand side for the real field {name}, got one with an "
                f"imaginary part: take re(...) of it, or give data of a complex {name}, whose "
                f"fields are {name}{RE} and {name}{IM}",
                tokens[0].at,
            )
        parts = [name + RE, name + IM] if name in complex_fields else [name]
        for part, one in zip(parts, split(side), strict=False):
            if part in real or (part != name and part in sides):
                raise source.error(
                    f"expected one equation for {part}, got a second: it is a part of the complex "
                    f"field {part.removesuffix(RE).removesuffix(IM)}",
                    left.at,
                )
            real[part] = one
    return real


def _check_fields(
    source: Source,
    names: tuple[str, ...],
    fields: tuple[str, ...],
    complex_fields: frozenset[str],
) -> None:
    for name in names:
        if name not in fields and name not in complex_fields:
            at = re.search(rf"dt\s*\(\s*{name}\s*\)", source.text)
            message = str(unknown_name("field of the data", name, fields))
            if len(fields) == len(names) == 1:
                written = f"write dt({fields[0]}), or " if fields[0].isidentifier() else ""
                message += f"; {written}read it as {name}: --fields {name}={fields[0]}"
            raise source.error(message, at.start() if at else 0)
    given = {*names, *(name + part for name in complex_fields for part in (RE, IM))}
    missing = [name for name in fields if name not in given]
    if missing:
        others = [name for name in fields if name in given]
        message = (
            f"expected an equation for each field of the data ({', '.join(fields)}), "
            f"got none for {', '.join(missing)}: add '; dt({missing[0]}) = ...'"
        )
        if others:
            message += (
                f", or take them as known (--fields {','.join(others)} --inputs "
                f"{','.join(missing)}), or leave them out (--fields {','.join(others)})"
            )
        raise source.error(
            message,
            len(source.text.rstrip()),
        )
