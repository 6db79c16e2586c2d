"""The paper's Key-to-Door: fetch a key, pick apples that pay noisily, open a door that pays for the key.

An episode has three phases, each a room of its own in the middle of one 7×11 map. In the *key phase* (15 steps, 5×5)
a key lies in a random cell; nothing is paid. In the *apple phase* (90 steps, 5×9) apples lie in random cells and each
pays μτ with probability 1/τ, else nothing, τ = σ²/μ² + 1: mean μ, variance σ². In the *door phase* (15 steps, 3×3)
the door pays 10, to whoever has the key. The agent sees the room from above, and one bit: whether it has the key.

Everything random is drawn by `reset`: cells, payouts, and for every step whether the agent slips and where to. `step`
is then a few comparisons that a compiler fuses, and needs no key.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, Int32, Key, UInt8

from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.errors import PaircreditError
from paircredit.settings import check_all, setting
from paircredit.types import PixelObservation, TimeStep, Trajectory

Palette = Literal["original", "dark"]
Layout = Literal["open", "walled"]
"""The key room: nothing but floor, or a wall across with a gap of three cells between the agent and the key."""

UP, DOWN, LEFT, RIGHT = range(4)
KEY_PHASE, APPLE_PHASE, DOOR_PHASE = range(3)

HEIGHT, WIDTH = 7, 11
"""The map, walls included."""
MIDDLE = (3, 5)
"""The middle of the map and of all three rooms."""
ROOMS = ((5, 5), (5, 9), (3, 3))
"""Height and width of the room of each phase."""
DOOR = (1, 5)
"""The door lies in the wall above the 3×3 room: two steps up from its middle."""
GAP = 1
"""The inner wall of the walled key room is open up to this many cells from its middle."""
MOST_APPLES = ROOMS[APPLE_PHASE][0] * ROOMS[APPLE_PHASE][1] - 1
"""Every cell of the apple room but the one where the agent starts."""
RAREST_PAYOUT = 1e-4
"""The smallest probability 1/τ of a payout; single-precision random numbers are too coarse for much smaller ones."""

LARGEST_REWARD = 1e15
"""The largest mean reward; squares of much larger returns, or of their inverses, do not fit into single precision."""

LONGEST_PHASE = 500_000_000
"""Steps of the longest phase: three such phases can still be counted in 32 bits."""


class Colours(NamedTuple):
    """What each kind of cell looks like: red, green and blue of 0 to 255."""

    floor: tuple[int, int, int]
    wall: tuple[int, int, int]
    agent: tuple[int, int, int]
    key: tuple[int, int, int]
    apple: tuple[int, int, int]
    door: tuple[int, int, int]


PALETTES = {
    "original": Colours((204, 204, 204), (25, 25, 25), (228, 148, 109), (159, 81, 44), (140, 178, 0), (134, 206, 235)),
    "dark": Colours((0, 0, 0), (90, 90, 90), (255, 255, 255), (255, 200, 0), (0, 200, 60), (60, 120, 255)),
}
"""The colours of the original task, or bright things on a black floor, which networks tell apart sooner."""


_ROWS, _COLUMNS = np.indices((HEIGHT, WIDTH), dtype=np.int32)


class KeyToDoorState(eqx.Module):
    """The state of an episode, and all random numbers that it will need. Places are rows and columns on the map.

    At the beginning of the apple phase the agent is put at `apple_start`. `has_key` stays set to the end of the
    episode, `apples` are those that were not eaten yet, `payouts` what an apple in each cell pays. `slips` has for each
    transition the action that replaces the agent's, or −1.
    """

    time: Int32[Array, ""]
    agent: Int32[Array, " 2"]
    key: Int32[Array, " 2"]
    apple_start: Int32[Array, " 2"]
    has_key: Bool[Array, ""]
    opened: Bool[Array, ""]
    apples: Bool[Array, "7 11"]
    payouts: Float[Array, "7 11"]
    slips: Int8[Array, " T"]


class KeyToDoor(eqx.Module):
    """Three phases of fixed length; the last transition terminates the episode.

    What is paid, how often the agent slips, how many apples there are and what it all looks like is data; phases and
    layout are static.
    """

    mean: Float[Array, ""]
    variance: Float[Array, ""]
    slip: Float[Array, ""]
    fewest_apples: Int32[Array, ""]
    most_apples: Int32[Array, ""]
    door_reward: Float[Array, ""]
    colours: UInt8[Array, "6 3"]
    key_steps: int = eqx.field(static=True)
    apple_steps: int = eqx.field(static=True)
    door_steps: int = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("key-to-door", 4, Pixels(HEIGHT, WIDTH, 3, 1), self.horizon, watched=("door_reward", "key_rate"))

    @property
    def horizon(self) -> int:
        return self.key_steps + self.apple_steps + self.door_steps

    @property
    def door_start(self) -> int:
        return self.key_steps + self.apple_steps

    def reset(self, key: Key[Array, ""]) -> tuple[KeyToDoorState, TimeStep]:
        """Draw the whole episode; the agent stands in the key room."""
        # All random numbers in one call, which compiles and runs faster than one for each purpose.
        (height, width), key_cells = ROOMS[APPLE_PHASE], ROOMS[KEY_PHASE][0] * ROOMS[KEY_PHASE][1]
        sizes = (key_cells, height * width, height * width, self.horizon, self.horizon, 1)
        draws = jax.random.uniform(key, (sum(sizes),), dtype=self.mean.dtype)
        places, lots, luck, slipping, replacing, number = jnp.split(draws, np.cumsum(sizes)[:-1].tolist())
        agent, key_place = self._key_room(places)
        # The cells of the apple room in random order: first the agent's, then the apples', then the empty ones.
        order = jnp.argsort(lots)
        rank = jnp.argsort(order).reshape(height, width).astype(jnp.int32)
        span = (self.most_apples - self.fewest_apples + 1).astype(number.dtype)
        apples = self.fewest_apples + (number[0] * span).astype(jnp.int32)
        scale = self.variance / self.mean / self.mean + 1  # the paper's τ
        payouts = jnp.where(luck < 1 / scale, self.mean * scale, 0.0).reshape(height, width)
        margins = ((HEIGHT - height) // 2,) * 2, ((WIDTH - width) // 2,) * 2
        state = KeyToDoorState(
            time=jnp.zeros((), dtype=jnp.int32),
            agent=agent,
            key=key_place,
            apple_start=_place(order[0], APPLE_PHASE),
            has_key=jnp.zeros((), dtype=bool),
            opened=jnp.zeros((), dtype=bool),
            apples=jnp.pad((rank >= 1) & (rank <= apples), margins),
            payouts=jnp.pad(payouts, margins),
            slips=jnp.where(slipping < self.slip, (4 * replacing).astype(jnp.int8), jnp.int8(-1)),
        )
        return state, self._time_step(state, jnp.zeros_like(self.mean))

    def step(
        self, key: Key[Array, ""], state: KeyToDoorState, action: Int[Array, ""]
    ) -> tuple[KeyToDoorState, TimeStep]:
        """Move, take what lies there, and go to the next room when the phase is over."""
        phase = self.phase(state.time)
        slip = state.slips[state.time].astype(jnp.int32)
        move = jnp.where(slip >= 0, slip, action.astype(jnp.int32))
        row = state.agent[0] + jnp.where(move == DOWN, 1, jnp.where(move == UP, -1, 0))
        column = state.agent[1] + jnp.where(move == RIGHT, 1, jnp.where(move == LEFT, -1, 0))
        at_door = (phase == DOOR_PHASE) & (row == DOOR[0]) & (column == DOOR[1])
        moves = self.is_floor(phase, row, column) | (at_door & state.has_key)
        row, column = jnp.where(moves, row, state.agent[0]), jnp.where(moves, column, state.agent[1])

        here = (row == _ROWS) & (column == _COLUMNS)
        eaten = here & state.apples & (phase == APPLE_PHASE)
        opens = moves & at_door & ~state.opened
        takes_key = (phase == KEY_PHASE) & (row == state.key[0]) & (column == state.key[1])
        # Looked up in one cell, not summed over the map: a sum would be a kernel of its own on a GPU.
        found = (phase == APPLE_PHASE) & state.apples[row, column]
        reward = jnp.where(found, state.payouts[row, column], 0.0) + jnp.where(opens, self.door_reward, 0.0)

        time = state.time + 1
        to_apples, to_door = time == self.key_steps, time == self.door_start
        row = jnp.where(to_apples, state.apple_start[0], jnp.where(to_door, MIDDLE[0], row))
        column = jnp.where(to_apples, state.apple_start[1], jnp.where(to_door, MIDDLE[1], column))
        following = dataclasses.replace(
            state,
            time=time,
            agent=jnp.stack([row, column]),
            has_key=state.has_key | takes_key,
            opened=state.opened | opens,
            apples=state.apples & ~eaten,
        )
        return following, self._time_step(following, reward)

    def summarise(self, trajectory: Trajectory) -> dict[str, Float[Array, ""]]:
        """Means of `phase_rewards` over a batch."""
        rewards = phase_rewards(trajectory, self)
        return {name: jnp.mean(rewards[name]) for name in rewards if name != "episode_return"}

    def _key_room(self, draws: Float[Array, " cells"]) -> tuple[Int32[Array, " 2"], Int32[Array, " 2"]]:
        """The first places of the agent and the key, from a random number for every cell."""
        if self.layout == "open":
            order = jnp.argsort(draws)
            agent, key = order[0], order[1]
        else:  # the key above the wall, the agent below it
            height, width = ROOMS[KEY_PHASE]
            side = height // 2 * width
            agent, key = side + width + jnp.argmin(draws[-side:]), jnp.argmin(draws[:side])
        return _place(agent, KEY_PHASE), _place(key, KEY_PHASE)

    def phase(self, time: Int32[Array, ""]) -> Int32[Array, ""]:
        """`KEY_PHASE`, `APPLE_PHASE` or `DOOR_PHASE`, after `time` transitions."""
        return (time >= self.key_steps).astype(jnp.int32) + (time >= self.door_start).astype(jnp.int32)

    def is_floor(
        self, phase: Int32[Array, ""], row: Int32[Array, "*shape"], column: Int32[Array, "*shape"]
    ) -> Bool[Array, "*shape"]:
        """Whether one can stand there; all rooms share their middle."""
        up, across = jnp.abs(row - MIDDLE[0]), jnp.abs(column - MIDDLE[1])
        floor = jnp.zeros_like(up, dtype=bool)
        for number, (height, width) in enumerate(ROOMS):
            floor |= (phase == number) & (up <= height // 2) & (across <= width // 2)
        if self.layout == "walled":
            floor &= (phase != KEY_PHASE) | (up != 0) | (across <= GAP)
        return floor

    def _time_step(self, state: KeyToDoorState, reward: Float[Array, ""]) -> TimeStep:
        observation = PixelObservation(self._picture(state), state.has_key[None])
        end = state.time >= self.horizon
        return TimeStep(observation, jnp.ones((4,), dtype=bool), reward, end, jnp.zeros((), dtype=bool))

    def _picture(self, state: KeyToDoorState) -> Array:
        """The room from above, painted from back to front."""
        phase, rows, columns = self.phase(state.time), jnp.asarray(_ROWS), jnp.asarray(_COLUMNS)
        key = (phase == KEY_PHASE) & ~state.has_key & (rows == state.key[0]) & (columns == state.key[1])
        door = (phase == DOOR_PHASE) & (rows == DOOR[0]) & (columns == DOOR[1])
        floor, wall, agent, key_colour, apple, door_colour = self.colours
        layers = (
            (self.is_floor(phase, rows, columns) | (door & state.opened), floor),
            (door & ~state.opened, door_colour),
            (key, key_colour),
            ((phase == APPLE_PHASE) & state.apples, apple),
            ((rows == state.agent[0]) & (columns == state.agent[1]), agent),
        )
        pixels = jnp.broadcast_to(wall, (HEIGHT, WIDTH, 3))
        for mask, colour in layers:
            pixels = jnp.where(mask[..., None], colour, pixels)
        return pixels


def phase_rewards(trajectory: Trajectory, env: KeyToDoor) -> dict[str, Float[Array, "*batch"]]:
    """The rewards of each episode, in all and by phase, and whether it got the key (1 or 0)."""
    rewards = trajectory.rewards
    return {
        "episode_return": rewards.sum(axis=-1),
        "apple_reward": rewards[..., env.key_steps : env.door_start].sum(axis=-1),
        "door_reward": rewards[..., env.door_start :].sum(axis=-1),
        "key_rate": trajectory.observations.flags[..., -1, 0].astype(rewards.dtype),
    }


@dataclasses.dataclass(frozen=True)
class KeyToDoorConfig:
    """Settings of Key-to-Door."""

    mean: float = setting(5.0, at_least=1 / LARGEST_REWARD, at_most=LARGEST_REWARD)
    """Mean μ of what an apple pays, above 0."""
    variance: float = setting(25.0, at_least=0, at_most=LARGEST_REWARD**2)
    """Variance σ² of what an apple pays."""
    slip: float = setting(0.0, at_least=0, at_most=1)
    """Probability that an action is replaced by a random one (paper: 0, in its stochastic variant 0.1)."""
    fewest_apples: int = 1
    """The number of apples is uniform between this …"""
    most_apples: int = 19
    """… and this, both included (the paper writes [1, 20]; its best return of 60 asks for a mean of 10)."""
    door_reward: float = setting(10.0, at_least=-LARGEST_REWARD, at_most=LARGEST_REWARD)
    """What the door pays."""
    key_steps: int = setting(15, at_least=1, at_most=LONGEST_PHASE)
    """Length of the key phase."""
    apple_steps: int = setting(90, at_least=1, at_most=LONGEST_PHASE)
    """Length of the apple phase."""
    door_steps: int = setting(15, at_least=1, at_most=LONGEST_PHASE)
    """Length of the door phase."""
    horizon: int = 0
    """The length of an episode, if you want it checked: it must be the sum of the phases (0: whatever that is)."""
    layout: Layout = "open"
    """The key room: `open`, or `walled` between the agent and the key, with a gap (as in the original task)."""
    palette: Palette = "original"
    """What things look like: as in the original task, or `dark`, which networks learn from several times faster."""

    def build(self) -> KeyToDoor:
        check_all(self, "key-to-door")
        if 1 / (self.variance / self.mean / self.mean + 1) < RAREST_PAYOUT:
            raise PaircreditError(
                f"With mean {self.mean} and variance {self.variance} an apple would pay less often than once in "
                f"{1 / RAREST_PAYOUT:,.0f} times; choose a larger mean or a smaller variance."
            )
        if not 0 <= self.fewest_apples <= self.most_apples <= MOST_APPLES:
            raise PaircreditError(
                f"Key-to-Door has {self.fewest_apples} to {self.most_apples} apples; "
                f"the range must not be empty and must lie between 0 and {MOST_APPLES}, all cells but the agent's."
            )
        steps = self.key_steps + self.apple_steps + self.door_steps
        if self.horizon not in (0, steps):
            raise PaircreditError(
                f"Key-to-Door's horizon is {self.horizon}, but its phases of {self.key_steps}, {self.apple_steps} and "
                f"{self.door_steps} steps sum to {steps}; change the phases, or leave the horizon out."
            )
        if self.layout not in get_args(Layout):
            raise PaircreditError(f"Key-to-Door's layout is {self.layout!r}, but must be 'open' or 'walled'.")
        if self.palette not in PALETTES:
            raise PaircreditError(f"Key-to-Door's palette is {self.palette!r}, but must be 'original' or 'dark'.")
        return KeyToDoor(
            mean=jnp.asarray(self.mean, dtype=float),
            variance=jnp.asarray(self.variance, dtype=float),
            slip=jnp.asarray(self.slip, dtype=float),
            fewest_apples=jnp.asarray(self.fewest_apples, dtype=jnp.int32),
            most_apples=jnp.asarray(self.most_apples, dtype=jnp.int32),
            door_reward=jnp.asarray(self.door_reward, dtype=float),
            colours=jnp.asarray(PALETTES[self.palette], dtype=jnp.uint8),
            key_steps=self.key_steps,
            apple_steps=self.apple_steps,
            door_steps=self.door_steps,
            layout=self.layout,
        )


def _place(cell: Int[Array, ""], phase: int) -> Int32[Array, " 2"]:
    """Row and column on the map of a cell of a room, cells counted row by row."""
    (height, width), cell = ROOMS[phase], cell.astype(jnp.int32)
    return jnp.stack([MIDDLE[0] - height // 2 + cell // width, MIDDLE[1] - width // 2 + cell % width])
