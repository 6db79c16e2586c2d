"""Seaquest: the original's rules, for the device.

Things of a kind lie in a short buffer, the newest first; a new one pushes the others back, and what falls off the end
has long left the picture. The order is that of the original's lists, which decides who is hit where several could be.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from paircredit.envs.minatar.game import SIZE, ahead, columns, inside, layers, moved, uniform_int

ENEMIES, SHOTS, DIVERS = 32, 3, 3
"""Enemies cross in 30 steps or more and come one a step at most; own bullets and divers are two at most."""
FULL_OXYGEN = 200
FULL_BOAT = 6
"""Divers that fit in."""
FIRST_SPAWN_SPEED, FIRST_MOVE_SPEED = 20, 5
DIVER_EVERY, DIVER_MOVES_EVERY = 30, 5
RELOAD, ENEMY_RELOAD = 5, 10
ROWS = SIZE - 2
"""Rows of water, below the surface and above the gauges."""


class Things(eqx.Module):
    """Bullets, divers or enemies; those that are dead may hold anything."""

    x: Int[Array, "*N"]
    y: Int[Array, "*N"]
    right: Bool[Array, "*N"]
    alive: Bool[Array, "*N"]
    wait: Int[Array, "*N"]
    """Steps until a diver or an enemy moves."""
    submarine: Bool[Array, "*N"]
    """Of enemies; the others are fish."""
    reload: Int[Array, "*N"]
    """Steps until a submarine shoots."""

    @property
    def ahead(self) -> Int[Array, "*N"]:
        """The column in front."""
        return ahead(self.x, self.right)

    @property
    def after(self) -> Int[Array, "*N"]:
        """The column after, where the trail is."""
        return ahead(self.x, ~self.right)


class SeaquestState(eqx.Module):
    """The whole state of the game; names of the original are in brackets where they differ."""

    x: Int[Array, ""]
    y: Int[Array, ""]
    right: Bool[Array, ""]
    """The player looks right (`sub_or`)."""
    oxygen: Int[Array, ""]
    saved: Int[Array, ""]
    """Divers on board (`diver_count`); −1 after a full boat was unloaded, as in the original."""
    at_surface: Bool[Array, ""]
    reload: Int[Array, ""]
    """Steps until the player can shoot (`shot_timer`)."""
    enemy_timer: Int[Array, ""]
    diver_timer: Int[Array, ""]
    spawn_speed: Int[Array, ""]
    move_speed: Int[Array, ""]
    ramp_index: Int[Array, ""]
    shots: Things
    enemy_shots: Bool[Array, "2 10 10"]
    """Those that go left and those that go right, as pictures: nothing else about them matters."""
    enemies: Things
    divers: Things


@dataclasses.dataclass(frozen=True)
class Seaquest:
    """Shoot what comes, pick up divers, go up before the oxygen ends, but not without a diver."""

    ramping: bool
    name: ClassVar[str] = "seaquest"
    actions: ClassVar[tuple[int, ...]] = (0, 1, 2, 3, 4, 5)
    channels: ClassVar[int] = 10
    start_chances: ClassVar[int] = 0
    step_chances: ClassVar[int] = 5

    def start(self, chance: Float[Array, " 0"]) -> SeaquestState:
        return SeaquestState(
            x=jnp.int32(5),
            y=jnp.int32(0),
            right=jnp.bool_(False),
            oxygen=jnp.int32(FULL_OXYGEN),
            saved=jnp.int32(0),
            at_surface=jnp.bool_(True),
            reload=jnp.int32(0),
            enemy_timer=jnp.int32(FIRST_SPAWN_SPEED),
            diver_timer=jnp.int32(DIVER_EVERY),
            spawn_speed=jnp.int32(FIRST_SPAWN_SPEED),
            move_speed=jnp.int32(FIRST_MOVE_SPEED),
            ramp_index=jnp.int32(0),
            shots=_none(SHOTS),
            enemy_shots=jnp.zeros((2, SIZE, SIZE), dtype=bool),
            enemies=_none(ENEMIES),
            divers=_none(DIVERS),
        )

    def step(
        self, state: SeaquestState, action: Int[Array, ""], chance: Float[Array, " 5"]
    ) -> tuple[SeaquestState, Float[Array, ""], Bool[Array, ""]]:
        """Chance: a new enemy from the left? a submarine? its row; a new diver from the left? its row."""
        enemies, divers = _new_enemy(state, chance[:3]), _new_diver(state, chance[3:])
        enemy_timer = jnp.where(state.enemy_timer == 0, state.spawn_speed, state.enemy_timer)
        diver_timer = jnp.where(state.diver_timer == 0, DIVER_EVERY, state.diver_timer)

        fires = (action == 5) & (state.reload == 0)
        shots = _push(state.shots, _thing(state.x, state.y, state.right), fires)
        reload = jnp.where(fires, RELOAD, state.reload)
        x = moved(state.x, action == 1, action == 3, 0, SIZE - 1)
        y = moved(state.y, action == 2, action == 4, 0, SIZE - 2)
        right = jnp.where(action == 1, False, jnp.where(action == 3, True, state.right))

        shots, enemies, shot_first = _shoot(shots, enemies)
        divers, saved = _pick_up(divers, state.saved, x, y)
        shooting = enemies.alive & enemies.submarine & (enemies.reload == 0)
        shots, enemies, shot_submarines, hit_submarine = _swim(
            shots, enemies, enemies.submarine, state.move_speed, x, y
        )
        # A submarine that was hit in this very step still shoots: so it does in the original.
        enemy_shots, hit_bullet = _shoot_back(state.enemy_shots, enemies, shooting, x, y)
        enemies = dataclasses.replace(enemies, reload=jnp.where(shooting, ENEMY_RELOAD, enemies.reload - 1))
        shots, enemies, shot_fish, hit_fish = _swim(shots, enemies, ~enemies.submarine, state.move_speed, x, y)

        under_water = y > 0
        arrives = ~under_water & ~state.at_surface
        rises = arrives & (saved != 0)
        full = rises & (saved == FULL_BOAT)
        bonus = jnp.where(full, state.oxygen * 10 // FULL_OXYGEN, 0)
        over = hit_submarine | hit_bullet | hit_fish | (state.oxygen <= 0) | (arrives & (saved == 0))
        harder = rises & self.ramping & ((state.spawn_speed > 1) | (state.move_speed > 2))
        faster = harder & (state.move_speed > 2) & (state.ramp_index % 2 == 1)
        after = SeaquestState(
            x=x,
            y=y,
            right=right,
            oxygen=jnp.where(under_water, state.oxygen - 1, jnp.where(rises, FULL_OXYGEN, state.oxygen)),
            saved=jnp.where(rises, jnp.where(full, 0, saved) - 1, saved),
            at_surface=~under_water & (state.at_surface | rises),
            reload=jnp.maximum(reload - 1, 0),
            enemy_timer=jnp.maximum(enemy_timer - 1, 0),
            diver_timer=jnp.maximum(diver_timer - 1, 0),
            spawn_speed=jnp.where(harder, jnp.maximum(state.spawn_speed - 1, 1), state.spawn_speed),
            move_speed=jnp.where(faster, state.move_speed - 1, state.move_speed),
            ramp_index=jnp.where(harder, state.ramp_index + 1, state.ramp_index),
            shots=shots,
            enemy_shots=enemy_shots,
            enemies=enemies,
            divers=divers,
        )
        paid = shot_first + shot_submarines + shot_fish + bonus
        return after, paid.astype(float), over

    def picture(self, state: SeaquestState) -> Bool[Array, "10 10 C"]:
        """Front, back, own bullets, trails, their bullets, fish, submarines, oxygen, divers on board, divers."""
        player = jax.tree.map(lambda x: x[None], _thing(state.x, state.y, state.right))
        column, bottom = columns(), columns()[:, None] == SIZE - 1
        enemies, divers = state.enemies, state.divers
        return layers(
            _mark(player, player.alive),
            _mark(player, player.alive, player.after),
            _mark(state.shots, state.shots.alive),
            _mark(enemies, enemies.alive, enemies.after) | _mark(divers, divers.alive, divers.after),
            jnp.any(state.enemy_shots, axis=0),
            _mark(enemies, enemies.alive & ~enemies.submarine),
            _mark(enemies, enemies.alive & enemies.submarine),
            bottom & (column < jnp.maximum(state.oxygen, 0) * 10 // FULL_OXYGEN),
            bottom & (column >= SIZE - 1 - state.saved) & (column < SIZE - 1),
            _mark(divers, divers.alive),
        )


def _new_enemy(state: SeaquestState, chance: Float[Array, " 3"]) -> Things:
    """A new enemy from the left or the right, but not into a row where another goes the other way."""
    right, submarine, row = chance[0] < 1 / 2, chance[1] < 1 / 3, 1 + uniform_int(chance[2], ROWS)
    here = state.enemies
    blocked = jnp.any(here.alive & (here.y == row) & (here.right != right))
    new = _thing(jnp.where(right, 0, SIZE - 1), row, right, state.move_speed, submarine, ENEMY_RELOAD)
    return _push(here, new, (state.enemy_timer == 0) & ~blocked)


def _new_diver(state: SeaquestState, chance: Float[Array, " 2"]) -> Things:
    right = chance[0] < 1 / 2
    new = _thing(jnp.where(right, 0, SIZE - 1), 1 + uniform_int(chance[1], ROWS), right, DIVER_MOVES_EVERY)
    return _push(state.divers, new, state.diver_timer == 0)


def _shoot(shots: Things, enemies: Things) -> tuple[Things, Things, Int[Array, ""]]:
    """The player's bullets fly; each, the newest first, hits the oldest fish where it is, else the oldest submarine."""
    x = shots.ahead
    shots = dataclasses.replace(shots, x=x, alive=shots.alive & inside(x))
    priority = jnp.arange(ENEMIES, dtype=jnp.int32) + jnp.where(enemies.submarine, 0, ENEMIES)
    shots, hit = _strike(shots, enemies, enemies.alive, priority, range(SHOTS))
    return shots, _without(enemies, hit), jnp.sum(hit, dtype=jnp.int32)


