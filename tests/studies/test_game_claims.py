"""Claims A1 and M1 on made-up runs, and the numbers after them, by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from paircredit.envs.atari import GAMES, Reference
from paircredit.results.curves import RETURN
from paircredit.results.intervals import Interval, bootstrap
from paircredit.runs import Run, find_runs
from paircredit.studies.games import measures as game_claims
from paircredit.studies.games.measures import (
    ATARI,
    HUMAN,
    HUMAN_2015,
    MINATAR,
    Comparison,
    all_games,
    comparisons,
    counts,
    interquartile_mean_of_games,
    median_curves,
    median_of_games,
    normalised_scores,
    shared_games,
)
from tests.exhibits import CLAIMS, table_rows
from tests.made_up import ROWS, write_game
from tests.sentences import refused

FEW = ("alien", "breakout", "pong", "venture", "zaxxon")
"""The suite of these tests; in all of them the paper's order holds, as the numbers below are."""
HNS: dict[str, tuple[float, float, float]] = {
    "alien": (0.3, 0.2, 0.1),
    "breakout": (1.0, 1.5, 0.8),
    "pong": (0.9, 1.2, 0.7),
    "venture": (0.0, 0.0, 0.0),
    "zaxxon": (0.5, 0.6, 0.3),
}
"""Human-normalised scores of A2C, Meta-PWTD and A2C-RR."""
LABELS = ("a2c", "meta-pwtd", "a2c-rr")
FRAMES = 64_000


def score_of(game: str, normalised: float) -> float:
    return GAMES[game].random + normalised * (GAMES[game].human - GAMES[game].random)


def write_atari(folder: Path, game: str, label: str, normalised: float, **more: int) -> None:
    write_game(folder, ATARI, label, game, score_of(game, normalised), frames=more.pop("frames", FRAMES), **more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Run]:
    folder = tmp_path_factory.mktemp("atari")
    for game, numbers in HNS.items():
        for label, number in zip(LABELS, numbers, strict=True):
            write_atari(folder, game, label, number)
    return find_runs(folder)


@pytest.fixture
def small_suite(monkeypatch):
    """As if Atari had only these games, and the paper had trained as short."""
    suite = dataclasses.replace(ATARI, random={game: GAMES[game].random for game in FEW})
    monkeypatch.setattr(game_claims, "ATARI", suite)
    monkeypatch.setattr(game_claims, "PAPER_FRAMES", FRAMES)


@pytest.fixture
def changed(runs, tmp_path) -> Callable[[Mapping[tuple[str, str], float]], list[Run]]:
    """The same runs, some of them with other normalised scores."""

    def change(numbers: Mapping[tuple[str, str], float]) -> list[Run]:
        for (game, label), number in numbers.items():
            write_atari(tmp_path, game, label, number)
        others = find_runs(tmp_path)
        return [run for run in runs if run.name not in {other.name for other in others}] + others

    return change


def judge(name: str, runs: list[Run]) -> tuple[str, str]:
    return CLAIMS[name].judge(runs)


