"""Playing the real MinAtar with a generator that remembers what it drew."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

with warnings.catch_warnings():  # what it and its dependencies warn about while they are imported is not ours to mend
    warnings.simplefilter("ignore")
    from minatar import Environment

IMMORTAL = ("asterix", "seaquest", "space_invaders")
"""Games that can go on after their end, which is how a poor player gets to see how hard they become."""
HARD = ((20, 5, 0), (20, 5, 5), (8, 2, 3), (2, 2, 6), (1, 2, 5))
"""How episodes of Seaquest begin here: the steps from enemy to enemy, the steps that one waits, the divers aboard;
the first is what the game begins with."""


class Uniforms:
    """Stands in for a `RandomState`, forwards to one, and keeps what it drew as numbers in [0, 1)."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.RandomState(seed)
        self.drawn: list[float] = []

    def rand(self, *shape: int) -> Any:
        value = self.generator.rand(*shape)
        self.drawn += np.atleast_1d(value).tolist()
        return value

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        value = self.generator.randint(low, high, size)
        first, after = (0, low) if high is None else (low, high)
        self.drawn += ((np.atleast_1d(value) - first + 0.5) / (after - first)).tolist()
        return value

    def take(self) -> list[float]:
        """The draws since the last call."""
        drawn, self.drawn = self.drawn, []
        return drawn


class Played(NamedTuple):
    """Steps of the real game, episode after episode; where one begins, its chance, how, and what is seen first."""

    begins: np.ndarray
    start_chances: np.ndarray
    hard: np.ndarray
    first: np.ndarray
    actions: np.ndarray
    chances: np.ndarray
    observations: np.ndarray
    rewards: np.ndarray
    ends: np.ndarray
    ramp: np.ndarray


def play(name: str, env: Any, steps: int, seed: int, ramping: bool = True) -> Played:
    """This many steps with a player that dawdles; `env` says how many random numbers there are."""
    real, chance, player = Environment(name, difficulty_ramping=ramping), Uniforms(seed), np.random.default_rng(seed)
    real.random = real.env.random = chance
    rows, over, action = [], True, 0
    for _ in range(steps):
        begins, hard = over, (0, 0, 0)
        start = np.zeros(env.game.start_chances)
        if begins:
            real.reset()
            real.last_action = 0  # the original remembers it from the episode before
            start = np.array(chance.take())
            if name == "seaquest":
                hard = HARD[player.integers(len(HARD))]
                real.env.e_spawn_speed, real.env.move_speed, real.env.diver_count = hard
        first = real.state()
        action = choose(name, real.env, action, player)
        assert real.minimal_action_set() == list(env.game.actions)
        reward, over = real.act(env.game.actions[action])
        rows.append(
            (
                begins,
                start,
                hard,
                first,
                action,
                aligned(name, chance.take(), 1 + env.game.step_chances),
                real.state(),
                reward,
                over,
                real.env.difficulty_ramp() or 0,
            )
        )
        if over and name in IMMORTAL and player.random() < 0.9:
            real.env.terminal = over = False
    return Played(*(np.array(column) for column in zip(*rows, strict=True)))


def choose(name: str, game: Any, last: int, player: np.random.Generator) -> int:
    """An action's number: with some sense where random play would not get far, the last one again, or any."""
    if name == "breakout" and player.random() < 0.9:
        ahead = game.ball_x + (1 if game.ball_dir in (1, 2) else -1)
        return 0 if ahead == game.pos else 1 if ahead < game.pos else 2
    if name == "freeway" and player.random() < 0.9:
        return 1
    if name == "space_invaders" and player.random() < 0.3:
        return 3
    if player.random() < 0.5:
        return last
    return int(player.integers(len(game.minimal_action_set())))


def aligned(name: str, drawn: list[float], count: int) -> np.ndarray:
    """What a step drew, where our step looks for it; the rest is not looked at."""
    chance = np.full(count, 0.5)
    if name == "seaquest" and len(drawn) == 3:  # a diver came and no enemy
        chance[0], chance[4:] = drawn[0], drawn[1:]
    else:
        assert len(drawn) in (1, count, 3 if name == "asterix" else 4)
        chance[: len(drawn)] = drawn
    return chance


class Crowd(NamedTuple):
    """A crowded sea, thing by thing as the original's lists have it (the newest last), and what happens there."""

    player: list[int]
    shots: list[list]
    fish: list[list]
    submarines: list[list]
    divers: list[list]
    actions: list[int]
    observations: np.ndarray
    rewards: np.ndarray
    ends: np.ndarray


def play_crowd(seed: int, steps: int) -> Crowd:
    """This many things in so few cells that it matters who comes first; no newcomers, no end."""
    real, some = Environment("seaquest", sticky_action_prob=0.0), np.random.default_rng(seed)
    game, ways = real.env, some.random(3) < 0.5

    def places(count: int, *waits: int) -> list[list]:
        """In three rows and four columns, everybody in a row in the same direction, no two alike."""
        rows, columns = some.integers(3, size=count), some.integers(3, 7, size=count)
        each = [
            [int(x), int(y) + 3, bool(ways[y]), *(int(some.integers(wait)) for wait in waits)]
            for x, y in zip(columns, rows, strict=True)
        ]
        return [thing for place, thing in enumerate(each) if thing not in each[:place]]

    game.e_fish, game.e_subs = places(12, 3), places(8, 3, 3)
    row, column = int(some.integers(3, 6)), int(some.integers(3, 7))
    # Divers meet in opposite directions only: in the same one there are thirty steps between them.
    game.divers = [[int(some.integers(4, 7)), row, way, int(some.integers(6))] for way in (True, False)]
    game.f_bullets = [[column - 1, row, True], [column + 1, row, False]][:: some.choice([-1, 1])]
    game.sub_x, game.sub_y, game.sub_or, game.diver_count = player = [5, row, True, int(some.integers(4, 7))]
    game.e_spawn_timer = game.d_spawn_timer = 100
    game.move_speed, game.surface = 2, False
    start = [[list(thing) for thing in things] for things in (game.f_bullets, game.e_fish, game.e_subs, game.divers)]
    actions, seen, rewards, ends = some.integers(6, size=steps).tolist(), [], [], []
    for action in actions:
        game.terminal = False
        reward, over = real.act(action)
        seen.append(real.state())
        rewards.append(reward)
        ends.append(over)
    return Crowd(player, *start, actions, np.array(seen), np.array(rewards), np.array(ends))
