"""From a diagnostic spec to a run folder: the umbrella's variance, and the quality of estimators."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from paircredit.analysis.credit import compare_estimators
from paircredit.analysis.exact import optimal_values, policy_values, weighted_values
from paircredit.envs.protocol import TabularModel
from paircredit.envs.registry import make_environment
from paircredit.envs.umbrella import Umbrella, UmbrellaConfig
from paircredit.errors import PaircreditError
from paircredit.estimators import lambda_advantages, pwr
from paircredit.experiments.learners import load_weights
from paircredit.experiments.spec import CreditSpec, UmbrellaVarianceSpec, as_json
from paircredit.experiments.training_run import Progress
from paircredit.methods import ActorCritic, InnerLoop, Learner
from paircredit.methods.a2c import A2C
from paircredit.methods.loops import Trained
from paircredit.networks.state_functions import PolicyTable
from paircredit.runs.folder import RunWriter, rounded
from paircredit.training import collect_episodes
from paircredit.types import Trajectory
from paircredit.weights import handcrafted_weights

SAMPLING_BATCH = 500


def sample_episodes(env: Any, logits: Float[Array, "S A"], key: Key[Array, ""], episodes: int) -> Trajectory:
    """Episodes of a fixed table policy."""
    method = ActorCritic(A2C(), inner=InnerLoop(episodes=episodes))
    learner = Learner(Trained.fresh(PolicyTable(logits), method.inner.policy_optimiser))
    return collect_episodes(method, learner, env, key)


def run_umbrella_variance(spec: UmbrellaVarianceSpec, folder: Path, progress: Progress) -> None:
    """Sample every MDP of the spec; a row per MDP, estimator and first action."""
    if spec.episodes < 2 * SAMPLING_BATCH:
        raise PaircreditError(f"{spec.episodes} episodes are too few; {2 * SAMPLING_BATCH} are the least.")
    cases = [(length, variance) for length in spec.lengths for variance in spec.variances]
    horizon = max(spec.lengths)
    with RunWriter(folder / spec.name, "umbrella-variance", as_json(spec), go_on=True) as writer:
        progress.begin(spec.name, len(cases))
        for number, (length, variance) in enumerate(cases):
            env = UmbrellaConfig(length=length, mean=spec.mean, variance=variance, horizon=horizon).build()
            batches = -(-spec.episodes // SAMPLING_BATCH)
            keys = jax.random.split(jax.random.fold_in(jax.random.key(spec.seed), number), batches)
            samples = {name: np.asarray(x, dtype=np.float64) for name, x in _first_advantages(env, keys).items()}
            writer.append(_variance_rows(samples, length, variance))
            progress.advance(1)
        writer.finish()
    progress.end(spec.name)


@jax.jit
def _first_advantages(env: Umbrella, keys: Key[Array, " N"]) -> dict[str, Array]:
    """The first action and its advantage by each estimator, for batches of episodes of the uniform policy."""
    model = env.model()
    logits = jnp.zeros(model.legal.shape)
    table = handcrafted_weights(env).table
    values, own_values = policy_values(model, logits), weighted_values(model, logits, table)

    def batch(key: Array) -> dict[str, Array]:
        episodes = sample_episodes(env, logits, key, SAMPLING_BATCH)
        states = episodes.observations
        discounts = jnp.where(episodes.terminated, 0.0, jnp.ones_like(episodes.rewards))
        monte_carlo = jax.vmap(partial(lambda_advantages, lambda_=1.0))(
            episodes.rewards, values[states], discounts, valid=episodes.valid
        )
        pairs = table[states[:, :-1, None], states[:, None, 1:]]
        pairwise = jax.vmap(pwr)(pairs, episodes.rewards, own_values[states], episodes.valid)
        return {"action": episodes.actions[:, 0], "Monte Carlo": monte_carlo[:, 0], "PWR": pairwise[:, 0]}

    return {name: x.reshape(-1) for name, x in jax.lax.map(batch, keys).items()}


def _variance_rows(samples: dict[str, np.ndarray], length: int, variance: float) -> list[dict[str, Any]]:
    rows = []
    for estimator, predicted in (("Monte Carlo", (length - 1) * variance), ("PWR", 0.0)):
        for action in (0, 1):
            psi = samples[estimator][samples["action"] == action]
            centred = psi - psi[0]  # a constant sample has a variance of exactly 0
            measured = float(centred.var(ddof=1))
            rows.append(
                {"length": length, "variance": variance, "estimator": estimator, "action": action}
                | {"episodes": len(psi), "mean": float(psi.mean()), "exact_mean": 2.0 * action - 1.0}
                | {"standard_error": float(np.sqrt(measured / len(psi)))}
                | {"measured_variance": measured, "predicted_variance": predicted}
            )
    return rows


def run_credit(spec: CreditSpec, folder: Path, progress: Progress) -> None:
    """Compare all estimators on the same episodes; a row per policy, estimator and baseline."""
    env: Any = make_environment(spec.env, **spec.env_settings)
    model: TabularModel = env.model()
    states = model.next_state.shape[0]

    def learned(source: str | None) -> dict[str, Array]:
        if source is None:
            return {}
        return {"learned": jnp.asarray(load_weights(folder / source, states).mean(axis=0))}

    pwr_tables = {"handcrafted": handcrafted_weights(env).table} | learned(spec.pwr_weights_from)
    pwtd_tables = learned(spec.pwtd_weights_from)
    best = jnp.argmax(
        jnp.where(model.legal, model.reward_mean + optimal_values(model)[model.next_state], -jnp.inf), axis=-1
    )
    with RunWriter(folder / spec.name, "credit", as_json(spec), go_on=True) as writer:
        progress.begin(spec.name, len(spec.preferences))
        for number, preference in enumerate(spec.preferences):
            logits = preference * jax.nn.one_hot(best, model.legal.shape[1], dtype=float)
            key = jax.random.fold_in(jax.random.key(spec.seed), number)
            whole_batches = spec.episodes // spec.batch * spec.batch
            episodes = jax.jit(sample_episodes, static_argnums=3)(env, logits, key, whole_batches)
            rows = compare_estimators(
                model, logits, episodes, weight_tables=pwr_tables, td_weight_tables=pwtd_tables, batch=spec.batch
            )
            writer.append(
                [
                    {"preference": preference}
                    | {name: rounded(value) if isinstance(value, float) else value for name, value in row.items()}
                    for row in rows
                ]
            )
            progress.advance(1)
        writer.finish()
    progress.end(spec.name)
