"""Shapes as text: `box - disk(0.4, 0.5, 0.15)`.

`disk(x, y, radius)`, `polygon(x y, x y, ...)`, `box(x0, y0, x1, y1)`, and `box` alone for the box
of the data; `+` unites, `-` takes away, `&` intersects, and binds more tightly. Nothing is ever
evaluated as Python, and every error points at its column.
"""

from dataclasses import dataclass

from ..errors import SplatopError, unknown_name
from ..shapes import Box, Difference, Disk, Intersection, Place, Polygon, Shape, Union
from .tokens import Source, Token

WHAT = "a shape"
_NAMES = ("disk", "polygon", "box")
_MOST_PRIMITIVES = 200
_DEEPEST = 40


def parse_shape(text: str, *, box: tuple[Place, Place] | None = None) -> Shape:
    """The shape that a text states; `box` is what the word alone means: its two corners."""
    source = Source(text, what=WHAT, symbols="&")
    reader = _Reader(source, source.tokens(), box)
    shape = reader.sum(0)
    if reader.token.kind != "end":
        raise reader.error("expected + - & between two shapes, or the end", reader.token)
    shape.edges  # noqa: B018  (refuses one without anything inside)
    return shape


@dataclass
class _Reader:
    source: Source
    tokens: list[Token]
    around: tuple[Place, Place] | None
    position: int = 0
    primitives: int = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def error(self, message: object, token: Token) -> SplatopError:
        return self.source.error(str(message), token.at)

    def take(self) -> Token:
        token = self.token
        self.position += token.kind != "end"
        return token

    def expect(self, symbol: str, why: str) -> None:
        if self.token.text != symbol:
            raise self.error(f"expected '{symbol}' {why}", self.token)
        self.take()

    def sum(self, depth: int) -> Shape:
        shape = self.product(depth)
        while self.token.text in ("+", "-"):
            kind = Union if self.take().text == "+" else Difference
            shape = kind(shape, self.product(depth))
        return shape

    def product(self, depth: int) -> Shape:
        shape = self.one(depth)
        while self.token.text == "&":
            self.take()
            shape = Intersection(shape, self.one(depth))
        return shape

    def one(self, depth: int) -> Shape:
        if depth > _DEEPEST:
            raise self.error(f"expected parentheses at most {_DEEPEST} deep", self.token)
        token = self.take()
        if token.text == "(":
            shape = self.sum(depth + 1)
            self.expect(")", "that closes the parenthesis")
            return shape
        if token.kind != "name":
            raise self.error(
                "expected a shape: disk(x, y, radius), polygon(x y, x y, ...) or box", token
            )
        if token.text not in _NAMES:
            raise self.error(unknown_name("shape", token.text, _NAMES), token)
        self.primitives += 1
        if self.primitives > _MOST_PRIMITIVES:
            raise self.error(f"expected at most {_MOST_PRIMITIVES} shapes in one", token)
        try:
            return getattr(self, token.text)(token)
        except SplatopError as error:
            if "\n" in str(error):  # it points at a place of its own
                raise
            raise self.error(error, token) from None

    def disk(self, token: Token) -> Shape:
        self.expect("(", "and x, y, radius after disk")
        x, y, radius = self.number(), self.comma(), self.comma()
        self.expect(")", "after a disk's radius")
        return Disk(x, y, radius)

    def polygon(self, token: Token) -> Shape:
        self.expect("(", "and corners 'x y, x y, ...' after polygon")
        corners = [(self.number(), self.number())]
        while self.token.text == ",":
            self.take()
            corners.append((self.number(), self.number()))
        self.expect(")", "after the last corner, or a comma and another")
        if corners[0] == corners[-1] and len(corners) > 3:
            corners.pop()  # a ring that was closed by hand
        return Polygon(tuple(corners))

    def box(self, token: Token) -> Shape:
        if self.token.text != "(":
            if self.around is None:
                raise self.error(
                    "expected to know the box of the data: give its --lengths (and --origin), or "
                    "write box(x0, y0, x1, y1)",
                    token,
                )
            return Box(*self.around)
        self.take()
        x0, y0, x1, y1 = self.number(), self.comma(), self.comma(), self.comma()
        self.expect(")", "after the two corners of a box")
        return Box((x0, y0), (x1, y1))

    def number(self) -> float:
        sign = 1.0
        while self.token.text in ("-", "+"):
            sign *= -1.0 if self.take().text == "-" else 1.0
        token = self.take()
        if token.kind != "number":
            raise self.error("expected a number", token)
        return sign * float(token.text)

    def comma(self) -> float:
        self.expect(",", "and another number")
        return self.number()
