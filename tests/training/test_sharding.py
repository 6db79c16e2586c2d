"""Members spread over devices train as if they were on one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from paircredit.training.members import place_members, shares

PROGRAM = """
import dataclasses, gc, sys, tempfile
from pathlib import Path
import jax, numpy as np
from paircredit.envs.dag import DagConfig
from paircredit.methods import make_method
from paircredit.runs.checkpoint import Checkpoint, Position, read_checkpoint, write_checkpoint
from paircredit.training import Plan, train
from paircredit.training.loop import run_chunk, start_members
from paircredit.training.train import states_like
from paircredit.training.loop import chunk_program
from paircredit.training.members import Placement

DAG, PLAN, MEMBERS = DagConfig(depth=4).build(), Plan(updates=10), 8
module = sys.modules["paircredit.training.train"]

def members(name):
    base = make_method(name)
    rates = [0.01 * (1 + i) for i in range(MEMBERS)]
    methods = [dataclasses.replace(base, inner=dataclasses.replace(base.inner, learning_rate=rate)) for rate in rates]
    return methods, [DAG] * MEMBERS, list(range(MEMBERS)), PLAN

def assert_same(one, other):
    is_key = lambda x: jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = (jax.random.key_data(x) if is_key(x) else x for x in (a, b))
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))

def through_a_file(state, name):
    position = Position(20, 0.0, 0, "", "", "")
    path = write_checkpoint(Path(tempfile.mkdtemp()), Checkpoint(position, state, {}))
    return read_checkpoint(path, states_like(*members(name))).state

assert jax.device_count() == 4
for name in sys.argv[1:]:
    before, curves, sizes = chunk_program()._cache_size(), [], []

    def on_chunk(chunk):
        gc.collect()
        curves.append(chunk.summaries)
        sizes.append(sum(x.nbytes for x in jax.live_arrays()))

    spread = train(*members(name), 40, on_chunk=on_chunk)
    assert chunk_program()._cache_size() == before + 4, "once for every device, and not once for every chunk"
    assert len(set(sizes)) == 1, "nothing grows"
    for leaf in jax.tree.leaves(spread):
        assert [shard.device.id for shard in leaf.addressable_shards] == [0, 1, 2, 3]
        assert leaf.addressable_shards[0].data.shape[0] == 2
    assert_same(train(*members(name), 40, go_on=(20, through_a_file(train(*members(name), 20), name))), spread)

    several, together = module.place_members, []
    module.place_members = lambda count: Placement(lambda tree: tree, start_members, run_chunk)
    one = train(*members(name), 40, on_chunk=lambda chunk: together.append(chunk.summaries))
    assert {x.sharding.num_devices for x in jax.tree.leaves(one)} == {1}
    module.place_members = several
    assert_same(curves, together)
    assert_same(spread, one)
    print(name, "the same")
"""


NETWORKS = """
import dataclasses, sys
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from paircredit.envs import make_environment
from paircredit.methods import make_method, replace_dotted
from paircredit.training import Plan, train
from paircredit.training.loop import run_chunk, start_members
from paircredit.training.members import Placement

TINY = {"network.trunk": (8, 8), "network.picture_width": 8, "network.filters": (4, 4), "network.pair_width": 8}
MEMBERS, PLAN = 8, Plan(updates=2)
base = replace_dotted(make_method("meta-pwr", "small", "key-to-door"), TINY | {"inner.episodes": 4}, "meta-pwr")
rates = [1e-3 * (1 + i) for i in range(MEMBERS)]
methods = [dataclasses.replace(base, inner=dataclasses.replace(base.inner, learning_rate=rate)) for rate in rates]
steps = {"key_steps": 4, "apple_steps": 6, "door_steps": 4}
kinds = [(5.0, 25.0, 0.0), (10.0, 100.0, 0.1), (1.0, 0.0, 0.0), (5.0, 0.0, 0.1)] * 2
envs = [make_environment("key-to-door", mean=m, variance=v, slip=s, **steps) for m, v, s in kinds]
module = sys.modules["paircredit.training.train"]

def learners(members):
    state = train(methods[members], envs[members], range(MEMBERS)[members], PLAN, 4)
    parts = state.learner.policy.parameters, state.learner.value.parameters, state.learner.weights.parameters
    return [np.asarray(leaf) for leaf in jax.tree.leaves(parts)], leaf_devices(state)

def leaf_devices(state):
    return {leaf.sharding.num_devices for leaf in jax.tree.leaves(state.learner)}

(spread, devices) = learners(slice(None))
assert devices == {4}
module.place_members = lambda count: Placement(lambda tree: tree, start_members, run_chunk)
share, _ = learners(slice(2, 4))
for all_members, own in zip(spread, share, strict=True):
    np.testing.assert_array_equal(all_members[2:4], own)
assert len({leaf.tobytes() for leaf in spread[0]}) == MEMBERS, "members differ, so that an exchange would be seen"
together, devices = learners(slice(None))
assert devices == {1}
for ours, theirs in zip(spread, together, strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
print("the same")
"""


@pytest.mark.parametrize(
    ("members", "devices", "expected"), [(8, 4, 4), (6, 4, 3), (7, 4, 1), (1, 4, 1), (4, 8, 4), (5, 1, 1), (10, 8, 5)]
)
def test_as_many_devices_as_give_equal_shares(members: int, devices: int, expected: int) -> None:
    assert shares(members, devices) == expected


def test_on_one_device_nothing_is_moved() -> None:
    place, tree = place_members(8), object()
    assert place.put(tree) is tree


def printed(program: str, *words: str) -> list[str]:
    """What a program prints that sees four devices."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["meta-pwr", pytest.param("a2c", marks=pytest.mark.nightly)])
def test_four_devices_give_the_numbers_of_one_bit_for_bit(method: str) -> None:
    assert printed(PROGRAM, method) == [f"{method} the same"]


@pytest.mark.slow
@pytest.mark.nightly
def test_networks_on_four_devices_train_as_their_share_does_alone() -> None:
    """Bit for bit; and, up to rounding, as all members do on one device, whose products may be summed otherwise."""
    assert printed(NETWORKS) == ["the same"]
