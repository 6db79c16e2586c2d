"""The ports against the real package: the same chance, the same actions, step by step, in all variants.

The original's generators are replaced by recorders, and what they drew is what our episodes are started with.
`PAIRCREDIT_PARITY_EPISODES` sets the episodes of each variant (200 for the long version).
"""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.bsuite.cartpole import CartpoleState
from paircredit.envs.bsuite.catch import Catch, CatchChance
from paircredit.envs.bsuite.sweep import DOMAINS, domain_sweep
from paircredit.envs.bsuite.umbrella import SIGHTS, WORD, UmbrellaChain, UmbrellaChance, words_per_step
from paircredit.training.members import stack_members
from paircredit.types import Trajectory
from tests.envs.bsuite.balance import balance
from tests.envs.bsuite.original import Original, total_regret

EPISODES = int(os.environ.get("PAIRCREDIT_PARITY_EPISODES", "5"))
KEY = jax.random.key(0)
REPLAYED = [domain for domain in DOMAINS if domain != "cartpole"]


@pytest.fixture(scope="module", params=REPLAYED)
def both(request):
    """A domain, what happened in the original, and what happens in the port."""
    domain = request.param
    variants = domain_sweep(domain)
    actors = np.random.default_rng(7)
    originals = {bsuite_id: Original(bsuite_id, seed) for seed, bsuite_id in enumerate(variants)}
    envs = [config.build() for config in variants.values()]
    count = envs[0].spec.num_actions
    played = {
        bsuite_id: [original.play(lambda _: actors.integers(count)) for _ in range(EPISODES)]
        for bsuite_id, original in originals.items()
    }
    horizon = envs[0].spec.horizon
    actions = np.array(
        [[np.pad(one.actions, (0, horizon - len(one.actions))) for one in episodes] for episodes in played.values()]
    )
    chances = [[chance_of(domain, env, one) for one in played[name]] for name, env in zip(variants, envs, strict=True)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *[c for row in chances for c in row])
    stacked = jax.tree.map(lambda x: x.reshape(len(envs), EPISODES, *x.shape[1:]), stacked)
    ours = jax.device_get(jax.jit(jax.vmap(replay))(stack_members(envs), stacked, actions))
    return domain, originals, played, ours


def chance_of(domain, env, played):
    """The draws of the original, in our form."""
    if domain == "discounting_chain":
        assert not any(played.draws)
        return ()
    if domain.startswith("catch"):
        assert [name for name, _ in played.draws[0]] == ["randint"]
        noise = [value for draws in played.draws[1:] for name, value in draws if name == "randn"]
        assert len(noise) == (9 if domain == "catch_noise" else 0)
        return np.int32(played.draws[0][0][1]), np.array(noise or [0.0] * 9, np.float32)
    bits = np.zeros((env.horizon + 1, words_per_step(env.width) * WORD), np.uint64)
    (_, needed), (_, held), *_ = played.draws[0]
    for time, draws in enumerate(played.draws):
        if len(draws) == 2:  # the last step draws no reward
            bits[time, 2] = draws[0][1]
        bits[time, SIGHTS : SIGHTS + len(draws[-1][1])] = draws[-1][1]
    words = (bits.reshape(len(bits), -1, WORD) << np.arange(WORD, dtype=np.uint64)).sum(axis=-1).astype(np.uint32)
    return np.bool_(needed), np.bool_(held), words


def replay(env, chances, actions):
    """Episodes of one variant as a rollout would record them, and their regrets."""

    def episode(chance, actions):
        kind = {Catch: CatchChance, UmbrellaChain: UmbrellaChance}.get(type(env))
        state, first = env.start(kind(*chance)) if kind else env.start()

        def step(before, action):
            state, running, observation = before
            state, now = env.step(KEY, state, action)
            observation = jnp.where(running, now.observation, observation)
            kept = (observation, jnp.where(running, now.reward, 0.0), now.terminated, now.truncated, running)
            return (state, running & ~now.terminated, observation), kept

        start = (state, jnp.ones((), dtype=bool), first.observation)
        _, (observations, rewards, terminated, truncated, valid) = jax.lax.scan(step, start, actions)
        observations = jnp.concatenate([first.observation[None], observations])
        legal = jnp.ones((len(actions), env.spec.num_actions), dtype=bool)
        trajectory = Trajectory(observations, legal, actions, rewards, terminated & valid, truncated, valid)
        return trajectory, env.summarise(trajectory)["regret"]

    return jax.vmap(episode)(chances, actions)


def test_every_step_of_every_variant_is_the_originals(both):
    domain, _, played, (ours, _) = both
    assert len(played) == len(DOMAINS[domain].settings)
    for variant, (bsuite_id, episodes) in enumerate(played.items()):
        for number, real in enumerate(episodes):
            steps, size = len(real.actions), real.observations.shape[1]
            mine = jax.tree.map(lambda x, at=(variant, number): x[at], ours)
            seen = mine.observations[: steps + 1]
            np.testing.assert_allclose(seen[:, :size], real.observations, rtol=0, atol=2e-7, err_msg=bsuite_id)
            assert not seen[:, size:].any()
            np.testing.assert_allclose(mine.rewards[:steps], real.rewards, rtol=2e-6, atol=1e-7, err_msg=bsuite_id)
            np.testing.assert_array_equal(mine.terminated[:steps], real.last, err_msg=bsuite_id)
            np.testing.assert_array_equal(real.discounts, ~real.last)  # never cut, always terminated
            assert mine.valid.sum() == steps and not mine.truncated.any()


