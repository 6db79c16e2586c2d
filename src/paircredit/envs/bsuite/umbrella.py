"""bsuite's umbrella chain: take the umbrella or not, then wait a long and noisy day to learn whether it was right.

An agent sees whether it needs an umbrella, whether it has one, the share of the day that is left, and distractors:
random bits, drawn anew at every step. The first action decides whether it has an umbrella from then on. Every step but
the last pays +1 or −1 at random. The last one pays +1 if it has an umbrella and needs one, or neither, else −1.

The length of the day and the number of distractors are data. `horizon` and `width` are the largest of them that share
a program: shorter days end earlier, and bits after an environment's own distractors are 0.
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int32, Key, UInt32

from paircredit.envs.bsuite import episode_summary
from paircredit.envs.protocol import EnvSpec, Vector
from paircredit.errors import PaircreditError
from paircredit.settings import check_all, setting
from paircredit.types import TimeStep, Trajectory

WORD = 32
"""Bits in a word of chance."""
SIGHTS = 3
"""Numbers of an observation in front of the distractors: the need, the umbrella, the time left."""
LARGEST = 2**31 - 1
"""Lengths and numbers of distractors are data of 32 bits."""
NEED, HAS, COIN = 1, 2, 4
"""The bits in their places. The time left is no bit, so that its place has room for what a step pays."""


class UmbrellaChance(eqx.Module):
    """All random draws of an episode: the need, what the agent seems to hold at first (which means nothing), and bits.

    `bits` are drawn at each time 0 .. horizon and packed into words, because drawing and storing bits one by one costs
    32 times as much. Bit k of a row is bit k mod 32 of its word k div 32. Bit 2 says whether the step that led here
    paid +1 (unless it was the last step), bit 3+k is distractor k, bits 0 and 1 are not read.
    """

    needed: Bool[Array, ""]
    held: Bool[Array, ""]
    bits: UInt32[Array, "T_plus_1 W"]


class UmbrellaState(eqx.Module):
    """The state of an episode."""

    time: Int32[Array, ""]
    has: Bool[Array, ""]
    chance: UmbrellaChance


class UmbrellaChain(eqx.Module):
    """A day of `length` steps with `distractors` random bits in view, padded to `horizon` and `width`."""

    length: Int32[Array, ""]
    distractors: Int32[Array, ""]
    horizon: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        seen = Vector(SIGHTS + self.width, own=SIGHTS + self.distractors)
        return EnvSpec("bsuite/umbrella", 2, seen, self.horizon, watched=("regret",))

    def reset(self, key: Key[Array, ""]) -> tuple[UmbrellaState, TimeStep]:
        words = words_per_step(self.width)
        # Drawn as one row, which a processor with vector instructions does twice as fast as short rows.
        bits = jax.random.bits(key, ((self.horizon + 1) * words,), dtype=jnp.uint32).reshape(-1, words)
        # Bits 0 and 1 are drawn with the others and mean nothing else.
        needed, held = (bits[0, 0] & NEED) == NEED, (bits[0, 0] & HAS) == HAS
        return self.start(UmbrellaChance(needed, held, bits))

    def start(self, chance: UmbrellaChance) -> tuple[UmbrellaState, TimeStep]:
        """An episode with these draws.

        The rows of the state's bits are made to look like observations, once for all, which is several times as fast as
        shifting them later: the bit of the need comes first, bits after the environment's own distractors are cleared.
        """
        need = self._in_first_word(chance.needed.astype(jnp.uint32))
        rows = UmbrellaChance(chance.needed, chance.held, (chance.bits & self._own_bits()) | need)
        state = UmbrellaState(jnp.zeros((), dtype=jnp.int32), chance.held, rows)
        return state, self._time_step(state, rows.bits[0], jnp.zeros((), dtype=float))

    def step(self, key: Key[Array, ""], state: UmbrellaState, action: Int[Array, ""]) -> tuple[UmbrellaState, TimeStep]:
        """Only the first action counts, only the last reward means anything."""
        has = jnp.where(state.time == 0, action == 1, state.has)
        following = UmbrellaState(state.time + 1, has, state.chance)
        words = state.chance.bits[following.time]
        right = jnp.where(following.time == self.length, has == state.chance.needed, (words[0] & COIN) == COIN)
        reward = jnp.where(right, jnp.ones((), dtype=float), -jnp.ones((), dtype=float))
        return following, self._time_step(following, words, reward)

    def _own_bits(self) -> UInt32[Array, " W"]:
        """Ones for the bit of the reward and those of the environment's own distractors."""
        count = SIGHTS + self.distractors - WORD * jnp.arange(words_per_step(self.width), dtype=jnp.int32)
        some = (jnp.uint32(1) << jnp.clip(count, 0, WORD - 1).astype(jnp.uint32)) - 1
        return jnp.where(count >= WORD, jnp.uint32(2**WORD - 1), some) & ~self._in_first_word(jnp.uint32(NEED | HAS))

    def _in_first_word(self, bits: UInt32[Array, ""]) -> UInt32[Array, " W"]:
        """These bits, and zeros in the other words."""
        return jnp.where(jnp.arange(words_per_step(self.width)) == 0, bits, jnp.uint32(0))

    def _time_step(self, state: UmbrellaState, words: UInt32[Array, " W"], reward: Float[Array, ""]) -> TimeStep:
        words = words | self._in_first_word(state.has.astype(jnp.uint32) * HAS)
        place = jnp.arange(SIGHTS + self.width, dtype=jnp.int32)
        bits = ((words[:, None] >> jnp.arange(WORD, dtype=jnp.uint32)).reshape(-1)[: len(place)] & 1).astype(
            reward.dtype
        )
        left = 1 - state.time.astype(reward.dtype) / self.length.astype(reward.dtype)
        observation = jnp.where(place == SIGHTS - 1, left, bits)
        end = state.time >= self.length
        return TimeStep(observation, jnp.ones((2,), dtype=bool), reward, end, jnp.zeros((), dtype=bool))

    def summarise(self, trajectory: Trajectory) -> dict[str, Float[Array, ""]]:
        """The regret is 0 where the agent ends with what it needs, else 2; the random rewards before do not count."""
        final = trajectory.observations[..., -1, :]
        return episode_summary(trajectory, 2 * jnp.abs(final[..., 0] - final[..., 1]))


