"""A2C-RR: actor-critic on rewards that a return predictor has redistributed (after RUDDER)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import unknown_name
from paircredit.estimators import lambda_advantages, td_errors
from paircredit.estimators.redistribution import Compensation, mix_advantages, redistribute
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.policy_gradient import over_steps
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.networks import NetworkSpec, policy_for, value_for
from paircredit.types import Trajectory
from paircredit.weights import exponential_weights

Mixing = Literal["fixed", "quality"]


class A2CRRLearner(eqx.Module):
    """Policy θ, a value function for each kind of reward, and the predictor with its replay buffer.

    Attributes:
        policy: θ.
        value: of the environment's rewards.
        redistributed_value: of the redistributed rewards.
        predictor: of returns; stored episodes are part of its training state.
        largest: the largest |return| so far.
        quality: of the predictions in the last update, 0 to 1.
    """

    policy: Trained
    value: Trained
    redistributed_value: Trained
    predictor: Trained
    largest: Float[Array, ""]
    quality: Float[Array, ""]


class _Side(NamedTuple):
    """One kind of reward, what its value function says, and the advantage that follows."""

    rewards: Float[Array, "B T"]
    values: Float[Array, "B T_plus_1"]
    advantages: Float[Array, "B T"]


class A2CRR(eqx.Module):
    """Ψ = (1 − m) Ψ_env + m Ψ_rr: λ-advantages of the rewards and of the redistributed rewards, mixed."""

    inner: InnerLoop = InnerLoop()
    """Policy and value learning."""
    prediction: ReturnPrediction = ReturnPrediction()
    """The return predictor and its training."""
    lambda_: float = 1.0
    """λ of both advantages (paper, KtD appendix: 0.5 is best there; 1 on the DAG, as for A2C)."""
    mix: float = 0.5
    """m, the part of the redistributed advantage (paper, KtD appendix: 0.5 is better than 1)."""
    mixing: Mixing = eqx.field(static=True, default="fixed")
    """Whether m is the number above or the quality of the predictions (paper: the latter on Atari)."""
    compensation: Compensation = eqx.field(static=True, default="last")
    """Where the error of the last prediction goes (the paper does not say): `last` step, `spread`, or `none`."""
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    """Sizes of networks (paper, KtD appendix)."""

    needs_whole_episodes: ClassVar[str] = "the return that it predicts is that of a whole episode"
    setting_of_memory: ClassVar[str] = "prediction.capacity"
    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> A2CRRLearner:
        """A nearly uniform policy, fresh value functions and predictor, nothing stored."""
        self.prediction.check(self.inner.episodes)
        if self.mixing not in ("fixed", "quality"):
            raise unknown_name("mixing", self.mixing, ("fixed", "quality"))
        keys = [jax.random.fold_in(key, i) for i in range(4)]
        policy = policy_for(key, env.spec, self.network, self.inner.initial_scale)
        return A2CRRLearner(
            policy=self.inner.trained_policy(policy),
            value=self.inner.trained_value(value_for(keys[1], env.spec, self.network)),
            redistributed_value=self.inner.trained_value(value_for(keys[2], env.spec, self.network)),
            predictor=self.prediction.init(keys[3], env, self.network),
            largest=jnp.zeros((), dtype=float),
            quality=jnp.zeros((), dtype=float),
        )

    def learn(self, learner: A2CRRLearner, trajectory: Trajectory) -> tuple[A2CRRLearner, tuple[()]]:
        """The predictor learns first and redistributes then; policy and both values take a step each."""
        returns = jnp.sum(jnp.where(trajectory.valid, trajectory.rewards, 0.0), axis=1)
        largest = jnp.maximum(learner.largest, jnp.max(jnp.abs(returns)))
        predictor, quality = self.prediction.improve(learner.predictor, trajectory, largest)
        learner = dataclasses.replace(learner, predictor=predictor, largest=largest, quality=quality)

        regular, redistributed = self._sides(learner, trajectory)
        mixed = mix_advantages(regular.advantages, redistributed.advantages, self._mix(learner))
        policy = self.inner.improve_policy(learner.policy, trajectory, self.inner.prepare(mixed, trajectory))
        value = self.inner.improve_value(learner.value, trajectory, regular.advantages + regular.values[:, :-1])
        # A target that is a part q of the way from the value to the λ-return has q times the gradient.
        trust = quality if self.mixing == "quality" else jnp.ones_like(quality)
        target = trust * redistributed.advantages + redistributed.values[:, :-1]
        redistributed_value = self.inner.improve_value(learner.redistributed_value, trajectory, target)
        return dataclasses.replace(learner, policy=policy, value=value, redistributed_value=redistributed_value), ()

    def redistributed_rewards(self, learner: A2CRRLearner, trajectory: Trajectory) -> Float[Array, "B T"]:
        """What the predictor makes of the rewards of a batch."""
        predictions = self.prediction.predictions(learner.predictor.parameters, trajectory, learner.largest)
        return jax.vmap(lambda g, r, v: redistribute(g, r, v, self.compensation))(
            predictions, trajectory.rewards, trajectory.valid
        )

    def credit(self, learner: A2CRRLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with: TD errors of both kinds, mixed, weighed by (γλ)^(k−t).

        The predictor is asked as it is; in training it learns from the batch before it is asked.
        """
        regular, redistributed = self._sides(learner, trajectory)
        discounts, mix = self.inner.discounts(trajectory), self._mix(learner)

        def errors(side: _Side) -> Array:
            return jax.vmap(td_errors)(side.rewards, side.values, discounts, trajectory.valid)

        signal = mix_advantages(errors(regular), errors(redistributed), mix)
        weights = exponential_weights(signal.shape[1], self.inner.discount, self.lambda_)
        return Credit(
            mix_advantages(regular.advantages, redistributed.advantages, mix),
            jnp.broadcast_to(weights, (*signal.shape, signal.shape[1])),
            signal,
        )

    def _mix(self, learner: A2CRRLearner) -> Array | float:
        return learner.quality if self.mixing == "quality" else self.mix

    def _sides(self, learner: A2CRRLearner, trajectory: Trajectory) -> tuple[_Side, _Side]:
        def side(rewards: Array, value: Trained) -> _Side:
            values = over_steps(value.parameters, trajectory.observations)
            advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
                rewards, values, self.inner.discounts(trajectory), self.lambda_, trajectory.valid
            )
            return _Side(rewards, values, advantages)

        return (
            side(trajectory.rewards, learner.value),
            side(self.redistributed_rewards(learner, trajectory), learner.redistributed_value),
        )
