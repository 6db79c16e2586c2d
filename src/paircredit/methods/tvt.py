"""TVT, temporal value transport: memory reads of the distant past carry value back to it as reward."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import transported_values
from paircredit.estimators.transport import recency_window
from paircredit.methods.loops import InnerLoop, Trained, over_steps, policy_terms
from paircredit.methods.rule import Credit, lambda_credit
from paircredit.networks import MemorySpec, NetworkSpec
from paircredit.networks.reconstructive_memory import PictureDecoder, ReconstructiveMemory, RecurrentState, Thought
from paircredit.networks.state_functions import refuse_sharing
from paircredit.settings import setting
from paircredit.types import PyTree, Trajectory


class TVTLearner(eqx.Module):
    """The whole agent: perception, controller, memory reader, policy, value and decoders learn together."""

    policy: Trained


class TVTCarry(NamedTuple):
    """What the agent carries while it acts: its recurrent state, the step, and the action and reward before it."""

    state: RecurrentState
    step: Int[Array, ""]
    action: Int[Array, ""]
    reward: Float[Array, ""]


class Unroll(NamedTuple):
    """The networks on a batch: their further inputs, thoughts, logits and values of all T+1 observations."""

    actions: Int[Array, "B T_plus_1"]
    rewards: Float[Array, "B T_plus_1"]
    thoughts: Thought
    logits: Float[Array, "B T_plus_1 A"]
    values: Float[Array, "B T_plus_1"]


class TVT(eqx.Module):
    """Recurrent A2C with a reconstructive memory; strong reads of the past transport the reader's value there."""

    inner: InnerLoop = setting(
        InnerLoop(learning_rate=2e-4, discount=0.92, second_moment_decay=0.95, epsilon=1e-6, initial_scale=1.0),
        "Learning of the whole agent with one optimiser, so that `value_learning_rate` plays no part",
        "paper, KtD appendix: learning rate, γ, β2 and ε of TVT; the layers start as all others do",
    )
    lambda_: float = setting(0.92, "λ of the returns", "paper, KtD appendix", at_least=0, at_most=1)
    threshold: float = setting(
        1.0, "Read strength above which value is transported", "paper, KtD appendix: 1 is the better of 1 and 2"
    )
    alpha: float = setting(0.9, "Share of the value that is transported", "TVT, published code", at_least=0)
    value_cost: float = setting(0.4, "Weight of the value loss", "TVT, published code", at_least=0)
    picture_cost: float = setting(
        50.0,
        "Weight of the mean cross-entropy of a picture's numbers (TVT, published code); a numbered state weighs 1",
        at_least=0,
    )
    read_cost: float = setting(5e-5, "Weight of the read strengths", "TVT, published code", at_least=0)
    read_floor: float = setting(2.0, "Read strengths below this cost no less", "TVT, published code")
    clip: float = setting(
        10.0, "Largest number of a gradient with respect to a logit or a value", "TVT, published code", above=0
    )
    memory: MemorySpec = setting(MemorySpec(), "Sizes of controller, memory and heads", "TVT, published code")
    network: NetworkSpec = setting(
        NetworkSpec(), "Sizes of perception, for pictures and numbered states alike", "paper, KtD appendix"
    )

    whole_episodes: ClassVar[str] = (
        "value is transported from the end of an episode to its beginning, and its memory starts empty"
    )
    learns_weights: ClassVar[bool] = False
    setting_of_memory: ClassVar[str] = ""

    @property
    def episodes(self) -> int:
        return self.inner.episodes

    def init(self, key: Key[Array, ""], env: Environment) -> TVTLearner:
        """Fresh networks; their memory must be large enough for the environment's episodes."""
        refuse_sharing(self.network)
        network = ReconstructiveMemory.random(key, env.spec, self.network, self.memory, self.inner.initial_scale)
        return TVTLearner(Trained.fresh(network, self.inner.policy_optimiser))

    def initial_carry(self, learner: TVTLearner) -> TVTCarry:
        """An empty memory; no action yet, which counts as action 0, and no reward."""
        state = learner.policy.parameters.initial_state()
        none = jnp.zeros((), dtype=jnp.int32)
        return TVTCarry(state, none, none, jnp.zeros((), dtype=state.content.dtype))

    def policy(self, learner: TVTLearner, carry: TVTCarry, observation: PyTree) -> tuple[Float[Array, " A"], TVTCarry]:
        """Think about an observation, remember it, and say what to do."""
        network: ReconstructiveMemory = learner.policy.parameters
        sensed = network.sense(observation, carry.action, carry.reward)
        state, thought = network.recall(sensed, carry.state, carry.step)
        return network.action_logits(thought), carry._replace(state=state, step=carry.step + 1)

    def remember(self, carry: TVTCarry, action: Int[Array, ""], reward: Float[Array, ""]) -> TVTCarry:
        """The next step is told the action and its reward."""
        return carry._replace(action=action.astype(carry.action.dtype), reward=reward.astype(carry.reward.dtype))

    def learn(self, learner: TVTLearner, trajectory: Trajectory) -> tuple[TVTLearner, tuple[()]]:
        """One step of everything along the sum of all losses."""
        gradients = jax.grad(self.loss)(learner.policy.parameters, trajectory)
        return TVTLearner(learner.policy.step(self.inner.policy_optimiser, gradients)), ()

    def loss(self, network: ReconstructiveMemory, trajectory: Trajectory) -> Float[Array, ""]:
        """Policy gradient, value, entropy, reconstruction and read strengths (TVT, published code)."""
        unroll, valid = self.unroll(network, trajectory), trajectory.valid
        credit = self._credit(unroll, trajectory)
        logits, values = clip_gradient(unroll.logits, self.clip), clip_gradient(unroll.values, self.clip)
        acting = policy_loss(
            logits[:, :-1], trajectory, self.inner.prepare(credit.advantages, trajectory), self.inner.entropy_cost
        )
        value_error = value_loss(values[:, :-1], credit.regular_return, valid)
        reconstruction = reconstruction_loss(
            network,
            unroll.thoughts.code[:, :-1],
            jax.tree.map(lambda x: x[:, :-1], trajectory.observations),
            unroll.actions[:, :-1],
            unroll.rewards[:, :-1],
            valid,
            self.picture_cost,
        )
        reading = read_strength_loss(unroll.thoughts.read.strengths[:, :-1], self.read_floor, valid)
        return acting + self.value_cost * value_error + reconstruction + self.read_cost * reading

    def credit(self, learner: TVTLearner, trajectory: Trajectory) -> Credit:
        """What the actions are credited with: TD errors of rewards with transported value, weighed by (γλ)^(k−t)."""
        return self._credit(self.unroll(learner.policy.parameters, trajectory), trajectory)

    def unroll(self, network: ReconstructiveMemory, trajectory: Trajectory) -> Unroll:
        """The networks on a batch: with the parameters that acted, the logits that they acted by."""
        actions = jnp.where(trajectory.valid, trajectory.actions, 0).astype(jnp.int32)
        rewards = jnp.where(trajectory.valid, trajectory.rewards, 0.0)
        actions, rewards = (jnp.pad(x, ((0, 0), (1, 0))) for x in (actions, rewards))
        thoughts = jax.vmap(network.replay)(trajectory.observations, actions, rewards)
        logits = over_steps(network.action_logits, thoughts)
        values = jax.vmap(jax.vmap(network.state_value))(thoughts.code, logits)
        return Unroll(actions, rewards, thoughts, logits, values)

    def bonus(self, unroll: Unroll, trajectory: Trajectory) -> Float[Array, "B T"]:
        window, read = recency_window(self.inner.discount), unroll.thoughts.read
        weights, strengths, values = (x[:, :-1] for x in (read.weights, read.strengths, unroll.values))
        transport = jax.vmap(transported_values, in_axes=(0, 0, 0, None, None, None, 0))
        return transport(weights, strengths, values, window, self.threshold, self.alpha, trajectory.valid)

    def _credit(self, unroll: Unroll, trajectory: Trajectory) -> Credit:
        """Of rewards with transported value; no gradient goes in."""
        unroll = jax.lax.stop_gradient(unroll)
        rewards = jnp.where(trajectory.valid, trajectory.rewards, 0.0) + self.bonus(unroll, trajectory)
        return jax.vmap(partial(lambda_credit, lambda_=self.lambda_))(
            dataclasses.replace(trajectory, rewards=rewards), unroll.values, self.inner.discounts(trajectory)
        )


