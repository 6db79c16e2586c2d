"""What people type to go on, and what they are told."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from paircredit.experiments import Experiment, TrainingSpec, reproduce, training_run
from paircredit.experiments.reproduce import read_experiment
from paircredit.experiments.spec import SCALES, UmbrellaVarianceSpec, as_json, from_json, kind_of
from paircredit.runs import read_run
from paircredit.runs.manifest import manifest_bytes
from paircredit.studies import make_experiment
from tests.experiments.conftest import Counted
from tests.sentences import refused

MODULE = sys.modules[reproduce.__module__]
TRAIN = ("train", "dag", "a2c", "--env.depth", 4, "--frames", 1600, "--seeds", 2)
SMALL = Experiment(
    "small",
    "smoke",
    (
        TrainingSpec("first", "dag", "a2c", 20, (0,), {"depth": 4}),
        UmbrellaVarianceSpec("second", (2, 3), (1.0,), 0.5, 1000),
        TrainingSpec("third", "dag", "a2c", 20, (1,), {"depth": 4}),
    ),
)


class Stop:
    """Interrupts a training before the given chunk, counted over all trainings of a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before, self._seen = -1, 0
        real = training_run._rows

        def rows(*arguments, **more):
            if self._seen == self.before:
                raise KeyboardInterrupt
            self._seen += 1
            return real(*arguments, **more)

        monkeypatch.setattr(training_run, "_rows", rows)
        monkeypatch.setattr(training_run, "LARGEST_CHUNK", 10)
        monkeypatch.setattr("paircredit.runs.checkpoint.Schedule.due", lambda *_: True)

    def __call__(self, before: int) -> None:
        self.before, self._seen = before, 0


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    return Stop(monkeypatch)


