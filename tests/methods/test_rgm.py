"""RGM: the regular return where all weights are 1, what its Transformer may see, its metagradient, Key-to-Door."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.dag import DagConfig
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import ActorCritic, InnerLoop, OuterLoop, make_method
from paircredit.methods.rgm import RGM, generated_returns
from paircredit.networks import NetworkSpec
from paircredit.training import check_method, collect_episodes
from paircredit.weights.return_generator import (
    Attention,
    Block,
    LayerNorm,
    ReturnGenerator,
    Transformer,
    TransformerSpec,
    sinusoids,
)
from tests.methods.contract import case
from tests.methods.quick_training import learners_after
from tests.rungs import nightly_but
from tests.sentences import refused

TINY = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
LIGHT = TransformerSpec(blocks=2, heads=2, width=8, widening=2)
FLAT = dataclasses.replace(LIGHT, blocks=1)
"""Compiles in half the time, for tests that train."""
INNER = InnerLoop(discount=0.9, entropy_cost=0.0, initial_scale=0.7, episodes=4)
UMBRELLA = UmbrellaConfig(length=3, mean=0.5, variance=1.0, horizon=5).build()
"""Ten states, and two steps of padding in every episode."""


def key_to_door():
    return KeyToDoorConfig(key_steps=3, apple_steps=4, door_steps=3, fewest_apples=19).build()


def method(**settings) -> ActorCritic:
    return make_method(
        "rgm", inner=INNER, **{"network": TINY, "transformer": LIGHT, "outer": OuterLoop(initial_scale=1.0), **settings}
    )


def generator(env=UMBRELLA, seed: int = 0, bound="linear", scale: float = 1.0, **sizes) -> ReturnGenerator:
    spec = dataclasses.replace(LIGHT, **sizes)
    make = jax.jit(lambda key: ReturnGenerator.random(key, env.spec, TINY, spec, bound, scale))
    return make(jax.random.key(seed))


weigh = eqx.filter_jit(lambda weights, episode: weights(episode))


@pytest.fixture(scope="module")
def batch():
    player = make_method("a2c", inner=INNER)

    @jax.jit
    def made(key):
        return collect_episodes(player, player.init(key, UMBRELLA), UMBRELLA, jax.random.key(1))

    return made(jax.random.key(0))


@pytest.fixture(scope="module")
def episode(batch):
    """States 0 … 3 and two steps of padding."""
    one = jax.tree.map(lambda x: x[0], batch)
    assert np.asarray(one.valid).tolist() == [True] * 3 + [False] * 2
    return one


def normed(x, norm: LayerNorm) -> np.ndarray:
    x = np.asarray(x)
    away = x - x.mean(axis=1, keepdims=True)
    narrow = away / np.sqrt((away**2).mean(axis=1, keepdims=True) + 1e-5)
    return narrow * np.asarray(norm.scale) + np.asarray(norm.shift)


class TestNetwork:
    def test_norm_by_hand(self):
        normed = LayerNorm(jnp.array([1.0, 2.0]), jnp.array([0.0, 1.0]))(jnp.array([[1.0, 3.0], [7.0, 7.0]]))
        np.testing.assert_allclose(normed, [[-1, 3], [0, 1]], atol=1e-4)

    def test_attention_by_loops(self):
        rng = np.random.default_rng(0)
        attention = Attention.random(jax.random.key(0), 4, 2)
        x, seen = rng.normal(size=(3, 4)).astype(np.float32), np.array([True, True, False])
        weight = np.asarray(attention.inwards.weight)
        queries, keys, values = (x @ weight[:, 4 * i : 4 * i + 4] for i in range(3))
        gathered = np.zeros((3, 4))
        for head in (slice(0, 2), slice(2, 4)):
            for query in range(3):
                shares = np.exp([queries[query, head] @ keys[k, head] / np.sqrt(2) for k in range(2)])
                gathered[query, head] = shares / shares.sum() @ values[:2, head]
        expected = gathered @ np.asarray(attention.outwards.weight)
        np.testing.assert_allclose(attention(jnp.asarray(x), jnp.asarray(seen)), expected, rtol=1e-4, atol=1e-5)

    def test_a_block_by_hand(self, x64):
        """The norms come first, and both parts are added to what they have read."""
        block = Block.random(jax.random.key(0), LIGHT)
        norms = [
            eqx.tree_at(lambda n: (n.scale, n.shift), norm, (norm.scale + 0.1 * k, norm.shift - 0.2 * k))
            for k, norm in enumerate((block.first_norm, block.second_norm), 1)
        ]
        block = eqx.tree_at(lambda b: (b.first_norm, b.second_norm), block, tuple(norms))
        x, seen = jax.random.normal(jax.random.key(1), (5, 8)), jnp.arange(5) < 4
        middle = np.asarray(x) + np.asarray(block.attention(jnp.asarray(normed(x, norms[0])), seen))
        wide = np.maximum(normed(middle, norms[1]) @ block.wide.weight + block.wide.bias, 0)
        np.testing.assert_allclose(block(x, seen), middle + wide @ block.narrow.weight + block.narrow.bias, rtol=1e-9)

    def test_a_transformer_is_its_blocks_and_a_norm(self, x64):
        whole = Transformer.random(jax.random.key(0), 5, LIGHT)
        x, seen = jax.random.normal(jax.random.key(1), (5, 8)), jnp.arange(5) < 4
        expected = jnp.where(seen[:, None], x + sinusoids(5, 8), 0.0)
        for block in whole.blocks:
            expected = block(expected, seen)
        np.testing.assert_allclose(whole(x, seen), normed(expected, whole.norm), rtol=1e-9)

    @pytest.mark.nightly
    def test_without_positions_tokens_are_a_set(self):
        """A permutation of the tokens permutes the answers; with positions it changes them."""
        tokens, seen = jax.random.normal(jax.random.key(0), (5, 8)), jnp.ones(5, dtype=bool)
        order = jnp.array([3, 1, 4, 0, 2])
        for positions, same in (("none", True), ("sinusoidal", False), ("learned", False)):
            spec = dataclasses.replace(LIGHT, positions=positions)
            network = jax.jit(lambda key, spec=spec: Transformer.random(key, 5, spec))(jax.random.key(1))
            answer = jax.jit(lambda given, network=network: network(given, seen))
            difference = np.abs(answer(tokens)[order] - answer(tokens[order])).max()
            assert (difference < 1e-4) == same

    def test_positions_differ(self):
        rows = sinusoids(121, 8)
        distances = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
        assert distances[~np.eye(121, dtype=bool)].min() > 0.01
        np.testing.assert_allclose(rows[0], [0] * 4 + [1] * 4)

    @pytest.mark.parametrize(
        "sizes, words", [({"width": 10, "heads": 4}, ("10", "4")), ({"width": 3, "heads": 3}, ("3",))]
    )
    def test_sizes_that_do_not_fit_are_refused(self, sizes, words):
        with refused("width", *words):
            generator(**sizes)

    def test_unknown_names_are_refused(self, users_view):
        with refused("'sinus'", "sinusoidal"):
            generator(positions="sinus")
        with refused("'sigmoid'", "twice-sigmoid"):
            generator(bound="sigmoid")


class TestWhatWeightsSee:
    def test_a_weight_is_read_from_the_token_of_its_reward(self, episode, monkeypatch):
        """Token t holds S_t, A_t and R_t, and the weight of R_t is what the last layer makes of that very token."""
        network, tokens = generator(scale=1.0), []

        def watched(self, given, seen):
            del self
            tokens.append((np.asarray(given), np.asarray(seen)))
            return given

        monkeypatch.setattr(Transformer, "__call__", watched)
        weights, ((found, seen),) = network(episode), tokens
        states, (actions, rewards) = episode.observations, map(np.asarray, (episode.actions, episode.rewards))
        for t in range(4):
            expected = network.project(network.perception(states[t])[None])[0]
            if t < 3:  # no action is taken at the end
                expected = expected + network.beside[actions[t]]
            if t > 0:
                expected = expected + rewards[t - 1] * network.beside[-1]
                np.testing.assert_allclose(weights[t - 1], network.out(expected[None])[0, 0], rtol=1e-5)
            np.testing.assert_allclose(found[t], expected, rtol=1e-5, atol=1e-6)
        assert seen.tolist() == [True] * 4 + [False] * 2 and np.ptp(actions[:3]) + np.ptp(rewards[:3]) > 0

    def test_padding_has_no_gradient(self, batch):
        dirty = dataclasses.replace(batch, rewards=jnp.where(batch.valid, batch.rewards, jnp.nan))

        def total(weights, data):
            return jnp.sum(jnp.square(jax.vmap(lambda one: generated_returns(weights(one), one))(data)))

        gradients = jax.jit(jax.grad(total))(generator(), dirty)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
        assert np.abs(gradients.out.bias).max() > 0

    @pytest.mark.parametrize("change", ["observation", "action", "reward"])
    @pytest.mark.parametrize("at", ["past", "future"])
    def test_every_weight_depends_on_the_whole_episode(self, episode, change, at):
        """β of the first reward sees what comes last, β of the last what came first."""
        changed = {
            "observation": {"observations": episode.observations.at[3 if at == "future" else 0].set(5)},
            "action": {"actions": episode.actions.at[2 if at == "future" else 0].add(1)},
            "reward": {"rewards": episode.rewards.at[2 if at == "future" else 0].add(0.5)},
        }[change]
        weights = generator()
        moved = np.abs(weigh(weights, episode) - weigh(weights, dataclasses.replace(episode, **changed)))
        assert moved[0 if at == "future" else 2] > 1e-5

    @pytest.mark.nightly
    def test_weights_start_near_1(self, batch):
        for bound in ("linear", "twice-sigmoid"):
            shares = jax.jit(jax.vmap(generator(bound=bound, scale=0.01)))(batch)
            np.testing.assert_allclose(shares, 1, atol=0.05)
            assert shares.std() > 0

    @pytest.mark.nightly
    def test_the_bound(self, episode):
        weights = generator(bound="twice-sigmoid")
        steep = dataclasses.replace(weights, out=jax.tree.map(lambda x: 20 * x, weights.out))
        shares = np.asarray(weigh(steep, episode))
        assert shares.min() >= 0 and shares.max() <= 2
        free = dataclasses.replace(steep, bound="linear")
        np.testing.assert_allclose(shares, 2 / (1 + np.exp(-np.asarray(weigh(free, episode)))), rtol=1e-4, atol=1e-6)
        assert np.abs(weigh(free, episode)).max() > 2


def test_returns_by_hand(episode):
    data = dataclasses.replace(episode, rewards=jnp.array([1.0, 10.0, 100.0, jnp.nan, 7.0]))
    shares = jnp.array([0.5, -1.0, 2.0, 3.0, 3.0])
    np.testing.assert_allclose(generated_returns(shares, data), [190.5, 190, 200, 0, 0])


def test_a_reward_has_one_weight_for_all_actions_before_it():
    known = case("rgm")
    weights = known.credit(known.learner, known.batch).weights
    assert (weights == weights[:, :1]).all()


@pytest.mark.parametrize("place", nightly_but(["dag"], ["dag", "key-to-door"]))
@pytest.mark.nightly
def test_weights_of_1_are_monte_carlo(place):
    """With an output layer of 0, β = 1 everywhere; the updates are those of H-PWR with weights of 1, whatever γ."""
    env = DagConfig(depth=4).build() if place == "dag" else key_to_door()
    size = 10 if place == "dag" else env.spec.horizon
    inner = InnerLoop(episodes=3, discount=0.9, standardise=place != "dag")
    rgm = make_method("rgm", inner=inner, outer=OuterLoop(initial_scale=0.0), network=TINY, transformer=FLAT)
    plain = make_method("h-pwr", inner=inner, table=jnp.ones((size, size)), network=TINY)
    learner, twin = jax.jit(lambda key: (rgm.init(key, env), plain.init(key, env)))(jax.random.key(0))
    twin = dataclasses.replace(twin, policy=learner.policy, weighted_value=learner.weighted_value)
    first, learn, learn_twin = learner, eqx.filter_jit(rgm.learn), eqx.filter_jit(plain.learn)
    collect = jax.jit(lambda learner, key: collect_episodes(rgm, learner, env, key))
    for seed in range(2):
        trajectory = collect(learner, jax.random.key(seed))
        learner, twin = learn(learner, trajectory)[0], learn_twin(twin, trajectory)[0]
    moved = jax.tree.map(lambda a, b: jnp.abs(a - b).max(), first.policy.parameters, learner.policy.parameters)
    assert max(jax.tree.leaves(moved)) > 0.01
    ours, theirs = (learner.policy, learner.weighted_value), (twin.policy, twin.weighted_value)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


class TestMetagradient:
    @pytest.mark.nightly
    def test_finite_differences_agree_on_the_dag(self, x64):
        """With bounded weights; those with linear ones are in the contract."""
        rgm = method(bound="twice-sigmoid")
        checked = check_method(rgm, make_environment("dag", depth=4), updates=2, directions=3)
        assert np.abs(checked.numeric).max() > 1e-6
        assert checked.relative_error < 1e-6

    @pytest.mark.nightly
    def test_finite_differences_agree_in_key_to_door(self, x64):
        inner = InnerLoop(episodes=2, standardise=True, entropy_cost=0.05, initial_scale=1.0)
        rgm = make_method(
            "rgm", inner=inner, outer=OuterLoop(initial_scale=1.0, clip_norm=None), network=TINY, transformer=FLAT
        )
        checked = check_method(rgm, key_to_door(), updates=2, directions=3)
        assert np.abs(checked.numeric).max() > 1e-9
        assert checked.relative_error < 1e-5


def test_key_to_door_presets():
    paper, default, small = (make_method("rgm", name, "key-to-door") for name in ("paper", "default", "small"))
    for preset in (paper, default):
        assert (preset.outer.learning_rate, preset.outer.lambda_, preset.outer.clip_norm) == (1e-6, 1.0, None)
        assert preset.inner.learning_rate == 2e-4 and preset.inner.standardise
        assert preset.rule.transformer == TransformerSpec(blocks=4, heads=4, width=256)
    assert (small.outer.learning_rate, small.outer.lambda_, small.inner.entropy_cost) == (1e-4, 0.5, 0.1)
    assert small.rule.transformer.width <= 64 and small.network.trunk == (64, 64)
    for preset in ("default", "paper"):
        assert make_method("rgm", preset, "dag") == ActorCritic(RGM(), outer=OuterLoop(learning_rate=1e-4))


@pytest.mark.nightly
def test_trains_in_key_to_door():
    """The shared loop, two members with rates of their own: everything moves and stays finite."""
    base = make_method("rgm", "small", "key-to-door", network=TINY, transformer=FLAT)
    base = dataclasses.replace(base, inner=dataclasses.replace(base.inner, episodes=2))
    faster = dataclasses.replace(base, outer=dataclasses.replace(base.outer, learning_rate=1e-2))
    learner = learners_after(3, [base, faster], key_to_door())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner))
    moved = np.abs(np.asarray(learner.weights.parameters.out.bias) - 1)[:, 0]
    assert 0 < moved[0] < 1e-3 and moved[1] > 10 * moved[0]
