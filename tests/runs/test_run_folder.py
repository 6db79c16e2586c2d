"""A run folder is complete or refused; nothing is overwritten."""

import json
import os
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from paircredit.errors import PaircreditError
from paircredit.runs import RunWriter, find_runs, query_metrics, read_run
from paircredit.runs.files import write_file
from paircredit.runs.manifest import manifest_bytes, provenance
from tests.sentences import refused


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "first"
    writer = RunWriter(path, "training", {"name": "first", "tags": {}})
    writer.append([{"member": 0, "update": 0, "x": 1.5}, {"member": 1, "update": 0, "x": 2.5}])
    writer.append([{"member": 0, "update": 1, "x": 3.5}])
    writer.finish({"weights": np.eye(3, dtype=np.float32)}, answer=42)
    return path


def test_what_was_written_comes_back(run: Path) -> None:
    read = read_run(run)
    assert read.name == "first"
    assert [row["x"] for row in read.metrics()] == [1.5, 2.5, 3.5]
    np.testing.assert_array_equal(read.arrays()["weights"], np.eye(3))
    assert read.results == {"answer": 42}
    assert read.manifest["seconds"] >= 0
    assert set(read.manifest["provenance"]) >= {"commit", "versions", "device", "python"}


def test_an_existing_folder_is_refused_and_left_alone(run: Path) -> None:
    before = sorted((path.name, path.read_bytes()) for path in run.iterdir())
    with pytest.raises(PaircreditError, match="exists already"):
        RunWriter(run, "training", {"name": "second"})
    assert sorted((path.name, path.read_bytes()) for path in run.iterdir()) == before


@pytest.mark.parametrize("name", ["metrics.jsonl", "arrays.npz"])
def test_a_flipped_byte_is_noticed(run: Path, name: str) -> None:
    content = bytearray((run / name).read_bytes())
    content[len(content) // 2] ^= 1
    (run / name).write_bytes(bytes(content))
    read = read_run(run)
    with pytest.raises(PaircreditError, match="damaged"):
        read.metrics() if name == "metrics.jsonl" else read.arrays()


@pytest.mark.parametrize("name", ["metrics.jsonl", "arrays.npz"])
def test_a_cut_or_missing_file_is_refused(run: Path, name: str) -> None:
    read = read_run(run)
    (run / name).write_bytes((run / name).read_bytes()[:-3])
    with pytest.raises(PaircreditError, match="damaged"):
        read.checked(name)
    (run / name).unlink()
    with pytest.raises(PaircreditError, match="cannot be read"):
        read.checked(name)


def test_every_single_digit_of_a_manifest_is_protected(run: Path) -> None:
    manifest = run / "manifest.json"
    original = manifest.read_text()
    for position in [i for i, letter in enumerate(original) if letter.isdigit()][::7]:
        changed = original[:position] + str((int(original[position]) + 1) % 10) + original[position + 1 :]
        manifest.write_text(changed)
        with pytest.raises(PaircreditError):
            read_run(run)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", '{"format": 99}', "null", "\x00\x01", 100_000 * "["),
        *('{"format": 1, "x": NaN, "sha256": ""}', '{"format": 1, "x": 1e400, "sha256": ""}'),
        *(manifest_bytes({"format": 1, "name": "dag", "scale": "smoke", "runs": []}).decode(),),  # of an experiment
        *(manifest_bytes({"format": 1, "kind": "training", "spec": {}, "status": "finished"}).decode(),),
    ],
    ids=lambda content: content[:30],
)
def test_a_manifest_that_is_none_is_refused_with_a_sentence(run: Path, content: str) -> None:
    (run / "manifest.json").write_text(content)
    with pytest.raises(PaircreditError, match=r"manifest\.json"):
        find_runs(run.parent)


def test_an_unfinished_and_a_failed_run_are_refused(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "open", "training", {"name": "open"})
    with pytest.raises(PaircreditError, match="not finished"):
        read_run(tmp_path / "open")
    writer.fail("rewards became NaN.")
    with pytest.raises(PaircreditError, match="rewards became NaN"):
        read_run(tmp_path / "open")


def test_a_run_without_its_manifest_is_not_passed_over(tmp_path: Path) -> None:
    for name in ("one", "other"):
        with RunWriter(tmp_path / name, "training", {"name": name}) as writer:
            writer.append([{"update": 0}])
            writer.finish()
    assert len(find_runs(tmp_path)) == 2
    (tmp_path / "other" / "manifest.json").unlink()
    with refused("other has a metrics.jsonl and no manifest.json"):
        find_runs(tmp_path)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PaircreditError, match="no runs"):
        find_runs(tmp_path)
    with pytest.raises(PaircreditError, match="no folder"):
        find_runs(tmp_path / "nowhere")


def test_pickled_arrays_are_refused(run: Path, tmp_path: Path) -> None:
    from paircredit.runs.read import read_arrays

    np.savez(tmp_path / "evil.npz", weights=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(PaircreditError, match="plain arrays"):
        read_arrays((tmp_path / "evil.npz").read_bytes(), tmp_path / "evil.npz")


def test_nan_never_reaches_a_metrics_file(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run", "training", {"name": "run"})
    with pytest.raises(ValueError, match="JSON"):
        writer.append([{"x": float("nan")}])


def test_sql_over_several_runs(run: Path, tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "it's second", "training", {"name": "second", "tags": {}})
    writer.append([{"member": 0, "update": 0, "x": 10.0, "extra": 1}])
    writer.finish()
    rows = query_metrics(find_runs(tmp_path), "SELECT run, avg(x) AS x FROM metrics GROUP BY run ORDER BY run")
    assert list(rows["run"]) == ["first", "second"]
    np.testing.assert_allclose(rows["x"], [2.5, 10.0])


def test_sql_without_the_extra_says_which_to_install(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)  # as if it were not installed
    with refused("pip install 'paircredit[sql]'"):
        query_metrics([read_run(run)], "SELECT 1")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")

    def broken(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(PaircreditError, match="No space left"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_the_manifest_is_plain_json(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["files"]["metrics.jsonl"]["bytes"] == (run / "metrics.jsonl").stat().st_size


def test_versions_of_what_environments_are_made_of_are_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bsuite", None)  # as if imported
    monkeypatch.setattr(metadata, "version", lambda package: f"{package} 1.0")
    versions = provenance()["versions"]
    assert versions["bsuite"] == "bsuite 1.0" and versions["jax"] == "jax 1.0"
    monkeypatch.delitem(sys.modules, "bsuite")
    assert "bsuite" not in provenance()["versions"]