class TestAtari:
    def test_it_holds_where_all_games_were_played(self, small_suite, runs):
        status, text = judge("A1", runs)
        assert status == "holds" and text.startswith("5 of 5 games, 0.064 M frames")
        assert "better than A2C in 3, worse in 1, and ties in 1" in text and "3 better, 1 worse, 1 ties" in text
        assert "median human-normalised score A2C 0.500 [" in text and "Meta-PWTD 0.600 [" in text
        assert "median of Meta-PWTD minus A2C 0.100 [" in text

    def test_fewer_games_are_not_judged_but_told(self, runs):
        status, text = judge("A1", [run for run in runs if "alien" not in run.name])
        assert status == "not judged" and text.startswith("4 of 49 games")
        assert "better than A2C in 3, worse in 0, and ties in 1" in text

    def test_shorter_trainings_are_not_judged(self, small_suite, runs, monkeypatch):
        monkeypatch.setattr(game_claims, "PAPER_FRAMES", FRAMES + 1)
        assert judge("A1", runs)[0] == "not judged"

    def test_it_fails_where_more_games_are_worse(self, small_suite, changed):
        worse = {("zaxxon", "meta-pwtd"): 0.1, ("breakout", "meta-pwtd"): 0.8, ("pong", "meta-pwtd"): 0.5}
        status, text = judge("A1", changed(worse))
        assert status == "fails" and "in 0, worse in 4" in text

    def test_as_many_better_as_worse_is_not_enough(self, small_suite, changed):
        """And the medians do not contradict it."""
        status, text = judge("A1", changed({("breakout", "meta-pwtd"): 0.8}))
        assert status == "fails" and "in 2, worse in 2" in text and "wrong way round" not in text

    def test_it_fails_where_the_medians_say_otherwise(self, small_suite, changed):
        """A2C-RR has the best median by far; better in more games than A2C is still Meta-PWTD."""
        status, text = judge("A1", changed({(game, "a2c-rr"): 3.0 for game in FEW}))
        assert status == "fails" and text.count("(the wrong way round)") == 2

    def test_without_a2c_rr_it_is_not_judged(self, small_suite, runs):
        status, text = judge("A1", [run for run in runs if run.name != "pong-a2c-rr"])
        assert status == "not judged" and "A2C-RR has not played all" in text

    def test_few_seeds_are_said(self, tmp_path):
        for label in LABELS:
            write_atari(tmp_path, "pong", label, 0.5, seeds=4)
        status, text = judge("A1", find_runs(tmp_path))
        assert status == "not judged" and "at least 5 seeds" in text and "1 of 49 games have fewer" in text
        assert judge("A1", [])[1].endswith("there are none.")


class TestMinAtar:
    @pytest.fixture
    def write(self, tmp_path):
        def write(gains: Mapping[str, tuple[float, float]], **more: int) -> list[Run]:
            for game, own in gains.items():
                for label, gain in zip(LABELS, own, strict=False):
                    write_game(tmp_path, MINATAR, label, game, MINATAR.random[game] + gain, **more)
            return find_runs(tmp_path)

        return write

    def test_it_holds_where_more_games_are_better(self, write):
        gains = {game: (4.0, 5.0) for game in MINATAR.random} | {"freeway": (4.0, 3.0), "asterix": (4.0, 4.01)}
        status, text = judge("M1", write(gains))
        assert status == "holds" and "5 of 5 games" in text and "in 3, worse in 1, and ties in 1" in text
        assert "Freeway: A2C 4.39, Meta-PWTD 3.39, difference -1.00 [" in text

    def test_it_fails_where_more_games_are_worse(self, write):
        assert judge("M1", write({game: (4.0, 3.0) for game in MINATAR.random}))[0] == "fails"

    def test_as_many_better_as_worse_is_not_worse(self, write):
        gains = {game: (4.0, 4.01) for game in MINATAR.random} | {"freeway": (4.0, 3.0), "seaquest": (4.0, 5.0)}
        status, text = judge("M1", write(gains))
        assert status == "holds" and "in 1, worse in 1, and ties in 3" in text

    def test_games_that_nobody_learned_do_not_count(self, write):
        gains = {game: (-0.05, -0.05) for game in MINATAR.random} | {"freeway": (4.0, 5.0), "asterix": (4.0, 5.0)}
        status, text = judge("M1", write(gains))
        assert status == "not judged" and text.count("not learned") == 3 and "in 2, worse in 0, and ties in 0" in text

    def test_all_games_are_needed(self, write):
        status, text = judge("M1", write({"breakout": (4.0, 5.0), "freeway": (4.0, 5.0), "seaquest": (4.0, 5.0)}))
        assert status == "not judged" and text.startswith("3 of 5 games")


