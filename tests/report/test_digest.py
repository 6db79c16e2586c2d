"""What a digest keeps of Key-to-Door runs."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from paircredit.report.files import write_digest
from paircredit.runs import files, find_runs
from paircredit.studies import judge_all
from paircredit.studies.key_to_door.exhibits import DIGEST_POINTS
from paircredit.studies.key_to_door.measures import all_curves, frames_to
from paircredit.studies.key_to_door.runs import CENTRAL
from tests.made_up import frames, weights, write_method


@pytest.fixture(scope="module")
def digest(tmp_path_factory):
    """Two methods with two seeds each, one with weights that were learned."""
    folder = tmp_path_factory.mktemp("digest")
    write_method(folder / "runs", "a2c", {CENTRAL: [200, 200]}, updates=400, stride=1)
    learned = weights({"key → door": 0.75}, members=2)
    arrays = {"weights": learned, "snapshots": learned[None].astype(np.float16), "snapshot_updates": np.array([400])}
    write_method(folder / "runs", "meta-pwr", {CENTRAL: [100, 100]}, updates=400, stride=1, arrays=arrays)
    runs = find_runs(folder / "runs")
    write_digest(runs, judge_all(runs), folder / "digest")
    return folder / "digest"


def test_curves_are_thinned_to_means_over_seeds(digest):
    rows = list(csv.DictReader((digest / "key-to-door-curves.csv").read_text().splitlines()))
    own = [row for row in rows if row["method"] == "a2c"]
    assert len(own) == DIGEST_POINTS
    assert {(row["mean"], row["variance"], row["slip"], row["seeds"]) for row in own} == {("5.0", "25.0", "0.0", "2")}
    before = [float(row["door_reward mean"]) for row in own if float(row["frames"]) < frames(195)]
    after = [float(row["door_reward mean"]) for row in own if float(row["frames"]) >= frames(201)]
    assert set(before) == {0.0} and set(after) == {10.0}


def test_every_seed_has_its_times_and_final_values(digest):
    rows = list(csv.DictReader((digest / "key-to-door-members.csv").read_text().splitlines()))
    runs = find_runs(digest.parent / "runs")
    for method in ("a2c", "meta-pwr"):
        own = [row for row in rows if row["method"] == method]
        assert [row["seed"] for row in own] == ["0", "1"]
        (curves,) = (curves for curves in all_curves(runs) if curves.label == method)
        assert [float(row["frames to 9"]) for row in own] == frames_to(curves, 9.0).tolist()
        assert {row["door_reward"] for row in own} == {"10.0"}


def test_times_that_were_not_reached_are_empty(tmp_path):
    write_method(tmp_path / "runs", "a2c", {CENTRAL: [20, math.inf]}, updates=400)
    write_digest(find_runs(tmp_path / "runs"), [], tmp_path / "digest")
    rows = list(csv.DictReader((tmp_path / "digest" / "key-to-door-members.csv").read_text().splitlines()))
    assert rows[0]["frames to 9.5"] and not rows[1]["frames to 9.5"]
    assert not (tmp_path / "digest" / "key-to-door-weights.csv").exists(), "nobody has learned any"


def test_every_matrix_has_the_means_of_its_blocks(digest):
    rows = list(csv.DictReader((digest / "key-to-door-weights.csv").read_text().splitlines()))
    assert [(row["method"], row["matrix"]) for row in rows] == [("meta-pwr", "0"), ("meta-pwr", "1")]
    assert {row["key → door"] for row in rows} == {"0.75"}
    assert all(-1 <= float(row["correlation"]) <= 1 for row in rows)


def test_weights_are_kept_with_their_course(digest):
    with np.load(digest / "weights.npz", allow_pickle=False) as arrays:
        mean, course = arrays["key-to-door-meta-pwr-5-25-0-mean"], arrays["key-to-door-meta-pwr-5-25-0-course"]
        assert arrays["key-to-door-meta-pwr-5-25-0-course-frames"].tolist() == [frames(400)]
        assert mean.dtype == np.float16 and mean.shape == (38, 38)
        np.testing.assert_array_equal(course[0], mean)
        assert mean[0, -1] == np.float16(0.75)
        assert not any(name.startswith("key-to-door-a2c") for name in arrays)


def test_a_digest_that_is_interrupted_leaves_nothing_behind(tmp_path, monkeypatch):
    """Half of one would pass for a whole one."""
    write_method(tmp_path / "runs", "a2c", {CENTRAL: [200, 200]}, updates=400, stride=1)
    runs, real, written = find_runs(tmp_path / "runs"), files.write_file, []

    def stopping(path, content):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(path)
        real(path, content)

    monkeypatch.setattr(files, "write_file", stopping)
    with pytest.raises(KeyboardInterrupt):
        write_digest(runs, judge_all(runs), tmp_path / "digest")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
