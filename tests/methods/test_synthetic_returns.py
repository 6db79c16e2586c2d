"""Synthetic Returns: A2C where nothing is contributed, a cause that is found, who gets gradients, Key-to-Door."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import ActorCritic, InnerLoop, make_method
from paircredit.methods.loops import Trained
from paircredit.methods.synthetic_returns import SyntheticReturns, contribution_loss
from paircredit.networks import NetworkSpec
from paircredit.networks.state_functions import ContributionNetwork, ContributionTable, ValueTable
from paircredit.settings import with_values
from paircredit.training import collect_episodes
from paircredit.types import Trajectory
from tests import oracles
from tests.methods.quick_training import learners_after
from tests.methods.steps import policy_after
from tests.rungs import nightly_but

TINY = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
SGD = InnerLoop(
    optimiser="sgd", learning_rate=0.5, value_learning_rate=0.3, discount=0.9, entropy_cost=0.0, initial_scale=0.7
)
UMBRELLA = UmbrellaConfig(length=3, mean=0.5, variance=1.0, horizon=5).build()
"""Ten states, and two steps of padding in every episode."""
rng = np.random.default_rng(0)
values, later, gates, here = rng.normal(size=(4, 10)).astype(np.float32)


def key_to_door():
    return KeyToDoorConfig(key_steps=3, apple_steps=4, door_steps=3, fewest_apples=19).build()


@pytest.fixture(scope="module")
def batch():
    method = make_method("a2c", inner=SGD)

    @jax.jit
    def made(key):
        return collect_episodes(method, method.init(key, UMBRELLA), UMBRELLA, jax.random.key(1))

    return made(jax.random.key(0))


def contributing(learner, **parts):
    """The learner with other parameters, or another optimiser state, of c, g and b."""
    own = dataclasses.replace(learner.own, contribution=dataclasses.replace(learner.own.contribution, **parts))
    return dataclasses.replace(learner, own=own)


def generic(method: ActorCritic):
    """A learner whose values and contributions are not at their start."""
    learner = method.init(jax.random.key(5), UMBRELLA)
    table = ContributionTable(jnp.asarray(later), jnp.asarray(gates), jnp.asarray(here))
    value = dataclasses.replace(learner.value, parameters=ValueTable(jnp.asarray(values)))
    return contributing(dataclasses.replace(learner, value=value), parameters=table)


def test_the_credit_is_that_of_augmented_rewards(batch):
    """λ-advantages of α c + β r by loops; the credit that is shown adds up to them, and the policy steps along them."""
    method = make_method("synthetic-returns", inner=SGD, lambda_=0.8, synthetic_weight=0.7, reward_weight=0.4)
    learner = generic(method)
    credit, data = jax.device_get(method.credit(learner, batch)), jax.device_get(batch)
    rewards = 0.7 * later[data.observations[:, :-1]] + 0.4 * data.rewards
    discounts = np.where(data.terminated, 0.0, SGD.discount)
    episodes = zip(rewards, values[data.observations], discounts, np.full(rewards.shape, 0.8), data.valid, strict=True)
    expected = np.array([oracles.loop_lambda_advantages(*one) for one in episodes])
    np.testing.assert_allclose(credit.advantages, expected, rtol=1e-4, atol=1e-5)
    sums = [oracles.loop_pairwise_sum(*one) for one in zip(credit.weights, credit.signal, data.valid, strict=True)]
    np.testing.assert_allclose(credit.advantages, sums, rtol=1e-4, atol=1e-5)
    after, _ = method.learn(learner, batch)
    policy = policy_after(SGD, learner.policy, batch, jnp.asarray(credit.advantages))
    np.testing.assert_allclose(after.policy.parameters.logits, policy.parameters.logits, rtol=1e-5)
    targets = jnp.asarray(credit.advantages + values[data.observations[:, :-1]])
    value = SGD.improve_value(learner.value, batch, targets)
    np.testing.assert_allclose(after.value.parameters.values, value.parameters.values, rtol=1e-4, atol=1e-5)


def test_the_loss_by_loops(batch):
    table = generic(make_method("synthetic-returns", inner=SGD)).own.contribution.parameters
    data, total, count = jax.device_get(batch), 0.0, 0
    for states, rewards, valid in zip(data.observations, data.rewards, data.valid, strict=True):
        for t in np.nonzero(valid)[0]:
            before = sum(later[states[k]] for k in range(t))
            predicted = before / (1 + np.exp(-gates[states[t]])) + here[states[t]]
            total, count = total + 0.5 * (rewards[t] - predicted) ** 2, count + 1
    np.testing.assert_allclose(contribution_loss(table, batch), total / count, rtol=1e-5)


@pytest.mark.parametrize("place", nightly_but(["dag"], ["dag", "key-to-door"]))
def test_without_weight_for_contributions_it_is_a2c(place):
    """α = 0: the same keys make the same policies and values, whatever c, g and b learn beside them."""
    env = make_environment("dag", depth=4) if place == "dag" else key_to_door()
    inner = InnerLoop(episodes=3, discount=0.9, standardise=place != "dag")
    method = make_method(
        "synthetic-returns", inner=inner, lambda_=0.7, synthetic_weight=0.0, head_width=4, network=TINY
    )
    plain = make_method("a2c", inner=inner, lambda_=0.7, network=TINY)
    learner, twin = jax.jit(lambda key: (method.init(key, env), plain.init(key, env)))(jax.random.key(0))
    first, learn, learn_twin = learner, eqx.filter_jit(method.learn), eqx.filter_jit(plain.learn)
    collect = jax.jit(lambda learner, key: collect_episodes(method, learner, env, key))
    for seed in range(2):
        trajectory = collect(learner, jax.random.key(seed))
        learner, twin = learn(learner, trajectory)[0], learn_twin(twin, trajectory)[0]
    ours, theirs = (learner.policy, learner.value), (twin.policy, twin.value)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    moved = jax.tree.map(
        lambda a, b: jnp.abs(a - b).max(), first.own.contribution.parameters, learner.own.contribution.parameters
    )
    assert max(jax.tree.leaves(moved)) > 1e-3


def test_a_cause_is_found():
    """State 1 (and not 2) at step 1 brings +5 in state 4 two steps later, whatever lies between."""
    states = jnp.array([[0, 1, 3, 4, 5], [0, 2, 3, 4, 5]])
    rewards = jnp.array([[0.0, 0.0, 0.0, 5.0], [0.0] * 4])
    one = jnp.ones((2, 4), dtype=bool)
    data = Trajectory(states, one[..., None], jnp.zeros((2, 4), dtype=int), rewards, one & False, one & False, one)
    data = dataclasses.replace(data, terminated=data.terminated.at[:, 3].set(True))
    method = make_method("synthetic-returns", "probe")
    env = make_environment("probe-value")
    zeros = jnp.zeros(6)
    learner = method.init(jax.random.key(0), env)
    learner = dataclasses.replace(
        learner,
        policy=Trained.fresh(
            dataclasses.replace(learner.policy.parameters, logits=jnp.zeros((6, 1))), method.inner.policy_optimiser
        ),
        value=Trained.fresh(ValueTable(zeros), method.inner.value_optimiser),
    )
    table = ContributionTable(zeros, zeros, zeros)
    optimiser = method.inner.build_optimiser(method.rule.contribution_learning_rate)
    learner = contributing(learner, parameters=table, state=optimiser.init(table))

    @jax.jit
    def many(start):
        return jax.lax.scan(lambda before, _: (method.learn(before, data)[0], None), start, length=800)[0]

    learner = many(learner)
    table = learner.own.contribution.parameters
    assert contribution_loss(table, data) < 0.01
    known = jax.vmap(table)(jnp.arange(6))
    np.testing.assert_allclose(known.gate[4] * (known.later[1] - known.later[2]), 5, atol=0.3)
    assert known.gate[3] < 0.2 < 0.8 < known.gate[4], "nothing arrives on the way"
    # Being in state 1 is now worth α (c(1) − c(2)) more than being in state 2, beside the 5 that are to come.
    first, second = learner.value.parameters.values[1:3]
    np.testing.assert_allclose(first - second, 0.3 * (known.later[1] - known.later[2]) + 0.9**2 * 5, atol=0.2)


def test_memories_keep_no_gradient():
    """The head of c learns from sums over earlier states, but the perception module hears of g and b alone."""
    env = key_to_door()
    method = make_method(
        "synthetic-returns", inner=InnerLoop(episodes=2, initial_scale=1.0), head_width=4, network=TINY
    )

    @jax.jit
    def started(key):
        learner = method.init(key, env)
        return learner.own.contribution.parameters, collect_episodes(method, learner, env, key).observations

    model, observations = started(jax.random.key(0))
    assert isinstance(model, ContributionNetwork)

    @jax.jit
    def outputs_and_gradients(model):
        """What the model says, and the gradient of the sum of each of its outputs."""
        known, back = jax.vjp(lambda m: jax.vmap(jax.vmap(m))(observations), model)
        zeros = jax.tree.map(jnp.zeros_like, known)
        return known, [back(zeros._replace(**{name: jnp.ones_like(x)}))[0] for name, x in known._asdict().items()]

    known, all_gradients = outputs_and_gradients(model)
    for name, gradients in zip(known._fields, all_gradients, strict=True):
        reaches = name != "later"
        assert (np.abs(gradients.perception.last.weight).max() > 0) == reaches
        assert np.abs(getattr(gradients, name).last.weight).max() > 0
    assert np.abs(known.later).max() < 0.1 and np.abs(known.here).max() < 0.1
    np.testing.assert_allclose(known.gate, 0.5, atol=0.05)


def test_key_to_door_presets():
    paper, default, small = (
        make_method("synthetic-returns", name, "key-to-door") for name in ("paper", "default", "small")
    )
    for method in (paper, default):
        assert (method.rule.lambda_, method.rule.synthetic_weight, method.rule.reward_weight) == (0.5, 0.3, 1.0)
        assert method.inner.learning_rate == method.rule.contribution_learning_rate == 2e-4
        assert method.rule.head_width == 128 and method.network.trunk == (512, 256)
    assert small.rule.contribution_learning_rate == 2e-3 and small.rule.head_width == 32
    for preset in ("default", "paper"):
        assert make_method("synthetic-returns", preset, "dag") == ActorCritic(SyntheticReturns())


@pytest.mark.nightly
def test_trains_in_key_to_door():
    base = make_method("synthetic-returns", "small", "key-to-door", network=TINY, head_width=4)
    base = dataclasses.replace(base, inner=dataclasses.replace(base.inner, episodes=2))
    faster = with_values(base, contribution_learning_rate=2e-2)
    learner = learners_after(3, [base, faster], key_to_door())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner))
    moved = np.abs(np.asarray(learner.own.contribution.parameters.here.last.bias))[:, 0]
    assert 0 < moved[0] < 0.01 < moved[1]
