"""What holds at the edges, as text: `x0: u = 0; x1: dn(u) = 0; y: periodic`.

`x0` and `x1` are the two ends of x, `x` means both, `all` every end of every axis. `dn` is the
derivative along the outward normal, `free` sets nothing. `invlap(w)`, where an equation has it, may
be given conditions as a field is. Nothing is ever evaluated as Python, and
every error points at its place in the text.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..domain import AXES, FREE, Condition, Domain, potential
from ..errors import SplatopError, unknown_name
from ..shapes import Shape
from .expression import Expression
from .limits import bounded_work
from .parser import IM, RE, Parser
from .printing import format_expression
from .questions import is_complex, split
from .tokens import MAX_LENGTH, Source, Token
from .values import constant_value

PERIODIC, NORMAL, OPEN, EVERYWHERE, INVERSE = "periodic", "dn", "free", "all", "invlap"
WHAT = "a boundary"

Conditions = dict[tuple[str, str], Condition]


def parse_boundary(
    text: str,
    *,
    fields: Iterable[str],
    dims: int,
    coefficients: Iterable[str] | None = None,
    others: Iterable[str] = (),
    shape: Shape | None = None,
) -> tuple[tuple[bool, ...], Conditions]:
    """Which axes are periodic, and the condition by end and field at those that are not.

    There is exactly one condition for each of the `fields` at each end. `coefficients` limits which
    names values may hold; without it every name that is no field is one. Conditions of fields in
    `others`, which the data have but are not read, are left out. Where `psi_re` and `psi_im` are
    fields, a condition for the complex `psi` is one for both. With a `shape` the places are its
    named edges: `disk1: u = 0; outer: dn(u) = 0`.
    """
    if dims not in (1, 2, 3):
        raise SplatopError(f"expected a boundary in 1, 2 or 3 dimensions, got {dims}")
    allowed = None if coefficients is None else tuple(coefficients)
    source = Source(text, what=WHAT, symbols=":" if shape is None else ":.")
    reader = _Reader(source, tuple(fields), dims, allowed, tuple(others), shape)
    with bounded_work():
        for piece in _pieces(reader.source.tokens(), ";"):
            reader.statement(piece)
    return reader.result()


def domain_from_text(
    text: str,
    *,
    lengths: Iterable[float],
    fields: Iterable[str],
    origin: Iterable[float] = (),
    coefficients: Iterable[str] | None = None,
    shape: Shape | None = None,
) -> Domain:
    """The box of these sides, from `origin` (else 0) on, with the edges that the text states."""
    sides = tuple(lengths)
    periodic, conditions = parse_boundary(
        text, fields=fields, dims=len(sides), coefficients=coefficients, shape=shape
    )
    box = replace(Domain.box(sides, origin, periodic), shape=shape)
    return box.with_conditions(conditions)


def _pieces(tokens: list[Token], mark: str) -> list[list[Token]]:
    """Tokens between marks outside of parentheses, each piece with an end of its own.

    A mark at the very end begins no piece.
    """
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if token.kind == "end" or (token.text == mark and (depth <= 0 or mark == ";")):
            found[-1].append(Token("end", "", token.at))
            found.append([])
        else:
            found[-1].append(token)
    held = found[:-1] if not found[-1] else found
    return held[:-1] if mark == ";" and len(held) > 1 and len(held[-1]) == 1 else held


@dataclass
class _Reader:
    """What was said so far, statement by statement."""

    source: Source
    fields: tuple[str, ...]
    dims: int
    coefficients: tuple[str, ...] | None
    others: tuple[str, ...]
    shape: Shape | None = None

    def __post_init__(self):
        self.rings: set[str] = set()  # the axes that are periodic
        self.said: set[tuple[str, str]] = set()
        self.conditions: Conditions = {}
        parts = [(name, name.removesuffix(RE)) for name in self.fields if name.endswith(RE)]
        self.pairs = {stem: (re, stem + IM) for re, stem in parts if stem + IM in self.fields}

    @property
    def axes(self) -> str:
        return AXES[: self.dims]

    def error(self, message: object, token: Token) -> SplatopError:
        return self.source.error(str(message), token.at)

    def statement(self, piece: list[Token]) -> None:
        place, *rest = self.joined(piece)
        if place.kind != "name" or not rest or rest[0].text != ":":
            raise self.error(
                "expected a side and a colon, as in 'x0: u = 0', 'y: periodic' or 'all: dn(u) = 0'",
                place if place.kind != "name" or not rest else rest[0],
            )
        sides = self.sides(place)
        for item in _pieces(rest[1:], ","):
            self.item(place, sides, item)

    def joined(self, piece: list[Token]) -> list[Token]:
        """With the name of an edge such as polygon1.2 as one token."""
        colon = next((n for n, token in enumerate(piece) if token.text == ":"), 0)
        if self.shape is None or colon < 2 or piece[0].kind != "name":
            return piece
        return [Token("name", "".join(t.text for t in piece[:colon]), piece[0].at), *piece[colon:]]

    def sides(self, place: Token) -> tuple[str, ...]:
        if self.shape is not None:
            try:
                return self.shape.sides(place.text)
            except SplatopError as error:
                raise self.error(error, place) from None
        every = tuple(f"{axis}{end}" for axis in self.axes for end in (0, 1))
        if place.text == EVERYWHERE:
            return every
        if place.text in self.axes:
            return tuple(side for side in every if side[0] == place.text)
        if place.text not in every:
            valid = (*every, *self.axes, EVERYWHERE)
            raise self.error(unknown_name(f"side of {self.dims}D data", place.text, valid), place)
        return (place.text,)

    def item(self, place: Token, sides: tuple[str, ...], item: list[Token]) -> None:
        first, after = item[0], item[1] if len(item) > 1 else item[0]
        if first.text == PERIODIC and after.kind == "end":
            self.periodic(place, sides, first)
            return
        if first.text == OPEN and after.text != "=":
            self.free(sides, item)
            return
        around = [word for word in (NORMAL, INVERSE) if self.wraps(item, word)]
        name, equals = first, after
        if around:
            inside = [token.text for token in item[2 * len(around) :]]
            if inside[1 : len(around) + 2] != [")"] * len(around) + ["="]:
                shown = {NORMAL: "dn(field) = value", INVERSE: "invlap(field) = value"}[around[0]]
                raise self.error(f"expected {shown}", first)
            name, equals = item[2 * len(around)], item[3 * len(around) + 1]
        kind = "slope" if NORMAL in around else "value"
        if equals.text == ":":
            raise self.error("expected sides separated by ';', as in 'x: u = 0; y: u = 1'", first)
        if name.kind != "name" or equals.text != "=":
            raise self.error(
                "expected a condition: field = value, dn(field) = value, free or periodic",
                name if name.kind != "name" else equals,
            )
        self.known(name)
        tokens = item[item.index(equals) + 1 :]
        values = self.values(name.text, tokens, sides)
        for side in sides:
            for field, value in values.items():
                what = potential(field) if INVERSE in around else field
                self.say(side, what, Condition(kind, value), name)

    def wraps(self, item: list[Token], word: str) -> bool:
        """Whether `dn(` or `invlap(` stands before the field's name."""
        texts = [token.text for token in item[:4]]
        begins = texts[2:4] if word == INVERSE and texts[:2] == [NORMAL, "("] else texts[:2]
        return begins == [word, "("]

    def periodic(self, place: Token, sides: tuple[str, ...], word: Token) -> None:
        if self.shape is not None:
            raise self.error("expected a condition at the edge of a shape, got 'periodic'", word)
        if len(sides) == 1:
            raise self.error(
                f"expected both ends of {place.text[0]} to be periodic, got one: write "
                f"'{place.text[0]}: periodic'",
                place,
            )
        for axis in dict.fromkeys(side[0] for side in sides):
            if axis in self.rings or any(side[0] == axis for side, _ in self.said):
                raise self.error(f"expected {axis} to be said once, got 'periodic' beside", word)
            self.rings.add(axis)

    def free(self, sides: tuple[str, ...], item: list[Token]) -> None:
        names = [(field, item[0]) for field in self.fields]
        if item[1].kind != "end":
            closing = next((i for i, token in enumerate(item) if token.text == ")"), 0)
            inside = item[2:closing] if item[1].text == "(" else []
            if not inside or item[closing + 1].kind != "end":
                raise self.error("expected free, or free(field) with the names of fields", item[1])
            names = []
            for place, token in enumerate(inside):
                if place % 2 == 0:
                    self.known(token)
                    names += [(field, token) for field in self.parts(token.text)]
                elif token.text != ",":
                    raise self.error("expected fields separated by commas", token)
        for side in sides:
            for field, token in names:
                self.say(side, field, FREE, token)

    def known(self, name: Token) -> None:
        valid = (*self.fields, *self.others, *self.pairs)
        if name.kind != "name" or name.text not in valid:
            raise self.error(unknown_name("field", name.text, valid), name)

    def parts(self, name: str) -> tuple[str, ...]:
        return self.pairs.get(name, (name,)) if name not in self.fields else (name,)

    def say(self, side: str, field: str, condition: Condition, token: Token) -> None:
        if self.shape is None and side[0] in self.rings:
            raise self.error(
                f"expected {side[0]} to be said once, got a condition beside 'periodic'", token
            )
        if (side, field) in self.said:
            raise self.error(
                f"expected one condition for {field} at {side}, got a second: leave one out", token
            )
        self.said.add((side, field))
        if field in (*self.fields, *map(potential, self.fields)):
            self.conditions[side, field] = condition

    # --- values ---

    def values(
        self, name: str, tokens: list[Token], sides: tuple[str, ...]
    ) -> dict[str, float | str]:
        """By field: two for a complex one."""
        if tokens[0].kind == "end":
            raise self.error("expected a value after '=': a number, or an expression", tokens[0])
        for token in tokens:
            self.check_name(token, sides)
        parts = self.parts(name)
        parser = Parser(
            self.source,
            tokens,
            dims=self.dims,
            fields=(),
            coefficients=self.coefficients,
            unit=len(parts) > 1,
        )
        found = parser.right_side()
        if len(parts) == 1 and is_complex(found):
            raise self.error(f"expected a real value for the real field {name}", tokens[0])
        return {
            part: self.number_or_text(one, tokens[0])
            for part, one in zip(parts, split(found), strict=False)
        }

    def check_name(self, token: Token, sides: tuple[str, ...]) -> None:
        if token.kind != "name":
            return
        if token.text in (*self.fields, *self.others, *self.pairs):
            raise self.error(
                f"expected a value of numbers, coefficients and coordinates, got the field "
                f"{token.text}: conditions between fields are not supported",
                token,
            )
        if self.shape is not None:
            return
        across = next((side for side in sides if side[0] == token.text), None)
        if across is not None:
            along = [axis for axis in self.axes if axis != token.text]
            raise self.error(
                f"expected coordinates along the side {across} ({', '.join(along) or 'none in 1D'})"
                f", got {token.text}, which is one number there: write that number",
                token,
            )

    def number_or_text(self, value: Expression, token: Token) -> float | str:
        number = constant_value(value)
        if number is not None:
            if not np.isfinite(number):
                raise self.error("expected a finite value", token)
            return number
        text = format_expression(value)
        if len(text) > MAX_LENGTH // 4:
            raise self.error("the value is too long when multiplied out: simplify it", token)
        return text

    # --- the whole ---

    def result(self) -> tuple[tuple[bool, ...], Conditions]:
        if self.shape is not None:
            self.check_edges(self.shape)
            return (False,) * self.dims, self.conditions
        for axis in self.axes:
            if axis in self.rings:
                continue
            missing = [
                (f"{axis}{end}", field)
                for end in (0, 1)
                for field in self.fields
                if (f"{axis}{end}", field) not in self.said
            ]
            if missing:
                raise self.source.error(self.missing(axis, missing), len(self.source.text.rstrip()))
        return tuple(axis in self.rings for axis in self.axes), self.conditions

    def check_edges(self, shape: Shape) -> None:
        names = shape.edge_names
        missing = [(e, f) for e in names for f in self.fields if (e, f) not in self.said]
        if missing:
            edge, field = missing[0]
            more = len(missing) - 1
            raise self.source.error(
                f"expected a condition for each field at each edge of the shape "
                f"({', '.join(names)}), got none for {field} at {edge}"
                f"{f' (and {more} more)' if more else ''}: add '; {edge}: {field} = 0', '; {edge}: "
                f"dn({field}) = 0' or '; {edge}: free({field})'",
                len(self.source.text.rstrip()),
            )

    def missing(self, axis: str, missing: list[tuple[str, str]]) -> str:
        side, field = missing[0]
        ends = [end for end, name in missing if name == field]
        place = axis if len(ends) == 2 else side
        whole = len(missing) == 2 * len(self.fields)
        more = len(missing) - len(ends)
        return (
            f"expected a condition for each field at each end, got none for {field} at "
            f"{' and '.join(ends)}{f' (and {more} more)' if more else ''}: add "
            f"'; {place}: {field} = 0', '; {place}: dn({field}) = 0' or '; {place}: free({field})'"
            + (f", or '; {axis}: periodic'" if whole else "")
        )
