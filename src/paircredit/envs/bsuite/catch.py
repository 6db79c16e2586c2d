"""bsuite's catch: a ball falls through a 10×5 board, a paddle in the last row should be below it.

The ball starts in a random column of the first row and falls one row per step; the paddle starts in the middle of the
last row and goes left, stays or goes right. After nine steps the ball is in the last row: +1 if it is on the paddle,
else −1. Nothing is paid before. `catch_noise` adds normal noise to all nine rewards, `catch_scale` multiplies them;
the regret knows of neither.
"""

from __future__ import annotations

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32, Key

from paircredit.envs.bsuite import episode_summary
from paircredit.envs.protocol import EnvSpec, Vector
from paircredit.settings import check_all, setting
from paircredit.types import TimeStep, Trajectory

ROWS, COLUMNS = 10, 5
STEPS = ROWS - 1
LARGEST_SCALE = 1e38
"""Larger rewards become infinite in single precision."""


class CatchChance(eqx.Module):
    """All random draws of an episode: the column of the ball, and a standard normal number for each reward."""

    ball: Int32[Array, ""]
    noise: Float[Array, " 9"]


class CatchState(eqx.Module):
    """The state of an episode; the row of the ball is the time."""

    time: Int32[Array, ""]
    paddle: Int32[Array, ""]
    chance: CatchChance


class Catch(eqx.Module):
    """The board with a reward that may be scaled and noisy; both are data."""

    noise_scale: Float[Array, ""]
    reward_scale: Float[Array, ""]

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("bsuite/catch", 3, Vector(ROWS * COLUMNS), STEPS, watched=("regret",))

    def reset(self, key: Key[Array, ""]) -> tuple[CatchState, TimeStep]:
        """Draw the column of the ball and the noise of all rewards."""
        # Everything in one call of the generator, which compiles and runs faster than one for each purpose.
        dtype = self.noise_scale.dtype
        above = np.nextafter(-1, 0, dtype=dtype)  # erf_inv(−1) is infinite
        draws = jax.random.uniform(key, (1 + STEPS,), dtype=dtype, minval=above, maxval=1)
        ball = jnp.minimum((COLUMNS * (1 + draws[0]) / 2).astype(jnp.int32), COLUMNS - 1)
        return self.start(CatchChance(ball, math.sqrt(2) * jax.lax.erf_inv(draws[1:])))

    def start(self, chance: CatchChance) -> tuple[CatchState, TimeStep]:
        """An episode with these draws: the ball in the first row, the paddle in the middle."""
        state = CatchState(jnp.zeros((), dtype=jnp.int32), jnp.full((), COLUMNS // 2, dtype=jnp.int32), chance)
        return state, self._time_step(state, jnp.zeros_like(self.reward_scale))

    def step(self, key: Key[Array, ""], state: CatchState, action: Int[Array, ""]) -> tuple[CatchState, TimeStep]:
        paddle = jnp.clip(state.paddle + action.astype(jnp.int32) - 1, 0, COLUMNS - 1)
        following = CatchState(state.time + 1, paddle, state.chance)
        outcome = jnp.where(paddle == state.chance.ball, self.reward_scale, -self.reward_scale)
        clean = jnp.where(following.time == STEPS, outcome, jnp.zeros_like(outcome))
        return following, self._time_step(following, clean + self.noise_scale * state.chance.noise[state.time])

    def _time_step(self, state: CatchState, reward: Float[Array, ""]) -> TimeStep:
        cell = jnp.arange(ROWS * COLUMNS, dtype=jnp.int32)
        taken = (cell == state.time * COLUMNS + state.chance.ball) | (cell == STEPS * COLUMNS + state.paddle)
        end = state.time >= STEPS
        legal = jnp.ones((3,), dtype=bool)
        return TimeStep(taken.astype(reward.dtype), legal, reward, end, jnp.zeros((), dtype=bool))

    def summarise(self, trajectory: Trajectory) -> dict[str, Float[Array, ""]]:
        """The regret is 0 for a ball that was caught and 2 for one that was missed: it lies beside the paddle."""
        last_row = trajectory.observations[..., -1, -COLUMNS:]
        return episode_summary(trajectory, 2 * (last_row.sum(axis=-1) - 1))


@dataclasses.dataclass(frozen=True)
class CatchConfig:
    """Settings of catch."""

    noise_scale: float = setting(0.0, at_least=0, at_most=LARGEST_SCALE)
    """Deviation of the normal noise on every reward (bsuite's catch_noise: 0.1, 0.3, 1, 3, 10)."""
    reward_scale: float = setting(1.0, above=0, at_most=LARGEST_SCALE)
    """What rewards are multiplied by, before the noise (bsuite's catch_scale: 0.001, 0.03, 1, 30, 1000)."""

    def build(self) -> Catch:
        check_all(self, "bsuite/catch")
        return Catch(jnp.asarray(self.noise_scale, dtype=float), jnp.asarray(self.reward_scale, dtype=float))
