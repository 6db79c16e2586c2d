"""Environments on the host: bsuite's own catch through the adapter, ends, cuts, seeds, and what cannot be adapted."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import Vector, dm_environment
from paircredit.envs.bsuite.catch import CatchChance, CatchConfig
from paircredit.envs.dm_env import _ADAPTERS, ROUNDS, DmEnvironment, _Episodes
from paircredit.envs.protocol import InSegments
from paircredit.methods import make_method, methods
from paircredit.settings import replace_dotted
from paircredit.training import Plan, collect_episodes, train
from paircredit.training.members import stack_members
from tests.players import Player
from tests.sentences import refused

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import dm_env
    from bsuite.environments.catch import Catch
    from dm_env import specs


def play(envs, episodes, seed=0):
    method = Player(episodes)

    def one(env, key):
        return collect_episodes(method, jnp.zeros(env.spec.num_actions), env, key)

    keys = jax.random.split(jax.random.key(seed), len(envs))
    return jax.device_get(jax.jit(jax.vmap(one))(stack_members(envs), keys))


def catch():
    return dm_environment(lambda seed: Catch(seed=seed), 9, "the original catch")


class Count(dm_env.Environment):
    """Counts its steps; stops at a number from its seed, with a discount of 0 or 1."""

    def __init__(self, seed, discount):
        self.length, self.discount = 1 + seed % 4, discount

    def observation_spec(self):
        return specs.Array((1, 2), np.int64)

    def action_spec(self):
        return specs.DiscreteArray(2)

    def reset(self):
        self.time = 0
        return dm_env.restart(np.array([[0, self.length]]))

    def step(self, action):
        self.time += 1
        seen = np.array([[self.time, self.length]])
        if self.time < self.length:
            return dm_env.transition(float(action), seen)
        assert self.time == self.length, "stepped after its end"
        return dm_env.TimeStep(dm_env.StepType.LAST, float(action), self.discount, seen)


def test_the_original_catch_is_our_catch():
    """Every episode of the original, replayed in the port with the same ball and the same actions."""
    batch = play([catch(), catch()], 100)
    port = CatchConfig().build()

    def replay(first, actions):
        state, start = port.start(CatchChance(jnp.argmax(first[:5]).astype(jnp.int32), jnp.zeros(9)))

        def step(state, action):
            state, now = port.step(jax.random.key(0), state, action)
            return state, (now.observation, now.reward, now.terminated)

        _, (observations, rewards, terminated) = jax.lax.scan(step, state, actions)
        return jnp.concatenate([start.observation[None], observations]), rewards, terminated

    flat = jax.tree.map(lambda x: x.reshape(200, *x.shape[2:]), batch)
    observations, rewards, terminated = jax.device_get(jax.jit(jax.vmap(replay))(flat.observations[:, 0], flat.actions))
    np.testing.assert_array_equal(flat.observations, observations)
    np.testing.assert_array_equal(flat.rewards, rewards)
    np.testing.assert_array_equal(flat.terminated, terminated)
    assert flat.valid.all() and not flat.truncated.any()
    balls = np.bincount(flat.observations[:, 0, :5].argmax(axis=1), minlength=5) / 200
    np.testing.assert_allclose(balls, 0.2, atol=4.5 * 0.4 / np.sqrt(200))
    assert (flat.rewards[:, -1] == 1).mean() == pytest.approx(0.2, abs=4.5 * 0.4 / np.sqrt(200))


def test_a2c_trains_on_the_original_catch_and_trains_the_same_again(quick_compilation):
    method = replace_dotted(make_method("a2c", "paper", "bsuite/catch"), {"network.trunk": (4, 4)}, "a2c")
    curves = []
    for _ in range(2):
        envs = [catch(), catch()]
        assert isinstance(envs[0], DmEnvironment) and envs[0].spec.observation == Vector(50)
        train([method] * 2, envs, [1, 2], Plan(updates=20), 40, on_chunk=lambda c: curves.append(c.summaries))
    first, second = (np.concatenate([c["episode_return"] for c in half], 1) for half in (curves[:2], curves[2:]))
    np.testing.assert_array_equal(first, second)
    assert set(np.unique(first)) == {-1.0, 1.0} and (first[0] != first[1]).any()


TINY = {
    "a2c-rr": {"prediction.width": 6, "prediction.cells": 4, "prediction.capacity": 6, "prediction.batches": 2},
    "rgm": {"transformer.width": 8, "transformer.heads": 2, "transformer.blocks": 1},
    "synthetic-returns": {"head_width": 4},
    "tvt": {
        "memory.rows": 4,
        "memory.width": 4,
        "memory.encoder": 6,
        "memory.controller": 5,
        "memory.heads": 2,
        "memory.top_reads": 2,
        "memory.hidden": 4,
    },
}
"""Sizes that only some methods have."""


def tiny_method(name, **more):
    sizes = {"network.trunk": (4, 4), "network.pair_width": 4, "inner.episodes": 2}
    return replace_dotted(make_method(name, "paper", "bsuite/catch"), sizes | TINY.get(name, {}) | more, name)


def small_catch():
    return dm_environment(lambda seed: Catch(rows=4, columns=3, seed=seed), 3, "a small catch")


def trained(name, envs, plan, **more):
    """(learners before, learners after, summaries) of two updates."""
    chosen, found = [tiny_method(name, **more)] * len(envs), []
    before = train(chosen, envs, range(len(envs)), plan, 0)
    after = train(chosen, envs, range(len(envs)), plan, 2, on_chunk=lambda c: found.append(c.summaries))
    return *(jax.device_get(state.learner) for state in (before, after)), found[0]


def moved(before, after, part):
    """Whether what is learned is finite, and another than before."""
    old, new = (jax.tree.leaves(vars(learner)[part].parameters) for learner in (before, after))
    assert all(np.isfinite(leaf).all() for leaf in new), part
    return any((a != b).any() for a, b in zip(old, new, strict=True))


def expect_learning(before, after, summaries):
    assert "episode_return" in summaries
    for values in summaries.values():
        assert values.shape == (2, 2) and np.isfinite(values).all()
    assert moved(before, after, "policy")


EVERY_DAY = ("a2c", "meta-pwr")
"""A method without weights and one that learns weights."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in EVERY_DAY else pytest.mark.nightly)
        for name in sorted(set(methods()) - {"h-pwr"})
    ],
)
def test_every_method_trains_on_the_original_catch(name):
    before, after, summaries = trained(name, [small_catch(), small_catch()], Plan(updates=2))
    expect_learning(before, after, summaries)
    assert (np.abs(summaries["episode_return"]) <= 1).all()
    assert not tiny_method(name).learns_weights or moved(before, after, "weights")


