"""The network of reward redistribution: it reads an episode and predicts the return anew at every step."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.errors import refuse_unknown
from paircredit.networks.additive_cell import AdditiveCell, CellStart
from paircredit.networks.layers import Dense, NetworkSpec
from paircredit.networks.perception import PerceptionModule, of_change, perception_of
from paircredit.types import PixelObservation, PyTree

FirstChange = Literal["zero", "whole"]
Inputs = Literal["both", "change"]


class Reading(NamedTuple):
    """The predictions g_t for a segment of a stream of sequences, and the memory after its last step.

    `standing` is the prediction before the first step, made from the memory of the segment before.
    """

    predictions: Float[Array, " T"]
    standing: Float[Array, ""]
    memory: Float[Array, " C"]


class ReturnPredictor(eqx.Module):
    """Predicts the return from frame, change of frame and action: perception – dense – cell – linear.

    Frame and change of frame have a perception module each (paper, KtD appendix); `frame` is None where one module
    looks at both, or at the change alone (paper, Atari appendix). Because the last layer is linear and the cell only
    adds, the difference of two predictions in a row is what the step between them added. The actions have a matrix of
    their own where they join, as in `Perception`. Of stacked frames the predictor sees the newest.
    """

    frame: PerceptionModule | None
    change: PerceptionModule
    joined: Dense
    actions: Float[Array, "A joined"]
    cell: AdditiveCell
    head: Dense
    first_change: FirstChange = eqx.field(static=True)
    sees_frame: bool = eqx.field(static=True)
    channels: int | None = eqx.field(static=True, default=None)

    @classmethod
    def random(
        cls,
        key: Key[Array, ""],
        spec: EnvSpec,
        network: NetworkSpec,
        width: int = 512,
        cells: int = 64,
        start: CellStart = "closed",
        first_change: FirstChange = "zero",
        inputs: Inputs = "both",
        one_module: bool = False,
    ) -> ReturnPredictor:
        """A predictor at its start, for the episodes of an environment.

        Its dense layer has `width` units, its cell, which starts as `AdditiveCell.random` says, `cells`. The change at
        the first step is `zero` or the `whole` frame. It sees frame and change of frame, with a perception module each
        or one for both, or the `change` alone; the action joins either.
        """
        refuse_unknown("first change", first_change, get_args(FirstChange))
        refuse_unknown("kind of inputs", inputs, get_args(Inputs))
        seen, channels = spec.observation, None
        if isinstance(seen, Pixels) and seen.stacked > 1:
            spec, channels = dataclasses.replace(spec, observation=seen.frame), seen.frame.channels
        keys = jax.random.split(key, 5)
        features = (2 if inputs == "both" else 1) * network.trunk[1]
        joined = Dense.random(keys[2], features + spec.num_actions, width)
        return cls(
            frame=perception_of(keys[0], spec.observation, network) if inputs == "both" and not one_module else None,
            change=perception_of(keys[1], spec.observation, network),
            joined=Dense(joined.weight[:features], joined.bias),
            actions=joined.weight[features:],
            cell=AdditiveCell.random(keys[3], width, cells, start),
            head=Dense.random(keys[4], cells, 1),
            first_change=first_change,
            sees_frame=inputs == "both",
            channels=channels,
        )

    def seen(self, observations: PyTree) -> PyTree:
        """The part of observations that the predictor sees: the newest frame of a stack, or all. Any axes may lead."""
        if self.channels is None:
            return observations
        return PixelObservation(observations.pixels[..., -self.channels :], observations.flags)

    def empty_memory(self) -> Float[Array, " C"]:
        return jnp.zeros_like(self.cell.gate.bias)

    def steps(self, observations: PyTree, actions: Int[Array, " T"]) -> Float[Array, "T D"]:
        """The features that the cell gets for every step of one episode."""
        observations = self.seen(observations)
        before = jax.tree.map(lambda x: jnp.concatenate([x[:1], x[:-1]]), observations)
        changes = jax.vmap(partial(of_change, self.change))(observations, before)
        if self.first_change == "whole":
            changes = changes.at[0].set(self.change(jax.tree.map(lambda x: x[0], observations)))
        return self._joined(observations, changes, actions)

    def _joined(self, observations: PyTree, changes: Array, actions: Array) -> Array:
        seen = changes
        if self.sees_frame:
            look = self.change if self.frame is None else self.frame
            seen = jnp.concatenate([jax.vmap(look)(observations), changes], axis=1)
        taken = jax.nn.one_hot(actions, self.actions.shape[0], dtype=self.actions.dtype)
        return jax.nn.relu(self.joined(seen) + taken @ self.actions)

    def read(
        self,
        observations: PyTree,
        actions: Int[Array, " T"],
        valid: Bool[Array, " T"],
        starts: Bool[Array, " T"],
        before: PyTree,
        memory: Float[Array, " C"],
    ) -> Reading:
        """The predictions for S_0 … S_{T−1} and A_0 … A_{T−1} of a stream, in which sequences end and others start.

        `before` is the `seen` part of the last observation before the segment, not used where the first step starts a
        sequence, and `memory` the memory after that observation.
        """
        observations = self.seen(observations)

        def previous(last: Array, x: Array) -> Array:
            first = starts.reshape(starts.shape + (1,) * (x.ndim - 1))
            return jnp.where(first, x, jnp.concatenate([last[None], x[:-1]]))

        changes = jax.vmap(partial(of_change, self.change))(observations, jax.tree.map(previous, before, observations))
        if self.first_change == "whole":
            changes = jnp.where(starts[:, None], jax.vmap(self.change)(observations), changes)
        memories = self.cell.stream(self._joined(observations, changes, actions), valid, starts, memory)
        return Reading(self.head(memories)[:, 0], self.head(memory)[0], memories[-1])

    def __call__(
        self, observations: PyTree, actions: Int[Array, " T"], valid: Bool[Array, " T"], chunk: int | None = None
    ) -> Float[Array, " T"]:
        """The predictions g_t for S_0 … S_{T−1} and A_0 … A_{T−1} of one episode; after its end the last is repeated.

        With a `chunk`, for long episodes, backpropagation is truncated: the memory passes from one chunk of this many
        steps to the next, the gradient does not.
        """
        steps = self.steps(observations, actions)
        empty = self.empty_memory()
        memories = self.cell(steps, valid, empty) if chunk is None else self._in_chunks(steps, valid, empty, chunk)
        return self.head(memories)[:, 0]

    def _in_chunks(self, steps: Array, valid: Array, memory: Array, chunk: int) -> Array:
        length = steps.shape[0]
        missing = -length % chunk
        steps = jnp.pad(steps, ((0, missing), (0, 0))).reshape(-1, chunk, steps.shape[1])
        valid = jnp.pad(valid, (0, missing)).reshape(-1, chunk)

        def one(before: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
            memories = self.cell(*inputs, jax.lax.stop_gradient(before))
            return memories[-1], memories

        _, memories = jax.lax.scan(one, memory, (steps, valid))
        return memories.reshape(-1, memories.shape[-1])[:length]
