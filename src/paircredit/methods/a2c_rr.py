"""A2C-RR: actor-critic on rewards that a return predictor has redistributed (after RUDDER)."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError, unknown_name
from paircredit.estimators import lambda_advantages, td_errors
from paircredit.estimators.redistribution import (
    STREAM_COMPENSATIONS,
    Compensation,
    mix_advantages,
    redistribute,
)
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember
from paircredit.methods.credit import Credit, within_episodes
from paircredit.methods.inner_loop import InnerLoop, Trained, critic_of
from paircredit.methods.policy_gradient import over_steps
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.methods.stream_prediction import read, see, start_stream
from paircredit.networks import NetworkSpec, policy_and_value_for, value_for
from paircredit.types import Trajectory
from paircredit.weights import exponential_weights

Mixing = Literal["fixed", "quality"]


class A2CRRLearner(eqx.Module):
    """Policy θ, a value function for each kind of reward, and the predictor with its replay buffer.

    Attributes:
        policy: θ.
        value: of the environment's rewards; None where the policy's network has it.
        redistributed_value: of the redistributed rewards, always a network of its own.
        predictor: of returns; stored episodes are part of its training state.
        largest: the largest |return| so far.
        quality: of the predictions when the predictor last learned, 0 to 1.
    """

    policy: Trained
    value: Trained | None
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
        in_pieces = not env.spec.whole_episodes
        if in_pieces and self.compensation not in STREAM_COMPENSATIONS:
            raise PaircreditError(
                f"compensation is {self.compensation!r}, but rollouts of {env.spec.name} are pieces of episodes, whose "
                "earlier steps are learned from before the error of the last prediction is known; take "
                f"{' or '.join(repr(name) for name in STREAM_COMPENSATIONS)}."
            )
        keys = [jax.random.fold_in(key, i) for i in range(4)]
        policy, value = policy_and_value_for(key, keys[1], env.spec, self.network, self.inner.initial_scale)
        return A2CRRLearner(
            policy=self.inner.trained_policy(policy),
            value=None if value is None else self.inner.trained_value(value),
            redistributed_value=self.inner.trained_value(value_for(keys[2], env.spec, self.network)),
            predictor=start_stream(self.prediction, keys[3], env, self.network, self.episodes)
            if in_pieces
            else self.prediction.init(keys[3], env, self.network),
            largest=jnp.zeros((), dtype=float),
            quality=jnp.zeros((), dtype=float),
        )

    def learn(self, learner: A2CRRLearner, trajectory: Trajectory) -> tuple[A2CRRLearner, tuple[()]]:
        """The predictor learns first and redistributes then; policy and both values take a step each."""
        learner, rewards = self._predict(learner, trajectory)
        regular, redistributed = self._sides(learner, trajectory, rewards)
        mixed = mix_advantages(regular.advantages, redistributed.advantages, self._mix(learner))
        prepared, targets = self.inner.prepare(mixed, trajectory), regular.advantages + regular.values[:, :-1]
        policy, value = self.inner.improve_both(learner.policy, learner.value, trajectory, prepared, targets)
        # A target that is a part q of the way from the value to the λ-return has q times the gradient.
        trust = learner.quality if self.mixing == "quality" else jnp.ones_like(learner.quality)
        target = trust * redistributed.advantages + redistributed.values[:, :-1]
        redistributed_value = self.inner.improve_value(learner.redistributed_value, trajectory, target)
        return dataclasses.replace(learner, policy=policy, value=value, redistributed_value=redistributed_value), ()

    def _predict(self, learner: A2CRRLearner, trajectory: Trajectory) -> tuple[A2CRRLearner, Float[Array, "B T"]]:
        """The learner whose predictor has learned, and the redistributed rewards of the batch."""
        if trajectory.episode is not None:
            seen = see(
                self.prediction, learner.predictor, trajectory, learner.largest, learner.quality, self.compensation
            )
            after = dataclasses.replace(learner, predictor=seen.predictor, largest=seen.largest, quality=seen.quality)
            return after, seen.redistributed
        returns = jnp.sum(jnp.where(trajectory.valid, trajectory.rewards, 0.0), axis=1)
        largest = jnp.maximum(learner.largest, jnp.max(jnp.abs(returns)))
        predictor, quality = self.prediction.improve(learner.predictor, trajectory, largest)
        learner = dataclasses.replace(learner, predictor=predictor, largest=largest, quality=quality)
        return learner, self.redistributed_rewards(learner, trajectory)

    def redistributed_rewards(self, learner: A2CRRLearner, trajectory: Trajectory) -> Float[Array, "B T"]:
        """What the predictor makes of the rewards of a batch, or of the next piece of the actors that it reads."""
        if trajectory.episode is not None:
            predictor, state = learner.predictor.parameters, learner.predictor.state
            marks = state.recordings.marks(trajectory)
            return read(
                self.prediction, predictor, state.places, trajectory, marks, learner.largest, self.compensation
            )[0]
        predictions = self.prediction.predictions(learner.predictor.parameters, trajectory, learner.largest)
        return jax.vmap(lambda g, r, v: redistribute(g, r, v, self.compensation))(
            predictions, trajectory.rewards, trajectory.valid
        )

    def credit(self, learner: A2CRRLearner, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with: TD errors of both kinds, mixed, weighed by (γλ)^(k−t).

        The predictor is asked as it is; in training it learns from the batch before it is asked. A piece is taken for
        the next one of the learner's actors: the predictor reads on from what it remembers of them.
        """
        rewards = self.redistributed_rewards(learner, trajectory)
        regular, redistributed = self._sides(learner, trajectory, rewards)
        discounts, mix = self.inner.discounts(trajectory), self._mix(learner)

        def errors(side: _Side) -> Array:
            return jax.vmap(td_errors)(side.rewards, side.values, discounts, trajectory.valid)

        signal = mix_advantages(errors(regular), errors(redistributed), mix)
        weights = exponential_weights(signal.shape[1], self.inner.discount, self.lambda_)
        return Credit(
            mix_advantages(regular.advantages, redistributed.advantages, mix),
            within_episodes(jnp.broadcast_to(weights, (*signal.shape, signal.shape[1])), trajectory),
            signal,
        )

    def _mix(self, learner: A2CRRLearner) -> Array | float:
        return learner.quality if self.mixing == "quality" else self.mix

    def _sides(
        self, learner: A2CRRLearner, trajectory: Trajectory, redistributed: Float[Array, "B T"]
    ) -> tuple[_Side, _Side]:
        def side(rewards: Array, value: Any) -> _Side:
            values = over_steps(value, trajectory.observations)
            advantages = jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None, 0))(
                rewards, values, self.inner.discounts(trajectory), self.lambda_, trajectory.valid
            )
            return _Side(rewards, values, advantages)

        return (
            side(trajectory.rewards, critic_of(learner.policy, learner.value)),
            side(redistributed, learner.redistributed_value.parameters),
        )
