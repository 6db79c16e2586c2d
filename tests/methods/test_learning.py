"""Every method learns every probe, to the known answer."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.methods import make_method
from paircredit.training import Plan, train

pytestmark = pytest.mark.slow
PLAN = Plan(updates=100)


def learner_after(updates: int, name: str, probe: str):
    """Two seeds of a method on a probe."""
    settings = {"table": jnp.ones((4, 4))} if name == "h-pwr" else {}
    method = make_method(name, preset="probe", **settings)
    env = make_environment(f"probe-{probe}")
    return train([method] * 2, [env] * 2, [0, 1], PLAN, updates).learner


def values_of(learner) -> np.ndarray:
    """The value of the regular return; h-pwr only has that of the weighted return."""
    trained = learner.weighted_value if learner.value is None else learner.value
    return np.asarray(trained.parameters.values)


def probability_of(learner, state: int, action: int) -> np.ndarray:
    return np.asarray(jax.nn.softmax(learner.policy.parameters.logits))[:, state, action]


every_method = pytest.mark.parametrize("method", ["a2c", "h-pwr", "meta-lambda", "meta-pwr", "meta-pwtd"])


@every_method
def test_value(method):
    np.testing.assert_allclose(values_of(learner_after(200, method, "value"))[:, 0], 1, atol=0.02)


@every_method
def test_observation(method):
    values = values_of(learner_after(200, method, "observation"))
    np.testing.assert_allclose(values[:, :2], [[-1, 1]] * 2, atol=0.02)


@every_method
def test_delay(method):
    """γ = 0.9, but for the weighted return with weights of 1, which does not know γ."""
    values = values_of(learner_after(200, method, "delay"))
    np.testing.assert_allclose(values[:, :2], [[1 if method == "h-pwr" else 0.9, 1]] * 2, atol=0.02)


@every_method
def test_action(method):
    assert (probability_of(learner_after(200, method, "action"), state=0, action=1) > 0.95).all()


@every_method
def test_context(method):
    learner = learner_after(200, method, "context")
    for state in (0, 1):
        assert (probability_of(learner, state, action=state) > 0.95).all()


@pytest.mark.parametrize("method", ["a2c", "meta-lambda", "meta-pwr", "meta-pwtd"])
def test_truncation(method):
    """1/(1 − γ) = 10, the value of a life that goes on; four steps alone would be worth less than 3.5."""
    np.testing.assert_allclose(values_of(learner_after(600, method, "truncation"))[:, 0], 10, atol=0.1)
