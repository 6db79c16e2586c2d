"""The pair network: the paper's formulas from features to weights, what it sees, and what it refuses."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.protocol import Discrete, EnvSpec, Pixels
from paircredit.networks import NetworkSpec
from paircredit.networks.state_functions import value_for, values_and_features
from paircredit.types import PixelObservation
from paircredit.weights import PairInputs, PairNetwork, SigmoidTable, weights_for
from paircredit.weights.pair_network import lag_encoding, pair_backend
from paircredit.weights.pairs import NORMALISER_EPSILON, dense_pair_logits, whole_pair_logits
from paircredit.weights.pairs.kernel import kernel_pair_logits
from paircredit.weights.pairs.tiled import tiled_pair_logits
from tests.sentences import refused

SPEC = NetworkSpec(filters=(2, 2), picture_width=4, trunk=(4, 5), pair_width=8, lag="scalar", precision="float32")
STEPS = 6
UPPER = np.triu_indices(STEPS)


def generic(network):
    """The same network with parameters of order 1, none of which is 0."""
    rng = np.random.default_rng(5)
    return jax.tree.map(lambda x: jnp.asarray(0.5 * rng.normal(size=x.shape), dtype=float), network)


def built(sees_signal: bool, spec: NetworkSpec = SPEC) -> PairNetwork:
    return generic(jax.eval_shape(lambda key: PairNetwork.random(key, STEPS, spec, sees_signal), jax.random.key(0)))


def episode(valid: int = STEPS, width: int = 5, seed: int = 0) -> PairInputs:
    rng = np.random.default_rng(seed)
    return PairInputs(
        observations=None,
        features=jnp.asarray(np.maximum(rng.normal(size=(STEPS + 1, width)), 0), dtype=float),
        signal=jnp.asarray([2.0, 0.1, -1.5, 0.0, -0.3, 0.7], dtype=float),
        valid=jnp.arange(STEPS) < valid,
    )


@jax.jit
def weights_of(network, inputs):
    return network(inputs)


class TestTheNetworkOfThePaper:
    @pytest.mark.parametrize("sees_signal", [False, True])
    @pytest.mark.parametrize("backend", ["dense", "tiled"])
    def test_pair_by_pair(self, sees_signal, backend, x64):
        """Rows see h_i, columns h_j (and the TD error δ_j, clipped), the rest as in the appendix."""
        network, seen = built(sees_signal, dataclasses.replace(SPEC, backend=backend)), episode()
        n, h, delta = jax.device_get((network, seen.features, seen.signal))
        pairs = [(i, j) for i in range(STEPS) for j in range(i + 1, STEPS + 1)]
        fused = {}
        for i, j in pairs:
            row = np.maximum(h[i] @ n.row.weight + n.row.bias, 0)
            beside = [min(max(delta[j - 1], -1), 1)] if sees_signal else []
            column = np.maximum(np.concatenate([h[j], beside]) @ n.column.weight + n.column.bias, 0)
            lag = (j - i) / STEPS * n.lag.weight[0] + n.lag.bias
            fused[i, j] = (row + 1) * (column + 1) * (lag + 1)
        assert len(pairs) == STEPS * (STEPS + 1) / 2
        mean = sum(fused.values()) / len(pairs)
        deviation = np.sqrt(sum((x - mean) ** 2 for x in fused.values()) / len(pairs) + NORMALISER_EPSILON)
        weights = np.asarray(weights_of(network, seen))
        for i, j in pairs:
            hidden = np.maximum(n.scale * (fused[i, j] - mean) / deviation + n.shift, 0)
            np.testing.assert_allclose(weights[i, j - 1], 1 / (1 + np.exp(-(hidden @ n.out + n.bias))), rtol=1e-12)
        assert (weights > 0).all() and (weights < 1).all() and np.ptp(weights[UPPER]) > 0.1

    def test_its_number_of_parameters(self):
        """256 features and channels: rows, columns (with the TD error), lags, γ, β, the output layer."""
        spec = NetworkSpec(lag="scalar")
        network = jax.eval_shape(lambda key: PairNetwork.random(key, 120, spec, True), jax.random.key(0))
        layers = (256 * 256 + 256, 257 * 256 + 256, 256 + 256, 256, 256, 256 + 1)
        assert sum(leaf.size for leaf in jax.tree.leaves(network)) == sum(layers)

    def test_all_pairs_start_near_one_half(self):
        """The output layer has deviation 0.01/√256 per channel, half of the channels are open: ±0.002 or so."""
        network = jax.jit(lambda key: PairNetwork.random(key, STEPS, NetworkSpec(), True))(jax.random.key(0))
        weights = np.asarray(weights_of(network, episode(width=256)))[UPPER]
        assert 1e-4 < np.abs(weights - 0.5).max() < 0.01
        assert len(np.unique(weights)) == len(weights)
        assert not network.bias and not network.shift.any() and (network.scale == 1).all()


class TestWhatItSees:
    @pytest.mark.parametrize("position, other, matters", [(0, 3.0, False), (2, -1.01, False), (1, 0.2, True)])
    def test_td_errors_are_clipped_to_one(self, position, other, matters):
        """2 and 3 look the same, −1.5 and −1.01 too; 0.1 and 0.2 do not."""
        network, seen = built(sees_signal=True), episode()
        changed = dataclasses.replace(seen, signal=seen.signal.at[position].set(other))
        one, two = weights_of(network, seen), weights_of(network, changed)
        assert (one != two).any() == matters

    def test_a_network_that_is_not_to_see_the_signal_does_not(self):
        network, seen = built(sees_signal=False), episode()
        without = dataclasses.replace(seen, signal=None)
        np.testing.assert_array_equal(weights_of(network, without), weights_of(network, seen))
        assert network.column.weight.shape == (5, 8) and built(sees_signal=True).column.weight.shape == (6, 8)

    def test_what_lies_after_the_end_of_an_episode_does_not_matter(self):
        """An episode of 4 steps has features[0] … features[4]."""
        network, seen = built(sees_signal=True), episode(valid=4)
        after = dataclasses.replace(seen, features=seen.features.at[5:].set(7.0), signal=seen.signal.at[4:].set(0.9))
        one, two = np.asarray(weights_of(network, seen)), np.asarray(weights_of(network, after))
        np.testing.assert_array_equal(one[:4, :4], two[:4, :4])
        whole = np.asarray(weights_of(network, episode()))
        assert (one[:4, :4][np.triu_indices(4)] != whole[:4, :4][np.triu_indices(4)]).all(), (
            "statistics are the episode's"
        )

    def test_no_gradient_reaches_the_value_network_whose_features_it_sees(self):
        spec = EnvSpec("camera", 2, Pixels(3, 3, 1, 1), 1)
        value = generic(jax.eval_shape(lambda key: value_for(key, spec, SPEC), jax.random.key(0)))
        rng = np.random.default_rng(0)
        pictures = rng.integers(0, 256, (2, STEPS + 1, 3, 3, 1), dtype=np.uint8)
        seen = PixelObservation(jnp.asarray(pictures), jnp.ones((2, STEPS + 1, 1), dtype=bool))
        network, valid = built(sees_signal=True), jnp.ones((2, STEPS), dtype=bool)

        def total(value, network, features_of):
            values, features = features_of(value)
            inputs = PairInputs(seen, features, values[:, 1:], valid)
            return jnp.sum(jax.vmap(network)(inputs))

        def with_gradients(value):
            over_batch = [jax.vmap(jax.vmap(function))(seen) for function in (value, value.features)]
            return over_batch[0], over_batch[1]

        slopes = jax.jit(jax.grad(total, argnums=(0, 1)), static_argnums=2)
        into_value, into_network = slopes(value, network, lambda v: values_and_features(v, seen))
        assert not any(leaf.any() for leaf in jax.tree.leaves(into_value))
        assert all(leaf.any() for leaf in jax.tree.leaves(into_network))
        assert any(leaf.any() for leaf in jax.tree.leaves(slopes(value, network, with_gradients)[0]))


class TestTimeDifferences:
    def test_scalar(self):
        np.testing.assert_allclose(lag_encoding(4, "scalar"), [[0.25], [0.5], [0.75], [1.0]])

    def test_one_hot(self):
        """Times √T, so that an embedding starts with entries of deviation 1 (but for the cut-off at two)."""
        np.testing.assert_allclose(lag_encoding(4, "one-hot"), 2 * np.eye(4))
        spec = NetworkSpec(trunk=(1, 1), pair_width=256)
        network = jax.jit(lambda key: PairNetwork.random(key, 16, spec, False))(jax.random.key(0))
        assert np.std(lag_encoding(16, "one-hot") @ network.lag.weight) == pytest.approx(0.88, rel=0.05)

    def test_sinusoidal(self):
        """Angles l/(2T)^(i/32): from one radian per step to half a radian over the whole episode."""
        encoded = lag_encoding(8, "sinusoidal")
        assert encoded.shape == (8, 64)
        np.testing.assert_allclose(encoded[:, 0], np.sin(np.arange(1, 9)))
        np.testing.assert_allclose(encoded[:, 32], np.cos(np.arange(1, 9)))
        np.testing.assert_allclose(encoded[4, 16], np.sin(5 / 4))  # 16^(16/32) = 4
        np.testing.assert_allclose(encoded[7, 63], np.cos(8 / 16 ** (31 / 32)))

    @pytest.mark.parametrize("lag, inputs", [("scalar", 1), ("one-hot", STEPS), ("sinusoidal", 64)])
    def test_each_gives_every_pair_a_weight(self, lag, inputs):
        network = built(sees_signal=False, spec=dataclasses.replace(SPEC, lag=lag))
        assert network.lag.weight.shape == (inputs, 8)
        weights = np.asarray(weights_of(network, episode()))
        assert weights.shape == (STEPS, STEPS) and len(np.unique(weights[UPPER])) > 15

    @pytest.mark.usefixtures("users_view")
    def test_another_is_refused(self):
        with refused("lag encoding", "'onehot'", "Did you mean 'one-hot'?", "sinusoidal"):
            lag_encoding(4, "onehot")


class TestRefusals:
    @pytest.mark.parametrize("missing", ["features", "valid"])
    def test_a_network_needs_features_and_the_ends_of_episodes(self, missing):
        with refused("features of a value network", "valid"):
            built(sees_signal=False)(dataclasses.replace(episode(), **{missing: None}))

    def test_one_that_sees_the_signal_needs_it(self):
        with refused("signal"):
            built(sees_signal=True)(dataclasses.replace(episode(), signal=None))


class TestBackEnds:
    FLOAT32 = jnp.dtype(jnp.float32)

    def test_by_name(self):
        assert pair_backend("dense", self.FLOAT32, 120) is dense_pair_logits
        assert pair_backend("tiled", self.FLOAT32, 120) is tiled_pair_logits
        assert pair_backend("auto", self.FLOAT32, 120) is tiled_pair_logits, "on a CPU"
        assert pair_backend("auto", self.FLOAT32, 9) is whole_pair_logits, "on a CPU, and short"

    def test_on_a_gpu_very_long_episodes_are_left_to_the_tiles(self, monkeypatch):
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
        assert pair_backend("auto", self.FLOAT32, 1001) is kernel_pair_logits, "cartpole"
        assert pair_backend("auto", self.FLOAT32, 2000) is tiled_pair_logits
        assert pair_backend("kernel", self.FLOAT32, 2000) is kernel_pair_logits, "by name it may be asked for"

    def test_an_unknown_one_is_refused(self):
        with refused("pair back end", "'tilde'", "Did you mean 'tiled'?", "auto"):
            pair_backend("tilde", self.FLOAT32, 120)

    def test_the_kernels_want_a_gpu(self):
        with refused("GPU", "float32", "cpu", "'tiled'"):
            pair_backend("kernel", self.FLOAT32, 120)


def test_numbered_states_get_a_table_and_pictures_the_network():
    key = jax.random.key(0)
    table = weights_for(key, EnvSpec("dag", 2, Discrete(10), 4), SPEC, 0.5, True)
    assert isinstance(table, SigmoidTable) and 0.4 < np.abs(table.eta).max() <= 0.5
    camera = EnvSpec("camera", 4, Pixels(3, 3, 1, 1), 9)
    network = jax.eval_shape(lambda key: weights_for(key, camera, SPEC, 0.5, True), key)
    assert isinstance(network, PairNetwork) and network.horizon == 9 and network.sees_signal
