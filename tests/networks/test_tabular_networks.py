"""Tables of logits and values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import Discrete, EnvSpec, make_environment
from paircredit.networks import NetworkSpec, policy_for, value_for
from paircredit.networks.state_functions import PolicyTable, ValueTable, num_states
from tests.sentences import refused


def test_a_table_answers_with_its_row():
    assert ValueTable(jnp.array([1.0, 2.0, 4.0]))(jnp.asarray(2)) == 4
    np.testing.assert_array_equal(PolicyTable(jnp.array([[1.0, 2.0], [3.0, 4.0]]))(jnp.asarray(1)), [3.0, 4.0])


def test_initial_logits_are_normal_with_the_given_deviation():
    spec = EnvSpec("states", 4, Discrete(500), 1)
    logits = np.asarray(policy_for(jax.random.key(0), spec, NetworkSpec(), 0.5).logits)
    assert logits.shape == (500, 4)
    assert abs(logits.mean()) < 5 * 0.5 / np.sqrt(2000)
    assert abs(logits.std() - 0.5) < 5 * 0.5 / np.sqrt(2 * 2000)


def test_tables_fit_the_environment():
    spec = make_environment("dag", depth=4).spec
    assert num_states(spec) == 10
    assert policy_for(jax.random.key(0), spec, NetworkSpec(), 0.01).logits.shape == (10, 2)
    np.testing.assert_array_equal(value_for(jax.random.key(0), spec, NetworkSpec()).values, np.zeros(10))


@pytest.mark.usefixtures("users_view")
def test_other_observations_are_refused():
    with refused("camera", "tuple", "Discrete"):
        num_states(EnvSpec("camera", 2, (3, 3), 5))


def test_values_of_a_table_start_at_0_or_as_they_are_drawn():
    spec = make_environment("dag", depth=4).spec
    start = value_for(jax.random.key(0), spec, NetworkSpec()).values
    assert not start.any() and not np.signbit(start).any()
    drawn = value_for(jax.random.key(0), spec, NetworkSpec(), 2.0).values
    again = value_for(jax.random.key(0), spec, NetworkSpec(), 4.0).values
    assert drawn.std() > 0.5 and np.allclose(again, 2 * drawn)
    none = value_for(jax.random.key(0), spec, NetworkSpec(), 0.0).values
    assert not none.any() and not np.signbit(none).any()
