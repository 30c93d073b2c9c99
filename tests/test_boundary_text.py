"""Boundaries as text: what they mean, that they print and parse to the same, and where they err."""

import random
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splatop.domain import FREE, Condition, Domain
from splatop.equation import domain_from_text, edge_values, parse_boundary
from splatop.errors import SplatopError

UV = ("u", "v")


def held(text, fields=UV, dims=2, **options):
    return parse_boundary(text, fields=fields, dims=dims, **options)


def test_each_end_and_field_gets_its_condition():
    periodic, found = held("x0: u = 0, v = -2.5e-3; x1: dn(u) = 1/4, free(v); y: periodic")
    assert periodic == (False, True)
    assert found == {
        ("x0", "u"): Condition("value", 0.0),
        ("x0", "v"): Condition("value", -0.0025),
        ("x1", "u"): Condition("slope", 0.25),
        ("x1", "v"): FREE,
    }


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("all: u = 0, v = 1", "x: u = 0, v = 1; y: u = 0, v = 1"),
        ("x: free; y: periodic", "x0: free(u), free(v); x1: free(u, v); y: periodic;"),
        ("all: periodic", "x: periodic; y: periodic"),
        ("x: u = 0; x: v = 1\n; y: periodic", "x0: u=0,v=1;x1: v=1 ,u=0;y:periodic"),
        ("x: u = 2*y*3 + y, v = pi; y: free", "x: u = 7*y, v = 3.141592653589793; y: free"),
    ],
)
def test_short_forms(short, long):
    assert held(short) == held(long)


def test_an_inverse_laplacian_has_conditions_as_a_field_has():
    text = "x: u = 0, v = 1, invlap(u) = 2; y0: free, dn(invlap(v)) = x; y1: free"
    domain = domain_from_text(text, lengths=(1.0, 1.0), fields=("u", "v"))
    found = domain.conditions
    assert found["x1", "invlap(u)"] == Condition("value", 2.0)
    assert found["y0", "invlap(v)"] == Condition("slope", "x")
    again = domain_from_text(domain.describe(("u", "v")), lengths=(1.0, 1.0), fields=("u", "v"))
    assert again == domain == Domain.from_dict(domain.as_dict())


def test_words_of_the_language_may_be_names_of_fields():
    names = ("free", "periodic", "dn")
    _, found = held("x: free = 0, periodic = 1, dn(dn) = 2", names, 1)
    assert [found["x0", name].value for name in names] == [0, 1, 2]
    assert found["x0", "dn"].kind == "slope"


def test_a_condition_for_a_complex_field_is_one_for_each_part():
    _, found = held("x0: psi = 1 + 2i*a; x1: free(psi)", ("psi_re", "psi_im"), 1)
    assert found["x0", "psi_re"] == Condition("value", 1.0)
    assert found["x0", "psi_im"] == Condition("value", "2*a")
    assert found["x1", "psi_im"] == FREE
    _, found = held("x0: psi_re = 1, psi_im = 0; x1: psi = 0", ("psi_re", "psi_im"), 1)
    assert found["x0", "psi_re"].value == 1


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("x: u = 0, v = 0; x0: u = 1; y: periodic", 22, "one condition for u at x0, got a second"),
        ("x: u = 0; y: periodic", 22, "none for v at x0 and x1: add '; x: v = 0'"),
        ("x0: free; y: periodic", 22, r"u at x1 \(and 1 more\): add '; x1: u = 0'"),
        ("x: free", 8, "u at y0 and y1.*or '; y: periodic'"),
        ("x: w = 0", 4, "unknown field 'w'.*u, v"),
        ("z0: u = 0", 1, "unknown side of 2D data 'z0'"),
        ("x0: periodic; y: free", 1, "both ends of x"),
        ("x: periodic; x1: free", 18, "x to be said once"),
        ("x: free; x: periodic", 13, "x to be said once"),
        ("x: u = x", 8, r"along the side x0 \(y\), got x"),
        ("all: u = y", 10, "along the side y0"),
        ("x: u = v", 8, "got the field v"),
        ("x: u = ", 7, "expected a value after '='"),
        ("x: u = 1/0", 9, "division by zero"),
        ("x: u = 1i", 8, "real value for the real field u"),
        ("x: u = 0, y: v = 0", 11, "separated by ';'"),
        ("u = 0", 3, "a side and a colon"),
        ("", 1, "a side and a colon"),
        ("x: dn(u)", 4, r"dn\(field\) = value"),
        ("x: free(u;v)", 8, "free, or free"),
        ("x: u = 0 & v", 10, "a boundary is made of"),
        ("x: u = c, v = 0; y: periodic", 8, "unknown name 'c': valid names are a, pi, t, x, y"),
    ],
)
def test_errors_point_at_their_place(text, column, what):
    allowed = ("a",) if "= c" in text else None
    with pytest.raises(SplatopError, match=f"column {column}: .*{what}") as caught:
        held(text, coefficients=allowed)
    assert "^" in str(caught.value).splitlines()[-1]


