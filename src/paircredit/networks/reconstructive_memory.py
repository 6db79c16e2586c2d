"""The reconstructive memory agent: an LSTM controller with an external memory, and decoders that keep its code honest.

Within a step: the code z of what is seen, the controller, a read of the memory as it was before this step, the write of
z, then policy and value. What does not depend on the step before (perception, policy, value, decoders) is apart from
what does (`recall`), so that learning computes it for a whole episode at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import EnvSpec, Pixels, Vector
from paircredit.networks.build import num_states, perception_for
from paircredit.networks.decoder import PictureDecoder, StateDecoder, VectorDecoder
from paircredit.networks.layers import Dense
from paircredit.networks.lstm import LSTM, CellState
from paircredit.networks.memory import Memory, MemorySpec, Read, Reader
from paircredit.networks.spec import NetworkSpec
from paircredit.types import PyTree


class RecurrentState(NamedTuple):
    """What the agent carries from step to step: its two LSTMs, what it read last, and its memory."""

    lower: CellState
    upper: CellState
    content: Float[Array, " HW"]
    memory: Memory


class Thought(NamedTuple):
    """One step of the recurrent part: the code of what is seen, the controller's output and the read."""

    code: Float[Array, "*time W"]
    controls: Float[Array, "*time controls"]
    read: Read


class TanhMLP(eqx.Module):
    """One hidden layer of tanh units and a linear one."""

    hidden: Dense
    out: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, hidden: int, outputs: int, scale: float = 1.0) -> TanhMLP:
        """Fan-in normal weights, those of the last layer times `scale`; biases of 0."""
        below, top = jax.random.split(key)
        return cls(Dense.random(below, inputs, hidden), Dense.random(top, hidden, outputs, scale))

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The layers."""
        return self.out(jnp.tanh(self.hidden(x)))


class ReconstructiveMemory(eqx.Module):
    """All parameters of the agent.

    The encoder of z sees [features of the observation, previous action and reward, controller and reads of the step
    before]. Its first layer is one layer whose matrix is kept in these three parts: the sum is the same, the first two
    are computed outside the loop over time, and no large matrix has an odd number of rows.
    """

    perception: Any
    seen: Float[Array, "features encoder"]
    told: Float[Array, "A_plus_1 encoder"]
    recalled: Dense
    code: Dense
    lower: LSTM
    upper: LSTM
    reader: Reader
    policy: TanhMLP
    value: TanhMLP
    observation_decoder: PictureDecoder | StateDecoder | VectorDecoder
    action_decoder: Dense
    reward_decoder: Dense
    rows: int = eqx.field(static=True)

    @classmethod
    def random(
        cls, key: Key[Array, ""], env: EnvSpec, network: NetworkSpec, memory: MemorySpec, scale: float = 1.0
    ) -> ReconstructiveMemory:
        """Fan-in normal weights, biases of 0.

        Args:
            key: of the weights.
            env: what is seen and done, and how long.
            network: sizes of perception and picture decoder.
            memory: sizes of the rest.
            scale: factor on the weights of the policy's last layer.

        Raises:
            PaircreditError: the memory is too small for the environment's episodes.
        """
        memory.check(env.horizon)
        keys = jax.random.split(key, 11)
        features, actions, width = network.trunk[1], env.num_actions, memory.width
        controls, reads = 2 * memory.controller, memory.heads * memory.width
        joined = Dense.random(keys[1], features + actions + 1 + controls + reads, memory.encoder)
        decoder: PictureDecoder | StateDecoder | VectorDecoder
        if isinstance(env.observation, Pixels):
            decoder = PictureDecoder.random(keys[8], width, env.observation, network)
        elif isinstance(env.observation, Vector):
            decoder = VectorDecoder.random(keys[8], width, env.observation.size)
        else:
            decoder = StateDecoder.random(keys[8], width, num_states(env))
        return cls(
            perception=perception_for(keys[0], env, network),
            seen=joined.weight[:features],
            told=joined.weight[features : features + actions + 1],
            recalled=Dense(joined.weight[features + actions + 1 :], joined.bias),
            code=Dense.random(keys[2], memory.encoder, width),
            lower=LSTM.random(keys[3], width, memory.controller),
            upper=LSTM.random(keys[4], width + memory.controller, memory.controller),
            reader=Reader.random(keys[5], controls, memory),
            policy=TanhMLP.random(keys[6], width + controls + reads, memory.hidden, actions, scale),
            value=TanhMLP.random(keys[7], width + actions, memory.hidden, 1),
            observation_decoder=decoder,
            action_decoder=Dense.random(keys[9], width, actions),
            reward_decoder=Dense.random(keys[10], width, 1),
            rows=memory.rows_needed(env.horizon),
        )

    def initial_state(self) -> RecurrentState:
        """At the start of an episode: all zeros."""
        width, dtype = self.code.bias.shape[0], self.code.bias.dtype
        return RecurrentState(
            self.lower.initial_state(),
            self.upper.initial_state(),
            jnp.zeros((self.reader.heads * width,), dtype=dtype),
            Memory.empty(self.rows, width, dtype),
        )

    def sense(self, observation: PyTree, action: Int[Array, ""], reward: Float[Array, ""]) -> Float[Array, " encoder"]:
        """What the encoder makes of an observation and of the action and reward before it."""
        told = jnp.append(jax.nn.one_hot(action, self.told.shape[0] - 1, dtype=self.told.dtype), reward)
        return self.perception(observation) @ self.seen + told @ self.told

    def recall(
        self, sensed: Float[Array, " encoder"], state: RecurrentState, step: Int[Array, ""]
    ) -> tuple[RecurrentState, Thought]:
        """One step of all that depends on the step before."""
        before = jnp.concatenate([state.lower.output, state.upper.output, state.content])
        code = self.code(jnp.tanh(sensed + self.recalled(before)))
        lower = self.lower(code, state.lower)
        upper = self.upper(jnp.concatenate([code, lower.output]), state.upper)
        controls = jnp.concatenate([lower.output, upper.output])
        read = self.reader(controls, state.memory)
        following = RecurrentState(lower, upper, read.content, state.memory.write(step, code))
        return following, Thought(code, controls, read)

    def replay(self, observations: PyTree, actions: Int[Array, " T"], rewards: Float[Array, " T"]) -> Thought:
        """An episode again, with what was seen and told at every step.

        Args:
            observations: of every step.
            actions: before every step; the first is 0.
            rewards: before every step; the first is 0.
        """
        sensed = jax.vmap(self.sense)(observations, actions, rewards)

        def step(state: RecurrentState, inputs: tuple[Array, Array]) -> tuple[RecurrentState, Thought]:
            time, seen = inputs
            return self.recall(seen, state, time)

        _, thoughts = jax.lax.scan(step, self.initial_state(), (jnp.arange(actions.shape[0]), sensed))
        result: Thought = thoughts
        return result

    def action_logits(self, thought: Thought) -> Float[Array, " A"]:
        """Logits of the actions, from everything that was thought."""
        return self.policy(jnp.concatenate([thought.code, thought.controls, thought.read.content]))

    def state_value(self, code: Float[Array, " W"], logits: Float[Array, " A"]) -> Float[Array, ""]:
        """The value, from the code and from what the policy is about to do (no gradient goes there)."""
        return self.value(jnp.concatenate([code, jax.lax.stop_gradient(logits)]))[0]