def _shoot_back(
    flying: Bool[Array, "2 10 10"],
    enemies: Things,
    shooting: Bool[Array, " N"],
    x: Int[Array, ""],
    y: Int[Array, ""],
) -> tuple[Bool[Array, "2 10 10"], Bool[Array, ""]]:
    """The enemies' bullets with those that are shot now, one column on; and whether one hits the player on its way."""
    fresh = jnp.stack([_mark(enemies, shooting & ~enemies.right), _mark(enemies, shooting & enemies.right)])
    before = flying | fresh
    after = jnp.stack([_shifted(before[0], -1), _shifted(before[1], 1)])
    return after, jnp.any(before[:, y, x]) | jnp.any(after[:, y, x])


def _swim(
    shots: Things, enemies: Things, kind: Bool[Array, " N"], speed: Int[Array, ""], x: Int[Array, ""], y: Int[Array, ""]
) -> tuple[Things, Things, Int[Array, ""], Bool[Array, ""]]:
    """Enemies of a kind move, the newest first, into the player or into the oldest bullet where they go."""
    kind = kind & enemies.alive
    met = jnp.any(kind & (enemies.x == x) & (enemies.y == y))
    moves = kind & (enemies.wait == 0)
    places = jnp.where(moves, enemies.ahead, enemies.x)
    waits = jnp.where(moves, speed, enemies.wait - 1)
    enemies = dataclasses.replace(
        enemies, x=places, wait=jnp.where(kind, waits, enemies.wait), alive=enemies.alive & inside(places)
    )
    meets = moves & enemies.alive & (enemies.x == x) & (enemies.y == y)
    priority = jnp.arange(ENEMIES, 0, -1, dtype=jnp.int32)
    shots, hit = _strike(shots, enemies, moves & enemies.alive & ~meets, priority, reversed(range(SHOTS)))
    return shots, _without(enemies, hit), jnp.sum(hit, dtype=jnp.int32), met | jnp.any(meets)