@jax.custom_vjp
def clip_gradient(x: Float[Array, "*shape"], limit: float) -> Float[Array, "*shape"]:
    """The same numbers; every number of the gradient that flows back through it is cut to ± limit."""
    return x


def _clip_backward(limit: float | Array, gradient: Array) -> tuple[Array, Array]:
    return jnp.clip(gradient, -limit, limit), jnp.zeros_like(limit)


clip_gradient.defvjp(lambda x, limit: (x, limit), _clip_backward)


def sum_of_episode(x: Float[Array, "B T"], valid: Bool[Array, "B T"]) -> Float[Array, ""]:
    """The sum over the steps of an episode, averaged over episodes; on padding x may be anything."""
    return jnp.mean(jnp.sum(jnp.where(valid, x, 0.0), axis=-1))


def policy_loss(
    logits: Float[Array, "B T A"], trajectory: Trajectory, advantages: Float[Array, "B T"], entropy_cost: float
) -> Float[Array, ""]:
    """−Σ_t [Ψ_t log π(A_t) + β H(π_t)], the advantages held constant."""
    terms = policy_terms(logits, trajectory, jax.lax.stop_gradient(advantages), entropy_cost)
    return -sum_of_episode(terms, trajectory.valid)


def value_loss(
    values: Float[Array, "B T"], targets: Float[Array, "B T"], valid: Bool[Array, "B T"]
) -> Float[Array, ""]:
    """½ Σ_t (G_t − v_t)², the targets held constant."""
    errors = jnp.where(valid, jax.lax.stop_gradient(targets) - values, 0.0)
    return sum_of_episode(0.5 * jnp.square(errors), valid)


