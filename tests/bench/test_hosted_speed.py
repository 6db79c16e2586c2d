"""Training beside emulators is timed beside the emulators alone."""

from __future__ import annotations

import json
import sys

import pytest
from tools.bench import hosted_speed
from tools.bench.__main__ import main
from tools.bench.one_pool import OnePool

from paircredit.errors import PaircreditError

WORDS = "--env atari/pong --preset small --members 2 --updates 1 --repeats 2 --methods a2c meta-pwtd"
SETTINGS = "env.size=40 env.steps=5 env.groups=2 env.rollouts=host inner.episodes=2 network.trunk=[8,8]"


@pytest.mark.nightly
def test_both_sides_are_timed_and_one_pool_serves_all_that_have_as_many_emulators(monkeypatch, tmp_path, capsys):
    opened = []

    def open_pool(env, settings, actors):
        opened.append(OnePool(env, settings, actors))
        return opened[-1]

    monkeypatch.setattr(hosted_speed, "OnePool", open_pool)
    file = tmp_path / "numbers.json"
    assert main([*WORDS.split(), "--settings", *SETTINGS.split(), "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "the emulators alone" in out and "A step is 4 frames." in out and "waiting for emulators" in out
    (one,) = opened
    assert one.process.poll() is not None  # ended with the last of them
    rows = json.loads(file.read_text())["rows"]
    assert [set(row["device_seconds"]) for row in rows] == [{"acting", "learning"}, {"acting", "learning", "meta"}]
    for row in rows:
        assert (row["groups"], row["rollouts"], row["horizon"]) == (2, "host", 5)
        assert row["steps_per_second"] == pytest.approx(2 * 2 * 5 / row["seconds_per_update"])
        assert row["frames_per_second"] == pytest.approx(4 * row["steps_per_second"])
        assert row["emulators_busy"] > 0 and row["share_of_one_pool"] > 0 and row["device_busy"] is None
        parts = ("wait_for_emulators", "wait_for_device", "wait_for_other_groups", "hand_over_steps")
        shares = [row[f"threads_{part}"] for part in (*parts, "hand_over_learning")]
        assert min(shares) >= 0 and sum(shares) <= 1 and 0 < row["threads_have_a_core"] < 1
        assert -0.01 < row["groups_wait_at_the_end"] < 1
        if sys.platform == "linux":
            for when in ("cores_while_training", "cores_alone", "cores_in_one_pool"):  # too short to have been counted
                assert "emulators" in row[when] and min(row[when].values()) >= 0
            assert f"of {row['cores']} cores, emulators and other threads had" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--env atari/breakout --profile", "are for environments on the device"),
        ("--env atari/breakout --methods meta-pwr", "needs whole episodes"),
        ("--env minatar/breakout --methods meta-pwr", "needs whole episodes"),
    ],
)
def test_what_cannot_be_timed_there_is_refused(words, message, capsys):
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err


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
