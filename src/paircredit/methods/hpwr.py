"""H-PWR: pairwise weighted returns with weights that somebody wrote down, or that were learned and are now fixed."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import pairwise_sum
from paircredit.estimators.shapes import expect_shape
from paircredit.methods.acting import logits_of_policy, no_memory
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.policy_gradient import over_steps
from paircredit.networks import num_states, policy_for, value_for
from paircredit.types import Trajectory
from paircredit.weights import FixedTable, handcrafted_weights


class HPWRLearner(eqx.Module):
    """Policy θ, the value function of the weighted return, and the fixed weight function."""

    policy: Trained
    weighted_value: Trained
    weights: Trained


class HPWR(eqx.Module):
    """Policy gradient with Ψ = Σ_k w(S_t, S_k) R_k − v(S_t), the weights fixed."""

    inner: InnerLoop = InnerLoop()
    """Policy and value learning."""
    table: Float[Array, "S S"] | None = None
    """The weights; left out, the handcrafted ones of the environment."""

    initial_carry = no_memory
    policy = logits_of_policy

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> HPWRLearner:
        """A nearly uniform policy, a value function of zeros, and the weights."""
        if self.table is None:
            weights = handcrafted_weights(env)
        else:
            states = num_states(env.spec)
            expect_shape(f"The table of weights for {env.spec.name}", self.table, (states, states))
            weights = FixedTable(self.table)
        policy = policy_for(key, env.spec, self.inner.initial_scale)
        return HPWRLearner(
            self.inner.trained_policy(policy),
            self.inner.trained_value(value_for(env.spec)),
            Trained(weights, ()),
        )

    def learn(self, learner: HPWRLearner, trajectory: Trajectory) -> tuple[HPWRLearner, tuple[()]]:
        """One step of the policy along weighted advantages, one step of the value towards weighted returns."""
        weights = jax.vmap(learner.weights.parameters)(trajectory.observations)
        returns = jax.vmap(pairwise_sum)(weights, trajectory.rewards, trajectory.valid)
        baseline = over_steps(learner.weighted_value.parameters, trajectory.observations)[:, :-1]
        policy = self.inner.improve_policy(
            learner.policy, trajectory, self.inner.prepare(returns - baseline, trajectory)
        )
        value = self.inner.improve_value(learner.weighted_value, trajectory, returns)
        return HPWRLearner(policy, value, learner.weights), ()
