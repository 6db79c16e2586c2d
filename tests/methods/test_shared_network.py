"""One network for policy and value: one step for both, and metagradients that pass through it."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.protocol import InSegments
from paircredit.metagradient import autodiff_one_step, check_metagradient, explicit_one_step, unrolled_objective
from paircredit.methods import InnerLoop, OuterLoop, make_method
from paircredit.methods.loops import Trained, policy_gradient_loss
from paircredit.networks import NetworkSpec
from paircredit.networks.state_functions import SharedNetwork
from paircredit.training.rollout import collect, start_actors
from tests.sentences import refused

NETWORK = NetworkSpec(trunk=(6, 5), pair_width=4, lag="sinusoidal", shared=True)
INNER = InnerLoop(
    learning_rate=0.05,
    discount=0.9,
    entropy_cost=0.01,
    clip_norm=0.5,
    initial_scale=1.0,
    episodes=3,
    optimiser="rmsprop",
    value_cost=0.7,
)


@pytest.fixture(scope="module")
def segment():
    """A learner of Meta-PWTD on catch, two updates old, with its last segment and the one after it."""
    with jax.enable_x64(True):
        env = InSegments(make_environment("bsuite/catch"), 12)
        method = make_method(
            "meta-pwtd", inner=INNER, outer=OuterLoop(initial_scale=1.0, entropy_cost=0.02), network=NETWORK
        )

        @jax.jit
        def started(key):
            learner = method.init(key, env)
            eta = jax.tree.map(
                lambda x: x + 0.5 * jax.random.normal(jax.random.key(x.size), x.shape), learner.weights.parameters
            )
            learner = dataclasses.replace(learner, weights=Trained.fresh(eta, method.outer.optimiser))
            return learner, start_actors(method, learner, env, jax.random.key(2))

        learner, actors = started(jax.random.key(1))
        collected = jax.jit(lambda learner, actors, key: collect(method, learner, env, actors, key))
        learn = jax.jit(method.learn)
        for number in range(2):
            trajectory, actors = collected(learner, actors, jax.random.key(10 + number))
            before, (learner, kept) = learner, learn(learner, trajectory)
        following, _ = collected(learner, actors, jax.random.key(20))
        yield method, before, learner, kept, following


@pytest.mark.nightly
def test_policy_and_value_are_one_network_with_two_heads(segment, x64):
    _, _, learner, kept, _ = segment
    network = learner.policy.parameters
    assert isinstance(network, SharedNetwork) and learner.value is None
    seen = kept.experience.trajectory.observations[0, 0]
    features = network.perception(seen)
    np.testing.assert_allclose(network(seen), network.head(features))
    np.testing.assert_allclose(network.critic(seen), network.value_head(features)[0])
    assert kept.experience.trajectory.episode.max() >= 1, "an episode ends within the segment"


def test_one_step_descends_both_losses(segment, x64):
    """RMSProp of the clipped gradient of the policy's loss plus 0.7 times the squared error of the values."""
    method, before, after, kept, _ = segment

    def loss(network):
        trajectory = kept.experience.trajectory
        advantages = jax.lax.stop_gradient(method.problem().advantages(before.weights.parameters, kept, None))
        values = jax.vmap(jax.vmap(network.critic))(trajectory.observations)[:, :-1]
        errors = jnp.where(trajectory.valid, values - kept.targets, 0.0)
        policy = policy_gradient_loss(network, trajectory, advantages, INNER.entropy_cost)
        return policy + 0.7 * jnp.sum(errors**2) / jnp.sum(trajectory.valid).astype(float)

    expected = jax.jit(lambda p: p.step(INNER.policy_optimiser, jax.grad(loss)(p.parameters)))(before.policy)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), after.policy, expected)


def test_metagradients_pass_through_the_joint_step(segment, x64):
    method, _, learner, kept, following = segment
    problem, outer = method.problem(), jax.jit(method.outer_data)(learner, following)
    arguments = (learner.weights.parameters, kept.policy.parameters, kept.policy.state, kept, outer)
    ours, theirs = (
        jax.jit(lambda *a, f=form: f(problem, *a))(*arguments) for form in (explicit_one_step, autodiff_one_step)
    )
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max())

    def objective(eta, tape=None):
        inner, evaluated = jax.tree.map(lambda x: x[None], (kept, outer))
        return unrolled_objective(problem, eta, kept.policy.parameters, kept.policy.state, inner, evaluated, tape)

    # Derivatives of about 1e-6: differences over shorter steps would be of rounding.
    checked = check_metagradient(jax.jit(objective), arguments[0], gradient=ours.gradient, has_tape=True, step=1e-3)
    assert np.abs(checked.numeric).max() > 1e-9
    assert checked.relative_error < 1e-5


def test_a2c_learns_both_in_one_step(segment, x64):
    _, _, _, kept, _ = segment
    method = make_method("a2c", inner=INNER, lambda_=0.95, network=NETWORK)
    env = InSegments(make_environment("bsuite/catch"), 12)
    learner = jax.jit(lambda key: method.init(key, env))(jax.random.key(1))
    after, _ = jax.jit(method.learn)(learner, kept.experience.trajectory)
    moved = jax.tree.map(lambda a, b: bool(np.any(a != b)), after.policy.parameters, learner.policy.parameters)
    assert all(jax.tree.leaves(moved)) and after.value is None


def test_other_methods_refuse_it():
    with refused("network.shared", "A2C and Meta-PWTD"):
        make_method("meta-pwr", network=NETWORK).init(jax.random.key(0), make_environment("bsuite/catch"))
