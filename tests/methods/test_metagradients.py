"""The metagradients of the methods themselves, on the DAG, in float64, some way into training."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.dag import DagConfig
from paircredit.metagradient import (
    OneStep,
    autodiff_one_step,
    check_metagradient,
    explicit_one_step,
    unrolled_objective,
)
from paircredit.methods import Credit, InnerLoop, OuterLoop, make_method
from paircredit.training import collect_episodes
from paircredit.weights import PairInputs

METHODS = {"pwr": "meta-pwr", "pwtd": "meta-pwtd"}
SETTINGS = {
    "plain": {},
    "standardised": {"standardise": True},
    "through the statistics": {"standardise": True, "differentiate_statistics": True},
}


class Case(NamedTuple):
    method: Any
    eta: Any
    inner: Any
    outer: Any
    explicit: OneStep
    autodiff: OneStep

    @property
    def trajectory(self):
        """What the inner update learned from."""
        return self.inner.experience.trajectory

    @property
    def credit(self) -> Credit:
        """What the actions of that batch were credited with."""
        return jax.vmap(lambda one: self.method.rule.credit(self.eta, one))(self.inner.experience)

    def objective(self, problem, eta, tape=None):
        """`unrolled_objective` with K = 1."""
        inner, outer = jax.tree.map(lambda x: x[None], (self.inner, self.outer))
        return unrolled_objective(
            problem, eta, self.inner.policy.parameters, self.inner.policy.state, inner, outer, tape
        )


def build(name: str, settings: dict) -> Case:
    """Three inner updates from a generic policy with generic weights; the last of them is evaluated."""
    method = make_method(
        name,
        inner=InnerLoop(initial_scale=0.7, discount=0.9, entropy_cost=0.01, **settings),
        outer=OuterLoop(initial_scale=1.0, entropy_cost=0.02),
    )
    env = DagConfig(depth=4).build()
    learner = method.init(jax.random.key(1), env)
    collect = jax.jit(lambda learner, key: collect_episodes(method, learner, env, key))
    kept, learn = None, jax.jit(method.learn)
    for i in range(3):
        learner, kept = learn(learner, collect(learner, jax.random.key(10 + i)))
    outer = method.outer_data(learner, collect(learner, jax.random.key(20)))
    arguments = (learner.weights.parameters, kept.policy.parameters, kept.policy.state, kept, outer)
    forms = jax.jit(lambda *a: (explicit_one_step(method.problem(), *a), autodiff_one_step(method.problem(), *a)))
    return Case(method, learner.weights.parameters, kept, outer, *forms(*arguments))


@pytest.fixture(scope="module")
def cases():
    built = {}

    def case(method: str, setting: str) -> Case:
        if (method, setting) not in built:
            built[method, setting] = build(METHODS[method], SETTINGS[setting])
        return built[method, setting]

    return case


every_case = pytest.mark.parametrize(
    "method, setting", [(method, setting) for method in METHODS for setting in SETTINGS]
)


@every_case
def test_by_hand_and_by_jax_are_the_same(cases, method, setting, x64):
    case = cases(method, setting)
    for ours, theirs in zip(jax.tree.leaves(case.explicit), jax.tree.leaves(case.autodiff), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())
    assert np.asarray(case.inner.policy.state.second.logits).any(), "the optimiser is not fresh"


@every_case
def test_finite_differences_agree(cases, method, setting, x64):
    """With a tape, which holds fixed what the derivative holds fixed."""
    case = cases(method, setting)
    checked = check_metagradient(
        jax.jit(lambda eta, tape: case.objective(case.method.problem(), eta, tape)),
        case.eta,
        gradient=case.explicit.gradient,
        has_tape=True,
    )
    assert np.abs(checked.numeric).max() > 1e-6
    assert checked.relative_error < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_detached_statistics_are_constants_of_the_metagradient(cases, method, x64):
    """Finite differences of an objective in which mean and deviation are numbers, worked out beforehand."""
    case = cases(method, "standardised")
    plain = dataclasses.replace(case.method, inner=dataclasses.replace(case.method.inner, standardise=False)).problem()
    valid = np.asarray(case.trajectory.valid)
    raw = np.asarray(plain.advantages(case.eta, case.inner, None))[valid]
    mean, deviation = raw.mean(), raw.std()

    def advantages(eta, data, detached):
        return (plain.advantages(eta, data, None) - mean) / (deviation + 1e-8)

    problem = case.method.problem()._replace(advantages=advantages)
    objective = jax.jit(lambda eta: case.objective(problem, eta)[0])
    checked = check_metagradient(objective, case.eta, gradient=case.explicit.gradient)
    assert checked.relative_error < 1e-6


def test_pwr_credits_pairs_with_an_outer_product(cases, x64):
    """∂J/∂w[t, k] = credit[t]·R_{k+1}, and from there η by the slope of the sigmoid, pair after pair."""
    case = cases("pwr", "plain")
    observations = np.asarray(case.trajectory.observations)
    credit, rewards = np.asarray(case.explicit.credit), np.asarray(case.trajectory.rewards)
    expected = np.zeros(case.eta.eta.shape)
    for b, t, k in zip(*np.nonzero(np.ones((len(rewards), 4, 4))), strict=True):
        if k >= t:
            i, j = observations[b, t], observations[b, k + 1]
            weight = 1 / (1 + np.exp(-case.eta.eta[i, j]))
            expected[i, j] += credit[b, t] * rewards[b, k] * weight * (1 - weight)
    np.testing.assert_allclose(case.explicit.gradient.eta, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("method, setting", [("pwr", "plain"), ("pwtd", "through the statistics")])
def test_the_gradient_of_the_weights_is_credit_times_signal(cases, method, setting, x64):
    """Rank one for every episode, and credit is taken through the standardisation."""
    case = cases(method, setting)
    trajectory, given = case.trajectory, case.credit
    weights = jax.vmap(case.eta)(PairInputs(trajectory.observations))

    def of_weights(w, data, detached):
        upper = jnp.triu(w)
        raw = jnp.einsum("btk,bk->bt", upper, given.signal) - given.baseline
        return case.method.inner.prepare(raw, data.experience.trajectory, statistics_of=detached)

    problem = case.method.problem()._replace(advantages=of_weights)
    step = explicit_one_step(
        problem, weights, case.inner.policy.parameters, case.inner.policy.state, case.inner, case.outer
    )
    np.testing.assert_allclose(step.loss, case.explicit.loss, rtol=1e-12)
    np.testing.assert_allclose(step.credit, case.explicit.credit, rtol=1e-9, atol=1e-15)
    credit = step.credit
    if setting != "plain":  # the part of the chain rule after the weighted sum
        raw = jnp.einsum("btk,bk->bt", jnp.triu(weights), given.signal) - given.baseline
        (credit,) = jax.vjp(lambda x: case.method.inner.prepare(x, trajectory), raw)[1](step.credit)
    expected = np.triu(np.asarray(credit)[:, :, None] * np.asarray(given.signal)[:, None, :])
    np.testing.assert_allclose(step.gradient, expected, rtol=1e-9, atol=1e-15)
