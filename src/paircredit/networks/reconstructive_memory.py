"""The reconstructive memory agent: an LSTM controller with an external memory, and decoders that keep its code honest.

*One step.* The code z of what is seen, the controller, a read of the memory as it was before this step, the write of z,
then policy and value. Only `recall` depends on the step before; learning computes all else for an episode at once.

*The memory.* A row is written per step, and heads read by similarity. Rows not yet written are zeros that take part in
every read, with similarity 0. A head reads the k most similar rows, so no more than k unwritten rows can matter: in an
episode of T steps a memory of T + k rows reads exactly as one of a thousand does, and no more are kept.

*The decoders* go from a code back to the observation it was made of: what an agent reconstructs, its code must keep.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import EnvSpec, Pixels, Vector
from paircredit.errors import PaircreditError
from paircredit.networks.layers import LSTM, CellState, Conv3x3, Dense, NetworkSpec
from paircredit.networks.perception import PerceptionModule, perception_of
from paircredit.settings import check_all, setting
from paircredit.types import PixelObservation, PyTree

SMALLEST_SQUARED_NORM = 1e-12
"""Vectors shorter than the root of this are not normalised to length 1 but stay near 0 (our choice)."""


@dataclasses.dataclass(frozen=True)
class MemorySpec:
    """Sizes of an agent with an external memory (all from TVT's published code)."""

    rows: int = setting(1000, "Rows of the memory; episodes must not be longer", at_least=1)
    width: int = setting(200, "Numbers per row, and of the state code z that is written into it", at_least=1)
    encoder: int = setting(400, "Hidden units of the encoder that makes z", at_least=1)
    controller: int = setting(256, "Units of each of the two LSTMs", at_least=1)
    heads: int = setting(3, "Read heads", at_least=1)
    top_reads: int = setting(50, "Rows that a head reads: the most similar ones", at_least=1)
    hidden: int = setting(200, "Hidden units of policy and value", at_least=1)

    def check(self, horizon: int) -> None:
        check_all(self, "memory")
        if self.top_reads > self.rows:
            raise PaircreditError(
                f"memory.top_reads is {self.top_reads}, but the memory has only {self.rows} rows to read."
            )
        if horizon > self.rows:
            raise PaircreditError(
                f"Episodes of up to {horizon} steps do not fit into a memory of {self.rows} rows, one per step; "
                f"raise memory.rows to {horizon} or shorten the episodes."
            )

    def rows_needed(self, horizon: int) -> int:
        """The number of rows to keep so that reads are as if all were there."""
        return min(self.rows, horizon + self.top_reads)


class Memory(NamedTuple):
    """The rows, and for each the factor that gives it length 1."""

    rows: Float[Array, "R W"]
    scales: Float[Array, " R"]

    @classmethod
    def empty(cls, rows: int, width: int, dtype: jnp.dtype) -> Memory:
        contents = jnp.zeros((rows, width), dtype=dtype)
        return cls(contents, inverse_norm(contents))

    def write(self, step: Int[Array, ""], row: Float[Array, " W"]) -> Memory:
        """The memory after a step. No gradient goes into what is written."""
        row = jax.lax.stop_gradient(row)
        return Memory(
            jax.lax.dynamic_update_index_in_dim(self.rows, row, step, 0),
            jax.lax.dynamic_update_index_in_dim(self.scales, inverse_norm(row), step, 0),
        )


class Read(NamedTuple):
    """What the heads read: the contents side by side, each head's weights over the rows, and its strength."""

    content: Float[Array, " HW"]
    weights: Float[Array, "H R"]
    strengths: Float[Array, " H"]


class Reader(eqx.Module):
    """Heads that ask for rows similar to a key: softmax of strength · cosine over the most similar rows."""

    questions: Dense
    heads: int = eqx.field(static=True)
    top_reads: int = eqx.field(static=True)

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, spec: MemorySpec) -> Reader:
        return cls(Dense.random(key, inputs, spec.heads * (spec.width + 1)), spec.heads, spec.top_reads)

    def __call__(self, controls: Float[Array, " controls"], memory: Memory) -> Read:
        keys, strengths = jnp.split(self.questions(controls), [self.heads * memory.rows.shape[1]])
        keys, strengths = keys.reshape(self.heads, -1), jax.nn.softplus(strengths)
        similarity = (keys @ memory.rows.T) * memory.scales * inverse_norm(keys)[:, None]
        scores = strengths[:, None] * similarity
        weights = jax.nn.softmax(jnp.where(largest(jax.lax.stop_gradient(scores), self.top_reads), scores, -jnp.inf))
        return Read((weights @ memory.rows).reshape(-1), weights, strengths)


def inverse_norm(x: Float[Array, "*batch W"]) -> Float[Array, "*batch"]:
    """1/‖x‖, bounded where x is near 0."""
    return jax.lax.rsqrt(jnp.maximum(jnp.sum(jnp.square(x), axis=-1), SMALLEST_SQUARED_NORM))


