"""bsuite's discounting chain: the first action picks one of five chains, each of which pays once, sooner or later.

The chains pay 1 after 1, 3, 10, 30 and 100 steps; one of them, the bonus chain, pays 1.1. An episode has 100 steps
whatever was chosen. Nothing is random. An agent that discounts much prefers the early chains, bonus or not.
"""

from __future__ import annotations

import dataclasses
import functools
import operator

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int32, Key

from paircredit.envs.bsuite import episode_returns, episode_summary
from paircredit.envs.protocol import EnvSpec, Vector
from paircredit.settings import check_all, setting
from paircredit.types import TimeStep, Trajectory

PAYDAYS = (1, 3, 10, 30, 100)
"""The step at which each chain pays."""
STEPS = 100
"""The length of every episode."""
BONUS = 0.1
"""What the bonus chain pays beyond the 1 of the others."""
BEST_RETURN = 1.1
"""The return of the bonus chain, which has no regret."""


class DiscountingChainState(eqx.Module):
    """The number of steps made, and the chain: −1 before the first action."""

    time: Int32[Array, ""]
    chain: Int32[Array, ""]


class DiscountingChain(eqx.Module):
    """Five chains; which of them has the bonus is data."""

    bonus: Int32[Array, ""]

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("bsuite/discounting_chain", len(PAYDAYS), Vector(2), STEPS, watched=("regret",))

    def reset(self, key: Key[Array, ""]) -> tuple[DiscountingChainState, TimeStep]:
        return self.start()

    def start(self) -> tuple[DiscountingChainState, TimeStep]:
        state = DiscountingChainState(jnp.zeros((), dtype=jnp.int32), jnp.full((), -1, dtype=jnp.int32))
        return state, self._time_step(state, jnp.zeros((), dtype=float))

    def step(
        self, key: Key[Array, ""], state: DiscountingChainState, action: Int[Array, ""]
    ) -> tuple[DiscountingChainState, TimeStep]:
        """The first action chooses the chain, which pays when its day has come."""
        time, chain = state.time + 1, jnp.where(state.time == 0, action.astype(jnp.int32), state.chain)
        # Comparisons, not a look-up in a table: they fuse with everything around them.
        payday = functools.reduce(operator.or_, [(chain == k) & (time == day) for k, day in enumerate(PAYDAYS)])
        amount = 1 + BONUS * (chain == self.bonus).astype(float)
        following = DiscountingChainState(time, chain)
        return following, self._time_step(following, jnp.where(payday, amount, jnp.zeros_like(amount)))

    def _time_step(self, state: DiscountingChainState, reward: Float[Array, ""]) -> TimeStep:
        observation = jnp.stack([state.chain.astype(reward.dtype), state.time.astype(reward.dtype) / STEPS])
        end = state.time >= STEPS
        legal = jnp.ones((len(PAYDAYS),), dtype=bool)
        return TimeStep(observation, legal, reward, end, jnp.zeros((), dtype=bool))

    def summarise(self, trajectory: Trajectory) -> dict[str, Float[Array, ""]]:
        return episode_summary(trajectory, BEST_RETURN - episode_returns(trajectory))


@dataclasses.dataclass(frozen=True)
class DiscountingChainConfig:
    """Settings of the discounting chain."""

    mapping_seed: int = setting(0, at_least=0)
    """Which chain has the bonus: this number modulo 5 (bsuite: 0 to 19, so that four variants are alike)."""

    def build(self) -> DiscountingChain:
        check_all(self, "bsuite/discounting_chain")
        return DiscountingChain(jnp.asarray(self.mapping_seed % len(PAYDAYS), dtype=jnp.int32))
