"""The seven domains by hand, what chance draws in them, and what random play costs."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import Vector, environment_config, make_environment
from paircredit.envs.bsuite.cartpole import CartpoleConfig
from paircredit.envs.bsuite.catch import CatchChance, CatchConfig
from paircredit.envs.bsuite.sweep import DOMAINS, SWEEP, bsuite_config, domain_sweep
from paircredit.envs.bsuite.umbrella import UmbrellaChainConfig, UmbrellaChance
from paircredit.studies.bsuite.measures import RANDOM_PLAY
from paircredit.training import collect_episodes
from paircredit.training.members import stack_members
from tests.envs.bsuite.balance import balance
from tests.players import Player
from tests.sentences import refused

KEY = jax.random.key(3)
SHAPES = {  # actions, size of the observation, horizon
    "catch": (3, 50, 9),
    "catch_noise": (3, 50, 9),
    "catch_scale": (3, 50, 9),
    "umbrella_length": (2, 23, 100),
    "umbrella_distract": (2, 103, 20),
    "cartpole": (3, 6, 1001),
    "discounting_chain": (5, 2, 100),
}


@functools.partial(jax.jit, static_argnames="episodes")
def random_play(members, keys, episodes):
    """Episodes of all variants of a domain, and the mean regret of each variant."""

    def one(env, key):
        batch = collect_episodes(Player(episodes), jnp.zeros(env.spec.num_actions), env, key)
        return batch, env.summarise(batch)["regret"]

    return jax.vmap(one)(members, keys)


def scripted(env, state, actions):
    """The time steps that follow."""
    step, steps = jax.jit(type(env).step), []
    for action in actions:
        state, now = step(env, KEY, state, jnp.asarray(action))
        steps.append(jax.device_get(now))
    return steps


@pytest.mark.parametrize("domain", DOMAINS)
def test_shapes(domain):
    spec = make_environment(f"bsuite/{domain}").spec
    actions, size, horizon = SHAPES[domain]
    assert (spec.num_actions, spec.observation, spec.horizon) == (actions, Vector(size), horizon)


def test_all_variants_of_a_domain_stack():
    assert len(SWEEP) == 146
    for domain in DOMAINS:
        envs = [config.build() for config in domain_sweep(domain).values()]
        stack_members(envs)
        assert len({env.spec for env in envs}) == 1


def test_the_sweep_is_the_originals():
    from tests.envs.bsuite.original import bsuite_module

    settings = bsuite_module().sweep.SETTINGS
    names = {"chain_length": "length", "n_distractor": "distractors", "seed": None}
    theirs = {bsuite_id: of for bsuite_id, of in settings.items() if bsuite_id.partition("/")[0] in DOMAINS}
    assert list(theirs) != [] and set(theirs) == set(SWEEP)
    for bsuite_id, of in theirs.items():
        for name, value in of.items():
            if ours := names.get(name, name):
                assert getattr(SWEEP[bsuite_id], ours) == value, bsuite_id


def test_names_and_ids():
    assert environment_config("bsuite/umbrella_length", length=7) == bsuite_config("umbrella_length/6")
    assert bsuite_config("catch_noise/19") == CatchConfig(noise_scale=10.0)
    with refused("umbrella_length/23", "umbrella_length/0 to umbrella_length/22"):
        bsuite_config("umbrella_length/23")
    with refused("bsuite domain", "'umbrela_length'", "Did you mean 'umbrella_length'?"):
        bsuite_config("umbrela_length/3")


def test_catch_by_hand():
    env = CatchConfig(noise_scale=2.0, reward_scale=30.0).build()
    noise = jnp.arange(9.0) / 8
    state, first = env.start(CatchChance(jnp.int32(4), noise))
    assert np.argwhere(first.observation).ravel().tolist() == [4, 47]
    caught = scripted(env, state, [2, 2, 2, 1, 1, 1, 1, 1, 1])  # the wall stops the third move
    for time, now in enumerate(caught, start=1):
        paddle = 45 + min(2 + time, 4)
        assert np.argwhere(now.observation).ravel().tolist() == sorted({5 * time + 4, paddle})
        assert now.reward == pytest.approx(2 * noise[time - 1] + (30 if time == 9 else 0))
        assert now.terminated == (time == 9) and not now.truncated
    missed = scripted(env, state, [0] * 9)
    assert np.argwhere(missed[-1].observation).ravel().tolist() == [45, 49]
    assert missed[-1].reward == pytest.approx(2 * noise[-1] - 30)


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("needed, action", [(True, 1), (True, 0), (False, 1), (False, 0)])
def test_umbrella_by_hand(length, needed, action):
    env = UmbrellaChainConfig(length=length, distractors=2, max_length=4, max_distractors=3).build()
    rows = np.array([0b111000, 0b001100, 0b110011, 0b011000, 0b000111], np.uint32)[:, None]  # the first is not ours
    state, first = env.start(UmbrellaChance(jnp.asarray(needed), jnp.asarray(True), jnp.asarray(rows)))
    np.testing.assert_allclose(first.observation, [needed, 1, 1, 1, 1, 0])
    steps = scripted(env, state, [action] + [1 - action] * (length - 1))
    outcome = 1 if needed == action else -1
    expected = [outcome] if length == 1 else [1, -1, outcome]
    bits = [(1, 0), (0, 1), (1, 1)]
    for time, now in enumerate(steps, start=1):
        assert now.reward == expected[time - 1]
        np.testing.assert_allclose(
            now.observation, [needed, action, 1 - time / length, *bits[time - 1], 0], rtol=0, atol=1e-6
        )
        assert now.terminated == (time == length) and not now.truncated


@pytest.mark.parametrize("chain, payday", list(enumerate([1, 3, 10, 30, 100])))
def test_discounting_chain_by_hand(chain, payday):
    for seed in (chain, chain + 5, chain + 1):
        env = make_environment("bsuite/discounting_chain", mapping_seed=seed)
        state, first = env.start()
        np.testing.assert_allclose(first.observation, [-1, 0])
        steps = scripted(env, state, [chain] + [(chain + 1) % 5] * 99)
        amount = 1.1 if seed % 5 == chain else 1.0
        np.testing.assert_allclose(
            [now.reward for now in steps], [amount * (time == payday) for time in range(1, 101)], rtol=1e-6
        )
        np.testing.assert_allclose([now.observation for now in steps][41], [chain, 0.42], rtol=1e-6)
        assert [bool(now.terminated) for now in steps] == [False] * 99 + [True]


def test_a_perfect_episode_of_cartpole_has_1001_steps():
    """A clock that sums 0.01 in single precision would end it after 1,000."""
    env = CartpoleConfig().build()

    def episode(key):
        state, first = env.reset(key)

        def step(before, _):
            state, now = before
            state, now = env.step(key, state, balance(now.observation))
            return (state, now), (now.reward, now.terminated, now.observation[-1])

        return jax.lax.scan(step, (state, first), length=env.spec.horizon)[1]

    rewards, terminated, clock = jax.device_get(jax.jit(jax.vmap(episode))(jax.random.split(KEY, 8)))
    assert (rewards == 1).all()
    assert terminated[:, -1].all() and not terminated[:, :-1].any()
    np.testing.assert_allclose(clock[0], np.arange(1, 1002) / 1000, rtol=1e-6)


def test_a_pole_that_fell_pays_nothing():
    env = CartpoleConfig(max_steps=50).build()
    for start, alive in [((0, 0, 0.6, 0), True), ((0, 0, 0.64, 1.0), False), ((2.99, 2.0, 0, 0), False)]:
        state, _ = env.start(jnp.asarray(start, dtype=float))
        (now,) = scripted(env, state, [1])
        assert (now.reward == 1) == alive and now.terminated != alive


def test_an_episode_of_cartpole_may_be_shorter():
    env = CartpoleConfig(max_steps=5).build()
    state, _ = env.start(jnp.zeros(4))
    assert [bool(now.terminated) for now in scripted(env, state, [0, 2, 0, 2, 0])] == [False] * 4 + [True]


EPISODES = {"cartpole": 200, "umbrella_length": 200}


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_random_play_costs(domain):
    """As much as bsuite's analysis expects (its base values), in every variant and over all of them."""
    envs = [config.build() for config in domain_sweep(domain).values()]
    episodes = EPISODES.get(domain, 500)
    keys = jax.random.split(KEY, len(envs))
    batch, regrets = jax.device_get(random_play(stack_members(envs), keys, episodes))
    one_episode = {"cartpole": 32.0, "discounting_chain": 0.04}.get(domain, 1.0)  # an upper bound of the deviation
    error = one_episode / np.sqrt(episodes)
    np.testing.assert_allclose(regrets, RANDOM_PLAY[domain], rtol=0, atol=4.5 * error)
    near = 4 * error / np.sqrt(len(envs)) + (2.0 if domain == "cartpole" else 0.0)
    assert regrets.mean() == pytest.approx(RANDOM_PLAY[domain], abs=near)
    # One end, at the last step of the episode, and never a cut.
    lengths = batch.valid.sum(axis=-1)
    assert (batch.terminated.sum(axis=-1) == 1).all() and not batch.truncated.any()
    assert np.take_along_axis(batch.terminated, lengths[..., None] - 1, axis=-1).all()
    if domain == "umbrella_length":
        assert (lengths == [[config.length] for config in domain_sweep(domain).values()]).all()
    if domain == "cartpole":
        assert lengths.mean() == pytest.approx(80.6, abs=3)


