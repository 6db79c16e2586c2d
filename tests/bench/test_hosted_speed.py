"""Training beside emulators is timed beside the emulators alone."""

from __future__ import annotations

import sys

import pytest
from tools.bench import BenchSpec, bench_hosted, hosted_speed
from tools.bench.one_pool import OnePool

from paircredit.errors import PaircreditError

SPEC = BenchSpec(
    env="atari/pong",
    method="a2c",
    preset="small",
    members=2,
    updates=10,
    repeats=2,
    env_settings={"rollouts": "host", "size": 40, "steps": 20},
    method_settings={"inner.episodes": 2, "network.trunk": (8, 8)},
)


def test_one_pool_serves_all_that_have_as_many_emulators(monkeypatch):
    opened = []

    def open_pool(env, settings, actors):
        opened.append(OnePool(env, settings, actors))
        return opened[-1]

    monkeypatch.setattr(hosted_speed, "OnePool", open_pool)
    rows = list(bench_hosted([SPEC, SPEC]))
    (one,) = opened
    assert one.process.poll() is not None  # ended with the last of them
    for row in rows:
        assert (row["groups"], row["rollouts"], row["horizon"]) == (2, "host", 20)
        seconds = row["seconds_per_update"]
        assert row["steps_per_second"] == pytest.approx(2 * 2 * 20 / seconds)
        assert row["frames_per_second"] == pytest.approx(4 * row["steps_per_second"])
        waited = [row[name] for name in row if name.startswith("threads_")]
        assert len(waited) == 6 and all(0 <= share <= 1 for share in waited) and sum(waited[:-1]) <= 1
        assert row["share_of_one_pool"] > 0 and row["emulators_busy"] > 0
        if sys.platform == "linux":
            assert row["cores_while_training"]["emulators"] > 0  # those of other processes are seen


def test_one_pool_plays_in_a_process_of_its_own_and_says_when_that_is_gone():
    pool = OnePool("atari/pong", {"rollouts": "host", "size": 40}, 2)
    try:
        pool.play(0)
        pool.play(3)
        pool.process.kill()
        with pytest.raises(PaircreditError, match=r"all of atari/pong in one pool has ended \(exit code -9\)"):
            pool.play(1)
    finally:
        pool.close()
