"""The member axis: members do not notice each other, and numbers are swept without compiling again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.dag import DagConfig
from paircredit.envs.umbrella import UmbrellaConfig
from paircredit.methods import InnerLoop, OuterLoop, make_method
from paircredit.settings import with_values
from paircredit.training import Plan, train
from paircredit.training.loop import chunk_program
from paircredit.training.members import member_keys, stack_members
from tests.sentences import refused

pytestmark = pytest.mark.usefixtures("real_compilation")
DAG = DagConfig(depth=4).build()
PLAN = Plan(updates=10)


def recorded(methods, envs, seeds, plan=PLAN):
    """Final states and curves of a training."""
    chunks = []
    state = train(methods, envs, seeds, plan, 20, on_chunk=chunks.append)
    return state, np.concatenate([chunk.summaries["episode_return"] for chunk in chunks], axis=1)


def member(tree, index):
    return jax.tree.map(lambda x: x[index], tree)


def assert_same(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if not jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def trio():
    """Three seeds with three learning rates."""
    methods = [
        make_method("meta-pwr", inner=InnerLoop(learning_rate=rate), outer=OuterLoop(learning_rate=0.1))
        for rate in (0.01, 0.03, 0.1)
    ]
    return methods, recorded(methods, [DAG] * 3, [7, 8, 9])


def test_a_member_does_not_notice_who_trains_beside_it(trio):
    methods, (together, curves) = trio
    for index, seed in ((0, 7), (2, 9)):
        alone, curve = recorded([methods[index]], [DAG], [seed])
        np.testing.assert_array_equal(curve[0], curves[index])
        assert_same(member(alone.learner, 0), member(together.learner, index))
    assert (curves[0] != curves[2]).any()


def test_sweeping_numbers_does_not_compile_again(trio):
    """Other learning rates, discounts, entropies, clips: the same program."""
    before = chunk_program()._cache_size()
    methods = [
        make_method(
            "meta-pwr",
            inner=InnerLoop(
                learning_rate=0.2 * i, value_learning_rate=0.3, discount=0.5, entropy_cost=0.1 * i, epsilon=1e-3
            ),
            outer=OuterLoop(
                learning_rate=0.3, clip_norm=1.0 + i, lambda_=0.1 * i, entropy_cost=0.1, second_moment_decay=0.5
            ),
        )
        for i in (1, 2, 3)
    ]
    _, curves = recorded(methods, [DAG, DAG, DagConfig(depth=4, sign_rule="random").build()], [1, 1, 1])
    assert chunk_program()._cache_size() == before
    assert len({tuple(curve) for curve in curves}) == 3, "the numbers were not ignored"


def test_a_change_of_structure_does_compile(trio):
    """The counter above counts."""
    before = chunk_program()._cache_size()
    recorded([make_method("a2c", inner=InnerLoop(episodes=2))], [DAG], [0])
    assert chunk_program()._cache_size() == before + 1


def test_environment_parameters_are_swept_too():
    envs = [UmbrellaConfig(length=n, mean=m, variance=0.0, horizon=4).build() for n, m in ((2, 0.0), (4, 100.0))]
    _, curves = recorded([make_method("a2c")] * 2, envs, [0, 0])
    assert (np.abs(curves[0]) <= 1).all() and (np.abs(curves[1] - 300) <= 1).all()


def test_fixed_values_are_members():
    """The paper's masked value functions, in one program: each member keeps its own."""
    masks = [jnp.zeros(10), jnp.arange(10.0)]
    state, _ = recorded([make_method("meta-pwtd", fixed_value=mask) for mask in masks], [DAG] * 2, [0, 0])
    np.testing.assert_array_equal(state.learner.value.parameters.values, masks)
    eta = state.learner.weights.parameters.eta
    assert np.abs(eta[0] - eta[1]).max() > 1e-3, "another value function makes other weights"


class TestStacking:
    def test_leaves_get_a_leading_axis(self):
        stacked = stack_members([make_method("a2c", lambda_=0.5), make_method("a2c", lambda_=0.9)])
        np.testing.assert_allclose(stacked.rule.lambda_, [0.5, 0.9])
        assert stacked.inner.learning_rate.shape == (2,) and stacked.episodes == 8

    def test_nobody(self):
        with refused("no members"):
            stack_members([])

    @pytest.mark.parametrize(
        "members",
        [
            (make_method("a2c"), make_method("meta-pwr")),
            (make_method("a2c"), make_method("a2c", inner=InnerLoop(episodes=4))),
            (make_method("a2c"), make_method("a2c", inner=InnerLoop(optimiser="sgd"))),
            (DAG, DagConfig(depth=6).build()),
            (UmbrellaConfig(length=3).build(), UmbrellaConfig(length=4).build()),
            (make_method("h-pwr"), make_method("h-pwr", table=jnp.ones((10, 10)))),
        ],
        ids=["method", "episodes", "optimiser", "depth", "horizon", "table or none"],
    )
    def test_different_structures_are_refused(self, members):
        with refused("Members of one program"):
            stack_members(members)

    def test_different_shapes_are_refused(self):
        with refused("[10,10]", "[46,46]"):
            stack_members(
                [make_method("h-pwr", table=jnp.ones((10, 10))), make_method("h-pwr", table=jnp.ones((46, 46)))]
            )

    def test_the_original_is_left_alone(self):
        method = make_method("a2c")
        stack_members([method, with_values(method, lambda_=0.3)])
        assert method == make_method("a2c")


def test_member_keys_come_from_the_seed_alone():
    data = jax.random.key_data(member_keys([3, 4]))
    np.testing.assert_array_equal(data, [jax.random.key_data(jax.random.key(seed)) for seed in (3, 4)])


def test_seeds_that_would_repeat_the_draws_of_others_are_refused():
    """A generator takes 32 bits of a seed: 2³² would be 0 again."""
    with refused("The seed 4294967296 is too large"):
        member_keys([0, 2**32])
    with refused("The seed -1 is too small"):  # which would be 2³² − 1
        member_keys([-1, 2**32 - 1])
    assert len(np.unique(jax.random.key_data(member_keys([0, 1, 2**32 - 1])), axis=0)) == 3


def test_keys_are_those_of_the_seeds():
    seeds = [0, 7, 2**31, 2**32 - 1]
    expected = [jax.random.key_data(jax.random.key(seed)) for seed in seeds]
    np.testing.assert_array_equal(jax.random.key_data(member_keys(seeds)), expected)
