"""A run folder that was left goes on where its newest good checkpoint is."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.errors import PaircreditError
from paircredit.runs import RunWriter, read_run
from paircredit.runs.folder import finished_already
from tests.sentences import refused

SPEC = {"name": "run", "updates": 40, "env_settings": {"depth": 8}}


def state(number: float) -> dict[str, jax.Array]:
    return {"number": jnp.asarray(number), "table": jnp.arange(100.0) * number}


def writer(path: Path, **more: Any) -> RunWriter:
    return RunWriter(path, "training", SPEC, go_on=True, inputs="the inputs", like=lambda: state(0.0), **more)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A run that was stopped after its third chunk of ten, with checkpoints after the first two."""
    with writer(tmp_path / "run") as first:
        for chunk in range(3):
            first.append([{"update": chunk * 10}])
            if chunk < 2:
                first.save((chunk + 1) * 10, state(chunk + 1.0), {"seen": np.arange(chunk + 1)})
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"upda')
    return tmp_path / "run"


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def flip(path: Path) -> None:
    """A byte of the table's numbers; bytes of the archive that mean nothing, such as dates, may be anything."""
    changed = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        changed[archive.getinfo("state['table'].npy").header_offset + 400] ^= 1
    path.write_bytes(bytes(changed))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def test_it_goes_on_and_what_came_after_is_cut(left: Path) -> None:
    with writer(left) as again:
        assert again.resumed.position.updates == 20
        np.testing.assert_array_equal(again.resumed.state["table"], np.arange(100.0) * 2)
        np.testing.assert_array_equal(again.resumed.kept["seen"], [0, 1])
        assert (left / "metrics.jsonl").read_text() == '{"update": 0}\n{"update": 10}\n'
        again.append([{"update": 20}])
        again.finish({"a": np.ones(1)})
    run = read_run(left)
    assert [row["update"] for row in run.metrics()] == [0, 10, 20]
    assert sorted(path.name for path in left.iterdir()) == ["arrays.npz", "manifest.json", "metrics.jsonl"]
    assert [entry["updates"] for entry in run.manifest["resumptions"]] == [20]


def test_seconds_add_up_over_processes(left: Path) -> None:
    with writer(left) as again:
        again._began -= 100
        again.save(30, state(3.0))
    with writer(left) as third:
        assert third.resumed.position.seconds >= 100
        third.save(40, state(4.0))
        third.finish()
    manifest = read_run(left).manifest
    assert 100 <= manifest["seconds"] < 110
    assert manifest["checkpoints"]["written"] == 4, "two before the first stop, and one in each process after it"
    assert 0 < manifest["checkpoints"]["seconds"] < 10


def test_without_a_checkpoint_it_starts_over(tmp_path: Path) -> None:
    with writer(tmp_path / "run") as first:
        first.append([{"update": 0}])
    with writer(tmp_path / "run") as again:
        assert again.resumed is None
        assert "starts over" in again.notes[0]
        again.append([{"update": 0}])
        again.finish()
    assert len(read_run(tmp_path / "run").metrics()) == 1


def test_runs_without_states_start_over(left: Path) -> None:
    with RunWriter(left, "training", SPEC, go_on=True) as again:
        assert again.resumed is None
        assert (left / "metrics.jsonl").read_bytes() == b""