@pytest.mark.nightly
def test_a_method_with_a_memory_of_episodes_trains_on_segments_of_it():
    envs = [InSegments(small_catch(), 5), InSegments(small_catch(), 5)]
    expect_learning(*trained("a2c-rr", envs, Plan(updates=2)))


@pytest.mark.slow
@pytest.mark.nightly
def test_weights_are_learned_with_resets_as_well():
    plan = Plan("reset", 2, inner_updates=2)
    before, after, summaries = trained("meta-pwr", [small_catch(), small_catch()], plan)
    assert all(np.isfinite(values).all() for values in summaries.values())
    assert moved(before, after, "weights")


def test_handcrafted_weights_need_a_hand_or_a_table():
    """Nobody has written down what belongs together in an environment that anybody may bring."""
    with refused("handcrafted pair weights for a small catch", "give a table"):
        trained("h-pwr", [small_catch()], Plan(updates=2))
    table = jnp.triu(jnp.ones((3, 3)))
    expect_learning(*trained("h-pwr", [small_catch(), small_catch()], Plan(updates=2), table=table))


class Walk(dm_env.Environment):
    """Nobody's environment: one walks on a line and falls off after ±3, or is stopped by a clock of its own.

    Rewards are any numbers, observations are float32 of two axes, and discounts within an episode are not 1.
    """

    def __init__(self, seed):
        self.draw = np.random.default_rng(seed)

    def observation_spec(self):
        return specs.Array((2, 1), np.float32)

    def action_spec(self):
        return specs.DiscreteArray(2)

    def reset(self):
        self.place, self.time, self.limit = 0, 0, int(self.draw.integers(4, 8))
        return dm_env.restart(self.seen())

    def seen(self):
        return np.array([[self.place], [self.limit - self.time]], np.float32)

    def step(self, action):
        assert abs(self.place) < 3 and self.time < self.limit, "stepped after its end"
        self.place, self.time = self.place + 2 * int(action) - 1, self.time + 1
        reward = 0.25 * self.place + 0.1
        if abs(self.place) == 3:
            return dm_env.termination(reward, self.seen())
        if self.time == self.limit:
            return dm_env.truncation(reward, self.seen())  # with discount 1
        return dm_env.transition(reward, self.seen(), discount=0.0 if self.place == 0 else 0.9)


