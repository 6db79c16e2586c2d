"""A2C with a fixed λ: the classical credit, and the paper's "regular return" when λ = 1."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import lambda_advantages, td_errors
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit, within_episodes
from paircredit.methods.inner_loop import InnerLoop, Trained, critic_of
from paircredit.methods.policy_gradient import over_steps
from paircredit.networks import NetworkSpec, policy_and_value_for
from paircredit.types import Trajectory
from paircredit.weights import exponential_weights


class A2CLearner(eqx.Module):
    """Policy θ and the value function of the regular return (None where the policy's network has it)."""

    policy: Trained
    value: Trained | None


class A2C(eqx.Module):
    """Advantage actor-critic with λ-advantages."""

    inner: InnerLoop = InnerLoop()
    """Policy and value learning."""
    lambda_: float = 1.0
    """λ (paper, DAG appendix: 1 is best there)."""
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""

    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> A2CLearner:
        """A nearly uniform policy and a fresh value function."""
        policy, value = policy_and_value_for(
            key, jax.random.fold_in(key, 1), env.spec, self.network, self.inner.initial_scale
        )
        trained = None if value is None else self.inner.trained_value(value)
        return A2CLearner(self.inner.trained_policy(policy), trained)

    def learn(self, learner: A2CLearner, trajectory: Trajectory) -> tuple[A2CLearner, tuple[()]]:
        """One step of the policy along λ-advantages, one step of the value towards λ-returns."""
        advantages, values = self._advantages(learner, trajectory)
        prepared, targets = self.inner.prepare(advantages, trajectory), advantages + values[:, :-1]
        return A2CLearner(*self.inner.improve_both(learner.policy, learner.value, trajectory, prepared, targets)), ()

    def credit(self, learner: A2CLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with: TD errors, weighed by (γλ)^(k−t)."""
        advantages, values = self._advantages(learner, trajectory)
        discounts = self.inner.discounts(trajectory)
        errors = jax.vmap(td_errors)(trajectory.rewards, values, discounts, trajectory.valid)
        weights = exponential_weights(errors.shape[1], self.inner.discount, self.lambda_)
        pairs = jnp.broadcast_to(weights, (*errors.shape, errors.shape[1]))
        return Credit(advantages, within_episodes(pairs, trajectory), errors)

    def _advantages(
        self, learner: A2CLearner, trajectory: Trajectory
    ) -> tuple[Float[Array, "B T"], Float[Array, "B T_plus_1"]]:
        values = over_steps(critic_of(learner.policy, learner.value), trajectory.observations)
        advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
            trajectory.rewards, values, self.inner.discounts(trajectory), self.lambda_, trajectory.valid
        )
        return advantages, values