@pytest.fixture
def stopped(run_cli: Callable, tmp_path: Path, stop: Stop) -> Path:
    """A run that somebody interrupted after 30 of 50 updates."""
    stop(3)
    code, _, err = run_cli(*TRAIN, "--out", tmp_path / "run")
    assert code == 130
    assert err.endswith(f"paircredit: interrupted; go on with `paircredit resume {tmp_path / 'run'}`.\n")
    stop(-1)
    return tmp_path / "run"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_who_is_asked_to_end_ends_as_by_ctrl_c(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [*TRAIN[:6], 64_000_000, "--out", run]
    process = subprocess.Popen(
        [sys.executable, "-m", "paircredit", *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    end = time.monotonic() + 120
    while not ((run / "metrics.jsonl").exists() and (run / "metrics.jsonl").stat().st_size) and time.monotonic() < end:
        time.sleep(0.05)
    process.terminate()
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130, said
    assert f"paircredit: interrupted; go on with `paircredit resume {run}`." in said
    assert not (run / "lock").exists()


class TestARun:
    def test_resume_goes_on(self, run_cli: Callable, stopped: Path) -> None:
        code, out, err = run_cli("resume", stopped)
        assert code == 0, err
        assert "run goes on after 30 of 50" in err
        assert "Return over the last tenth, mean over 2 seeds" in out and str(stopped) in out
        run = read_run(stopped)
        assert [entry["updates"] for entry in run.manifest["resumptions"]] == [30]
        assert [row["update"] for row in run.metrics()] == [update for update in range(50) for _ in range(2)]

    def test_so_does_the_same_command(self, run_cli: Callable, stopped: Path) -> None:
        code, _, err = run_cli(*TRAIN, "--out", stopped)
        assert code == 0, err
        assert "goes on after 30 of 50" in err
        assert read_run(stopped).manifest["status"] == "finished"

    def test_a_finished_run_that_was_damaged_is_not_called_finished(self, run_cli: Callable, stopped: Path) -> None:
        assert run_cli("resume", stopped)[0] == 0
        with open(stopped / "metrics.jsonl", "ab") as file:
            file.write(b"{}\n")
        for words in (("resume", stopped), (*TRAIN, "--out", stopped)):
            code, _, err = run_cli(*words)
            assert code == 2 and "metrics.jsonl is damaged" in err and "Remove the run's folder" in err

    def test_a_finished_run_is_not_run_again(self, run_cli: Callable, stopped: Path) -> None:
        assert run_cli("resume", stopped)[0] == 0
        before = content(stopped)
        for words in (("resume", stopped), (*TRAIN, "--out", stopped)):
            code, out, err = run_cli(*words)
            assert code == 0
            assert "run (finished already)" in err
            assert "Return over the last tenth" in out
        assert content(stopped) == before

    def test_another_command_is_refused(self, run_cli: Callable, stopped: Path) -> None:
        before = content(stopped)
        code, _, err = run_cli(*TRAIN, "--seeds", 3, "--out", stopped)
        assert code == 2
        assert "exists already and holds another run (seeds is [0, 1] there and [0, 1, 2] here)" in err
        assert content(stopped) == before

    def test_readers_say_how_to_go_on(self, run_cli: Callable, stopped: Path) -> None:
        for words in (["claims", stopped.parent], ["figures", stopped.parent]):
            code, _, err = run_cli(*words)
            assert code == 2
            assert (
                f"is not finished (it was stopped or is still running); go on with `paircredit resume {stopped}`" in err
            )

    def test_it_can_be_looked_at_and_goes_on_all_the_same(self, run_cli: Callable, stopped: Path) -> None:
        code, out, err = run_cli("figures", stopped, "--so-far")
        assert code == 0, err
        assert "Not finished, and looked at as far as they got: run." in err
        assert str(stopped / "figures" / "training-curves.png") in out and "training-weights" not in out
        assert run_cli("resume", stopped)[0] == 0
        code, out, _ = run_cli("figures", stopped, "--out", stopped.parent / "figures")
        assert code == 0 and "training-curves.png" in out

    def test_readers_leave_out_what_is_not_finished_if_they_are_told_so(
        self, run_cli: Callable, stopped: Path, tmp_path: Path
    ) -> None:
        code, _, err = run_cli("claims", tmp_path, "--finished")
        assert code == 2 and f"Of 1 runs in {tmp_path} none is finished." in err
        assert run_cli(*TRAIN, "--out", tmp_path / "whole" / "one")[0] == 0
        commands = (
            ["claims", tmp_path],
            ["figures", tmp_path, "--out", tmp_path / "figures"],
            ["digest", tmp_path, "--out", tmp_path / "digest"],
            ["report", tmp_path, "--out", tmp_path / "report.html"],
        )
        for words in commands:
            assert run_cli(*words)[0] == 2
            code, _, err = run_cli(*words, "--finished")
            assert code in (0, 1) or "There is no figure of any of these runs" in err, err
            assert "Left out, because not finished: run." in err
        told = json.loads((tmp_path / "digest" / "provenance.json").read_text())
        assert [run["name"] for run in told] == ["one"]

    def test_damage_is_told_and_the_older_checkpoint_used(self, run_cli: Callable, stopped: Path) -> None:
        newest = stopped / "checkpoint-30.npz"
        newest.write_bytes(newest.read_bytes()[:100])
        code, _, err = run_cli("resume", stopped)
        assert code == 0
        assert "checkpoint-30.npz is damaged" in err and "goes on after 20 of 50" in err

    def test_with_both_damaged_there_is_a_sentence_and_nothing_is_deleted(
        self, run_cli: Callable, stopped: Path
    ) -> None:
        for file in stopped.glob("checkpoint-*"):
            file.write_bytes(file.read_bytes()[:100])
        before = content(stopped)
        for words in (("resume", stopped), (*TRAIN, "--out", stopped)):
            code, _, err = run_cli(*words)
            assert code == 2
            assert err.count("\n") == 1 and "cannot go on" in err and "start it anew" in err
        assert content(stopped) == before

    def test_a_run_in_other_hands_is_left_alone(self, run_cli: Callable, stopped: Path) -> None:
        from paircredit.runs.files import FolderLock

        lock = FolderLock(stopped)
        code, _, err = run_cli("resume", stopped)
        assert code == 2
        assert "is being written by another process" in err
        lock.release()

    def test_a_renamed_folder(self, run_cli: Callable, stopped: Path) -> None:
        stopped.rename(stopped.parent / "other")
        code, _, err = run_cli("resume", stopped.parent / "other")
        assert code == 2
        assert "holds a run called 'run'; give it its name back" in err

    def test_from_within_the_folder(self, run_cli: Callable, stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(stopped)
        assert run_cli("resume", ".")[0] == 0
        assert read_run(stopped).manifest["status"] == "finished"

    def test_interrupted_before_anything_was_written(
        self, run_cli: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("paircredit.experiments.spec.make_environment", interrupt)
        code, _, err = run_cli(*TRAIN, "--out", tmp_path / "run")
        assert (code, err) == (130, "paircredit: interrupted.\n")


class TestAnExperiment:
    @pytest.fixture
    def left(self, tmp_path: Path, stop: Stop) -> Path:
        """Stopped in the middle of the third of its runs."""
        stop(3)
        with pytest.raises(KeyboardInterrupt):
            reproduce(SMALL, tmp_path / "small")
        stop(-1)
        return tmp_path / "small"

    def test_the_same_call_goes_on(self, left: Path) -> None:
        progress = Counted()
        reproduce(SMALL, left, progress)
        assert progress.skipped == ["first", "second"]
        assert progress.started == {"third": 10} and progress.ended == ["third"]
        assert [read_run(left / spec.name).name for spec in SMALL.runs] == ["first", "second", "third"]

    def test_so_does_resume(self, run_cli: Callable, left: Path) -> None:
        code, out, err = run_cli("resume", left)
        assert code == 0, err
        assert "[1/3] first (finished already)" in err and "third goes on after 10 of 20" in err
        assert f"All runs in {left} are finished" in out

    def test_a_diagnostic_run_starts_over(self, run_cli: Callable, left: Path, stop: Stop) -> None:
        rows = (left / "second" / "metrics.jsonl").read_bytes()
        manifest = json.loads((left / "second" / "manifest.json").read_text())
        from paircredit.runs.manifest import manifest_bytes

        (left / "second" / "manifest.json").write_bytes(manifest_bytes(manifest | {"status": "running"}))
        (left / "second" / "metrics.jsonl").write_bytes(rows[:100])
        assert run_cli("resume", left)[0] == 0
        assert (left / "second" / "metrics.jsonl").read_bytes() == rows

    def test_resume_takes_a_folder_with_several(self, run_cli: Callable, left: Path, stop: Stop) -> None:
        stop(2)
        assert run_cli(*TRAIN, "--out", left.parent / "alone")[0] == 130
        stop(-1)
        code, _, err = run_cli("resume", left.parent)
        assert code == 0, err
        assert "third goes on after 10 of 20" in err and "alone goes on after 20 of 50" in err

    def test_another_experiment_is_refused(self, run_cli: Callable, left: Path) -> None:
        before = content(left)
        other = dataclasses.replace(SMALL.runs[0], updates=30)
        with refused("exists already and holds another experiment", "runs[0].spec.updates is 20 there and 30 here"):
            reproduce(dataclasses.replace(SMALL, runs=(other, *SMALL.runs[1:])), left)
        code, _, err = run_cli("reproduce", "umbrella", "--scale", "smoke", "--out", left)
        assert code == 2
        assert 'name is "small" there and "umbrella" here' in err
        assert content(left) == before

    def test_a_damaged_list_of_runs_is_refused(self, left: Path) -> None:
        (left / "experiment.json").write_text((left / "experiment.json").read_text().replace("20", "30"))
        with refused("experiment.json is damaged"):
            reproduce(SMALL, left)

    def test_the_manifest_of_a_run_is_no_list_of_runs(self, left: Path) -> None:
        run = {"format": 1, "kind": "training", "spec": {}, "status": "running"}
        (left / "experiment.json").write_bytes(manifest_bytes(run))
        with refused("experiment.json is not the list of the runs of an experiment"):
            reproduce(SMALL, left)

    def test_an_interruption_tells_how_to_go_on(
        self, run_cli: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(MODULE, "run_umbrella_variance", interrupt)
        out = tmp_path / "my runs"
        code, _, err = run_cli("reproduce", "umbrella", "--scale", "smoke", "--out", out)
        assert code == 130
        assert f"go on with `paircredit resume '{out}'`" in err
        monkeypatch.undo()
        assert run_cli("reproduce", "umbrella", "--scale", "smoke", "--out", out)[0] == 0
        code, _, err = run_cli("reproduce", "umbrella", "--scale", "smoke", "--out", out)
        assert code == 0 and "umbrella-variance (finished already)" in err


@pytest.mark.parametrize(
    ("folder", "message"), [("nowhere", "There is no folder nowhere"), (".", "There are no runs in")]
)
def test_nothing_to_go_on_with(
    run_cli: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run_cli("resume", folder)
    assert code == 2
    assert message in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["dag", "dag-switches", "umbrella"])
def test_every_spec_survives_being_written_down(name: str, scale: str) -> None:
    for spec in make_experiment(name, scale).runs:
        written = json.loads(json.dumps(as_json(spec)))
        assert from_json(kind_of(spec), written) == spec


def test_an_experiment_survives_being_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "run_one", lambda *_: None)
    reproduce(SMALL, tmp_path / "small")
    assert read_experiment(tmp_path / "small") == SMALL


def test_specs_of_other_versions_are_refused() -> None:
    with refused("'colour'", "does not know"):
        from_json("training", as_json(SMALL.runs[0]) | {"colour": "red"})
    with refused("no kind of run called 'trainin'", "training"):
        from_json("trainin", as_json(SMALL.runs[0]))
    with refused("has no field 'name'"):
        from_json("training", {"env": "dag"})
