"""H-PWR: pairwise weighted rewards with weights that somebody wrote down (or learned elsewhere and froze)."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Discrete, Environment
from paircredit.estimators import pairwise_sum
from paircredit.estimators.shapes import expect_shape
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.policy_gradient import over_steps
from paircredit.networks import NetworkSpec, num_states, policy_for, value_for
from paircredit.types import Trajectory
from paircredit.weights import FixedPairs, FixedTable, PairInputs, handcrafted_weights


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
    """The weights, over pairs of states or of times; left out, the handcrafted ones of the environment."""
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""

    needs_whole_episodes: ClassVar[str] = (
        "its weights reach to the end of the episode and nothing stands in for rewards behind a cut"
    )
    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> HPWRLearner:
        """A nearly uniform policy, a fresh value function, and the weights."""
        policy = policy_for(key, env.spec, self.network, self.inner.initial_scale)
        value = value_for(jax.random.fold_in(key, 1), env.spec, self.network)
        return HPWRLearner(
            self.inner.trained_policy(policy),
            self.inner.trained_value(value),
            Trained(self._weights(env), ()),
        )

    def _weights(self, env: Environment) -> Any:
        if self.table is None:
            return handcrafted_weights(env)
        tabular = isinstance(env.spec.observation, Discrete)
        size = num_states(env.spec) if tabular else env.spec.horizon
        expect_shape(f"The table of weights for {env.spec.name}", self.table, (size, size))
        return FixedTable(self.table) if tabular else FixedPairs(self.table)

    def learn(self, learner: HPWRLearner, trajectory: Trajectory) -> tuple[HPWRLearner, tuple[()]]:
        """One step of the policy along weighted advantages, one step of the value towards weighted returns."""
        credit, returns = self._credit_and_returns(learner, trajectory)
        advantages = self.inner.prepare(credit.advantages, trajectory)
        policy = self.inner.improve_policy(learner.policy, trajectory, advantages)
        value = self.inner.improve_value(learner.weighted_value, trajectory, returns)
        return HPWRLearner(policy, value, learner.weights), ()

    def credit(self, learner: HPWRLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with."""
        return self._credit_and_returns(learner, trajectory)[0]

    def _credit_and_returns(self, learner: HPWRLearner, trajectory: Trajectory) -> tuple[Credit, Float[Array, "B T"]]:
        weights = jax.vmap(learner.weights.parameters)(PairInputs(trajectory.observations))
        returns = jax.vmap(pairwise_sum)(weights, trajectory.rewards, trajectory.valid)
        baseline = over_steps(learner.weighted_value.parameters, trajectory.observations)[:, :-1]
        return Credit(returns - baseline, weights, trajectory.rewards), returns
