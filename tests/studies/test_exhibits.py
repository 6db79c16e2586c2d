"""Figures show the numbers of the runs: they are drawn from made-up runs and then looked at from inside."""

from __future__ import annotations

import ast
import csv
import math
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import paircredit.results
from paircredit.cli import main
from paircredit.envs.dag import DagConfig, acting_states, num_states
from paircredit.report import files, save_figures
from paircredit.results.charts import COLOURS, legend_above, styled, to_svg
from paircredit.results.exhibits import Column, Exhibit, Table, title
from paircredit.results.intervals import mean_band, mean_interval, median_interval, median_of_times
from paircredit.runs import Run, find_runs
from paircredit.studies import STUDIES, Study, judge_all
from paircredit.studies.games.measures import ATARI
from paircredit.studies.key_to_door.runs import CENTRAL, METHODS, SEARCH, SEARCHES, SWITCHES
from paircredit.studies.own import OWN
from paircredit.weights import handcrafted_weights
from tests.exhibits import FIGURES, TABLES, figure_of, table_of, table_rows
from tests.made_up import (
    ESTIMATORS,
    TIMES,
    example_weights,
    write_all,
    write_credit,
    write_evaluation,
    write_game,
    write_method,
    write_own,
    write_regrets,
    write_reset,
    write_umbrella,
)
from tests.sentences import refused

