"""What all methods share: returns, preparation of advantages, steps of policies and values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.estimators import lambda_advantages
from paircredit.methods import InnerLoop, Trained, make_method
from paircredit.networks.state_functions import PolicyTable, ValueTable
from paircredit.types import Trajectory
from tests.methods.steps import policy_after

NO, YES = False, True

# Three episodes over states 0, 1, 2: one terminates, one is cut after three steps, one terminates after a single step.
BATCH = Trajectory(
    observations=jnp.array([[0, 1, 0, 2], [1, 1, 0, 1], [0, 2, 2, 2]]),
    legal=jnp.ones((3, 3, 2), dtype=bool),
    actions=jnp.array([[0, 1, 0], [1, 1, 0], [1, 0, 0]]),
    rewards=jnp.array([[1.0, 2.0, 4.0], [1.0, 0.0, -1.0], [5.0, 0.0, 0.0]]),
    terminated=jnp.array([[NO, NO, YES], [NO, NO, NO], [YES, NO, NO]]),
    truncated=jnp.array([[NO, NO, NO], [NO, NO, YES], [NO, NO, NO]]),
    valid=jnp.array([[YES, YES, YES], [YES, YES, YES], [YES, NO, NO]]),
)
VALUES = ValueTable(jnp.array([10.0, 20.0, 99.0]))


def test_discounts_end_with_the_episode_but_not_with_our_patience():
    expected = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.5], [0.0, 0.5, 0.5]]
    np.testing.assert_array_equal(InnerLoop(discount=0.5).discounts(BATCH), expected)


def test_regular_returns_continue_a_cut_episode_with_the_value_of_its_final_observation():
    # The second episode ends in state 1, worth 20: −1 + 10, 0 + 4.5, 1 + 2.25.
    expected = [[1 + 2 / 2 + 4 / 4, 2 + 4 / 2, 4], [3.25, 4.5, 9.0], [5, 0, 0]]
    values = VALUES.values[BATCH.observations]
    np.testing.assert_allclose(InnerLoop(discount=0.5).regular_returns(values, BATCH), expected)


def test_a_value_may_follow_lambda_returns():
    """G = r + γ[(1 − λ) v' + λ G'], and v' in place of G' where an episode was cut."""
    values = VALUES.values[BATCH.observations]
    # First episode: 4; 2 + (0.75·10 + 0.25·4)/2 with v(0) = 10 after it; 1 + (0.75·20 + 0.25·6.25)/2.
    first = [1 + (15 + 0.25 * 6.25) / 2, 6.25, 4.0]
    # Second: −1 + 20/2; 0 + (0.75·10 + 0.25·9)/2; 1 + (0.75·20 + 0.25·4.875)/2.
    second = [1 + (15 + 0.25 * 4.875) / 2, 4.875, 9.0]
    found = InnerLoop(discount=0.5, value_lambda=0.25).regular_returns(values, BATCH)
    np.testing.assert_allclose(found, [first, second, [5, 0, 0]])


def test_they_are_those_of_a2c():
    """On Atari, where Meta-PWTD's inner loop is set as A2C."""
    inner, values = InnerLoop(discount=0.5, value_lambda=0.25), VALUES.values[BATCH.observations]
    advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
        BATCH.rewards, values, inner.discounts(BATCH), 0.25, BATCH.valid
    )
    expected = np.where(BATCH.valid, advantages + values[:, :-1], 0.0)
    np.testing.assert_allclose(inner.regular_returns(values, BATCH), expected)
    assert make_method("meta-pwtd", "paper", "atari/pong").inner.value_lambda == 0.95
    assert make_method("a2c", "paper", "atari/pong").rule.lambda_ == 0.95


class TestPrepare:
    advantages = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 0.0, 0.0]])

    def test_as_they_are(self):
        np.testing.assert_array_equal(InnerLoop().prepare(self.advantages, BATCH), self.advantages)

    def test_standardised_over_the_valid_steps_of_the_batch(self):
        # 1 to 7: mean 4, deviation 2
        expected = [[-1.5, -1.0, -0.5], [0.0, 0.5, 1.0], [1.5, 0.0, 0.0]]
        np.testing.assert_allclose(InnerLoop(standardise=True).prepare(self.advantages, BATCH), expected, atol=1e-6)


def sgd(**settings) -> InnerLoop:
    return InnerLoop(optimiser="sgd", **settings)


def test_a_value_steps_towards_its_targets():
    """½ mean (v − G)²: the slope of v(s) is the sum of its errors over the seven valid steps, divided by 7."""
    inner = sgd(value_learning_rate=0.7, learning_rate=99.0)
    targets = jnp.array([[11.0, 22.0, 13.0], [24.0, 25.0, 16.0], [17.0, 1e6, 1e6]])
    stepped = inner.improve_value(Trained.fresh(VALUES, inner.value_optimiser), BATCH, targets)
    errors = {0: (-1) + (-3) + (-6) + (-7), 1: (-2) + (-4) + (-5)}
    expected = [10 - 0.7 * errors[0] / 7, 20 - 0.7 * errors[1] / 7, 99]
    np.testing.assert_allclose(stepped.parameters.values, expected, rtol=1e-6)


