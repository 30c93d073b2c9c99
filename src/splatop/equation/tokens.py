"""Text to tokens, and errors that point at the place in it."""

import re
from dataclasses import dataclass

from ..errors import SplatopError

MAX_LENGTH = 10_000
SHOWN = 60  # characters of the text either side of the caret

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<imaginary>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?i(?![A-Za-z0-9_]))"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<symbol>\*\*|[-+*/^(),;=?])"
)

_HINTS = {
    ".": "attribute access is not part of an equation",
    "[": "indexing is not part of an equation; write one name per field",
    "'": "strings are not part of an equation",
    '"': "strings are not part of an equation",
    "∂": "write dt(u), dx(u), dy(u)",
    "Δ": "write lap(u)",
    "∇": "write grad(u), div(...), lap(u)",
    "²": "write u^2",
    "·": "write * or dot(a, b)",
}


@dataclass(frozen=True)
class Token:
    kind: str  # number, imaginary, name, symbol, end
    text: str
    at: int


class Source:
    """The text of an equation, which knows how to point at a place in itself.

    Other texts in the same words say `what` they are, and which symbols they have beside.
    """

    def __init__(self, text: str, *, what: str = "an equation", symbols: str = ""):
        self.text, self.what, self.symbols = text, what, symbols
        if len(text) > MAX_LENGTH:
            raise SplatopError(
                f"expected {what} of at most {MAX_LENGTH} characters, got {len(text)}: "
                "shorten it, or build it in Python"
            )

    def error(self, message: str, at: int) -> SplatopError:
        """`message`, the line in which it happened and a caret below the place."""
        at = min(at, len(self.text))
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        line = self.text[start : end if end >= 0 else None]
        column = at - start
        where = f"column {column + 1}" + (
            f" of line {self.text.count(chr(10), 0, at) + 1}" if "\n" in self.text else ""
        )
        first = max(0, column - SHOWN)
        shown = "".join(c if c.isprintable() else " " for c in line[first : column + SHOWN])
        pointer = " " * (column - first) + "^"
        return SplatopError(f"{where}: {message}\n  {shown}\n  {pointer}")

    def tokens(self) -> list[Token]:
        found, at = [], 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            character = self.text[at]
            if match is None and character in self.symbols:
                found.append(Token("symbol", character, at))
                at += 1
                continue
            if match is None:
                known = " ".join([*"+-*/^(),;=?", *self.symbols])
                hint = _HINTS.get(character, f"{self.what} is made of names, numbers and {known}")
                raise self.error(f"unexpected character {character!r}: {hint}", at)
            kind = match.lastgroup or ""
            if kind != "space":
                found.append(Token(kind, match.group(), at))
            at = match.end()
        return [*found, Token("end", "", len(self.text.rstrip()))]
