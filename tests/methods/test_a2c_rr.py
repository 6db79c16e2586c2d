"""A2C-RR: reductions to A2C, what is redistributed, how the predictor learns, and learning without foresight."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.key_to_door import KeyToDoorConfig
from paircredit.estimators import pairwise_sum
from paircredit.experiments import TrainingSpec, training_run
from paircredit.experiments.training_run import Silent, run_training
from paircredit.methods import ActorCritic, InnerLoop, Learner, make_method, replace_dotted
from paircredit.methods.a2c_rr import A2CRR
from paircredit.methods.replay import EpisodeBuffer, Episodes
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.networks import NetworkSpec
from paircredit.runs import read_run
from paircredit.training import Plan, collect_episodes, members, train
from paircredit.training.loop import run_chunk, start_members
from paircredit.training.members import member_keys, stack_members
from tests.methods.steps import policy_after, same
from tests.methods.stopping import stopped_and_whole
from tests.sentences import refused

TINY = NetworkSpec(filters=(2, 2), picture_width=6, trunk=(6, 5), pair_width=8, precision="float32")
SMALL = ReturnPrediction(learning_rate=0.01, width=6, cells=4, batches=3, batch_size=4, capacity=12)
INNER = InnerLoop(episodes=6, discount=0.8, entropy_cost=0.01)
DAG = make_environment("dag", depth=4)


def method(**settings) -> ActorCritic:
    return replace_dotted(
        make_method("a2c-rr", inner=INNER, prediction=SMALL, lambda_=0.7, network=TINY), settings, "a2c-rr"
    )


def batch(env, acting: Any = None, seed: int = 0):
    """A learner at its start and a batch of its episodes."""
    acting = method() if acting is None else acting

    @jax.jit
    def make(key):
        learner = acting.init(key, env)
        return learner, collect_episodes(acting, learner, env, key)

    return make(jax.random.key(seed))


@pytest.fixture(scope="module")
def dag():
    learner, trajectory = batch(DAG)
    values = dataclasses.replace(
        learner.value, parameters=jax.tree.map(lambda x: x + jnp.arange(x.size, dtype=float), learner.value.parameters)
    )
    other = dataclasses.replace(
        learner.own.redistributed_value, parameters=jax.tree.map(lambda x: 3 - 0.1 * x, values.parameters)
    )
    return with_own(dataclasses.replace(learner, value=values), redistributed_value=other), trajectory


@jax.jit
def learn(acting: ActorCritic, learner, trajectory):
    return acting.learn(learner, trajectory)[0]


@jax.jit
def redistributed(acting: ActorCritic, learner, trajectory):
    """What the learner's predictor makes of the rewards."""
    return acting.rule.redistributed_rewards(learner.own, trajectory)


@jax.jit
def credit_of(acting: ActorCritic, learner, trajectory):
    return acting.credit(learner, trajectory)


def with_own(learner: Learner, **parts: Any) -> Learner:
    """The learner with other parts of what A2C-RR alone has."""
    return dataclasses.replace(learner, own=dataclasses.replace(learner.own, **parts))


