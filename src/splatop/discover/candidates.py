"""Candidate terms, and the products of plain derivatives that they are sums of."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..derivative import laplacian
from ..equation.expression import Expression, FieldDerivative, Monomial
from ..equation.limits import bounded_work
from ..equation.parser import Parser
from ..equation.printing import format_expression
from ..equation.tokens import Source, Token
from ..errors import SplatopError

# Weights are sums of small whole numbers: less than this of the largest is rounding.
_DEPENDENT = 1e-9


@dataclass(frozen=True)
class Candidate:
    """What one coefficient multiplies: an expression for each field in whose equation it stands.

    A vector has a side in the equation of each of its components.
    """

    sides: tuple[tuple[str, Expression], ...]

    @classmethod
    def of(cls, field: str, expression: Expression) -> "Candidate":
        return cls(((field, expression.canonical()),))

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(field for field, _ in self.sides)

    def side(self, field: str) -> Expression:
        return dict(self.sides).get(field, Expression())

    def times(self, field: str, number: str) -> tuple[bool, str]:
        """A number or a name times the side in a field's equation: whether it is negative, and
        the rest as text."""
        side = self.side(field)
        minus = number.startswith("-")
        number = number.removeprefix("-")
        if len(side.monomials) == 1:
            ((monomial, weight),) = side.monomials
            minus ^= weight < 0
            side = Expression(((monomial, abs(weight)),))
        text = format_expression(side)
        if text == "1":
            return minus, number
        return minus, f"{number}*({text})" if len(side.monomials) > 1 else f"{number}*{text}"

    def __str__(self) -> str:
        if len(self.sides) == 1:
            return format_expression(self.sides[0][1])
        inside = "; ".join(f"{field}: {format_expression(side)}" for field, side in self.sides)
        return f"[{inside}]"


class Basis:
    """The distinct products that candidates are sums of, in order of appearance."""

    def __init__(self) -> None:
        self.monomials: dict[Monomial, int] = {}

    def __len__(self) -> int:
        return len(self.monomials)

    def row(self, side: Expression) -> dict[int, float]:
        """Weights of the products that add up to an expression."""
        with bounded_work():
            plain = plain_expression(side)
        return {
            self.monomials.setdefault(monomial, len(self.monomials)): number
            for monomial, number in plain.monomials
        }

    def expressions(self) -> tuple[Expression, ...]:
        return tuple(Expression(((monomial, 1.0),)) for monomial in self.monomials)


def plain_expression(side: Expression) -> Expression:
    """With each Laplacian written as its sum of second derivatives."""
    parts = []
    for monomial, number in side.monomials:
        product = Expression.number(number)
        for atom, exponent in monomial:
            if isinstance(atom, FieldDerivative) and atom.laplacians and isinstance(exponent, int):
                product = product * _spelled_out(atom) ** exponent
            else:
                product = product * Expression.product([(atom, exponent)])
        parts.append(product)
    return Expression.sum(parts)


def _spelled_out(atom: FieldDerivative) -> Expression:
    operator = laplacian(len(atom.index))
    for _ in range(atom.laplacians - 1):
        operator = operator @ laplacian(len(atom.index))
    return Expression.sum(
        Expression.product(
            [(FieldDerivative(atom.field, _plus(atom.index, more), 0, atom.inverses), 1)], weight
        )
        for more, weight in operator.terms
    )


def _plus(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def independent(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates without those that are sums of earlier ones."""
    candidates = list(dict.fromkeys(candidates))
    matrix = _matrix(candidates)
    kept: list[int] = []
    basis = np.zeros((0, matrix.shape[1]))
    for index, row in enumerate(matrix):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        if np.linalg.norm(rest) > _DEPENDENT * np.linalg.norm(row):
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
            kept.append(index)
    return [candidates[index] for index in kept]


def check_independent(candidates: Sequence[Candidate]) -> None:
    """Refuse candidates of which one is a sum of others, and name them."""
    matrix = _matrix(candidates)
    for index in range(len(candidates)):
        before = matrix[:index]
        if not matrix[index].any():
            raise SplatopError(f"expected candidates that are not zero, got {candidates[index]}")
        weights, *_ = np.linalg.lstsq(before.T, matrix[index], rcond=None)
        if np.abs(before.T @ weights - matrix[index]).max() <= _DEPENDENT:
            parts = [f"{w:g}*{candidates[i]}" for i, w in enumerate(weights) if abs(w) > 1e-9]
            raise SplatopError(
                "expected candidate terms that are linearly independent, got "
                f"{candidates[index]}, which is {' + '.join(parts)}: leave one of them out"
            )


def _matrix(candidates: Sequence[Candidate]) -> np.ndarray:
    """One row of weights for each candidate, over the products of every field's equation."""
    bases: dict[str, Basis] = {}
    rows = [
        {(f, i): w for f, s in c.sides for i, w in bases.setdefault(f, Basis()).row(s).items()}
        for c in candidates
    ]
    places = {key: i for i, key in enumerate(dict.fromkeys(itertools.chain.from_iterable(rows)))}
    matrix = np.zeros((len(rows), max(1, len(places))))
    for row, weights in zip(matrix, rows, strict=True):
        for key, weight in weights.items():
            row[places[key]] = weight
    return matrix


def parse_terms(text: str, *, dims: int, fields: tuple[str, ...]) -> list[Expression]:
    """`"u, u^2, u*dx(u)"` as expressions of the fields, without names of coefficients."""
    source = Source(text)
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in source.tokens():
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.kind == "end" or (token.text == "," and not depth):
            pieces[-1].append(Token("end", "", token.at))
            pieces.append([])
        else:
            pieces[-1].append(token)
    found: list[Expression] = []
    with bounded_work():
        for piece in pieces[:-1]:
            if piece[0].kind != "end" and "?" in (token.text for token in piece):
                raise source.error("expected terms without ?", piece[0].at)
            parser = Parser(source, piece, dims=dims, fields=fields, coefficients=())
            side = parser.right_side()
            if not side:
                raise source.error("expected a term that is not zero", piece[0].at)
            found.append(side)
    return found
