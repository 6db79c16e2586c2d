"""All methods with networks, on a short Key-to-Door: the shared loop, the metagradient, the presets."""

from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.methods import ActorCritic, InnerLoop, OuterLoop, make_method
from paircredit.methods.loops import Trained
from paircredit.methods.meta_pwr import MetaPWR
from paircredit.methods.meta_pwtd import MetaPWTD
from paircredit.networks import NetworkSpec
from paircredit.settings import values_of
from paircredit.training import Plan, check_method
from paircredit.training import loop as loop_module
from paircredit.training.loop import run_chunk, start_members
from paircredit.training.members import member_keys, stack_members
from paircredit.types import PixelObservation
from paircredit.weights import FixedPairs, PairNetwork, handcrafted_weights
from tests.sentences import refused

TINY = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
LONGEST = 1.01 * (1 + 2**0.5 + 3**0.5)
"""How far three steps of Adam can take a parameter, in learning rates: the n-th at most √n (β1 = 0, β2 near 1)."""
METHODS = ("a2c", "h-pwr", "meta-pwr", "meta-pwtd")


def environment(**settings):
    return KeyToDoorConfig(key_steps=4, apple_steps=6, door_steps=4, fewest_apples=19, **settings).build()


class TestInTheSharedLoop:
    PLAN = Plan(updates=3)

    def members(self, name: str, inner_rates, outer_rates):
        base = make_method(name, "small", "key-to-door", network=TINY)
        base = dataclasses.replace(base, inner=dataclasses.replace(base.inner, episodes=3))
        for inner_rate, outer_rate in zip(inner_rates, outer_rates, strict=True):
            inner = dataclasses.replace(base.inner, learning_rate=inner_rate, value_learning_rate=inner_rate)
            method = dataclasses.replace(base, inner=inner)
            if method.learns_weights:
                method = dataclasses.replace(method, outer=dataclasses.replace(method.outer, learning_rate=outer_rate))
            yield method

    def run(self, methods, envs):
        """(learners before, learners after, summaries)."""
        methods, envs = stack_members(methods), stack_members(envs)
        state = start_members(methods, envs, self.PLAN, member_keys([0, 0]))
        before = jax.device_get(state.learner)
        state, summaries = run_chunk(methods, envs, self.PLAN, state)
        return before, jax.device_get(state.learner), summaries

    @pytest.mark.nightly
    @pytest.mark.parametrize("name", METHODS)
    def test_members_with_their_own_settings_learn_in_one_program(self, name):
        envs = [environment(mean=5.0, variance=25.0), environment(mean=2.0, variance=4.0, slip=0.1)]
        methods = list(self.members(name, (1e-3, 3e-2), (1e-3, 3e-2)))
        programs = loop_module.chunk_program()._cache_size()
        before, after, summaries = self.run(methods, envs)

        for values in summaries.values():
            assert values.shape == (2, 3) and np.isfinite(values).all()
        for leaf in jax.tree.leaves(after):
            assert np.isfinite(leaf).all()
        moved = self.distances(before.policy.parameters, after.policy.parameters)
        assert 0 < moved[0] <= LONGEST * 1e-3 < moved[1] <= LONGEST * 3e-2, "each by its own learning rate"
        if methods[0].learns_weights:
            assert isinstance(after.weights.parameters, PairNetwork)
            moved = self.distances(before.weights.parameters, after.weights.parameters)
            assert 0 < moved[0] <= LONGEST * 1e-3 < moved[1] <= LONGEST * 3e-2
        elif name == "h-pwr":
            assert isinstance(after.weights.parameters, FixedPairs)
            np.testing.assert_allclose(after.weights.parameters.pairs[1], handcrafted_weights(envs[1]).pairs)

        # Other numbers are the same program, and other numbers.
        others = [environment(mean=10.0, variance=0.0, slip=0.5), environment(door_reward=3.0)]
        _, again, _ = self.run(list(self.members(name, (2e-3, 4e-3), (5e-3, 6e-3))), others)
        assert loop_module.chunk_program()._cache_size() == programs + 1
        assert (again.policy.parameters.head.weight != after.policy.parameters.head.weight).all()

    @staticmethod
    def distances(before, after) -> np.ndarray:
        """How far the parameter that moved most has moved, for each member."""
        pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
        return np.max([np.abs(b - a).reshape(2, -1).max(axis=1) for a, b in pairs], axis=0)


class LinearPolicy(eqx.Module):
    """Logits straight from the picture: compiles in a fraction of the time of a network."""

    weight: jax.Array

    def __call__(self, observation: PixelObservation) -> jax.Array:
        return observation.pixels.reshape(-1).astype(float) / 255 @ self.weight


class SmoothValue(LinearPolicy):
    """A value, and features for the pair network."""

    def features(self, observation: PixelObservation) -> jax.Array:
        return jnp.tanh(super().__call__(observation))

    def __call__(self, observation: PixelObservation) -> jax.Array:
        return jnp.sum(self.features(observation))


