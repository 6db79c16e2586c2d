"""The outer loop that the meta-learning methods share: the regular policy gradient judges the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from paircredit.estimators import lambda_advantages, pairwise_sum
from paircredit.metagradient import MetaProblem, explicit_one_step
from paircredit.metagradient.optimisers import Optimiser, adam
from paircredit.methods.credit import Credit, within_episodes
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.policy_gradient import over_steps, policy_gradient_loss
from paircredit.methods.protocol import MetaMethod
from paircredit.parts import part
from paircredit.types import PyTree, Trajectory
from paircredit.weights import PairInputs, PairWeights


class InnerData(eqx.Module):
    """What an inner update learned from: the policy before it, the episodes, and constants of the advantages.

    Attributes:
        policy: the policy and its optimiser state before the update.
        trajectory: the batch.
        signal: what the pair weights weigh: rewards or TD errors.
        baseline: what is subtracted from the weighted sum.
        features: what a pair network sees of the observations, or None.
        targets: of a value function that is trained together with the policy, or None.
    """

    policy: Trained
    trajectory: Trajectory
    signal: Float[Array, "B T"]
    baseline: Float[Array, "B T"]
    features: Float[Array, "B T_plus_1 D"] | None
    targets: Float[Array, "B T"] | None = None

    def pairs(self, weights: PairWeights) -> Float[Array, "B T T"]:
        """The weight of every pair."""
        given = self.trajectory
        inputs = PairInputs(given.observations, self.features, self.signal, given.valid, given.episode)
        with part("weights"):
            return jax.vmap(weights)(inputs)

    def weighted_sums(self, weights: PairWeights) -> Float[Array, "B T"]:
        """Σ_k w_tk · signal_k for every step."""
        return self._sums(self.pairs(weights))

    def _sums(self, pairs: Float[Array, "B T T"]) -> Float[Array, "B T"]:
        return jax.vmap(pairwise_sum)(pairs, self.signal, self.trajectory.valid, self.trajectory.episode)

    def credit(self, weights: PairWeights) -> Credit:
        """What the actions of the batch are credited with."""
        pairs = self.pairs(weights)
        return Credit(self._sums(pairs) - self.baseline, within_episodes(pairs, self.trajectory), self.signal)


class OuterData(eqx.Module):
    """A batch collected after the inner update, with its regular advantages (constants)."""

    trajectory: Trajectory
    advantages: Float[Array, "B T"]


class OuterLoop(eqx.Module):
    """Hyperparameters of weight learning."""

    learning_rate: float = 0.01
    """Step size of η (paper: DAG 0.01, Key-to-Door 2e-5, bsuite and Atari 3e-5)."""
    clip_norm: float | None = 0.5
    """Largest global norm of the metagradient (paper: DAG 0.5, bsuite 0.01, Atari 0.05; none in Key-to-Door)."""
    lambda_: float = 1.0
    """λ of the regular advantage that judges the weights (the paper does not say; facts of its baselines: 1)."""
    entropy_cost: float = 0.0
    """Entropy bonus in the outer loss (paper: on Atari only)."""
    second_moment_decay: float = 0.999
    """β2 of the outer Adam (paper; β1 is 0)."""
    epsilon: float = 1e-8
    """ε of the outer Adam (paper)."""
    initial_scale: float = 0.01
    """η starts uniform in ± this (paper, DAG appendix)."""

    @property
    def optimiser(self) -> Optimiser:
        """Adam behind a clip of the global norm."""
        return adam(self.learning_rate, b2=self.second_moment_decay, eps=self.epsilon, clip_norm=self.clip_norm)

    def trained_weights(self, weights: PyTree) -> Trained:
        """A weight function at the start of its training."""
        return Trained(weights, self.optimiser.init(weights))

    def data(self, inner: InnerLoop, value: Callable, trajectory: Trajectory) -> OuterData:
        """Regular λ-advantages of a batch, with the value function of the regular return."""
        values = over_steps(value, trajectory.observations)
        advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
            trajectory.rewards, values, inner.discounts(trajectory), self.lambda_, trajectory.valid
        )
        return OuterData(trajectory, inner.prepare(advantages, trajectory))

    def problem(
        self,
        inner: InnerLoop,
        raw: Callable[[PyTree, Any], Array],
        targets: Callable[[Any], Array | None] = lambda data: None,
    ) -> MetaProblem:
        """The pieces of the metagradient of a method whose η enters through its advantages.

        Args:
            inner: the inner loop; it standardises the advantages, if anything does.
            raw: (η, what an inner update kept) → advantages, before any standardisation. What is kept has the
                trajectory of the update.
            targets: what an inner update kept → targets of a value function that is trained together with the policy.
        """

        def advantages(eta: PyTree, data: Any, fixed: PyTree | None) -> Array:
            source = None if fixed is None else raw(fixed, data)
            return inner.prepare(raw(eta, data), data.trajectory, statistics_of=source)

        return MetaProblem(
            advantages=advantages,
            inner_loss=lambda policy, data, psi: inner.policy_loss(policy, data.trajectory, psi, targets(data)),
            optimiser=inner.policy_optimiser,
            outer_loss=self.loss,
        )

    def loss(self, policy: Callable, data: OuterData) -> Float[Array, ""]:
        """The usual policy-gradient loss at the updated policy."""
        return policy_gradient_loss(policy, data.trajectory, data.advantages, self.entropy_cost)


def meta_learn(method: MetaMethod, learner: Any, kept: Any, next_trajectory: Trajectory) -> Any:
    """η → η' by the one-step rule, once the batch that follows an inner update is there.

    Args:
        method: the method whose weights learn.
        learner: after the inner update that `kept` came from.
        kept: what `method.learn` returned with it; its `policy` is the one before the update.
        next_trajectory: collected with the updated policy.
    """
    step = explicit_one_step(
        method.problem(),
        learner.weights.parameters,
        kept.policy.parameters,
        kept.policy.state,
        kept,
        method.outer_data(learner, next_trajectory),
    )
    return method.improve_weights(learner, step.gradient)
