"""Atari and MinAtar as experiments: what is run at each scale, and MinAtar from the command line to figures."""

from __future__ import annotations

import csv
import dataclasses
import json
from functools import cache
from pathlib import Path

import pytest

from paircredit.envs.atari import GAMES
from paircredit.envs.minatar import GAMES as SMALL_GAMES
from paircredit.errors import PaircreditError
from paircredit.experiments import reproduce
from paircredit.experiments.spec import SCALES, as_json
from paircredit.runs import RunWriter, find_runs
from paircredit.studies import experiments, make_experiment
from paircredit.studies.games.measures import ATARI, MINATAR, PAPER_FRAMES, all_games
from paircredit.studies.games.runs import GamesScale, training
from tests.made_up import write_game
from tests.rungs import nightly_but


@cache
def whole(name):
    return make_experiment(name, "paper")


def test_paper_is_the_papers():
    runs = whole("atari").runs
    assert len(runs) == len({run.name for run in runs}) == 49 * 3
    assert [run.name for run in runs[:3]] == ["alien-a2c", "alien-meta-pwtd", "alien-a2c-rr"]
    for run in runs:
        assert run.env == f"atari/{run.tags['game']}" and run.tags["game"] in GAMES
        assert run.updates == 156_250 == PAPER_FRAMES / (16 * 20 * 4) and run.seeds == (0, 1, 2, 3, 4)
        assert run.preset == "paper" and run.tags["role"] == ATARI.role and run.tags["label"] == run.method


def test_updates_are_rounded_up():
    """An update of 16 actors has 16 × 20 × 4 frames on Atari."""
    assert [training("atari", "a2c", "pong", GamesScale((), frames, 1)).updates for frames in (1280, 1281)] == [1, 2]
    assert training("atari", "a2c", "pong", GamesScale((), 800, 1, method_settings={"inner.episodes": 2})).updates == 5
    assert training("minatar", "a2c", "breakout", GamesScale((), 321, 1)).updates == 2


@pytest.mark.parametrize("scale", nightly_but(["smoke"], ["smoke", "short"]))
def test_less_is_part_of_it(scale):
    runs = make_experiment("atari", scale).runs
    assert {run.name for run in runs} < {run.name for run in whole("atari").runs}
    assert "pong-a2c" in {run.name for run in runs} and runs[0].updates < 10_000


def test_minatar_has_all_games_and_a_step_is_a_frame():
    runs = [*make_experiment("minatar", "paper").runs, *make_experiment("minatar-baselines", "paper").runs]
    assert {run.name for run in runs} == {f"{game}-{m}" for game in SMALL_GAMES for m in ("a2c", "meta-pwtd", "a2c-rr")}
    for run in runs:
        assert run.updates * 16 * 20 == 10_000_000 and len(run.seeds) == 10 and run.tags["role"] == MINATAR.role


def test_they_are_listed():
    assert {"atari", "minatar", "minatar-baselines"} <= set(experiments())
    for name in ("atari", "minatar", "minatar-baselines"):
        for scale in SCALES:
            assert make_experiment(name, scale).runs


def test_a_run_has_what_figures_and_claims_look_for(tmp_path, run_cli):
    """One method at smoke scale, shortened; the rest is the command line's."""
    whole = make_experiment("minatar", "smoke")
    run = dataclasses.replace(whole.runs[0], updates=6)
    reproduce(dataclasses.replace(whole, runs=(run,)), tmp_path / "runs")
    curves = all_games(find_runs(tmp_path / "runs"), MINATAR)["breakout"]["a2c"]
    assert (
        curves.trained == 6 * 320
        and curves.values["episode_return"].shape == (2, 5)
        and (curves.values["episode_return"] >= 0).all()
    )
    code, said, _ = run_cli("figures", tmp_path / "runs", "--out", tmp_path / "figures")
    assert code == 0 and "minatar-curves.svg" in said and "minatar-scores.csv" in said
    code, said, _ = run_cli("claims", tmp_path / "runs")
    assert code == 0 and "M1  not judged" in said and "A1  not judged" in said


