"""bsuite's figures show the numbers of the runs."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from paircredit.report import files
from paircredit.results.intervals import mean_band, mean_interval
from paircredit.runs import find_runs
from paircredit.studies.bsuite.exhibits import thinned
from paircredit.studies.bsuite.measures import PAPER, RANDOM_PLAY, all_regrets, totals
from tests.exhibits import figure_of, table_of
from tests.made_up import write_regrets


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write_regrets(folder, "a2c", "catch_noise", 60.0, numbers=(0, 4, 5))
    write_regrets(folder, "meta-pwr", "catch_noise", 30.0, numbers=(0, 4, 5))
    write_regrets(folder, "a2c", "discounting_chain", 3.0, numbers=range(5))
    return find_runs(folder)


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_the_area_under_a_curve_is_the_total_regret(runs):
    (first, *_) = all_regrets(runs)
    middles, values = thinned(first, 10)
    edges = [0.0]
    for middle in middles:  # halfway between the first and the last episode of its part
        edges.append(2 * middle - 1 - edges[-1])
    assert edges[-1] == pytest.approx(100)
    np.testing.assert_allclose(values @ np.diff(edges), totals(first))


def test_a_panel_per_domain_with_a_curve_per_method_and_random_play(runs):
    noise, chain = figure_of("bsuite-regret", runs).axes
    assert set(lines(noise)) == {"A2C", "Meta-PWR", "random play"} and set(lines(chain)) == {"A2C", "random play"}
    assert lines(noise)["random play"].get_ydata()[0] == RANDOM_PLAY["catch_noise"]
    (a2c, *_) = all_regrets(runs)
    np.testing.assert_allclose(lines(noise)["A2C"].get_ydata(), thinned(a2c)[1].mean(axis=0))


def test_a_panel_per_setting(runs):
    figure = figure_of("bsuite-curves-catch-noise", runs)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["noise 0.1", "noise 0.3"]
    assert figure_of("bsuite-curves-umbrella-length", runs) is None


def test_a_row_per_setting(runs):
    rows = table_of("bsuite-settings", runs).rows
    assert [row[:4] for row in rows[:2]] == [
        ("catch_noise", "noise 0.1", "A2C", 3),
        ("catch_noise", "noise 0.3", "A2C", 6),
    ]
    assert rows[0][5] == pytest.approx(60)
    assert len(rows) == 2 + 2 + 5


def test_a_band_of_one_group_is_the_interval_of_its_mean():
    group = np.random.default_rng(1).normal(size=(6, 2))
    low, high = mean_band(group)
    for point in range(2):
        interval = mean_interval(group[:, point])
        assert (low[point], high[point]) == pytest.approx((interval.low, interval.high))
    far_apart = [group, group + 100]
    wide = mean_band(*far_apart)
    assert (wide[1] - wide[0]).max() < 2


def test_a_digest_keeps_every_member_and_the_curves(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "figure_files", lambda runs: [])
    files.write_digest(runs, [], tmp_path / "digest")
    members = rows_of(tmp_path / "digest" / "bsuite-members.csv")
    assert len(members) == 9 + 9 + 15
    noisy = [float(row["total_regret"]) for row in members if row["method"] == "a2c" and "noise" in row["bsuite_id"]]
    assert np.mean(noisy) == pytest.approx(60)
    curves = rows_of(tmp_path / "digest" / "bsuite-curves.csv")
    assert {row["setting"] for row in curves if row["domain"] == "catch_noise"} == {"noise 0.1", "noise 0.3"}


def test_a_method_with_a_change_is_one_of_its_own_beside_its_papers_number(tmp_path):
    tags = {"role": "bsuite", "label": "meta-pwr, entropy 0.05", "domain": "catch_scale"}
    for folder, more in (("usual", {}), ("changed", {"tags": tags})):
        write_regrets(tmp_path / folder, "meta-pwr", "catch_scale", 30.0, numbers=(0, 4), episodes=100_000, **more)
    table = table_of("bsuite-regret", find_runs(tmp_path))
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    assert [row["method"] for row in rows] == ["Meta-PWR", "Meta-PWR, entropy 0.05"]
    assert {row["paper"] for row in rows} == {PAPER["catch_scale"]["meta-pwr"]}
