"""A controller that keeps bsuite's pole upright for a whole episode."""

from __future__ import annotations

import numpy as np

GAINS = np.array([0.1, 0.3, 1.0, 0.0, 0.3, 0.0])


def balance(observation):
    """Push towards where the pole falls and the cart drifts; an action for numpy and JAX alike."""
    return 2 * (observation @ GAINS.astype(observation.dtype) > 0).astype(int)
