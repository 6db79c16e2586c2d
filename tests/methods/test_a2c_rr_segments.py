"""A2C-RR on segments of a stream: reductions to A2C, credit, what is refused, presets, and that it learns."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.protocol import InSegments
from paircredit.estimators import pairwise_sum
from paircredit.experiments import TrainingSpec, training_run
from paircredit.methods import ActorCritic, InnerLoop, make_method, replace_dotted
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.networks import NetworkSpec
from paircredit.training import Plan, members, train
from paircredit.training.loop import run_chunk, start_members
from paircredit.training.members import member_keys, stack_members
from paircredit.training.rollout import collect, start_actors
from tests.methods.steps import same
from tests.methods.stopping import stopped_and_whole
from tests.sentences import refused

TINY = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32", shared=True)
SMALL = ReturnPrediction(
    learning_rate=0.01, width=6, cells=4, batch_size=4, capacity=12, start="xavier", steps=5, every=2, epochs=1
)
INNER = InnerLoop(episodes=3, discount=0.9, entropy_cost=0.01)
CATCH = InSegments(make_environment("bsuite/catch"), 12)
UMBRELLA = InSegments(make_environment("umbrella", length=4, variance=0.25), 7)


GAME = {
    "inner.episodes": 2,
    "prediction.width": 6,
    "prediction.cells": 4,
    "prediction.capacity": 6,
    "prediction.steps": 8,
    "prediction.chunk": 4,
    "prediction.every": 3,
    "prediction.epochs": 1,
    "prediction.warm_up": 3,
    "prediction.batch_size": 2,
}
"""Small enough for a test."""


def method(**settings) -> ActorCritic:
    return replace_dotted(
        make_method("a2c-rr", inner=INNER, prediction=SMALL, lambda_=0.7, network=TINY), settings, "a2c-rr"
    )


def two_segments(acting: ActorCritic, env):
    """A learner that has learned from one segment, and the segment that follows it."""

    @jax.jit
    def make(key):
        learner = acting.init(key, env)
        first, actors = collect(acting, learner, env, start_actors(acting, learner, env, key), key)
        second, _ = collect(acting, learner, env, actors, jax.random.key(1))
        return acting.learn(learner, first)[0], second

    return make(jax.random.key(0))


@pytest.fixture(scope="module")
def umbrella():
    learner, segment = two_segments(method(), UMBRELLA)
    numbers = jnp.linspace(-1.0, 1.0, learner.value.parameters.values.size)
    value, other = (
        dataclasses.replace(trained, parameters=jax.tree.map(lambda x, n=n: x + n, trained.parameters))
        for trained, n in ((learner.value, numbers), (learner.own.redistributed_value, -0.3 * numbers))
    )
    return with_own(dataclasses.replace(learner, value=value), redistributed_value=other), segment


@jax.jit
def learn(acting: ActorCritic, learner, segment):
    return acting.learn(learner, segment)[0]


@jax.jit
def redistributed(acting: ActorCritic, learner, segment):
    """What the learner's predictor makes of the rewards."""
    return acting.rule.redistributed_rewards(learner.own, segment)


@jax.jit
def credit_of(acting: ActorCritic, learner, segment):
    return acting.credit(learner, segment)


def with_own(learner, **parts):
    """The learner with other parts of what A2C-RR alone has."""
    return dataclasses.replace(learner, own=dataclasses.replace(learner.own, **parts))


class TestAgainstA2C:
    @pytest.mark.parametrize(
        "env", [UMBRELLA, pytest.param(CATCH, marks=pytest.mark.nightly)], ids=["tables", "shared network"]
    )
    def test_without_redistributed_rewards_it_is_a2c(self, env):
        learner, segment = two_segments(method(), env)
        after = learn(method(mix=0.0), learner, segment)
        plain = make_method("a2c", inner=INNER, lambda_=0.7, network=TINY)
        start = jax.eval_shape(lambda key: plain.init(key, env), jax.random.key(0))
        start = dataclasses.replace(start, policy=learner.policy, value=learner.value)
        expected, _ = jax.jit(plain.learn)(start, segment)
        assert same(after.policy, expected.policy, rtol=1e-5, atol=1e-7)
        assert same(after.value, expected.value, rtol=1e-5, atol=1e-7)
        assert not same(after.policy.parameters, learner.policy.parameters)
        assert (learner.value is None) == (env is CATCH), "one network for policy and value where it is asked for"
        assert not same(after.own.redistributed_value.parameters, learner.own.redistributed_value.parameters)

    @pytest.mark.nightly
    def test_with_them_alone_it_is_a2c_on_the_redistributed_rewards(self, umbrella):
        learner, segment = umbrella
        acting = method(mix=1.0, **{"prediction.warm_up": 1000})
        after = learn(acting, learner, segment)
        rewards = redistributed(acting, learner, segment)
        assert np.abs(rewards - jnp.where(segment.valid, segment.rewards, 0)).max() > 0.05
        plain = make_method("a2c", inner=INNER, lambda_=0.7, network=TINY)
        start = jax.eval_shape(lambda key: plain.init(key, UMBRELLA), jax.random.key(0))
        start = dataclasses.replace(start, policy=learner.policy, value=learner.own.redistributed_value)
        expected, _ = jax.jit(plain.learn)(start, dataclasses.replace(segment, rewards=rewards))
        assert same(after.policy, expected.policy, rtol=1e-4, atol=1e-6)
        assert same(after.own.redistributed_value, expected.value, rtol=1e-4, atol=1e-6)


