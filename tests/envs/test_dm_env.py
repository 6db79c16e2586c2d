"""Environments on the host: bsuite's own catch through the adapter, ends, cuts, seeds, and what cannot be adapted."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import DmEnvironment, Vector, dm_environment
from paircredit.envs.bsuite import CatchChance, CatchConfig
from paircredit.envs.dm_env import _ADAPTERS, ROUNDS, _Episodes
from paircredit.envs.pieces import InPieces
from paircredit.methods import A2C, InnerLoop, make_method
from paircredit.methods.settings import replace_dotted
from paircredit.training import Plan, collect_episodes, stack_members, train
from tests.sentences import refused

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import dm_env
    from bsuite.environments.catch import Catch
    from dm_env import specs


class RandomPlay(A2C):
    """A method whose policy is the learner: logits, whatever is seen."""

    def policy(self, learner, carry, observation):
        return learner, carry


def play(envs, episodes, seed=0):
    method = RandomPlay(InnerLoop(episodes=episodes))

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
        assert self.time == self.length, "stepped behind its end"
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


def test_in_pieces_episodes_that_nobody_steps_are_forgotten(quick_compilation):
    method = replace_dotted(make_method("a2c", "paper", "bsuite/catch"), {"network.trunk": (4, 4)}, "a2c")
    env, found = dm_environment(lambda seed: Count(seed, 0.0), 9), []
    updates = 3 * ROUNDS // 5
    train([method], [InPieces(env, 5)], [0], Plan(updates=updates), updates, on_chunk=lambda c: found.append(c))
    assert found[0].summaries["ended_episodes"][0, -1] > ROUNDS // 2
    assert len(_ADAPTERS[int(env.number)].running) <= ROUNDS + 2


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
