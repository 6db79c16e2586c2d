"""The queue for a GPU: what is in it, what counts as done, and that nothing is made twice."""

from __future__ import annotations

import json

import pytest

from paircredit.experiments.spec import as_json
from paircredit.studies import STUDIES, queue
from paircredit.studies.queue import QUEUE, Entry, standing
from tests.experiments.conftest import run_cli as run_cli
from tests.rungs import nightly_but
from tests.sentences import refused

TINY = (
    Entry("first", "umbrella", 1, "U1", "Does it run?"),
    Entry("second", "umbrella", 2, "U1", "Does it run again?"),
)


@pytest.fixture
def tiny(monkeypatch, tmp_path, run_cli):
    """The command with a queue of seconds."""
    monkeypatch.setattr(queue, "QUEUE", TINY)
    places = ("--out", tmp_path / "queue", "--kept", tmp_path / "kept", "--scale", "smoke")
    return lambda *words: run_cli("queue", *words, *places)


def test_entries_have_names_of_their_own_and_fit_into_half_an_hour():
    assert len({entry.name for entry in QUEUE}) == len(QUEUE)
    assert all(0 < entry.minutes <= 28 for entry in QUEUE)


@pytest.mark.parametrize("entry", QUEUE, ids=[entry.name for entry in QUEUE])
def test_an_entry_is_a_part_of_an_experiment_that_decides_a_claim(entry):
    assert entry.runs("paper") and entry.runs("smoke")
    known = {claim.id for study in STUDIES for claim in study.claims}
    named = set(entry.decides.replace(",", "").split()) - {"as", "printed", "tuned"}
    assert named and named <= known


def test_what_is_stopped_goes_on_and_nothing_is_made_twice(tiny, tmp_path):
    code, out, err = tiny("--minutes", 0.005)
    assert code == 0 and "The time is over; first can be gone on with" in err
    assert "2 of 2 left, 3 minutes; next: first." in out
    code, out, _ = tiny("--minutes", 5)
    assert code == 0 and "All 2 entries are done." in out
    digests = tmp_path / "queue" / "digests"
    assert {path.name for path in digests.iterdir()} == {"first", "second"}
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "queue").rglob("*") if path.is_file()}
    code, out, _ = tiny("--minutes", 5)
    assert code == 0 and "All 2 entries are done." in out
    assert {path: path.stat().st_mtime_ns for path in files} == files
    # What is kept elsewhere counts as well, if it is of the same runs.
    (tmp_path / "kept").mkdir()
    (digests / "first").rename(tmp_path / "kept" / "first")
    assert "kept/first" in tiny()[1]
    origin = tmp_path / "kept" / "first" / "provenance.json"
    runs = json.loads(origin.read_text())
    runs[0]["spec"]["seed"] = 1
    origin.write_text(json.dumps(runs))
    code, _, err = tiny("--minutes", 5)
    assert code == 2 and "holds other runs than first (umbrella-variance.seed is 1 there and 0 here)" in err


def test_kept_digests_are_of_the_whole_scale(monkeypatch, tmp_path, run_cli):
    """To see whether everything works, nobody has to move them away."""
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "results" / QUEUE[0].name
    kept.mkdir(parents=True)
    origin = [{"name": spec.name, "spec": as_json(spec)} for spec in QUEUE[0].runs("paper")]
    (kept / "provenance.json").write_text(json.dumps(origin))
    assert f"results/{kept.name}" in run_cli("queue", "--only", kept.name)[1]
    code, out, _ = run_cli("queue", "--only", kept.name, "--scale", "smoke")
    assert code == 0 and "0 of 4 runs" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--minutes", 0), "--minutes is 0, but must be more than 0"),
        (("--minutes", "nan"), "--minutes is nan"),
        (("--only", "frist"), "Did you mean 'first'"),
    ],
)
def test_what_cannot_be_made_is_refused(tiny, tmp_path, words, message):
    code, _, err = tiny(*words)
    assert code == 2 and message in err and not (tmp_path / "queue").exists()


def test_a_digest_without_provenance_is_refused(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "provenance.json").write_text("[1]")
    with refused("is no provenance of a digest"):
        standing(TINY[0], "smoke", tmp_path / "queue", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", nightly_but([], [entry.name for entry in QUEUE]))
def test_every_entry_runs_at_a_tiny_scale(name, run_cli, tmp_path):
    places = ("--out", tmp_path / "queue", "--kept", tmp_path / "kept", "--scale", "smoke")
    code, out, err = run_cli("queue", "--minutes", 30, "--only", name, *places)
    assert code == 0, err
    assert "All 1 entries are done." in out and (tmp_path / "queue" / "digests" / name / "provenance.json").exists()
