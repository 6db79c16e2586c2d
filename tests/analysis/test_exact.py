"""Exact answers against the enumeration of all paths, simulation, and finite differences."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.analysis import exact
from paircredit.envs import TabularModel
from paircredit.envs.dag import DagConfig
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import InnerLoop, make_method
from paircredit.networks.state_functions import PolicyTable
from paircredit.training import collect_episodes

DISCOUNT = 0.9
rng = np.random.default_rng(0)
logits = rng.normal(size=(10, 2))
pair_weights = rng.uniform(size=(10, 10))


def probabilities(model, table) -> np.ndarray:
    """The softmax over legal actions."""
    raised = np.exp(table) * np.asarray(model.legal)
    return raised / raised.sum(axis=1, keepdims=True)


def paths(model, table, state):
    """All ways from a state to the end: (probability, [(state, action, reward, next state), …])."""
    if model.next_state[state, 0] == state:
        return [(1.0, [])]
    found = []
    for action, chance in enumerate(probabilities(model, table)[state]):
        if chance > 0:
            following = int(model.next_state[state, action])
            step = (state, action, float(model.reward_mean[state, action]), following)
            found += [(chance * p, [step, *rest]) for p, rest in paths(model, table, following)]
    return found


@pytest.fixture(scope="module")
def dag():
    return DagConfig(depth=4, sign_rule="random", sign_seed=1).build().model()


@pytest.fixture(scope="module")
def dag_paths(dag):
    return [paths(jax.device_get(dag), logits, state) for state in range(10)]


def discounted(path, discount=DISCOUNT):
    return sum(discount**k * reward for k, (_, _, reward, _) in enumerate(path))


def test_probabilities(dag):
    actual = exact.policy_probabilities(dag, jnp.asarray(logits))
    np.testing.assert_allclose(actual, probabilities(dag, logits), rtol=1e-5)
    np.testing.assert_array_equal(actual[3:], [[1.0, 0.0]] * 7)


def test_policy_values_by_enumeration(dag, dag_paths):
    expected = [sum(p * discounted(path) for p, path in found) for found in dag_paths]
    np.testing.assert_allclose(exact.policy_values(dag, jnp.asarray(logits), DISCOUNT), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(exact.expected_return(dag, jnp.asarray(logits), DISCOUNT), expected[0], rtol=1e-5)


def test_policy_gradient_by_enumeration(dag, dag_paths):
    """∇J = Σ_paths P(path) G(path) Σ_t ∇ log π(A_t|S_t)."""
    π = probabilities(dag, logits)
    expected = np.zeros((10, 2))
    for p, path in dag_paths[0]:
        for state, action, _, _ in path:
            expected[state] += p * discounted(path) * (np.eye(2)[action] - π[state])
    actual = exact.policy_gradient(dag, jnp.asarray(logits), DISCOUNT)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    assert np.abs(expected[:3]).min() > 1e-3, "every decision matters"


def test_policy_gradient_by_finite_differences(x64):
    model = DagConfig(depth=4).build().model()
    table = jnp.asarray(logits)
    compiled = jax.jit(lambda x: exact.expected_return(model, x, DISCOUNT))
    gradient = exact.policy_gradient(model, table, DISCOUNT)
    for state, action in np.ndindex(10, 2):
        nudge = jnp.zeros((10, 2)).at[state, action].set(1e-5)
        slope = (compiled(table + nudge) - compiled(table - nudge)) / 2e-5
        np.testing.assert_allclose(gradient[state, action], slope, rtol=1e-6, atol=1e-9)


def test_policy_values_by_simulation(dag):
    """100,000 episodes; every state that is visited has its Monte Carlo mean near its value."""
    env = DagConfig(depth=4, sign_rule="random", sign_seed=1).build()
    method = make_method("a2c", inner=InnerLoop(episodes=100_000))
    learner = method.init(jax.random.key(0), env)
    learner = dataclasses.replace(
        learner, policy=dataclasses.replace(learner.policy, parameters=PolicyTable(jnp.asarray(logits)))
    )
    episodes = jax.device_get(jax.jit(lambda key: collect_episodes(method, learner, env, key))(jax.random.key(1)))
    returns, following = np.zeros(episodes.rewards.shape), 0.0
    for t in reversed(range(4)):
        following = returns[:, t] = episodes.rewards[:, t] + DISCOUNT * following
    values = exact.policy_values(dag, jnp.asarray(logits), DISCOUNT)
    for state in range(9):
        t = {0: 0, 1: 1, 2: 1, 7: 3, 8: 3}.get(state, 2)
        here = returns[episodes.observations[:, t] == state, t]
        assert len(here) > 1000
        assert abs(here.mean() - values[state]) <= 5 * here.std() / np.sqrt(len(here)) + 1e-5


class TestOptimalValues:
    def test_dag_8(self):
        values = exact.optimal_values(DagConfig(depth=8).build().model())
        assert values[0] == 4
        assert values[45] == 0
        # 15 has nothing but zeros after it, 30 nothing but ones.
        assert (values[15], values[30]) == (-4, 4)
        # A first decision of 0 costs 1 at the very end, the other three can still pay.
        assert (values[1], values[2]) == (2, 4)

    def test_discounting(self):
        γ = 0.5
        values = exact.optimal_values(DagConfig(depth=4).build().model(), γ)
        np.testing.assert_allclose(values[0], γ**2 + γ**3)

    def test_no_policy_is_better(self, dag, dag_paths):
        best = exact.optimal_values(dag, DISCOUNT)
        assert (best >= exact.policy_values(dag, jnp.asarray(logits), DISCOUNT) - 1e-6).all()
        returns = [discounted(path) for _, path in dag_paths[0]]
        np.testing.assert_allclose(best[0], max(returns), rtol=1e-6)


def test_what_is_not_allowed_does_not_count():
    """One decision; action 1 would pay best but is illegal."""
    model = TabularModel(
        next_state=jnp.array([[1, 1, 1], [1, 1, 1]]),
        reward_mean=jnp.array([[2.0, 9.0, 3.0], [0.0, 0.0, 0.0]]),
        reward_variance=jnp.zeros((2, 3)),
        legal=jnp.array([[True, False, True], [True, True, True]]),
        start=0,
        horizon=1,
    )
    uniform = jnp.zeros((2, 3))
    assert exact.optimal_values(model)[0] == 3
    assert exact.expected_return(model, uniform) == 2.5
    np.testing.assert_allclose(exact.policy_gradient(model, uniform), [[-0.25, 0, 0.25], [0, 0, 0]])
    np.testing.assert_allclose(exact.weighted_values(model, uniform, jnp.full((2, 2), 2.0)), [5, 0])


class TestWeightedValues:
    def test_by_enumeration(self, dag, dag_paths):
        """V^PWR(i) = E[Σ_k w(i, S_k) R_k | S_t = i]."""
        expected = [
            sum(p * sum(pair_weights[i, entered] * r for _, _, r, entered in path) for p, path in found)
            for i, found in enumerate(dag_paths)
        ]
        actual = exact.weighted_values(dag, jnp.asarray(logits), jnp.asarray(pair_weights))
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)

    def test_what_is_paid_on_entry_by_enumeration(self, dag, dag_paths):
        expected = np.zeros((10, 10))
        for i, found in enumerate(dag_paths):
            for p, path in found:
                for _, _, reward, entered in path:
                    expected[i, entered] += p * reward
        actual = exact.expected_reward_on_entry(dag, jnp.asarray(logits))
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)

    def test_weights_of_one_give_the_regular_value(self, dag):
        actual = exact.weighted_values(dag, jnp.asarray(logits), jnp.ones((10, 10)))
        np.testing.assert_allclose(actual, exact.policy_values(dag, jnp.asarray(logits)), rtol=1e-5, atol=1e-6)

    def test_in_float64(self, x64):
        model = DagConfig(depth=4).build().model()
        values = exact.weighted_values(model, jnp.asarray(logits), jnp.ones((10, 10)))
        np.testing.assert_allclose(values, exact.policy_values(model, jnp.asarray(logits)), rtol=1e-12, atol=1e-14)


class TestUmbrella:
    """V(s_0) = (T−1)μ + E[R_T] (paper, illustrative MDP)."""

    model = UmbrellaConfig(length=4, mean=0.5, variance=7.0, reward=3.0, horizon=6).build().model()
    table = jnp.zeros((12, 2)).at[0].set(jnp.array([0.0, np.log(3.0)]))  # the umbrella is taken 3 times out of 4

    def test_values(self):
        values = exact.policy_values(self.model, self.table)
        np.testing.assert_allclose(values[0], 3 * 0.5 + 3 * (0.75 - 0.25), rtol=1e-6)
        for t in (1, 2, 3):
            for choice, final in ((0, -3.0), (1, 3.0)):
                np.testing.assert_allclose(values[2 * t - 1 + choice], (3 - t) * 0.5 + final, rtol=1e-6)
        assert values[11] == 0

    def test_discounted(self):
        γ = 0.5
        expected = 0.5 * (1 + γ + γ**2) + γ**3 * 1.5
        np.testing.assert_allclose(exact.expected_return(self.model, self.table, γ), expected, rtol=1e-6)

    def test_gradient(self):
        """Only the morning has a choice: ∂J/∂θ_1 = π_1 (Q_1 − V) = ¾(3 − 1.5)."""
        gradient = exact.policy_gradient(self.model, self.table)
        np.testing.assert_allclose(gradient[0], [-0.75 * 1.5, 0.75 * 1.5], rtol=1e-5)
        assert not gradient[1:].any()

    def test_best(self):
        np.testing.assert_allclose(exact.optimal_values(self.model)[0], 1.5 + 3)