class TestCurves:
    def test_points_before_the_first_game_has_ended_are_left_out(self, runs):
        curves = all_games(runs, ATARI)["pong"]["a2c"]
        assert curves.values[RETURN].shape == (5, ROWS - 3) and curves.trained == 50 * 1280
        assert curves.values[RETURN].min() > GAMES["pong"].random, "no return of 0 that nobody has had"

    def test_a_run_in_which_no_game_ended_has_no_score(self, tmp_path):
        write_game(tmp_path, ATARI, "a2c", "pong", 3.0, silent=ROWS)
        assert all_games(find_runs(tmp_path), ATARI) == {}

    def test_an_unfinished_run_has_curves_as_far_as_all_its_members_got(self, runs, tmp_path):
        write_atari(tmp_path, "pong", "a2c", HNS["pong"][0], stopped_after=12)
        whole = all_games(runs, ATARI)["pong"]["a2c"]
        part = all_games(find_runs(tmp_path, so_far=True), ATARI)["pong"]["a2c"]
        # The last member has written 11 rows; nobody knows where the last of them ends.
        assert part.values[RETURN].shape == (5, 10 - 3) and part.trained == 10 / ROWS * FRAMES
        np.testing.assert_array_equal(part.values[RETURN], whole.values[RETURN][:, :7])
        np.testing.assert_array_equal(part.edges["frames"], whole.edges["frames"][:8])
        assert part.scores() == pytest.approx(whole.scores(part.trained))

    @pytest.mark.parametrize("rows", [1, 2, 4])
    def test_an_unfinished_run_that_has_too_little_to_tell_is_left_out(self, tmp_path, rows):
        write_atari(tmp_path, "pong", "a2c", 1.0, stopped_after=rows)
        assert all_games(find_runs(tmp_path, so_far=True), ATARI) == {}

    def test_two_runs_of_the_same_are_refused(self, runs, tmp_path):
        write_atari(tmp_path, "pong", "a2c", 1.0)
        with refused("A2C on Atari's Pong", "name a folder with one"):
            all_games([*runs, *find_runs(tmp_path)], ATARI)

    def test_games_and_methods_are_in_order(self, runs):
        found = all_games(runs[::-1], ATARI)
        assert list(found) == list(FEW) and list(found["pong"]) == ["a2c", "meta-pwtd", "a2c-rr"]


