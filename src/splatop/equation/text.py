"""Equations as text: `dt(u) = -v*(dx(u) + dy(u)) + D*lap(u)`. docs/equations.md has the grammar."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import SplatopError, unknown_name
from .equation import Equation
from .expression import bounded_work
from .grouping import group_terms
from .parser import Parser, meaning
from .tokens import Source, Token

Statement = tuple[Token, list[Token]]  # the field, and the tokens of its right-hand side


def parse_equation(
    text: str,
    *,
    dims: int,
    coefficients: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    unknown: Iterable[str] = (),
) -> Equation:
    """The equation that a text stands for, as a sum of named terms.

    Any name that is neither a field, a coordinate nor a function is a coefficient; `coefficients`
    limits which names those may be. `fields` are those of the data, in the order of its channels:
    each then needs a `dt(...)` of its own. Where several coefficients multiply one another, one in
    `unknown` stands in front of the term, as identification needs it.
    """
    if dims not in (1, 2, 3):
        raise SplatopError(f"expected an equation in 1, 2 or 3 dimensions, got {dims}")
    source = Source(text)
    statements = _statements(source)
    names = tuple(left.text for left, _ in statements)
    if fields is not None:
        fields = tuple(fields)
        _check_fields(source, names, fields)
        statements.sort(key=lambda statement: fields.index(statement[0].text))
        names = fields
    allowed = None if coefficients is None else tuple(coefficients)
    sides = {}
    with bounded_work():
        for left, tokens in statements:
            parser = Parser(source, tokens, dims=dims, fields=names, coefficients=allowed)
            sides[left.text] = parser.right_side()
    if not any(sides.values()):
        raise source.error("every right-hand side is zero: nothing changes", statements[0][0].at)
    return Equation(group_terms(sides, dims=dims, preferred=tuple(unknown)), names)


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


def _statements(source: Source) -> list[Statement]:
    pieces: list[list[Token]] = [[]]
    for token in source.tokens():
        if token.text == ";" or token.kind == "end":
            pieces[-1].append(Token("end", "", token.at))
            pieces.append([])
        else:
            pieces[-1].append(token)
    statements: list[Statement] = []
    for piece in pieces[:-1]:
        if len(piece) == 1 and statements:
            continue  # a semicolon at the end
        if [t.text for t in piece[:2]] != ["dt", "("] or [t.text for t in piece[3:5]] != [")", "="]:
            raise source.error(
                "expected a left-hand side dt(field) = ...: say which field the equation is for",
                piece[0].at,
            )
        field = piece[2]
        if field.kind != "name" or meaning(field.text):
            raise source.error(
                f"expected a field's name inside dt(...), got {field.text!r}, which is "
                f"{meaning(field.text) or 'not a name'}",
                field.at,
            )
        if field.text in (other.text for other, _ in statements):
            raise source.error(f"expected one equation for {field.text}, got a second", field.at)
        statements.append((field, piece[5:]))
    return statements


def _check_fields(source: Source, names: tuple[str, ...], fields: tuple[str, ...]) -> None:
    for name in names:
        if name not in fields:
            at = re.search(rf"dt\s*\(\s*{name}\s*\)", source.text)
            message = str(unknown_name("field of the data", name, fields))
            raise source.error(message, at.start() if at else 0)
    missing = [name for name in fields if name not in names]
    if missing:
        raise source.error(
            f"expected an equation for each field of the data ({', '.join(fields)}), "
            f"got none for {', '.join(missing)}: add '; dt({missing[0]}) = ...'",
            len(source.text.rstrip()),
        )
