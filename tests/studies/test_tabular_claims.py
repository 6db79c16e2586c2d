"""Each claim can hold, fail and be left open: verdicts on made-up runs."""

from pathlib import Path

import numpy as np
import pytest

from paircredit.envs.dag import layers, num_states
from paircredit.errors import PaircreditError
from paircredit.runs import find_runs
from paircredit.studies import judge_all
from paircredit.studies.dag.measures import pair_sets
from tests.made_up import write_run

DEPTHS = (4, 8)
TABULAR = ("U1", "D1", "D2", "D3", "D4", "D5")
"""Claims about Key-to-Door have a file of their own."""


def write_reset(folder: Path, depth: int, label: str, credited: float, uncredited: float, first: float) -> None:
    pairs = pair_sets(depth)
    weights = np.full((5, num_states(depth), num_states(depth)), 0.5)
    weights[:, pairs.credited], weights[:, pairs.uncredited] = credited, uncredited
    weights[:, pairs.first_phase] = first
    tags = {"role": "reset", "depth": depth, "label": label}
    write_run(folder / f"dag{depth}-reset-{label}", {"tags": tags}, arrays={"weights": weights})


def write_evaluation(folder: Path, depth: int, label: str, episodes: float, best_actions: bool = True) -> None:
    """Five members that jump to the best return around the given number of episodes."""
    spec = {"updates": 1250, "env_settings": {"depth": depth}}
    spec["tags"] = {"role": "evaluation", "depth": depth, "label": label}
    rows = [
        {"member": member, "seed": member, "update": update, "episodes": 8 * update, "frames": 8 * update * depth}
        | {"expected_return": depth / 2 if 8 * update >= episodes + 80 * (member - 2) else 0.0, "episode_return": 0.0}
        for member in range(5)
        for update in range(0, 1250, 5)
    ]
    logits = np.zeros((5, num_states(depth), 2))
    logits[:, :, 1 if best_actions else 0] = 5.0
    logits[:, layers(depth) > depth // 2, :] = 0.0
    write_run(folder / f"dag{depth}-train-{label}", spec, [rows], {"policy_logits": logits})


def write_masks(folder: Path, moved_after: float = 0.0) -> None:
    pairs = pair_sets(8)
    weights = np.full((6, 46, 46), 0.5)
    weights[:4, pairs.second_phase] += moved_after
    weights[4:, pairs.credited], weights[4:, pairs.uncredited] = 0.9, 0.2
    arrays = {"weights": weights, "label_mask": np.array([0, 0, 4, 4, 8, 8])}
    write_run(folder / "dag8-masked-values", {"tags": {"role": "masked-values", "depth": 8}}, arrays=arrays)


def write_umbrella(folder: Path, pwr_variance: float = 0.0, bias: float = 0.0, ratio: float = 1.0) -> None:
    common = {"length": 5, "variance": 1.0, "action": 1, "episodes": 1000, "exact_mean": 1.0, "standard_error": 0.01}
    noisy = {"estimator": "Monte Carlo", "mean": 1.0 + bias}
    noisy |= {"measured_variance": 4.0 * ratio, "predicted_variance": 4.0}
    quiet = {"estimator": "PWR", "mean": 1.0, "measured_variance": pwr_variance, "predicted_variance": 0.0}
    write_run(folder / "umbrella", {}, [[common | noisy, common | quiet]], kind="umbrella-variance")


def write_good(folder: Path) -> None:
    write_umbrella(folder)
    write_masks(folder)
    for depth, regular in zip(DEPTHS, (3000, 4500), strict=True):
        write_reset(folder, depth, "meta-pwr", 0.8, 0.2, 0.5)
        write_reset(folder, depth, "meta-pwtd", 0.6, 0.2, 0.9)
        write_evaluation(folder, depth, "regular", regular)
        write_evaluation(folder, depth, "h-pwr", 2800)
        write_evaluation(folder, depth, "meta-pwr", 2500)


def verdicts(folder: Path) -> dict[str, str]:
    return {verdict.id: verdict.status for verdict in judge_all(find_runs(folder))}


def test_all_claims_hold_on_runs_made_to_their_measure(tmp_path: Path) -> None:
    write_good(tmp_path)
    found = verdicts(tmp_path)
    assert {name: found[name] for name in TABULAR} == dict.fromkeys(TABULAR, "holds")
    assert found["D6"] == found["D7"] == "not judged"  # by a search alone


@pytest.mark.parametrize("change", [{"pwr_variance": 1e-3}, {"bias": 0.05}, {"ratio": 1.06}, {"ratio": 0.9}])
def test_u1_fails(tmp_path: Path, change: dict) -> None:
    write_umbrella(tmp_path, **change)
    assert verdicts(tmp_path)["U1"] == "fails"


@pytest.mark.parametrize(("credited", "uncredited"), [(0.45, 0.2), (0.8, 0.55)])
def test_d1_fails_when_weights_went_the_wrong_way(tmp_path: Path, credited: float, uncredited: float) -> None:
    write_reset(tmp_path, 8, "meta-pwr", credited, uncredited, 0.5)
    assert verdicts(tmp_path)["D1"] == "fails"


@pytest.mark.parametrize(
    "times",
    [
        {4: (3000, 2800, 3400), 8: (4500, 2800, 2500)},  # learned slower than handcrafted
        {4: (2000, 2800, 1900), 8: (4500, 2800, 2500)},  # handcrafted slower than regular
        {4: (4500, 2800, 2500), 8: (3000, 2800, 2500)},  # the gap shrinks
        {4: (3000, 2990, 2500), 8: (3010, 3000, 2500)},  # nothing between handcrafted and regular at the largest depth
    ],
)
def test_d2_fails(tmp_path: Path, times: dict) -> None:
    for depth, by_label in times.items():
        for label, episodes in zip(("regular", "h-pwr", "meta-pwr"), by_label, strict=True):
            write_evaluation(tmp_path, depth, label, episodes)
    assert verdicts(tmp_path)["D2"] == "fails"


def test_d2_is_left_open_when_somebody_never_learned(tmp_path: Path) -> None:
    for depth in DEPTHS:
        for label in ("regular", "h-pwr", "meta-pwr"):
            write_evaluation(tmp_path, depth, label, 20_000 if label == "regular" else 2_000)
    assert verdicts(tmp_path)["D2"] == "not judged"


def test_d3_fails_when_the_first_phase_got_no_weight(tmp_path: Path) -> None:
    write_reset(tmp_path, 8, "meta-pwtd", 0.8, 0.2, 0.4)
    assert verdicts(tmp_path)["D3"] == "fails"


def test_d4_fails_when_weights_moved_after_the_middle(tmp_path: Path) -> None:
    write_masks(tmp_path, moved_after=0.1)
    assert verdicts(tmp_path)["D4"] == "fails"


def test_d5_fails_when_the_likeliest_actions_are_not_the_best(tmp_path: Path) -> None:
    write_evaluation(tmp_path, 4, "regular", 1000, best_actions=False)
    assert verdicts(tmp_path)["D5"] == "fails"


def test_nothing_is_judged_without_runs_for_it(tmp_path: Path) -> None:
    write_run(tmp_path / "other", {"tags": {"role": "something"}})
    assert set(verdicts(tmp_path).values()) == {"not judged"}


def test_two_copies_of_a_run_are_refused(tmp_path: Path) -> None:
    for copy in ("a", "b"):
        write_reset(tmp_path / copy, 4, "meta-pwr", 0.8, 0.2, 0.5)
    with pytest.raises(PaircreditError, match="same part of the experiment"):
        verdicts(tmp_path)
