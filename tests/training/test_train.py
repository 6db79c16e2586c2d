"""Driving the loop from the host: chunks, records, faults, memory."""

from __future__ import annotations

import gc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Array

from paircredit.envs import Discrete, EnvSpec
from paircredit.envs.dag import DagConfig
from paircredit.methods import make_method
from paircredit.training import Plan, train
from paircredit.training.loop import chunk_program, run_chunk, start_members
from paircredit.training.members import member_keys, stack_members
from paircredit.training.train import even_chunks, states_like
from paircredit.types import TimeStep
from tests.sentences import refused

pytestmark = pytest.mark.usefixtures("real_compilation")
DAG = DagConfig(depth=4).build()
A2C = make_method("a2c")


def value_of_the_start(method, learner, env):
    return {"start_value": learner.value.parameters.values[0]}


@pytest.fixture(scope="module")
def ten_updates():
    chunks = []
    state = train([A2C] * 2, [DAG] * 2, [0, 1], TestChunks.plan, 10, on_chunk=chunks.append)
    return state, chunks


class TestChunks:
    plan = Plan(updates=4, probe=value_of_the_start)

    def test_the_rest_is_a_shorter_chunk(self, ten_updates):
        _, chunks = ten_updates
        assert [chunk.first_update for chunk in chunks] == [0, 4, 8]
        assert [chunk.summaries["episode_return"].shape for chunk in chunks] == [(2, 4), (2, 4), (2, 2)]

    def test_summaries_are_on_the_host_and_hold_what_the_probe_saw(self, ten_updates):
        _, chunks = ten_updates
        assert set(chunks[0].summaries) == {"episode_return", "start_value"}
        values = np.concatenate([chunk.summaries["start_value"] for chunk in chunks], axis=1)
        assert isinstance(values, np.ndarray)
        assert (values[:, 0] == 0).all(), "the probe looks before the update"
        assert (np.abs(np.diff(values, axis=1)) > 0).any()

    def test_the_size_of_chunks_makes_no_difference(self, ten_updates):
        state, chunks = ten_updates
        curves = []
        whole = train(
            [A2C] * 2,
            [DAG] * 2,
            [0, 1],
            Plan(updates=10),
            10,
            on_chunk=lambda c: curves.append(c.summaries),
        )
        segments = np.concatenate([chunk.summaries["episode_return"] for chunk in chunks], axis=1)
        np.testing.assert_allclose(curves[0]["episode_return"], segments, rtol=1e-6)
        for a, b in zip(jax.tree.leaves(whole.learner), jax.tree.leaves(state.learner), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_no_updates_leave_the_start(self):
        state = train([A2C] * 2, [DAG] * 2, [0, 1], self.plan, 0)
        assert not state.learner.value.parameters.values.any()


class TestGoingOn:
    plan = Plan(updates=4)

    @pytest.mark.parametrize("done", [4, 8, 10])
    def test_going_on_is_as_if_it_had_not_stopped(self, done):
        arguments, curves = ([A2C] * 2, [DAG] * 2, [0, 1], self.plan), []
        whole = train(*arguments, 10, on_chunk=lambda c: curves.append(c.summaries["episode_return"]))
        first, rest = train(*arguments, done), []
        state = train(*arguments, 10, go_on=(done, first), on_chunk=rest.append)
        assert [chunk.first_update for chunk in rest] == list(range(done, 10, 4))
        expected = np.concatenate(curves, axis=1)[:, done:]
        np.testing.assert_array_equal(
            np.concatenate([np.zeros((2, 0)), *(c.summaries["episode_return"] for c in rest)], axis=1), expected
        )
        for a, b in zip(jax.tree.leaves(whole.learner), jax.tree.leaves(state.learner), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_only_where_a_chunk_ends(self):
        with refused("After 3 updates", "chunk of 4"):
            self.go_on_after(3)
        with refused("10 updates", "after 12"):
            self.go_on_after(12)

    def go_on_after(self, done):
        train([A2C], [DAG], [0], self.plan, 10, go_on=(done, states_like([A2C], [DAG], [0], self.plan)))

    def test_the_shape_of_states_is_known_without_computing_them(self):
        state = start_members(stack_members([A2C] * 2), stack_members([DAG] * 2), self.plan, member_keys([0, 1]))
        like = states_like([A2C] * 2, [DAG] * 2, [0, 1], self.plan)
        assert jax.tree.structure(like) == jax.tree.structure(state)
        for a, b in zip(jax.tree.leaves(like), jax.tree.leaves(state), strict=True):
            assert isinstance(a, jax.ShapeDtypeStruct) and (a.shape, a.dtype) == (b.shape, b.dtype)


def test_every_member_needs_a_method_an_environment_and_a_seed():
    with refused("2 methods", "1 environments", "3 seeds"):
        train([A2C] * 2, [DAG], [0, 1, 2], Plan(), 1)


class TestEvenChunks:
    @pytest.mark.parametrize("total, most, size", [(100, 100, 100), (1000, 300, 250), (7, 100, 7), (97, 10, 10)])
    def test_by_hand(self, total, most, size):
        assert even_chunks(total, most) == size

    @given(st.integers(1, 3000), st.integers(1, 500))
    def test_the_largest_divisor_that_is_not_too_small(self, total, most):
        size = even_chunks(total, most)
        assert 1 <= size <= min(most, total)
        better = [d for d in range(max(most // 4, 1), min(most, total) + 1) if total % d == 0]
        assert size == (max(better) if better else min(most, total))


class Faulty(eqx.Module):
    """One step, reward 1; now and then the reward is `fault`."""

    chance: Array
    fault: Array

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec("faulty", 1, Discrete(1), 1)

    def reset(self, key):
        return (), self._time_step(0.0, False)

    def step(self, key, state, action):
        happens = jax.random.uniform(key) < self.chance
        return (), self._time_step(jnp.where(happens, self.fault, 1.0), True)

    def _time_step(self, reward, end):
        return TimeStep(
            jnp.zeros((), dtype=int),
            jnp.ones(1, dtype=bool),
            jnp.asarray(reward),
            jnp.asarray(end),
            jnp.zeros((), dtype=bool),
        )


class TestFaults:
    plan = Plan(updates=5)
    fine = Faulty(jnp.array(0.0), jnp.array(jnp.nan))

    @pytest.mark.parametrize("fault, spelled", [(np.nan, "NaN"), (np.inf, "infinite")])
    def test_a_reward_that_is_no_number_stops_training(self, fault, spelled):
        broken = Faulty(jnp.array(1.0), jnp.array(fault, dtype=jnp.float32))
        seen = []
        with refused("episode_return", spelled, "update 0 ", "seed 33", "environment"):
            train([A2C] * 2, [self.fine, broken], [11, 33], self.plan, 5, on_chunk=seen.append)
        assert not seen

    def test_the_update_is_counted_from_the_start_of_training(self):
        """Where the fault comes late: the update in the message is the one in which it came."""
        rare = Faulty(jnp.array(0.01), jnp.array(jnp.nan))
        methods, envs = stack_members([A2C] * 2), stack_members([self.fine, rare])
        state = start_members(methods, envs, self.plan, member_keys([11, 33]))
        curve = []
        for _ in range(12):
            state, summaries = run_chunk(methods, envs, self.plan, state)
            curve += list(np.asarray(summaries["episode_return"])[1])
        first = int(np.argmax(np.isnan(curve)))
        assert first > 5, "the fault comes after the first chunk"
        with refused(f"update {first} ", "seed 33"):
            train([A2C] * 2, [self.fine, rare], [11, 33], self.plan, 60)


class TestMemory:
    """Nothing grows with time."""

    def test_what_lives_on_the_device_stays_the_same(self):
        sizes = []

        def measure(chunk):
            gc.collect()
            sizes.append(sum(x.nbytes for x in jax.live_arrays()))

        gc.freeze()  # what is there already need not be looked at again after every chunk
        try:
            train([make_method("meta-pwr")], [DAG], [0], Plan(updates=10), 60, on_chunk=measure)
        finally:
            gc.unfreeze()
        assert len(sizes) == 6 and len(set(sizes)) == 1

    @pytest.mark.nightly
    def test_a_longer_chunk_needs_no_more_memory_but_for_its_summaries(self):
        methods, envs = stack_members([make_method("meta-pwr")] * 2), stack_members([DAG] * 2)
        memory = {}
        for updates in (10, 1000):
            plan = Plan(updates=updates)
            state = start_members(methods, envs, plan, member_keys([0, 1]))
            memory[updates] = chunk_program().lower(methods, envs, plan, state).compile().memory_analysis()
        summaries = 2 * 990 * 4  # one float32 per member and update
        assert memory[1000].output_size_in_bytes - memory[10].output_size_in_bytes == summaries
        # While the chunk runs its summaries may exist twice.
        assert memory[1000].temp_size_in_bytes - memory[10].temp_size_in_bytes <= 2 * summaries
        assert memory[10].temp_size_in_bytes < 10**6