def test_an_environment_that_is_not_of_bsuite_falls_and_is_stopped():
    env = dm_environment(Walk, 20, "a walk")
    assert env.spec.observation == Vector(2)
    batch = jax.tree.map(lambda x: x[0], play([env], 60))
    steps = np.arange(20)
    place = np.cumsum(np.where(batch.valid, 2 * batch.actions - 1, 0), axis=1)
    limit = batch.observations[:, 0, 1]
    falls = np.where(np.abs(place) == 3, steps, 99).min(axis=1)
    last = np.minimum(falls, limit - 1)
    np.testing.assert_array_equal(batch.valid, steps <= last[:, None])
    np.testing.assert_array_equal(batch.terminated & batch.valid, steps == np.where(falls == last, last, -1)[:, None])
    np.testing.assert_array_equal(batch.truncated & batch.valid, steps == np.where(falls == last, -1, last)[:, None])
    assert 10 < (falls == last).sum() < 50, "both are seen"
    np.testing.assert_allclose(batch.rewards, np.where(batch.valid, 0.25 * place + 0.1, 0.0), rtol=1e-6)
    np.testing.assert_array_equal(batch.observations[:, 1:, 0], place)
    expect_learning(*trained("a2c", [env, env], Plan(updates=2)))


def test_a_discount_may_be_an_array_of_one_number():
    class Array(Count):
        def step(self, action):
            now = super().step(action)
            return now._replace(discount=np.array([now.discount]))

    for discount in (0.0, 1.0):
        batch = play([dm_environment(lambda seed, d=discount: Array(seed, d), 6)], 4)
        ends = batch.terminated if discount == 0 else batch.truncated
        assert (ends & batch.valid).any(axis=2).all()


@pytest.mark.parametrize("discount, horizon", [(0.0, 6), (1.0, 6), (0.0, 2)])
def test_ends_and_cuts(discount, horizon):
    batch = play([dm_environment(lambda seed: Count(seed, discount), horizon)], 40)
    batch = jax.tree.map(lambda x: x[0], batch)
    wanted = batch.observations[:, 0, 1].astype(int)
    lengths = batch.valid.sum(axis=1)
    assert set(wanted) == {1, 2, 3, 4}
    np.testing.assert_array_equal(lengths, np.minimum(wanted, horizon))
    died = (discount == 0) & (wanted <= horizon)
    np.testing.assert_array_equal(batch.terminated.any(axis=1), died)
    np.testing.assert_array_equal(batch.truncated.any(axis=1), ~died)
    last = (batch.terminated | batch.truncated).argmax(axis=1)
    np.testing.assert_array_equal(last, lengths - 1)
    np.testing.assert_array_equal(batch.observations[:, -1, 0], lengths)  # the final observation stays
    np.testing.assert_array_equal(np.where(batch.valid, batch.actions, 0), batch.rewards)


