"""The network behind reward redistribution: it reads an episode and says at every step what the return will be."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.errors import unknown_name
from paircredit.networks.additive_scan import additive_scan, unroll
from paircredit.networks.build import perception_for
from paircredit.networks.layers import Dense
from paircredit.networks.spec import NetworkSpec
from paircredit.types import PixelObservation, PyTree

CellStart = Literal["closed", "xavier"]
FirstChange = Literal["zero", "whole"]
Inputs = Literal["both", "change"]


class AdditiveCell(eqx.Module):
    """An LSTM without forget and output gate: c_t = c_{t−1} + sigmoid(c_{t−1} R + b_i) · tanh(x_t W + b_z).

    The cell input sees the step alone and the gate the past alone, so whatever a step adds to the memory stays there
    and can be told from what the others added. The memory is also the output.
    """

    candidate: Dense
    gate: Dense

    @classmethod
    def random(cls, key: Key[Array, ""], inputs: int, cells: int, start: CellStart = "closed") -> AdditiveCell:
        """A cell at its start.

        Args:
            key: of the weights.
            inputs: features of a step.
            cells: width of the memory.
            start: `closed`: weights of deviation 0.1 and gates that let one part in 20 in (RUDDER's demonstration);
                `xavier`: weights of Xavier's deviation and gates half open (RUDDER's tutorial). Biases vary by 1.
        """
        if start not in ("closed", "xavier"):
            raise unknown_name("start of the cell", start, ("closed", "xavier"))
        keys = jax.random.split(key, 4)

        def layer(weight: Array, bias: Array, rows: int, centre: float) -> Dense:
            deviation = 0.1 if start == "closed" else (2.0 / (rows + cells)) ** 0.5
            return Dense(
                deviation * jax.random.normal(weight, (rows, cells), dtype=float),
                centre + jax.random.normal(bias, (cells,), dtype=float),
            )

        return cls(
            layer(keys[0], keys[1], inputs, 0.0),
            layer(keys[2], keys[3], cells, -3.0 if start == "closed" else 0.0),
        )

    def __call__(
        self, steps: Float[Array, "T D"], valid: Bool[Array, " T"], memory: Float[Array, " C"]
    ) -> Float[Array, "T C"]:
        """The memory after every step; padding adds nothing.

        Args:
            steps: features of the steps.
            valid: which of them belong to the episode.
            memory: before the first step.
        """
        return additive_scan(self._candidates(steps, valid), self.gate.weight, self.gate.bias, memory)

    def stream(
        self,
        steps: Float[Array, "T D"],
        valid: Bool[Array, " T"],
        starts: Bool[Array, " T"],
        memory: Float[Array, " C"],
    ) -> Float[Array, "T C"]:
        """The same where sequences follow each other: the memory is empty before each step that starts one."""

        def step(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            candidate, start = now
            before = jnp.where(start, 0.0, before)
            after = before + jax.nn.sigmoid(self.gate(before)) * candidate
            return after, after

        return jax.lax.scan(step, memory, (self._candidates(steps, valid), starts), unroll=unroll())[1]

    def _candidates(self, steps: Array, valid: Array) -> Array:
        return jnp.where(valid[:, None], jnp.tanh(self.candidate(steps)), 0.0)


class Reading(NamedTuple):
    """What a predictor has made of a piece of a stream.

    Attributes:
        predictions: g_t of every step.
        standing: the prediction before the first step, made of the memory that was there.
        memory: behind the last step.
    """

    predictions: Float[Array, " T"]
    standing: Float[Array, ""]
    memory: Float[Array, " C"]


class ReturnPredictor(eqx.Module):
    """Frame and change of frame, each through a perception module of its own, and the action – dense – cell – linear.

    (Paper, KtD appendix.) Because the last layer is linear and the cell only adds, the difference of two predictions
    in a row is what the step between them added. The actions have a matrix of their own where they join: the sum is
    that of one layer on everything, and no matrix has an odd number of rows. Without the frame (paper, Atari appendix)
    `frame` is None, and also where one module looks at both. Of frames that are stacked it sees the newest.
    """

    frame: Any | None
    change: Any
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
        """A predictor at its start.

        Args:
            key: of the weights.
            spec: the environment whose episodes it reads.
            network: sizes of the perception modules.
            width: units of the dense layer below the cell.
            cells: width of the cell.
            start: of the cell.
            first_change: what has changed at the first step: nothing, or all of the frame.
            inputs: frame and change of frame, or the `change` alone; the action joins either.
            one_module: the same parameters for frame and change.
        """
        if first_change not in ("zero", "whole"):
            raise unknown_name("first change", first_change, ("zero", "whole"))
        if inputs not in ("both", "change"):
            raise unknown_name("kind of inputs", inputs, ("both", "change"))
        seen, channels = spec.observation, None
        if isinstance(seen, Pixels) and seen.stacked > 1:
            spec, channels = dataclasses.replace(spec, observation=seen.frame), seen.frame.channels
        keys = jax.random.split(key, 5)
        features = (2 if inputs == "both" else 1) * network.trunk[1]
        joined = Dense.random(keys[2], features + spec.num_actions, width)
        return cls(
            frame=perception_for(keys[0], spec, network) if inputs == "both" and not one_module else None,
            change=perception_for(keys[1], spec, network),
            joined=Dense(joined.weight[:features], joined.bias),
            actions=joined.weight[features:],
            cell=AdditiveCell.random(keys[3], width, cells, start),
            head=Dense.random(keys[4], cells, 1),
            first_change=first_change,
            sees_frame=inputs == "both",
            channels=channels,
        )

    def seen(self, observations: PyTree) -> PyTree:
        """What it looks at: the newest frame of a stack, or everything; any axes may stand before those of one."""
        if self.channels is None:
            return observations
        return PixelObservation(observations.pixels[..., -self.channels :], observations.flags)

    def empty_memory(self) -> Float[Array, " C"]:
        """What the cell holds before the first step."""
        return jnp.zeros_like(self.cell.gate.bias)

    def steps(self, observations: PyTree, actions: Int[Array, " T"]) -> Float[Array, "T D"]:
        """What the cell sees of every step of one episode; no step depends on another but through the change."""
        observations = self.seen(observations)
        before = jax.tree.map(lambda x: jnp.concatenate([x[:1], x[:-1]]), observations)
        changes = jax.vmap(self.change.of_change)(observations, before)
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
        """The predictions of a piece of a stream, in which sequences end and others start.

        Args:
            observations: S_0 … S_{T−1} of the piece.
            actions: A_0 … A_{T−1}.
            valid: which steps belong to a sequence.
            starts: which of them are the first of one.
            before: what was seen (`seen`) at the last step before the piece; not read where the first step starts.
            memory: behind that step.
        """
        observations = self.seen(observations)

        def previous(last: Array, x: Array) -> Array:
            first = starts.reshape(starts.shape + (1,) * (x.ndim - 1))
            return jnp.where(first, x, jnp.concatenate([last[None], x[:-1]]))

        changes = jax.vmap(self.change.of_change)(observations, jax.tree.map(previous, before, observations))
        if self.first_change == "whole":
            changes = jnp.where(starts[:, None], jax.vmap(self.change)(observations), changes)
        memories = self.cell.stream(self._joined(observations, changes, actions), valid, starts, memory)
        return Reading(self.head(memories)[:, 0], self.head(memory)[0], memories[-1])

    def __call__(
        self, observations: PyTree, actions: Int[Array, " T"], valid: Bool[Array, " T"], chunk: int | None = None
    ) -> Float[Array, " T"]:
        """The predictions g_t of one episode; behind its end the last one is repeated.

        Args:
            observations: S_0 … S_{T−1}.
            actions: A_0 … A_{T−1}.
            valid: which steps belong to the episode.
            chunk: no gradient passes a border between pieces of so many steps, though the memory does (truncated
                backpropagation, for long episodes); None: it passes everywhere.
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

        def one(before: Array, piece: tuple[Array, Array]) -> tuple[Array, Array]:
            memories = self.cell(*piece, jax.lax.stop_gradient(before))
            return memories[-1], memories

        _, memories = jax.lax.scan(one, memory, (steps, valid))
        return memories.reshape(-1, memories.shape[-1])[:length]
