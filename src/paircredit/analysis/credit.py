"""How good is an estimator? Its gradient against the exact one, on the same data as all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from paircredit.analysis.exact import policy_gradient, policy_probabilities, policy_values, weighted_values
from paircredit.envs.protocol import TabularModel
from paircredit.estimators import lambda_advantages, pwr, pwtd
from paircredit.types import Trajectory


class EstimatorQuality(NamedTuple):
    """How the gradient estimates of one estimator lie around the exact gradient g.

    Attributes:
        relative_bias: |mean estimate − g| / |g|.
        bias_noise: the length that |mean estimate − g| / |g| has by chance alone when there is no bias.
        variance: trace of the covariance of an estimate, over |g|².
        cosine: mean cosine between an estimate and g.
        snr: |mean estimate|² over the trace of the covariance.
    """

    relative_bias: float
    bias_noise: float
    variance: float
    cosine: float
    snr: float


def gradient_estimates(
    model: TabularModel,
    logits: Float[Array, "S A"],
    trajectories: Trajectory,
    advantages: Float[Array, "N T"],
    batch: int,
) -> Float[Array, "K SA"]:
    """Σ_t Ψ_t ∇log π(A_t|S_t) of the policy that collected N episodes, averaged over batches of them.

    A batch, whose size must divide N, gives one flat gradient estimate.
    """
    probabilities = policy_probabilities(model, logits)

    def one(states: Array, actions: Array, valid: Array, psi: Array) -> Array:
        scores = jax.nn.one_hot(actions, logits.shape[1], dtype=logits.dtype) - probabilities[states]
        table = jnp.zeros_like(logits).at[states].add(jnp.where(valid, psi, 0.0)[:, None] * scores)
        return table.reshape(-1)

    episodes = jax.vmap(one)(trajectories.observations[:, :-1], trajectories.actions, trajectories.valid, advantages)
    return episodes.reshape(-1, batch, episodes.shape[-1]).mean(axis=1)


def estimator_quality(estimates: np.ndarray, exact: np.ndarray) -> EstimatorQuality:
    """Bias, variance, cosine and signal-to-noise ratio of gradient estimates [K, P] against the exact gradient [P]."""
    estimates, exact = np.asarray(estimates, dtype=np.float64), np.asarray(exact, dtype=np.float64).reshape(-1)
    norm = float(np.linalg.norm(exact))
    mean = estimates.mean(axis=0)
    spread = float(estimates.var(axis=0, ddof=1).sum())
    lengths = np.linalg.norm(estimates, axis=1)
    cosines = (estimates @ exact) / np.where(lengths > 0, lengths * norm, 1.0)
    return EstimatorQuality(
        relative_bias=float(np.linalg.norm(mean - exact)) / norm,
        bias_noise=float(np.sqrt(spread / len(estimates))) / norm,
        variance=spread / norm**2,
        cosine=float(cosines.mean()),
        snr=float(mean @ mean) / spread if spread > 0 else float("inf"),
    )


def compare_estimators(
    model: TabularModel,
    logits: Float[Array, "S A"],
    trajectories: Trajectory,
    *,
    weight_tables: Mapping[str, Float[Array, "S S"]],
    td_weight_tables: Mapping[str, Float[Array, "S S"]],
    lambdas: tuple[float, ...] = (1.0, 0.9, 0.5),
    batch: int = 8,
) -> list[dict[str, object]]:
    """Every estimator on the same N episodes of the policy with these logits, undiscounted.

    Each is tried with two baselines, a row for each: exact values of the policy, and zeros, with which agents start.
    Tables of pair weights, for rewards and for TD errors, come with their names; a batch of episodes gives an estimate.
    """
    states, valid = trajectories.observations, trajectories.valid
    rewards = trajectories.rewards
    discounts = jnp.where(trajectories.terminated, 0.0, jnp.ones_like(rewards))
    exact_values = policy_values(model, logits)
    exact = np.asarray(policy_gradient(model, logits))

    def pairs(table: Array) -> Array:
        return table[states[:, :-1, None], states[:, None, 1:]]

    rows: list[dict[str, object]] = []

    def add(estimator: str, baseline: str, advantages: Array) -> None:
        estimates = gradient_estimates(model, logits, trajectories, advantages, batch)
        quality = estimator_quality(np.asarray(estimates), exact)
        rows.append({"estimator": estimator, "values": baseline, **quality._asdict()})

    for baseline, table in (("exact", exact_values), ("zero", jnp.zeros_like(exact_values))):
        values = table[states]
        for lambda_ in lambdas:
            name = "Monte Carlo" if lambda_ == 1.0 else f"λ = {lambda_:g}"
            advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
                rewards, values, discounts, lambda_, valid
            )
            add(name, baseline, advantages)
        for name, weights in weight_tables.items():
            own = weighted_values(model, logits, weights) if baseline == "exact" else table
            add(f"PWR, {name} weights", baseline, jax.vmap(pwr)(pairs(weights), rewards, own[states], valid))
        for name, weights in td_weight_tables.items():
            advantages = jax.vmap(pwtd)(pairs(weights), rewards, values, discounts, valid)
            add(f"PWTD, {name} weights", baseline, advantages)
    return rows