def test_steps_that_are_not_valid_may_hold_anything(umbrella):
    """The predictor learns from this segment, too: the second one is when it is due."""
    learner, segment = umbrella
    assert not segment.valid.all()
    after = [
        learn(
            method(**{"inner.standardise": True}),
            learner,
            dataclasses.replace(
                segment,
                rewards=jnp.where(segment.valid, segment.rewards, anything),
                actions=jnp.where(segment.valid, segment.actions, action),
                terminated=jnp.where(segment.valid, segment.terminated, bool(action)),
            ),
        )
        for anything, action in ((0.0, 0), (np.nan, 1))
    ]
    assert after[0].own.predictor.state.optimiser.steps == 3
    one, two = (
        (each.policy, each.value, each.own.redistributed_value, each.own.largest, each.own.quality) for each in after
    )
    assert same(one, two, atol=1e-6)
    one, two = (
        (predictor.parameters, predictor.state.optimiser, predictor.state.buffer)
        for predictor in (each.own.predictor for each in after)
    )
    assert same(one, two, atol=1e-6)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((after[1].policy, one)))


@pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
def test_weights_times_signal_are_the_advantages(umbrella, mix):
    """Over the steps of the same episode; the predictor reads on from the segment before."""
    learner, segment = umbrella
    credit = credit_of(method(mix=mix), learner, segment)
    sums = jax.vmap(pairwise_sum)(credit.weights, credit.signal, segment.valid, segment.episode)
    assert np.abs(credit.advantages).max() > 0.1 and segment.episode.max() > 0
    np.testing.assert_allclose(sums, credit.advantages, rtol=1e-4, atol=1e-5)
    started = jax.jit(lambda key: method().init(key, UMBRELLA))(jax.random.key(0))
    fresh = with_own(learner, predictor=started.own.predictor)
    assert learner.own.predictor.state.buffer.running.any()
    if mix:
        assert not same(credit_of(method(mix=mix), fresh, segment).signal, credit.signal, atol=1e-3)


class TestRefusals:
    pytestmark = pytest.mark.usefixtures("users_view")

    def test_an_error_cannot_be_spread_over_steps_that_are_gone(self):
        with refused("compensation is 'spread'", "umbrella", "'last' or 'none'"):
            train([method(compensation="spread")], [UMBRELLA], [0], Plan(updates=1), 1)

    @pytest.mark.parametrize("name", ["steps", "every", "epochs"])
    def test_numbers_that_nothing_can_be_learned_with(self, name):
        with refused(f"prediction.{name} is 0"):
            train([method(**{f"prediction.{name}": 0})], [UMBRELLA], [0], Plan(updates=1), 1)

    def test_a_buffer_larger_than_memory(self, monkeypatch):
        """Of MinAtar a step is 400 bytes: 144 sequences of 512 are 28 MiB."""
        env = make_environment("minatar/breakout")
        monkeypatch.setattr(members, "_device_bytes", lambda: 40 * 2**20)
        paper = make_method("a2c-rr", "paper", "minatar/breakout", network=TINY)
        members.refuse_too_large([paper], env)
        with refused("M = 2 members", "--method.prediction.capacity"):
            train([paper] * 2, [env] * 2, [0, 1], Plan(updates=1), 1)


class TestPresets:
    @pytest.mark.parametrize("preset", ["paper", "default"])
    def test_the_numbers_of_the_paper(self, preset):
        """(Atari appendix.)"""
        found = make_method("a2c-rr", preset, "minatar/asterix")
        p = found.rule.prediction
        assert (p.steps, p.chunk, p.capacity, p.batch_size, p.warm_up) == (512, 128, 128, 8, 32)
        assert (p.every, p.epochs, p.inputs, p.scaling) == (100, 100, "change", "largest")
        assert (p.learning_rate, p.epsilon, p.clip_norm, p.l2) == (1e-4, 1e-8, 0.5, 1e-7)
        assert (found.rule.lambda_, found.rule.mixing, found.network.shared) == (0.95, "quality", True)
        same_agent = make_method("a2c", preset, "minatar/asterix")
        assert found.inner == same_agent.inner and found.network == same_agent.network
        assert found.rule.lambda_ == same_agent.rule.lambda_

    def test_small_is_small(self):
        p = make_method("a2c-rr", "small", "minatar/asterix").rule.prediction
        assert p.width <= 64 and p.cells <= 16 and p.steps <= 128 and p.epochs <= 10


