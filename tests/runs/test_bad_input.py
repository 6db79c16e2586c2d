"""Files that somebody else has made, signed or not: refused by a sentence, at once, and nothing is changed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.cli import main
from paircredit.experiments.reproduce import read_experiment
from paircredit.experiments.spec import TrainingSpec, UmbrellaVarianceSpec, as_json, refuse_misshapen
from paircredit.runs import RunWriter, find_runs, read_run
from paircredit.runs.checkpoint import read_checkpoint
from paircredit.runs.manifest import manifest_bytes
from paircredit.runs.read import read_arrays
from paircredit.runs.trees import DamagedFile
from tests.sentences import refused

SPEC = as_json(TrainingSpec("done", "dag", "a2c", 2, (0,), tags={"role": "train"}))
STATE = {"table": jnp.arange(3.0)}


class GONE:
    """In place of a value: the field is not there."""


"""In the place of a value: the field is deleted."""


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError("something waits without end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, one that was stopped after two checkpoints, and the folder of an experiment."""
    folder = tmp_path_factory.mktemp("originals")
    with RunWriter(folder / "done", "training", SPEC) as writer:
        writer.append([{"member": 0, "seed": 0, "update": update, "episode_return": 0.5} for update in range(2)])
        writer.finish({"weights": np.eye(3)})
    with RunWriter(folder / "stopped", "training", SPEC) as writer:
        for update in (1, 2):
            writer.append([{"member": 0, "seed": 0, "update": update}])
            writer.save(update, STATE, {"kept": np.ones(2)})
    (folder / "listed").mkdir()
    runs = [{"kind": "umbrella-variance", "spec": as_json(UmbrellaVarianceSpec("one", (2,), (1.0,), 0.5, 10))}]
    listed = {"format": 1, "name": "umbrella", "scale": "smoke", "runs": runs}
    (folder / "listed" / "experiment.json").write_bytes(manifest_bytes(listed))
    return folder


@pytest.fixture
def folder(originals: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals, tmp_path / "all"))


def contents(folder: Path) -> dict[Path, Any]:
    """Everything below a folder, without opening what is no file."""
    return {path: path.read_bytes() if path.is_file() else os.lstat(path).st_mode for path in folder.rglob("*")}


def put(value: Any, keys: tuple[Any, ...], new: Any) -> Any:
    """A JSON value with something else in one place."""
    if not keys:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    if len(keys) == 1 and new is GONE:
        del changed[keys[0]]
    else:
        old = changed.get(keys[0]) if isinstance(changed, dict) else changed[keys[0]]
        changed[keys[0]] = put(old, keys[1:], new)
    return changed


def signed(path: Path, keys: tuple[Any, ...], new: Any) -> None:
    """Change a manifest, and give it the sum that it then should have."""
    path.write_bytes(manifest_bytes(put(json.loads(path.read_bytes()), keys, new)))


