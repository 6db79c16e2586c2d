"""Training beside emulators is timed beside the emulators alone."""

from __future__ import annotations

import sys

import pytest

from paircredit.bench import BenchSpec, bench_hosted
from paircredit.envs.atari import environment
from paircredit.envs.atari.pool import AtariPool

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

    def open_pool(options, seeds):
        opened.append(len(seeds))
        return AtariPool(options, seeds)

    monkeypatch.setattr(environment, "AtariPool", open_pool)
    rows = list(bench_hosted([SPEC, SPEC]))
    assert opened == [4]  # the groups' pools are in processes of their own
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
