"""The paper's DAG: act through a growing binary tree, be paid on the way back out of it.

Depth d has d layers. In the first d/2 layers (1, 2, 4, … states) two actions lead down a binary tree and nothing is
paid. From the middle layer on (2^{d/2} states) there is one action; each transition merges two neighbours, forgets the
most recent decision that is still remembered and pays +1 or −1 for it. So decisions are paid for last in, first out:
the decision in layer l is paid on entering layer d+2−l, layer d+1 being the terminal state. Depth 8 has 45 states and
a terminal one, 8 transitions and 4 rewards; its best return is 4.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Discrete, EnvSpec, TabularModel
from paircredit.errors import PaircreditError
from paircredit.types import TimeStep

SignRule = Literal["action", "random"]

LARGEST_DEPTH = 40
"""Above this depth the tables of the environment would need more than a hundred megabytes."""


class Dag(eqx.Module):
    """The DAG as tables over its states, the last of which is terminal."""

    next_state: Int[Array, "S 2"]
    rewards: Float[Array, "S 2"]
    legal: Bool[Array, "S 2"]
    depth: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(f"dag-{self.depth}", 2, Discrete(num_states(self.depth)), self.depth)

    def reset(self, key: Key[Array, ""]) -> tuple[Int[Array, ""], TimeStep]:
        """Every episode starts in state 0."""
        state = jnp.zeros((), dtype=jnp.int32)
        return state, self._time_step(state, jnp.zeros_like(self.rewards[0, 0]))

    def step(
        self, key: Key[Array, ""], state: Int[Array, ""], action: Int[Array, ""]
    ) -> tuple[Int[Array, ""], TimeStep]:
        following = self.next_state[state, action]
        return following, self._time_step(following, self.rewards[state, action])

    def _time_step(self, state: Int[Array, ""], reward: Float[Array, ""]) -> TimeStep:
        end = state == num_states(self.depth) - 1
        return TimeStep(state, self.legal[state], reward, end, jnp.zeros((), dtype=bool))

    def model(self) -> TabularModel:
        """The environment's own tables, for exact diagnostics."""
        return TabularModel(self.next_state, self.rewards, jnp.zeros_like(self.rewards), self.legal, 0, self.depth)

    def layers(self) -> np.ndarray:
        return layers(self.depth)


@dataclasses.dataclass(frozen=True)
class DagConfig:
    """Settings of the DAG."""

    depth: int = 8
    """Number of layers, even and at least 4 (paper: 4, 8, 16)."""
    sign_rule: SignRule = "action"
    """Which decision pays +1: action 1 everywhere, or an action drawn per merging state (the paper does not say)."""
    sign_seed: int = 0
    """Seed of the draw for the sign rule `random`."""

    def build(self) -> Dag:
        check_depth(self.depth)
        if self.sign_rule not in ("action", "random"):
            raise PaircreditError(f"The sign rule is {self.sign_rule!r}, but must be 'action' or 'random'.")
        starts, layer = layer_starts(self.depth), layers(self.depth)
        count, half = num_states(self.depth), self.depth // 2
        state = np.arange(count)
        position = state - starts[layer - 1]
        acting = layer <= half
        first_of_next = np.append(starts, count)[np.minimum(layer, self.depth + 1)]

        down = first_of_next[:, None] + 2 * position[:, None] + np.arange(2)
        merged = (first_of_next + position // 2)[:, None] + np.zeros(2, dtype=int)
        next_state = np.where(acting[:, None], down, merged)
        next_state[-1] = count - 1

        remembered = position % 2
        if self.sign_rule == "action":
            paying = np.ones(count, dtype=int)
        else:
            paying = np.random.default_rng(self.sign_seed).integers(0, 2, size=count)
        sign = np.where(remembered == paying[next_state[:, 0]], 1.0, -1.0)
        paid = ~acting & (layer <= self.depth)
        rewards = np.where(paid, sign, 0.0)[:, None] + np.zeros(2)

        legal = np.stack([np.ones(count, dtype=bool), acting], axis=1)
        return Dag(
            jnp.asarray(next_state, dtype=jnp.int32),
            jnp.asarray(rewards, dtype=float),
            jnp.asarray(legal),
            self.depth,
        )


def check_depth(depth: int) -> None:
    """Refuse a depth that the paper's DAG cannot have."""
    if depth < 4 or depth % 2:
        raise PaircreditError(f"The DAG's depth is {depth}, but must be an even number of at least 4.")
    if depth > LARGEST_DEPTH:
        raise PaircreditError(f"The DAG's depth is {depth}; {LARGEST_DEPTH} is the largest that fits into memory.")


def layer_sizes(depth: int) -> np.ndarray:
    """States per layer: 1, 2, 4, …, 2^{d/2}, …, 4, 2."""
    half = depth // 2
    return np.array([2**i for i in range(half)] + [2 ** (half - i) for i in range(half)])


def layer_starts(depth: int) -> np.ndarray:
    """The first state of each layer, and that of the terminal layer after the last."""
    return np.concatenate([[0], np.cumsum(layer_sizes(depth))])


def num_states(depth: int) -> int:
    """All states, the terminal one included: 46 for depth 8."""
    return int(layer_sizes(depth).sum()) + 1


def layers(depth: int) -> np.ndarray:
    """The layer of every state, counted from 1; the terminal state has layer depth+1."""
    return np.repeat(np.arange(1, depth + 2), np.append(layer_sizes(depth), 1))


def acting_states(depth: int) -> np.ndarray:
    """The states with a choice: the first phase."""
    return np.arange(2 ** (depth // 2) - 1)


def reachable(depth: int) -> np.ndarray:
    """`reachable[i, j]`: a path of one or more transitions leads from state i to state j.

    A state is an interval of leaves (states of the middle layer): those that it leads to, or on the way out those that
    lead to it. From i one reaches every j in a later layer whose interval meets that of i.
    """
    layer, starts, half = layers(depth), layer_starts(depth), depth // 2
    position = np.arange(num_states(depth)) - starts[layer - 1]
    width = 2 ** np.abs(half + 1 - layer)
    low, high = position * width, (position + 1) * width
    later = layer[:, None] < layer[None, :]
    return later & (low[:, None] < high[None, :]) & (low[None, :] < high[:, None])