def test_noise_and_scale_do_not_change_the_regret():
    envs = [CatchConfig(noise, scale).build() for noise, scale in ((0.0, 1.0), (10.0, 1.0), (0.0, 1000.0))]
    keys = jnp.stack([KEY] * len(envs))
    batch, regrets = jax.device_get(random_play(stack_members(envs), keys, 300))
    rewards = batch.rewards
    assert regrets[0] == regrets[1] == regrets[2] == pytest.approx(1 - rewards[0].sum(axis=1).mean(), abs=1e-5)
    np.testing.assert_allclose(rewards[2], 1000 * rewards[0])
    noise = (rewards[1] - rewards[0]) / 10
    assert noise.mean() == pytest.approx(0, abs=4 / np.sqrt(noise.size))
    assert noise.std() == pytest.approx(1, abs=4 / np.sqrt(2 * noise.size))
    assert abs(np.corrcoef(noise.T) - np.eye(9)).max() < 4.5 / np.sqrt(300)


def test_catch_drops_the_ball_everywhere():
    env, count = CatchConfig().build(), 5000
    balls = jax.vmap(lambda key: env.reset(key)[0].chance.ball)(jax.random.split(KEY, count))
    np.testing.assert_allclose(np.bincount(balls, minlength=5) / count, 0.2, atol=4.5 * 0.4 / np.sqrt(count))