def test_the_total_regret_of_every_variant_is_the_originals(both):
    _, originals, played, (_, regrets) = both
    for variant, (bsuite_id, episodes) in enumerate(played.items()):
        real = total_regret(bsuite_id, originals[bsuite_id], episodes)
        np.testing.assert_allclose(regrets[variant].astype(np.float64).sum(), real, rtol=1e-5, atol=1e-5 * EPISODES)


@pytest.fixture(scope="module")
def poles():
    """Random and balanced episodes of all variants of the real cartpole, as single transitions."""
    actors = np.random.default_rng(8)
    played = []
    for seed, bsuite_id in enumerate(domain_sweep("cartpole")):
        original = Original(bsuite_id, seed)
        played += [original.play(lambda _: actors.integers(3)) for _ in range(EPISODES)]
    played.append(original.play(balance))
    return played


@pytest.mark.parametrize("precision, near", [(np.float64, 1e-12), (np.float32, 2e-6)])
def test_every_step_of_cartpole_is_the_originals(poles, precision, near):
    """One step at a time, from the original's own state: the pole makes any rounding grow e-fold in 0.26 seconds."""
    before, after = ([np.array(p.states)[part] for p in poles] for part in (slice(None, -1), slice(1, None)))
    before, after = np.concatenate(before), np.concatenate(after)
    joined = {name: np.concatenate([getattr(p, name) for p in poles]) for name in ("actions", "rewards", "last")}
    seen = np.concatenate([p.observations[1:] for p in poles])
    assert len(before) > 60 * len(poles)
    with jax.enable_x64(precision is np.float64):
        env = DOMAINS["cartpole"].config.build()
        step = jax.jit(jax.vmap(lambda action, *state: env.step(KEY, CartpoleState(*state), action)))
        clock, numbers = jnp.asarray(np.rint(before[:, 4] * 100), jnp.int32), jnp.asarray(before[:, :4].T, precision)
        state, now = jax.device_get(step(jnp.asarray(joined["actions"]), clock, *numbers))
    assert now.observation.dtype == precision
    # The original rounds what is seen to single precision.
    np.testing.assert_allclose(now.observation, seen, rtol=0, atol=max(near, 2.5e-7 * max(1, np.abs(seen).max())))
    moved = np.stack([state.position, state.speed, state.angle, state.angular_speed], axis=1)
    turns = np.array([0, 0, 2 * np.pi, 0]) * np.rint((moved - after[:, :4]) / (2 * np.pi))
    np.testing.assert_allclose(moved - turns, after[:, :4], rtol=0, atol=near)
    np.testing.assert_array_equal(now.reward, joined["rewards"])
    np.testing.assert_array_equal(now.terminated, joined["last"])
    np.testing.assert_array_equal(state.time, np.rint(after[:, 4] * 100))
    assert not now.truncated.any()


def test_cartpole_starts_where_the_original_does(poles):
    env = DOMAINS["cartpole"].config.build()
    draws = np.array([[value for _, value in p.draws[0]] for p in poles], np.float32)
    assert draws.shape == (len(poles), 4)
    _, first = jax.vmap(env.start)(jnp.asarray(draws))
    np.testing.assert_allclose(first.observation, [p.observations[0] for p in poles], rtol=0, atol=1e-7)


def test_the_total_regret_of_cartpole_is_the_originals():
    """From the rewards that the original paid, padded to the horizon."""
    original, actors = Original("cartpole/0", 3), np.random.default_rng(9)
    played = [original.play(lambda _: actors.integers(3)) for _ in range(EPISODES)] + [original.play(balance)]
    env = DOMAINS["cartpole"].config.build()
    horizon = env.spec.horizon
    rewards = np.array([np.pad(p.rewards, (0, horizon - len(p.rewards))) for p in played], np.float32)
    valid = np.arange(horizon) < np.array([len(p.rewards) for p in played])[:, None]
    batch = Trajectory(
        observations=jnp.zeros((len(played), horizon + 1, 6)),
        legal=jnp.ones((len(played), horizon, 3), dtype=bool),
        actions=jnp.zeros((len(played), horizon), dtype=jnp.int32),
        rewards=jnp.asarray(rewards),
        terminated=jnp.zeros((len(played), horizon), dtype=bool),
        truncated=jnp.zeros((len(played), horizon), dtype=bool),
        valid=jnp.asarray(valid),
    )
    total = float(env.summarise(batch)["regret"]) * len(played)
    assert total == pytest.approx(total_regret("cartpole/0", original, played), rel=1e-6)
    assert len(played[-1].rewards) == horizon == 1001  # the balanced one: the original's clock is one step late
