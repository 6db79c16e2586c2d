"""Every method learns the probes, to the known answers. One program per method trains all six kinds side by side."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.methods import make_method, methods
from paircredit.weights.return_generator import TransformerSpec
from tests.methods.probes import Trained

pytestmark = pytest.mark.slow

SETTINGS = {
    "h-pwr": {"table": jnp.ones((4, 4))},
    "rgm": {"transformer": TransformerSpec(blocks=1, heads=2, width=8, widening=2)},
}
"""What has no default on probes, or a large one."""
UPDATES = {"a2c-rr": 200, "tvt": 400, "rgm": 150}
"""For all others, which take less time, 600: what an endless life is worth takes longest to learn."""
WEIGHTED = {"h-pwr", "rgm"}
"""Methods that learn the value of the weighted return, which does not know γ, nor what lies after a cut."""
EVERY = set(methods())


@cache
def trained(name: str) -> Trained:
    return Trained(make_method(name, preset="probe", **SETTINGS.get(name, {})), UPDATES.get(name, 600))


def values_of(name: str, kind: str) -> np.ndarray:
    """Values of the four states, by seed."""
    learner = trained(name).learner(kind)
    value = learner.weighted_value if name in WEIGHTED else learner.value
    return np.asarray(value.parameters.values)


def each(names: set[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("method", sorted(names))


@each(EVERY - {"tvt"})
def test_value(method):
    np.testing.assert_allclose(values_of(method, "value")[:, 0], 1, atol=0.02)


@each(EVERY - {"tvt"})
def test_observation(method):
    np.testing.assert_allclose(values_of(method, "observation")[:, :2], [[-1, 1]] * 2, atol=0.02)


@each(EVERY - {"tvt", "synthetic-returns"})
def test_delay(method):
    """γ = 0.9. (With Synthetic Returns a state is worth its contribution as well.)"""
    values = values_of(method, "delay")
    np.testing.assert_allclose(values[:, :2], [[1 if method in WEIGHTED else 0.9, 1]] * 2, atol=0.02)


@each(EVERY)
def test_action(method):
    assert (trained(method).probability("action", state=0, action=1) > 0.95).all()


@each(EVERY)
def test_context(method):
    for state in (0, 1):
        assert (trained(method).probability("context", state, action=state) > 0.95).all()
    assert (trained(method).paid("context") == 1).mean() > 0.9


@each(EVERY - WEIGHTED - {"a2c-rr", "tvt"})
def test_truncation(method):
    """1/(1 − γ) = 10, the value of a life that goes on; four steps alone would be worth less than 3.5."""
    np.testing.assert_allclose(values_of(method, "truncation")[:, 0], 10, atol=0.1)
    if method == "meta-lambda":  # its weighted return goes on after a cut as well
        weighted = trained(method).learner("truncation").weighted_value.parameters.values
        np.testing.assert_allclose(weighted[:, 0], 10, atol=0.3)


@pytest.mark.parametrize("kind, values", [("observation", [-1, 1]), ("delay", [0.9, 1])])
def test_an_agent_with_memory_knows_values_over_time(kind, values):
    """γ = 0.9. What TVT's states are worth, it finds again when it unrolls its last batch."""
    agent = trained("tvt")
    batch = agent.batch(kind)
    found = jax.jit(jax.vmap(agent.method.unroll))(agent.learner(kind).policy.parameters, batch).values[:, 0]
    steps = int(batch.valid[0, 0].sum())
    expected = np.asarray(values)[np.asarray(batch.observations)[:, 0, :steps]]
    np.testing.assert_allclose(found[:, :steps], expected, atol=0.1)
