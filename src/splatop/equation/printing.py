"""Equations back to text: the normal form, which parses to the same equation, and LaTeX."""

import abc
import re
from fractions import Fraction

from ..domain import AXES
from .equation import Equation
from .expansion import expand
from .expression import (
    Atom,
    Coefficient,
    Coordinate,
    Exponent,
    Expression,
    FieldDerivative,
    Function,
    Group,
    Imaginary,
    Monomial,
    Pi,
    Time,
)
from .grouping import ExpressionTerm
from .text import PartialEquation

_GREEK = re.findall(
    "[A-Za-z]+",
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega",
)


def format_equation(equation: Equation, *, dims: int | None = None) -> str:
    """The normal form `dt(u) = ...; dt(v) = ...`.

    `dims` matters for built-in terms, which know no dimension; without it they print in 2D. A
    term that has no text (a function of the user's own) prints as its name in angle brackets.
    """
    return "; ".join(_lines(equation, _Text(), dims))


def format_partial(partial: PartialEquation) -> str:
    """The normal form of an equation known in part, with `?` where it is not."""
    if partial.known is None:
        lines = [f"dt({field}) = 0" for field in partial.fields]
    else:
        lines = _lines(partial.known, _Text(), None)
    for row, field in enumerate(partial.fields):
        if field in partial.unknown:
            arguments = partial.unknown[field]
            inside = ", ".join(format_expression(Expression.atom(a)) for a in arguments or ())
            mark = f"?({inside})" if arguments else "?"
            head, _, side = lines[row].partition(" = ")
            lines[row] = f"{head} = {mark}" if side == "0" else f"{lines[row]} + {mark}"
    return "; ".join(lines)


def format_expression(expression: Expression) -> str:
    """The normal form of an expression without its equation, such as a value at an edge."""
    return _Text().sum(expression.canonical())


def latex(equation: Equation, *, dims: int | None = None) -> str:
    """The equation in LaTeX; several fields stand one below the other."""
    lines = latex_lines(equation, dims=dims)
    if len(lines) == 1:
        return lines[0]
    aligned = " \\\\\n".join(line.replace(" = ", " &= ", 1) for line in lines)
    return f"\\begin{{aligned}}\n{aligned}\n\\end{{aligned}}"


def latex_lines(equation: Equation, *, dims: int | None = None) -> tuple[str, ...]:
    """One formula per field, without environments, as matplotlib draws them too."""
    return tuple(_lines(equation, _Latex(), dims))


def _lines(equation: Equation, style: "_Style", dims: int | None) -> list[str]:
    known = {term.dims for term in equation.terms if isinstance(term, ExpressionTerm)}
    dims = dims or next(iter(known), 2)
    expanded = [(term, expand(term, equation.fields, dims)) for term in equation.terms]
    lines = []
    for channel, field in enumerate(equation.fields):
        pieces: list[tuple[float, str]] = []
        for term, sides in expanded:
            if sides is None:
                front = [] if term.coefficient is None else [style.name(term.coefficient)]
                pieces.append((1.0, style.product([*front, style.opaque(term.name)])))
            elif sides[channel]:
                pieces.extend(style.pieces(sides[channel], term.coefficient))
        lines.append(f"{style.rate(field)} = {_signed(pieces) or '0'}")
    return lines


def _signed(pieces: list[tuple[float, str]]) -> str:
    text = "".join((" - " if sign < 0 else " + ") + piece for sign, piece in pieces)
    return text[3:] if text.startswith(" + ") else "-" + text[3:] if text else ""


class _Style(abc.ABC):
    """How the pieces of an equation are written; the structure is common."""

    @abc.abstractmethod
    def rate(self, field: str) -> str: ...

    @abc.abstractmethod
    def name(self, name: str) -> str: ...

    @abc.abstractmethod
    def opaque(self, name: str) -> str: ...

    @abc.abstractmethod
    def product(self, factors: list[str]) -> str: ...

    @abc.abstractmethod
    def brackets(self, body: str) -> str: ...

    @abc.abstractmethod
    def product_of(self, monomial: Monomial, magnitude: float) -> str: ...

    def pieces(self, side: Expression, coefficient: str | None) -> list[tuple[float, str]]:
        """Signed summands: those of a coefficient stay together in brackets."""
        front: Monomial = () if coefficient is None else ((Coefficient(coefficient), 1),)
        if not front or len(side.monomials) == 1:
            return [
                (number, self.product_of((*front, *monomial), abs(number)))
                for monomial, number in side.monomials
            ]
        sign = -1.0 if all(number < 0 for _, number in side.monomials) else 1.0
        body = self.sum(side if sign > 0 else -side)
        return [(sign, self.product([self.name(str(coefficient)), self.brackets(body)]))]

    def sum(self, expression: Expression) -> str:
        return (
            _signed(
                [
                    (number, self.product_of(monomial, abs(number)))
                    for monomial, number in expression.monomials
                ]
            )
            or "0"
        )


