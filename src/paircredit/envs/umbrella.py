"""The paper's umbrella MDP: one decision in the morning, a noisy day, one reward for it in the evening."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from paircredit.envs.protocol import Discrete, EnvSpec, TabularModel
from paircredit.errors import PaircreditError
from paircredit.settings import check_all, setting
from paircredit.types import TimeStep


class Umbrella(eqx.Module):
    """T transitions; the action in s_0 decides the last reward, the T−1 rewards before it are noise.

    State 0 is the morning; state 1 + 2(t−1) + a is step t of a day that began with action a; the last state is
    terminal. The horizon is static, the length is data: days of different length train in one program.
    """

    length: Int[Array, ""]
    mean: Float[Array, ""]
    variance: Float[Array, ""]
    final_rewards: Float[Array, " 2"]
    horizon: int = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("umbrella", 2, Discrete(2 * self.horizon), self.horizon)

    def reset(self, key: Key[Array, ""]) -> tuple[tuple[Array, Array], TimeStep]:
        """Morning: no time has passed, no choice was made."""
        state = (jnp.zeros((), dtype=jnp.int32), jnp.zeros((), dtype=jnp.int32))
        return state, self._time_step(state, jnp.zeros_like(self.mean))

    def step(
        self, key: Key[Array, ""], state: tuple[Array, Array], action: Int[Array, ""]
    ) -> tuple[tuple[Array, Array], TimeStep]:
        """Noise on every transition but the last, which pays for the choice of the morning."""
        time, chosen = state
        chosen = jnp.where(time == 0, action.astype(chosen.dtype), chosen)
        noise = self.mean + jnp.sqrt(self.variance) * jax.random.normal(key, (), dtype=self.mean.dtype)
        reward = jnp.where(time + 1 == self.length, self.final_rewards[chosen], noise)
        following = (time + 1, chosen)
        return following, self._time_step(following, reward)

    def _time_step(self, state: tuple[Array, Array], reward: Float[Array, ""]) -> TimeStep:
        time, chosen = state
        end = time >= self.length
        inside = jnp.where(time == 0, 0, 2 * time - 1 + chosen)
        observation = jnp.where(end, 2 * self.horizon - 1, inside)
        return TimeStep(observation, self._legal(time == 0), reward, end, jnp.zeros((), dtype=bool))

    @staticmethod
    def _legal(morning: Bool[Array, "*shape"]) -> Bool[Array, "*shape 2"]:
        return jnp.stack([jnp.ones_like(morning), morning], axis=-1)

    def model(self) -> TabularModel:
        count = 2 * self.horizon
        state = jnp.arange(count, dtype=jnp.int32)
        time = (state + 1) // 2
        end = (state == count - 1) | (time >= self.length)
        choice = jnp.where((state == 0)[:, None], jnp.arange(2, dtype=jnp.int32), ((state + 1) % 2)[:, None])
        last = (time + 1 == self.length)[:, None]
        onward = jnp.where(last, count - 1, 2 * (time + 1)[:, None] - 1 + choice)
        stays = end[:, None]
        return TabularModel(
            next_state=jnp.where(stays, state[:, None], onward),
            reward_mean=jnp.where(stays, 0.0, jnp.where(last, self.final_rewards[choice], self.mean)),
            reward_variance=jnp.where(stays | last, 0.0, self.variance) + jnp.zeros((count, 2)),
            legal=self._legal(state == 0),
            start=0,
            horizon=self.horizon,
        )


@dataclasses.dataclass(frozen=True)
class UmbrellaConfig:
    """Settings of the umbrella MDP."""

    length: int = 10
    """Number of transitions T, at least 1; the last one pays for the first action."""
    mean: float = 0.0
    """Mean μ of the rewards in between."""
    variance: float = setting(1.0, at_least=0)
    """Variance σ² of the rewards in between (normally distributed)."""
    reward: float = 1.0
    """The last reward: + this for action 1, − this for action 0."""
    horizon: int = 0
    """Pad episodes to this many steps (0: to the length), so that members of several lengths share a program."""

    def build(self) -> Umbrella:
        horizon = self.horizon or self.length
        if not 1 <= self.length <= horizon:
            raise PaircreditError(
                f"The umbrella MDP has length {self.length} and horizon {horizon}; "
                "the length must be at least 1 and at most the horizon."
            )
        check_all(self, "umbrella")
        return Umbrella(
            length=jnp.asarray(self.length, dtype=jnp.int32),
            mean=jnp.asarray(self.mean, dtype=float),
            variance=jnp.asarray(self.variance, dtype=float),
            final_rewards=jnp.asarray([-self.reward, self.reward], dtype=float),
            horizon=horizon,
        )
