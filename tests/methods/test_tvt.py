"""TVT: losses by hand, acting, what transported value reaches, and that it teaches what nothing else can."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.estimators import lambda_advantages, pairwise_sum
from paircredit.methods import InnerLoop, make_method, replace_dotted
from paircredit.methods.loops import Trained
from paircredit.methods.tvt import (
    TVT,
    clip_gradient,
    policy_loss,
    read_strength_loss,
    reconstruction_loss,
    sum_of_episode,
    value_loss,
)
from paircredit.networks import MemorySpec, NetworkSpec
from paircredit.networks.reconstructive_memory import ReconstructiveMemory
from paircredit.training import Plan, collect_episodes, train
from paircredit.training.loop import run_chunk, start_members
from paircredit.training.members import member_keys, stack_members
from paircredit.types import Trajectory
from tests.sentences import refused

SMALL = MemorySpec(rows=40, width=4, encoder=6, controller=5, heads=2, top_reads=4, hidden=7)
NETWORK = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), precision="float32")
UMBRELLA = make_environment("umbrella", length=8, variance=0.25)
DOOR = KeyToDoorConfig(key_steps=3, apple_steps=5, door_steps=3, fewest_apples=19).build()

TRANSPORTING = TVT(
    inner=InnerLoop(episodes=3, discount=0.5, entropy_cost=0.05, initial_scale=1.0),
    lambda_=0.8,
    threshold=0.3,
    memory=SMALL,
    network=NETWORK,
)
"""A window of 2 steps and a threshold that the first reads pass: value is transported from the start."""


def generic_learner(method: TVT, env, seed: int = 0):
    """A learner no parameter of which is 0."""
    rng = np.random.default_rng(seed)
    learner = jax.eval_shape(lambda key: method.init(key, env), jax.random.key(0))
    network = jax.tree.map(
        lambda x: jnp.asarray(0.4 * rng.normal(size=x.shape), dtype=float), learner.policy.parameters
    )
    return dataclasses.replace(learner, policy=Trained.fresh(network, method.inner.policy_optimiser))


@jax.jit
def collected(learner, env, key):
    return collect_episodes(TRANSPORTING, learner, env, key)


@jax.jit
def gradient_of_the_loss(method, network, trajectory):
    return jax.grad(method.loss)(network, trajectory)


credit_of = jax.jit(TRANSPORTING.credit)
unrolled = jax.jit(TRANSPORTING.unroll)


class TestLossesByHand:
    VALID = jnp.array([[True, True], [True, False]])

    def trajectory(self, actions, legal=None) -> Trajectory:
        never = jnp.zeros((2, 2), dtype=bool)
        legal = jnp.ones((2, 2, 2), dtype=bool) if legal is None else legal
        return Trajectory(
            jnp.zeros((2, 3), dtype=jnp.int32), legal, actions, jnp.zeros((2, 2)), never, never, self.VALID
        )

    def test_sums_over_steps_are_averaged_over_episodes(self):
        x = jnp.array([[1.0, 2.0], [4.0, jnp.nan]])
        assert sum_of_episode(x, self.VALID) == (1 + 2 + 4) / 2

    def test_policy(self):
        """Probabilities ¼ and ¾; of the two actions of the second episode one is illegal."""
        logits = jnp.array([[[0.0, np.log(3.0)], [0.0, np.log(3.0)]], [[0.0, 1.0], [jnp.nan, jnp.nan]]])
        legal = jnp.array([[[True, True], [True, True]], [[True, False], [True, True]]])
        trajectory = self.trajectory(jnp.array([[0, 1], [0, 0]]), legal)
        advantages = jnp.array([[2.0, -1.0], [5.0, jnp.nan]])
        quarter, rest = np.log(0.25), np.log(0.75)
        entropy = -(0.25 * quarter + 0.75 * rest)
        expected = -(2 * quarter - 1 * rest + 0.1 * 2 * entropy + 5 * 0.0) / 2
        np.testing.assert_allclose(policy_loss(logits, trajectory, advantages, 0.1), expected, rtol=1e-6)
        gradient = jax.grad(policy_loss, argnums=2)(logits, trajectory, advantages, 0.1)
        np.testing.assert_array_equal(gradient, np.zeros((2, 2)))

    def test_value(self):
        values, targets = jnp.array([[1.0, 2.0], [3.0, jnp.nan]]), jnp.array([[2.0, 5.0], [3.5, jnp.nan]])
        np.testing.assert_allclose(value_loss(values, targets, self.VALID), 0.5 * (1 + 9 + 0.25) / 2)
        to_values, to_targets = jax.grad(value_loss, argnums=(0, 1))(values, targets, self.VALID)
        np.testing.assert_allclose(to_values, [[-0.5, -1.5], [-0.25, 0.0]])
        np.testing.assert_array_equal(to_targets, np.zeros((2, 2)))

    def test_read_strengths_have_a_floor(self):
        strengths = jnp.array([[[1.0, 3.0], [2.5, 0.0]], [[4.0, 4.0], [jnp.nan, 9.0]]])
        loss = read_strength_loss(strengths, 2.0, self.VALID)
        np.testing.assert_allclose(loss, (2 + 3 + 2.5 + 2 + 4 + 4) / 2)
        gradient = jax.grad(read_strength_loss)(strengths, 2.0, self.VALID)
        np.testing.assert_allclose(gradient, [[[0, 0.5], [0.5, 0]], [[0.5, 0.5], [0, 0]]])

    @pytest.mark.parametrize("env, cost", [(UMBRELLA, 1.0), (DOOR, 50.0)], ids=["states", "pictures"])
    def test_reconstruction(self, env, cost):
        """Pictures weigh 50, states 1; the action and reward before are reconstructed beside them."""
        network = generic_learner(TRANSPORTING, env).policy.parameters
        assert isinstance(network, ReconstructiveMemory)
        first = env.reset(jax.random.key(0))[1].observation
        observations = jax.tree.map(lambda x: jnp.broadcast_to(x, (2, 2, *x.shape)), first)
        codes = jnp.asarray(np.random.default_rng(0).normal(size=(2, 2, 4)), dtype=float).at[1, 1].set(jnp.nan)
        actions, rewards = jnp.array([[0, 1], [1, 0]]), jnp.array([[0.5, -2.0], [1.0, jnp.nan]])
        total, seen = 0.0, jax.jit(lambda code: network.observation_decoder.error(code, first))
        for episode, step in ((0, 0), (0, 1), (1, 0)):
            code = codes[episode, step]
            chances = np.asarray(jax.nn.softmax(network.action_decoder(code)))
            total += cost * float(seen(code))
            total -= np.log(chances[actions[episode, step]])
            total += 0.5 * float(network.reward_decoder(code)[0] - rewards[episode, step]) ** 2
        loss = jax.jit(reconstruction_loss)(network, codes, observations, actions, rewards, self.VALID, 50.0)
        np.testing.assert_allclose(loss, total / 2, rtol=1e-5)

    def test_gradients_are_clipped_number_by_number(self):
        x, slopes = jnp.array([1.0, 2.0, 3.0]), jnp.array([-30.0, 4.0, 11.0])
        value, gradient = jax.value_and_grad(lambda x: jnp.sum(slopes * clip_gradient(x, 10.0)))(x)
        assert value == -30 + 8 + 33
        np.testing.assert_array_equal(gradient, [-10.0, 4.0, 10.0])


@pytest.mark.parametrize("env", [UMBRELLA, DOOR], ids=["states", "pictures"])
def test_a_replay_thinks_what_was_thought_when_acting(env):
    learner, key = generic_learner(TRANSPORTING, env), jax.random.key(3)
    trajectory = collected(learner, env, key)
    unroll = unrolled(learner.policy.parameters, trajectory)

    carry = TRANSPORTING.initial_carry(learner)
    act, remember = jax.jit(TRANSPORTING.policy), jax.jit(TRANSPORTING.remember)
    for step in range(env.spec.horizon):
        logits, carry = act(learner, carry, jax.tree.map(lambda x: x[1, step], trajectory.observations))  # noqa: B023
        np.testing.assert_allclose(unroll.logits[1, step], logits, rtol=1e-4, atol=1e-5)
        carry = remember(carry, trajectory.actions[1, step], trajectory.rewards[1, step])
    np.testing.assert_allclose(carry.state.memory.rows[: env.spec.horizon], unroll.thoughts.code[1, :-1], atol=1e-5)

    # The rollout chose its actions by these logits: what it drew, and what follows from it.
    action_key = jax.random.split(key, 3)[1]
    noise = jax.random.gumbel(action_key, (env.spec.horizon, 3, env.spec.num_actions), dtype=float).swapaxes(0, 1)
    chosen = jnp.argmax(jnp.where(trajectory.legal, unroll.logits[:, :-1], -jnp.inf) + noise, axis=-1)
    np.testing.assert_array_equal(chosen, trajectory.actions)
    assert len(np.unique(unroll.logits[0, :, 0])) > 5, "the logits differ from step to step"


@pytest.fixture(scope="module")
def umbrella():
    """A learner, a batch and its unroll, with transported value in it."""
    learner = generic_learner(TRANSPORTING, UMBRELLA)
    trajectory = collected(learner, UMBRELLA, jax.random.key(0))
    unroll = unrolled(learner.policy.parameters, trajectory)
    bonus = jax.jit(TRANSPORTING.bonus)(unroll, trajectory)
    assert (np.abs(bonus).sum(axis=1) > 0.01).all() and (bonus[:, -3:] == 0).all()
    return learner, trajectory, unroll, bonus


class TestTransport:
    def test_credit_is_that_of_rewards_with_the_bonus(self, umbrella):
        learner, trajectory, unroll, bonus = umbrella
        credit = credit_of(learner, trajectory)
        expected = jax.jit(jax.vmap(lambda_advantages, in_axes=(0, 0, 0, None)))(
            trajectory.rewards + bonus, unroll.values, jnp.where(trajectory.terminated, 0.0, 0.5), 0.8
        )
        np.testing.assert_allclose(credit.advantages, expected, atol=1e-5)
        sums = jax.vmap(pairwise_sum)(credit.weights, credit.signal, trajectory.valid)
        np.testing.assert_allclose(credit.advantages, sums, atol=1e-5)

    def test_only_policy_and_value_learn_from_the_bonus(self, umbrella):
        """Neither the decoders nor what the agent is told of rewards see it."""
        learner, trajectory, unroll, _ = umbrella
        with_it, without = (
            gradient_of_the_loss(dataclasses.replace(TRANSPORTING, alpha=alpha), learner.policy.parameters, trajectory)
            for alpha in (TRANSPORTING.alpha, 0.0)
        )
        for name in ("observation_decoder", "action_decoder", "reward_decoder"):
            parts = zip(jax.tree.leaves(getattr(with_it, name)), jax.tree.leaves(getattr(without, name)), strict=True)
            for one, other in parts:
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
        for name in ("policy", "value"):
            difference = getattr(with_it, name).out.weight - getattr(without, name).out.weight
            assert np.abs(difference).max() > 1e-3
        np.testing.assert_array_equal(unroll.rewards[:, 1:], trajectory.rewards)

    def test_a_threshold_that_nothing_passes_is_no_transport(self, umbrella):
        _, trajectory, unroll, _ = umbrella
        assert not TRANSPORTING.bonus(unroll, trajectory)[:, -2:].any()
        assert not dataclasses.replace(TRANSPORTING, threshold=100.0).bonus(unroll, trajectory).any()

    def test_how_far_the_past_begins_is_a_matter_of_the_discount(self, umbrella):
        """With γ = 0.5 that is two steps back; with 0.99 a hundred, and these episodes are shorter."""
        _, trajectory, unroll, bonus = umbrella
        patient = replace_dotted(TRANSPORTING, {"inner.discount": 0.99}, "tvt")
        assert bonus.any() and not patient.bonus(unroll, trajectory).any()

    def test_advantages_are_standardised_where_that_is_asked_for(self, umbrella):
        learner, trajectory, unroll, _ = umbrella
        asked = replace_dotted(TRANSPORTING, {"inner.standardise": True}, "tvt")
        advantages, valid = credit_of(learner, trajectory).advantages, np.asarray(trajectory.valid)
        narrow = (advantages - advantages[valid].mean()) / advantages[valid].std()
        losses = [jax.jit(one.loss)(learner.policy.parameters, trajectory) for one in (asked, TRANSPORTING)]
        policies = [policy_loss(unroll.logits[:, :-1], trajectory, given, 0.05) for given in (narrow, advantages)]
        np.testing.assert_allclose(losses[0] - losses[1], policies[0] - policies[1], rtol=1e-3)
        assert abs(policies[0] - policies[1]) > 0.01

    def test_the_loss_is_the_sum_of_its_parts(self, umbrella):
        learner, trajectory, unroll, _ = umbrella
        network, valid = learner.policy.parameters, trajectory.valid
        advantages = credit_of(learner, trajectory).advantages
        states = trajectory.observations[:, :-1]
        code, strengths = unroll.thoughts.code[:, :-1], unroll.thoughts.read.strengths[:, :-1]
        before = (unroll.actions[:, :-1], unroll.rewards[:, :-1])
        parts = (
            policy_loss(unroll.logits[:, :-1], trajectory, advantages, 0.05),
            0.4 * sum_of_episode(0.5 * jnp.square(advantages), valid),
            reconstruction_loss(network, code, states, *before, valid, 50.0),
            5e-5 * sum_of_episode(jnp.sum(jnp.maximum(strengths, 2.0), axis=-1), valid),
        )
        np.testing.assert_allclose(jax.jit(TRANSPORTING.loss)(network, trajectory), sum(parts), rtol=1e-5)

    def test_gradients_at_logits_and_values_are_clipped(self, umbrella):
        """With a clip of 0 neither policy nor value learns; all else does."""
        learner, trajectory, _, _ = umbrella
        closed = dataclasses.replace(TRANSPORTING, clip=0.0)
        gradient = gradient_of_the_loss(closed, learner.policy.parameters, trajectory)
        for leaf in jax.tree.leaves((gradient.policy, gradient.value)):
            np.testing.assert_array_equal(leaf, np.zeros_like(leaf))
        assert np.abs(gradient.code.weight).max() > 1e-3


class TestBeforeAnythingStarts:
    def test_episodes_longer_than_the_memory_are_refused(self):
        method = dataclasses.replace(TRANSPORTING, memory=dataclasses.replace(SMALL, rows=7))
        with refused("8 steps", "7 rows", "memory.rows"):
            train([method], [UMBRELLA], [0], Plan(updates=1), 1)

    def test_one_perception_for_policy_and_value_is_refused(self):
        shared = dataclasses.replace(TRANSPORTING, network=dataclasses.replace(NETWORK, shared=True))
        with refused("network.shared", "apart"):
            train([shared], [UMBRELLA], [0], Plan(updates=1), 1)

    def test_segments_of_episodes_are_refused(self):
        class Segments(type(UMBRELLA)):
            @property
            def spec(self):
                return dataclasses.replace(super().spec, whole_episodes=False)

        env = Segments(**{field.name: getattr(UMBRELLA, field.name) for field in dataclasses.fields(UMBRELLA)})
        with refused("tvt", "whole episodes", "transported"):
            train([TRANSPORTING], [env], [0], Plan(updates=1), 1)


class TestPresets:
    @pytest.mark.parametrize("preset", ["default", "paper"])
    def test_the_numbers_of_the_paper(self, preset):
        method = make_method("tvt", preset, "key-to-door")
        inner = method.inner
        assert (inner.learning_rate, inner.discount, inner.entropy_cost, inner.episodes) == (2e-4, 0.92, 0.05, 16)
        assert (inner.second_moment_decay, inner.epsilon, inner.clip_norm) == (0.95, 1e-6, None)
        assert (inner.optimiser, inner.standardise) == ("adam", False)
        assert (method.lambda_, method.threshold, method.alpha, method.value_cost) == (0.92, 1.0, 0.9, 0.4)
        assert (method.picture_cost, method.read_cost, method.read_floor, method.clip) == (50.0, 5e-5, 2.0, 10.0)
        assert method.memory == MemorySpec(1000, 200, 400, 256, 3, 50, 200)
        assert dataclasses.replace(method.network, lag="one-hot") == NetworkSpec()

    def test_small_is_small_and_sees_farther(self):
        method = make_method("tvt", "small", "key-to-door")
        assert method.memory.controller <= 64 and method.network.trunk[0] <= 64
        assert (method.inner.discount, method.lambda_, method.inner.standardise) == (0.99, 0.5, False)
        assert (method.inner.learning_rate, method.alpha, method.threshold) == (2e-3, 0.9, 1.0)

    def test_tables_start_from_the_fields(self):
        assert make_method("tvt", "default", "dag") == make_method("tvt", "paper", "dag") == TVT()


@pytest.mark.slow
class TestLearning:
    def after(self, updates: int, env, *methods):
        """(learners, last batches) of members with seeds 0, 1, …."""
        envs, seeds = [env] * len(methods), range(len(methods))
        state = train(list(methods), envs, list(seeds), Plan(updates=100), updates)
        return state.learner, state.trajectory

    def test_transport_teaches_what_lies_after_the_horizon_of_the_discount(self):
        """One decision, paid for ten steps later, at γ = λ = ½: 0.25¹⁰ of the reward comes back, or the value does."""
        settings = {"inner.discount": 0.5, "inner.entropy_cost": 0.1, "inner.episodes": 16, "lambda_": 0.5}
        method = replace_dotted(make_method("tvt", "probe", threshold=0.5), settings, "tvt")
        without = dataclasses.replace(method, alpha=0.0)
        env = make_environment("umbrella", length=10, variance=0.01)
        _, trajectory = self.after(200, env, method, method, without, without)
        returns = trajectory.rewards.sum(axis=-1).mean(axis=-1)
        assert (returns[:2] > 0.8).all() and (jnp.abs(returns[2:]) < 0.7).all()


@pytest.mark.slow
@pytest.mark.nightly
def test_members_with_their_own_settings_learn_key_to_door_in_one_program():
    base = make_method("tvt", "small", "key-to-door", network=NETWORK, memory=dataclasses.replace(SMALL, rows=20))
    assert not base.learns_weights
    methods = [
        replace_dotted(base, {"inner.learning_rate": rate, "inner.episodes": 3, "threshold": threshold}, "tvt")
        for rate, threshold in ((1e-3, 0.1), (3e-2, 1.0))
    ]
    plan, envs = Plan(updates=3), stack_members([DOOR, DOOR])
    state = start_members(stack_members(methods), envs, plan, member_keys([0, 0]))
    before = jax.device_get(state.learner.policy.parameters)
    state, summaries = run_chunk(stack_members(methods), envs, plan, state)
    after = jax.device_get(state.learner.policy.parameters)
    for values in summaries.values():
        assert values.shape == (2, 3) and np.isfinite(values).all()
    pairs = list(zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))
    assert all(np.isfinite(new).all() for _, new in pairs)
    moved = np.max([np.abs(new - old).reshape(2, -1).max(axis=1) for old, new in pairs], axis=0)
    longest = 1.01 * (1 + 2**0.5 + 3**0.5)  # three steps of Adam with β1 = 0, in learning rates
    assert 0 < moved[0] <= longest * 1e-3 < moved[1] <= longest * 3e-2, "each by its own learning rate"
