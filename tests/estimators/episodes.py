"""Random episodes for property tests: any length, any padding, any magnitude."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

LENGTHS = (1, 2, 3, 4, 7, 16, 27, 40)
"""Few enough to compile, odd and even, powers of two and not."""


class Episode(NamedTuple):
    rewards: np.ndarray
    values: np.ndarray
    discounts: np.ndarray
    lambdas: np.ndarray
    weights: np.ndarray
    valid: np.ndarray

    @property
    def read_values(self) -> np.ndarray:
        """Where `values` belong to the episode: its states and its final observation."""
        return np.append(self.valid, False) | np.append(False, self.valid)

    @property
    def counted_pairs(self) -> np.ndarray:
        """Which weights count: on or above the diagonal, both steps valid."""
        return np.triu(np.ones((len(self.valid),) * 2, dtype=bool)) & self.valid[:, None] & self.valid[None, :]

    def poisoned(self, rng: np.random.Generator) -> Episode:
        """NaN and ±inf wherever nobody should look."""

        def poison(x: np.ndarray, keep: np.ndarray) -> np.ndarray:
            return np.where(keep, x, rng.choice([np.nan, np.inf, -np.inf], size=x.shape)).astype(x.dtype)

        return Episode(
            poison(self.rewards, self.valid),
            poison(self.values, self.read_values),
            poison(self.discounts, self.valid),
            poison(self.lambdas, self.valid),
            poison(self.weights, self.counted_pairs),
            self.valid,
        )


def random_episode(seed: int, length: int, padding: str = "none", magnitude: str = "one") -> Episode:
    """Padding is `none`, `end` or `anywhere`; magnitudes are around `one`, or `any` from 1e-20 to 1e10."""
    rng = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        scale = 1.0 if magnitude == "one" else 10.0 ** rng.uniform(-20, 10, size=shape)
        return (rng.normal(size=shape) * scale).astype(np.float32)

    valid = np.ones(length, dtype=bool)
    if padding == "end":
        valid[rng.integers(0, length + 1) :] = False
    elif padding == "anywhere":
        valid = rng.random(length) < 0.7
    return Episode(
        rewards=numbers(length),
        values=numbers(length + 1),
        discounts=rng.choice([0.0, 0.5, 0.9, 1.0], size=length).astype(np.float32),
        lambdas=rng.uniform(0, 1, size=length).astype(np.float32),
        weights=rng.uniform(-1, 2, size=(length, length)).astype(np.float32),
        valid=valid,
    )


seeds = st.integers(0, 2**32 - 1)
lengths = st.sampled_from(LENGTHS)
paddings = st.sampled_from(["none", "end", "anywhere"])
magnitudes = st.sampled_from(["one", "any"])
episodes = st.builds(random_episode, seeds, lengths, paddings, magnitudes)
