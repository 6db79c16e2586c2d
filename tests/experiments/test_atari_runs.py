"""Runs on Atari: stopped and gone on with, and refused without the emulator."""

from __future__ import annotations

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


@pytest.mark.nightly
def test_a_game_that_only_the_emulator_knows_is_called_by_its_own_name(run_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("train", "atari/pong", "a2c", "--env.game", "pitfall", *TRAIN[3:-1], 80)
    code, said, err = run_cli(*words)
    assert code == 0, err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("atari-pitfall-a2c-") and str(folder.relative_to(tmp_path)) in said
    (own,) = own_runs(find_runs(folder))
    assert own.place == "atari/pitfall"
