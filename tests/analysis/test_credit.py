"""Estimator quality against the exact gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.analysis import compare_estimators, estimator_quality, policy_gradient
from paircredit.analysis.credit import gradient_estimates
from paircredit.analysis.exact import expected_reward_on_entry, policy_values, weighted_values
from paircredit.envs import make_environment
from paircredit.experiments.diagnostic_runs import sample_episodes
from paircredit.weights import handcrafted_weights


@pytest.fixture(scope="module")
def comparison() -> dict[tuple[str, str], dict]:
    env = make_environment("dag", depth=6)
    model = env.model()
    logits = jnp.zeros(model.legal.shape).at[:, 1].set(0.7)  # the same preference everywhere
    episodes = jax.jit(sample_episodes, static_argnums=3)(env, logits, jax.random.key(0), 16_000)
    ones = jnp.ones((22, 22))
    rows = compare_estimators(
        model,
        logits,
        episodes,
        weight_tables={"handcrafted": handcrafted_weights(env).table, "all-one": ones},
        td_weight_tables={"all-one": ones},
        lambdas=(1.0, 0.5),
    )
    return {(row["estimator"], row["values"]): row for row in rows}


def test_monte_carlo_and_handcrafted_weights_are_unbiased(comparison: dict) -> None:
    for estimator in ("Monte Carlo", "PWR, handcrafted weights", "PWTD, all-one weights", "PWR, all-one weights"):
        for values in ("exact", "zero"):
            row = comparison[estimator, values]
            assert row["relative_bias"] < 2 * row["bias_noise"], (estimator, values)


def test_handcrafted_weights_are_biased_when_later_decisions_depend_on_where_they_are_made() -> None:
    """A decision also chooses which later states are met; handcrafted weights give it no credit for that."""
    env = make_environment("dag", depth=6)
    model = env.model()
    logits = jax.random.normal(jax.random.key(3), model.legal.shape)
    episodes = jax.jit(sample_episodes, static_argnums=3)(env, logits, jax.random.key(0), 16_000)
    tables = {"handcrafted": handcrafted_weights(env).table}
    rows = compare_estimators(model, logits, episodes, weight_tables=tables, td_weight_tables={}, lambdas=(1.0,))
    bias = {row["estimator"]: row["relative_bias"] / row["bias_noise"] for row in rows if row["values"] == "exact"}
    assert bias["Monte Carlo"] < 2
    assert bias["PWR, handcrafted weights"] > 4


def test_a_small_lambda_with_wrong_values_is_biased_and_with_exact_values_is_not(comparison: dict) -> None:
    assert comparison["λ = 0.5", "zero"]["relative_bias"] > 10 * comparison["λ = 0.5", "zero"]["bias_noise"]
    assert comparison["λ = 0.5", "exact"]["relative_bias"] < 2 * comparison["λ = 0.5", "exact"]["bias_noise"]


def test_handcrafted_weights_have_less_variance_than_monte_carlo(comparison: dict) -> None:
    for values in ("exact", "zero"):
        ours, classical = comparison["PWR, handcrafted weights", values], comparison["Monte Carlo", values]
        assert ours["variance"] < 0.7 * classical["variance"]
        assert ours["snr"] > classical["snr"]


def test_all_weights_one_is_monte_carlo(comparison: dict) -> None:
    for name in ("PWR, all-one weights", "PWTD, all-one weights"):
        for field in ("variance", "cosine", "snr"):
            np.testing.assert_allclose(
                comparison[name, "exact"][field], comparison["Monte Carlo", "exact"][field], rtol=1e-3
            )


def test_quality_by_hand() -> None:
    quality = estimator_quality(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([1.0, 0.0]))
    assert quality.relative_bias == 1.0
    assert quality.variance == 2.0
    assert quality.snr == 2.0
    assert quality.cosine == 1.0


def test_the_mean_estimate_converges_to_the_exact_gradient() -> None:
    env = make_environment("umbrella", length=4, variance=0.5)
    model = env.model()
    logits = jnp.zeros(model.legal.shape).at[0, 1].set(0.7)
    episodes = jax.jit(sample_episodes, static_argnums=3)(env, logits, jax.random.key(1), 8_000)
    returns = jnp.cumsum(episodes.rewards[:, ::-1], axis=1)[:, ::-1]
    estimates = gradient_estimates(model, logits, episodes, returns, 8)
    error = np.asarray(estimates.mean(axis=0)) - np.asarray(policy_gradient(model, logits)).reshape(-1)
    spread = np.asarray(estimates.std(axis=0)) / np.sqrt(len(estimates))
    assert (np.abs(error) <= 4 * spread + 1e-6).all()


def test_rewards_on_entry_add_up_to_values() -> None:
    env = make_environment("dag", depth=6, sign_rule="random")
    model = env.model()
    logits = jax.random.normal(jax.random.key(0), model.legal.shape)
    on_entry = expected_reward_on_entry(model, logits)
    np.testing.assert_allclose(on_entry.sum(axis=1), policy_values(model, logits), atol=1e-5)
    np.testing.assert_allclose(
        weighted_values(model, logits, 2 * jnp.ones((22, 22))), 2 * on_entry.sum(axis=1), atol=1e-5
    )
