"""Episodes as they were lived: every recorded step is checked against the environment."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from paircredit.envs import Discrete, EnvSpec
from paircredit.envs.dag import DagConfig
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import InnerLoop, make_method
from paircredit.networks.state_functions import PolicyTable
from paircredit.training import collect_episodes
from paircredit.types import TimeStep
from tests.players import Player

EPISODES = 5000
rng = np.random.default_rng(0)
logits = rng.normal(size=(10, 2)).astype(np.float32)
logits[3:, 1] = 50.0
"""After the choices of the DAG and the morning of the umbrella, the policy would love to take an illegal action."""


def collect(env, key=0, episodes=EPISODES):
    method = make_method("a2c", inner=InnerLoop(episodes=episodes))
    learner = method.init(jax.random.key(0), env)
    policy = dataclasses.replace(learner.policy, parameters=PolicyTable(jnp.asarray(logits)))
    learner = dataclasses.replace(learner, policy=policy)
    return jax.device_get(jax.jit(lambda k: collect_episodes(method, learner, env, k))(jax.random.key(key)))


ENVS = {
    "dag": DagConfig(depth=4, sign_rule="random").build(),
    "umbrella": UmbrellaConfig(length=3, mean=0.5, variance=0.0, horizon=5).build(),
}


@pytest.fixture(scope="module", params=ENVS)
def lived(request):
    env = ENVS[request.param]
    return env, jax.device_get(env.model()), collect(env)


def test_shapes(lived):
    env, _, batch = lived
    T = env.spec.horizon
    assert batch.observations.shape == (EPISODES, T + 1)
    assert batch.legal.shape == (EPISODES, T, 2)
    for x in (batch.actions, batch.rewards, batch.terminated, batch.truncated, batch.valid):
        assert x.shape == (EPISODES, T)


def test_every_step_follows_the_model(lived):
    _, model, batch = lived
    before, after = batch.observations[:, :-1], batch.observations[:, 1:]
    valid = batch.valid
    np.testing.assert_array_equal(after[valid], model.next_state[before, batch.actions][valid])
    np.testing.assert_array_equal(batch.rewards[valid], model.reward_mean[before, batch.actions][valid])
    np.testing.assert_array_equal(batch.legal[valid], model.legal[before][valid])
    assert (batch.observations[:, 0] == 0).all()


def test_an_episode_ends_once_and_the_rest_is_padding(lived):
    env, _, batch = lived
    steps = 4 if env.spec.horizon == 4 else 3
    np.testing.assert_array_equal(batch.valid, np.broadcast_to(np.arange(env.spec.horizon) < steps, batch.valid.shape))
    np.testing.assert_array_equal(batch.terminated.sum(axis=1), 1)
    assert batch.terminated[:, steps - 1].all() and not batch.truncated.any()
    assert not batch.rewards[~batch.valid].any()
    assert (batch.observations[:, steps:] == 9).all(), "the final observation is kept"


def test_illegal_actions_are_never_taken(lived):
    _, _, batch = lived
    taken = np.take_along_axis(batch.legal, batch.actions[..., None], axis=-1)[..., 0]
    assert taken.all()


def test_actions_are_drawn_from_the_softmax(lived):
    _, model, batch = lived
    for state in np.nonzero(model.legal.all(axis=1))[0]:
        here = batch.actions[batch.valid & (batch.observations[:, :-1] == state)]
        p = np.exp(logits[state, 1]) / np.exp(logits[state]).sum()
        assert len(here) > 500
        assert abs(here.mean() - p) < 5 * np.sqrt(p * (1 - p) / len(here))


def test_decisions_of_one_episode_are_independent():
    """Under the policy of the tests the DAG's second action says nothing about which first action led there."""
    batch = collect(ENVS["dag"])
    first, second = batch.actions[:, 0], batch.actions[:, 1]
    for action in (0, 1):
        chosen = second[first == action]
        p = np.exp(logits[1 + action, 1]) / np.exp(logits[1 + action]).sum()
        assert abs(chosen.mean() - p) < 5 * np.sqrt(p * (1 - p) / len(chosen))