def largest(scores: Float[Array, "H R"], count: int) -> Bool[Array, "H R"]:
    """Marks the `count` largest scores of every row; of equal ones the first.

    Every score is compared with every other, which on a GPU is one pass for a few hundred rows, where sorting is many.
    """
    rows = scores.shape[-1]
    if count >= rows:
        return jnp.ones(scores.shape, dtype=bool)
    order = jnp.arange(rows)
    one, other = scores[:, :, None], scores[:, None, :]
    before = (other > one) | ((other == one) & (order[None, :] < order[:, None]))
    return jnp.sum(before, axis=-1) < count


class PictureDecoder(eqx.Module):
    """dense – (transposed) conv 3×3 – (transposed) conv 3×3: the perception module's convolutions, mirrored.

    At stride 1 and the same size the transposed is a convolution. The flags are not reconstructed (the paper does not
    say).
    """

    first: Dense
    second: Conv3x3
    last: Conv3x3

    @classmethod
    def random(cls, key: Key[Array, ""], width: int, shape: Pixels, network: NetworkSpec) -> PictureDecoder:
        keys = jax.random.split(key, 3)
        one, two = network.filters
        return cls(
            first=Dense.random(keys[0], width, shape.height * shape.width * two),
            second=Conv3x3.random(keys[1], shape.width, two, one),
            last=Conv3x3.random(keys[2], shape.width, one, shape.channels),
        )

    def __call__(self, code: Float[Array, " W"]) -> Float[Array, "rows columns"]:
        """Logits of every number of the picture, rows lying flat: [height, width · channels]."""
        filters = self.second.weight.shape[2]
        x = jax.nn.relu(self.first(code)).reshape(-1, self.second.width * filters)
        return self.last(jax.nn.relu(self.second(x)))

    def error(self, code: Float[Array, " W"], observation: PixelObservation) -> Float[Array, ""]:
        """Mean cross-entropy of the picture's numbers, read as probabilities (0 to 1)."""
        logits = self(code)
        target = observation.pixels.reshape(logits.shape).astype(logits.dtype) / 255
        return jnp.mean(jax.nn.softplus(logits) - logits * target)


class VectorDecoder(eqx.Module):
    """One linear layer that predicts the vector itself."""

    numbers: Dense

    def error(self, code: Float[Array, " W"], observation: Float[Array, " size"]) -> Float[Array, ""]:
        """Half the squared distance."""
        return 0.5 * jnp.sum(jnp.square(self.numbers(code) - observation))


class StateDecoder(eqx.Module):
    """One linear layer that predicts which of the numbered states it was."""

    logits: Dense

    def error(self, code: Float[Array, " W"], observation: Int[Array, ""]) -> Float[Array, ""]:
        """Cross-entropy of the state."""
        return -jax.nn.log_softmax(self.logits(code))[observation]


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
        return self.out(jnp.tanh(self.hidden(x)))


class ReconstructiveMemory(eqx.Module):
    """All parameters of the agent.

    The encoder of z sees [features of the observation, previous action and reward, controller and reads of the step
    before]. The matrix of its first layer is kept in these three parts: the first two are computed outside the loop
    over time, and none has an odd number of rows.
    """

    perception: PerceptionModule
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
        """Fan-in normal weights, those of the policy's last layer times `scale`; biases of 0.

        `network` has the sizes of the perception module and the picture decoder, `memory` all others.
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
            decoder = VectorDecoder(Dense.random(keys[8], width, env.observation.size))
        else:
            decoder = StateDecoder(Dense.random(keys[8], width, env.observation.size))
        return cls(
            perception=perception_of(keys[0], env.observation, network),
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
        width, dtype = self.code.bias.shape[0], self.code.bias.dtype
        return RecurrentState(
            self.lower.initial_state(),
            self.upper.initial_state(),
            jnp.zeros((self.reader.heads * width,), dtype=dtype),
            Memory.empty(self.rows, width, dtype),
        )

    def sense(self, observation: PyTree, action: Int[Array, ""], reward: Float[Array, ""]) -> Float[Array, " encoder"]:
        """The encoder's sum over an observation and the action and reward before it."""
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
        """The recurrent part over a whole episode, given action and reward *before* every step; the first are 0."""
        sensed = jax.vmap(self.sense)(observations, actions, rewards)

        def step(state: RecurrentState, inputs: tuple[Array, Array]) -> tuple[RecurrentState, Thought]:
            time, seen = inputs
            return self.recall(seen, state, time)

        return jax.lax.scan(step, self.initial_state(), (jnp.arange(actions.shape[0]), sensed))[1]

    def action_logits(self, thought: Thought) -> Float[Array, " A"]:
        return self.policy(jnp.concatenate([thought.code, thought.controls, thought.read.content]))

    def state_value(self, code: Float[Array, " W"], logits: Float[Array, " A"]) -> Float[Array, ""]:
        """The value, from the code and, without gradient, the policy's logits."""
        return self.value(jnp.concatenate([code, jax.lax.stop_gradient(logits)]))[0]