def test_targets_are_constants():
    inner = sgd()

    def value_after(target):
        targets = jnp.full((3, 3), target)
        return jnp.sum(inner.improve_value(Trained(VALUES, ()), BATCH, targets).parameters.values)

    assert value_after(50.0) != value_after(0.0)
    assert jax.grad(value_after)(50.0) == 0


def test_a_policy_steps_along_its_advantages():
    """At uniform logits the score of an action is ±½."""
    inner = sgd(learning_rate=0.7, value_learning_rate=99.0, entropy_cost=0.0)
    policy = Trained.fresh(PolicyTable(jnp.zeros((3, 2))), inner.policy_optimiser)
    stepped = policy_after(inner, policy, BATCH, TestPrepare.advantages)
    # Signed by the action taken: state 0 has −1, −3, −6, +7; state 1 has +2, +4, +5.
    expected = 0.7 / 7 * 0.5 * np.array([[3, -3], [-11, 11], [0, 0]])
    np.testing.assert_allclose(stepped.parameters.logits, expected, rtol=1e-5, atol=1e-7)


def test_the_entropy_bonus_pulls_towards_uniform():
    inner = sgd(learning_rate=1.0, entropy_cost=0.5)
    policy = Trained.fresh(PolicyTable(jnp.array([[2.0, 0.0]] * 3)), inner.policy_optimiser)
    stepped = policy_after(inner, policy, BATCH, jnp.zeros((3, 3))).parameters.logits
    gaps = stepped[:, 0] - stepped[:, 1]
    assert (gaps[:2] < 2).all() and gaps[2] == 2


@pytest.mark.parametrize(
    "name, first_step",
    [
        ("sgd", 0.1 * 3.0),
        ("adam", 0.1 * 3.0 / (3.0 + 0.5)),
        ("rmsprop", 0.1 * 3.0 / np.sqrt(0.2 * 3.0**2 + 0.5)),
    ],
)
def test_the_named_optimiser_is_used_with_its_settings(name, first_step):
    inner = InnerLoop(optimiser=name, second_moment_decay=0.8, epsilon=0.5)
    optimiser = inner.build_optimiser(0.1)
    gradient = jnp.array([3.0])
    np.testing.assert_allclose(optimiser.update(gradient, optimiser.init(gradient))[0], [-first_step], rtol=1e-5)


def test_rmsprop_may_add_epsilon_outside_the_root():
    inner = InnerLoop(optimiser="rmsprop", second_moment_decay=0.8, epsilon=0.5, epsilon_in_root=False)
    optimiser, gradient = inner.build_optimiser(0.1), jnp.array([3.0])
    expected = [-0.1 * 3.0 / (np.sqrt(0.2 * 3.0**2) + 0.5)]
    np.testing.assert_allclose(optimiser.update(gradient, optimiser.init(gradient))[0], expected, rtol=1e-5)


@pytest.mark.parametrize("preset", ["paper", "default", "small"])
@pytest.mark.parametrize("method", ["a2c", "meta-pwtd", "a2c-rr"])
def test_where_epsilon_stands_in_games(method, preset):
    assert not make_method(method, preset, "atari/pong").inner.epsilon_in_root
    assert make_method(method, preset, "minatar/breakout").inner.epsilon_in_root  # as its results were made


def test_a_clip_and_an_epsilon_inside_the_root():
    gradient = jnp.array([3.0, -4.0])  # norm 5
    clipped = InnerLoop(optimiser="sgd", clip_norm=1.0).build_optimiser(0.1)
    np.testing.assert_allclose(clipped.update(gradient, clipped.init(gradient))[0], [-0.06, 0.08], rtol=1e-5)
    adam = InnerLoop(epsilon_root=7.0).build_optimiser(0.1)
    expected = [-0.1 * 3 / np.sqrt(9 + 7), 0.1 * 4 / np.sqrt(16 + 7)]
    np.testing.assert_allclose(adam.update(gradient, adam.init(gradient))[0], expected, rtol=1e-4)


def test_the_defaults_are_those_of_the_paper():
    inner = InnerLoop()
    assert (inner.learning_rate, inner.discount, inner.entropy_cost, inner.episodes) == (0.01, 1.0, 0.001, 8)
    assert (inner.optimiser, inner.second_moment_decay, inner.epsilon) == ("adam", 0.999, 1e-8)


@pytest.mark.parametrize("method", ["a2c", "meta-pwtd", "a2c-rr"])
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_atari_is_learned_with_the_papers_numbers(method: str, preset: str) -> None:
    """Appendix, Atari; what it does not give is in docs/reproduction.md."""
    made = make_method(method, preset, "atari/pong")
    inner = made.inner
    assert inner.optimiser == "rmsprop" and made.network.shared and inner.episodes == 16
    numbers = (inner.learning_rate, inner.second_moment_decay, inner.epsilon, inner.clip_norm, inner.discount)
    assert numbers == (7e-4, 0.99, 1e-5, 0.5, 0.99)
    assert (inner.entropy_cost, inner.value_cost) == (0.01, 0.5)
    if method == "meta-pwtd":
        outer = made.outer
        assert (outer.learning_rate, outer.clip_norm, outer.entropy_cost) == (3e-5, 0.05, 0.01)
        assert (outer.lambda_, inner.value_lambda) == (0.95, 0.95)
    else:
        assert made.rule.lambda_ == 0.95
