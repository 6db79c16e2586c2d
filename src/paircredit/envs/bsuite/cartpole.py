"""bsuite's cartpole: keep a pole upright on a cart that is pushed left, pushed right or left alone.

Not the cartpole of gym: six numbers are seen (the clock among them), there are three actions, a step lasts 0.01 s, and
the step that loses the pole or leaves the table pays nothing. An episode ends with such a step or by the clock.
"""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Int32, Key

from paircredit.envs.bsuite import episode_returns, episode_summary
from paircredit.envs.protocol import EnvSpec, Vector
from paircredit.settings import check_all, setting
from paircredit.types import TimeStep, Trajectory

CART_MASS, POLE_MASS, HALF_LENGTH = 1.0, 0.1, 0.5
FORCE, GRAVITY = 10.0, 9.8
TIME_STEP = 0.01
"""Seconds between two actions."""
UPRIGHT, TABLE = 0.8, 3.0
"""A step pays while the cosine of the angle is above the one and the cart no further from the middle than the other."""
START = 0.05
"""Position, speed, angle and angular speed start within ± this."""
FULL_TIME = 1000
"""Steps in ten seconds, the unit of the clock that is seen."""
LONGEST = FULL_TIME + 1
"""Steps of a perfect episode: the original sums 0.01 until it is above 10, which rounding makes one step late."""
BEST_RETURN = 1000.0
"""The return without regret; a perfect episode gets one more and so has a regret of −1."""


class CartpoleState(eqx.Module):
    """Position and angle with their speeds, and the number of steps made.

    The original wraps the angle into one turn; ours, seen only through sine and cosine, keeps all its digits.
    """

    time: Int32[Array, ""]
    position: Float[Array, ""]
    speed: Float[Array, ""]
    angle: Float[Array, ""]
    angular_speed: Float[Array, ""]


class Cartpole(eqx.Module):
    """All variants of bsuite's cartpole are the same; shorter episodes are for trying things out."""

    horizon: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("bsuite/cartpole", 3, Vector(6), self.horizon, watched=("regret",))

    def reset(self, key: Key[Array, ""]) -> tuple[CartpoleState, TimeStep]:
        return self.start(jax.random.uniform(key, (4,), dtype=float, minval=-START, maxval=START))

    def start(self, chance: Float[Array, " 4"]) -> tuple[CartpoleState, TimeStep]:
        state = CartpoleState(jnp.zeros((), dtype=jnp.int32), *chance)
        return state, self._time_step(state, jnp.zeros_like(state.angle), lost=jnp.zeros((), dtype=bool))

    def step(self, key: Key[Array, ""], state: CartpoleState, action: Int[Array, ""]) -> tuple[CartpoleState, TimeStep]:
        """One Euler step: positions move with the speeds they had before it."""
        sine, cosine, turning = jnp.sin(state.angle), jnp.cos(state.angle), state.angular_speed
        total, moment = CART_MASS + POLE_MASS, POLE_MASS * HALF_LENGTH
        push = (action.astype(sine.dtype) - 1) * FORCE
        pull = (push + moment * turning * turning * sine) / total
        angular = (GRAVITY * sine - cosine * pull) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine * cosine / total))
        acceleration = pull - moment * angular * cosine / total
        following = CartpoleState(
            time=state.time + 1,
            position=state.position + TIME_STEP * state.speed,
            speed=state.speed + TIME_STEP * acceleration,
            angle=state.angle + TIME_STEP * turning,
            angular_speed=turning + TIME_STEP * angular,
        )
        kept = (jnp.cos(following.angle) > UPRIGHT) & (jnp.abs(following.position) < TABLE)
        return following, self._time_step(following, kept.astype(sine.dtype), lost=~kept)

    def _time_step(self, state: CartpoleState, reward: Float[Array, ""], lost: Array) -> TimeStep:
        observation = jnp.stack(
            [
                state.position / TABLE,
                state.speed / TABLE,
                jnp.sin(state.angle),
                jnp.cos(state.angle),
                state.angular_speed,
                state.time.astype(reward.dtype) / FULL_TIME,
            ]
        )
        end = lost | (state.time >= self.horizon)
        return TimeStep(observation, jnp.ones((3,), dtype=bool), reward, end, jnp.zeros((), dtype=bool))

    def summarise(self, trajectory: Trajectory) -> dict[str, Float[Array, ""]]:
        return episode_summary(trajectory, BEST_RETURN - episode_returns(trajectory))


@dataclasses.dataclass(frozen=True)
class CartpoleConfig:
    """Settings of bsuite's cartpole."""

    max_steps: int = setting(LONGEST, at_least=1, at_most=LONGEST)
    """Steps of the longest episode (bsuite: 1001); fewer is another, easier task, for trying things out."""

    def build(self) -> Cartpole:
        check_all(self, "bsuite/cartpole")
        return Cartpole(self.max_steps)
