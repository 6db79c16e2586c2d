"""What a digest keeps of Key-to-Door runs."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from paircredit.analysis.claims import judge_all
from paircredit.analysis.key_to_door_results import CENTRAL
from paircredit.report.digest import CURVE_POINTS, write_digest
from paircredit.runs import find_runs
from tests.key_to_door_runs import frames, weights, write_method


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
    assert len(own) == CURVE_POINTS
    assert {(row["mean"], row["variance"], row["slip"], row["seeds"]) for row in own} == {("5.0", "25.0", "0.0", "2")}
    before = [float(row["door_reward mean"]) for row in own if float(row["frames"]) < frames(195)]
    after = [float(row["door_reward mean"]) for row in own if float(row["frames"]) >= frames(201)]
    assert set(before) == {0.0} and set(after) == {10.0}


def test_weights_are_kept_with_their_course(digest):
    with np.load(digest / "weights.npz", allow_pickle=False) as arrays:
        mean, course = arrays["key-to-door-meta-pwr-5-25-0-mean"], arrays["key-to-door-meta-pwr-5-25-0-course"]
        assert arrays["key-to-door-meta-pwr-5-25-0-course-frames"].tolist() == [frames(400)]
        assert mean.dtype == np.float16 and mean.shape == (38, 38)
        np.testing.assert_array_equal(course[0], mean)
        assert mean[0, -1] == np.float16(0.75)
        assert not any(name.startswith("key-to-door-a2c") for name in arrays)