class TestAgainstA2C:
    def test_without_redistributed_rewards_it_is_a2c(self, dag):
        """m = 0: policy and value take the very steps of A2C."""
        learner, trajectory = dag
        after = learn(method(mix=0.0), learner, trajectory)
        plain = make_method("a2c", inner=INNER, lambda_=0.7, network=TINY)
        start = plain.init(jax.random.key(0), DAG)
        assert same(start.policy, learner.policy)
        start = dataclasses.replace(start, value=learner.value)
        expected, _ = jax.jit(plain.learn)(start, trajectory)
        assert same(after.policy, expected.policy, rtol=1e-4, atol=1e-7)
        assert same(after.value, expected.value, rtol=1e-5, atol=1e-7)
        assert not same(after.policy.parameters, learner.policy.parameters)

    def test_with_them_alone_it_is_a2c_on_the_redistributed_rewards(self, dag):
        """m = 1, the predictor standing still: policy and second value are those of A2C given other rewards."""
        learner, trajectory = dag
        acting = method(mix=1.0, **{"prediction.warm_up": 1000})
        after = learn(acting, learner, trajectory)
        given = dataclasses.replace(trajectory, rewards=redistributed(acting, learner, trajectory))
        assert not same(given.rewards, trajectory.rewards, atol=0.01)
        plain = make_method("a2c", inner=INNER, lambda_=0.7, network=TINY)
        start = dataclasses.replace(plain.init(jax.random.key(0), DAG), value=learner.own.redistributed_value)
        expected, _ = jax.jit(plain.learn)(start, given)
        assert same(after.policy, expected.policy, rtol=1e-4, atol=1e-6)
        assert same(after.own.redistributed_value, expected.value, rtol=1e-4, atol=1e-6)

    def test_advantages_are_standardised_after_the_mixing(self, dag):
        """The policy steps along the standardised mixture, and not along a mixture of standardised advantages."""
        learner, trajectory = dag
        still = {"inner.standardise": True, "inner.optimiser": "sgd", "prediction.warm_up": 1000}
        regular, other = (np.asarray(credit_of(method(mix=m), learner, trajectory).advantages) for m in (0.0, 1.0))
        valid = np.asarray(trajectory.valid)
        assert regular[valid].std() > 1.5 * other[valid].std(), "standardised, both would count alike"

        def standardised(x):
            return (x - x[valid].mean()) / x[valid].std()

        def step(advantages):
            return policy_after(acting.inner, learner.policy, trajectory, jnp.asarray(advantages)).parameters

        acting = method(mix=0.3, **still)
        after = learn(acting, learner, trajectory).policy.parameters
        assert same(after, step(standardised(0.7 * regular + 0.3 * other)), rtol=1e-3, atol=1e-5)
        apart = step(0.7 * standardised(regular) + 0.3 * standardised(other))
        assert not same(after, apart, rtol=1e-3, atol=1e-5)

    def test_the_predictor_learns_before_it_redistributes(self, dag):
        learner, trajectory = dag
        acting = method(mix=1.0, **{"inner.optimiser": "sgd", "inner.learning_rate": 1.0})
        after = learn(acting, learner, trajectory)
        wiser = with_own(learner, predictor=after.own.predictor, largest=after.own.largest)
        steps = [
            policy_after(acting.inner, learner.policy, trajectory, credit_of(acting, one, trajectory).advantages)
            for one in (wiser, learner)
        ]
        assert same(after.policy, steps[0], rtol=1e-5, atol=1e-6)
        assert not same(after.policy, steps[1], rtol=1e-4, atol=1e-5)


def test_padding_may_hold_anything(dag):
    """Two episodes are shorter; what stands after their ends changes nothing anywhere in the learner."""
    learner, trajectory = dag
    valid = trajectory.valid & (jnp.arange(4) < jnp.array([2, 4, 1, 4, 4, 4])[:, None])
    after = [
        learn(
            method(**{"inner.standardise": True}),
            learner,
            dataclasses.replace(
                trajectory,
                valid=valid,
                rewards=jnp.where(valid, trajectory.rewards, anything),
                actions=jnp.where(valid, trajectory.actions, action),
            ),
        )
        for anything, action in ((0.0, 0), (np.nan, 1))
    ]
    one, two = (
        (each.policy, each.value, each.own.redistributed_value, each.own.largest, each.own.quality) for each in after
    )
    assert same(one, two) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(two))
    assert same(*(each.own.predictor.parameters for each in after))


class TestCredit:
    @pytest.mark.parametrize("mix", [0.0, 0.3, 1.0])
    def test_weights_times_signal_are_the_advantages(self, dag, mix):
        learner, trajectory = dag
        credit = credit_of(method(mix=mix), learner, trajectory)
        sums = jax.vmap(pairwise_sum)(credit.weights, credit.signal, trajectory.valid)
        assert np.abs(credit.advantages).max() > 0.1
        np.testing.assert_allclose(sums, credit.advantages, rtol=1e-4, atol=1e-5)

    def test_what_is_redistributed_is_the_return(self, dag):
        learner, trajectory = dag
        rewards = redistributed(method(), learner, trajectory)
        np.testing.assert_allclose(rewards.sum(axis=1), trajectory.rewards.sum(axis=1), atol=1e-5)
        assert (jnp.abs(rewards - trajectory.rewards) > 1e-3).any()