def test_conditions_of_fields_that_are_not_read_are_left_out():
    _, found = held("x: u = 0, w = 1", ("u",), 1, others=("w",))
    assert found == held("x: u = 0", ("u",), 1)[1]


# --- values --------------------------------------------------------------------------------------


def test_values_along_a_side():
    domain = domain_from_text("x: u = sin(pi*y) + a*z; y: free; z: free", **box(3))
    y, z = np.linspace(0, 1, 5)[:, None], np.linspace(0, 2, 4)[None]
    found = edge_values(domain.at("x0", "u"), {"y": y, "z": z}, {"a": 0.5})
    np.testing.assert_allclose(found, np.sin(np.pi * y) + 0.5 * z, rtol=1e-15)
    slope = jax.grad(
        lambda a: jnp.sum(edge_values(domain.at("x1", "u"), {"y": y, "z": z}, {"a": a}))
    )(0.5)
    np.testing.assert_allclose(slope, 5 * z.sum(), rtol=1e-6)
    assert edge_values(Condition("value", 2.0), {"y": y}).shape == (5, 1)
    with pytest.raises(SplatopError, match="value of the coefficient a"):
        edge_values(domain.at("x0", "u"), {"y": y, "z": z}, {})
    with pytest.raises(SplatopError, match="coordinates along the side"):
        edge_values(Condition("value", "x"), {"y": y})


def box(dims, fields=("u",)):
    return {"lengths": (1.0, 2.0, 3.0)[:dims], "origin": (0.0, -1.0, 5.0)[:dims], "fields": fields}


# --- round trips ---------------------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def expressions(draw, axes):
    """Text that holds a name, so that it stays a text."""
    letters = st.sampled_from([*axes, "a", "b", "pi", "2", "0.1"])
    inner = st.recursive(
        letters,
        lambda one: st.one_of(
            st.tuples(one, st.sampled_from("+-*"), one).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            one.map(lambda t: f"sin({t})"),
            one.map(lambda t: f"({t})^2/(3 + a)"),
        ),
        max_leaves=6,
    )
    return f"{draw(st.sampled_from('ab'))}*3 + {draw(inner)}"


@st.composite
def domains(draw):
    dims = draw(st.integers(1, 3))
    periodic = draw(st.lists(st.booleans(), min_size=dims, max_size=dims))
    edges = []
    for axis, ring in zip("xyz", periodic, strict=False):
        if ring:
            edges.append(f"{axis}: periodic")
            continue
        along = [other for other in "xyz"[:dims] if other != axis]
        for end in (0, 1):
            for name in UV:
                value = draw(st.one_of(numbers.map(repr), expressions(along)))
                kinds = [f"{name} = {value}", f"dn({name}) = {value}", f"free({name})"]
                edges.append(f"{axis}{end}: {draw(st.sampled_from(kinds))}")
    return domain_from_text("; ".join(edges), **box(dims, UV))


@settings(max_examples=60, deadline=None)
@given(domains())
def test_a_domain_prints_as_the_text_that_it_is_parsed_from(domain):
    again = domain_from_text(domain.describe(UV), **box(domain.dims, UV))
    assert again == domain
    assert hash(again) == hash(domain)
    assert Domain.from_dict(domain.as_dict()) == domain


def test_fuzzed_texts_err_with_their_column():
    """In a process of its own, as the equations' fuzzing, and with the same words."""
    script = Path(__file__).with_name("fuzz_boundary_text.py")
    done = subprocess.run(
        [sys.executable, script, str(random.Random(3).randrange(1000))],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "boundaries" in done.stdout