class TestSoFar:
    """What is not finished can be looked at, and is not taken for what is."""

    @pytest.fixture
    def runs(self, tmp_path) -> Path:
        folder = tmp_path / "runs"
        write_game(folder, ATARI, "a2c", "pong", 3.0)
        write_game(folder, ATARI, "meta-pwtd", "pong", 3.0, stopped_after=12)
        metrics = folder / "pong-meta-pwtd" / "metrics.jsonl"
        metrics.write_bytes(metrics.read_bytes() + b'{"member": 4, "se')  # it is about to write a row
        return folder

    def test_figures(self, run_cli, runs, tmp_path):
        assert run_cli("figures", runs)[0] == 2
        code, said, err = run_cli("figures", runs, "--so-far", "--out", tmp_path / "figures")
        assert code == 0 and "atari-curves.svg" in said
        assert "Not finished, and looked at as far as they got: pong-meta-pwtd." in err
        with open(tmp_path / "figures" / "atari-scores.csv", newline="") as file:
            frames = {row["method"]: float(row["frames"]) for row in csv.DictReader(file)}
        assert frames == {"A2C": 64_000, "Meta-PWTD": 32_000}

    def test_a_digest_says_what_is_finished(self, run_cli, runs, tmp_path):
        code, _, _ = run_cli("digest", runs, "--so-far", "--out", tmp_path / "digest")
        assert code == 0
        told = json.loads((tmp_path / "digest" / "provenance.json").read_text())
        assert {run["name"]: run["status"] for run in told} == {"pong-a2c": "finished", "pong-meta-pwtd": "running"}

    def test_claims_are_judged_by_finished_runs_alone(self, run_cli, runs, tmp_path):
        assert run_cli("digest", runs, "--so-far", "--out", tmp_path / "digest")[0] == 0
        with open(tmp_path / "digest" / "verdicts.csv", newline="") as file:
            told = {row["id"]: row["measured"] for row in csv.DictReader(file)}
        assert told["A1"].endswith("are needed; there are none.")

    def test_a_report_says_what_is_finished(self, run_cli, runs, tmp_path):
        code, _, _ = run_cli("report", runs, "--so-far", "--out", tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text()
        assert code == 0 and page.count("not finished") == 1
        assert "atari-curves" in page

    def test_other_runs_are_left_out_and_named(self, run_cli, runs, tmp_path):
        write_game(runs, ATARI, "a2c", "breakout", 3.0, stopped_after=0)
        failed = training("atari", "meta-pwtd", "breakout", GamesScale((), 64_000, 5))
        with pytest.raises(PaircreditError), RunWriter(runs / failed.name, "training", as_json(failed)) as writer:
            writer.append([{"member": 0}])
            raise PaircreditError("No.")
        code, _, err = run_cli("figures", runs, "--so-far", "--out", tmp_path / "figures")
        assert code == 0
        assert "Left out, because not finished: breakout-a2c, breakout-meta-pwtd." in err

    def test_damaged_metrics_are_refused(self, run_cli, runs, tmp_path):
        metrics = runs / "pong-meta-pwtd" / "metrics.jsonl"
        metrics.write_bytes(metrics.read_bytes().replace(b'"seed"', b'"se\xff"', 1))
        code, _, err = run_cli("figures", runs, "--so-far", "--out", tmp_path / "figures")
        assert code == 2 and "metrics.jsonl is damaged: not every line of it is a row." in err

    @pytest.mark.parametrize("line", [b"5", b'{"member": 0}', b"[]"])
    def test_lines_that_are_no_rows_are_refused(self, run_cli, runs, tmp_path, line):
        metrics = runs / "pong-meta-pwtd" / "metrics.jsonl"
        metrics.write_bytes(line + b"\n" + metrics.read_bytes())
        code, _, err = run_cli("figures", runs, "--so-far", "--out", tmp_path / "figures")
        assert code == 2 and "line" in err and "row" in err and str(metrics.parent) in err and err.count("\n") == 2

    def test_with_nothing_to_show_there_is_a_sentence(self, run_cli, tmp_path):
        write_game(tmp_path / "runs", ATARI, "a2c", "pong", 3.0, stopped_after=0)
        code, _, err = run_cli("figures", tmp_path / "runs", "--so-far", "--out", tmp_path / "figures")
        assert code == 2 and "none is finished, or has metrics that can be shown" in err

    def test_one_look_sees_the_same_throughout(self, runs):
        """Although the run goes on meanwhile."""
        (found,) = (run for run in find_runs(runs, so_far=True) if not run.finished)
        before = found.metrics()
        with open(found.path / "metrics.jsonl", "a") as file:
            file.write('ed": 4}\n')
        assert found.metrics() == before
        (again,) = (run for run in find_runs(runs, so_far=True) if not run.finished)
        assert len(again.metrics()) == len(before) + 1

    def test_only_one_of_two_ways_to_look(self, run_cli, runs, tmp_path):
        code, _, err = run_cli("figures", runs, "--so-far", "--finished", "--out", tmp_path / "figures")
        assert code == 2 and "say one of them" in err