def _strike(
    shots: Things, enemies: Things, there: Bool[Array, " N"], priority: Int[Array, " N"], order: Iterable[int]
) -> tuple[Things, Bool[Array, " N"]]:
    """Bullets in this order strike one enemy each where they are, that with the highest priority.

    It does not matter whether bullets look for enemies or enemies for bullets: who comes first meets who comes first.
    """
    left, spent = there, shots.alive & False
    for number in order:
        at = left & shots.alive[number] & (enemies.x == shots.x[number]) & (enemies.y == shots.y[number])
        struck = at & (priority == jnp.max(jnp.where(at, priority, -1)))
        left &= ~struck
        spent = spent.at[number].set(jnp.any(at))
    return _without(shots, spent), there & ~left


def _pick_up(
    divers: Things, saved: Int[Array, ""], x: Int[Array, ""], y: Int[Array, ""]
) -> tuple[Things, Int[Array, ""]]:
    """Divers move; who is at the player before or after it comes aboard, the newest first, while there is room."""
    moves = divers.alive & (divers.wait == 0)
    places = jnp.where(moves, divers.ahead, divers.x)
    met = divers.alive & (divers.y == y) & ((divers.x == x) | (places == x))
    counts = met.astype(jnp.int32)
    aboard = met & (saved + jnp.cumsum(counts, dtype=jnp.int32) - counts < FULL_BOAT)
    divers = dataclasses.replace(
        divers,
        x=places,
        wait=jnp.where(moves, DIVER_MOVES_EVERY, divers.wait - 1),
        alive=divers.alive & inside(places) & ~aboard,
    )
    return divers, saved + jnp.sum(aboard, dtype=jnp.int32)