def words_per_step(width: int) -> int:
    """The number of words that hold the bits of a step with `width` distractors."""
    return -(-(SIGHTS + width) // WORD)


@dataclasses.dataclass(frozen=True)
class UmbrellaChainConfig:
    """Settings of bsuite's umbrella chain."""

    length: int = setting(20, at_least=1, at_most=LARGEST)
    """Steps of an episode, at least 1 (bsuite's umbrella_length: 1 to 100; umbrella_distract: 20)."""
    distractors: int = setting(20, at_least=0, at_most=LARGEST)
    """Random bits in every observation (bsuite's umbrella_length: 20; umbrella_distract: 1 to 100)."""
    max_length: int = setting(0, at_least=0, at_most=LARGEST)
    """Pad episodes to this many steps (0: to the length), so that members of several lengths share a program."""
    max_distractors: int = setting(0, at_least=0, at_most=LARGEST)
    """Pad observations to this many distractors (0: to their number), for the same reason."""

    def build(self) -> UmbrellaChain:
        check_all(self, "bsuite/umbrella")
        horizon, width = self.max_length or self.length, self.max_distractors or self.distractors
        if self.length > horizon or self.distractors > width:
            raise PaircreditError(
                f"The umbrella chain has length {self.length} and {self.distractors} distractors, but "
                f"max_length {horizon} and max_distractors {width}; raise these or leave them out."
            )
        return UmbrellaChain(
            jnp.asarray(self.length, dtype=jnp.int32), jnp.asarray(self.distractors, dtype=jnp.int32), horizon, width
        )
