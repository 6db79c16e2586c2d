"""Key-to-Door drawn for people."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.key_to_door_players import optimal_player, play
from paircredit.envs.key_to_door_render import render
from paircredit.types import PixelObservation
from tests.sentences import refused


@pytest.fixture(scope="module")
def frames():
    """The observations of one good episode."""
    env = KeyToDoorConfig(fewest_apples=5, most_apples=5).build()
    episode = jax.device_get(jax.jit(lambda key: play(env, optimal_player, key, 1))(jax.random.key(0)))
    return [jax.tree.map(lambda x, t=t: jnp.asarray(x[0, t]), episode.observations) for t in range(121)]


@pytest.mark.parametrize("scale", [4, 7, 32])
def test_pictures_are_bytes_of_the_right_size(frames, scale):
    picture = render(frames[0], scale)
    assert picture.shape == (7 * scale, 11 * scale, 3) and picture.dtype == np.uint8


def test_equal_cells_look_equal_and_others_differ(frames):
    for frame in (frames[0], frames[15], frames[105], frames[120]):
        pixels, picture = np.asarray(frame.pixels), render(frame, 12)
        tiles = picture.reshape(7, 12, 11, 12, 3).swapaxes(1, 2)
        seen: dict[tuple, np.ndarray] = {}
        for row in range(7):
            for column in range(11):
                tile = seen.setdefault(tuple(pixels[row, column].tolist()), tiles[row, column])
                np.testing.assert_array_equal(tile, tiles[row, column])
        assert len({tile.tobytes() for tile in seen.values()}) == len(seen) >= 3


def test_who_has_the_key_carries_it(frames):
    without, carrying = (PixelObservation(frames[105].pixels, jnp.array([flag])) for flag in (False, True))
    differs = (render(without) != render(carrying)).any(axis=-1)
    rows, columns = np.nonzero(differs)
    assert differs.any() and set(rows // 32) == {3} and set(columns // 32) == {5}


def test_too_small_a_scale_is_refused(frames):
    with refused("scale is 3", "at least 4"):
        render(frames[0], 3)


def test_a_picture_of_something_else_is_refused(frames):
    strange = PixelObservation(frames[0].pixels.at[2, 4].set(jnp.array([1, 2, 3], jnp.uint8)), frames[0].flags)
    with refused("row 2, column 4", "(1, 2, 3)"):
        render(strange)