class _Text(_Style):
    def rate(self, field):
        return f"dt({field})"

    def name(self, name):
        return name

    def opaque(self, name):
        return f"<{name}>"

    def product(self, factors):
        return "*".join(factors)

    def brackets(self, body):
        return f"({body})"

    def product_of(self, monomial, magnitude):
        above, below = [], []
        for atom, exponent in monomial:
            divides = isinstance(exponent, int) and exponent < 0
            if divides and (exponent == -1 or not isinstance(atom, Group)):
                below.append(self.power(atom, -exponent))
            else:
                above.append(self.power(atom, exponent))
        if magnitude != 1 or not above:
            above.insert(0, _number(magnitude))
        return "/".join(["*".join(above), *below])

    def power(self, atom: Atom, exponent: Exponent) -> str:
        text = self.atom(atom)
        if exponent == 1:
            return text
        plain = isinstance(exponent, int) and exponent > 0
        return f"{text}^{exponent}" if plain else f"{text}^({exponent})"

    def atom(self, atom: Atom) -> str:
        match atom:
            case Pi():
                return "pi"
            case Imaginary():
                return "i"
            case Coefficient(name):
                return name
            case Coordinate(axis):
                return AXES[axis]
            case Time():
                return "t"
            case Group(argument):
                return f"({self.sum(argument)})"
            case Function(name, argument):
                return f"{name}({self.sum(argument)})"
            case FieldDerivative():
                return self.derivative(atom)

    def derivative(self, atom: FieldDerivative) -> str:
        names = [
            f"d{'' if order == 1 else order}{AXES[axis]}"
            for axis, order in enumerate(atom.index)
            if order
        ]
        names += ["lap"] * (atom.laplacians % 2) + ["bilap"] * (atom.laplacians // 2)
        names += ["invlap"] * atom.inverses
        return "(".join([*names, atom.field]) + ")" * len(names)


class _Latex(_Style):
    def rate(self, field):
        return rf"\partial_t {_symbol(field)}"

    def name(self, name):
        return _symbol(name)

    def opaque(self, name):
        return rf"\mathcal{{F}}_{{\mathrm{{{_plain(name)}}}}}"

    def product(self, factors):
        return r"\,".join(factors)

    def brackets(self, body):
        return rf"\left({body}\right)"

    def product_of(self, monomial, magnitude):
        above = [self.power(atom, e) for atom, e in monomial if e > 0]
        below = [self.power(atom, -e) for atom, e in monomial if e < 0]
        if magnitude != 1 or not above:
            above.insert(0, _latex_number(magnitude))
        if not below:
            return self.product(above)
        return rf"\frac{{{self.product(above)}}}{{{self.product(below)}}}"

    def power(self, atom: Atom, exponent: Exponent) -> str:
        if isinstance(atom, Function) and atom.name == "rsqrt":
            return self.raised(self.brackets(self.sum(atom.argument)), Fraction(-exponent, 2))
        if isinstance(atom, Function) and atom.name == "recip":
            return self.raised(self.brackets(self.sum(atom.argument)), -exponent)
        text = self.atom(atom)
        if isinstance(atom, FieldDerivative) and not atom.is_value and exponent != 1:
            text = self.brackets(text)
        return text if exponent == 1 else self.raised(text, exponent)

    def raised(self, text: str, exponent: Exponent) -> str:
        return f"{text}^{{{exponent}}}"

    def atom(self, atom: Atom) -> str:
        match atom:
            case Pi():
                return r"\pi"
            case Imaginary():
                return r"\mathrm{i}"
            case Coefficient(name):
                return _symbol(name)
            case Coordinate(axis):
                return AXES[axis]
            case Time():
                return "t"
            case Group(argument):
                return self.brackets(self.sum(argument))
            case Function("sqrt", argument):
                return rf"\sqrt{{{self.sum(argument)}}}"
            case Function("abs", argument):
                return rf"\left|{self.sum(argument)}\right|"
            case Function(name, argument):
                head = rf"\{name}" if name != "sign" else r"\mathrm{sgn}"
                return head + self.brackets(self.sum(argument))
            case FieldDerivative(field):
                return " ".join([*self.operators(atom), _symbol(field)])

    def operators(self, atom: FieldDerivative) -> list[str]:
        found = [
            rf"\partial_{AXES[axis]}" + ("" if order == 1 else f"^{{{order}}}")
            for axis, order in enumerate(atom.index)
            if order
        ]
        if atom.laplacians:
            found.append(r"\Delta" + ("" if atom.laplacians == 1 else f"^{{{atom.laplacians}}}"))
        if atom.inverses:
            found.append(rf"\Delta^{{-{atom.inverses}}}")
        return found


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) and number < 1e15 else repr(number)


def _latex_number(number: float) -> str:
    mantissa, _, exponent = _number(number).partition("e")
    if not exponent:
        return mantissa
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa} \times {power}"


def _symbol(name: str) -> str:
    """A letter, a Greek letter or a word, with what follows `_` or ends in digits below."""
    match = re.fullmatch(r"([A-Za-z]+)_?([A-Za-z0-9_]*)", name)
    head, tail = match.groups() if match else ("", "")
    if not head:
        return rf"\mathrm{{{_plain(name)}}}"
    if head in _GREEK or head == "eps":
        letter = r"\epsilon" if head == "eps" else rf"\{head}"
    else:
        letter = head if len(head) == 1 else rf"\mathrm{{{head}}}"
    return letter + (rf"_{{\mathrm{{{_plain(tail)}}}}}" if tail else "")


def _plain(name: str) -> str:
    return name.replace("_", " ").strip() or "c"
