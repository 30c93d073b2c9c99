"""`?` in the text of an equation."""

import pytest

from splatop.equation import format_partial, parse_equation, parse_partial_equation
from splatop.errors import SplatopError


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("dt(u) = ?", "dt(u) = ?"),
        ("dt(u) = ? - D*lap(u)", "dt(u) = -D*lap(u) + ?"),
        ("dt(u)=D*lap(u)+?(u, dx(u))", "dt(u) = D*lap(u) + ?(u, dx(u))"),
        ("dt(a) = Da*lap(a) + ?; dt(b) = lap(b)", "dt(a) = Da*lap(a) + ?; dt(b) = lap(b)"),
        (
            "dt(psi) = 1i*lap(psi) + ?(psi)",
            "dt(psi_re) = -lap(psi_im) + ?(psi_re, psi_im); "
            "dt(psi_im) = lap(psi_re) + ?(psi_re, psi_im)",
        ),
    ],
)
def test_an_unknown_part_is_read_and_printed(text, normal):
    partial = parse_partial_equation(text, dims=2)
    assert format_partial(partial) == normal
    assert parse_partial_equation(normal, dims=2) == partial


def test_complex_data_have_two_unknown_parts():
    partial = parse_partial_equation("dt(q) = ?", dims=1, fields=("q_re", "q_im"))
    assert partial.known is None
    assert partial.unknown == {"q_re": None, "q_im": None}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("dt(u) = ? + ?", 13, "got a second"),
        ("dt(u) = 2*?", 11, "a term of its own"),
        ("dt(u) = a*+?", 12, "a term of its own"),
        ("dt(u) = -?", 10, "a term of its own"),
        ("dt(u) = dx(?)", 12, "a term of its own"),
        ("dt(u) = ?^2", 10, "behind it"),
        ("dt(u) = ?(u)*u", 13, "behind it"),
        ("dt(u) = ?(D)", 11, "fields or derivatives"),
        ("dt(u) = ?(u^2)", 11, "fields or derivatives"),
        ("dt(u) = ?()", 11, "expected"),
        ("dt(u) = ?(u", 10, "never closed"),
    ],
)
def test_errors_point_at_the_place(text, column, message):
    with pytest.raises(SplatopError, match=message) as error:
        parse_partial_equation(text, dims=1)
    assert f"column {column}:" in str(error.value)


def test_what_needs_a_whole_equation_says_so():
    with pytest.raises(SplatopError, match="splatop discover"):
        parse_equation("dt(u) = lap(u) + ?", dims=1)