def test_the_host_answers_the_same_twice_goes_forward_only_and_forgets_what_is_over():
    episodes = _Episodes(lambda seed: Count(seed, 0.0), 2, 9)
    for seed in (1, 5):  # of two steps both
        episodes.ask(seed, -1, False, 0)
    first = episodes.ask(1, 0, False, 1)
    assert episodes.ask(1, 0, False, 1) is first and first[1:] == (1.0, False, False)
    with refused("is at step 1, but step 0 was asked for"):
        episodes.ask(1, 0, False, 0)
    assert episodes.ask(1, 1, False, 0)[2]
    episodes.ask(2, -1, False, 0)
    assert set(episodes.running) == {5, 2}


def test_in_segments_episodes_that_nobody_steps_are_forgotten(quick_compilation):
    method = replace_dotted(make_method("a2c", "paper", "bsuite/catch"), {"network.trunk": (4, 4)}, "a2c")
    env, found = dm_environment(lambda seed: Count(seed, 0.0), 9), []
    updates, steps = 3 * ROUNDS, 5
    train([method], [InSegments(env, steps)], [0], Plan(updates=updates), updates, on_chunk=lambda c: found.append(c))
    assert found[0].summaries["ended_episodes"][0, -1] > ROUNDS
    assert len(_ADAPTERS[int(env.host_number)].running) <= ROUNDS * steps + 2


def test_a_reward_may_be_an_array_of_one_number():
    class Array(Count):
        def step(self, action):
            return super().step(action)._replace(reward=np.array([0.5]))

    batch = play([dm_environment(lambda seed: Array(seed, 0.0), 6)], 4)
    np.testing.assert_array_equal(batch.rewards, np.where(batch.valid, 0.5, 0.0))


@pytest.mark.parametrize(
    "actions, observations, words",
    [
        (specs.BoundedArray((2,), float, -1, 1), specs.Array((3,), float), ("actions of robot", "DiscreteArray")),
        (specs.DiscreteArray(3), {"eye": specs.Array((3,), float)}, ("observations of robot", "flatten")),
        (specs.DiscreteArray(3), specs.StringArray(()), ("observations of robot",)),
    ],
)
def test_what_cannot_be_adapted_is_refused(actions, observations, words):
    class Robot(Count):
        def action_spec(self):
            return actions

        def observation_spec(self):
            return observations

    with refused(*words):
        dm_environment(lambda seed: Robot(seed, 1.0), 5, "robot")
    with refused("horizon of robot is 0"):
        dm_environment(lambda seed: Count(seed, 1.0), 0, "robot")


def test_members_that_share_an_adapter_need_seeds_of_their_own():
    env = dm_environment(lambda seed: Catch(seed=seed), 9)
    methods, plan = [make_method("a2c", "default", "bsuite/catch")] * 2, Plan(updates=1)
    with refused("same dm_env adapter and the same seed"):
        train(methods, [env] * 2, [3, 3], plan, 1)


@pytest.mark.parametrize(
    ("make", "horizon", "words"),
    [
        (lambda seed: None, 5, "has not the methods of a dm_env environment"),
        ("catch", 5, "needs a function that makes an environment"),
        (lambda seed: None, 9.5, "must be a whole number"),
    ],
)
@pytest.mark.usefixtures("users_view")
def test_what_makes_no_environment_is_refused(make, horizon, words):
    with refused(words):
        dm_environment(make, horizon)


def test_an_episode_that_was_forgotten_and_is_needed_is_begun_again():
    episodes = _Episodes(lambda seed: Count(seed, 0.0), 2, 9)
    for seed in (1, 5):
        episodes.ask(seed, -1, False, 0)
    kept = episodes.ask(5, 0, False, 1)
    episodes.forget_unused(0)
    assert set(episodes.running) == {5}
    forgotten = episodes.ask(1, 0, False, 1)
    np.testing.assert_array_equal(forgotten[0], kept[0])  # two steps both, and the same action
    assert forgotten[1:] == kept[1:]
