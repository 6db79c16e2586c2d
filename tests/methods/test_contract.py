"""What holds for every method, against loops in NumPy: padding, credit, steps, outer data, the metagradient."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.methods import OuterLoop
from paircredit.training import Plan, check_method, collect_episodes
from paircredit.training.loop import online_iteration, start
from tests import oracles
from tests.methods.contract import (
    EVERY,
    LEARNING_WEIGHTS,
    ON_TABLES,
    PICTURES,
    SMALL,
    baseline,
    case,
    lambda_advantages,
    logits,
    parameters,
    policy_step,
    regular_values,
    small,
    umbrella,
    with_garbage_after_the_ends,
)

every_method = pytest.mark.parametrize("name", EVERY)
every_learning_weights = pytest.mark.parametrize("name", LEARNING_WEIGHTS)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@every_method
def test_the_key_decides(name):
    start = case(name).start
    one, same, other = (parameters(start(jax.random.key(seed))[0]) for seed in (0, 0, 1))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(one, other, strict=True))


@every_method
def test_padding_is_never_read(name):
    one = case(name)
    dirty = with_garbage_after_the_ends(one.batch)
    before, after = parameters(one.learner), parameters(one.learn(one.learner, one.batch))
    assert any((a != b).any() for a, b in zip(before, after, strict=True)), "something is learned"
    for clean, other in zip(after, parameters(one.learn(one.learner, dirty)), strict=True):
        np.testing.assert_allclose(other, clean, rtol=1e-5, atol=1e-6)
    valid = np.asarray(one.batch.valid)
    shown, other = (jax.device_get(one.credit(one.learner, batch)) for batch in (one.batch, dirty))
    np.testing.assert_allclose(other.advantages[valid], shown.advantages[valid], rtol=1e-5, atol=1e-6)
    assert np.isfinite(other.advantages).all() and np.isfinite(other.weights).all()


@every_method
def test_credit_is_what_weights_make_of_signals(name):
    """Ψ_t = Σ_k weights[t, k] · signal[k] − baseline_t, by loops."""
    one = case(name)
    credit, valid = jax.device_get(one.credit(one.learner, one.batch)), np.asarray(one.batch.valid)
    sums = [oracles.loop_pairwise_sum(*each) for each in zip(credit.weights, credit.signal, valid, strict=True)]
    subtracted = np.broadcast_to(baseline(name, one.learner, one.batch), valid.shape)
    close(credit.baseline[valid], subtracted[valid])
    expected = np.array(sums) - subtracted
    assert np.abs(expected[valid]).max() > 0.1
    close(credit.advantages[valid], expected[valid])


@pytest.mark.parametrize("name", ON_TABLES)
def test_the_policy_steps_along_the_credit(name):
    one = case(name)
    credit = jax.device_get(one.credit(one.learner, one.batch))
    expected = policy_step(one.batch, logits(one.learner), credit.advantages)
    assert np.abs(expected - logits(one.learner)).max() > 0.01
    close(logits(one.learn(one.learner, one.batch)), expected)


@every_learning_weights
def test_weights_are_evaluated_by_the_regular_advantage(name):
    one = case(name)
    evaluated = jax.jit(one.method.outer_data)(one.learner, one.batch)
    close(evaluated.advantages, lambda_advantages(one.batch, regular_values(one.learner, one.batch), lambda_=0.7))


@every_learning_weights
def test_weights_descend_the_metagradient(name):
    """The first step of Adam goes by the learning rate against the sign; nothing else moves."""
    method, learner = small(name, outer=OuterLoop(learning_rate=0.02)), case(name).learner
    before = learner.weights.parameters
    gradient = jax.tree.map(lambda x: jnp.where(jnp.arange(x.size).reshape(x.shape) % 3 == 0, -1.0, 1.0), before)
    after = jax.jit(method.improve_weights)(learner, gradient)
    for old, new, slope in zip(*map(jax.tree.leaves, (before, after.weights.parameters, gradient)), strict=True):
        np.testing.assert_allclose(new - old, -0.02 * slope, rtol=1e-3, atol=1e-5)
    changed = sum(bool((a != b).any()) for a, b in zip(parameters(learner), parameters(after), strict=True))
    assert changed == len(jax.tree.leaves(before))


@every_learning_weights
def test_the_metagradient_agrees_with_finite_differences(name, x64):
    """Through two updates on the DAG, where nothing is padded away and every state has a choice."""
    checked = check_method(small(name), make_environment("dag", depth=4), updates=2, directions=3)
    assert np.abs(checked.numeric).max() > 1e-6
    assert checked.relative_error < 1e-6


@every_method
def test_everything_is_float64_where_that_is_asked_for(name, x64):
    method, env = small(name, **({"table": jnp.ones((10, 10))} if name == "h-pwr" else {})), umbrella()

    def update(key):
        learner = method.init(key, env)
        return method.learn(learner, collect_episodes(method, learner, env, key))[0]

    kinds = {leaf.dtype for leaf in parameters(jax.eval_shape(update, jax.random.key(0)))}
    assert kinds == {np.dtype("float64")}


@every_method
def test_every_shape_fits_in_key_to_door(name):
    """Traced and not compiled: a whole update with pictures, the metagradient included."""
    sizes = {"memory": dataclasses.replace(SMALL["tvt"]["memory"], rows=10)} if name == "tvt" else {}
    table = {"table": jnp.ones((10, 10))} if name == "h-pwr" else {}
    method = small(name, network=PICTURES, **sizes, **table)
    env = KeyToDoorConfig(key_steps=3, apple_steps=4, door_steps=3, fewest_apples=19).build()
    plan = Plan(updates=1)

    def update(key):
        before = start(method, env, plan, key)
        return before, *online_iteration(method, env, plan, before)

    before, after, summary = jax.eval_shape(update, jax.random.key(0))
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert [(x.shape, x.dtype) for x in jax.tree.leaves(before)] == [(x.shape, x.dtype) for x in jax.tree.leaves(after)]
    assert {value.shape for value in summary.values()} == {()}
