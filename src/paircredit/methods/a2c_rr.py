"""A2C-RR: actor-critic on rewards that a return predictor has redistributed (after RUDDER)."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError, refuse_unknown
from paircredit.estimators.redistribution import STREAM_COMPENSATIONS, Compensation, mix_advantages, redistribute
from paircredit.methods.agent import ActorCritic, Learner
from paircredit.methods.loops import Trained, over_steps
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.methods.rule import Credit, Experience, Needs, lambda_credit
from paircredit.methods.stream_prediction import learn_from_segment, redistribute_segment, start_stream
from paircredit.networks import value_for
from paircredit.settings import setting
from paircredit.types import Trajectory

Mixing = Literal["fixed", "quality"]


class Redistribution(eqx.Module):
    """The predictor with its stored episodes, and a value function of the redistributed rewards, a network of its own.

    `largest` is the largest |return| so far; `quality`, 0 to 1, is that of the predictions when the predictor last
    learned.
    """

    redistributed_value: Trained
    predictor: Trained
    largest: Float[Array, ""]
    quality: Float[Array, ""]


class Redistributed(eqx.Module):
    """Redistributed rewards, what their value function says, and the part m that they have in the credit."""

    rewards: Float[Array, "*batch T"]
    values: Float[Array, "*batch T_plus_1"]
    mix: Float[Array, "*batch"]


class A2CRR(eqx.Module):
    """Ψ = (1 − m) Ψ_env + m Ψ_rr: λ-advantages of the rewards and of the redistributed rewards, mixed."""

    prediction: ReturnPrediction = setting(ReturnPrediction(), "The return predictor and its training")
    lambda_: float = setting(
        1.0,
        "λ of both advantages",
        "paper, KtD appendix: 0.5 is best there; 1 on the DAG, as for A2C",
        at_least=0,
        at_most=1,
    )
    mix: float = setting(
        0.5,
        "m, the part of the redistributed advantage",
        "paper, KtD appendix: 0.5 is better than 1",
        at_least=0,
        at_most=1,
    )
    mixing: Mixing = setting(
        "fixed", "Whether m is the number above or the quality of the predictions", "paper: the latter on Atari"
    )
    compensation: Compensation = setting(
        "last", "Where the error of the last prediction goes (the paper does not say): `last` step, `spread`, or `none`"
    )

    needs: ClassVar[Needs] = Needs(sharing=True, setting_of_memory="prediction.capacity")

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> None:
        """Nothing is weighed that a metagradient could improve."""

    def start(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Redistribution:
        """A fresh value function and predictor, nothing stored."""
        self.prediction.check(agent.episodes)
        refuse_unknown("mixing", self.mixing, ("fixed", "quality"))
        in_segments = not env.spec.whole_episodes
        if in_segments and self.compensation not in STREAM_COMPENSATIONS:
            raise PaircreditError(
                f"compensation is {self.compensation!r}, but rollouts of {env.spec.name} are segments of episodes, "
                "whose earlier steps are learned from before the error of the last prediction is known; take "
                f"{' or '.join(repr(name) for name in STREAM_COMPENSATIONS)}."
            )
        value_key, predictor_key = jax.random.fold_in(key, 2), jax.random.fold_in(key, 3)
        return Redistribution(
            redistributed_value=Trained.fresh(
                value_for(value_key, env.spec, agent.network, agent.inner.value_scale), agent.inner.value_optimiser
            ),
            predictor=start_stream(self.prediction, predictor_key, env, agent.network, agent.episodes)
            if in_segments
            else self.prediction.init(predictor_key, env, agent.network),
            largest=jnp.zeros((), dtype=float),
            quality=jnp.zeros((), dtype=float),
        )

    def look(self, agent: ActorCritic, learner: Learner, trajectory: Trajectory) -> Redistributed:
        """What the predictor makes of the batch; it reads a segment as the next one of the learner's actors."""
        return self._seen(learner.own, trajectory, self.redistributed_rewards(learner.own, trajectory))

    def learn(
        self, agent: ActorCritic, learner: Learner, trajectory: Trajectory
    ) -> tuple[Redistribution, Redistributed]:
        """The predictor learns first and redistributes then; the value function takes a step towards what it says."""
        own, rewards = self._predict(learner.own, trajectory)
        seen, inner = self._seen(own, trajectory, rewards), agent.inner
        redistributed_batch = dataclasses.replace(trajectory, rewards=rewards)
        credit = jax.vmap(partial(lambda_credit, lambda_=self.lambda_))(
            redistributed_batch, seen.values, inner.discounts(trajectory)
        )
        # A target that is a part q of the way from the value to the λ-return has q times the gradient.
        trust = own.quality if self.mixing == "quality" else jnp.ones_like(own.quality)
        target = trust * credit.advantages + seen.values[:, :-1]
        value = inner.improve_value(own.redistributed_value, trajectory, target)
        return dataclasses.replace(own, redistributed_value=value), seen

    def credit(self, weights: None, experience: Experience) -> Credit:
        """TD errors of both kinds of rewards, mixed, weighed by (γλ)^(k−t)."""
        trajectory, own = experience.trajectory, experience.own
        regular = lambda_credit(trajectory, experience.values, experience.discounts, self.lambda_)
        redistributed_batch = dataclasses.replace(trajectory, rewards=own.rewards)
        redistributed = lambda_credit(redistributed_batch, own.values, experience.discounts, self.lambda_)
        return dataclasses.replace(
            regular,
            advantages=mix_advantages(regular.advantages, redistributed.advantages, own.mix),
            signal=mix_advantages(regular.signal, redistributed.signal, own.mix),
        )

    def redistributed_rewards(self, own: Redistribution, trajectory: Trajectory) -> Float[Array, "B T"]:
        """What the predictor makes of the rewards of a batch, or of the next segment of the actors that it reads."""
        if trajectory.episode is not None:
            predictor, state = own.predictor.parameters, own.predictor.state
            marks = state.buffer.marks(trajectory)
            return redistribute_segment(
                self.prediction, predictor, state.reader, trajectory, marks, own.largest, self.compensation
            )[0]
        predictions = self.prediction.predictions(own.predictor.parameters, trajectory, own.largest)
        return jax.vmap(lambda g, r, v: redistribute(g, r, v, self.compensation))(
            predictions, trajectory.rewards, trajectory.valid
        )

    def _predict(self, own: Redistribution, trajectory: Trajectory) -> tuple[Redistribution, Float[Array, "B T"]]:
        """With a predictor that has learned, and the redistributed rewards of the batch."""
        if trajectory.episode is not None:
            predictor, largest, quality, rewards = learn_from_segment(
                self.prediction, own.predictor, trajectory, own.largest, own.quality, self.compensation
            )
            return dataclasses.replace(own, predictor=predictor, largest=largest, quality=quality), rewards
        returns = jnp.sum(jnp.where(trajectory.valid, trajectory.rewards, 0.0), axis=1)
        largest = jnp.maximum(own.largest, jnp.max(jnp.abs(returns)))
        predictor, quality = self.prediction.improve(own.predictor, trajectory, largest)
        own = dataclasses.replace(own, predictor=predictor, largest=largest, quality=quality)
        return own, self.redistributed_rewards(own, trajectory)

    def _seen(self, own: Redistribution, trajectory: Trajectory, rewards: Float[Array, "B T"]) -> Redistributed:
        values = over_steps(own.redistributed_value.parameters, trajectory.observations)
        mix = own.quality if self.mixing == "quality" else jnp.asarray(self.mix, dtype=own.quality.dtype)
        return Redistributed(rewards, values, jnp.broadcast_to(mix, rewards.shape[:1]))