def test_each_process_that_differs_is_on_record(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with writer(left):
        pass
    monkeypatch.setattr("paircredit.runs.folder.provenance", lambda: {"python": "4.0"})
    with writer(left):
        pass
    first, second = json.loads((left / "manifest.json").read_text())["resumptions"]
    assert "provenance" not in first and second["provenance"] == {"python": "4.0"}


def test_a_failed_run_may_be_tried_again(left: Path) -> None:
    with pytest.raises(PaircreditError, match="no space"), writer(left):
        raise PaircreditError("There is no space.")
    with refused("failed: There is no space"):
        read_run(left)
    with writer(left) as again:
        again.finish()
    assert "reason" not in read_run(left).manifest


def test_an_interrupted_run_did_not_fail(left: Path) -> None:
    with pytest.raises(KeyboardInterrupt), writer(left):
        raise KeyboardInterrupt
    with refused("is not finished", f"`paircredit resume {left}`"):
        read_run(left)


class TestDamage:
    @pytest.mark.parametrize("damage", [flip, cut])
    def test_the_older_checkpoint_takes_the_place_of_a_damaged_one(self, left: Path, damage: Callable) -> None:
        damage(left / "checkpoint-20.npz")
        with writer(left) as again:
            assert again.resumed.position.updates == 10
            assert (left / "metrics.jsonl").read_text() == '{"update": 0}\n'
            (note,) = again.notes
            assert "checkpoint-20.npz is damaged" in note
            again.append([{"update": 10}])
            again.save(15, state(1.5))
        assert sorted(path.name for path in left.glob("checkpoint*")) == ["checkpoint-10.npz", "checkpoint-15.npz"]
        assert json.loads((left / "manifest.json").read_text())["resumptions"][0]["refused"] == [note]

    @pytest.mark.parametrize("damage", [flip, cut])
    def test_two_damaged_ones_stop_everything_and_nothing_is_touched(self, left: Path, damage: Callable) -> None:
        for updates in (10, 20):
            damage(left / f"checkpoint-{updates}.npz")
        before = content(left)
        with refused("cannot go on", "checkpoint-20.npz is damaged", "checkpoint-10.npz is damaged", "start it anew"):
            writer(left)
        assert content(left) == before

    def test_metrics_that_are_not_those_of_the_checkpoint(self, left: Path) -> None:
        metrics = left / "metrics.jsonl"
        whole = metrics.read_text()
        metrics.write_text(whole.replace("10", "11", 1))
        with writer(left) as again:
            assert again.resumed.position.updates == 10
            assert "metrics.jsonl does not begin with" in again.notes[0]
        metrics.write_text("")
        before = content(left)
        with refused("cannot go on", "metrics.jsonl does not begin with"):
            writer(left)
        assert content(left) == before

    def test_a_file_that_was_being_written_is_ignored(self, left: Path) -> None:
        (left / "checkpoint-30.npz.partial").write_bytes(b"half")
        (left / "arrays.npz").write_bytes(b"old")
        with writer(left) as again:
            assert again.resumed.position.updates == 20
            assert not (left / "arrays.npz").exists()
            again.finish()
        assert not list(left.glob("*.partial"))


class TestRefusals:
    @pytest.mark.parametrize(
        ("kind", "spec", "difference"),
        [
            ("training", SPEC | {"updates": 50}, "updates is 40 there and 50 here"),
            ("training", SPEC | {"env_settings": {"depth": 4}}, "env_settings.depth is 8 there and 4 here"),
            ("training", SPEC | {"seeds": [1]}, "seeds is null there and [1] here"),
            ("credit", SPEC, 'kind is "training" there and "credit" here'),
        ],
    )
    def test_another_spec(self, left: Path, kind: str, spec: dict, difference: str) -> None:
        before = content(left)
        for call in (lambda: RunWriter(left, kind, spec, go_on=True), lambda: finished_already(left, kind, spec)):
            with refused("exists already", "another run", difference):
                call()
        assert content(left) == before

    def test_other_inputs(self, left: Path) -> None:
        before = content(left)
        with refused("other numbers", "weights to start from"):
            RunWriter(left, "training", SPEC, go_on=True, inputs="others", like=lambda: state(0.0))
        assert content(left) == before

    def test_another_structure(self, left: Path) -> None:
        before = content(left)
        with refused("another state", "['more']"):
            RunWriter(left, "training", SPEC, go_on=True, like=lambda: state(0.0) | {"more": jnp.ones(1)})
        assert content(left) == before

    def test_a_finished_run(self, left: Path) -> None:
        assert not finished_already(left, "training", SPEC)
        writer(left).finish()
        assert finished_already(left, "training", SPEC)
        before = content(left)
        with refused("finished already"):
            writer(left)
        assert content(left) == before

    def test_a_folder_that_is_no_run(self, tmp_path: Path) -> None:
        (tmp_path / "mine").write_text("precious")
        for call in (lambda: writer(tmp_path), lambda: finished_already(tmp_path, "training", SPEC)):
            with refused("exists already"):
                call()
        assert content(tmp_path) == {"mine": b"precious"}


def test_leftovers_of_a_run_that_was_killed_at_the_very_end_are_removed(left: Path) -> None:
    checkpoint = (left / "checkpoint-20.npz").read_bytes()
    writer(left).finish()
    (left / "checkpoint-20.npz").write_bytes(checkpoint)
    assert finished_already(left, "training", SPEC)
    assert not (left / "checkpoint-20.npz").exists()
