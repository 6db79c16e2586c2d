"""An environment of your own: a corridor with a key at one end, a door at the other, and noise on every step.

The agent starts in the middle. Entering the last cell ends the episode and pays 1 if the first cell, where the key
lies, was visited before; every other step pays noise. Episodes are cut after four times the length of the corridor.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

from paircredit import PaircreditError, TimeStep
from paircredit.analysis import expected_return
from paircredit.envs import Discrete, EnvSpec, TabularModel, make_environment, register_environment
from paircredit.methods import InnerLoop, make_method
from paircredit.training import Plan, collect_episodes, train
from paircredit.types import check_trajectory
from paircredit.weights import FixedTable, handcrafted_weights

UPDATES = 50


class Corridor(eqx.Module):
    """The corridor; an observation is the cell, plus the number of cells for whoever has the key."""

    noise: jax.Array  # data: corridors with different noise train in one program
    cells: int = eqx.field(static=True)  # sets shapes, hence static

    @property
    def spec(self):
        """The shape of the environment."""
        return EnvSpec("corridor", num_actions=2, observation=Discrete(2 * self.cells), horizon=4 * self.cells)

    def reset(self, key):
        """In the middle, without the key."""
        state = {"time": jnp.array(0), "place": jnp.array(self.cells // 2)}
        return state, self._time_step(state, jnp.zeros_like(self.noise))

    def step(self, key, state, action):
        """Action 0 goes left, action 1 goes right."""
        place = self._next(state["place"], action)
        noise = self.noise * jax.random.normal(key, dtype=self.noise.dtype)
        state = {"time": state["time"] + 1, "place": place}
        return state, self._time_step(state, jnp.where(self._is_door(place), self._prize(place), noise))

    def model(self):
        """The same corridor as tables; with it, expected returns are exact (optional)."""
        place = jnp.arange(2 * self.cells)[:, None]
        after, stays = self._next(place, jnp.arange(2)[None, :]), self._is_door(place)
        return TabularModel(
            next_state=jnp.where(stays, place, after),
            reward_mean=jnp.where(stays, 0.0, self._prize(after)),
            reward_variance=jnp.where(stays | self._is_door(after), 0.0, self.noise**2),
            legal=jnp.ones((2 * self.cells, 2), dtype=bool),
            start=self.cells // 2,
            horizon=4 * self.cells,
        )

    def _next(self, place, action):
        cell, has_key = place % self.cells, place // self.cells
        cell = jnp.clip(cell + 2 * action - 1, 0, self.cells - 1)
        return cell + self.cells * jnp.where(cell == 0, 1, has_key)

    def _is_door(self, place):
        return place % self.cells == self.cells - 1

    def _prize(self, place):
        return (place == 2 * self.cells - 1).astype(float)

    def _time_step(self, state, reward):
        over = self._is_door(state["place"])
        cut = (state["time"] >= 4 * self.cells) & ~over
        return TimeStep(state["place"], jnp.ones(2, dtype=bool), reward, terminated=over, truncated=cut)


@dataclasses.dataclass(frozen=True)
class CorridorConfig:
    """Settings of the corridor, as the command line spells them."""

    cells: int = 5
    """Number of cells, at least 3."""
    noise: float = 1.0
    """Deviation of the reward of every step that does not open the door."""

    def build(self):
        """The environment; impossible settings are refused with a sentence."""
        if self.cells < 3:
            raise PaircreditError(f"The corridor has {self.cells} cells, but needs at least 3.")
        return Corridor(jnp.asarray(self.noise, dtype=float), self.cells)


@handcrafted_weights.register
def corridor_weights(env: Corridor) -> FixedTable:
    """1 for what is paid at the door, 0 for the noise on the way."""
    door = jnp.arange(2 * env.cells) % env.cells == env.cells - 1
    return FixedTable(jnp.broadcast_to(door, (2 * env.cells, 2 * env.cells)).astype(float))


def main():
    """Compare a batch of episodes with the exact answer, then train two methods on four seeds each."""
    register_environment("corridor", CorridorConfig, "fetch a key at one end, open a door at the other")
    env, sampler = make_environment("corridor"), make_method("a2c", inner=InnerLoop(episodes=4000))
    learner = sampler.init(jax.random.key(0), env)
    batch = jax.jit(collect_episodes)(sampler, learner, env, jax.random.key(1))
    check_trajectory(batch)
    exact = expected_return(env.model(), learner.policy.parameters.logits)
    print(f"untrained policy: return {batch.rewards.sum(axis=1).mean():.3f} sampled, {exact:.3f} exact")
    for name in ("a2c", "h-pwr"):
        method = make_method(name, "probe")
        state = train([method] * 4, [env] * 4, range(4), Plan("online", updates=UPDATES), UPDATES)
        returns = jax.vmap(lambda logits: expected_return(env.model(), logits))(state.learner.policy.parameters.logits)
        print(f"{name} after {UPDATES} updates: expected returns {', '.join(f'{x:.2f}' for x in returns)} of 1")


if __name__ == "__main__":
    main()
