"""Runs on Atari: stopped and gone on with, timed, and refused without the emulator."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from paircredit.experiments import training_run
from paircredit.experiments.training_run import NEW_GAMES
from paircredit.runs import find_runs, read_run
from paircredit.runs.checkpoint import checkpoint_files
from paircredit.studies.own import own_runs

SETTINGS = ("--env.size", 40, "--env.steps", 5, "--method.inner.episodes", 2)
TRAIN = ("train", "atari/breakout", "a2c", "--preset", "small", *SETTINGS, "--seeds", 2, "--frames", 240)


def test_a_stopped_run_goes_on_learning_and_says_that_games_began_anew(run_cli, tmp_path, monkeypatch):
    """240 frames are 6 updates of 2 actors × 5 steps × 4 frames."""
    real, seen, found = training_run._rows, [], []

    def rows(*arguments, **more):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(1)
        return real(*arguments, **more)

    def trained(*arguments, go_on=None, **more):
        found.append(go_on)
        return real_train(*arguments, go_on=go_on, **more)

    real_train = training_run.train
    monkeypatch.setattr(training_run, "LARGEST_CHUNK_OF_PICTURES", 2)
    monkeypatch.setattr("paircredit.runs.checkpoint.Schedule.due", lambda *_: True)
    monkeypatch.setattr(training_run, "_rows", rows)
    out = tmp_path / "run"
    code, _, err = run_cli(*TRAIN, "--out", out)
    assert code == 130 and f"go on with `paircredit resume {out}`" in err
    ((updates, _), *_) = checkpoint_files(out)
    assert updates == 4

    monkeypatch.setattr(training_run, "_rows", real)
    monkeypatch.setattr(training_run, "train", trained)
    code, said, err = run_cli("resume", out)
    assert code == 0, err
    assert NEW_GAMES in said + err
    ((updates, state),) = found
    assert updates == 4
    assert (np.asarray(state.learner.policy.state.head.weight) > 0).any()  # squares of earlier gradients
    run = read_run(out)
    assert run.manifest["resumptions"][0]["not_exact"] == NEW_GAMES
    rows_of_first = [row for row in run.metrics() if row["member"] == 0]
    assert [row["update"] for row in rows_of_first] == list(range(6))
    assert [row["frames"] for row in rows_of_first] == [40 * i for i in range(6)]
    ended = [row["ended_episodes"] for row in rows_of_first]
    assert ended == sorted(ended)


def test_bench_shows_how_busy_both_sides_are(run_cli, tmp_path):
    words = ("--members", 2, "--updates", 1, "--repeats", 1, "--preset", "small", "--env", "atari/breakout")
    settings = ("env.size=40", "env.steps=5", "inner.episodes=2", "env.groups=2", "env.rollouts=host")
    code, out, err = run_cli(
        "bench", "--methods", "meta-pwtd", *words, "--settings", *settings, "--json", tmp_path / "numbers.json"
    )
    assert code == 0, err
    assert "the emulators alone" in out and "A step is 4 frames." in out
    (row,) = json.loads((tmp_path / "numbers.json").read_text())["rows"]
    assert row["frames_per_second"] == pytest.approx(4 * row["steps_per_second"])
    assert row["groups"] == 2 and set(row["device_seconds"]) == {"acting", "learning", "meta"}
    assert 0 < row["emulators_busy"] < 1 and row["device_busy"] is None
    parts = "wait_for_emulators", "wait_for_device", "wait_for_other_groups", "hand_over_steps", "hand_over_learning"
    shares = [row[f"threads_{part}"] for part in parts]
    assert min(shares) > 0 and sum(shares) <= 1 and 0 < row["threads_have_a_core"] < 1
    assert "waiting for emulators" in out and -0.01 < row["groups_wait_at_the_end"] < 1
    speeds = row["steps_per_second"], row["one_pool_steps_per_second"]
    assert row["share_of_one_pool"] == pytest.approx(speeds[0] / speeds[1])  # of one turn
    if sys.platform == "linux":
        for when in ("cores_while_training", "cores_alone", "cores_in_one_pool"):  # too short to have been counted
            assert "emulators" in row[when] and min(row[when].values()) >= 0
        assert f"of {row['cores']} cores, emulators and other threads had" in out
    code, _, err = run_cli("bench", "--env", "atari/breakout", "--profile")
    assert code == 2 and "are for environments on the device" in err
    for env in ("atari/breakout", "minatar/breakout"):
        code, _, err = run_cli("bench", "--env", env, "--methods", "meta-pwr")
        assert code == 2 and "needs whole episodes" in err


def test_without_the_extra_one_sentence_says_which_to_install(run_cli, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ale_py.vector_env", None)
    code, out, err = run_cli("train", "atari/pong", "a2c")
    assert code == 2 and not out
    assert err.count("\n") == 1 and "pip install 'paircredit[atari]'" in err
    code, out, err = run_cli("reproduce", "atari", "--scale", "smoke", "--out", tmp_path / "atari")
    assert code == 2 and "pip install 'paircredit[atari]'" in err and not (tmp_path / "atari").exists()


@pytest.mark.parametrize("method", ["meta-pwr", "tvt"])
def test_methods_that_need_whole_episodes_are_refused(run_cli, tmp_path, method):
    code, _, err = run_cli("train", "atari/pong", method, "--out", tmp_path / "run")
    assert code == 2 and "needs whole episodes" in err and not (tmp_path / "run").exists()


def test_a_game_that_only_the_emulator_knows_is_called_by_its_own_name(run_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("train", "atari/pong", "a2c", "--env.game", "pitfall", *TRAIN[3:-1], 80)
    code, said, err = run_cli(*words)
    assert code == 0, err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("atari-pitfall-a2c-") and str(folder.relative_to(tmp_path)) in said
    (own,) = own_runs(find_runs(folder))
    assert own.place == "atari/pitfall"
