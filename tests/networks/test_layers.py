"""Layers, the perception module and the networks on top of it: against JAX's own convolution and against formulas."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.protocol import EnvSpec, Pixels
from paircredit.networks import NetworkSpec, policy_for, value_for
from paircredit.networks.layers import Conv3x3, Dense, RowMatrix, fan_in_normal
from paircredit.networks.perception import Perception, prepare
from paircredit.networks.state_functions import PolicyNetwork, ValueNetwork, values_and_features
from paircredit.types import PixelObservation

SHAPE = Pixels(height=4, width=5, channels=3, flags=2)
SPEC = NetworkSpec(filters=(3, 4), picture_width=7, trunk=(6, 5), precision="float32")
LAYOUT = ("NHWC", "HWIO", "NHWC")


def generic(make, *arguments, seed: int = 0):
    """A module of the structure that `make` would give, no parameter of which is 0: what is 0 could be forgotten."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda key: make(key, *arguments), jax.random.key(0))
    return jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape) / np.sqrt(x.size), dtype=float), shapes)


def observations(*batch: int, seed: int = 0, shape: Pixels = SHAPE) -> PixelObservation:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (*batch, shape.height, shape.width, shape.channels), dtype=np.uint8)
    return PixelObservation(jnp.asarray(pixels), jnp.asarray(rng.integers(0, 2, (*batch, shape.flags)).astype(bool)))


