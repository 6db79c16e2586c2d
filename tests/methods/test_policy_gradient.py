"""The policy-gradient loss: by hand, and blind to padding and to illegal actions."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.methods.loops import legal_log_probs, mean_over_valid, policy_gradient_loss
from paircredit.networks.state_functions import PolicyTable
from paircredit.types import Trajectory

# Two episodes over four states, the second one two steps shorter; in state 3 only action 0 is legal.
BATCH = Trajectory(
    observations=jnp.array([[0, 1, 3, 2], [1, 2, 2, 2]]),
    legal=jnp.array([[[True, True], [True, True], [True, False]], [[True, True]] * 3]),
    actions=jnp.array([[1, 0, 0], [1, 0, 1]]),
    rewards=jnp.zeros((2, 3)),
    terminated=jnp.zeros((2, 3), dtype=bool),
    truncated=jnp.zeros((2, 3), dtype=bool),
    valid=jnp.array([[True, True, True], [True, False, False]]),
)
ADVANTAGES = np.array([[0.5, -1.0, 2.0], [3.0, 7.0, 7.0]], dtype=np.float32)
LOGITS = np.array([[0.3, -0.2], [1.0, 0.0], [0.5, 0.5], [-4.0, 9.0]], dtype=np.float32)


def by_hand(entropy_cost):
    """−mean over the four valid steps of Ψ log π(a|s) + β H(π(·|s)), and its gradient."""
    loss, gradient = 0.0, np.zeros_like(LOGITS)
    for b, t in ((0, 0), (0, 1), (0, 2), (1, 0)):
        state, action = int(BATCH.observations[b, t]), int(BATCH.actions[b, t])
        legal = np.asarray(BATCH.legal[b, t])
        π = np.where(legal, np.exp(LOGITS[state]), 0) / np.exp(LOGITS[state][legal]).sum()
        log_π = np.log(np.where(legal, π, 1))
        entropy = -(π * log_π).sum()
        loss -= (ADVANTAGES[b, t] * log_π[action] + entropy_cost * entropy) / 4
        gradient[state] -= ADVANTAGES[b, t] * (np.eye(2)[action] - π) / 4
        gradient[state] += entropy_cost * π * (log_π + entropy) / 4
    return loss, gradient


@pytest.mark.parametrize("entropy_cost", [0.0, 0.3])
def test_loss_and_gradient_by_hand(entropy_cost):
    loss, gradient = jax.value_and_grad(policy_gradient_loss)(
        PolicyTable(jnp.asarray(LOGITS)), BATCH, jnp.asarray(ADVANTAGES), entropy_cost
    )
    expected_loss, expected_gradient = by_hand(entropy_cost)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    np.testing.assert_allclose(gradient.logits, expected_gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("entropy_cost", [0.0, 0.3])
def test_a_state_without_a_choice_has_no_gradient(entropy_cost):
    """Not even a small one: state 3, and state 2 which is only seen as padding."""
    gradient = jax.grad(policy_gradient_loss)(
        PolicyTable(jnp.asarray(LOGITS)), BATCH, jnp.asarray(ADVANTAGES), entropy_cost
    )
    np.testing.assert_array_equal(gradient.logits[2:], 0)
    assert (np.abs(gradient.logits[:2]) > 1e-3).all()


@pytest.mark.parametrize("padding", [1e30, np.inf, np.nan])
def test_advantages_on_padding_can_be_anything(padding):
    dirty = jnp.where(BATCH.valid, ADVANTAGES, jnp.float32(padding))
    loss, gradient = jax.value_and_grad(policy_gradient_loss)(PolicyTable(jnp.asarray(LOGITS)), BATCH, dirty, 0.3)
    np.testing.assert_allclose(loss, by_hand(0.3)[0], rtol=1e-5)
    np.testing.assert_allclose(gradient.logits, by_hand(0.3)[1], rtol=1e-4, atol=1e-6)


def test_the_loss_is_linear_in_the_advantages():
    policy, other = PolicyTable(jnp.asarray(LOGITS)), jnp.flip(jnp.asarray(ADVANTAGES))

    def loss(psi):
        return policy_gradient_loss(policy, BATCH, psi, 0.0)

    np.testing.assert_allclose(loss(3 * ADVANTAGES + other), 3 * loss(jnp.asarray(ADVANTAGES)) + loss(other), rtol=1e-5)


def test_an_empty_batch_costs_nothing():
    nothing = dataclasses.replace(BATCH, valid=jnp.zeros((2, 3), dtype=bool))
    assert policy_gradient_loss(PolicyTable(jnp.asarray(LOGITS)), nothing, jnp.asarray(ADVANTAGES), 0.3) == 0


class TestLegalActions:
    def test_illegal_actions_have_probability_0_and_the_others_share_the_rest(self):
        log_probs = legal_log_probs(jnp.array([0.0, 50.0, jnp.log(3.0)]), jnp.array([True, False, True]))
        np.testing.assert_allclose(np.exp(log_probs), [0.25, 0.0, 0.75], rtol=1e-6)
        assert np.exp(log_probs[1]) == 0

    def test_a_single_legal_action_is_certain(self):
        log_probs = legal_log_probs(jnp.array([-300.0, 300.0]), jnp.array([True, False]))
        assert log_probs[0] == 0

    def test_logits_of_illegal_actions_do_not_matter(self):
        legal = jnp.array([True, False, True])
        jacobian = jax.jacobian(lambda x: legal_log_probs(x, legal))(jnp.array([0.3, 0.1, -0.5]))
        assert not jacobian[:, 1].any() and np.isfinite(jacobian).all()


def test_mean_over_valid():
    x, valid = jnp.array([[1.0, 2.0], [6.0, jnp.nan]]), jnp.array([[True, True], [True, False]])
    assert mean_over_valid(x, valid) == 3
