"""Training with environments on the host: the same as in one program, whatever the groups."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.envs.protocol import InSegments
from paircredit.methods import make_method, replace_dotted
from paircredit.training import Plan, train
from paircredit.training.hosted import HostedMembers, group_sizes
from paircredit.training.loop import LoopState
from paircredit.training.members import member_keys, stack_members
from paircredit.training.train import states_like
from tests.sentences import refused
from tests.training.theatre import Stage, Theatre

SEGMENT = InSegments(make_environment("probe-delay"), 7)
UPDATES, MEMBERS = 6, 2


def method_for(name: str):
    return replace_dotted(make_method(name, preset="probe"), {"inner.episodes": 3}, name)


def trained(name: str, env, updates: int = UPDATES, members: int | None = None, **more):
    chunks, members = [], members or MEMBERS
    state = train(
        [method_for(name)] * members,
        [env] * members,
        range(members),
        Plan(updates=3),
        updates,
        on_chunk=chunks.append,
        **more,
    )
    summaries = {key: np.concatenate([c.summaries[key] for c in chunks], axis=1) for key in chunks[0].summaries}
    return state, summaries


def learners(state: LoopState):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state.learner)]


@pytest.fixture(scope="module", params=[pytest.param("a2c", marks=pytest.mark.nightly), "meta-pwtd"])
def on_device(request):
    return request.param, *trained(request.param, SEGMENT)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_host_trains_as_the_device_does(on_device, groups):
    name, state, summaries = on_device
    opened, closed = Stage.opened, Stage.closed
    hosted, seen = trained(name, Theatre(SEGMENT, groups))
    assert (Stage.opened - opened, Stage.closed - closed) == (groups, groups)
    for ours, theirs in zip(learners(hosted), learners(state), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    for key, values in summaries.items():
        np.testing.assert_allclose(seen[key], values, rtol=1e-6)
    for ours, theirs in zip(jax.tree.leaves(hosted.trajectory), jax.tree.leaves(state.trajectory), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", [pytest.param("a2c", marks=pytest.mark.nightly), "meta-pwtd"])
def test_groups_may_be_of_unequal_size(name):
    """A group of two and one of one: each trains its members as one group of three would."""
    opened = Stage.sizes.copy()
    apart, seen = trained(name, Theatre(SEGMENT, 2), members=3)
    assert Stage.sizes[len(opened) :] == [6, 3] or Stage.sizes[len(opened) :] == [3, 6], "three actors per member"
    together, summaries = trained(name, Theatre(SEGMENT, 1), members=3)
    for ours, theirs in zip(learners(apart), learners(together), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    for key, values in summaries.items():
        np.testing.assert_allclose(seen[key], values, rtol=1e-6)
    for ours, theirs in zip(jax.tree.leaves(apart.trajectory), jax.tree.leaves(together.trajectory), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    policies = np.asarray(apart.learner.policy.parameters.logits)
    assert len({policy.tobytes() for policy in policies}) == 3, "members differ, so that an exchange would be seen"


@pytest.mark.parametrize(
    ("members", "groups", "sizes"), [(3, 2, [2, 1]), (13, 7, [2] * 6 + [1]), (8, 4, [2] * 4), (5, 1, [5])]
)
def test_sizes_of_groups_differ_by_one_at_most(members, groups, sizes):
    assert group_sizes(members, groups) == sizes


FOUR_DEVICES = """
import jax, numpy as np
from tests.training import test_hosted as hosted
from tests.training.theatre import Theatre

assert jax.device_count() == 4
hosted.MEMBERS = 4
spread = hosted.trained("meta-pwtd", Theatre(hosted.SEGMENT, 4))
assert len({group.device for group in hosted.groups_of(4)}) == 4
one = jax.local_devices()[:1]
jax.local_devices = lambda: one
together = hosted.trained("meta-pwtd", Theatre(hosted.SEGMENT, 4))
for ours, theirs in zip(hosted.learners(spread[0]), hosted.learners(together[0]), strict=True):
    np.testing.assert_array_equal(ours, theirs)
for name, values in together[1].items():
    np.testing.assert_array_equal(spread[1][name], values)
