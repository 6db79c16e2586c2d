"""Figures of runs of `paircredit train` show what they recorded and learned, whatever they were."""

from __future__ import annotations

import numpy as np
import pytest

from paircredit.envs.dag import num_states
from paircredit.results.charts import COLOURS, to_png
from paircredit.runs import find_runs
from paircredit.studies.own import MOST_PANELS, own_runs
from tests.exhibits import figure_of, table_of
from tests.made_up import PER_UPDATE, UPDATES, example_weights, write_game, write_own


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def panels(figure):
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_visible() and axes.has_data()}


def steps(count: int, tables: int = 2) -> np.ndarray:
    return np.stack([np.arange(count * count).reshape(count, count) / count**2 + table for table in range(tables)])


def test_a_panel_per_quantity_with_a_curve_per_run(tmp_path):
    write_own(tmp_path / "slow", method="a2c", more=("reward_of_the_door",))
    write_own(tmp_path / "quick", method="meta-pwr", last=8.0, seeds=1)
    figure = figure_of("training-curves", find_runs(tmp_path))
    found = panels(figure)
    assert list(found) == ["dag: episode return", "dag: reward of the door"]
    assert list(lines(found["dag: reward of the door"])) == ["A2C"]
    drawn = lines(found["dag: episode return"])
    assert list(drawn) == ["A2C", "Meta-PWR"]
    frames = (2 * np.arange(UPDATES // 2) + 1) * PER_UPDATE  # the middle of two updates
    np.testing.assert_allclose(drawn["A2C"].get_xdata(), frames)
    np.testing.assert_allclose(drawn["A2C"].get_ydata(), np.linspace(0.1, 4.1, UPDATES // 2), atol=1e-9)
    np.testing.assert_allclose(lines(found["dag: reward of the door"])["A2C"].get_ydata()[-1], 8.2)
    assert drawn["Meta-PWR"].get_color() == COLOURS["meta-pwr"]


def test_environments_and_runs_that_differ_are_told_apart(tmp_path):
    for name, depth in (("one", 4), ("two", 8)):
        write_own(tmp_path / name, env_settings={"depth": depth, "sign_rule": "fixed"})
    write_own(tmp_path / "eager", env_settings={"depth": 8, "sign_rule": "fixed"}, method="own-method")
    write_own(tmp_path / "again" / "two", env_settings={"depth": 8, "sign_rule": "fixed"})
    write_own(tmp_path / "other", env="my-maze")
    found = own_runs(find_runs(tmp_path))
    assert [(own.place, own.label) for own in found] == [
        ("dag, depth 4", "a2c"),
        ("dag, depth 8", "a2c, again/two"),
        ("dag, depth 8", "a2c, two"),
        ("dag, depth 8", "own-method"),
        ("my-maze", "a2c"),
    ]
    shown = panels(figure_of("training-curves", find_runs(tmp_path)))
    assert list(shown) == ["dag, depth 4", "dag, depth 8", "my-maze"]
    two = lines(shown["dag, depth 8"])
    assert list(two) == ["A2C, again/two", "A2C, two", "own-method"]
    looks = {(line.get_color(), str(line.get_linestyle())) for line in two.values()}
    assert len(looks) == 3


def test_many_runs_of_one_method_all_look_different(tmp_path):
    for number in range(12):
        write_own(tmp_path / f"run{number}", seeds=1)
    (axes,) = panels(figure_of("training-curves", find_runs(tmp_path))).values()
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in axes.get_lines()}
    assert len(looks) == 12


def test_the_table_says_what_was_run_and_what_came_of_it(tmp_path):
    write_own(tmp_path / "runs" / "mine", method_settings={"inner.learning_rate": 0.03}, seeds=3)
    write_own(tmp_path / "runs" / "single", method="meta-pwr", seeds=1)
    write_own(tmp_path / "runs" / "short", method="h-pwr", rows=1)
    rows = table_of("training-runs", find_runs(tmp_path)).rows
    assert rows[0][:7] == ("mine", "dag", "A2C", "paper", "inner.learning_rate 0.03", 3, UPDATES * PER_UPDATE)
    last = 4 * (19 + 18) / 2 / 19  # the last two of twenty rows
    assert rows[0][7] == pytest.approx(last + 0.1) and rows[0][8] < rows[0][7] < rows[0][9]
    assert rows[1][:6] == ("short", "dag", "H-PWR", "paper", "none", 3) and rows[1][6:] == (None,) * 4
    assert rows[2][7] == pytest.approx(last) and rows[2][8:] == (None, None), "one seed has no interval"


def test_a_run_that_goes_on_is_shown_as_far_as_it_got(tmp_path):
    write_own(tmp_path / "whole")
    write_own(tmp_path / "stopped", method="meta-pwr", rows=7, finished=False)
    (axes,) = panels(figure_of("training-curves", find_runs(tmp_path, so_far=True))).values()
    drawn = lines(axes)
    assert len(drawn["A2C"].get_xdata()) == 20
    np.testing.assert_allclose(drawn["Meta-PWR"].get_xdata(), (2 * np.arange(6) + 1) * PER_UPDATE)
    assert figure_of("training-weights", find_runs(tmp_path, so_far=True)) is None


def test_runs_that_have_nothing_to_show_have_no_figure(tmp_path):
    write_own(tmp_path / "short", rows=1)
    assert figure_of("training-curves", find_runs(tmp_path)) is None
    assert (
        figure_of("training-curves", []) is None
        and table_of("training-runs", []) is None
        and figure_of("training-weights", []) is None
    )


class TestWeights:
    def pictures(self, figure):
        return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.images}

    def test_by_state_or_by_step_the_mean_over_seeds(self, tmp_path):
        tables, logits = example_weights(4, 3), np.zeros((3, num_states(4), 2))
        arrays = {"weights": tables, "policy_logits": logits}
        write_own(tmp_path / "table", env_settings={"depth": 4}, method="meta-pwr", arrays=arrays)
        write_own(tmp_path / "steps", "minatar/freeway", "meta-pwtd", arrays={"weights": steps(5)}, seeds=2)
        write_own(tmp_path / "none", env_settings={"depth": 4})
        found = self.pictures(figure_of("training-weights", find_runs(tmp_path)))
        dag, freeway = (
            found[name] for name in ("dag\nMeta-PWR, mean of 3 seeds", "minatar/freeway\nMeta-PWTD, mean of 2 seeds")
        )
        shown = dag.images[0].get_array()
        assert shown.shape[0] < num_states(4) and shown.mask.any(), "rows of the states that act, reachable pairs"
        mean = tables.mean(axis=0)[: shown.shape[0]]
        np.testing.assert_allclose(shown.compressed(), mean[~shown.mask] / mean[~shown.mask].max(), rtol=1e-6)
        assert dag.get_xlabel() == "state of the reward"
        shown = freeway.images[0].get_array()
        np.testing.assert_array_equal(shown.mask, np.tril(np.ones((5, 5), dtype=bool), -1))
        assert freeway.get_xlabel() == "step of the TD error" and freeway.get_ylabel() == "step of the action"

    def test_key_to_door_has_its_phases(self, tmp_path):
        settings = {"key_steps": 3, "apple_steps": 4, "door_steps": 2}
        write_own(tmp_path / "ktd", "key-to-door", "meta-pwr", env_settings=settings, arrays={"weights": steps(9)})
        (axes,) = self.pictures(figure_of("training-weights", find_runs(tmp_path))).values()
        assert [tick for tick in axes.get_xticks()] == [0, 3, 7]

    def test_what_is_no_weight_of_pairs_is_no_picture(self, tmp_path):
        """A method of one's own may learn a weight per delay, or a table over steps where policies are by state."""
        write_own(tmp_path / "delays", method="by-delay", arrays={"weights": steps(4)[:, 0]})
        runs = find_runs(tmp_path)
        assert figure_of("training-weights", runs) is None and figure_of("training-curves", runs) is not None
        arrays = {"weights": steps(5), "policy_logits": np.zeros((2, num_states(4), 2))}
        write_own(tmp_path / "dag", method="by-step", env_settings={"depth": 4}, arrays=arrays)
        write_own(tmp_path / "ktd", "key-to-door", "by-step", arrays={"weights": steps(5)})
        for axes in self.pictures(figure_of("training-weights", find_runs(tmp_path))).values():
            assert axes.images[0].get_array().shape == (5, 5) and axes.get_xlabel() == "step of the reward"

    def test_of_many_runs_the_first_ones_are_shown_and_the_others_counted(self, tmp_path):
        for number in range(MOST_PANELS + 2):
            write_own(tmp_path / f"run{number:02}", "my-maze", "meta-pwr", arrays={"weights": steps(3)}, rows=2)
        figure = figure_of("training-weights", find_runs(tmp_path))
        assert len(self.pictures(figure)) == MOST_PANELS
        assert "the first 12 of 14 runs" in figure.get_suptitle()


def test_runs_of_experiments_are_none_of_these(tmp_path):
    from paircredit.studies.games.measures import ATARI

    write_game(tmp_path, ATARI, "a2c", "pong", 1.0)
    runs = find_runs(tmp_path)
    assert own_runs(runs) == [] and figure_of("training-curves", runs) is None


def test_pictures_can_be_made(tmp_path):
    write_own(tmp_path / "one", "my-maze", "meta-pwr", arrays={"weights": steps(3)}, more=("a", "b", "c", "d"))
    for name in ("training-curves", "training-weights"):
        assert to_png(figure_of(name, find_runs(tmp_path))).startswith(b"\x89PNG")