class TestPrediction:
    def test_the_loss_by_hand(self, dag):
        """Main error at the end, auxiliary error everywhere, L2 of everything; an episode counts once."""
        learner, trajectory = dag
        predictor, episodes = learner.own.predictor.parameters, Episodes.of(trajectory)
        cut = dataclasses.replace(
            episodes, valid=episodes.valid & (jnp.arange(4) < jnp.array([2, 4, 1, 4, 3, 4])[:, None])
        )
        g = np.asarray(jax.vmap(predictor)(cut.observations, cut.actions, cut.valid))
        returns, valid = np.asarray(cut.returns), np.asarray(cut.valid)
        main = np.mean([(g[b, valid[b]][-1] - returns[b]) ** 2 for b in range(6)])
        everywhere = np.mean([np.mean((g[b, valid[b]] - returns[b]) ** 2) for b in range(6)])
        squares = sum(float(jnp.sum(x**2)) for x in jax.tree.leaves(predictor))
        for auxiliary, l2 in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.01)):
            prediction = dataclasses.replace(SMALL, auxiliary=auxiliary, l2=l2)
            loss, last = prediction.loss(predictor, cut, cut.returns)
            np.testing.assert_allclose(loss, main + auxiliary * everywhere + l2 * squares, rtol=1e-5)
            np.testing.assert_allclose(last, g[:, -1], rtol=1e-5)

    def test_it_learns_from_what_is_stored(self, dag):
        learner, trajectory = dag
        improve = jax.jit(lambda trained: SMALL.improve(trained, trajectory, jnp.asarray(2.0)))
        trained, qualities = learner.own.predictor, []
        episodes = Episodes.of(trajectory)
        first, _ = SMALL.loss(trained.parameters, episodes, episodes.returns)
        for _ in range(40):
            trained, quality = improve(trained)
            qualities.append(float(quality))
        final, _ = SMALL.loss(trained.parameters, episodes, episodes.returns)
        assert trained.state.buffer.stored == 40 * 6 and trained.state.optimiser.steps == 40 * 3
        assert final < 0.05 * first
        assert qualities[0] < 0.3 and qualities[-1] > 0.5

    def test_draws_differ_from_update_to_update(self, dag):
        learner, trajectory = dag
        one, _ = SMALL.improve(learner.own.predictor, trajectory, jnp.asarray(2.0))
        key = jax.random.key_data(learner.own.predictor.state.key)
        assert (jax.random.key_data(one.state.key) != key).any()

    def test_warm_up(self, dag):
        """Nothing is learned before 12 episodes are there; they are stored all the same."""
        learner, trajectory = dag
        prediction = dataclasses.replace(SMALL, warm_up=12)
        once, quality = prediction.improve(learner.own.predictor, trajectory, jnp.asarray(2.0))
        assert same(once.parameters, learner.own.predictor.parameters)
        assert once.state.buffer.stored == 6 and quality == 0
        assert once.state.optimiser.steps == 0
        twice, _ = prediction.improve(once, trajectory, jnp.asarray(2.0))
        assert not same(twice.parameters, once.parameters)

    def test_scaled_returns_make_the_unit_of_rewards_irrelevant(self, dag):
        """With the largest return as 10, rewards a hundred times larger train the same predictor."""
        learner, trajectory = dag
        prediction = dataclasses.replace(SMALL, scaling="largest")
        larger = dataclasses.replace(trajectory, rewards=100 * trajectory.rewards)
        one, quality = prediction.improve(learner.own.predictor, trajectory, jnp.asarray(4.0))
        two, same_quality = prediction.improve(learner.own.predictor, larger, jnp.asarray(400.0))
        assert same(one.parameters, two.parameters, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(quality, same_quality, atol=1e-4)
        g, hundredfold = (
            prediction.predictions(t.parameters, trajectory, jnp.asarray(x)) for t, x in ((one, 4.0), (two, 400.0))
        )
        np.testing.assert_allclose(hundredfold, 100 * g, rtol=1e-2, atol=1e-3)
        np.testing.assert_array_equal(prediction.factor(jnp.asarray(0.0)), 1.0)

    def test_tenths(self, dag):
        learner, trajectory = dag
        predictor, tenths = learner.own.predictor.parameters, dataclasses.replace(SMALL, scaling="ten")
        one, ten = (p.predictions(predictor, trajectory, jnp.asarray(3.0)) for p in (SMALL, tenths))
        np.testing.assert_allclose(ten, 10 * one, rtol=1e-5)

    def test_one_module_looks_at_frame_and_change(self):
        """Then both see alike: the features of a first frame, whose change is the whole frame, come twice."""
        acting = method(**{"prediction.one_module": True, "prediction.first_change": "whole"})
        own = acting.init(jax.random.key(0), DAG).own.predictor.parameters
        two = method(**{"prediction.first_change": "whole"}).init(jax.random.key(0), DAG).own.predictor.parameters
        assert own.frame is None and own.joined.weight.shape == two.joined.weight.shape
        half = own.joined.weight.shape[0] // 2
        moved = own.joined.weight.at[:half].add(0.3).at[half:].add(-0.3)
        other = dataclasses.replace(own, joined=dataclasses.replace(own.joined, weight=moved))
        states, actions = jnp.array([3, 5]), jnp.array([0, 1])
        before, after = own.steps(states, actions), other.steps(states, actions)
        np.testing.assert_allclose(before[0], after[0], rtol=1e-4, atol=1e-5)
        assert not np.allclose(before[1], after[1], atol=1e-3)

    def test_the_largest_return_is_remembered(self, dag):
        learner, trajectory = dag
        returns = np.abs(trajectory.rewards.sum(axis=1))
        after = learn(method(), learner, trajectory)
        assert after.own.largest == returns.max() > 0
        again = learn(method(), with_own(after, largest=jnp.asarray(99.0)), trajectory)
        assert again.own.largest == 99


class TestMixingByQuality:
    ACTING = {"mixing": "quality", "mix": 0.9}  # noqa: RUF012

    def test_predictions_of_no_quality_leave_a2c(self, dag):
        learner, trajectory = dag
        after = learn(method(**self.ACTING, **{"prediction.warm_up": 1000}), learner, trajectory)
        plain = learn(method(mix=0.0), learner, trajectory)
        assert same(after.policy, plain.policy, rtol=1e-5)
        assert same(after.own.redistributed_value.parameters, learner.own.redistributed_value.parameters)

    def test_the_quality_is_the_mix_and_the_weight_of_the_second_value(self, dag):
        learner, trajectory = dag
        learner = with_own(learner, largest=jnp.asarray(20.0))  # so that errors look small
        still = {"inner.optimiser": "sgd", "prediction.learning_rate": 0.0}
        after = learn(method(**self.ACTING, **still), learner, trajectory)
        quality = float(after.own.quality)
        assert 0.1 < quality < 0.9
        fixed = learn(method(mix=quality, **still), learner, trajectory)
        assert same(after.policy, fixed.policy, rtol=1e-5)
        before, full, part = (np.asarray(x.own.redistributed_value.parameters.values) for x in (learner, fixed, after))
        np.testing.assert_allclose(part - before, quality * (full - before), rtol=1e-3, atol=1e-6)


@pytest.mark.usefixtures("users_view")
class TestRefusals:
    @pytest.mark.parametrize(
        "settings, mentions",
        [
            ({"prediction.capacity": 5}, ("5 episodes (prediction.capacity)", "6 of one update")),
            ({"prediction.batch_size": 0}, ("prediction.batch_size is 0",)),
            ({"prediction.batches": -1}, ("prediction.batches is -1",)),
            ({"prediction.cells": 0}, ("prediction.cells is 0",)),
            ({"prediction.chunk": 0}, ("prediction.chunk is 0",)),
            ({"prediction.scaling": "big"}, ("scaling of returns", "'big'")),
            ({"mixing": "fix"}, ("Did you mean 'fixed'?",)),
        ],
    )
    def test_one_sentence_before_anything_starts(self, settings, mentions):
        with refused(*mentions):
            train([method(**settings)], [DAG], [0], Plan(updates=1), 1)

    def test_a_buffer_larger_than_memory(self, monkeypatch, tmp_path):
        """Of the paper's size a member takes 3.4 MiB for 128 episodes; a hundred times that is too much for 0.2 GiB."""
        env = KeyToDoorConfig().build()
        large = make_method("a2c-rr", "small", "key-to-door", prediction=ReturnPrediction(capacity=100 * 128))
        monkeypatch.setattr(members, "_device_bytes", lambda: 0.2 * 2**30)
        with refused("M = 2 members", "T = 120 steps", "it has 0.2 GiB", "--method.prediction.capacity"):
            train([large] * 2, [env] * 2, [0, 1], Plan(updates=1), 1)
        settings = {"prediction.capacity": 100 * 128}
        spec = TrainingSpec("run", "key-to-door", "a2c-rr", 1, (0,), method_settings=settings, preset="small")
        with refused("--method.prediction.capacity"):
            run_training(spec, tmp_path, Silent())
        assert not list(tmp_path.iterdir()), "before a folder is made"
        members.refuse_too_large([make_method("a2c-rr", "small", "key-to-door")] * 2, env)

    def test_the_memory_of_this_machine(self):
        found = members._device_bytes()
        assert found is not None and 2**28 < found < 2**50
        with refused("M = 1 members"):
            train([method(**{"prediction.capacity": 10**12})], [DAG], [0], Plan(updates=1), 1)


class TestPresets:
    def test_the_numbers_of_the_paper(self):
        """(Key-to-Door appendix.)"""
        for preset in ("paper", "default"):
            found = make_method("a2c-rr", preset, "key-to-door")
            assert (found.inner.discount, found.rule.lambda_, found.rule.mix) == (0.92, 0.5, 0.5)
            assert (found.inner.episodes, found.inner.standardise, found.inner.entropy_cost) == (16, True, 0.05)
            assert found.inner.learning_rate == found.inner.value_learning_rate == 2e-4
            p = found.rule.prediction
            assert (p.learning_rate, p.first_moment_decay, p.second_moment_decay, p.l2) == (1e-4, 0.9, 0.999, 1e-7)
            assert (p.batches, p.batch_size, p.capacity, p.auxiliary) == (10, 8, 128, 0.0)
            assert (p.width, p.cells, p.scaling, p.clip_norm) == (512, 64, "none", None)
            assert found.rule.mixing == "fixed" and found.rule.compensation == "last"
            assert found.network.trunk == (512, 256)

    def test_tables_start_from_the_fields_and_small_is_small(self):
        for preset in ("default", "paper"):
            assert make_method("a2c-rr", preset, "dag") == ActorCritic(A2CRR())
        small = make_method("a2c-rr", "small", "key-to-door")
        assert (
            small.rule.prediction.width <= 64
            and small.rule.prediction.start == "xavier"
            and small.network.trunk[0] <= 64
            and small.inner.discount == 0.92
        )


@pytest.mark.nightly
class TestKeyToDoor:
    def test_members_learn_in_one_program_and_keep_their_pictures(self):
        env = KeyToDoorConfig(key_steps=4, apple_steps=6, door_steps=4, fewest_apples=19)
        envs = [env.build(), dataclasses.replace(env, mean=2.0, variance=4.0, slip=0.1).build()]
        base = replace_dotted(
            make_method("a2c-rr", "small", "key-to-door", network=TINY),
            {"inner.episodes": 3, "prediction.width": 6, "prediction.cells": 4, "prediction.capacity": 7},
            "a2c-rr",
        )
        members = [replace_dotted(base, {"prediction.learning_rate": rate}, "a2c-rr") for rate in (0.0, 1e-2)]
        methods, envs, plan = stack_members(members), stack_members(envs), Plan(updates=3)
        state = start_members(methods, envs, plan, member_keys([0, 0]))
        before = jax.device_get(state.learner.own.predictor.parameters)
        state, summaries = run_chunk(methods, envs, plan, state)
        assert all(np.isfinite(x).all() for x in summaries.values())
        predictor = state.learner.own.predictor
        pairs = zip(jax.tree.leaves(before), jax.tree.leaves(predictor.parameters), strict=True)
        moved = np.max([np.abs(a - b).reshape(2, -1).max(axis=1) for a, b in pairs], axis=0)
        assert moved[0] == 0 and 1e-2 < moved[1] < 1, "each by its own learning rate"
        replay: EpisodeBuffer = predictor.state.buffer
        assert (np.asarray(replay.stored) == 9).all()
        pixels = np.asarray(replay.episodes.observations.pixels)
        assert pixels.dtype == np.uint8 and pixels.shape == (2, 7, 14, 7, 11, 3) and pixels.any(axis=(2, 3, 4, 5)).all()
        assert np.asarray(replay.episodes.valid).all()


@pytest.mark.nightly
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The stored episodes and the key of what is drawn go through the checkpoint."""
    monkeypatch.setattr(training_run, "LARGEST_CHUNK", 2)
    settings = {"prediction.width": 6, "prediction.cells": 4, "prediction.batches": 2, "network.trunk": (4, 4)}
    spec = TrainingSpec("run", "dag", "a2c-rr", 6, (0, 1), {"depth": 4}, settings)
    stopped_and_whole(spec, tmp_path, monkeypatch)
    assert read_run(tmp_path / "stopped" / "run").arrays().keys() == {"seeds", "policy_logits"}


@pytest.mark.slow
class TestLearning:
    PLAN = Plan(updates=100)

    def learners(self, name: str, env_name: str, env_settings: dict, **settings) -> Any:
        acting = replace_dotted(make_method(name, "probe"), settings, name)
        env = make_environment(env_name, **env_settings)
        return train([acting] * 3, [env] * 3, [0, 1, 2], self.PLAN, 200).learner

    @staticmethod
    def probabilities(learner) -> np.ndarray:
        return np.asarray(jax.nn.softmax(learner.policy.parameters.logits))

    @pytest.mark.nightly
    def test_a_decision_whose_reward_is_out_of_sight(self):
        """γ = 0: A2C cannot learn what pays in the evening; redistributed to the morning, the reward can be learned."""
        env = ("umbrella", {"length": 4, "variance": 0.25})
        blind = self.learners("a2c", *env, **{"inner.discount": 0.0})
        seeing = self.learners("a2c-rr", *env, **{"inner.discount": 0.0})
        assert not (self.probabilities(blind)[:, 0, 1] > 0.9).all()
        assert (self.probabilities(seeing)[:, 0, 1] > 0.9).all()
