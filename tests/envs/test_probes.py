"""The probe environments, step by step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from paircredit.envs import Discrete
from paircredit.envs.probes import ProbeConfig
from tests.sentences import refused


def play(kind, *actions, seed=0):
    """[(observation, reward, terminated, truncated)] from reset to the end."""
    env = ProbeConfig(kind).build()
    state, now = env.reset(jax.random.key(seed))
    seen = [now]
    for action in actions:
        state, now = env.step(jax.random.key(1), state, jnp.asarray(action))
        seen.append(now)
    for step in seen:
        assert step.legal.shape == (env.spec.num_actions,) and step.legal.all()
    return [(int(s.observation), float(s.reward), bool(s.terminated), bool(s.truncated)) for s in seen]


def seed_of(kind, observation):
    """A seed whose episode starts with this observation."""
    return next(seed for seed in range(50) if play(kind, seed=seed)[0][0] == observation)


def test_value():
    assert play("value", 0) == [(0, 0.0, False, False), (3, 1.0, True, False)]


@pytest.mark.parametrize("observation, reward", [(0, -1.0), (1, 1.0)])
def test_observation(observation, reward):
    episode = play("observation", 0, seed=seed_of("observation", observation))
    assert episode == [(observation, 0.0, False, False), (3, reward, True, False)]


def test_delay():
    assert play("delay", 0, 0) == [(0, 0.0, False, False), (1, 0.0, False, False), (3, 1.0, True, False)]


@pytest.mark.parametrize("action, reward", [(0, -1.0), (1, 1.0)])
def test_action(action, reward):
    assert play("action", action) == [(0, 0.0, False, False), (3, reward, True, False)]


@pytest.mark.parametrize("observation", [0, 1])
@pytest.mark.parametrize("action", [0, 1])
def test_context(observation, action):
    episode = play("context", action, seed=seed_of("context", observation))
    assert episode[1] == (3, 1.0 if action == observation else -1.0, True, False)


def test_truncation():
    """Cut after four steps, never terminated; all states look alike, so the value is that of an endless life."""
    assert play("truncation", 0, 0, 0, 0) == [
        (0, 0.0, False, False),
        (0, 1.0, False, False),
        (0, 1.0, False, False),
        (0, 1.0, False, False),
        (0, 1.0, False, True),
    ]


@pytest.mark.parametrize("kind", ["observation", "context"])
def test_contexts_are_drawn_evenly(kind):
    env = ProbeConfig(kind).build()
    _, first = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 2000))
    assert abs(first.observation.astype(float).mean() - 0.5) < 5 * 0.5 / 2000**0.5


@pytest.mark.parametrize(
    "kind, actions, horizon",
    [
        ("value", 1, 1),
        ("observation", 1, 1),
        ("delay", 1, 2),
        ("action", 2, 1),
        ("context", 2, 1),
        ("truncation", 1, 4),
    ],
)
def test_spec(kind, actions, horizon):
    spec = ProbeConfig(kind).build().spec
    assert (spec.name, spec.num_actions, spec.horizon) == (f"probe-{kind}", actions, horizon)
    assert spec.observation == Discrete(4)


@pytest.mark.usefixtures("users_view")
def test_an_unknown_probe_is_refused():
    with refused("'valu'", "Did you mean 'value'?", "truncation"):
        ProbeConfig("valu").build()