FIGURE_NAMES = list(FIGURES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return write_all(tmp_path_factory.mktemp("runs") / "all")


def needs(name: str, run: Run) -> bool:
    """Whether the figure of that name cannot do without such runs."""
    tags = run.spec.get("tags", {})
    if name.startswith("dag-weights-"):
        return tags.get("role") == "reset" and f"dag-weights-{tags['depth']}" == name
    if name.startswith("key-to-door-"):
        return tags.get("role") == (name if name in (SEARCH, SEARCHES, SWITCHES) else METHODS)
    if name.startswith("bsuite-"):
        domain = name.removeprefix("bsuite-curves-").replace("-", "_")
        return tags.get("role") == "bsuite" and (not name.startswith("bsuite-curves") or tags["domain"] == domain)
    if name.startswith(("atari-", "minatar-")):
        return tags.get("role") == name.partition("-")[0]
    if name.startswith("training-"):
        return tags.get("role") == OWN
    return {
        "umbrella-variance": run.kind == "umbrella-variance",
        "dag-episodes": tags.get("role") == "evaluation",
        "dag-curves": tags.get("role") == "evaluation",
        "dag-search": tags.get("role") == "search",
        "masked-values": tags.get("role") == "masked-values",
        "estimator-quality": run.kind == "credit",
    }[name]


def reachable_by_walking(depth: int) -> np.ndarray:
    """Reachability by following the transitions of the environment."""
    following = np.asarray(DagConfig(depth).build().next_state)
    reach = np.zeros((len(following), len(following)), dtype=bool)
    for state in reversed(range(len(following) - 1)):
        for successor in following[state]:
            reach[state, successor] = True
            reach[state] |= reach[successor]
    return reach


class TestEveryFigure:
    @pytest.mark.parametrize("name", FIGURE_NAMES)
    def test_is_none_without_its_runs(self, name, runs):
        others = [run for run in runs if not needs(name, run)]
        assert len(others) < len(runs)
        assert figure_of(name, others) is None

    def test_has_a_unique_name_a_title_and_a_caption_in_sentences(self):
        assert len(set(FIGURE_NAMES)) == len(FIGURES)
        for spec in FIGURES.values():
            assert spec.title and spec.caption.endswith(".") and "paper" in spec.caption

    def test_the_same_runs_give_the_same_svg_without_a_date(self, runs):
        first, second = (to_svg(figure_of("dag-episodes", runs)) for _ in range(2))
        assert first == second
        assert "<dc:date>" not in first and "<metadata>" not in first

    def test_needs_neither_pyplot_nor_training(self):
        """Figures may know runs and analysis; they work without a display and without global state."""
        sources = list(Path(paircredit.results.__file__).parent.glob("*.py"))
        assert len(sources) > 5
        for path in sources:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
                imported = [getattr(node, "module", None) or "", *names]
                for forbidden in ("pyplot", "paircredit.training", "paircredit.experiments", "paircredit.report"):
                    assert not any(forbidden in name for name in imported), f"{path.name} imports {imported}"


class TestWeights:
    @pytest.mark.parametrize("depth", [4, 8, 16])
    def test_masked_cells_are_exactly_the_unreachable_pairs(self, depth, runs):
        acting = acting_states(depth)
        for axes in figure_of(f"dag-weights-{depth}", runs).axes[:1]:
            shown = axes.images[0].get_array()
            assert shown.shape == (len(acting), num_states(depth))
            np.testing.assert_array_equal(np.ma.getmaskarray(shown), ~reachable_by_walking(depth)[acting])

    @pytest.mark.parametrize("depth", [4, 8])
    def test_panels_show_the_handcrafted_table_and_the_means_over_seeds(self, depth, runs):
        mean = example_weights(depth, 3).astype(float).mean(axis=0)
        handcrafted = np.asarray(handcrafted_weights(DagConfig(depth).build()).table)
        panels = [
            axes for axes in figure_of(f"dag-weights-{depth}", runs).axes if axes.get_ylabel() == "state acted in"
        ]
        assert [axes.get_title(loc="left").split(",")[0] for axes in panels] == ["Handcrafted", "Meta-PWR", "Meta-PWTD"]
        for axes, expected in zip(panels, (handcrafted, mean, mean), strict=True):
            (image,) = axes.images
            np.testing.assert_allclose(
                image.get_array().compressed(),
                expected[: len(acting_states(depth))][~image.get_array().mask],
                rtol=1e-6,
            )
            assert image.get_clim() == (0, 1)
            assert image.get_cmap().name == "viridis"
            assert image.get_cmap()(np.ma.masked)[3] == 0 and axes.get_facecolor() == (1, 1, 1, 1)  # masked is white

    def test_the_enlarged_corner_of_depth_16_shows_the_same_weights(self, runs):
        axes = figure_of("dag-weights-16", runs).axes
        whole, corner = (axes[index].images[0].get_array() for index in (0, 1))
        rows, columns = corner.shape
        assert "enlarged" in axes[1].get_title(loc="left")
        np.testing.assert_array_equal(corner.filled(-1), whole[:rows, -columns:].filled(-1))

    def test_one_learned_table_is_enough(self, tmp_path):
        write_reset(tmp_path, 4, "meta-pwr")
        panels = [axes for axes in figure_of("dag-weights-4", find_runs(tmp_path)).axes if axes.images]
        assert len(panels) == 2

    def test_weights_of_another_depth_are_refused(self, tmp_path):
        write_reset(tmp_path, 4, "meta-pwr")
        (run,) = find_runs(tmp_path)
        run.manifest["spec"]["tags"]["depth"] = 8
        with refused("depth 8", "(46, 46)", "(10, 10)"):
            figure_of("dag-weights-8", [run])

    def test_masked_values_have_a_mean_per_mask_and_a_line_after_state_30(self, runs):
        panels = [axes for axes in figure_of("masked-values", runs).axes if axes.images]
        weights = example_weights(8, 6).astype(float)
        assert [axes.get_title(loc="left")[:6] for axes in panels] == ["Mask 0", "Mask 4", "Mask 8"]
        for index, axes in enumerate(panels):
            shown = axes.images[0].get_array()
            np.testing.assert_array_equal(shown.mask, ~reachable_by_walking(8)[:15])
            expected = weights[2 * index : 2 * index + 2].mean(axis=0)[:15]
            np.testing.assert_allclose(shown.compressed(), expected[~shown.mask], rtol=1e-6)
            marks = [line for line in axes.lines if line.get_linewidth() == 2]
            assert [list(line.get_xdata()) for line in marks] == [[30.5, 30.5]]


class TestEpisodes:
    def test_csv_has_hand_numbers(self, runs):
        rows = {(row["depth"], row["method"]): row for row in table_rows("dag-episodes", runs)}
        assert len(rows) == 8
        for depth in ("4", "8"):
            assert rows[depth, "regular return"]["median_episodes"] == "700.0"
            assert rows[depth, "Meta-PWR"]["median_episodes"] == "350.0"
            assert [rows[depth, "H-PWR"][key] for key in ("median_episodes", "low", "high")] == ["400.0"] * 3
            assert [rows[depth, "regular return"][key] for key in ("low", "high")] == ["500.0", "900.0"]
            never = rows[depth, "Meta-PWTD"]
            assert [never[key] for key in ("members", "reached", "median_episodes", "high")] == ["3", "1", "inf", "inf"]

    def test_readers_see_a_sign_for_never(self, runs):
        texts = table_of("dag-episodes", runs).texts()
        assert texts[0] == ["4", "regular return", "3", "3", "700", "500", "900", "∞"]
        assert texts[3][4] == "∞"

    def test_dots_are_members_and_markers_are_medians(self, runs):
        (axes,) = figure_of("dag-episodes", runs).axes
        medians = {line.get_label(): line.get_ydata()[0] for line in axes.lines if len(line.get_xdata()) == 1}
        assert medians["regular return"] == 700 and medians["Meta-PWR"] == 350
        dots = [sorted(line.get_ydata()) for line in axes.lines if line.get_markersize() == 3]
        assert sorted(TIMES["meta-pwr"]) in dots
        assert "2 of 3" in [text.get_text() for text in axes.texts]

    def test_without_a_laggard_nothing_speaks_of_never(self, tmp_path):
        write_evaluation(tmp_path, 4, "regular", (100.0, 200.0))
        (axes,) = figure_of("dag-episodes", find_runs(tmp_path)).axes
        assert not axes.texts and axes.get_ylim()[1] < 300

    def test_nobody_learns(self, tmp_path):
        write_evaluation(tmp_path, 4, "regular", (math.inf, math.inf))
        assert table_rows("dag-episodes", find_runs(tmp_path))[0]["low"] == "inf"
        assert figure_of("dag-episodes", find_runs(tmp_path)) is not None

    def test_median_with_laggards(self):
        finite = np.array([300.0, 100.0, 200.0, 500.0, 400.0])
        assert median_of_times(finite) == median_interval(finite)
        one = median_of_times(np.array([100.0, 200.0, 300.0, 400.0, math.inf]))
        assert one.estimate == 300 and one.low == 100 and one.high == math.inf
        half = median_of_times(np.array([100.0, math.inf]))
        assert half.estimate == math.inf and half.low == 100  # the mean of a time and never is never


class TestCurves:
    def test_lines_are_means_and_the_dashed_one_is_95_per_cent(self, runs):
        first, second = figure_of("dag-curves", runs).axes
        for axes, best in ((first, 2.0), (second, 4.0)):
            lines = {line.get_label(): line for line in axes.lines}
            expected = [best if x >= 400 else 0.1 for x in range(0, 1001, 50)]
            np.testing.assert_allclose(lines["H-PWR"].get_ydata(), expected)
            assert list(lines["H-PWR"].get_xdata()) == list(range(0, 1001, 50))
            assert any(set(line.get_ydata()) == {0.95 * best} for line in axes.lines)
            assert axes.get_xlim() == (0, 10_000)

    def test_the_band_is_the_interval_of_the_tables(self):
        samples = np.random.default_rng(1).normal(size=(7, 3))
        low, high = mean_band(samples)
        for column in range(3):
            expected = mean_interval(samples[:, column])
            np.testing.assert_allclose((low[column], high[column]), (expected.low, expected.high), rtol=1e-12)

    def test_methods_have_the_same_colours_in_all_figures(self, runs):
        for drawn in (figure_of("dag-curves", runs), figure_of("dag-episodes", runs)):
            titles = {"regular return": "regular", "H-PWR": "h-pwr", "Meta-PWR": "meta-pwr", "Meta-PWTD": "meta-pwtd"}
            shown = {line.get_label(): to_hex(line.get_color()) for axes in drawn.axes for line in axes.lines}
            for shown_title, label in titles.items():
                assert shown[shown_title] == COLOURS[label]


class TestUmbrella:
    def test_points_are_measured_and_lines_are_predicted(self, runs):
        upper, strip = figure_of("umbrella-variance", runs).axes
        points = [line for line in upper.lines if line.get_marker() != "None"]
        predictions = [line for line in upper.lines if line.get_marker() == "None"]
        for variance, dots, line in zip((0.5, 4.0), points, predictions, strict=True):
            np.testing.assert_allclose(dots.get_ydata(), variance * np.array([1.02, 0.99, 4.08, 3.96]))
            np.testing.assert_allclose(line.get_ydata(), (line.get_xdata() - 1) * variance)
        assert upper.get_yscale() == "log" and strip.get_yscale() == "linear"
        assert set(strip.lines[0].get_ydata()) == {0.0} and "exactly 0" in strip.get_title(loc="left")

    def test_a_variance_that_is_not_zero_is_not_called_zero(self, tmp_path):
        write_umbrella(tmp_path, pwr_variance=0.25)
        _, strip = figure_of("umbrella-variance", find_runs(tmp_path)).axes
        assert "at most 0.25" in strip.get_title(loc="left") and strip.get_ylim()[1] > 0.25

    def test_csv_has_hand_numbers(self, runs):
        rows = table_rows("umbrella-variance", runs)
        assert len(rows) == 8
        last = rows[-1]
        assert (last["length"], last["noise_variance"], last["first_action"]) == ("5", "4.0", "1")
        assert float(last["monte_carlo_predicted"]) == 16
        assert float(last["ratio"]) == pytest.approx(0.99)
        assert last["pwr_measured"] == "0.0"


class TestSwitches:
    def test_csv_has_hand_numbers_and_policies_of_one_table_go_together(self, runs):
        (row,) = table_rows("dag-switches", runs)
        assert (row["switch"], row["method"], row["weight_credited"]) == ("default", "Meta-PWR", "0.25")
        assert (row["episodes_to_95"], row["low"], row["high"]) == ("250.0", "150.0", "350.0")


class TestEstimatorQuality:
    def test_dots_and_csv_show_the_rows(self, runs):
        drawn = figure_of("estimator-quality", runs)
        snr, cosine, bias = drawn.axes[:3]
        assert [label.get_text() for label in snr.get_yticklabels()] == list(ESTIMATORS)
        assert [line.get_xdata()[0] for line in snr.lines] == [1, 2, 3, 4, 1.5, 2.5, 3.5, 4.5]
        np.testing.assert_allclose([line.get_xdata()[0] for line in cosine.lines], [0.2, 0.4, 0.6, 0.8] * 2)
        np.testing.assert_allclose([line.get_xdata()[0] for line in bias.lines], [0.1, 0.2, 0.3, 0.4] * 2)
        rows = table_rows("estimator-quality", runs)
        assert len(rows) == 16 and rows[-1]["snr"] == "5.5" and rows[-1]["preference"] == "1.0"

    def test_two_comparisons_are_refused(self, tmp_path):
        write_credit(tmp_path, "one")
        write_credit(tmp_path, "two")
        with refused("one", "two"):
            figure_of("estimator-quality", find_runs(tmp_path))


class TestSaving:
    @pytest.mark.nightly
    def test_writes_every_figure_and_table_into_a_new_folder(self, runs, tmp_path):
        paths = save_figures(runs, tmp_path / "figures")
        expected = {f"{name}.{end}" for name in FIGURE_NAMES for end in ("svg", "png")}
        expected |= {f"{name}.csv" for name in TABLES}
        assert {path.name for path in paths} == expected == {path.name for path in (tmp_path / "figures").iterdir()}
        for path in paths:
            beginning = {".svg": b"<?xml", ".png": b"\x89PNG", ".csv": b""}[path.suffix]
            assert path.read_bytes().startswith(beginning) and path.stat().st_size > 100
        with refused("exists already"):
            save_figures(runs, tmp_path / "figures")

    def test_writes_what_can_be_drawn(self, tmp_path):
        write_umbrella(tmp_path / "runs")
        paths = save_figures(find_runs(tmp_path / "runs"), tmp_path / "figures")
        assert [path.name for path in paths] == [f"umbrella-variance.{end}" for end in ("svg", "png", "csv")]

    def test_damaged_metrics_leave_nothing_behind(self, tmp_path):
        write_umbrella(tmp_path / "runs")
        write_evaluation(tmp_path / "runs", 4, "regular", (100.0, 200.0))
        found = find_runs(tmp_path / "runs")
        with open(tmp_path / "runs" / "dag4-train-regular" / "metrics.jsonl", "ab") as file:
            file.write(b'{"member": 0}\n')
        with refused("metrics.jsonl", "damaged"):
            save_figures(found, tmp_path / "figures")
        assert not (tmp_path / "figures").exists()

    def test_runs_without_figures_are_refused(self, tmp_path):
        with refused("no figure"):
            save_figures([], tmp_path / "figures")
        assert not (tmp_path / "figures").exists()


def test_every_file_of_a_run_is_read_once(runs, tmp_path, monkeypatch):
    """By all figures, tables, claims and the digest together, whatever they want to know."""
    fresh, reads, checked = [Run(run.path, run.manifest) for run in runs], Counter(), Run.checked

    def counted(run: Run, name: str) -> bytes:
        reads[run.path, name] += 1
        return checked(run, name)

    monkeypatch.setattr(Run, "checked", counted)
    monkeypatch.setattr(files, "to_svg", lambda _: "")
    monkeypatch.setattr(files, "to_png", lambda _: b"")
    files.write_digest(fresh, judge_all(fresh), tmp_path / "digest")
    assert len(reads) > len(runs) and set(reads.values()) == {1}


class TestSoFar:
    """Every study shows what is not finished as far as it got, and judges claims without it."""

    FIGURES: ClassVar = {"dag-curves", "key-to-door-central", "bsuite-regret", "atari-curves", "training-curves"}

    @pytest.fixture
    def unfinished(self, tmp_path):
        folder = tmp_path / "runs"
        write_evaluation(folder, 4, "regular", (100.0, 200.0), finished=False)
        write_method(folder, "a2c", {CENTRAL: [0, 10]}, updates=40, finished=False)
        write_regrets(folder, "a2c", "catch", 30.0, numbers=(0,), finished=False)
        write_game(folder, ATARI, "a2c", "pong", 3.0, stopped_after=12)
        write_own(folder / "mine", finished=False)
        return folder

    def test_figures_and_tables(self, unfinished, tmp_path):
        paths = save_figures(find_runs(unfinished, so_far=True), tmp_path / "figures")
        assert {path.stem for path in paths if path.suffix == ".svg"} >= self.FIGURES

    def test_curves_end_where_the_last_point_begins(self, unfinished):
        runs = find_runs(unfinished, so_far=True)
        (axes,) = figure_of("dag-curves", runs).axes
        line = next(line for line in axes.lines if line.get_label() == "regular return")
        assert line.get_xdata()[-1] == 950, "of points at 0, 50, … 1000 nobody knows where the last one ends"

    def test_claims_and_the_command_line(self, unfinished, tmp_path, capsys):
        assert main(["claims", str(unfinished)]) == 2
        assert main(["digest", str(unfinished), "--so-far", "--out", str(tmp_path / "digest")]) == 0
        verdicts = csv.DictReader((tmp_path / "digest" / "verdicts.csv").read_text().splitlines())
        assert {row["status"] for row in verdicts} == {"not judged"}
        assert (tmp_path / "digest" / "key-to-door-members.csv").exists()


def test_a_new_study_is_a_name_in_one_tuple(tmp_path, monkeypatch):
    """What it has to show and to keep then comes with all the rest."""
    write_own(tmp_path / "runs" / "mine")
    table = Exhibit(
        "my-table", "Mine", "How many runs.", lambda runs: Table((Column("runs", "runs"),), ((len(runs),),))
    )
    kept = Table((Column("x", "x"),), ((1,),))
    mine = Study(tables=(table,), digest=lambda runs: {"mine.csv": kept})
    monkeypatch.setattr(files, "STUDIES", (*STUDIES, mine))
    files.write_digest(find_runs(tmp_path / "runs"), [], tmp_path / "digest")
    assert (tmp_path / "digest" / "figures" / "my-table.csv").read_text() == "runs\n1\n"
    assert (tmp_path / "digest" / "mine.csv").read_text() == "x\n1\n"


def test_a_table_quotes_and_formats():
    table = Table((Column("name", "Name"), Column("x", "X", ".1f")), (("a, b", -1.25), ("c", None)))
    assert table.csv() == 'name,x\n"a, b",-1.25\nc,\n'
    assert table.texts() == [["a, b", "−1.2"], ["c", "–"]]


@pytest.mark.parametrize("width", [5.6, 8.0, 12.0])
@pytest.mark.parametrize("names", [3, 7, 10])
@styled
def test_a_legend_stays_inside_its_figure(width, names):
    figure = Figure(figsize=(width, 4.0), layout="constrained")
    axes = figure.subplots()
    for name in (*map(title, COLOURS), "most that can be expected")[-names:]:
        axes.plot([0, 1], [0, 1], label=name)
    legend_above(figure, last="most that can be expected")
    FigureCanvasAgg(figure).draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