@pytest.mark.nightly
def test_members_learn_a_game_in_one_program():
    """MinAtar: change of frame alone, pictures as bytes, one network for policy and value."""
    base = replace_dotted(make_method("a2c-rr", "paper", "minatar/breakout", network=TINY), GAME, "a2c-rr")
    members = [replace_dotted(base, {"prediction.learning_rate": rate}, "a2c-rr") for rate in (0.0, 1e-2)]
    env = make_environment("minatar/breakout", steps=6)
    methods, envs, plan = stack_members(members), stack_members([env] * 2), Plan(updates=6)
    state = start_members(methods, envs, plan, member_keys([0, 1]))
    before = jax.device_get(state.learner)
    state, summaries = run_chunk(methods, envs, plan, state)
    assert all(np.isfinite(x).all() for x in summaries.values())
    learner, predictor = state.learner, state.learner.own.predictor
    assert learner.value is None and predictor.parameters.frame is None
    pairs = zip(jax.tree.leaves(before.own.predictor.parameters), jax.tree.leaves(predictor.parameters), strict=True)
    moved = np.max([np.abs(a - b).reshape(2, -1).max(axis=1, initial=0) for a, b in pairs], axis=0)
    assert predictor.state.optimiser.steps.tolist() == [6, 6], "an epoch of three steps in each of two rounds"
    assert moved[0] == 0 and moved[1] > 1e-3, "each by its own learning rate"
    assert (np.asarray(predictor.state.buffer.slots.stored) >= 6).all()
    assert predictor.state.buffer.frames.pixels.dtype == jnp.uint8
    assert predictor.state.buffer.frames.pixels.shape == (2, 8, 8, 10, 10, 4)
    for trained in (learner.policy, learner.own.redistributed_value, predictor):
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(trained.parameters))


@pytest.mark.nightly
def test_it_runs_in_double_precision(x64):
    """Every number of the learner keeps its type, and the predictor learns."""
    env = InSegments(make_environment("umbrella", length=4, variance=0.25), 7)
    acting = method(mixing="quality", **{"prediction.scaling": "largest", "prediction.chunk": 2})
    learner = train([acting], [env], [0], Plan(updates=2), 2).learner
    assert learner.own.predictor.state.optimiser.steps[0] == 3
    assert {str(x.dtype) for x in jax.tree.leaves(learner)} <= {"float64", "int32", "int64", "bool", "key<fry>"}


@pytest.mark.nightly
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SequenceBuffer, memories of sequences and the count of updates go through the checkpoint."""
    monkeypatch.setattr(training_run, "LARGEST_CHUNK_OF_PICTURES", 2)
    settings = GAME | {"network.filters": (2, 2), "network.picture_width": 6, "network.trunk": (6, 5)}
    spec = TrainingSpec("run", "minatar/breakout", "a2c-rr", 6, (0, 1), {"steps": 6}, settings, preset="small")
    learner = stopped_and_whole(spec, tmp_path, monkeypatch)
    assert (learner.own.predictor.state.updates == 6).all()


class TestLearning:
    SETTINGS = {  # noqa: RUF012
        "prediction.steps": 8,
        "prediction.every": 5,
        "prediction.epochs": 2,
        "prediction.capacity": 64,
        "prediction.warm_up": 8,
    }

    def learner(self, name: str, env, updates: int, **settings):
        settings |= self.SETTINGS if name == "a2c-rr" else {}
        acting = replace_dotted(make_method(name, "probe"), settings, name)
        return train([acting] * 2, [env] * 2, [0, 1], Plan(updates=100), updates).learner

    @pytest.mark.nightly
    def test_the_probe_with_a_context(self):
        env = InSegments(make_environment("probe-context"), 5)
        learner = self.learner("a2c-rr", env, 200, **{"inner.episodes": 4})
        right = jax.nn.softmax(learner.policy.parameters.logits)[:, jnp.arange(2), jnp.arange(2)]
        assert (np.asarray(right) > 0.9).all()
        np.testing.assert_allclose(learner.value.parameters.values[:, :2], 1, atol=0.1)
        assert (learner.own.predictor.state.optimiser.steps > 0).all()

    @pytest.mark.slow
    @pytest.mark.nightly
    def test_a_decision_whose_reward_is_out_of_sight_and_in_another_segment(self):
        """γ = 0, segments of three steps, episodes of five: what pays is decided before the segment where it pays."""
        env = InSegments(make_environment("umbrella", length=4, variance=0.25), 3)
        settings = {"inner.discount": 0.0, "inner.episodes": 8}
        blind, seeing = (self.learner(name, env, 500, **settings) for name in ("a2c", "a2c-rr"))
        umbrella = [np.asarray(jax.nn.softmax(x.policy.parameters.logits))[:, 0, 1] for x in (blind, seeing)]
        assert not (umbrella[0] > 0.9).all() and (umbrella[1] > 0.9).all()
