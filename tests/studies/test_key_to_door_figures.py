"""Key-to-Door figures show the numbers of the runs: drawn from made-up runs and then looked at from inside."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from paircredit.results.charts import COLOURS, looks, to_svg
from paircredit.results.intervals import mean_interval
from paircredit.runs import Run, find_runs
from paircredit.studies.key_to_door.exhibits import BEST, MOST_POINTS, arrange, thinned
from paircredit.studies.key_to_door.measures import all_curves, best_value
from paircredit.studies.key_to_door.runs import CENTRAL, SEARCH, SEARCHES, SWITCHES, Setting
from paircredit.studies.key_to_door.weights import handcrafted
from tests.exhibits import FIGURES, TABLES, figure_of, table_of, table_rows
from tests.made_up import LIKE_HANDCRAFTED, SMALL, frames, spread, weights, write_method

GRID = tuple(Setting(mean, variance, slip) for mean in (1.0, 5.0) for variance in (0.0, 25.0) for slip in (0.0, 0.1))
SEEDS = 5
MIDDLES = {"a2c": 250.0, "h-pwr": 60.0, "meta-pwr": 150.0, "meta-pwtd": math.inf}
NAMES = [name for name in FIGURES if name.startswith("key-to-door")]


def write_all(folder: Path) -> list[Run]:
    """Four methods in eight settings, with weights; a search and switches."""
    for label, middle in MIDDLES.items():
        members = len(GRID) * SEEDS
        final = weights(LIKE_HANDCRAFTED, members, spread=0.002).astype(np.float32)
        arrays = {"weights": final, "snapshots": np.stack([(0.5 + final) / 2, final]).astype(np.float16)}
        arrays["snapshot_updates"] = np.array([200, 400])
        jumps = {setting: spread(middle, SEEDS) for setting in GRID}
        write_method(folder, label, jumps, arrays=arrays if label.startswith("meta") else {}, stride=20)
    searched = {
        (CENTRAL, (("lambda", value), ("learning_rate", rate))): spread(100.0 / value if value else math.inf, SEEDS)
        for value in (0.0, 0.5, 1.0)
        for rate in (1e-3, 2e-4)
    }
    write_method(folder, "a2c", searched, role=SEARCH, stride=20)
    tried = {
        (CENTRAL, (("switch", name),)): spread(middle, SEEDS) for name, middle in (("b", 200.0), ("default", 100.0))
    }
    write_method(folder, "meta-pwr", tried, role=SWITCHES, stride=20)
    for label in ("rgm", "tvt"):
        combinations = {
            (CENTRAL, (("tried", f"rate {rate}"),)): spread(middle, SEEDS) for rate, middle in ((1, 90.0), (2, 200.0))
        }
        write_method(folder, label, combinations, role=SEARCHES, stride=20)
    return find_runs(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return write_all(tmp_path_factory.mktemp("runs") / "all")


def draw(name: str, runs: list[Run]) -> Figure | None:
    return figure_of(f"key-to-door-{name}", runs)


def table(name: str, runs: list[Run]) -> list[dict[str, str]]:
    return table_rows(f"key-to-door-{name}", runs)


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


class TestAll:
    @pytest.mark.parametrize("name", NAMES)
    def test_is_small_and_the_same_twice(self, name: str, runs: list[Run]) -> None:
        first = to_svg(figure_of(name, runs))
        assert len(first) < 400_000
        if name in ("key-to-door-central", "key-to-door-weights"):
            assert first == to_svg(figure_of(name, runs))

    @pytest.mark.parametrize("name", NAMES)
    def test_is_none_without_runs(self, name: str) -> None:
        assert figure_of(name, []) is None

    def test_tables_are_none_without_runs(self) -> None:
        assert [table_of(name, []) for name in TABLES if name.startswith("key-to-door")] == [None] * 4


class TestCurves:
    def test_a_panel_per_setting_without_and_with_slips(self, runs: list[Run]) -> None:
        expected = ["μ = 1, σ² = 0", "μ = 1, σ² = 25", "μ = 5, σ² = 0", "μ = 5, σ² = 25"]
        for name in ("return", "door", "apples", "return-slip", "door-slip", "apples-slip"):
            assert titles(draw(name, runs)) == expected

    def test_lines_are_means_and_the_dashed_one_is_the_best(self, runs: list[Run]) -> None:
        curves = next(c for c in all_curves(runs) if (c.label, c.place) == ("meta-pwr", CENTRAL))
        for name, quantity in (("return", "episode_return"), ("door", "door_reward"), ("apples", "apple_reward")):
            lines = {line.get_label(): line for line in draw(name, runs).axes[3].lines}
            assert set(lines) == {"A2C", "H-PWR", "Meta-PWR", "Meta-PWTD", BEST}
            np.testing.assert_allclose(lines["Meta-PWR"].get_xdata(), curves.edges["frames"][:-1] / 1e6)
            np.testing.assert_allclose(lines["Meta-PWR"].get_ydata(), curves.values[quantity].mean(axis=0))
            assert set(lines[BEST].get_ydata()) == {best_value(curves, quantity)}
            assert to_hex(lines["A2C"].get_color()) == COLOURS["regular"]

    def test_many_points_become_means_of_few(self, tmp_path: Path) -> None:
        write_method(tmp_path, "a2c", {CENTRAL: [200]}, updates=400, stride=1)
        (curves,) = all_curves(find_runs(tmp_path))
        x, values = thinned(curves, "apple_reward")
        assert values.shape == (1, MOST_POINTS)
        np.testing.assert_allclose(values[0], curves.values["apple_reward"][0].reshape(MOST_POINTS, 5).mean(axis=1))
        np.testing.assert_allclose(x, curves.edges["frames"][:-1].reshape(MOST_POINTS, 5).mean(axis=1) / 1e6)

    def test_one_setting_one_panel_and_methods_may_be_missing(self, tmp_path: Path) -> None:
        write_method(tmp_path, "h-pwr", {CENTRAL: spread(50.0)}, updates=100)
        write_method(tmp_path, "who-knows", {CENTRAL: spread(50.0)}, updates=200)
        found = find_runs(tmp_path)
        (axes,) = draw("door", found).axes
        lines = {line.get_label(): to_hex(line.get_color()) for line in axes.lines}
        assert set(lines) == {"H-PWR", "who-knows", BEST}
        assert lines["H-PWR"] == COLOURS["h-pwr"] and lines["who-knows"] not in COLOURS.values()
        assert draw("door-slip", found) is None and draw("weights", found) is None
        assert draw("central", found) is not None and draw("frames", found) is not None

    def test_settings_in_a_grid(self) -> None:
        full = [Setting(mean, variance, 0.0) for mean in (1.0, 5.0) for variance in (0.0, 25.0)]
        assert arrange(full) == [full[:2], full[2:]]
        assert arrange(full[:3]) == [full[:2], [full[2], None]]
        assert arrange(full[1:]) == [[None, full[1]], full[2:]]  # columns are variances
        other = [Setting(1.0, 4.0, 0.0), Setting(5.0, 25.0, 0.0)]
        assert arrange(other) == [[other[0]], [other[1]]]  # these have none in common

    def test_the_central_figure_has_return_and_door(self, runs: list[Run]) -> None:
        figure = draw("central", runs)
        assert titles(figure) == ["episode return", "door reward"]
        door = {line.get_label(): line.get_ydata() for line in figure.axes[1].lines}
        assert door["H-PWR"][-1] == 10 and door["Meta-PWTD"][-1] == 0

    def test_labels_without_a_look_get_different_ones(self) -> None:
        found = looks(["a2c", "x", "y", "meta-pwr"])
        assert len({look.colour for look in found.values()}) == 4
        assert found["x"] == looks(["x", "y"])["x"]


class TestFrames:
    def test_markers_are_medians_and_never_has_its_place(self, runs: list[Run]) -> None:
        left, right = draw("frames", runs).axes
        for axes, needed in ((left, 20), (right, 20)):
            medians = {line.get_label(): line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1}
            assert medians["H-PWR"] == pytest.approx(frames(60 + needed) / 1e6)
            assert medians["Meta-PWTD"] > frames(400) / 1e6
            assert "not reached" in [text.get_text() for text in axes.texts]
        names = [label.get_text() for label in left.get_yticklabels()]
        assert len(names) == len(GRID) and names[-1] == "μ = 5, σ² = 25\n10 % random actions"

    def test_csv_has_hand_numbers(self, runs: list[Run]) -> None:
        rows = {(row["mean"], row["variance"], row["slip"], row["method"]): row for row in table("frames", runs)}
        assert len(rows) == len(GRID) * len(MIDDLES)
        handcrafted_row, never = rows["5.0", "25.0", "0.0", "H-PWR"], rows["5.0", "25.0", "0.0", "Meta-PWTD"]
        assert handcrafted_row["frames_to_9"] == str(frames(80)) and handcrafted_row["reached_9"] == "5"
        assert float(handcrafted_row["final_door_reward"]) == 10
        assert float(handcrafted_row["final_return"]) == pytest.approx(10 + 50 * 370 / 400)
        assert (never["reached_9.5"], never["frames_to_9.5"], never["frames_to_9.5_low"]) == ("0", "inf", "inf")
        assert float(handcrafted_row["equal_frames"]) == frames(400)
        assert handcrafted_row["equal_return"] == handcrafted_row["final_return"]

    def test_methods_are_compared_at_the_frames_that_all_trained(self, tmp_path: Path) -> None:
        write_method(tmp_path, "h-pwr", {CENTRAL: spread(50.0)})
        write_method(tmp_path, "a2c", {CENTRAL: spread(150.0)}, updates=100)
        rows = {row["method"]: row for row in table("frames", find_runs(tmp_path))}
        assert {float(row["equal_frames"]) for row in rows.values()} == {frames(100)}
        assert float(rows["A2C"]["equal_door_reward"]) == float(rows["A2C"]["final_door_reward"]) < 2
        assert float(rows["H-PWR"]["equal_door_reward"]) == 10
        assert float(rows["H-PWR"]["equal_return"]) < float(rows["H-PWR"]["final_return"])

    def test_without_laggards_nothing_speaks_of_never(self, tmp_path: Path) -> None:
        write_method(tmp_path, "h-pwr", {CENTRAL: spread(50.0)})
        assert not any(axes.texts for axes in draw("frames", find_runs(tmp_path)).axes)

    def test_nobody_learns(self, tmp_path: Path) -> None:
        write_method(tmp_path, "h-pwr", {CENTRAL: [math.inf] * 2}, updates=10)
        to_svg(draw("frames", find_runs(tmp_path)))


class TestWeights:
    def test_panels_are_handcrafted_and_means_over_seeds_with_white_below_the_diagonal(self, runs: list[Run]) -> None:
        panels = [axes for axes in draw("weights", runs).axes if axes.images]
        assert [axes.get_title(loc="left") for axes in panels] == [
            "Handcrafted",
            "Meta-PWR, mean of 5 seeds",
            "Meta-PWTD, mean of 5 seeds",
        ]
        members = weights(LIKE_HANDCRAFTED, len(GRID) * SEEDS, spread=0.002)
        place = GRID.index(CENTRAL) * SEEDS
        learned = members[place : place + SEEDS].mean(axis=0)
        for axes, expected in zip(panels, (handcrafted(SMALL), learned, learned), strict=True):
            shown = axes.images[0].get_array()
            np.testing.assert_array_equal(shown.mask, np.tri(SMALL.steps, k=-1, dtype=bool))
            largest = expected[~shown.mask].max()
            np.testing.assert_allclose(shown.compressed(), expected[~shown.mask] / largest, atol=1e-6)
            assert axes.images[0].get_clim() == (0, 1) and axes.images[0].get_cmap()(np.ma.masked)[3] == 0
            assert [text.get_text() for text in axes.texts] == [f"largest {largest:.2g}", "key", "apples", "door"]
            lines = {line.get_xdata()[0] for line in axes.lines if line.get_xdata()[0] == line.get_xdata()[1]}
            assert lines == {SMALL.key - 0.5, SMALL.door_start - 0.5}

    def test_over_time(self, runs: list[Run]) -> None:
        panels = [axes for axes in draw("weights-over-time", runs).axes if axes.images]
        expected = [f"{frames(update) / 1e6:.3g} M frames" for update in (200, 400)]
        assert [axes.get_title(loc="left") for axes in panels] == expected
        largest = [float(axes.texts[0].get_text().removeprefix("largest ")) for axes in panels]
        half, full = (top * axes.images[0].get_array() for top, axes in zip(largest, panels, strict=True))
        np.testing.assert_allclose(half.compressed(), (0.5 + full.compressed()) / 2, atol=1e-2)

    def test_many_snapshots_are_thinned_and_the_last_one_stays(self, tmp_path: Path) -> None:
        final = weights({}, 1)
        arrays = {"weights": final, "snapshots": np.stack([final] * 23), "snapshot_updates": np.arange(1, 24)}
        write_method(tmp_path, "meta-pwr", {CENTRAL: [0]}, updates=40, arrays=arrays)
        panels = [axes for axes in draw("weights-over-time", find_runs(tmp_path)).axes if axes.images]
        assert len(panels) == 10 and panels[-1].get_title(loc="left").startswith(f"{frames(23) / 1e6:.3g} M")


class TestSearchAndSwitches:
    def test_search_has_a_line_per_learning_rate(self, runs: list[Run]) -> None:
        left, right = draw("search", runs).axes
        lines = {line.get_label(): line.get_ydata() for line in left.lines if not line.get_label().startswith("_")}
        assert set(lines) == {"0.0002", "0.001"}
        np.testing.assert_allclose(lines["0.001"], [math.nan, frames(220) / 1e6, frames(120) / 1e6])
        assert [label.get_text() for label in left.get_xticklabels()] == ["0", "0.5", "1"]
        finals = next(line.get_ydata() for line in right.lines if line.get_label() == "0.001")
        np.testing.assert_allclose(finals, [0, 10, 10])

    def test_search_in_numbers(self, runs: list[Run]) -> None:
        rows = table("search", runs)
        assert [(row["learning_rate"], row["lambda"]) for row in rows[:2]] == [("0.0002", "0.0"), ("0.0002", "0.5")]
        assert [row["frames_to_9"] for row in rows[:3]] == ["inf", str(frames(220)), str(frames(120))]

    def test_switches_begin_with_the_default(self, runs: list[Run]) -> None:
        left, right = draw("switches", runs).axes
        assert [label.get_text() for label in left.get_yticklabels()] == ["default", "b"]
        assert "not reached" not in [text.get_text() for text in left.texts]
        assert [row["switch"] for row in table("switches", runs)] == ["default", "b"]
        assert f"{frames(400) / 1e6:.3g} M frames" in right.get_xlabel()

    def test_searches_go_method_by_method(self, runs: list[Run]) -> None:
        left, _ = draw("searches", runs).axes
        assert [text.get_text() for text in left.get_yticklabels()] == ["rate 1", "rate 2"] * 2
        found = [(row["method"], row["tried"]) for row in table("searches", runs)]
        assert found == [(method, f"rate {rate}") for method in ("RGM", "TVT") for rate in (1, 2)]

    def test_switches_at_given_frames(self, tmp_path: Path) -> None:
        """With 20 M frames per member all given numbers of frames have a column."""
        long = int(2.1e7 / frames(1))
        jump = int(5.1e6 / frames(1))
        kinds = {(CENTRAL, (("switch", "default"),)): [jump] * 2}
        write_method(tmp_path, "meta-pwr", kinds, role=SWITCHES, updates=long, stride=long // 100)
        (row,) = table("switches", find_runs(tmp_path))
        names = [name for name in row if name.startswith("door_at")]
        assert names == [f"door_at_{number}" for number in (1000000, 2500000, 5000000, 10000000, 20000000)]
        assert [float(row[name]) > 9.99 for name in names] == [False, False, False, True, True]


def test_bands_are_intervals_of_the_mean(tmp_path: Path) -> None:
    write_method(tmp_path, "a2c", {CENTRAL: [5, 10, 20]}, updates=40)
    (curves,) = all_curves(find_runs(tmp_path))
    band = draw("door", find_runs(tmp_path)).axes[0].collections[0].get_paths()[0].vertices
    x = thinned(curves, "door_reward")[0][2]
    expected = mean_interval(curves.values["door_reward"][:, 2])
    edges = sorted(set(band[np.isclose(band[:, 0], x), 1].round(9)))
    np.testing.assert_allclose(edges, [expected.low, expected.high], atol=1e-6)
