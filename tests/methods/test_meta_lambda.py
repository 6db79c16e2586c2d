"""Meta-λ(s): against NumPy, against A2C where λ is constant, its metagradient, and in Key-to-Door."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.dag import DagConfig
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import ActorCritic, InnerLoop, OuterLoop, make_method
from paircredit.methods.meta_lambda import MetaLambda
from paircredit.networks import NetworkSpec
from paircredit.networks.state_functions import LambdaNetwork, LambdaTable, ValueTable
from paircredit.training import check_method, collect_episodes
from paircredit.weights import exponential_weights
from paircredit.weights.tables import trace_weights
from tests import oracles
from tests.methods.quick_training import learners_after
from tests.methods.steps import policy_after
from tests.sentences import refused

TINY = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
SGD = InnerLoop(
    optimiser="sgd", learning_rate=0.5, value_learning_rate=0.3, discount=0.9, entropy_cost=0.0, initial_scale=0.7
)
UMBRELLA = UmbrellaConfig(length=3, mean=0.5, variance=1.0, horizon=5).build()
"""Ten states, and two steps of padding in every episode."""
rng = np.random.default_rng(0)
values = rng.normal(size=10).astype(np.float32)
logits = rng.normal(size=10).astype(np.float32)


def key_to_door():
    return KeyToDoorConfig(key_steps=3, apple_steps=4, door_steps=3, fewest_apples=19).build()


@pytest.fixture(scope="module")
def batch():
    method = make_method("a2c", inner=SGD)

    @jax.jit
    def made(key):
        return collect_episodes(method, method.init(key, UMBRELLA), UMBRELLA, jax.random.key(1))

    return made(jax.random.key(0))


def generic(method: ActorCritic):
    """A learner whose values and λ(s) are not at their start."""
    learner = jax.jit(lambda key: method.init(key, UMBRELLA))(jax.random.key(5))
    return dataclasses.replace(
        learner,
        weighted_value=dataclasses.replace(learner.weighted_value, parameters=ValueTable(jnp.asarray(values))),
        weights=dataclasses.replace(learner.weights, parameters=LambdaTable(jnp.asarray(logits))),
    )


def test_a_hand_calculated_trace():
    weights = trace_weights(jnp.array([0.5, 0.2, 0.0, 0.7]))
    expected = [[1, 0.5, 0.1, 0], [0, 1, 0.2, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    np.testing.assert_allclose(
        trace_weights(jnp.full((6,), 0.9 * 0.8)), exponential_weights(6, 0.9, 0.8), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("at", ["next", "current"])
def test_the_advantage_is_the_double_sum(batch, at):
    """Σ_k Π_j γ_j λ(S_j) δ_k by loops; the credit that is shown adds up to it, and θ and v_w step along it."""
    method = make_method("meta-lambda", inner=SGD, at=at)
    learner = generic(method)
    credit, data = jax.device_get((jax.jit(method.credit)(learner, batch), batch))
    lambdas = 1 / (1 + np.exp(-logits[data.observations]))
    lambdas = lambdas[:, 1:] if at == "next" else lambdas[:, :-1]
    discounts = np.where(data.terminated, 0.0, SGD.discount)
    expected = np.array(
        [
            oracles.loop_lambda_advantages(*one)
            for one in zip(data.rewards, values[data.observations], discounts, lambdas, data.valid, strict=True)
        ]
    )
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(credit.advantages, expected, rtol=1e-4, atol=1e-5)
    sums = [oracles.loop_pairwise_sum(*one) for one in zip(credit.weights, credit.signal, data.valid, strict=True)]
    np.testing.assert_allclose(credit.advantages, sums, rtol=1e-4, atol=1e-5)

    after, _ = jax.jit(method.learn)(learner, batch)
    policy = policy_after(method.inner, learner.policy, batch, jnp.asarray(expected, dtype=jnp.float32))
    np.testing.assert_allclose(after.policy.parameters.logits, policy.parameters.logits, rtol=1e-4, atol=1e-5)
    step = np.zeros(10)
    for b, t in zip(*np.nonzero(data.valid), strict=True):
        step[data.observations[b, t]] += expected[b, t]  # v − (Ψ + v)
    np.testing.assert_allclose(
        after.weighted_value.parameters.values, values + 0.3 * step / data.valid.sum(), rtol=1e-4, atol=1e-5
    )


def test_the_two_readings_differ(batch):
    one, other = (make_method("meta-lambda", inner=SGD, at=at) for at in ("next", "current"))
    first, second = (jax.jit(method.credit)(generic(method), batch).advantages for method in (one, other))
    assert np.abs(first - second).max() > 0.01


def test_another_reading_is_refused(batch, users_view):
    method = make_method("meta-lambda", inner=SGD, at="last")
    with refused("'last'", "next", "current"):
        method.learn(generic(method), batch)


@pytest.mark.parametrize(
    "place, initial_lambda", [("dag", 0.5), ("dag", 0.8), pytest.param("key-to-door", 0.5, marks=pytest.mark.nightly)]
)
def test_a_constant_lambda_is_a2c(place, initial_lambda):
    """With equal parameters at the start, three updates of policy and weighted value are those of fixed-λ A2C."""
    env = DagConfig(depth=4).build() if place == "dag" else key_to_door()
    inner = InnerLoop(episodes=3, discount=0.95, standardise=place != "dag")
    outer = OuterLoop(learning_rate=0.0, initial_scale=0.0)
    meta = make_method("meta-lambda", inner=inner, outer=outer, initial_lambda=initial_lambda, network=TINY)
    fixed = make_method("a2c", inner=inner, lambda_=initial_lambda, network=TINY)
    learner = start = jax.jit(lambda key: meta.init(key, env))(jax.random.key(0))
    twin = jax.eval_shape(lambda key: fixed.init(key, env), jax.random.key(1))
    twin = dataclasses.replace(twin, policy=learner.policy, value=learner.weighted_value)
    learn, learn_twin = jax.jit(meta.learn), jax.jit(fixed.learn)
    collect = jax.jit(lambda learner, key: collect_episodes(meta, learner, env, key))
    for seed in range(3):
        trajectory = collect(learner, jax.random.key(seed))
        learner, twin = learn(learner, trajectory)[0], learn_twin(twin, trajectory)[0]
    ours, theirs = (learner.policy, learner.weighted_value), (twin.policy, twin.value)
    moved = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), start.policy.parameters, learner.policy.parameters)
    assert max(jax.tree.leaves(moved)) > 0.01
    # ½ is the sigmoid of 0 to the last bit; other λ are rounded, and so are networks.
    exact = place == "dag" and initial_lambda == 0.5
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6)


@pytest.mark.parametrize(
    "place, kind", [("dag", LambdaTable), pytest.param("key-to-door", LambdaNetwork, marks=pytest.mark.nightly)]
)
def test_lambda_starts_near_the_same_number_everywhere(place, kind):
    env = DagConfig(depth=4).build() if place == "dag" else key_to_door()

    @jax.jit
    def started(method):
        learner = method.init(jax.random.key(0), env)
        trajectory = collect_episodes(method, learner, env, jax.random.key(1))
        return learner, jax.vmap(jax.vmap(learner.weights.parameters))(trajectory.observations)

    for start in (0.5, 0.9):
        method = make_method("meta-lambda", inner=InnerLoop(episodes=4), initial_lambda=start, network=TINY)
        learner, lambdas = started(method)
        assert isinstance(learner.weights.parameters, kind)
        np.testing.assert_allclose(lambdas, start, atol=0.01)
        assert lambdas.std() > 0


class TestMetagradient:
    @pytest.mark.nightly
    def test_finite_differences_agree_on_tables(self, x64):
        """With the other reading; those with the usual one are in the contract."""
        method = make_method("meta-lambda", at="current", outer=OuterLoop(initial_scale=1.0))
        checked = check_method(method, make_environment("dag", depth=4), updates=3, directions=4)
        assert np.abs(checked.numeric).max() > 1e-6
        assert checked.relative_error < 1e-6

    @pytest.mark.nightly
    def test_finite_differences_agree_in_key_to_door(self, x64):
        """Standardised, two updates: the first of Adam alone would be a sign step, which passes nothing on."""
        inner = InnerLoop(episodes=2, standardise=True, discount=0.9, entropy_cost=0.05, initial_scale=1.0)
        method = make_method(
            "meta-lambda", inner=inner, outer=OuterLoop(initial_scale=1.0, clip_norm=None), network=TINY
        )
        checked = check_method(method, key_to_door(), updates=2, directions=3)
        assert np.abs(checked.numeric).max() > 1e-9
        assert checked.relative_error < 1e-5

    def test_the_lambda_of_a_final_state_has_no_gradient(self, batch):
        """Nothing lies after it that could be weighed."""
        method = make_method("meta-lambda", inner=SGD)
        learner = generic(method)
        kept = jax.jit(method.learn)(learner, batch)[1]

        def total(weights):
            return jnp.sum(method.problem().advantages(weights, kept, None))

        gradient = jax.jit(jax.grad(total))(learner.weights.parameters).logits
        final = np.unique(np.asarray(batch.observations)[:, -1])
        assert not np.asarray(gradient)[final].any()
        assert np.abs(gradient).max() > 1e-3


def test_key_to_door_presets():
    paper, default, small = (make_method("meta-lambda", name, "key-to-door") for name in ("paper", "default", "small"))
    for method in (paper, default):
        assert (method.outer.learning_rate, method.outer.lambda_, method.outer.clip_norm) == (1e-6, 1.0, None)
        assert method.inner.learning_rate == 2e-4 and method.inner.standardise
        assert method.network.trunk == (512, 256) and method.rule.initial_lambda == 0.5 and method.rule.at == "next"
    assert small.outer.learning_rate > 1e-4 and small.network.trunk == (64, 64)
    for preset in ("default", "paper"):
        assert make_method("meta-lambda", preset, "dag") == ActorCritic(MetaLambda(), outer=OuterLoop())


@pytest.mark.nightly
def test_trains_in_key_to_door():
    """The shared loop, two members with rates of their own: everything moves and stays finite."""
    base = make_method("meta-lambda", "small", "key-to-door", network=TINY)
    base = dataclasses.replace(base, inner=dataclasses.replace(base.inner, episodes=2))
    faster = dataclasses.replace(base, outer=dataclasses.replace(base.outer, learning_rate=1e-2))
    learner = learners_after(3, [base, faster], key_to_door())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner))
    bias = np.abs(np.asarray(learner.weights.parameters.head.bias))[:, 0]
    assert 0 < bias[0] <= 3e-3 * 2 and bias[1] > 2 * bias[0]