class TestNumbers:
    def test_normalised_scores_by_hand(self):
        np.testing.assert_allclose(ATARI.normalised(HUMAN, "pong", np.array([-20.7, 14.6])), [0.0, 1.0])
        np.testing.assert_allclose(ATARI.normalised(HUMAN_2015, "pong", np.array([9.3])), [1.0])
        assert ATARI.normalised(HUMAN, "breakout", np.array(400.0)) == pytest.approx((400 - 1.7) / (30.5 - 1.7))

    def test_relative_performance_by_hand(self):
        over = ATARI.relative("breakout", np.array([20.0, 100.0]), np.array([10.0, 80.0]))
        np.testing.assert_allclose(over, [10 / (30.5 - 1.7), 20 / (80 - 1.7)])
        random = MINATAR.random["seaquest"]
        assert MINATAR.relative("seaquest", np.array(random + 4), np.array(random + 3)) == pytest.approx(0.25)
        assert MINATAR.relative("seaquest", np.array(random + 3), np.array(random + 4)) == pytest.approx(-0.25)
        assert MINATAR.relative("seaquest", np.array(1.02 * random), np.array(random)) == pytest.approx(0.02)

    def test_the_49_games(self):
        assert len(GAMES) == 49 and list(GAMES) == sorted(GAMES)
        assert GAMES["alien"] == Reference(227.8, 6875.4, 7127.7) and GAMES["zaxxon"] == Reference(32.5, 9173.3, 9173.3)
        assert all(min(own.human, own.human_2015) > own.random for own in GAMES.values())

    def test_sums_over_games_draw_seeds_and_not_games(self, runs):
        found = all_games(runs, ATARI)
        shared = shared_games(found)
        assert shared == (list(FEW), ["a2c", "meta-pwtd", "a2c-rr"], FRAMES)
        groups = normalised_scores(found, ATARI, HUMAN, shared)["meta-pwtd"]
        np.testing.assert_allclose([group.mean() for group in groups], [HNS[game][1] for game in FEW], rtol=1e-9)
        median = bootstrap(groups, median_of_games)
        assert median.estimate == pytest.approx(0.6) and 0.59 < median.low < 0.6 < median.high < 0.61
        inner = bootstrap(groups, interquartile_mean_of_games)
        ordered = np.sort(np.concatenate(groups))
        assert inner.estimate == pytest.approx((0.75 * (ordered[6] + ordered[18]) + ordered[7:18].sum()) / 12.5)

    def test_a_method_that_played_less_is_not_summed_up(self, runs, tmp_path):
        write_atari(tmp_path, "pong", "a2c-rr", 0.5, frames=FRAMES // 2)
        others = [run for run in runs if run.name != "pong-a2c-rr"]
        for some in (others, [*others, *find_runs(tmp_path)]):
            shared = shared_games(all_games(some, ATARI))
            assert shared is not None and shared.labels == ["a2c", "meta-pwtd"] and len(shared.games) == 5
        only = shared_games(all_games([run for run in runs if run.name == "pong-a2c"], ATARI))
        assert only == (["pong"], ["a2c"], FRAMES)
        assert shared_games(all_games([run for run in runs if run.name == "pong-a2c-rr"], ATARI)) is None

    def test_methods_are_compared_after_the_frames_that_both_trained(self, runs, tmp_path):
        write_atari(tmp_path, "pong", "meta-pwtd", 1.2, frames=FRAMES // 2)
        some = [run for run in runs if run.name == "pong-a2c"] + find_runs(tmp_path)
        (own,) = comparisons(all_games(some, ATARI), ATARI)
        assert own.frames == FRAMES / 2
        assert own.ours.mean() == pytest.approx(score_of("pong", 1.2))
        assert own.baseline.mean() < score_of("pong", 0.9), "it was not there yet"

    def test_the_curve_ends_at_the_score(self, runs):
        curves = {curve.label: curve for curve in median_curves(all_games(runs, ATARI), ATARI)}
        assert curves["meta-pwtd"].games == 5 and curves["meta-pwtd"].median[-1] == pytest.approx(0.6)
        assert curves["a2c"].low[-1] < 0.5 < curves["a2c"].high[-1]

    @pytest.mark.parametrize(
        "relative, seeds, outcome, by_means",
        [
            ((0.1, 0.01, 0.2), 5, "better", "better"),
            ((-0.1, -0.2, -0.01), 5, "worse", "worse"),
            ((0.1, -0.01, 0.2), 5, "tie", "better"),
            ((0.004, 0.001, 0.005), 5, "better", "tie"),
            ((0.1, 0.01, 0.2), 4, "open", "better"),
        ],
    )
    def test_outcomes(self, relative, seeds, outcome, by_means):
        nothing = Interval(0, 0, 0)
        own = Comparison("pong", 1.0, np.zeros(9), np.zeros(seeds), nothing, Interval(*relative))
        assert own.outcome == outcome and own.by_means == by_means

    def test_counts(self):
        assert counts(["better", "tie", "open", "worse", "better"]) == (2, 1, 1)


def test_tables_have_the_numbers(runs):
    rows = {(row["game"], row["method"]): row for row in table_rows("atari-scores", runs)}
    pong = rows["Pong", "Meta-PWTD"]
    assert float(pong["score"]) == pytest.approx(score_of("pong", 1.2)) and pong["seeds"] == "5"
    assert float(pong["normalised_human"]) == pytest.approx(1.2)
    assert float(pong["normalised_human_2015"]) == pytest.approx((score_of("pong", 1.2) + 20.7) / 30)
    relative = {row["game"]: row for row in table_rows("atari-relative", runs)}
    assert relative["Alien"]["outcome"] == "worse" and relative["Venture"]["by_means"] == "tie"
    assert float(relative["Breakout"]["relative"]) == pytest.approx(0.5)
    summary = {(row["human"], row["method"]): row for row in table_rows("atari-summary", runs)}
    assert float(summary["human", "A2C"]["median"]) == pytest.approx(0.5) and len(summary) == 6
    assert HUMAN_2015 in {human for human, _ in summary}


def test_minatar_has_scores_without_people(tmp_path):
    write_game(tmp_path, MINATAR, "a2c", "breakout", 3.0)
    (row,) = table_rows("minatar-scores", find_runs(tmp_path))
    assert float(row["score"]) == pytest.approx(3.0) and not any("normalised" in name for name in row)
