"""The loop: the order of things online, and the whole of the reset protocol against finite differences."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs.dag import DagConfig
from paircredit.metagradient import apply_updates, check_metagradient, explicit_one_step
from paircredit.methods import ActorCritic, InnerLoop, OuterLoop, make_method
from paircredit.methods.meta_pwr import MetaPWR
from paircredit.methods.meta_pwtd import MetaPWTD
from paircredit.networks import MemorySpec
from paircredit.training import Plan, collect_episodes
from paircredit.training.loop import mean_return, reset_iteration, run_chunk, start, start_members
from paircredit.training.members import member_keys, stack_members
from paircredit.types import Trajectory
from paircredit.weights import FixedTable, SigmoidTable
from tests.rungs import nightly_but

DAG = DagConfig(depth=4).build()


def begin(method, plan, env=DAG):
    """Stacked method, environment and state of a single member."""
    methods, envs = stack_members([method]), stack_members([env])
    return methods, envs, start_members(methods, envs, plan, member_keys([0]))


def only_member(tree):
    return jax.tree.map(lambda x: x[0], tree)


def assert_close(one, other, tolerance=1e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_who_learns_weights():
    assert make_method("meta-pwr").learns_weights and make_method("meta-pwtd").learns_weights
    assert not make_method("a2c").learns_weights and not make_method("h-pwr").learns_weights


def test_mean_return_is_the_mean_over_episodes_whatever_their_length():
    rewards = jnp.array([[1.0, 2.0, 3.0], [10.0, 99.0, 99.0]])
    valid = jnp.array([[True, True, True], [True, False, False]])
    never = jnp.zeros((2, 3), dtype=bool)
    batch = Trajectory(
        jnp.zeros((2, 4), dtype=int),
        jnp.ones((2, 3, 1), dtype=bool),
        jnp.zeros((2, 3), dtype=int),
        rewards,
        never,
        never,
        valid,
    )
    np.testing.assert_allclose(mean_return(batch), 8.0, rtol=1e-6)


class TestStart:
    def test_online_has_a_first_batch_and_reset_has_none(self):
        online = start(make_method("a2c"), DAG, Plan(), jax.random.key(0))
        assert online.trajectory.rewards.shape == (8, 4)
        assert start(make_method("a2c"), DAG, Plan(protocol="reset"), jax.random.key(0)).trajectory == ()

    def test_given_weights_are_taken(self):
        weights = SigmoidTable(jnp.full((10, 10), 3.0))
        state = start(make_method("meta-pwr"), DAG, Plan(protocol="reset"), jax.random.key(0), weights)
        np.testing.assert_array_equal(state.learner.weights.parameters.eta, weights.eta)

    def test_every_member_gets_its_own(self):
        methods, envs = stack_members([make_method("meta-pwr")] * 2), stack_members([DAG] * 2)
        weights = stack_members([SigmoidTable(jnp.zeros((10, 10))), SigmoidTable(jnp.ones((10, 10)))])
        state = start_members(methods, envs, Plan(protocol="reset"), member_keys([0, 1]), weights)
        np.testing.assert_array_equal(state.learner.weights.parameters.eta, weights.eta)


@pytest.fixture(scope="module")
def three_updates():
    """(state before, state after, summaries) of three online updates."""
    with jax.enable_x64(True):
        methods, envs, state = begin(TestOnline.method, TestOnline.plan, DagConfig(depth=4).build())
        before = jax.tree.map(jnp.copy, state)
        return before, *run_chunk(methods, envs, TestOnline.plan, state)


class TestOnline:
    """In float64: after a fresh Adam the first metagradient is small, and Adam would scale up its rounding."""

    plan = Plan(updates=3)
    method = make_method(
        "meta-pwr",
        inner=InnerLoop(initial_scale=0.5, episodes=4, learning_rate=1.0),  # an update shows in the very next batch
        outer=OuterLoop(learning_rate=0.1, initial_scale=1.0),
    )

    def test_learn_then_collect_then_evaluate(self, three_updates, x64):
        """The same three updates without scan and vmap: η is evaluated by the batch that follows the update."""
        before, after, summaries = three_updates
        env, state = DagConfig(depth=4).build(), only_member(before)
        learner, trajectory, key = state.learner, state.trajectory, state.key
        collect = jax.jit(lambda learner, key: collect_episodes(self.method, learner, env, key))
        metagradient = jax.jit(lambda *a: explicit_one_step(self.method.problem(), *a).gradient)
        learn, evaluate = jax.jit(self.method.learn), jax.jit(self.method.outer_data)
        improve, returns = jax.jit(self.method.improve_weights), []
        for _ in range(3):
            key, rollout_key = jax.random.split(key)
            returns.append(float(trajectory.rewards.sum()) / 4)
            learner, kept = learn(learner, trajectory)
            trajectory = collect(learner, rollout_key)
            evaluated = evaluate(learner, trajectory)
            gradient = metagradient(
                learner.weights.parameters, kept.policy.parameters, kept.policy.state, kept, evaluated
            )
            learner = improve(learner, gradient)
        np.testing.assert_allclose(summaries["episode_return"][0], returns, rtol=1e-5, atol=1e-6)
        assert_close(only_member(after.learner), learner)
        np.testing.assert_array_equal(after.trajectory.actions[0], trajectory.actions)
        moved = after.learner.weights.parameters.eta - before.learner.weights.parameters.eta
        assert np.abs(moved).max() > 0.05


def test_frozen_weights_are_handcrafted_weights():
    """Meta-PWR that does not learn its weights is H-PWR with the table of those weights, update for update."""
    plan = Plan(updates=5, learn_weights=False)
    eta = jax.random.normal(jax.random.key(3), (10, 10))
    inner = InnerLoop(initial_scale=0.5, learning_rate=0.1)
    hpwr, meta, key = (
        make_method("h-pwr", inner=inner, table=jax.nn.sigmoid(eta)),
        make_method("meta-pwr", inner=inner),
        jax.random.key(0),
    )
    h_state, m_state = start(hpwr, DAG, plan, key), start(meta, DAG, plan, key, SigmoidTable(eta))
    # Their initialisations draw differently: start both from the same policy and the same batch.
    learner = dataclasses.replace(m_state.learner, policy=h_state.learner.policy)
    m_state = dataclasses.replace(m_state, learner=learner, trajectory=h_state.trajectory)
    envs = stack_members([DAG])
    (h_after, h_summaries), (m_after, m_summaries) = (
        run_chunk(stack_members([method]), envs, plan, stack_members([state]))
        for method, state in ((hpwr, h_state), (meta, m_state))
    )
    assert_close(m_after.learner.policy, h_after.learner.policy)
    assert_close(m_after.learner.weighted_value, h_after.learner.weighted_value)
    np.testing.assert_array_equal(m_after.learner.weights.parameters.eta[0], eta)
    assert isinstance(h_after.learner.weights.parameters, FixedTable)
    np.testing.assert_allclose(m_summaries["episode_return"], h_summaries["episode_return"], rtol=1e-6)


class TestReset:
    """Forget, make K updates, follow the gradient of all K outer losses back through all of them."""

    K = 3
    plan = Plan(protocol="reset", updates=2, inner_updates=K)
    inner = InnerLoop(initial_scale=0.7, learning_rate=0.05, discount=0.9, entropy_cost=0.01, episodes=4)
    outer = OuterLoop(initial_scale=1.0, lambda_=0.8)

    @pytest.mark.parametrize("rule", [pytest.param(MetaPWR(), marks=pytest.mark.nightly), MetaPWTD()])
    def test_the_outer_gradient_agrees_with_finite_differences_of_the_replay(self, rule, x64):
        gradients = []

        class Spied(ActorCritic):
            def improve_weights(self, learner, gradient):
                gradients.append(gradient)
                return ActorCritic.improve_weights(self, learner, gradient)

        method, env = Spied(rule, self.inner, self.outer), DagConfig(depth=4).build()
        state = jax.jit(lambda key: start(method, env, self.plan, key))(jax.random.key(2))
        weights = state.learner.weights.parameters
        _, summary = reset_iteration(method, env, self.plan, state)
        evaluate, learn = jax.jit(method.outer_data), jax.jit(method.learn)

        # Live through the same reset in plain Python, and keep what was lived.
        init_key, inner_key, _ = jax.random.split(state.key, 3)
        collect = jax.jit(lambda learner, key: collect_episodes(method, learner, env, key))
        fresh = jax.jit(lambda key: method.init(key, env))(init_key)
        fresh = dataclasses.replace(fresh, weights=state.learner.weights)
        learner, inner_batches, outer_batches = fresh, [], []
        for key in jax.random.split(inner_key, self.K + 1):
            batch = collect(learner, key)
            outer_batches.append(evaluate(learner, batch))
            learner, kept = learn(learner, batch)
            inner_batches.append(kept)

        # J(η): replay the K updates on these batches, evaluate θ_1 … θ_K by the batches that they collected.
        problem = method.problem()

        @jax.jit
        def objective(eta):
            theta, optimiser_state, total = fresh.policy.parameters, fresh.policy.state, 0.0
            for kept, evaluated in zip(inner_batches[:-1], outer_batches[1:], strict=True):
                psi = problem.advantages(eta, kept, None)
                slope = jax.grad(problem.inner_loss)(theta, kept, psi)
                step, optimiser_state = problem.optimiser.update(slope, optimiser_state)
                theta = apply_updates(theta, step)
                total += problem.outer_loss(theta, evaluated)
            return total

        checked = check_metagradient(objective, weights, gradient=gradients[0])
        assert np.abs(checked.numeric).max() > 1e-6
        assert checked.relative_error < 1e-6
        np.testing.assert_allclose(summary["outer_loss"], objective(weights), rtol=1e-10)
        np.testing.assert_allclose(summary["metagradient_norm"], np.linalg.norm(gradients[0].eta), rtol=1e-10)
        # What is recorded is the return after K updates.
        last = jax.device_get(outer_batches[-1].trajectory)
        np.testing.assert_allclose(summary["episode_return"], last.rewards.sum() / len(last.rewards), rtol=1e-10)

    def test_policies_are_forgotten_and_weights_are_kept(self):
        """After many resets the policy is as young as after one; the weights went on."""
        method = make_method("meta-pwr", inner=self.inner, outer=dataclasses.replace(self.outer, learning_rate=0.1))
        methods, envs, state = begin(method, self.plan)
        before = np.asarray(state.learner.weights.parameters.eta)
        ages, distances = [], []
        for _ in range(3):
            state, summaries = run_chunk(methods, envs, self.plan, state)
            ages.append(int(state.learner.policy.state.steps[0]))
            distances.append(float(np.abs(state.learner.weights.parameters.eta - before).max()))
        assert len(set(ages)) == 1
        assert 0 < distances[0] < distances[1] < distances[2]
        assert summaries["outer_loss"].shape == summaries["metagradient_norm"].shape == (1, 2)

    @pytest.mark.parametrize("name", nightly_but(["a2c", "h-pwr"], ["a2c", "h-pwr", "tvt"]))
    def test_methods_without_an_outer_loop_can_be_reset_too(self, name):
        settings = {"memory": MemorySpec(4, 4, 4, 4, 1, 2, 4)} if name == "tvt" else {}
        methods, envs, state = begin(make_method(name, inner=self.inner, **settings), self.plan)
        _, summaries = run_chunk(methods, envs, self.plan, state)
        assert set(summaries) == {"episode_return"}