def test_the_key_decides():
    one, same, other = (collect(ENVS["dag"], key, episodes=64).actions for key in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


class Corridor(eqx.Module):
    """Walk from `start` to cell 0; after three steps somebody turns off the light. Observations are a dictionary."""

    start: Array

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("corridor", 2, Discrete(9), 5)

    def reset(self, key):
        cell = jax.random.randint(key, (), 1, 1 + self.start)
        return (cell, jnp.zeros((), dtype=int)), self._time_step(cell, 0, 0.0)

    def step(self, key, state, action):
        cell, time = state[0] - action, state[1] + 1
        return (cell, time), self._time_step(cell, time, -1.0)

    def _time_step(self, cell, time, reward):
        there = cell <= 0
        return TimeStep(
            {"cell": cell, "picture": jnp.full((2, 3), cell)},
            jnp.ones(2, dtype=bool),
            jnp.asarray(reward),
            there,
            ~there & (jnp.asarray(time) >= 3),
        )


class EveryOther(Player):
    """An agent that remembers whether it moved: it moves, waits, moves, waits, whatever it sees."""

    def initial_carry(self, learner):
        return jnp.array(1.0)

    def policy(self, learner, carry, observation):
        return jnp.stack([jnp.array(0.0), 200.0 * carry - 100.0]), 1.0 - carry


class Alternating(EveryOther):
    """The same walk, by looking at the last action: what was done is not done again. It also adds up its rewards."""

    def initial_carry(self, learner):
        return {"last": jnp.array(0), "rewards": jnp.array(0.0)}

    def policy(self, learner, carry, observation):
        return jnp.stack([jnp.array(0.0), 100.0 - 200.0 * carry["last"]]), carry

    def remember(self, carry, action, reward):
        return {"last": action, "rewards": carry["rewards"] + reward}


@pytest.fixture(scope="module")
def corridor():
    env, method = Corridor(jnp.array(3)), EveryOther(200)
    return jax.device_get(jax.jit(lambda key: collect_episodes(method, (), env, key))(jax.random.key(0)))


def test_memory_is_carried_from_step_to_step_and_starts_anew_in_every_episode(corridor):
    expected = np.broadcast_to([1, 0, 1, 0, 1], (200, 5))
    np.testing.assert_array_equal(corridor.actions[corridor.valid], expected[corridor.valid])


def test_an_agent_is_told_its_actions_and_rewards(corridor):
    env, method = Corridor(jnp.array(3)), Alternating(200)
    told = jax.device_get(jax.jit(lambda key: collect_episodes(method, (), env, key))(jax.random.key(0)))
    np.testing.assert_array_equal(told.actions[told.valid], corridor.actions[corridor.valid])


def test_termination_and_truncation_are_told_apart(corridor):
    """From cell 1 one arrives at once, from cell 2 in the third step, from cell 3 not before the light goes out."""
    start = corridor.observations["cell"][:, 0]
    assert set(start) == {1, 2, 3}
    for cell, steps, arrives in ((1, 1, True), (2, 3, True), (3, 3, False)):
        chosen = start == cell
        np.testing.assert_array_equal(corridor.valid[chosen], np.broadcast_to(np.arange(5) < steps, (chosen.sum(), 5)))
        last = np.broadcast_to(np.arange(5) == steps - 1, (chosen.sum(), 5))
        np.testing.assert_array_equal(corridor.terminated[chosen], last & arrives)
        np.testing.assert_array_equal(corridor.truncated[chosen], last & (not arrives))


def test_observations_of_any_structure_keep_their_final_entry(corridor):
    start, cells = corridor.observations["cell"][:, 0], corridor.observations["cell"]
    expected = {1: [1, 0, 0, 0, 0, 0], 2: [2, 1, 1, 0, 0, 0], 3: [3, 2, 2, 1, 1, 1]}
    np.testing.assert_array_equal(cells, [expected[int(s)] for s in start])
    np.testing.assert_array_equal(
        corridor.observations["picture"], np.broadcast_to(cells[:, :, None, None], (200, 6, 2, 3))
    )
