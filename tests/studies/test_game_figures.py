"""Figures of Atari and MinAtar show the numbers of the runs."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from matplotlib.colors import to_hex

from paircredit.report import files
from paircredit.results.charts import COLOURS, short, to_svg
from paircredit.results.curves import RETURN
from paircredit.runs import find_runs
from paircredit.studies.games.exhibits import MOST_POINTS
from paircredit.studies.games.measures import ATARI, MINATAR, all_games, comparisons, median_curves
from tests.exhibits import figure_of
from tests.made_up import write_game

SCORES = {
    "breakout": (20.0, 80.0),
    "pong": (10.0, 10.1),
    "seaquest": (9_000.0, 5_000.0),
}
"""Of A2C and Meta-PWTD."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for game, scores in SCORES.items():
        for label, score in zip(("a2c", "meta-pwtd"), scores, strict=True):
            write_game(folder / "atari", ATARI, label, game, score)
    write_game(folder / "atari", ATARI, "a2c", "zaxxon", 500.0)
    for label, score in (("a2c", 3.0), ("meta-pwtd", 4.0)):
        write_game(folder / "minatar", MINATAR, label, "asterix", score, seeds=2)
    return find_runs(folder)


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_a_panel_per_game_with_a_curve_per_method_and_random_play(runs):
    figure = figure_of("atari-curves", runs)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_visible()}
    assert list(panels) == ["Breakout", "Pong", "Seaquest", "Zaxxon"]
    assert set(lines(panels["Pong"])) == {"A2C", "Meta-PWTD", "random play"}
    assert set(lines(panels["Zaxxon"])) == {"A2C", "random play"}
    assert lines(panels["Pong"])["random play"].get_ydata()[0] == ATARI.random["pong"]
    frames, values = all_games(runs, ATARI)["seaquest"]["a2c"].thinned(RETURN, MOST_POINTS)
    drawn = lines(panels["Seaquest"])["A2C"]
    np.testing.assert_allclose(drawn.get_xdata(), frames / 1e6)
    np.testing.assert_allclose(drawn.get_ydata(), values.mean(axis=0))
    assert drawn.get_ydata()[-1] == pytest.approx(9_000)


def test_bars_are_sorted_and_coloured_by_what_the_intervals_say(runs):
    bars, medians = figure_of("atari-relative", runs).axes
    assert [label.get_text() for label in bars.get_xticklabels()] == ["Seaquest", "Pong", "Breakout"]
    found = {own.game: own for own in comparisons(all_games(runs, ATARI), ATARI)}
    by_place = sorted((patch.get_x(), patch.get_height(), to_hex(patch.get_facecolor())) for patch in bars.patches)
    heights = [100 * found[game].relative.estimate for game in ("seaquest", "pong", "breakout")]
    np.testing.assert_allclose([height for _, height, _ in by_place], heights)
    assert [found[game].outcome for game in ("seaquest", "pong", "breakout")] == ["worse", "tie", "better"]
    assert [by_place[0][2], by_place[2][2]] == [COLOURS["a2c"], COLOURS["meta-pwtd"]]
    intervals = [line.get_ydata() for line in bars.lines if list(line.get_xdata()) == [1, 1]]
    np.testing.assert_allclose(intervals, [[100 * found["pong"].relative.low, 100 * found["pong"].relative.high]])
    assert bars.get_yscale() == "symlog", "Breakout is far off"
    curves = {curve.label: curve for curve in median_curves(all_games(runs, ATARI), ATARI)}
    np.testing.assert_allclose(lines(medians)["Meta-PWTD"].get_ydata(), curves["meta-pwtd"].median)
    assert medians.get_title(loc="left").endswith("of 3 games")


def test_few_seeds_have_no_colour_and_small_differences_a_plain_axis(runs, tmp_path):
    (bars,) = figure_of("minatar-relative", runs).axes
    (bar,) = bars.patches
    assert to_hex(bar.get_facecolor()) == "#ffffff"
    assert bars.get_legend_handles_labels()[1] == ["too few seeds to tell (1)"]
    for label, score in (("a2c", 3.0), ("meta-pwtd", 3.1)):
        write_game(tmp_path, MINATAR, label, "asterix", score)
    (bars,) = figure_of("minatar-relative", find_runs(tmp_path)).axes
    assert bars.get_yscale() == "linear"


@pytest.mark.nightly
def test_all_49_games_can_be_drawn(tmp_path):
    for game, random in ATARI.random.items():
        write_game(tmp_path, ATARI, "a2c", game, random + 100, seeds=1)
        write_game(tmp_path, ATARI, "meta-pwtd", game, random + 120, seeds=1)
    many = find_runs(tmp_path)
    assert len(figure_of("atari-curves", many).axes) == 49
    bars, _ = figure_of("atari-relative", many).axes
    assert len(bars.get_xticklabels()) == 49
    assert "Montezuma Revenge" in [label.get_text() for label in bars.get_xticklabels()]


def test_one_method_has_curves_and_no_bars(runs):
    alone = [run for run in runs if run.spec["method"] == "a2c"]
    assert figure_of("atari-relative", alone) is None and figure_of("atari-curves", alone) is not None


def test_the_same_runs_give_the_same_picture(runs):
    first, second = (to_svg(figure_of("atari-relative", runs)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "number, text", [(0.0, "0"), (-20.0, "−20"), (9_000.0, "9000"), (25_000.0, "25 k"), (1_500_000.0, "1.5 M")]
)
def test_numbers_on_small_axes_are_short(number, text):
    assert short(number) == text


def test_a_digest_keeps_every_member_and_the_curves(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "figure_files", lambda runs: [])
    files.write_digest(runs, [], tmp_path / "digest")
    members = list(csv.DictReader((tmp_path / "digest" / "atari-members.csv").read_text().splitlines()))
    assert len(members) == 7 * 5
    pong = [float(row["score"]) for row in members if (row["game"], row["method"]) == ("pong", "meta-pwtd")]
    assert np.mean(pong) == pytest.approx(10.1)
    curves = list(csv.DictReader((tmp_path / "digest" / "minatar-curves.csv").read_text().splitlines()))
    assert {(row["game"], row["seeds"]) for row in curves} == {("asterix", "2")}
    last = [row for row in curves if row["method"] == "a2c"][-1]
    assert float(last["mean"]) == pytest.approx(3.0)
