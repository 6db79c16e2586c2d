"""One update of every method, against NumPy: advantages by loops, policy and values by hand-written SGD."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.dag import DagConfig
from paircredit.methods import OuterLoop, make_method
from paircredit.networks.state_functions import PolicyTable, ValueTable
from paircredit.training import collect_episodes
from paircredit.weights import SigmoidTable
from tests import oracles
from tests.methods.contract import INNER, policy_step, umbrella
from tests.sentences import refused

ENV = umbrella()
rng = np.random.default_rng(0)
regular_values, weighted_values = rng.normal(size=(2, 10)).astype(np.float32)
table = rng.uniform(size=(10, 10)).astype(np.float32)


def with_values(learner):
    """The learner with generic value tables."""
    value, weighted_value = learner.value, learner.weighted_value
    if value is not None:
        value = dataclasses.replace(value, parameters=ValueTable(jnp.asarray(regular_values)))
    if weighted_value is not None:
        weighted_value = dataclasses.replace(weighted_value, parameters=ValueTable(jnp.asarray(weighted_values)))
    return dataclasses.replace(learner, value=value, weighted_value=weighted_value)


@pytest.fixture(scope="module")
def batch():
    method = make_method("a2c", inner=INNER)

    @jax.jit
    def made(key):
        return collect_episodes(method, method.init(key, ENV), ENV, jax.random.key(1))

    return made(jax.random.key(0))


def learned(method, learner, batch):
    return jax.jit(lambda *given: method.learn(*given))(learner, batch)


def expected_values(batch, values, targets):
    """v − α mean (v − G)."""
    batch = jax.device_get(batch)
    step = np.zeros_like(values)
    for b, t in zip(*np.nonzero(batch.valid), strict=True):
        state = batch.observations[b, t]
        step[state] += values[state] - targets[b, t]
    return values - INNER.value_learning_rate * step / batch.valid.sum()


def regular_quantities(batch, lambda_):
    """λ-advantages, TD errors and Monte Carlo returns with the regular values."""
    batch = jax.device_get(batch)
    discounts = np.where(batch.terminated, 0.0, INNER.discount)
    values = regular_values[batch.observations]
    rows = range(len(values))
    advantages = [
        oracles.loop_lambda_advantages(batch.rewards[b], values[b], discounts[b], np.full(5, lambda_), batch.valid[b])
        for b in rows
    ]
    errors = [oracles.loop_td_errors(batch.rewards[b], values[b], discounts[b], batch.valid[b]) for b in rows]
    returns = [oracles.loop_returns(batch.rewards[b], discounts[b], batch.valid[b]) for b in rows]
    return np.array(advantages), np.array(errors), np.array(returns)


def weighted(batch, matrix, signal):
    """Σ_k w(S_t, S_k) x_k of every episode."""
    batch = jax.device_get(batch)
    return np.array(
        [
            oracles.loop_pairwise_sum(matrix[s[:-1, None], s[None, 1:]], x, valid)
            for s, x, valid in zip(batch.observations, signal, batch.valid, strict=True)
        ]
    )


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_a2c(batch):
    method = make_method("a2c", inner=INNER, lambda_=0.8)
    before = with_values(method.init(jax.random.key(5), ENV))
    after, kept = learned(method, before, batch)
    advantages, _, _ = regular_quantities(batch, 0.8)
    logits = np.asarray(before.policy.parameters.logits)
    close(after.policy.parameters.logits, policy_step(batch, logits, advantages))
    targets = advantages + regular_values[np.asarray(batch.observations)][:, :-1]
    close(after.value.parameters.values, expected_values(batch, regular_values, targets))
    assert kept == ()


def test_hpwr(batch):
    method = make_method("h-pwr", inner=INNER, table=jnp.asarray(table))
    before = with_values(method.init(jax.random.key(5), ENV))
    after, _ = learned(method, before, batch)
    returns = weighted(batch, table, np.asarray(batch.rewards))
    advantages = returns - weighted_values[np.asarray(batch.observations)][:, :-1]
    logits = np.asarray(before.policy.parameters.logits)
    close(after.policy.parameters.logits, policy_step(batch, logits, advantages))
    close(after.weighted_value.parameters.values, expected_values(batch, weighted_values, returns))
    np.testing.assert_array_equal(after.weights.parameters.table, table)


def test_meta_pwr(batch):
    method = make_method("meta-pwr", inner=INNER, outer=OuterLoop(initial_scale=2.0))
    before = with_values(method.init(jax.random.key(5), ENV))
    after, _ = learned(method, before, batch)
    matrix = 1 / (1 + np.exp(-np.asarray(before.weights.parameters.eta)))
    returns = weighted(batch, matrix, np.asarray(batch.rewards))
    advantages = returns - weighted_values[np.asarray(batch.observations)][:, :-1]
    logits = np.asarray(before.policy.parameters.logits)
    close(after.policy.parameters.logits, policy_step(batch, logits, advantages))
    close(after.weighted_value.parameters.values, expected_values(batch, weighted_values, returns))
    _, _, monte_carlo = regular_quantities(batch, 1.0)
    close(after.value.parameters.values, expected_values(batch, regular_values, monte_carlo))


def test_meta_pwtd(batch):
    method = make_method("meta-pwtd", inner=INNER, outer=OuterLoop(initial_scale=2.0))
    before = with_values(method.init(jax.random.key(5), ENV))
    after, _ = learned(method, before, batch)
    matrix = 1 / (1 + np.exp(-np.asarray(before.weights.parameters.eta)))
    _, errors, monte_carlo = regular_quantities(batch, 1.0)
    logits = np.asarray(before.policy.parameters.logits)
    close(after.policy.parameters.logits, policy_step(batch, logits, weighted(batch, matrix, errors)))
    close(after.value.parameters.values, expected_values(batch, regular_values, monte_carlo))


def test_the_metagradient_is_clipped_to_the_norm_of_the_paper():
    """After a clip, the second moment knows the clipped gradient only."""
    method = make_method("meta-pwr")
    learner = method.init(jax.random.key(0), ENV)
    gradient = SigmoidTable(jnp.ones((10, 10)))  # norm 10
    second = method.improve_weights(learner, gradient).weights.state.second.eta
    np.testing.assert_allclose(second, np.full((10, 10), 0.001 * (0.5 / 10) ** 2), rtol=1e-4)


def test_a2c_with_lambda_1_is_hpwr_with_weights_of_1_where_values_are_0(batch):
    """The regular return is a weighted return."""
    inner = dataclasses.replace(INNER, discount=1.0)
    a2c, hpwr = make_method("a2c", inner=inner), make_method("h-pwr", inner=inner, table=jnp.ones((10, 10)))
    key = jax.random.key(7)
    one, _ = learned(a2c, a2c.init(key, ENV), batch)
    other, _ = learned(hpwr, hpwr.init(key, ENV), batch)
    np.testing.assert_allclose(one.policy.parameters.logits, other.policy.parameters.logits, rtol=1e-6)
    np.testing.assert_allclose(one.value.parameters.values, other.weighted_value.parameters.values, rtol=1e-6)


@pytest.mark.parametrize("name", ["a2c", "h-pwr", "meta-pwr", "meta-pwtd"])
def test_states_without_a_choice_keep_their_logits(batch, name):
    method = make_method(name, inner=dataclasses.replace(INNER, entropy_cost=0.5))
    before = method.init(jax.random.key(0), ENV)
    after, _ = learned(method, before, batch)
    moved = np.asarray(after.policy.parameters.logits - before.policy.parameters.logits)
    assert np.abs(moved[0]).min() > 0 and not moved[1:].any()


class TestInitialisation:
    env = DagConfig(depth=4).build()

    @pytest.mark.parametrize(
        "name, values",
        [
            ("a2c", ["value"]),
            ("h-pwr", ["weighted_value"]),
            ("meta-pwr", ["value", "weighted_value"]),
            ("meta-pwtd", ["value"]),
        ],
    )
    def test_nearly_uniform_and_worth_nothing(self, name, values):
        learner = make_method(name).init(jax.random.key(0), self.env)
        assert isinstance(learner.policy.parameters, PolicyTable)
        assert 0 < np.abs(learner.policy.parameters.logits).max() < 0.06
        assert [name for name in ("value", "weighted_value") if vars(learner)[name] is not None] == values
        assert not any(vars(learner)[name].parameters.values.any() for name in values)

    def test_hpwr_takes_the_handcrafted_weights(self):
        assert make_method("h-pwr").init(jax.random.key(0), self.env).weights.parameters.table.sum() == 3

    def test_hpwr_refuses_a_table_of_another_environment(self):
        with refused("table of weights", "dag-4", "(46, 46)", "(10, 10)"):
            make_method("h-pwr", table=jnp.ones((46, 46))).init(jax.random.key(0), self.env)

    def test_hpwr_without_a_table_needs_handcrafted_weights(self):
        with refused("probe-value", "table"):
            make_method("h-pwr").init(jax.random.key(0), make_environment("probe-value"))

    def test_meta_pwtd_takes_a_fixed_value(self):
        values = jnp.arange(10.0)
        learner = make_method("meta-pwtd", fixed_value=values).init(jax.random.key(0), self.env)
        np.testing.assert_array_equal(learner.value.parameters.values, values)

    def test_meta_pwtd_refuses_a_fixed_value_of_another_environment(self):
        with refused("dag-4", "(46,)", "(10,)"):
            make_method("meta-pwtd", fixed_value=jnp.ones(46)).init(jax.random.key(0), self.env)


def test_a_fixed_value_stays(batch):
    values = jnp.arange(10.0)
    method = make_method("meta-pwtd", inner=INNER, fixed_value=values)
    after, _ = learned(method, method.init(jax.random.key(0), ENV), batch)
    np.testing.assert_array_equal(after.value.parameters.values, values)
