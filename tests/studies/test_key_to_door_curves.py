"""Key-to-Door results against hand numbers: made-up runs whose answers are known."""

import math
from pathlib import Path

import numpy as np
import pytest

from paircredit.results.curves import Curve
from paircredit.results.exhibits import title
from paircredit.results.intervals import Interval, difference_of_times
from paircredit.runs import find_runs
from paircredit.studies.key_to_door.measures import (
    all_curves,
    best_value,
    compare_times,
    door_reward_at,
    final_values,
    frames_text,
    frames_to,
    learning_rule,
    method_labels,
    pick_setting,
    smoothed,
)
from paircredit.studies.key_to_door.runs import CENTRAL, SEARCH, Setting
from paircredit.studies.key_to_door.weights import Phases, block_means, blocks, handcrafted, learned_weights, likeness
from tests.made_up import EPISODES, SMALL, frames, weights, write_method
from tests.sentences import refused

HARD = Setting(10.0, 100.0, 0.0)
SLIPPERY = Setting(5.0, 25.0, 0.1)


def curves_of(folder: Path, label: str = "a2c", setting: Setting = CENTRAL) -> Curve:
    return next(c for c in all_curves(find_runs(folder)) if (c.label, c.place) == (label, setting))


def by_hand(episodes: list[float], values: list[list[float]]) -> Curve:
    """Edges of the points, with ten frames an episode."""
    edges = {axis: size * np.array(episodes, dtype=float) for axis, size in (("episodes", 1), ("frames", 10))}
    door = {"door_reward": np.array(values, dtype=float)}
    return Curve("a2c", CENTRAL, (), np.arange(len(values)), edges, door)


