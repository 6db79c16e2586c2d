"""Key-to-Door: what happens at every step, and what chance draws."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.key_to_door import (
    DOOR,
    DOWN,
    LEFT,
    MIDDLE,
    PALETTES,
    RIGHT,
    UP,
    KeyToDoor,
    KeyToDoorConfig,
)
from paircredit.envs.protocol import Pixels
from paircredit.training.members import stack_members
from tests.sentences import refused

KEY = jax.random.key(0)
EPISODES = 4000
LOOKS = PALETTES["original"]

reset = jax.jit(KeyToDoor.reset)
step = jax.jit(KeyToDoor.step)


@pytest.fixture(scope="module")
def starts():
    """The beginnings of many episodes, for both layouts, with slips."""
    keys = jax.random.split(KEY, EPISODES)
    draw = jax.jit(lambda env: jax.vmap(env.reset)(keys)[0])
    return {layout: jax.device_get(draw(KeyToDoorConfig(layout=layout, slip=0.1).build())) for layout in LAYOUTS}


LAYOUTS = ("open", "walled")


def begin(env, **changes):
    """A first state with some of its fields replaced, so that everything about it is known."""
    state, _ = reset(env, KEY)
    quiet = {"slips": np.full(env.horizon, -1, np.int8), **changes}
    return dataclasses.replace(state, **{name: jnp.asarray(value) for name, value in quiet.items()})


def walk(env, state, actions):
    """The states and time steps that follow."""
    steps = []
    for action in actions:
        state, now = step(env, KEY, state, jnp.asarray(action))
        steps.append((state, jax.device_get(now)))
    return steps


def cells(now, colour):
    """Where the picture has a colour."""
    return [tuple(cell) for cell in np.argwhere(painted(now, colour)).tolist()]


def painted(now, colour):
    """The cells of a colour, as a mask."""
    return (np.asarray(now.observation.pixels) == np.array(colour)).all(axis=-1)


def place(*where):
    return np.array(where, np.int32)


def test_spec():
    spec = make_environment("key-to-door").spec
    assert (spec.name, spec.num_actions, spec.observation, spec.horizon) == (
        "key-to-door",
        4,
        Pixels(7, 11, 3, 1),
        120,
    )


def test_what_an_agent_sees():
    env = KeyToDoorConfig().build()
    state, now = reset(env, KEY)
    assert now.observation.pixels.shape == (7, 11, 3) and now.observation.pixels.dtype == jnp.uint8
    assert now.observation.flags.shape == (1,) and now.observation.flags.dtype == bool
    assert now.legal.tolist() == [True] * 4
    assert (float(now.reward), bool(now.terminated), bool(now.truncated)) == (0.0, False, False)
    assert cells(now, LOOKS.agent) == [tuple(state.agent.tolist())]
    assert cells(now, LOOKS.key) == [tuple(state.key.tolist())]


@pytest.mark.parametrize("layout, key_room", [("open", 25), ("walled", 23)])
def test_every_cell_of_every_room(layout, key_room):
    """The room of each phase by its size; everything around it is wall."""
    env = KeyToDoorConfig(layout=layout).build()
    for time, size, inside in ((0, key_room, (5, 5)), (15, 45, (5, 9)), (105, 9, (3, 3))):
        state = begin(env, time=np.int32(time - 1 if time else 0), agent=place(3, 5), key=place(1, 5))
        if time:
            _, now = step(env, KEY, state, jnp.asarray(UP))
        else:
            now = env._time_step(state, jnp.zeros(()))
        wall = np.ones((7, 11), bool)
        height, width = inside
        rows, columns = slice(3 - height // 2, 4 + height // 2), slice(5 - width // 2, 6 + width // 2)
        wall[rows, columns] = False
        if layout == "walled" and time == 0:
            wall[3, [3, 7]] = True
        if time == 105:
            wall[DOOR] = False
            assert cells(now, LOOKS.door) == [DOOR]
        np.testing.assert_array_equal(painted(now, LOOKS.wall), wall)
        assert (~wall).sum() == size + (time == 105)
        assert len(cells(now, LOOKS.agent)) == 1
        apples = int(state.apples.sum()) if time == 15 else 0
        assert len(cells(now, LOOKS.apple)) == apples
        assert len(cells(now, LOOKS.key)) == (time == 0)
        assert len(cells(now, LOOKS.floor)) == size - 1 - apples - (time == 0)


@pytest.mark.parametrize(
    "action, to", [(UP, (2, 5)), (DOWN, (4, 5)), (LEFT, (3, 4)), (RIGHT, (3, 6))], ids=["up", "down", "left", "right"]
)
def test_the_four_moves(action, to):
    env = KeyToDoorConfig().build()
    ((_, now),) = walk(env, begin(env, agent=place(3, 5), key=place(1, 3)), [action])
    assert cells(now, LOOKS.agent) == [to]


def test_walls_stop_the_agent():
    env = KeyToDoorConfig().build()
    start = begin(env, agent=place(2, 4), key=place(5, 7))
    for action, end in ((UP, (1, 4)), (DOWN, (5, 4)), (LEFT, (2, 3)), (RIGHT, (2, 7))):
        assert walk(env, start, [action] * 6)[-1][0].agent.tolist() == list(end)


def test_the_inner_wall_is_passed_through_its_gap():
    env = KeyToDoorConfig(layout="walled").build()
    for column in range(3, 8):
        state = begin(env, agent=place(4, column), key=place(1, 3 if column == 7 else 7))
        end = walk(env, state, [UP, UP])[-1][0].agent.tolist()
        assert end == [2 if 4 <= column <= 6 else 4, column]


def test_the_key_vanishes_when_walked_over_and_is_remembered():
    env = KeyToDoorConfig(key_steps=5, apple_steps=4, door_steps=4).build()
    steps = walk(env, begin(env, agent=place(3, 5), key=place(3, 6)), [LEFT, RIGHT, RIGHT, *[LEFT] * 10])
    assert [bool(now.observation.flags[0]) for _, now in steps] == [False, False, *[True] * 11]
    assert [len(cells(now, LOOKS.key)) for _, now in steps[:4]] == [1, 1, 0, 0]
    assert cells(steps[3][1], LOOKS.agent) == [(3, 5)], "next to where the key had been"
    assert all(float(now.reward) == 0 for _, now in steps[:5])


def test_a_key_taken_with_the_last_step_of_its_phase_counts():
    env = KeyToDoorConfig(key_steps=1).build()
    ((state, now),) = walk(env, begin(env, agent=place(3, 5), key=place(3, 6)), [RIGHT])
    assert state.has_key and now.observation.flags[0]
    ((state, _),) = walk(env, begin(env, time=np.int32(1), agent=place(3, 5), key=place(3, 6)), [RIGHT])
    assert not state.has_key, "the cell where the key had been means nothing in the apple phase"


def test_phases_switch_at_the_right_step():
    env = KeyToDoorConfig().build()
    start = begin(env, agent=place(1, 3), key=place(5, 7))
    state, rooms = start, []
    for time in range(1, 121):
        state, now = step(env, KEY, state, jnp.asarray(UP))
        rooms.append(int((~painted(now, LOOKS.wall)).sum()))
        assert bool(now.terminated) == (time == 120) and not now.truncated
        if time == 15:
            assert cells(now, LOOKS.agent) == [tuple(start.apple_start.tolist())]
            assert len(cells(now, LOOKS.apple)) == start.apples.sum()
        if time == 105:
            assert cells(now, LOOKS.agent) == [MIDDLE]
    assert rooms == [25] * 14 + [45] * 90 + [10] * 16


def test_other_phase_lengths():
    env = KeyToDoorConfig(key_steps=2, apple_steps=3, door_steps=1, horizon=6).build()
    rooms = [int((~painted(now, LOOKS.wall)).sum()) for _, now in walk(env, begin(env), [UP] * 6)]
    assert env.spec.horizon == 6 and rooms == [25, 45, 45, 45, 10, 10]


def test_apples_pay_once_and_never_come_back():
    env = KeyToDoorConfig().build()
    apples = np.zeros((7, 11), bool)
    apples[2, [3, 5]] = apples[3, 3] = True
    payouts = np.where(apples, np.arange(77, dtype=np.float32).reshape(7, 11), 0)
    state = begin(env, time=np.int32(20), agent=place(2, 2), apples=apples, payouts=payouts)
    steps = walk(env, state, [RIGHT, RIGHT, RIGHT, LEFT, LEFT, RIGHT, LEFT, DOWN, UP])
    assert [float(now.reward) for _, now in steps] == [25, 0, 27, 0, 0, 0, 0, 36, 0]
    assert [len(cells(now, LOOKS.apple)) for _, now in steps] == [2, 2, 1, 1, 1, 1, 1, 0, 0]


def test_apples_are_not_eaten_in_other_phases():
    env = KeyToDoorConfig().build()
    everywhere = {"apples": np.ones((7, 11), bool), "payouts": np.ones((7, 11), np.float32)}
    for time in (0, 14, 105, 119):
        ((state, now),) = walk(env, begin(env, time=np.int32(time), agent=place(3, 5), **everywhere), [DOWN])
        assert float(now.reward) == 0 and state.apples.all()


def test_the_door_needs_the_key():
    env = KeyToDoorConfig(door_reward=7.0).build()
    for has_key in (False, True):
        state = begin(env, time=np.int32(105), agent=place(3, 5), has_key=has_key)
        steps = walk(env, state, [UP, UP, UP, DOWN, DOWN, UP, UP])
        rows = [int(state.agent[0]) for state, _ in steps]
        doors = [len(cells(now, LOOKS.door)) for _, now in steps]
        rewards = [float(now.reward) for _, now in steps]
        if has_key:
            assert (rows, doors) == ([2, 1, 1, 2, 3, 2, 1], [1, 0, 0, 0, 0, 0, 0])
            assert rewards == [0, 7, 0, 0, 0, 0, 0], "it pays once"
            assert steps[-1][1].observation.flags[0], "the key stays"
        else:
            assert (rows, doors, rewards) == ([2, 2, 2, 3, 4, 3, 2], [1] * 7, [0] * 7)


def test_slips_replace_the_action():
    env = KeyToDoorConfig().build()
    slips = np.full(120, -1, np.int8)
    slips[:3] = [DOWN, -1, LEFT]
    state = dataclasses.replace(begin(env, agent=place(3, 5), key=place(1, 3)), slips=jnp.asarray(slips))
    assert [s.agent.tolist() for s, _ in walk(env, state, [UP, UP, RIGHT])] == [[4, 5], [3, 5], [3, 4]]


def test_how_often_and_where_to_the_agent_slips(starts):
    slips = starts["open"].slips
    assert slips.dtype == np.int8 and slips.shape == (EPISODES, 120)
    assert abs((slips >= 0).mean() - 0.1) < 5 * np.sqrt(0.09 / slips.size)
    directions = np.bincount(slips[slips >= 0], minlength=4)
    assert len(directions) == 4
    assert np.abs(directions / directions.sum() - 0.25).max() < 5 * np.sqrt(0.1875 / directions.sum())
    for rate, slipping in ((0.0, False), (1.0, True)):
        state, _ = reset(KeyToDoorConfig(slip=rate).build(), KEY)
        assert ((state.slips >= 0) == slipping).all()


def assert_uniform(counts):
    """No cell is drawn more or less often than chance allows."""
    expected = counts.sum() / counts.size
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_where_agent_and_key_begin(starts):
    counts = np.zeros((2, 7, 11))
    for kind, where in enumerate((starts["open"].agent, starts["open"].key)):
        np.add.at(counts[kind], tuple(where.T), 1)
    assert (starts["open"].agent != starts["open"].key).any(axis=1).all()
    for kind in counts:
        assert_uniform(kind[1:6, 3:8])
        assert kind[1:6, 3:8].sum() == EPISODES


def test_where_agent_and_key_begin_with_a_wall_between_them(starts):
    counts = np.zeros((2, 7, 11))
    for kind, where in enumerate((starts["walled"].agent, starts["walled"].key)):
        np.add.at(counts[kind], tuple(where.T), 1)
    assert_uniform(counts[0, 4:6, 3:8])
    assert_uniform(counts[1, 1:3, 3:8])
    assert counts[0, 4:6, 3:8].sum() == counts[1, 1:3, 3:8].sum() == EPISODES


def test_how_many_apples_lie_where(starts):
    apples, start = starts["open"].apples, starts["open"].apple_start
    number = np.bincount(apples.sum(axis=(1, 2)), minlength=20)
    assert len(number) == 20 and number[0] == 0
    assert_uniform(number[1:])
    assert_uniform(apples.sum(axis=0)[1:6, 1:10].astype(float))
    assert apples[:, 1:6, 1:10].sum() == apples.sum()
    assert not apples[np.arange(EPISODES), start[:, 0], start[:, 1]].any()
    counts = np.zeros((7, 11))
    np.add.at(counts, tuple(start.T), 1)
    assert_uniform(counts[1:6, 1:10])
    assert counts[1:6, 1:10].sum() == EPISODES


@pytest.mark.parametrize("fewest, most", [(0, 0), (44, 44), (3, 4)])
def test_other_numbers_of_apples(fewest, most):
    env = KeyToDoorConfig(fewest_apples=fewest, most_apples=most).build()
    states, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(KEY, 64))
    numbers = states.apples.sum(axis=(1, 2))
    assert set(numbers.tolist()) == set(range(fewest, most + 1))


@pytest.mark.parametrize("mean, variance", [(1.0, 0.0), (5.0, 25.0), (5.0, 100.0), (10.0, 25.0), (1.0, 100.0)])
def test_what_apples_pay(mean, variance):
    """Mean μ and variance σ², of two values only."""
    env = KeyToDoorConfig(mean=mean, variance=variance).build()
    states = jax.device_get(RESET_MANY(env))
    paid = states.payouts[:, 1:6, 1:10].reshape(-1).astype(float)
    scale = variance / mean**2 + 1
    np.testing.assert_allclose(np.unique(paid), [0, mean * scale] if variance else [mean], rtol=1e-6)
    assert abs(paid.mean() - mean) <= 5 * np.sqrt(variance / len(paid)) + 1e-5
    fourth = (mean * scale - mean) ** 4 / scale + mean**4 * (1 - 1 / scale)
    assert abs(np.mean((paid - mean) ** 2) - variance) <= 5 * np.sqrt((fourth - variance**2) / len(paid)) + 1e-5


RESET_MANY = jax.jit(lambda env: jax.vmap(env.reset)(jax.random.split(KEY, EPISODES))[0])


def test_members_with_different_data_share_a_program():
    settings = ((1.0, 0.0, 0.0), (5.0, 25.0, 0.1), (10.0, 100.0, 1.0))
    envs = [KeyToDoorConfig(mean=m, variance=v, slip=p).build() for m, v, p in settings]
    keys, actions = jax.random.split(KEY, 8), jax.random.randint(KEY, (120,), 0, 4)

    def roll(env, key):
        first, _ = env.reset(key)
        return jax.lax.scan(lambda state, action: env.step(key, state, action), first, actions)[1]

    one = jax.jit(jax.vmap(roll, in_axes=(None, 0)))
    together = jax.jit(jax.vmap(jax.vmap(roll, in_axes=(None, 0)), in_axes=(0, None)))(stack_members(envs), keys)
    assert together.observation.pixels.shape == (3, 8, 120, 7, 11, 3)
    for index, env in enumerate(envs):
        alone = one(env, keys)
        jax.tree.map(lambda a, b, i=index: np.testing.assert_array_equal(a[i], b), together, alone)
        values = np.unique(alone.reward)
        allowed = [0, 10, float(env.mean) * (float(env.variance) / float(env.mean) ** 2 + 1)]
        assert np.isclose(values[:, None], allowed).any(axis=1).all()


def test_all_of_it_in_float64(x64):
    env = KeyToDoorConfig(slip=0.5).build()
    state, now = reset(env, KEY)
    assert now.reward.dtype == state.payouts.dtype == jnp.float64
    assert state.time.dtype == state.agent.dtype == state.key.dtype == jnp.int32
    following, after = step(env, KEY, state, jnp.asarray(UP))
    assert after.reward.dtype == jnp.float64
    assert [x.dtype for x in jax.tree.leaves(following)] == [x.dtype for x in jax.tree.leaves(state)]


def test_step_uses_no_random_numbers():
    """Its key is never read: the program of a step holds no generator."""
    env = KeyToDoorConfig(slip=0.1).build()
    state, _ = reset(env, KEY)
    program = str(jax.make_jaxpr(env.step)(KEY, state, jnp.asarray(UP)))
    assert "random" not in program and "threefry" not in program


@pytest.mark.parametrize(
    "settings, mentions",
    [
        ({"mean": 0.0}, ("mean is 0.0", "between 1e-15 and 1e+15")),
        ({"mean": -1.0}, ("mean is -1.0",)),
        ({"mean": float("nan")}, ("mean is nan", "finite")),
        ({"mean": 1e39, "variance": 0.0}, ("mean is 1e+39", "between 1e-15 and 1e+15")),
        ({"mean": 1e-46, "variance": 0.0}, ("mean is 1e-46", "between 1e-15 and 1e+15")),
        ({"mean": 1e14, "variance": 1e300}, ("variance is 1e+300", "between 0 and 1e+30")),
        ({"door_reward": -1e39}, ("door_reward is -1e+39",)),
        ({"variance": -1.0}, ("variance is -1.0", "between 0 and 1e+30")),
        ({"variance": float("inf")}, ("variance is inf", "finite")),
        ({"mean": 0.01, "variance": 25.0}, ("mean 0.01", "variance 25.0", "10,000")),
        ({"slip": 1.1}, ("slip is 1.1", "between 0 and 1")),
        ({"slip": -0.1}, ("slip is -0.1",)),
        ({"slip": float("nan")}, ("slip is nan", "finite")),
        ({"door_reward": float("inf")}, ("door_reward is inf", "finite")),
        ({"fewest_apples": -1}, ("-1 to 19 apples",)),
        ({"fewest_apples": 5, "most_apples": 4}, ("5 to 4 apples", "empty")),
        ({"most_apples": 45}, ("1 to 45 apples", "44")),
        ({"key_steps": 0}, ("key_steps is 0", "between 1 and 500,000,000")),
        ({"apple_steps": -3}, ("apple_steps is -3",)),
        ({"door_steps": 0}, ("door_steps is 0",)),
        ({"apple_steps": 10**20}, ("apple_steps is 1000", "between 1 and 500,000,000")),
        ({"horizon": 100}, ("horizon is 100", "15, 90 and 15", "120")),
        ({"horizon": -1}, ("horizon is -1",)),
        ({"layout": "maze"}, ("layout is 'maze'", "'open' or 'walled'")),
        ({"palette": "neon"}, ("palette is 'neon'", "'original' or 'dark'")),
    ],
)
def test_impossible_settings_are_refused(settings, mentions, users_view):
    with refused(*mentions):
        KeyToDoorConfig(**settings).build()


def test_the_horizon_may_be_said():
    assert KeyToDoorConfig(horizon=120).build().horizon == 120


def test_palettes_paint_the_same_map_in_other_colours():
    """Cell by cell; and members with different palettes share a program, for colours are data."""
    original, dark = (KeyToDoorConfig(palette=name).build() for name in PALETTES)
    pictures = [np.asarray(reset(env, KEY)[1].observation.pixels).reshape(-1, 3).tolist() for env in (original, dark)]
    meaning = dict(zip(PALETTES["original"], PALETTES["dark"], strict=True))
    assert [meaning[tuple(colour)] for colour in pictures[0]] == [tuple(colour) for colour in pictures[1]]
    assert stack_members([original, dark]).colours.shape == (2, 6, 3)
