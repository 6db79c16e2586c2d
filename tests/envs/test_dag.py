"""The DAG, against a second description of it: a path is a string of bits, paid for from its end."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import Discrete
from paircredit.envs.dag import DagConfig, acting_states, layers, num_states, reachable
from tests.sentences import refused

KEY = jax.random.key(0)


def play(env, bits):
    """States, rewards and ends of the episode that takes these decisions and then drifts."""
    state, first = env.reset(KEY)
    states, rewards, ends = [int(first.observation)], [], []
    for action in [*bits, *[0] * (env.depth - len(bits))]:
        assert first.legal[action]
        state, first = env.step(KEY, state, jnp.asarray(action))
        states.append(int(first.observation))
        rewards.append(float(first.reward))
        ends.append(bool(first.terminated))
        assert not first.truncated
    return states, rewards, ends


@pytest.mark.parametrize("depth, states", [(4, 9), (6, 21), (8, 45), (16, 765)])
def test_number_of_states(depth, states):
    """The paper's states and a terminal one."""
    env = DagConfig(depth=depth).build()
    assert num_states(depth) == states + 1
    assert env.spec.observation == Discrete(states + 1)
    assert env.next_state.shape == (states + 1, 2)
    assert env.spec.horizon == depth and env.spec.num_actions == 2 and env.spec.name == f"dag-{depth}"


def test_layers_of_depth_8():
    """States 0 to 14 act; 15 to 30 are the middle layer (paper, DAG section)."""
    sizes = np.bincount(layers(8))[1:]
    np.testing.assert_array_equal(sizes, [1, 2, 4, 8, 16, 8, 4, 2, 1])
    np.testing.assert_array_equal(acting_states(8), np.arange(15))
    env = DagConfig(depth=8).build()
    np.testing.assert_array_equal(np.nonzero(env.legal[:, 1])[0], np.arange(15))
    assert env.legal[:, 0].all()
    np.testing.assert_array_equal(np.nonzero(layers(8) == 5)[0], np.arange(15, 31))


@pytest.fixture(scope="module")
def paths_of_depth_8():
    env = DagConfig(depth=8).build()
    return {bits: play(env, bits) for bits in itertools.product((0, 1), repeat=4)}


class TestAllPathsOfDepth8:
    def test_eight_transitions_four_rewards(self, paths_of_depth_8):
        for _, rewards, ends in paths_of_depth_8.values():
            assert ends == [False] * 7 + [True]
            assert [r != 0 for r in rewards] == [False] * 4 + [True] * 4

    def test_decisions_are_paid_last_in_first_out(self, paths_of_depth_8):
        """The decision of layer l is paid on entering layer 10 − l: +1 for action 1, −1 for action 0."""
        for bits, (_, rewards, _) in paths_of_depth_8.items():
            assert rewards[4:] == [1.0 if bit else -1.0 for bit in reversed(bits)]

    def test_returns(self, paths_of_depth_8):
        returns = {bits: sum(rewards) for bits, (_, rewards, _) in paths_of_depth_8.items()}
        assert all(returns[bits] == 2 * sum(bits) - 4 for bits in returns)
        assert max(returns, key=returns.get) == (1, 1, 1, 1) and max(returns.values()) == 4

    def test_states_are_numbered_layer_by_layer(self, paths_of_depth_8):
        """A tree on the way in, its mirror image on the way out: what is remembered is a prefix of the decisions."""

        def number(prefix):
            return sum(bit << i for i, bit in enumerate(reversed(prefix)))

        for bits, (states, _, _) in paths_of_depth_8.items():
            inwards = [2**n - 1 + number(bits[:n]) for n in range(5)]
            outwards = [31 + number(bits[:3]), 39 + number(bits[:2]), 43 + number(bits[:1]), 45]
            assert states == inwards + outwards

    def test_reachable_is_what_paths_reach(self, paths_of_depth_8):
        expected = np.zeros((46, 46), dtype=bool)
        for states, _, _ in paths_of_depth_8.values():
            for i, j in itertools.combinations(states, 2):
                expected[i, j] = True
        np.testing.assert_array_equal(reachable(8), expected)


@pytest.mark.parametrize("depth", [4, 6, 16])
def test_the_best_return_is_half_the_depth(depth):
    env = DagConfig(depth=depth).build()
    assert sum(play(env, [1] * (depth // 2))[1]) == depth / 2
    assert sum(play(env, [0] * (depth // 2))[1]) == -depth / 2


class TestRandomSigns:
    def test_the_paying_action_depends_on_the_merging_state_only(self):
        """Whoever enters a state of the second phase is paid for one of the two actions, and fined for the other."""
        env = DagConfig(depth=8, sign_rule="random").build()
        for entered in range(31, 46):
            before = np.nonzero(np.asarray(env.next_state)[:45, 0] == entered)[0]
            assert sorted(np.asarray(env.rewards)[before, 0]) == [-1.0, 1.0]

    def test_both_signs_occur_and_the_seed_decides(self):
        by_seed = [DagConfig(depth=8, sign_rule="random", sign_seed=seed).build().rewards for seed in (0, 0, 1)]
        plain = DagConfig(depth=8).build().rewards
        np.testing.assert_array_equal(by_seed[0], by_seed[1])
        assert (by_seed[0] != by_seed[2]).any() and (by_seed[0] != plain).any()
        assert (by_seed[0] == plain)[15:].any()

    def test_the_best_return_stays(self):
        env = DagConfig(depth=8, sign_rule="random", sign_seed=3).build()
        returns = [sum(play(env, bits)[1]) for bits in itertools.product((0, 1), repeat=4)]
        assert sorted(returns) == sorted(2 * sum(bits) - 4 for bits in itertools.product((0, 1), repeat=4))


@pytest.mark.parametrize("sign_rule", ["action", "random"])
def test_the_model_is_what_step_does(sign_rule):
    env = DagConfig(depth=6, sign_rule=sign_rule).build()
    model = env.model()
    states = jnp.arange(num_states(6), dtype=jnp.int32)
    for action in (0, 1):
        following, out = jax.vmap(lambda s, a=action: env.step(KEY, s, jnp.asarray(a)))(states)
        np.testing.assert_array_equal(following, model.next_state[:, action])
        np.testing.assert_array_equal(out.observation, model.next_state[:, action])
        np.testing.assert_array_equal(out.reward, model.reward_mean[:, action])
        np.testing.assert_array_equal(out.legal, model.legal[model.next_state[:, action]])
        np.testing.assert_array_equal(out.terminated, model.next_state[:, action] == num_states(6) - 1)
    assert not model.reward_variance.any()
    assert model.start == 0 and model.horizon == 6
    end = num_states(6) - 1
    assert (model.next_state[end] == end).all() and not model.reward_mean[end].any()


@pytest.mark.parametrize("depth", [-4, 0, 2, 3, 5, 7])
def test_odd_and_tiny_depths_are_refused(depth):
    with refused(f"depth is {depth}", "even", "at least 4"):
        DagConfig(depth=depth).build()


@pytest.mark.parametrize("depth", [42, 10**9])
def test_huge_depths_are_refused(depth):
    with refused(str(depth), "40"):
        DagConfig(depth=depth).build()


@pytest.mark.usefixtures("users_view")
def test_an_unknown_sign_rule_is_refused():
    with refused("'flip'", "'action'", "'random'"):
        DagConfig(sign_rule="flip").build()