print("the same")
"""


def groups_of(members: int):
    return HostedMembers([method_for("a2c")] * members, Theatre(SEGMENT, members), Plan()).groups


@pytest.mark.slow
@pytest.mark.nightly
def test_groups_on_four_devices_give_the_numbers_of_one_bit_for_bit():
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", FOUR_DEVICES], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "the same"), done.stderr


def test_states_have_the_shapes_that_were_promised():
    """A checkpoint is read into them."""
    env, method = Theatre(SEGMENT, 2), method_for("meta-pwtd")
    state, _ = trained("meta-pwtd", env, 3)
    like = states_like([method] * MEMBERS, [env] * MEMBERS, range(MEMBERS), Plan(updates=3))
    assert jax.tree.structure(like) == jax.tree.structure(state)
    assert [(x.shape, x.dtype) for x in jax.tree.leaves(like)] == [(x.shape, x.dtype) for x in jax.tree.leaves(state)]


def test_a_training_that_goes_on_keeps_what_was_learned_and_begins_new_episodes():
    first, seen = trained("a2c", Theatre(SEGMENT), 3)
    ended = np.asarray(first.actors.ended).sum(axis=1)
    later, after = trained("a2c", Theatre(SEGMENT), 6, go_on=(3, first))
    whole, _ = trained("a2c", SEGMENT, 6)
    assert after["ended_episodes"].shape == (MEMBERS, 3)
    np.testing.assert_array_equal(after["ended_episodes"][:, 0], ended)  # counting goes on
    np.testing.assert_array_equal(after["episode_return"], 1.0)
    assert (after["ended_episodes"][:, -1] > seen["ended_episodes"][:, -1]).all()
    np.testing.assert_array_equal(later.learner.value.state.steps, 6)
    # Episodes have begun anew between the third and the fourth segment, so that others are cut in the last one.
    assert not np.array_equal(np.asarray(later.trajectory.valid), np.asarray(whole.trajectory.valid))


def test_the_first_step_of_a_training_that_goes_on_is_none_of_an_episode():
    """Methods that look beyond a segment (A2C-RR) see there that the episode before it has ended."""
    first, _ = trained("a2c", Theatre(SEGMENT), 3)
    segments = []
    method = method_for("a2c")
    with HostedMembers([method] * MEMBERS, Theatre(SEGMENT), Plan(updates=1)) as members:
        for _ in range(2):
            first, _ = members.run_chunk(stack_members([method] * MEMBERS), None, Plan(updates=1), first)
            segments.append(jax.device_get(first.trajectory))
    assert not segments[0].valid[..., 0].any() and segments[0].valid[..., 1].all()
    assert (segments[0].rewards[..., 0] == 0).all()
    assert segments[1].valid[..., 0].all(), "only once"


@pytest.mark.nightly
def test_sequences_of_a2c_rr_do_not_go_on_in_the_episodes_after_a_stop():
    """The chain's episodes are longer than all segments: without a stop, a sequence grows by seven steps a segment."""
    env = Theatre(InSegments(make_environment("bsuite/discounting_chain"), 7))
    settings = {"inner.episodes": 3, "prediction.steps": 50, "prediction.capacity": 6, "prediction.warm_up": 10}
    settings |= {"network.trunk": (4, 4), "prediction.width": 6, "prediction.cells": 4}
    method = make_method("a2c-rr", "default", "bsuite/discounting_chain")
    methods = [replace_dotted(method, settings, "a2c-rr")] * MEMBERS

    def recordings(state):
        return jax.device_get(state.learner.own.predictor.state.buffer)

    first = train(methods, [env] * MEMBERS, range(MEMBERS), Plan(updates=1), 3)
    assert (recordings(first).running == 21).all() and not recordings(first).slots.stored.any()
    whole = train(methods, [env] * MEMBERS, range(MEMBERS), Plan(updates=1), 5)
    assert (recordings(whole).running == 35).all()
    later = train(methods, [env] * MEMBERS, range(MEMBERS), Plan(updates=1), 5, go_on=(3, first))
    # The segment before the stop was not learned from yet; then its sequence is stored, and another has six steps.
    assert (recordings(later).running == 6).all()
    assert (recordings(later).slots.stored == 3).all() and (recordings(later).slots.lengths[:, :3] == 28).all()


def test_a_broken_emulator_stops_everybody_and_closes_all():
    closed = Stage.closed
    with pytest.raises(RuntimeError, match="the emulator broke"):
        trained("a2c", Theatre(SEGMENT, 2, fails_at=30))
    assert Stage.closed - closed == 2


def test_resets_are_refused():
    with refused("only the online protocol"):
        HostedMembers([method_for("a2c")], Theatre(SEGMENT), Plan(protocol="reset"))


def test_time_is_accounted_for():
    env, methods, plan = Theatre(SEGMENT, 2), [method_for("a2c")] * MEMBERS, Plan(updates=2)
    with HostedMembers(methods, env, plan) as members:
        stacked = stack_members(methods)
        state = members.start_members(stacked, env, plan, member_keys(range(MEMBERS)))
        for group in members.groups:
            group.seconds.clear()
        members.run_chunk(stacked, env, plan, state)
        for seconds in (group.seconds for group in members.groups):
            parts = [seconds[name] for name in ("emulators", "device", "acting", "learning")]
            assert min(parts) > 0 and sum(parts) <= seconds["all"]
            assert 0 < seconds["working"] <= seconds["all"]


def test_stepping_one_on_the_device_is_refused():
    env = Theatre(SEGMENT)
    with pytest.raises(Exception, match="stepped in pools by `train`"):
        jax.block_until_ready(env.reset(jax.random.key(0)))
