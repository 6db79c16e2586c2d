"""bsuite's umbrella chain: take the umbrella or not, then wait a long and noisy day to learn whether it was right.

An agent sees whether it needs an umbrella, whether it has one, the share of the day that is left, and distractors:
random bits, drawn anew at every step. The first action decides whether it has an umbrella from then on; all others do
nothing. Every step but the last pays +1 or −1 at random. The last one pays +1 if the agent has an umbrella and needs
one, or neither, and −1 otherwise.

The length of the day and the number of distractors are data. `horizon` and `width` are the largest of them that share
a program: shorter days end earlier, and bits behind an environment's own distractors are 0.
"""

from __future__ import annotations

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32, Key, UInt32

from paircredit.envs.bsuite.regret import umbrella_regret
from paircredit.envs.protocol import EnvSpec, Vector
from paircredit.errors import PaircreditError
from paircredit.types import TimeStep, Trajectory

WORD = 32
"""Bits in a word of chance."""
SIGHTS = 3
"""Numbers of an observation in front of the distractors."""


class UmbrellaChance(eqx.Module):
    """All that chance decides in an episode.

    Attributes:
        needed: whether the umbrella is needed.
        held: whether the agent seems to have one in the first observation, which means nothing.
        bits: what is drawn at each time 0 .. horizon, packed into words, because drawing and storing bits one by one
            costs 32 times as much. Bit k of a row is bit k mod 32 of its word k div 32. Bit 0 says whether the step
            that led here paid +1 (unless it was the last step), bits 1 and 2 nothing. Bit 3+k is distractor k, so that
            bits stand where they are seen, which vector instructions unpack four times as fast as shifted ones.
    """

    needed: Bool[Array, ""]
    held: Bool[Array, ""]
    bits: UInt32[Array, "T_plus_1 W"]


class UmbrellaState(eqx.Module):
    """Where an episode stands."""

    time: Int32[Array, ""]
    has: Bool[Array, ""]
    chance: UmbrellaChance


class UmbrellaChain(eqx.Module):
    """A day of `length` steps with so many distractors, padded to `horizon` and `width`."""

    length: Int32[Array, ""]
    distractors: Int32[Array, ""]
    horizon: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        """The shape of the environment."""
        return EnvSpec("bsuite/umbrella", 2, Vector(SIGHTS + self.width), self.horizon)

    def reset(self, key: Key[Array, ""]) -> tuple[UmbrellaState, TimeStep]:
        """Draw the whole day."""
        words = words_per_step(self.width)
        # Drawn as one row, which a processor with vector instructions does twice as fast as short rows.
        bits = jax.random.bits(key, ((self.horizon + 1) * words,), dtype=jnp.uint32).reshape(-1, words)
        # Nothing is paid on the way to the first observation, so that bits 0 and 1 of its row are free.
        needed, held = (bits[0, 0] & 1) == 1, (bits[0, 0] & 2) == 2
        return self.start(UmbrellaChance(needed, held, bits))

    def start(self, chance: UmbrellaChance) -> tuple[UmbrellaState, TimeStep]:
        """An episode with these draws; bits behind the environment's own distractors are cleared once for all."""
        own = UmbrellaChance(chance.needed, chance.held, chance.bits & self._own_bits())
        state = UmbrellaState(jnp.zeros((), dtype=jnp.int32), chance.held, own)
        return state, self._time_step(state, own.bits[0], jnp.zeros((), dtype=float))

    def step(self, key: Key[Array, ""], state: UmbrellaState, action: Int[Array, ""]) -> tuple[UmbrellaState, TimeStep]:
        """Only the first action counts, only the last reward means anything."""
        del key
        has = jnp.where(state.time == 0, action == 1, state.has)
        following = UmbrellaState(state.time + 1, has, state.chance)
        words = state.chance.bits[following.time]
        right = jnp.where(following.time == self.length, has == state.chance.needed, (words[0] & 1) == 1)
        reward = jnp.where(right, jnp.ones((), dtype=float), -jnp.ones((), dtype=float))
        return following, self._time_step(following, words, reward)

    def _own_bits(self) -> UInt32[Array, " W"]:
        """Ones for the bits up to the last of the environment's own distractors."""
        count = SIGHTS + self.distractors - WORD * jnp.arange(words_per_step(self.width), dtype=jnp.int32)
        some = (jnp.uint32(1) << jnp.clip(count, 0, WORD - 1).astype(jnp.uint32)) - 1
        return jnp.where(count >= WORD, jnp.uint32(2**WORD - 1), some)

    def _time_step(self, state: UmbrellaState, words: UInt32[Array, " W"], reward: Float[Array, ""]) -> TimeStep:
        place = jnp.arange(SIGHTS + self.width, dtype=jnp.int32)
        bits = ((words[:, None] >> jnp.arange(WORD, dtype=jnp.uint32)).reshape(-1)[: len(place)] & 1).astype(
            reward.dtype
        )
        left = 1 - state.time.astype(reward.dtype) / self.length.astype(reward.dtype)
        seen = (state.chance.needed.astype(reward.dtype), state.has.astype(reward.dtype), left)
        # Chosen place by place: to join pieces would undo what the layout of the bits is good for.
        observation = functools.reduce(lambda rest, k: jnp.where(place == k, seen[k], rest), range(SIGHTS), bits)
        end = state.time >= self.length
        return TimeStep(observation, jnp.ones((2,), dtype=bool), reward, end, jnp.zeros((), dtype=bool))

    def summarise(self, trajectory: Trajectory) -> dict[str, Float[Array, ""]]:
        """What the training loop records beside the return."""
        return {"regret": jnp.mean(umbrella_regret(trajectory))}


def words_per_step(width: int) -> int:
    """Words for the bits of a step with so many distractors."""
    return -(-(SIGHTS + width) // WORD)


@dataclasses.dataclass(frozen=True)
class UmbrellaChainConfig:
    """Settings of bsuite's umbrella chain."""

    length: int = 20
    """Steps of an episode, at least 1 (bsuite's umbrella_length: 1 to 100; umbrella_distract: 20)."""
    distractors: int = 20
    """Random bits in every observation (bsuite's umbrella_length: 20; umbrella_distract: 1 to 100)."""
    max_length: int = 0
    """Pad episodes to this many steps (0: to the length), so that members of several lengths share a program."""
    max_distractors: int = 0
    """Pad observations to this many distractors (0: to their number), for the same reason."""

    def build(self) -> UmbrellaChain:
        """The environment; impossible sizes are refused."""
        horizon, width = self.max_length or self.length, self.max_distractors or self.distractors
        if not 1 <= self.length <= horizon:
            raise PaircreditError(
                f"The umbrella chain has length {self.length} and max_length {horizon}; "
                "the length must be at least 1 and at most max_length."
            )
        if not 0 <= self.distractors <= width:
            raise PaircreditError(
                f"The umbrella chain has {self.distractors} distractors and max_distractors {width}; "
                "there must be at least 0 of them and at most max_distractors."
            )
        return UmbrellaChain(
            jnp.asarray(self.length, dtype=jnp.int32), jnp.asarray(self.distractors, dtype=jnp.int32), horizon, width
        )