@pytest.mark.parametrize("width", [0, 3, 28, 29, 30, 61])
def test_every_bit_of_the_umbrella_is_a_coin_of_its_own(width):
    """Also where the distractors fill a word up to its last bits."""
    env, count = UmbrellaChainConfig(length=3, distractors=width).build(), 4000

    def bits(key):
        state, first = env.reset(key)
        seen = [first.observation[:2], first.observation[3:]]
        for _ in range(2):
            state, now = env.step(key, state, jnp.zeros((), dtype=jnp.int32))
            seen += [now.observation[3:], (now.reward[None] + 1) / 2]
        return jnp.concatenate(seen)

    drawn = np.asarray(jax.jit(jax.vmap(bits))(jax.random.split(KEY, count)))
    assert set(np.unique(drawn)) == {0.0, 1.0}
    together = np.cov(drawn.T) if drawn.shape[1] > 1 else np.eye(1) / 4
    assert abs(together - np.eye(len(together)) / 4).max() < 5 * 0.25 / np.sqrt(count)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.5, atol=5 * 0.5 / np.sqrt(count))


@pytest.mark.parametrize(
    "domain, settings, words",
    [
        ("catch", {"noise_scale": -1.0}, ("noise_scale is -1.0",)),
        ("catch", {"reward_scale": float("nan")}, ("reward_scale is nan",)),
        ("catch_scale", {"reward_scale": -1.0}, ("reward_scale is -1.0", "above 0")),
        ("umbrella_length", {"length": 0}, ("length is 0", "between 1 and 2,147,483,647")),
        ("umbrella_length", {"length": 101}, ("length 101", "max_length 100")),
        ("umbrella_distract", {"distractors": 101}, ("101 distractors", "max_distractors 100")),
        ("umbrella_length", {"length": 2**32, "max_length": 0}, ("length is 4294967296", "2,147,483,647")),
        ("umbrella_distract", {"distractors": 2**31, "max_distractors": 0}, ("distractors is 2147483648",)),
        ("catch_scale", {"reward_scale": 1e39}, ("reward_scale is 1e+39", "at most 1e+38")),
        ("cartpole", {"max_steps": 1002}, ("max_steps is 1002",)),
        ("discounting_chain", {"mapping_seed": -1}, ("mapping_seed is -1",)),
    ],
)
def test_impossible_settings_are_refused(domain, settings, words):
    with refused(*words):
        make_environment(f"bsuite/{domain}", **settings)


def test_sizes_can_be_reduced_to_what_is_needed():
    spec = make_environment("bsuite/umbrella_length", length=5, max_length=0, distractors=2, max_distractors=0).spec
    assert (spec.horizon, spec.observation) == (5, Vector(5))
    assert dataclasses.asdict(CatchConfig()) == {"noise_scale": 0.0, "reward_scale": 1.0}
