"""The tests check shapes and types at every call, also of functions that are defined again."""

import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float, TypeCheckError, jaxtyped

from checking import when_called
from splatop.stepper import rollout


def test_the_package_is_checked():
    with pytest.raises(TypeCheckError, match="parameters of splatop"):
        rollout(lambda u, c: u, "no array", {}, steps=1)  # pyright: ignore


def defined_again(axes: str):
    @jaxtyped(typechecker=when_called)
    def first_half(u: Float[Array, axes]) -> Float[Array, " half"]:
        return u[: u.shape[0] // 2].ravel()

    return first_half


def test_what_is_defined_again_is_checked_by_its_own_annotations():
    for axes, right, wrong in (("n", (4,), (4, 2)), ("n m", (4, 2), (4,)), ("n", (4,), (4, 2))):
        assert defined_again(axes)(jnp.ones(right)).ndim == 1
        with pytest.raises(TypeCheckError):
            defined_again(axes)(jnp.ones(wrong))


def test_results_are_checked():
    @jaxtyped(typechecker=when_called)
    def doubled(u: Float[Array, " n"]) -> Float[Array, " n"]:
        return jnp.concatenate([u, u])

    with pytest.raises(TypeCheckError, match="return value"):
        doubled(jnp.ones(3))
