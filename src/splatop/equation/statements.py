"""The statements of an equation's text: which field, and the tokens of its right-hand side."""

from .parser import meaning
from .tokens import Source, Token

Statement = tuple[Token, list[Token]]  # the field, and the tokens of its right-hand side

_LEFT_HAND_SIDE = "expected a left-hand side dt(field) = ...: say which field the equation is for"
_SECOND_ORDER = (
    "expected an equation of first order in time: name the rate and write two, such as "
    "dt(u) = v; dt(v) = c2*lap(u); for data without a rate, --fields u,v=dt(u) makes one"
)


def statements_of(source: Source) -> list[Statement]:
    """What is written between semicolons."""
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
            opening = " ".join(t.text for t in piece[:3])
            twice = opening == "dt ( dt" or piece[0].text in ("d2t", "dtt")
            raise source.error(_SECOND_ORDER if twice else _LEFT_HAND_SIDE, piece[0].at)
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