def reconstruction_loss(
    network: ReconstructiveMemory,
    codes: Float[Array, "B T W"],
    observations: PyTree,
    actions: Int[Array, "B T"],
    rewards: Float[Array, "B T"],
    valid: Bool[Array, "B T"],
    picture_cost: float,
) -> Float[Array, ""]:
    """Σ_t of what the codes z say wrongly about the inputs of their steps.

    Cross-entropy of the picture (its mean over all numbers, times `picture_cost`) or of the numbered state (times 1),
    cross-entropy of the action before the step, half the squared error of the reward before it.
    """
    cost = picture_cost if isinstance(network.observation_decoder, PictureDecoder) else 1.0
    of_picture = jax.vmap(jax.vmap(network.observation_decoder.error))(codes, observations)
    log_probs = jax.nn.log_softmax(network.action_decoder(codes))
    of_action = -jnp.take_along_axis(log_probs, actions[..., None], axis=-1)[..., 0]
    of_reward = 0.5 * jnp.square(network.reward_decoder(codes)[..., 0] - rewards)
    return sum_of_episode(cost * of_picture + of_action + of_reward, valid)


def read_strength_loss(strengths: Float[Array, "B T H"], floor: float, valid: Bool[Array, "B T"]) -> Float[Array, ""]:
    """Σ_t Σ_h max(floor, strength): sharp reads must be worth it, reads below the floor cost all the same."""
    return sum_of_episode(jnp.sum(jnp.maximum(strengths, floor), axis=-1), valid)
