"""Where the time goes: programs' text, sums of events, and a real program under the profiler."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from tools.bench.__main__ import _print_profile
from tools.bench.profile import OTHER, operations_of, profile, summarise

from paircredit.methods.loops import part

PROGRAM = """
%fused_computation.1 (p: f32[3]) -> f32[3] {
  ROOT %inner = f32[3]{0} sine(%p), metadata={op_name="jit(f)/part:learn/sin"}
}

ENTRY %main (x: f32[3]) -> f32[3] {
  %x = f32[3]{0} parameter(0)
  %product = f32[3]{0} fusion(%x), kind=kCustom, calls=%fused_computation.1, metadata={stack_frame_id=3}
  %between = f32[3]{0} copy(%product)
  %used = f32[3]{0} add(%between, %x), metadata={op_name="jit(f)/part:learn/transpose(jvp(part:policy))/add"}
  %loop = f32[3]{0} while(%used), condition=%c, body=%b, metadata={op_name="jit(f)/part:rollout/while"}
  ROOT %last = f32[3]{0} negate(%loop), metadata={op_name="jit(f)/neg"}
}
"""


def test_operations_belong_to_the_parts_they_are_named_after_or_used_by():
    kinds, parts = operations_of(PROGRAM)
    assert kinds["loop"] == "while" and kinds["product"] == "fusion" and kinds["last"] == "negate"
    assert parts["used"] == parts["between"] == parts["product"] == "learn/policy"
    assert parts["loop"] == "rollout" and parts["inner"] == "learn" and "last" not in parts


def test_times_and_launches_add_up_and_overlapping_ones_keep_the_device_busy_once():
    events = [("a", 0.0, 2.0), ("b", 1.0, 2.0), ("a", 5.0, 1.0), ("c", 9.0, 0.5)]
    found = summarise(events, {"a": "learn", "b": "rollout"}, wall=12.0, calls=2)
    assert found.wall_seconds == 6.0 and found.busy_seconds == (3.0 + 1.0 + 0.5) / 2
    assert [(share.part, share.seconds, share.launches) for share in found.parts] == [
        ("learn", 1.5, 1.0),
        ("rollout", 1.0, 0.5),
        (OTHER, 0.25, 0.5),
    ]
    assert [(share.name, share.seconds) for share in found.operations] == [("a", 1.5), ("b", 1.0), ("c", 0.25)]


@pytest.fixture(scope="module")
def watched():
    def work(x):
        with part("rollout"):
            x, _ = jax.lax.scan(lambda c, _: (jnp.sin(c @ x), None), x, None, length=20)
        with part("learn"), part("policy"):
            return jnp.linalg.norm(jnp.cos(x) @ x)

    x = jnp.ones((200, 200))
    return profile(jax.jit(work).lower(x).compile(), (x,), calls=1)


def test_a_program_is_seen_part_by_part(watched):
    seconds = {share.part: share.seconds for share in watched.parts}
    assert set(seconds) - {OTHER} == {"rollout", "learn/policy"}
    assert seconds["rollout"] > seconds["learn/policy"] > 0
    assert max(share.launches for share in watched.operations if share.part == "rollout") == 20
    assert 0 < watched.busy_seconds <= watched.wall_seconds


def test_a_profile_is_printed(capsys):
    share = {"part": "learn/policy", "name": "fusion.7", "seconds": 0.003, "launches": 12.0}
    other = {"part": "rollout", "name": "fusion.8", "seconds": 0.001, "launches": 120.0}
    found = {"wall_seconds": 0.008, "busy_seconds": 0.004, "parts": [share, other], "operations": [share, other]}
    _print_profile({"method": "a2c", "profile": found})
    out = capsys.readouterr().out
    assert "a2c, watched: 8.00 ms per update, the device busy 50% of it" in out
    assert [line.split() for line in out.splitlines() if "fusion.7" in line] == [
        ["learn/policy", "3.000", "75.0%", "12", "fusion.7"]
    ]
