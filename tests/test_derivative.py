"""Differential operators as values: composition, symbols, names."""

import numpy as np
import pytest

from splatop.derivative import (
    along,
    bilaplacian,
    gradient,
    inverse_laplacian,
    laplacian,
    partial,
    value,
)
from splatop.errors import SplatopError

K = (np.array([0.0, 1.5, -2.0]), np.array([0.5, 3.0, -1.0]))


def test_symbol_of_a_partial_derivative():
    # ∂x²∂y on exp(2πi k·x): (2πi k_x)² (2πi k_y)
    expected = (2j * np.pi * K[0]) ** 2 * (2j * np.pi * K[1])
    np.testing.assert_allclose(partial(2, 1).symbol(K), expected, rtol=1e-14)


def test_composition_multiplies_symbols():
    a, b = partial(1, 0), laplacian(2)
    np.testing.assert_allclose((a @ b).symbol(K), a.symbol(K) * b.symbol(K), rtol=1e-14)
    assert laplacian(3) @ laplacian(3) == bilaplacian(3)
    assert partial(1, 0) @ partial(0, 1) == partial(1, 1)


def test_laplacian_is_the_sum_of_second_derivatives():
    expected = -4 * np.pi**2 * (K[0] ** 2 + K[1] ** 2)
    np.testing.assert_allclose(laplacian(2).symbol(K), expected, rtol=1e-14)
    assert dict(laplacian(3).terms) == {(2, 0, 0): 1.0, (0, 2, 0): 1.0, (0, 0, 2): 1.0}


def test_inverse_laplacian_undoes_it_except_on_the_mean():
    k = (np.array([0.0, 1.0, 2.0]), np.array([0.0, -1.0, 0.0]))
    product = (inverse_laplacian(2) @ laplacian(2)).symbol(k)
    np.testing.assert_allclose(product, [0, 1, 1], atol=1e-14)


def test_derivatives_are_keys():
    assert {value(2): 1}[partial(0, 0)] == 1
    assert gradient(3) == (partial(1, 0, 0), partial(0, 1, 0), partial(0, 0, 1))
    assert along(1, 2, order=4) == partial(0, 4)
    assert (value(2).order, laplacian(2).order, bilaplacian(2).order) == (0, 2, 4)


def test_names_that_people_read():
    assert str(partial(2, 1)) == "d2xdy"
    assert str(value(1)) == "1"
    assert "lap^-1" in str(inverse_laplacian(2))


@pytest.mark.parametrize("wrong", [(-1, 0), (), (0, 0, 0, 1)])
def test_impossible_indices_are_refused(wrong):
    with pytest.raises(SplatopError, match="expected one order >= 0"):
        partial(*wrong)


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(SplatopError, match="axis below 2"):
        along(2, 2)
