"""`?` in an equation: what is not known of it, and what that may depend on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .calculus import collect_laplacians
from .expression import Expression, FieldDerivative
from .questions import split
from .tokens import Token
from .vectors import scalar

if TYPE_CHECKING:
    from .parser import Parser


@dataclass(frozen=True)
class UnknownPart:
    """A `?`, what it may depend on (None is anything), and where it stands."""

    arguments: tuple[FieldDerivative, ...] | None
    token: Token


def read_unknown(parser: "Parser", token: Token) -> Expression:
    """`?` or `?(u, dx(u))`: the parser remembers it, and it adds nothing to the known terms."""
    if parser.depth or not _adds(parser):
        raise parser.error(
            "expected ? as a term of its own, as in dt(u) = D*lap(u) + ?: it stands for all that "
            "is not known",
            token,
        )
    if parser.unknown is not None:
        raise parser.error("expected ? once in a field's equation, got a second", token)
    arguments = _arguments(parser) if parser.next.text == "(" else None
    if parser.next.kind != "end" and parser.next.text not in ("+", "-"):
        raise parser.error(
            f"expected ? as a term of its own, got {parser.next.text!r} behind it", parser.next
        )
    parser.unknown = UnknownPart(arguments, token)
    return Expression()


def _adds(parser: "Parser") -> bool:
    """Whether the token just taken begins a summand with a plus."""
    first = before = parser.position - 2
    while before >= 0 and parser.tokens[before].text == "+":
        before -= 1
    if before < 0:
        return True
    left = parser.tokens[before]
    return before < first and (left.kind != "symbol" or left.text in (")", "?"))


def _arguments(parser: "Parser") -> tuple[FieldDerivative, ...]:
    found: list[FieldDerivative] = []
    opening = parser.take()
    parser.enter(opening)
    while True:
        place = parser.next
        value = parser.sum()
        value = parser.compute(place, lambda one: collect_laplacians(scalar(one, "?")), value)
        parts = [_bare(part) for part in split(value) if part]
        if not parts or None in parts:
            raise parser.error(
                "expected fields or derivatives of fields inside ?(...), as in "
                f"?({parser.fields[0]}, dx({parser.fields[0]}))",
                place,
            )
        found += [part for part in parts if part is not None]
        if parser.next.text != ",":
            break
        parser.take()
    parser.close(opening)
    return tuple(dict.fromkeys(found))


def _bare(expression: Expression) -> FieldDerivative | None:
    """The derivative of a field that an expression is, if it is one."""
    ((monomial, number), *others) = expression.monomials
    if others or number != 1 or len(monomial) != 1:
        return None
    atom, exponent = monomial[0]
    return atom if isinstance(atom, FieldDerivative) and exponent == 1 else None