class TestMetagradient:
    """Through real updates and the real pair network; policies and values are light, generic and not at their start."""

    SIZE = 7 * 11 * 3

    @pytest.mark.parametrize(
        "rule, differentiate, statistics",
        [
            (MetaPWR(), "everything", False),
            pytest.param(MetaPWTD(), "numerator", False, marks=pytest.mark.nightly),
            pytest.param(MetaPWTD(), "everything", True, marks=pytest.mark.nightly),
        ],
    )
    def test_finite_differences_agree(self, rule, differentiate, statistics, x64):
        rng = np.random.default_rng(0)

        def generic(*shape: int) -> jax.Array:
            return jnp.asarray(rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1]) + 1), dtype=float)

        class Started(ActorCritic):
            def init(self, key, env):
                learner = jax.eval_shape(lambda k: ActorCritic.init(self, k, env), key)
                policy = Trained.fresh(LinearPolicy(generic(TestMetagradient.SIZE, 4)), self.inner.policy_optimiser)
                weights = jax.tree.map(lambda x: generic(*x.shape), learner.weights.parameters)
                fresh = {
                    "policy": dataclasses.replace(policy, state=some_way_on(policy.state)),
                    "weights": Trained.fresh(weights, self.outer.optimiser),
                    "value": Trained.fresh(SmoothValue(generic(TestMetagradient.SIZE, 5)), self.inner.value_optimiser),
                }
                if learner.weighted_value is not None:
                    value = SmoothValue(generic(TestMetagradient.SIZE, 5))
                    fresh["weighted_value"] = Trained.fresh(value, self.inner.value_optimiser)
                return dataclasses.replace(learner, **fresh)

        def some_way_on(state):
            second = jax.tree.map(lambda x: 0.01 * jnp.square(generic(*x.shape)), state.second)
            return state._replace(second=second, steps=state.steps + 3)

        inner = InnerLoop(
            episodes=2,
            standardise=True,
            differentiate=differentiate,
            differentiate_statistics=statistics,
            discount=0.9,
            entropy_cost=0.05,
        )
        method = Started(rule, inner, OuterLoop(lambda_=0.9, clip_norm=None), network=TINY)
        env = KeyToDoorConfig(key_steps=2, apple_steps=3, door_steps=2, fewest_apples=19).build()
        checked = check_method(method, env, updates=2, directions=4)
        assert np.abs(checked.numeric).max() > 1e-6
        assert checked.relative_error < 1e-6


class TestPresets:
    SHARED = {  # noqa: RUF012
        "inner.learning_rate": 2e-4,
        "inner.value_learning_rate": 2e-4,
        "inner.discount": 0.998,
        "inner.entropy_cost": 0.05,
        "inner.second_moment_decay": 0.999,
        "inner.epsilon": 1e-8,
        "inner.clip_norm": None,
        "inner.episodes": 16,
        "inner.optimiser": "adam",
        "inner.standardise": True,
        "network.filters": (16, 32),
        "network.picture_width": 512,
        "network.trunk": (512, 256),
        "network.pair_width": 256,
    }
    """What the paper says of Key-to-Door, for every method (its appendix; β1 = 0 is our Adam)."""
    META = {  # noqa: RUF012
        "outer.learning_rate": 2e-5,
        "outer.second_moment_decay": 0.999,
        "outer.epsilon": 1e-8,
        "outer.clip_norm": None,
    }

    @staticmethod
    def value(method, dotted: str):
        for name in dotted.split("."):
            method = values_of(method)[name]
        return method

    @pytest.mark.parametrize("name", METHODS)
    def test_the_numbers_of_the_paper(self, name):
        method = make_method(name, "paper", "key-to-door")
        expected = self.SHARED | (self.META if name.startswith("meta") else {})
        expected |= {"lambda_": 0.5} if name == "a2c" else {}
        assert {dotted: self.value(method, dotted) for dotted in expected} == expected

    @pytest.mark.parametrize("name", METHODS)
    def test_the_default_keeps_the_networks_and_the_inner_loop_of_the_paper(self, name):
        """But for the lag, and for the statistics of a standardisation, which the learned weights hold fixed."""
        paper, default = (make_method(name, preset, "key-to-door") for preset in ("paper", "default"))
        assert paper.inner.differentiate_statistics
        held = name.startswith("meta-pw")
        assert default.inner == dataclasses.replace(paper.inner, differentiate_statistics=not held)
        assert dataclasses.replace(default.network, lag=paper.network.lag) == paper.network

    @pytest.mark.parametrize("name", METHODS)
    def test_small_is_small(self, name):
        spec = make_method(name, "small", "key-to-door").network
        assert 7 * 11 * spec.filters[1] * spec.picture_width < 0.05 * 7 * 11 * 32 * 512
        assert spec.trunk[0] <= 64 and spec.pair_width <= 32

    @pytest.mark.parametrize("name", METHODS)
    def test_tables_start_from_the_fields(self, name):
        for preset in ("default", "paper"):
            method = make_method(name, preset, "dag")
            assert method == ActorCritic(type(method.rule)(), outer=OuterLoop() if method.learns_weights else None)

    @pytest.mark.parametrize("preset, env, fitting", [("probe", "key-to-door", "default, paper, small")])
    def test_a_preset_for_another_kind_of_environment_is_refused(self, preset, env, fitting):
        with refused(repr(preset), env, fitting):
            make_method("meta-pwr", preset, env)
