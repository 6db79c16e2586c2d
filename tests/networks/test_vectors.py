"""Vectors as observations: every method trains on them, and the pair network has a perception module of its own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.protocol import EnvSpec, Vector
from paircredit.methods import make_method, methods
from paircredit.networks import NetworkSpec
from paircredit.networks.perception import VectorPerception, of_change, perception_of
from paircredit.networks.state_functions import policy_for, value_for
from paircredit.training import Plan, train
from paircredit.training.loop import online_iteration, start
from paircredit.weights import PairInputs, weights_for
from tests.sentences import refused

SPEC = EnvSpec("vectors", 3, Vector(4), 5)
SMALL = NetworkSpec(trunk=(8, 6), pair_width=7, lag="scalar", precision="float32")


def test_perception_is_two_dense_layers():
    module = perception_of(jax.random.key(0), SPEC.observation, SMALL)
    x = jnp.arange(4.0)
    hidden = np.maximum(np.asarray(x) @ np.asarray(module.first.weight), 0)
    np.testing.assert_allclose(module(x), np.maximum(hidden @ np.asarray(module.last.weight), 0), rtol=1e-5)
    np.testing.assert_array_equal(of_change(module, x, jnp.ones(4)), module(x - 1))


def test_padding_does_not_count_as_inputs():
    """The largest variant of umbrella_distract has no padding; one distractor leaves 4 of 103 numbers."""
    small, large = (make_environment("bsuite/umbrella_distract", distractors=count).spec for count in (1, 100))
    assert small.observation == large.observation
    padded, whole = (perception_of(jax.random.key(0), spec.observation, SMALL) for spec in (small, large))
    plain = perception_of(jax.random.key(0), Vector(103), SMALL)
    np.testing.assert_array_equal(whole.first.weight, plain.first.weight)
    np.testing.assert_allclose(padded.first.weight, np.sqrt(103 / 4) * np.asarray(plain.first.weight), rtol=1e-6)
    np.testing.assert_array_equal(padded.last.weight, plain.last.weight)


def test_members_with_other_paddings_start_with_their_own_scale():
    """Also in one compiled program, where the number of own inputs is data."""
    envs = [make_environment("bsuite/umbrella_distract", distractors=count) for count in (1, 100)]
    method = make_method("a2c", env="bsuite/umbrella_distract")
    state = train([method] * 2, envs, [0, 0], Plan(updates=1), 0)
    one, hundred = np.asarray(state.learner.policy.parameters.perception.first.weight)
    np.testing.assert_allclose(one, np.sqrt(103 / 4) * hundred, rtol=1e-5)


def test_policies_and_values_are_networks():
    x = jnp.ones(4)
    assert policy_for(jax.random.key(0), SPEC, SMALL, 1.0)(x).shape == (3,)
    assert value_for(jax.random.key(0), SPEC, SMALL)(x).shape == ()


@pytest.mark.parametrize("choice, own", [("auto", True), ("own", True), ("shared", False)])
def test_whether_the_pair_network_has_its_own_perception(choice, own):
    network = NetworkSpec(trunk=(8, 6), pair_width=7, pair_perception=choice)
    weights = weights_for(jax.random.key(0), SPEC, network, 0.01, sees_signal=False)
    assert isinstance(weights.perception, VectorPerception) == own
    observations = jax.random.normal(jax.random.key(1), (6, 4))
    features = None if own else jax.random.normal(jax.random.key(2), (6, 6))
    found = weights(PairInputs(observations, features, valid=jnp.ones(5, dtype=bool)))
    assert found.shape == (5, 5)


def test_an_unknown_choice_is_refused(users_view):
    with refused("Did you mean 'shared'"):
        weights_for(jax.random.key(0), SPEC, NetworkSpec(pair_perception="share"), 0.01, sees_signal=False)


@pytest.mark.parametrize("name", sorted(set(methods()) - {"h-pwr"}))
def test_every_method_acts_and_learns(name):
    """Traced and not compiled; h-pwr has no handcrafted weights for it."""
    method, env = make_method(name, env="bsuite/catch"), make_environment("bsuite/catch")

    def update(key):
        state = start(method, env, Plan(), key)
        return online_iteration(method, env, Plan(), state)

    state, summary = jax.eval_shape(update, jax.random.key(0))
    assert summary["regret"].shape == () and state.trajectory.observations.shape == (1, 10, 50)


def test_a2c_trains():
    method, env = make_method("a2c", env="bsuite/catch"), make_environment("bsuite/catch")
    seen = []
    train([method], [env], [0], Plan(updates=2), 2, on_chunk=lambda chunk: seen.append(chunk.summaries["regret"]))
    assert np.isin(seen[0], [0.0, 2.0]).all()
