"""The perception module for Atari against XLA's own convolutions."""

from __future__ import annotations

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.protocol import Pixels
from paircredit.networks import NetworkSpec
from paircredit.networks.perception import (
    LAYERS,
    NaturePerception,
    Perception,
    StridedConvolution,
    of_change,
    perception_of,
)
from paircredit.types import PixelObservation
from tests.rungs import nightly_but


def kernel_of(convolution: StridedConvolution, channels: int) -> jax.Array:
    """The matrix as a kernel [size, size, channels, filters]."""
    s, across = convolution.stride, convolution.size // convolution.stride
    filters = convolution.matrix.weight.shape[1]
    blocks = convolution.matrix.weight.reshape(across, across, s, s, channels, filters)
    return blocks.transpose(0, 2, 1, 3, 4, 5).reshape(convolution.size, convolution.size, channels, filters)


def convolved(x: jax.Array, kernel: jax.Array, stride: int) -> jax.Array:
    return jax.lax.conv_general_dilated(
        x[None], kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )[0]


@pytest.mark.parametrize(
    "size, stride, height, width", nightly_but([(4, 2, 9, 10)], [(8, 4, 20, 24), (4, 2, 9, 10), (3, 1, 5, 6)])
)
def test_patches_times_a_matrix_are_a_convolution(size, stride, height, width, x64):
    convolution = StridedConvolution.random(jax.random.key(0), 3, 5, size, stride)
    x = jax.random.normal(jax.random.key(1), (height, width, 3))
    expected = convolved(x, kernel_of(convolution, 3), stride)
    np.testing.assert_allclose(convolution(x), expected, rtol=1e-10, atol=1e-12)


def test_the_module_of_the_paper(x64):
    shown, spec = Pixels(84, 84, 4, 0), NetworkSpec(trunk=(512, 512))
    perception = jax.jit(lambda key: NaturePerception.random(key, shown, spec))(jax.random.key(0))
    pixels = np.random.default_rng(0).integers(0, 256, (84, 84, 4), dtype=np.uint8)
    x, channels = jnp.asarray(pixels / 255), 4
    for convolution, (filters, _, stride) in zip(perception.convolutions, LAYERS, strict=True):
        x = jax.nn.relu(convolved(x, kernel_of(convolution, channels), stride))
        channels = filters
    assert x.shape == (7, 7, 64)
    expected = jax.nn.relu(x.reshape(-1) @ perception.dense.weight + perception.dense.bias)
    found = jax.jit(lambda p, x: p(x))(perception, PixelObservation(jnp.asarray(pixels), jnp.zeros((0,), dtype=bool)))
    assert found.shape == (512,) and found.any()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    sizes = [leaf.size for leaf in jax.tree.leaves(perception)]
    assert sum(sizes) == 32 * (256 + 1) + 64 * (512 + 1) + 64 * (576 + 1) + 512 * (3136 + 1)


MEMBERS_AT_ONCE = """
import jax
from paircredit.envs.protocol import Pixels
from paircredit.networks import NetworkSpec
from paircredit.networks.perception import NaturePerception

def draw(key):
    return NaturePerception.random(key, Pixels(84, 84, 4, 0), NetworkSpec(trunk=(64, 64)))

keys = jax.random.split(jax.random.key(0), 4)
together, third = jax.block_until_ready(jax.jit(lambda k: (jax.vmap(draw)(k), draw(k[2])))(keys))
for name in ("dense.weight", "convolutions[1].matrix.weight"):
    weights = eval(f"together.{name}")
    assert weights.shape[0] == 4 and abs(weights[2] - eval(f"third.{name}")).max() < 1e-6, name
    assert abs(weights[3].T @ weights[3] / 2 - jax.numpy.eye(weights.shape[2])).max() < 1e-5, name
"""


@pytest.mark.nightly
def test_several_members_in_one_program():
    """On few cores, decompositions that wait for each other would wait for ever."""
    done = subprocess.run(
        [sys.executable, "-c", MEMBERS_AT_ONCE], capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 0, done.stderr


def test_a_change_goes_through_the_module_as_a_difference(x64):
    """As a picture would that held the difference; from a black picture the change is the picture."""
    shown, spec = Pixels(40, 36, 1, 0), NetworkSpec(trunk=(8, 7))
    perception = jax.jit(lambda key: NaturePerception.random(key, shown, spec))(jax.random.key(0))
    rng, none = np.random.default_rng(0), jnp.zeros((0,), dtype=bool)
    seen, before = (
        PixelObservation(jnp.asarray(rng.integers(0, 256, (40, 36, 1), dtype=np.uint8)), none) for _ in range(2)
    )
    x = (np.asarray(seen.pixels, dtype=float) - np.asarray(before.pixels, dtype=float)) / 255
    for convolution in perception.convolutions:
        x = jax.nn.relu(convolution(jnp.asarray(x)))
    expected = jax.nn.relu(perception.dense(x.reshape(-1)))
    black = PixelObservation(jnp.zeros_like(seen.pixels), none)
    found, first, whole = jax.jit(lambda p: (of_change(p, seen, before), of_change(p, seen, black), p(seen)))(
        perception
    )
    assert found.any()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(first, whole)


def test_large_pictures_are_seen_by_it_and_small_ones_are_not():
    def kind(side: int) -> type:
        shown = Pixels(side, side, 4, 0)
        return type(jax.eval_shape(lambda key: perception_of(key, shown, NetworkSpec()), jax.random.key(0)))

    assert kind(84) is kind(36) is NaturePerception and kind(10) is Perception
