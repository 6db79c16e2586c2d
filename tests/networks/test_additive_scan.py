"""The recurrence of the additive cell: loop and kernel agree with a plain loop and its automatic derivative."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.networks.additive_cell import additive_scan

MEMBERS, EPISODES, STEPS, CELLS = 2, 3, 7, 8


def plain(candidates, weight, bias, start):
    memory, memories = start, []
    for candidate in candidates:
        memory = memory + jax.nn.sigmoid(memory @ weight + bias) * candidate
        memories.append(memory)
    return jnp.stack(memories)


def batch(function):
    """Members have their own parameters and several episodes, as in training."""
    return jax.vmap(jax.vmap(function, in_axes=(0, None, None, None)))


@pytest.fixture(scope="module")
def arguments():
    rng = np.random.default_rng(0)
    shapes = (MEMBERS, EPISODES, STEPS, CELLS), (MEMBERS, CELLS, CELLS), (MEMBERS, CELLS), (MEMBERS, CELLS)
    return tuple(jnp.asarray(rng.normal(size=shape), dtype=jnp.float32) for shape in shapes)


@pytest.mark.parametrize("backend", ["loop", "interpreted kernel"])
def test_values_and_derivatives_are_those_of_a_plain_loop(backend, arguments):
    received = jnp.asarray(np.random.default_rng(1).normal(size=arguments[0].shape), dtype=jnp.float32)

    def ours(*given):
        return batch(lambda *one: additive_scan(*one, backend=backend))(*given)

    expected, back = jax.vjp(jax.jit(batch(plain)), *arguments)
    found, own_back = jax.vjp(jax.jit(ours), *arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for own, wanted in zip(own_back(received), back(received), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=2e-5, atol=2e-5)