def _push(things: Things, new: Things, where: Bool[Array, ""]) -> Things:
    """The buffer with the new thing in front, if there is one."""
    return jax.tree.map(lambda old, x: jnp.where(where, jnp.concatenate([x[None], old[:-1]]), old), things, new)


def _without(things: Things, dead: Bool[Array, " N"]) -> Things:
    return dataclasses.replace(things, alive=things.alive & ~dead)


def _shifted(shots: Bool[Array, "10 10"], by: int) -> Bool[Array, "10 10"]:
    """All shots moved by one column; those that leave the picture are gone."""
    nothing = jnp.zeros((SIZE, 1), dtype=bool)
    return jnp.hstack([nothing, shots[:, :-1]]) if by > 0 else jnp.hstack([shots[:, 1:], nothing])


def _mark(things: Things, wanted: Bool[Array, " N"], x: Int[Array, " N"] | None = None) -> Bool[Array, "10 10"]:
    """A picture of the wanted things; those outside it are not drawn.

    Rows are drawn as bits of a number, which takes a tenth of the comparisons.
    """
    x = things.x if x is None else x
    bits = jnp.where(wanted & inside(x), jnp.left_shift(jnp.int32(1), x), 0)
    by_row = jnp.where(things.y[:, None] == columns(), bits[:, None], 0)
    rows = jax.lax.reduce(by_row, jnp.int32(0), jax.lax.bitwise_or, (0,))
    return jnp.right_shift(rows[:, None], columns()) & 1 > 0


def _thing(
    x: Int[Array, ""],
    y: Int[Array, ""],
    right: Bool[Array, ""],
    wait: int | Int[Array, ""] = 0,
    submarine: bool | Bool[Array, ""] = False,
    reload: int = 0,
) -> Things:
    number, flag = partial(jnp.asarray, dtype=jnp.int32), partial(jnp.asarray, dtype=bool)
    return Things(number(x), number(y), flag(right), flag(True), number(wait), flag(submarine), number(reload))


def _none(count: int) -> Things:
    one = _thing(jnp.int32(0), jnp.int32(0), jnp.bool_(False))
    return jax.tree.map(lambda x: jnp.zeros(count, dtype=x.dtype), one)
