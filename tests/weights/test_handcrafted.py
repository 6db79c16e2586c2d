"""Handcrafted weights against what they claim: the reward on entering j depends on the action in i."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.dag import DagConfig
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.weights import PairInputs, handcrafted_weights, tables
from tests.sentences import refused


def walk(env, state: int, actions: tuple[int, ...]) -> list[tuple[int, float]]:
    """(state entered, reward on entering it) from `state` to the end; forced moves once the actions are used up."""
    next_state, rewards = np.asarray(env.next_state), np.asarray(env.rewards)
    entered, remaining = [], list(actions)
    while state != len(next_state) - 1:
        action = remaining.pop(0) if remaining else 0
        entered.append((int(next_state[state, action]), float(rewards[state, action])))
        state = entered[-1][0]
    return entered


@pytest.mark.parametrize("depth", [4, 6, 8])
@pytest.mark.parametrize("sign_rule", ["action", "random"])
def test_dag_weights_by_brute_force(depth, sign_rule):
    """w_ij = 1 iff flipping the action in i, and nothing else, changes the reward received on entering j."""
    env = DagConfig(depth=depth, sign_rule=sign_rule).build()
    choosing = [state for state in range(len(env.legal)) if env.legal[state, 1]]
    expected = np.zeros((len(env.legal),) * 2)
    for state in choosing:
        decisions_left = depth // 2 - int(np.floor(np.log2(state + 1)))
        for later in itertools.product((0, 1), repeat=decisions_left - 1):
            first, second = (dict(walk(env, state, (action, *later))) for action in (0, 1))
            for entered in first.keys() & second.keys():
                if first[entered] != second[entered]:
                    expected[state, entered] = 1
    np.testing.assert_array_equal(handcrafted_weights(env).table, expected)
    assert expected.sum() == len(choosing) == 2 ** (depth // 2) - 1, "every decision is paid for exactly once"


def test_dag_weights_pick_the_reward_that_follows_from_each_decision():
    """Depth 4, first action 1, second action 0: the second decision costs 1, then the first one pays 1."""
    env = DagConfig(depth=4).build()
    # 0 →(1) 2 →(0) 5 → 8 → 9, where 3..6 are the middle layer, 7 and 8 the last, 9 the end
    path = [0, *(state for state, _ in walk(env, 0, (1, 0)))]
    assert path == [0, 2, 5, 8, 9]
    weights = handcrafted_weights(env)(PairInputs(jax.numpy.array(path)))
    rewards = np.array([reward for _, reward in walk(env, 0, (1, 0))])
    np.testing.assert_array_equal(rewards, [0, 0, -1, 1])
    np.testing.assert_array_equal(np.triu(weights) @ rewards, [1, -1, 0, 0])


@pytest.mark.parametrize("horizon", [0, 9])
def test_umbrella_weights_credit_the_morning_with_the_evening_only(horizon):
    env = UmbrellaConfig(length=5, horizon=horizon).build()
    states = 2 * (horizon or 5)
    expected = np.zeros((states, states))
    expected[0, states - 1] = 1
    np.testing.assert_array_equal(handcrafted_weights(env).table, expected)


def test_an_environment_without_handcrafted_weights_is_refused():
    with refused("probe-delay", "register", "table"):
        handcrafted_weights(make_environment("probe-delay"))


@pytest.mark.parametrize("env", [DagConfig(depth=4).build(), UmbrellaConfig(length=5).build()], ids=["dag", "umbrella"])
def test_a_table_that_does_not_fit_is_refused(env, monkeypatch):
    monkeypatch.setattr(tables, "LARGEST_TABLE", 99)  # both environments have 10 states
    with refused("10 states", "100 entries"):
        handcrafted_weights(env)
