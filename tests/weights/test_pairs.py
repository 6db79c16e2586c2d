"""The logits of all pairs: three back ends, one answer, and that answer is the paper's."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from paircredit.weights.pairs import NORMALISER_EPSILON, PairParameters, dense_pair_logits, kernel, whole_pair_logits
from paircredit.weights.pairs.kernel import kernel_pair_logits
from paircredit.weights.pairs.tiled import tiled_pair_logits
from tests.rungs import nightly_but

BACKENDS = {
    "dense": lambda p, valid: dense_pair_logits(PairParameters(**p), valid),
    "tiled": lambda p, valid: tiled_pair_logits(PairParameters(**p), valid),
    "whole": lambda p, valid: whole_pair_logits(PairParameters(**p), valid),
    "kernel": lambda p, valid: kernel_pair_logits(PairParameters(**p), valid, True),
}
OF_AN_EPISODE, SHARED = ("rows", "columns"), ("lags", "scale", "shift", "out")


def problem(steps: int, channels: int, *batch: int, seed: int = 0) -> dict[str, np.ndarray]:
    """The fields of `PairParameters` as the network makes them: rows and columns at least 1, lags around 1."""
    rng = np.random.default_rng(seed)
    return {
        "rows": 1 + np.abs(rng.normal(size=(*batch, steps, channels))),
        "columns": 1 + np.abs(rng.normal(size=(*batch, steps, channels))),
        "lags": 1 + rng.normal(size=(steps, channels)),
        "scale": 1 + 0.3 * rng.normal(size=channels),
        "shift": 0.3 * rng.normal(size=channels),
        "out": rng.normal(size=channels),
    }


def cotangents(*shape: int) -> np.ndarray:
    return np.random.default_rng(17).normal(size=shape)


def mask_of(kind: str, steps: int) -> np.ndarray:
    return {
        "whole": np.ones(steps, dtype=bool),
        "padded": np.arange(steps) < (2 * steps + 2) // 3,
        "with holes": np.random.default_rng(steps).uniform(size=steps) < 0.6,
        "empty": np.zeros(steps, dtype=bool),
    }[kind]


def floats(tree):
    """As the floats of the moment: float32, or float64 under `x64`."""
    return jax.tree.map(lambda x: jnp.asarray(x, dtype=float), tree)


@cache
def compiled(backend: str):
    def both(parameters, valid, cotangent):
        logits, pull_back = jax.vjp(lambda p: BACKENDS[backend](p, valid), parameters)
        return logits, pull_back(cotangent)[0]

    return jax.jit(both)


def logits_and_slopes(backend: str, parameters, valid, cotangent):
    """The logits, and the gradient of the sum of their products with the cotangent."""
    return compiled(backend)(floats(parameters), jnp.asarray(valid), floats(cotangent))


def assert_agree(actual, expected, relative: float) -> None:
    """Every array within `relative` times the largest entry of the expected one (or 1, where that is smaller)."""
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=0, atol=relative * max(1.0, np.abs(b).max()))


every_mask = pytest.mark.parametrize("kind", ["whole", "padded", "with holes", "empty"])
every_size = pytest.mark.parametrize(
    "steps, channels", nightly_but([(1, 8), (7, 8), (40, 64)], [(1, 8), (7, 8), (33, 8), (40, 64)])
)
"""7 and 33 are no multiples of a tile; 33 and 40 are more than a block of lags, 64 more than one of channels."""


class TestOneAnswer:
    @every_mask
    @every_size
    @pytest.mark.parametrize("backend", ["tiled", "kernel"])
    def test_in_float32(self, backend, steps, channels, kind):
        arguments = (problem(steps, channels), mask_of(kind, steps), cotangents(steps, steps))
        expected = logits_and_slopes("dense", *arguments)
        # The deviation of a single pair is √ε: what rounding leaves of x − mean is multiplied by 316.
        assert_agree(logits_and_slopes(backend, *arguments), expected, 1e-5 if steps > 1 else 1e-3)
        assert kind == "empty" or steps == 1 or all(leaf.any() for leaf in jax.tree.leaves(expected))

    @every_mask
    @every_size
    def test_in_float64(self, steps, channels, kind, x64):
        arguments = (problem(steps, channels), mask_of(kind, steps), cotangents(steps, steps))
        expected = logits_and_slopes("dense", *arguments)
        for backend in ("tiled", "whole"):
            assert_agree(logits_and_slopes(backend, *arguments), expected, 1e-10)

    @pytest.mark.parametrize(
        "backend, steps", [("tiled", 120), ("whole", 40), pytest.param("whole", 120, marks=pytest.mark.nightly)]
    )
    def test_features_that_hardly_differ(self, backend, steps):
        """As at the start of training: the mean of 7,260 pairs must be known better than they are far apart."""
        given = problem(steps, 8)
        given |= {name: 1 + 0.1 * (given[name] - 1) for name in ("rows", "columns", "lags")}
        arguments = (given, mask_of("whole", steps), cotangents(steps, steps))
        assert_agree(logits_and_slopes(backend, *arguments), logits_and_slopes("dense", *arguments), 1e-5)

    def test_several_blocks_of_lags(self):
        """T = 70 is two whole blocks of lags and a part of a third."""
        arguments = (problem(70, 8), mask_of("padded", 70), cotangents(70, 70))
        assert_agree(logits_and_slopes("kernel", *arguments), logits_and_slopes("tiled", *arguments), 1e-5)

    def test_a_long_episode(self):
        """Eleven blocks."""
        arguments = (problem(333, 4), mask_of("padded", 333), cotangents(333, 333))
        assert_agree(logits_and_slopes("kernel", *arguments), logits_and_slopes("dense", *arguments), 1e-5)

    @pytest.mark.parametrize(
        "sizes",
        [
            {"BLOCK": 16, "CHANNELS": 64, "STRIDE": 1},
            {"BLOCK": 64, "CHANNELS": 16, "STRIDE": 8},
            {"BLOCK": 8, "CHANNELS": 16, "ROWS": 2},
        ],
    )
    def test_any_block(self, sizes, monkeypatch):
        for name, size in sizes.items():
            monkeypatch.setattr(kernel, name, size)
        parameters, cotangent = floats((problem(41, 48), cotangents(41, 41)))
        valid = jnp.asarray(mask_of("with holes", 41))
        logits, pull_back = jax.vjp(lambda p: kernel_pair_logits(PairParameters(**p), valid, True), parameters)
        expected = logits_and_slopes("dense", parameters, valid, cotangent)
        assert_agree((logits, pull_back(cotangent)[0]), expected, 1e-5)

    @pytest.mark.parametrize("tile", [1, 3, 64])
    def test_any_tile(self, tile, x64):
        parameters, cotangent = floats((problem(7, 8), cotangents(7, 7)))
        valid = jnp.asarray(mask_of("with holes", 7))

        def loss(p):
            return jnp.sum(cotangent * tiled_pair_logits(PairParameters(**p), valid, tile))

        expected = logits_and_slopes("dense", parameters, valid, cotangent)[1]
        assert_agree(jax.jit(jax.grad(loss))(parameters), expected, 1e-10)

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_episodes_and_members_side_by_side(self, backend):
        """vmap over members, in it vmap over episodes, which share lags and the rest: their gradients add up."""
        members, episodes, steps = 2, 3, 7
        own = [problem(steps, 8, episodes, seed=m) for m in range(members)]
        valid = np.stack([[mask_of(kind, steps) for kind in ("whole", "padded", "with holes")]] * members)
        cotangent = cotangents(members, episodes, steps, steps)
        axes = dict.fromkeys(OF_AN_EPISODE, 0) | dict.fromkeys(SHARED)
        batch = jax.vmap(BACKENDS[backend], in_axes=(axes, 0))

        @jax.jit
        def both(parameters, valid, cotangent):
            logits, pull_back = jax.vjp(lambda p: jax.vmap(batch)(p, valid), parameters)
            return logits, pull_back(cotangent)[0]

        stacked = {name: np.stack([p[name] for p in own]) for name in own[0]}
        logits, slopes = both(floats(stacked), jnp.asarray(valid), floats(cotangent))
        for m in range(members):
            alone = [
                logits_and_slopes(
                    "dense", own[m] | {name: own[m][name][b] for name in OF_AN_EPISODE}, valid[m, b], cotangent[m, b]
                )
                for b in range(episodes)
            ]
            assert_agree(logits[m], np.stack([z for z, _ in alone]), 1e-5)
            for name in own[0]:
                each = np.stack([slope[name] for _, slope in alone])
                assert_agree(slopes[name][m], each if name in OF_AN_EPISODE else each.sum(axis=0), 1e-5)


class TestTheRightAnswer:
    def test_by_the_formulas_of_the_paper(self, x64):
        """Two steps, three pairs i < j: h_ij, μ_d, σ_d, h'_ij and the output layer by loops (paper, KtD appendix).

        The paper counts states 0 … 2: row i, column j, time difference j − i. `rows[i]`, `columns[j − 1]` and
        `lags[j − i − 1]` have been shifted by 1 already.
        """
        p = problem(2, 3, seed=4)
        pairs, mean, variance = [(0, 1), (0, 2), (1, 2)], np.zeros(3), np.zeros(3)
        h = {
            (i, j): [p["rows"][i, d] * p["columns"][j - 1, d] * p["lags"][j - i - 1, d] for d in range(3)]
            for i, j in pairs
        }
        for d in range(3):
            for pair in pairs:
                mean[d] += 2 / (2 * (2 + 1)) * h[pair][d]
            for pair in pairs:
                variance[d] += 2 / (2 * (2 + 1)) * (h[pair][d] - mean[d]) ** 2
        expected = np.zeros((2, 2))
        for i, j in pairs:
            for d in range(3):
                normal = (h[i, j][d] - mean[d]) / np.sqrt(variance[d] + NORMALISER_EPSILON)
                expected[i, j - 1] += p["out"][d] * max(p["scale"][d] * normal + p["shift"][d], 0)
        assert (np.abs(expected[np.triu_indices(2)]) > 0.1).all()
        for backend in ("dense", "tiled"):
            logits, _ = logits_and_slopes(backend, p, np.ones(2, dtype=bool), np.ones((2, 2)))
            np.testing.assert_allclose(logits, expected, rtol=1e-12)

    def test_the_gradient_by_finite_differences(self, x64):
        valid = jnp.asarray([True] * 5 + [False] * 2)
        logits = jax.jit(lambda p: BACKENDS["tiled"](p, valid))
        check_grads(logits, (floats(problem(7, 4)),), order=1, modes=["rev"], rtol=1e-6)

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_what_is_no_pair_is_exactly_0_and_does_not_count(self, backend):
        """Neither in the logits nor in the statistics nor in the gradient, whatever stands there."""
        valid = np.array([True, False, True, True, False, True, False])
        pairs = np.triu(valid[:, None] & valid[None, :])
        clean = problem(7, 8)
        dirty = clean | {name: np.where(valid[:, None], clean[name], 1e3) for name in OF_AN_EPISODE}
        (logits, slopes), (again, _) = (logits_and_slopes(backend, p, valid, np.ones((7, 7))) for p in (clean, dirty))
        np.testing.assert_array_equal(logits[~pairs], 0)
        assert np.count_nonzero(logits) >= 0.8 * pairs.sum()
        np.testing.assert_allclose(again, logits, rtol=1e-5, atol=1e-5)
        for name in OF_AN_EPISODE:
            np.testing.assert_array_equal(slopes[name][~valid], 0)
            assert np.abs(np.asarray(slopes[name])[valid]).max() > 1e-3

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_an_episode_without_steps_is_worth_nothing(self, backend):
        found = logits_and_slopes(backend, problem(7, 8), np.zeros(7, dtype=bool), np.ones((7, 7)))
        for leaf in jax.tree.leaves(found):
            np.testing.assert_array_equal(leaf, 0)

    @pytest.mark.parametrize("backend", ["tiled", "whole", "kernel"])
    def test_a_large_common_offset_costs_no_digits(self, backend):
        """Products around 100 that differ by 1: a variance in one pass would be wrong in the second digit."""
        p, upper = problem(33, 8), np.triu_indices(33)
        p |= {"rows": 100 + p["rows"], "columns": 1 + p["columns"] / 1000, "lags": 1 + p["lags"] / 1000}
        products = p["rows"][upper[0]] * p["columns"][upper[1]] * p["lags"][upper[1] - upper[0]]
        single = products.astype(np.float32)
        one_pass = np.mean(single**2, axis=0) - np.mean(single, axis=0) ** 2
        assert np.abs(one_pass / products.var(axis=0) - 1).max() > 1e-2

        arguments = (p, np.ones(33, dtype=bool), cotangents(33, 33))
        with jax.enable_x64(True):
            exact = jax.device_get(logits_and_slopes("dense", *arguments)[1])
        found = logits_and_slopes(backend, *arguments)[1]
        errors = {name: np.linalg.norm(found[name] - exact[name]) / np.linalg.norm(exact[name]) for name in exact}
        assert max(errors.values()) < 1e-4, errors


def test_tiles_need_a_fraction_of_the_memory():
    """Of a gradient over some whole episodes of Key-to-Door, on the CPU: a tenth at most."""
    episodes, steps, channels = 4, 120, 64
    shapes = jax.tree.map(np.shape, problem(steps, channels, episodes), is_leaf=lambda x: isinstance(x, np.ndarray))
    parameters = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    valid = jax.ShapeDtypeStruct((episodes, steps), bool)
    cotangent = jax.ShapeDtypeStruct((episodes, steps, steps), jnp.float32)
    axes = dict.fromkeys(OF_AN_EPISODE, 0) | dict.fromkeys(SHARED)
    memory = {}
    for backend in ("dense", "tiled"):
        batch = jax.vmap(BACKENDS[backend], in_axes=(axes, 0))
        gradient = jax.jit(jax.grad(lambda p, v, c, batch=batch: jnp.sum(c * batch(p, v))))
        analysis = gradient.lower(parameters, valid, cotangent).compile().memory_analysis()
        memory[backend] = analysis.temp_size_in_bytes
    assert memory["dense"] > episodes * steps * steps * channels * 4, "the reference holds every pair's vector"
    assert memory["tiled"] <= memory["dense"] / 10


def test_the_kernels_fill_channels_up_to_whole_blocks():
    arguments = (problem(7, 48), mask_of("padded", 7), cotangents(7, 7))
    assert_agree(logits_and_slopes("kernel", *arguments), logits_and_slopes("dense", *arguments), 1e-5)