def signed_header(path: Path, keys: tuple[Any, ...], new: Any) -> None:
    """The same with the header of a checkpoint; what is no mapping has no sum."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(np.lib.format.read_array(io.BytesIO(members["header.npy"])).tobytes())
    header = put(header, keys, new)
    if isinstance(header, dict):
        body = {key: value for key, value in header.items() if key != "sha256"}
        header["sha256"] = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    members["header.npy"] = npy(np.frombuffer(json.dumps(header).encode(), np.uint8))
    write_members(path, members)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


def write_members(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


MANIFESTS = [
    *[((field,), GONE) for field in ("kind", "spec", "status", "started", "provenance", "seconds", "files", "results")],
    *[((field,), 3) for field in ("kind", "spec", "status", "started", "provenance", "files", "results", "settings")],
    *[((field,), []) for field in ("spec", "status", "provenance", "seconds", "files", "results", "checkpoints")],
    *[(("spec", "name"), value) for value in (GONE, 3, None)],
    *[(("spec", "tags"), value) for value in (3, [], "role")],
    *[(("files", "metrics.jsonl"), value) for value in (3, None, [], {}, {"bytes": 3})],
    *[(("files", "metrics.jsonl", "bytes"), value) for value in (-1, 1.5, True, 2**70, "3")],
    *[(("provenance", "device"), value) for value in (GONE, 3, {})],
    (("provenance", "versions", "jax"), 3),
    (("resumptions",), {"time": 3}),
    (("resumptions",), [3]),
    (("settings",), nested(80)),
    (("status",), "failed"),
]


@pytest.mark.parametrize(("keys", "new"), MANIFESTS, ids=lambda value: str(value)[:40])
def test_a_signed_manifest_of_another_shape_is_refused(folder: Path, keys: tuple[Any, ...], new: Any) -> None:
    signed(folder / "done" / "manifest.json", keys, new)
    with refused(str(folder / "done" / "manifest.json")):
        read_run(folder / "done")


@pytest.mark.parametrize(
    ("field", "new"),
    [
        (field, new)
        for field in sorted(SPEC.keys() - {"name", "tags"})
        for new in (GONE, {"a": [1]}, -0.5)
        if not (isinstance(new, dict) and field.endswith("settings"))  # those are mappings
    ],
    ids=str,
)
def test_specs_of_another_shape_are_refused(folder: Path, field: str, new: Any) -> None:
    signed(folder / "done" / "manifest.json", ("spec", field), new)
    with refused("spec", field):
        refuse_misshapen([read_run(folder / "done")])


EXPERIMENTS = [
    *[((field,), GONE) for field in ("name", "scale", "runs")],
    *[((field,), value) for field in ("name", "scale", "runs") for value in (3, {"a": 1}, None)],
    *[(("runs", 0), value) for value in (3, [], {}, {"kind": "training"})],
    *[(("runs", 0, field), value) for field in ("kind", "spec") for value in (GONE, 3, ["a"])],
    *[(("runs", 0, "spec", field), GONE) for field in ("name", "lengths", "variances", "mean", "episodes")],
    *[(("runs", 0, "spec", "lengths"), value) for value in (3, "23", [2, "3"], {"2": 2})],
    *[(("runs", 0, "spec", "mean"), value) for value in ("0.5", 10**308, [0.5], True)],
    *[(("runs", 0, "spec", "name"), value) for value in ("../up", "/there", "", ".")],
    (("runs",), nested(80)),
]


@pytest.mark.parametrize(("keys", "new"), EXPERIMENTS, ids=lambda value: str(value)[:40])
def test_a_signed_list_of_runs_of_another_shape_is_refused(folder: Path, keys: tuple[Any, ...], new: Any) -> None:
    signed(folder / "listed" / "experiment.json", keys, new)
    with refused():
        read_experiment(folder / "listed")


HEADERS = [
    *[((), value) for value in (None, 3, [], {}, "x", nested(80))],
    *[((field,), GONE) for field in ("updates", "seconds", "metrics_bytes", "spec_sha256", "dtypes", "arrays_sha256")],
    *[(("updates",), value) for value in ("1", None, -1, 1.5, [1], True, 2**70)],
    *[(("seconds",), value) for value in (float("nan"), float("inf"), 10**308, {})],
    *[(("metrics_bytes",), value) for value in (-1, 1.5)],
    *[(("dtypes",), value) for value in (3, [], {}, {"state['table']": "float32"})],
    *[(("dtypes", "state['table']"), value) for value in (GONE, 3, "x", "object", "key fry", "V3", "float64")],
    *[(("dtypes", "kept.kept"), value) for value in (GONE, 3, "x", "V3")],
]


@pytest.mark.parametrize(("keys", "new"), HEADERS, ids=lambda value: str(value)[:40])
def test_a_signed_header_of_another_shape_is_refused(folder: Path, keys: tuple[Any, ...], new: Any) -> None:
    path = folder / "stopped" / "checkpoint-2.npz"
    signed_header(path, keys, new)
    with refused(str(path)):
        read_checkpoint(path, STATE)


def test_after_one_of_another_shape_the_older_checkpoint_is_used(folder: Path) -> None:
    signed_header(folder / "stopped" / "checkpoint-2.npz", ("updates",), GONE)
    with RunWriter(folder / "stopped", "training", SPEC, go_on=True, like=lambda: STATE) as writer:
        assert writer.resumed is not None and writer.resumed.position.updates == 1
        assert "updates is missing" in writer.notes[0]


LINES = [
    *('{"a": ' + 1000 * "[" + 1000 * "]" + "}", 100_000 * "[", '{"a": [1]}', '{"a": {"b": 1}}'),
    *("3", "null", "[]", '"x"', "", "{", '{"a": NaN}', '{"a": -Infinity}', '{"a": ' + 5000 * "9" + "}"),
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:12])
@pytest.mark.parametrize("finished", [True, False])
def test_lines_of_metrics_that_are_no_rows_are_refused(folder: Path, line: str, finished: bool) -> None:
    path = folder / ("done" if finished else "stopped") / "metrics.jsonl"
    content = path.read_bytes() + line.encode() + b"\n"
    path.write_bytes(content)
    if finished:
        entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        signed(path.with_name("manifest.json"), ("files", "metrics.jsonl"), entry)
    (run,) = [run for run in find_runs(folder, so_far=True) if run.path == path.parent]
    with refused(str(path), "not every line of it is a row"):
        run.metrics()


NPY_HEADERS = [
    *("null", "None", "3", "[]", "{}", "{'descr': '<f4'}", "{1: 2, 'a': 3}", "f(", "'''", "(((((((((", "  x\n y"),
    "{'descr': 3, 'fortran_order': False, 'shape': (2,)}",
    "{'descr': [()], 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000000000000,)}",
    "{'descr': ('<f4', (-1,)), 'fortran_order': False, 'shape': (2,)}",
    3000 * "[",
]


@pytest.mark.parametrize("head", NPY_HEADERS, ids=lambda head: head[:40])
def test_npy_headers_that_are_none_are_refused(folder: Path, head: str) -> None:
    content = b"\x93NUMPY\x01\x00" + (len(head) + 1).to_bytes(2, "little") + head.encode() + b"\n" + bytes(64)
    write_members(folder / "bad.npz", {"weights.npy": content})
    for path, given in ((folder / "bad.npz", (folder / "bad.npz").read_bytes()), (folder / "bad.npy", content)):
        with refused(str(path), "not a readable npy or npz file"):
            read_arrays(given, path)
    checkpoint = folder / "stopped" / "checkpoint-2.npz"
    write_members(checkpoint, {"header.npy": content})
    with pytest.raises(DamagedFile):
        read_checkpoint(checkpoint, STATE)


def place(path: Path, what: str) -> None:
    """Something that is no regular file, or cannot be reached."""
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            here = os.getcwd()
            os.chdir(path.parent)  # whose name may be too long for a socket
            try:
                one.bind(path.name)
            finally:
                os.chdir(here)
    else:
        path.symlink_to({"loop": path.name, "device": "/dev/zero", "nowhere": "not-there"}[what])


KINDS = ["pipe", "folder", "socket", "loop", "device", "nowhere"]


@pytest.mark.parametrize("what", KINDS)
@pytest.mark.parametrize("name", ["manifest.json", "metrics.jsonl", "arrays.npz"])
def test_only_regular_files_are_read(folder: Path, name: str, what: str) -> None:
    place(folder / "done" / name, what)
    before = contents(folder)
    with refused(name):
        run = read_run(folder / "done")
        run.metrics()
        run.arrays()
    with refused():
        for run in find_runs(folder / "done"):
            run.metrics()
            run.arrays()
    assert contents(folder) == before


@pytest.mark.parametrize("what", KINDS)
@pytest.mark.parametrize(
    "name", ["manifest.json", "metrics.jsonl", "lock", "manifest.json.partial", "both checkpoints"]
)
def test_nothing_but_regular_files_is_written_to(folder: Path, name: str, what: str) -> None:
    path = folder / "stopped"
    for one in ["checkpoint-1.npz", "checkpoint-2.npz"] if name == "both checkpoints" else [name]:
        place(path / one, what)
    before = contents(folder)
    with refused(str(path)):
        RunWriter(path, "training", SPEC, go_on=True, like=lambda: STATE)
    after = {one: content for one, content in contents(folder).items() if one != path / "lock"}
    assert after == {one: content for one, content in before.items() if one != path / "lock"}


@pytest.mark.parametrize("what", KINDS)
def test_a_list_of_runs_or_weights_are_regular_files(folder: Path, what: str, capsys: Any) -> None:
    place(folder / "listed" / "experiment.json", what)
    place(folder / "weights.npz", what)
    for words in (
        ["resume", folder / "listed"],
        ["reproduce", "umbrella", "--scale", "smoke", "--out", folder / "listed"],
        ["train", "dag", "meta-pwr", "--weights", folder / "weights.npz", "--out", folder / "new"],
    ):
        refused_by_the_command_line(words, folder, capsys)


def refused_by_the_command_line(words: list[Any], folder: Path, capsys: Any) -> None:
    before = contents(folder)
    assert main([str(word) for word in words]) == 2, words
    said = capsys.readouterr().err
    assert said.startswith("paircredit: ") and said.count("\n") == 1, said
    assert contents(folder) == before, words


@pytest.mark.parametrize("what", KINDS)
def test_what_is_there_already_is_not_written_to(folder: Path, what: str, capsys: Any) -> None:
    """Also a link that leads nowhere, or round in a circle."""
    out, gif, done = folder / "out", folder / "out.gif", folder / "done"
    place(out, what)
    place(gif, what)
    for words in (
        ["figures", done, "--out", out],
        ["report", done, "--out", out],
        ["digest", done, "--out", out],
        ["train", "dag", "a2c", "--frames", 100, "--seeds", 1, "--out", out],
        ["reproduce", "umbrella", "--scale", "smoke", "--out", out],
        ["export", "bsuite", done, "--out", out],
        ["watch", "key-to-door", "--out", gif],
        *([["figures", done, "--out", out / "x"]] if what != "folder" else []),
        *([["report", done, "--out", out / "x"]] if what != "folder" else []),
    ):
        refused_by_the_command_line(words, folder, capsys)


@pytest.mark.parametrize("what", KINDS)
def test_neither_is_what_stands_where_a_file_is_prepared(folder: Path, what: str, capsys: Any) -> None:
    place(folder / "page.html.partial", what)
    refused_by_the_command_line(["report", folder / "done", "--out", folder / "page.html"], folder, capsys)


def test_a_link_where_a_file_is_prepared_is_not_followed(folder: Path, capsys: Any) -> None:
    (folder / "dear").write_bytes(b"to somebody")
    (folder / "page.html.partial").symlink_to(folder / "dear")
    refused_by_the_command_line(["report", folder / "done", "--out", folder / "page.html"], folder, capsys)


SWALLOWS = """
import os, signal
try:
    os.kill(os.getpid(), signal.{signal})
    for _ in range(1000):
        pass
except BaseException:
    raise ImportError("something went wrong") from None
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("command", [["list"], ["claims", "."], ["train", "dag", "a2c"]], ids=lambda words: words[0])
def test_interrupted_while_jax_is_imported(
    tmp_path: Path, number: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where a package turns whatever happens into an error of its own."""
    (tmp_path / "jax.py").write_text(SWALLOWS.format(signal=number))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "paircredit", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "paircredit: interrupted.\n")


def test_who_has_begun_to_work_is_told_how_to_go_on_also_while_importing(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(SWALLOWS.format(signal="SIGINT").replace("BaseException", "ZeroDivisionError"))
    program = """
import sys
from paircredit import cli, interrupts
def main():
    try:
        with interrupts.at_work():
            import late
    except KeyboardInterrupt:
        print("put down properly")
        return 130
cli.main = main
cli.entry()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "put down properly\n", "")