class TestReading:
    def test_members_are_sorted_into_settings_and_seeds(self, tmp_path: Path) -> None:
        write_method(tmp_path, "meta-pwr", {SLIPPERY: [0, 0], HARD: [0, 400, 400]}, first_seed=3)
        write_method(tmp_path, "something-new", {HARD: [0]})
        write_method(tmp_path, "a2c", {HARD: [0]}, updates=200)
        found = all_curves(find_runs(tmp_path))
        assert [(c.place, c.label, len(c.seeds)) for c in found] == [
            (HARD, "a2c", 1),
            (HARD, "meta-pwr", 3),
            (HARD, "something-new", 1),
            (SLIPPERY, "meta-pwr", 2),  # slips come last
        ]
        learned = found[1]
        assert learned.seeds.tolist() == [3, 4, 5]
        assert learned.values["door_reward"].shape == (3, 80)
        assert learned.values["door_reward"].mean(axis=1).tolist() == [10, 0, 0]
        assert learned.values["apple_reward"][:, -1].tolist() == [pytest.approx(100 * 395 / 400)] * 3
        assert learned.trained == frames(400) and found[0].trained == frames(200)

    def test_labels_that_nobody_knows_come_last_under_their_own_name(self, tmp_path: Path) -> None:
        for label in ("zeta", "meta-pwtd", "alpha", "a2c"):
            write_method(tmp_path, label, {CENTRAL: [0]}, updates=10)
        assert method_labels(find_runs(tmp_path)) == ["a2c", "meta-pwtd", "alpha", "zeta"]
        assert title("zeta") == "zeta" and title("rgm") == "RGM"

    def test_seeds_of_two_runs_go_together(self, tmp_path: Path) -> None:
        for number in range(2):
            write_method(tmp_path, "a2c", {CENTRAL: [100 * number] * 2}, first_seed=2 * number, name=f"part-{number}")
        curves = curves_of(tmp_path)
        assert curves.seeds.tolist() == [0, 1, 2, 3]
        np.testing.assert_array_equal(curves.values["door_reward"][:, 0], [10, 10, 0, 0])

    def test_the_same_seed_twice_is_refused(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            write_method(tmp_path, "a2c", {CENTRAL: [0, 0]}, name=name)
        with refused("one", "two", "A2C at μ = 5, σ² = 25", "same part"):
            all_curves(find_runs(tmp_path))

    def test_seeds_with_other_points_are_refused(self, tmp_path: Path) -> None:
        for number in range(2):
            write_method(
                tmp_path, "a2c", {CENTRAL: [0]}, first_seed=number, updates=100 + 50 * number, name=f"part-{number}"
            )
        with refused("part-0", "part-1", "same points"):
            all_curves(find_runs(tmp_path))

    def test_a_search_keeps_its_variants_apart(self, tmp_path: Path) -> None:
        kinds = {(CENTRAL, (("lambda", lam), ("learning_rate", 2e-4))): [0, 0] for lam in (0.5, 1.0)}
        write_method(tmp_path, "a2c", kinds, role=SEARCH, updates=10)
        found = all_curves(find_runs(tmp_path), SEARCH)
        assert [(c.variant, len(c.seeds)) for c in found] == [((0.5, 2e-4), 2), ((1.0, 2e-4), 2)]
        assert all_curves(find_runs(tmp_path)) == []

    def test_the_best_that_can_be_expected(self, tmp_path: Path) -> None:
        write_method(tmp_path, "a2c", {CENTRAL: [0], SLIPPERY: [0]}, updates=10, phases=Phases())
        expected = {"episode_return": 60, "apple_reward": 50, "door_reward": 10, "key_rate": 1}
        curve = curves_of(tmp_path)
        assert {name: best_value(curve, name) for name in expected} == pytest.approx(expected)
        assert 9.9 < best_value(curves_of(tmp_path, setting=SLIPPERY), "door_reward") < 10

    def test_a_setting_for_figures_of_one(self) -> None:
        assert pick_setting([]) is None
        assert pick_setting([HARD, CENTRAL, SLIPPERY]) == CENTRAL
        assert pick_setting([HARD]) == HARD

    def test_what_a2c_was_run_with(self, tmp_path: Path) -> None:
        write_method(tmp_path, "a2c", {CENTRAL: [0]}, updates=10, method_settings={"lambda_": 0.9}, preset="default")
        (run,) = find_runs(tmp_path)
        assert learning_rule(run) == (0.9, 2e-4)


class TestTimes:
    def test_a_trailing_mean_takes_parts_of_points_of_any_length(self) -> None:
        """Rows of 16, 32, 16 and 64 episodes against the mean of the episodes one by one."""
        curves = by_hand([0, 16, 48, 64, 128, 192], [[1, 2, 6, 3, 9], [0, 0, 0, 10, 10]])
        one_by_one = np.repeat(curves.values["door_reward"], [16, 32, 16, 64, 64], axis=1)
        ends, means = smoothed(curves, window=40)
        assert ends.tolist() == [480, 640, 1280, 1920]
        for end, mean in zip((48, 64, 128, 192), means.T, strict=True):
            np.testing.assert_allclose(mean, one_by_one[:, end - 40 : end].mean(axis=1))

    @pytest.mark.parametrize("stride", [1, 2, 5])
    def test_frames_to_a_threshold(self, tmp_path: Path, stride: int) -> None:
        """After a jump at update 100, 9 of 10 need 18 updates of a window of 20, and 9.5 need 19."""
        write_method(tmp_path, "a2c", {CENTRAL: [100, 250, 500]}, stride=stride)
        curves = curves_of(tmp_path)
        for threshold, needed in ((9.0, 18), (9.5, 19)):
            expected = [frames(math.ceil((jump + needed) / stride) * stride) for jump in (100, 250)]
            np.testing.assert_allclose(frames_to(curves, threshold), [*expected, math.inf])

    def test_whoever_was_not_trained_for_a_window_never_got_there(self, tmp_path: Path) -> None:
        write_method(tmp_path, "a2c", {CENTRAL: [0, 0]}, updates=19, stride=1)
        assert np.isinf(frames_to(curves_of(tmp_path), 9.0)).all()
        write_method(tmp_path / "longer", "a2c", {CENTRAL: [0, 0]}, updates=20, stride=1)
        assert frames_to(curves_of(tmp_path / "longer"), 9.0).tolist() == [frames(20)] * 2

    def test_final_values_are_of_the_last_tenth(self, tmp_path: Path) -> None:
        write_method(tmp_path, "a2c", {CENTRAL: [0, 380, 400]})
        np.testing.assert_allclose(final_values(curves_of(tmp_path), "door_reward"), [10, 5, 0])

    def test_door_reward_at_given_frames(self, tmp_path: Path) -> None:
        write_method(tmp_path, "a2c", {CENTRAL: [0, 190, 200]})
        np.testing.assert_allclose(door_reward_at(curves_of(tmp_path), frames(200)), [10, 5, 0])
        assert door_reward_at(curves_of(tmp_path), frames(401)) is None

    def test_methods_are_compared_within_the_frames_that_both_trained(self, tmp_path: Path) -> None:
        write_method(tmp_path, "a2c", {CENTRAL: [300] * 5}, updates=400)
        write_method(tmp_path, "h-pwr", {CENTRAL: [900] * 5}, updates=200)
        write_method(tmp_path, "meta-pwr", {CENTRAL: [100] * 5}, updates=200)
        slow, never, fast = (curves_of(tmp_path, label) for label in ("a2c", "h-pwr", "meta-pwr"))
        assert compare_times(never, slow, 9.0) is None  # 300 comes after the 200 that were trained
        assert compare_times(fast, slow, 9.0) == (-math.inf,) * 3
        assert compare_times(never, fast, 9.0) == (math.inf,) * 3
        assert compare_times(slow, slow, 9.0) == (0, 0, 0)

    def test_differences_of_times_with_laggards(self) -> None:
        early, late = np.array([1.0, 2, 3, 4, 5]), np.array([10.0, 20, 30, math.inf, math.inf])
        found = difference_of_times(early, late)
        assert found.estimate == 3 - 30 and found.low == -math.inf and found.high < 0
        never = np.full(5, math.inf)
        assert difference_of_times(never, never) == (0, 0, 0)
        assert difference_of_times(late, never).low == -math.inf and difference_of_times(late, never).high == 0

    def test_frames_in_words(self) -> None:
        assert frames_text(Interval(4.2e6, 3.91e6, 4.6e6)) == "4.20 M [3.91, 4.60]"
        assert frames_text(Interval(4.2e6, 3.91e6, math.inf)) == "4.20 M [3.91, not reached]"
        assert frames_text(Interval(math.inf, 3.91e6, math.inf)) == "not reached [3.91, not reached]"
        assert frames_text(Interval(math.inf, math.inf, math.inf)) == "not reached"


class TestWeights:
    def test_blocks_by_hand(self) -> None:
        found = blocks(Phases(2, 3, 2))
        expected = {
            "key → apple": [(t, k) for t in (0, 1) for k in (2, 3, 4)],
            "key → door": [(t, k) for t in (0, 1) for k in (5, 6)],
            "apple → apple, near": [(2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 4)],
            "apple → apple, far": [],
            "apple → door": [(t, k) for t in (2, 3, 4) for k in (5, 6)],
            "door → door": [(5, 5), (5, 6), (6, 6)],
        }
        assert {name: [tuple(pair) for pair in np.argwhere(chosen)] for name, chosen in found.items()} == expected

    def test_near_and_far_in_episodes_of_full_length(self) -> None:
        found = blocks(Phases())
        action, paid = np.indices((120, 120))
        assert set((paid - action)[found["apple → apple, near"]]) == set(range(6))
        assert set((paid - action)[found["apple → apple, far"]]) == set(range(30, 90))
        assert not (found["apple → apple, near"] & found["apple → apple, far"]).any()

    def test_means_of_blocks_leave_out_what_lies_below_the_diagonal(self) -> None:
        values = {"key → apple": 0.1, "key → door": 0.9, "apple → apple, near": 0.7, "apple → apple, far": 0.2}
        matrices = weights(values | {"apple → door": 0.3, "door → door": 0.6}, 2, spread=0.1)
        matrices[:, np.tri(SMALL.steps, k=-1, dtype=bool)] = np.nan
        means = block_means(matrices, SMALL)
        for name, value in values.items():
            np.testing.assert_allclose(means[name], [value - 0.05, value + 0.05])
        assert np.isnan(block_means(np.zeros((2, 7, 7)), Phases(2, 3, 2))["apple → apple, far"]).all()

    def test_handcrafted_weights_have_the_means_one_expects(self) -> None:
        means = {name: float(value[0]) for name, value in block_means(handcrafted(Phases())[None], Phases()).items()}
        assert means["key → apple"] == 0 and means["apple → door"] == 0
        assert means["key → door"] == pytest.approx(np.mean(0.92 ** np.arange(15)))
        assert means["apple → apple, near"] > 0.8 and 0 < means["apple → apple, far"] < 0.1

    def test_likeness(self) -> None:
        wanted = handcrafted(SMALL)
        some = np.stack([wanted, 0.5 - 0.1 * wanted, np.full_like(wanted, 0.3)])
        some[:, np.tri(SMALL.steps, k=-1, dtype=bool)] = 7.0
        np.testing.assert_allclose(likeness(some, SMALL), [1, -1, 0], atol=1e-6)

    def test_learned_weights_are_found_by_setting_with_snapshots_and_their_frames(self, tmp_path: Path) -> None:
        final = np.arange(4, dtype=np.float32)[:, None, None] * np.ones((SMALL.steps, SMALL.steps), dtype=np.float32)
        arrays = {
            "weights": final / 10,
            "snapshots": np.stack([final / 20, final / 10]).astype(np.float16),
            "snapshot_updates": np.array([20, 40]),
            "label_slip": np.array([0, 0, 0.1, 0.1], dtype=np.float32),
        }
        write_method(tmp_path, "meta-pwr", {CENTRAL: [0, 0], SLIPPERY: [0, 0]}, updates=40, arrays=arrays)
        write_method(tmp_path, "h-pwr", {CENTRAL: [0]}, updates=40)
        central, slippery = learned_weights(find_runs(tmp_path))
        assert (central.label, central.setting, slippery.setting) == ("meta-pwr", CENTRAL, SLIPPERY)
        assert central.phases == SMALL
        np.testing.assert_allclose(slippery.weights[:, 0, 0], [0.2, 0.3], rtol=1e-6)
        np.testing.assert_allclose(slippery.snapshots[:, :, 0, 0], [[0.1, 0.15], [0.2, 0.3]], rtol=1e-3)
        assert slippery.snapshot_frames.tolist() == [frames(20), frames(40)]
        assert frames(1) == EPISODES * SMALL.steps