def count(tree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def member(tree, index: int):
    return jax.tree.map(lambda x: x[index], tree)


class TestConvolution:
    @pytest.mark.parametrize(
        "height, width, channels, filters", [(7, 11, 3, 4), (1, 1, 2, 3), (4, 1, 1, 2), (1, 6, 2, 1)]
    )
    def test_values_and_gradients_are_those_of_the_convolution_of_jax(self, height, width, channels, filters, x64):
        conv = generic(Conv3x3.random, width, channels, filters)
        rng = np.random.default_rng(1)
        picture, cotangent = rng.normal(size=(height, width, channels)), rng.normal(size=(height, width, filters))

        def ours(weight, bias, x):
            return Conv3x3(weight, bias, width)(x.reshape(height, -1)).reshape(height, width, filters)

        def theirs(weight, bias, x):
            return jax.lax.conv_general_dilated(x[None], weight, (1, 1), "SAME", dimension_numbers=LAYOUT)[0] + bias

        def value_and_slopes(function, *arguments):
            value, pull_back = jax.vjp(function, *arguments)
            return value, *pull_back(jnp.asarray(cotangent))

        both = jax.jit(lambda *a: (value_and_slopes(ours, *a), value_and_slopes(theirs, *a)))
        for a, b in zip(*both(conv.weight, conv.bias, jnp.asarray(picture)), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)

    def test_the_matrix_is_the_layer(self):
        conv = generic(Conv3x3.random, 5, 2, 3)
        rows = jnp.asarray(np.random.default_rng(1).normal(size=(4, 10)), dtype=float)
        matrix = jax.jit(lambda c: c.as_matrix(jnp.dtype(jnp.float32)))(conv)
        assert isinstance(matrix, RowMatrix) and matrix.matrix.shape == (3 * 5 * 2, 5 * 3)
        np.testing.assert_allclose(matrix(rows), jax.jit(Conv3x3.__call__)(conv, rows), rtol=1e-6)
        assert jax.eval_shape(conv, jax.ShapeDtypeStruct((4, 10), jnp.bfloat16)).dtype == jnp.bfloat16


def test_a_dense_layer_is_a_product_and_a_sum():
    dense = Dense(jnp.array([[1.0, 2.0, 0.0], [0.0, -1.0, 4.0]]), jnp.array([0.5, 0.0, -1.0]))
    np.testing.assert_array_equal(dense(jnp.array([3.0, 2.0])), [3.5, 4.0, 7.0])
    np.testing.assert_array_equal(dense(jnp.array([[3.0, 2.0], [0.0, 0.0]])), [[3.5, 4.0, 7.0], [0.5, 0.0, -1.0]])
    assert dense(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16


class TestInitialisation:
    CUT_AT_TWO = 0.87962566
    """Deviation of a standard normal variable given that it lies within ±2."""

    @pytest.mark.parametrize("scale", [1.0, 0.01])
    def test_weights_are_normal_by_fan_in_and_cut_off_at_two_deviations(self, scale):
        numbers = np.asarray(fan_in_normal(jax.random.key(0), (100, 200), 25, scale)) / scale * 5.0
        assert 1.99 < np.abs(numbers).max() <= 2.0 + 1e-5
        assert abs(numbers.mean()) < 5 / np.sqrt(numbers.size)
        assert numbers.std() == pytest.approx(self.CUT_AT_TWO, rel=0.02)

    def test_every_layer_has_its_own_fan_in_and_its_own_numbers(self):
        """Biases of 0; the flags have the fan-in of the layer that they join; only a policy's last layer is scaled."""
        camera = EnvSpec("camera", 4, Pixels(2, 2, 4, 2), 3)
        make = jax.jit(lambda key, scale: policy_for(key, camera, NetworkSpec((16, 16), 400, (400, 400)), scale))
        one, other = make(jax.random.key(0), 1.0), make(jax.random.key(1), 0.01)
        layers = {name: getattr(one.perception, name) for name in ("first", "second", "picture", "joined", "last")}
        layers["head"] = one.head
        fan_ins = {"first": 9 * 4, "second": 9 * 16, "picture": 64, "joined": 402, "last": 400, "head": 400}
        for name, layer in layers.items():
            weight = np.asarray(layer.weight)
            assert weight.std() == pytest.approx(self.CUT_AT_TWO / np.sqrt(fan_ins[name]), rel=0.1)
            assert not layer.bias.any()
        assert np.asarray(one.perception.flags).std() == pytest.approx(self.CUT_AT_TWO / np.sqrt(402), rel=0.1)
        assert np.asarray(other.head.weight).std() == pytest.approx(0.01 * self.CUT_AT_TWO / 20, rel=0.1)
        assert np.asarray(other.perception.last.weight).std() == pytest.approx(self.CUT_AT_TWO / 20, rel=0.1)
        drawn = [np.asarray(leaf).ravel()[:500] for leaf in jax.tree.leaves((one, other)) if leaf.any()]
        alike = np.corrcoef(drawn) - np.eye(len(drawn))
        assert len(drawn) == 14 and np.abs(alike).max() < 0.3, "layers or seeds share their numbers"


def feature_sum(perception, seen):
    return jnp.sum(jnp.square(jax.vmap(perception)(seen)))


class TestPerception:
    def test_the_network_of_the_paper_by_its_formula(self):
        """Pictures 7×11×3 and one flag: conv 3→16, conv 16→32, 2464→512, 512+1→512, 512→256, a bias each."""
        shape = Pixels(7, 11, 3, 1)
        perception = jax.eval_shape(lambda key: Perception.random(key, shape, NetworkSpec()), jax.random.key(0))
        layers = (9 * 3 * 16 + 16, 9 * 16 * 32 + 32, 2464 * 512 + 512, 513 * 512 + 512, 512 * 256 + 256)
        assert count(perception) == sum(layers) == 1_661_664
        seen = observations(shape=shape)
        assert jax.eval_shape(lambda p: p(seen), perception).shape == (256,)

    def test_step_by_step(self, x64):
        """ReLU after every layer, pixels from 0 to 1, flags that join as if concatenated for one dense layer."""
        perception, seen = generic(Perception.random, SHAPE, SPEC), observations(6)
        convolve = jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAYOUT))
        x = np.asarray(seen.pixels, dtype=np.float64) / 255
        for conv in (perception.first, perception.second):
            x = np.maximum(np.asarray(convolve(jnp.asarray(x), conv.weight)) + np.asarray(conv.bias), 0)
        x = x.reshape(6, -1)
        joined = np.concatenate([perception.joined.weight, perception.flags])
        for weight, bias, beside in (
            (perception.picture.weight, perception.picture.bias, np.zeros((6, 0))),
            (joined, perception.joined.bias, np.asarray(seen.flags, dtype=np.float64)),
            (perception.last.weight, perception.last.bias, np.zeros((6, 0))),
        ):
            x = np.maximum(np.concatenate([x, beside], axis=1) @ np.asarray(weight) + np.asarray(bias), 0)
        features = jax.jit(jax.vmap(perception))(seen)
        assert features.shape == (6, 5) and (x > 0).any() and len(np.unique(x)) > 5
        np.testing.assert_allclose(features, x, rtol=1e-12)

    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    def test_prepared_it_is_the_same_function(self, precision):
        perception = generic(Perception.random, SHAPE, dataclasses.replace(SPEC, precision=precision))
        prepared = jax.jit(prepare)({"perception": perception, "other": jnp.ones(3)})
        assert isinstance(prepared["perception"].first, RowMatrix)
        assert prepared["perception"].second.matrix.dtype == jnp.dtype(precision)
        np.testing.assert_array_equal(prepared["other"], np.ones(3))
        apply = jax.jit(lambda p, seen: p(seen))
        features = apply(perception, observations())
        assert features.any()
        np.testing.assert_allclose(apply(prepared["perception"], observations()), features, rtol=1e-6)
        assert jax.tree.structure(prepare(prepared)) == jax.tree.structure(prepared)

    def test_bfloat16_between_the_layers_is_close_and_comes_back_as_float32(self):
        seen, results = observations(8), {}
        for precision in ("float32", "bfloat16", "auto"):
            perception = generic(Perception.random, SHAPE, dataclasses.replace(SPEC, precision=precision))
            results[precision] = jax.jit(jax.value_and_grad(feature_sum))(perception, seen)
            assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(results[precision]))
        low, high, auto = (jax.tree.leaves(results[name]) for name in ("bfloat16", "float32", "auto"))
        for a, b, c in zip(low, high, auto, strict=True):
            assert b.any()
            np.testing.assert_array_equal(c, b)  # on a CPU
            assert 0 < np.linalg.norm(a - b) < (0.02 if b.ndim == 0 else 0.2) * np.linalg.norm(b)

    def test_members_side_by_side_are_members_one_by_one(self, x64):
        members = [generic(Perception.random, SHAPE, SPEC, seed=seed) for seed in range(3)]
        seen = observations(3, 4)
        slopes = jax.value_and_grad(feature_sum)
        together = jax.jit(jax.vmap(slopes))(jax.tree.map(lambda *x: np.stack(x), *members), seen)
        alone = jax.jit(slopes)
        for index in range(3):
            expected = alone(members[index], member(seen, index))
            for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(expected), strict=True):
                assert b.any()
                np.testing.assert_allclose(a[index], b, rtol=1e-10, atol=1e-12)


class TestActorAndCritic:
    ENV = EnvSpec("camera", num_actions=4, observation=SHAPE, horizon=3)

    def test_heads_are_linear_in_the_features(self):
        policy = generic(policy_for, self.ENV, SPEC, 1.0, seed=1)
        value = generic(value_for, self.ENV, SPEC)
        assert isinstance(policy, PolicyNetwork) and isinstance(value, ValueNetwork)
        seen = observations(2, 4)
        values, features = jax.jit(values_and_features)(value, seen)
        np.testing.assert_allclose(features, jax.jit(jax.vmap(jax.vmap(value.perception)))(seen), rtol=1e-6)
        np.testing.assert_allclose(values, features @ value.head.weight[:, 0] + value.head.bias[0], rtol=1e-5)
        assert features.any() and values.shape == (2, 4) and features.shape == (2, 4, 5)
        logits, hidden = jax.jit(lambda p, x: (p(x), p.perception(x)))(policy, member(member(seen, 0), 0))
        np.testing.assert_allclose(logits, hidden @ policy.head.weight + policy.head.bias, rtol=1e-5)
