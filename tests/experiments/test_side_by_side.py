"""Several runs at a time: who waits for whom, what happens when one fails, and that nobody is left behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from paircredit.experiments.reproduce import reproduce_side_by_side
from paircredit.experiments.training_run import Silent
from paircredit.runs import find_runs
from paircredit.studies import make_experiment
from tests.sentences import refused

HOLD = (
    "import sys, time, pathlib; me = pathlib.Path(sys.argv[1]); me.touch(); time.sleep(float(sys.argv[2])); me.unlink()"
)


class Told(Silent):
    """Remembers which runs were made, and the most that were made at a time."""

    def __init__(self):
        self.made_runs, self.most = [], 0

    def made(self, note):
        self.made_runs.append(note.split()[0])

    def tell(self, numbers):
        self.most = max(self.most, len(numbers.split(", ")))


@pytest.fixture
def experiment():
    """Its last runs need the weights of earlier ones."""
    return make_experiment("dag", "smoke")


def test_runs_wait_for_those_whose_weights_they_use(experiment, tmp_path):
    told, begun = Told(), []

    def command(name):
        begun.append((name, tuple(told.made_runs)))
        return [sys.executable, "-c", HOLD, str(tmp_path / name), "0.1"]

    reproduce_side_by_side(experiment, tmp_path / "dag", 3, told, command=command)
    assert sorted(told.made_runs) == sorted(spec.name for spec in experiment.runs) and told.most == 3
    before = dict(begun)
    used = {spec.name: getattr(spec, "weights_from", None) for spec in experiment.runs}
    assert any(used.values())
    assert all(source in before[name] for name, source in used.items() if source)
    (credit,) = [spec for spec in experiment.runs if hasattr(spec, "pwr_weights_from")]
    assert {credit.pwr_weights_from, credit.pwtd_weights_from} <= {*before[credit.name], None}


def test_after_a_failure_no_other_run_is_begun(experiment, tmp_path):
    begun = []

    def command(name):
        begun.append(name)
        script = "import sys; print('paircredit: It broke.', file=sys.stderr); sys.exit(2)" if len(begun) == 1 else HOLD
        return [sys.executable, "-c", script, str(tmp_path / name), "1.5"]

    told = Told()
    with refused(f"1 of {len(experiment.runs)} runs failed; {experiment.runs[0].name}: It broke."):
        reproduce_side_by_side(experiment, tmp_path / "dag", 2, told, command=command)
    assert len(begun) == 2 and told.made_runs == begun[1:]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_leaves_nobody_behind(experiment, tmp_path, number):
    mine = tmp_path / "mine"

    def interrupt():
        while not mine.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    words = [sys.executable, "-c", HOLD, str(mine), "60"]
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        reproduce_side_by_side(experiment, tmp_path / "dag", 1, Told(), only=["*reset*"], command=lambda _: words)
    assert time.monotonic() - began < 30


def test_the_command_makes_the_runs_and_the_same_again_makes_none(run_cli, tmp_path):
    words = ("reproduce", "umbrella", "--scale", "smoke", "--workers", 2, "--out", tmp_path / "umbrella")
    code, out, err = run_cli(*words)
    assert code == 0 and "The runs are in" in out, err
    assert [run.name for run in find_runs(tmp_path)] == [
        spec.name for spec in make_experiment("umbrella", "smoke").runs
    ]
    code, _, err = run_cli(*words)
    assert code == 0 and "(finished already)" in err
    assert run_cli(*words[:5], 0, "--out", tmp_path / "none")[0] == 2
