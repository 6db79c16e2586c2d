"""What tests of every method start from: small settings, a batch with padding, a learner that is nowhere at its start.

Where a learner keeps what, tests that are about every method ask here and nowhere else.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import InnerLoop, OuterLoop, Trained, make_method, methods
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.networks import MemorySpec, NetworkSpec
from paircredit.training import collect_episodes
from paircredit.types import Trajectory
from paircredit.weights.return_generator import TransformerSpec
from tests import oracles

EVERY = sorted(methods())
LEARNING_WEIGHTS = [name for name in EVERY if make_method(name).learns_weights]
ON_TABLES = [name for name in EVERY if name != "tvt"]
"""Methods whose policy is a table where states are numbers, and learns by itself."""
MINUS_A_VALUE = ("h-pwr", "meta-pwr", "rgm")
"""Methods that subtract the value of the weighted return from the weighted sum."""

INNER = InnerLoop(
    optimiser="sgd", learning_rate=0.5, value_learning_rate=0.3, discount=0.9, entropy_cost=0.0, initial_scale=0.7
)
PICTURES = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
SMALL: dict[str, dict[str, Any]] = {
    "a2c": {"lambda_": 0.8},
    "a2c-rr": {"prediction": ReturnPrediction(width=6, cells=4, capacity=8, batch_size=2, warm_up=1000)},
    "h-pwr": {"table": jnp.asarray(np.random.default_rng(0).uniform(size=(10, 10)), dtype=jnp.float32)},
    "rgm": {"transformer": TransformerSpec(blocks=1, heads=2, width=8, widening=2)},
    "tvt": {"memory": MemorySpec(rows=5, width=4, encoder=6, controller=5, heads=2, top_reads=4, hidden=7)},
}
"""Beside the inner and the outer loop; A2C-RR's predictor stands still, so that it gives what it shows."""


def umbrella() -> Any:
    """Ten states, and two steps of padding in every episode."""
    return UmbrellaConfig(length=3, mean=0.5, variance=1.0, horizon=5).build()


def small(name: str, **settings: Any) -> Any:
    """The method with SGD, which can be followed by hand, and weights that are nowhere near their start."""
    settings = {"inner": INNER, **SMALL.get(name, {}), **settings}
    if name in LEARNING_WEIGHTS:
        settings = {"outer": OuterLoop(initial_scale=1.0, lambda_=0.7), **settings}
    return make_method(name, **settings)


class Case(NamedTuple):
    """A method, a learner of generic parameters with a batch of its episodes, and its programs."""

    method: Any
    start: Any
    learner: Any
    batch: Trajectory
    learn: Any
    credit: Any


@cache
def case(name: str) -> Case:
    """Compiled once for all tests."""
    method, env = small(name), umbrella()

    @jax.jit
    def start(key: jax.Array) -> tuple[Any, Any, Trajectory]:
        fresh = method.init(key, env)
        learner = moved(fresh, key)
        return fresh, learner, collect_episodes(method, learner, env, key)

    _, learner, batch = start(jax.random.key(0))
    learn, credit = (jax.jit(lambda s, b: method.learn(s, b)[0]), jax.jit(lambda s, b: method.credit(s, b)))
    return Case(method, start, learner, batch, learn, credit)


def moved(learner: Any, key: jax.Array) -> Any:
    """With a number of chance added to all that is trained."""

    def move(part: Any) -> Any:
        if not isinstance(part, Trained):
            return part
        numbers, rest = eqx.partition(part.parameters, eqx.is_inexact_array)
        leaves, structure = jax.tree.flatten(numbers)
        keys = jax.random.split(jax.random.fold_in(key, 7), len(leaves))
        leaves = [x + 0.4 * jax.random.normal(k, x.shape, x.dtype) for x, k in zip(leaves, keys, strict=True)]
        return dataclasses.replace(part, parameters=eqx.combine(structure.unflatten(leaves), rest))

    return jax.tree.map(move, learner, is_leaf=lambda part: isinstance(part, Trained))


def parameters(learner: Any) -> list[Any]:
    """All that is trained, without the states of optimisers and what a predictor has stored."""
    parts = jax.tree.leaves(learner, is_leaf=lambda part: isinstance(part, Trained))
    return jax.tree.leaves([part.parameters for part in parts if isinstance(part, Trained)])


def logits(learner: Any) -> np.ndarray:
    """Of the policy's table."""
    return np.asarray(learner.policy.parameters.logits)


def baseline(name: str, learner: Any, batch: Trajectory) -> np.ndarray | float:
    """What is subtracted from the weighted sum."""
    if name not in MINUS_A_VALUE:
        return 0.0
    return np.asarray(learner.weighted_value.parameters.values)[np.asarray(batch.observations)[:, :-1]]


def regular_values(learner: Any, batch: Trajectory) -> np.ndarray:
    """v(S_t) of the regular return."""
    return np.asarray(learner.value.parameters.values)[np.asarray(batch.observations)]


def policy_step(batch: Trajectory, before: np.ndarray, advantages: np.ndarray) -> np.ndarray:
    """θ + α mean Ψ ∇log π over valid steps, by loops."""
    batch = jax.device_get(batch)
    step = np.zeros_like(before)
    for b, t in zip(*np.nonzero(batch.valid), strict=True):
        state, action, legal = batch.observations[b, t], batch.actions[b, t], batch.legal[b, t]
        chances = np.where(legal, np.exp(before[state]), 0) / np.exp(before[state][legal]).sum()
        step[state] += advantages[b, t] * (np.eye(len(chances))[action] - chances)
    return before + INNER.learning_rate * step / batch.valid.sum()


def lambda_advantages(batch: Trajectory, values: np.ndarray, lambda_: float) -> np.ndarray:
    """The regular advantages, by loops."""
    data = jax.device_get(batch)
    discounts = np.where(data.terminated, 0.0, INNER.discount)
    lambdas = np.full(data.rewards.shape, lambda_)
    episodes = zip(data.rewards, values, discounts, lambdas, data.valid, strict=True)
    return np.array([oracles.loop_lambda_advantages(*episode) for episode in episodes])


def with_garbage_after_the_ends(batch: Trajectory) -> Trajectory:
    """All that stands after the end of an episode is something else; its final observation stays."""
    valid = batch.valid
    after = jnp.concatenate([jnp.zeros_like(valid[:, :1]), ~valid], axis=1)
    after &= jnp.roll(after, 1, axis=1)  # the first of them is the final observation
    assert after.any(), "there is padding"
    return dataclasses.replace(
        batch,
        rewards=jnp.where(valid, batch.rewards, jnp.nan),
        actions=jnp.where(valid, batch.actions, 1 - batch.actions),
        observations=jnp.where(after, 7, batch.observations),
        legal=jnp.where(valid[..., None], batch.legal, ~batch.legal),
        terminated=jnp.where(valid, batch.terminated, ~batch.terminated),
        truncated=jnp.where(valid, batch.truncated, ~batch.truncated),
    )
