"""Each claim about Key-to-Door can hold, fail, tie and be left open: verdicts on made-up runs."""

import math
from pathlib import Path

import numpy as np
import pytest

from paircredit.results.exhibits import Verdict
from paircredit.runs import find_runs
from paircredit.studies import judge_all
from paircredit.studies.key_to_door.runs import CENTRAL, SEARCH, Setting
from paircredit.studies.key_to_door.weights import Phases
from tests.made_up import LIKE_HANDCRAFTED, SMALL, spread, weights, write_central, write_method

SETTINGS = tuple(Setting(mean, 25.0, slip) for mean in (1.0, 5.0, 10.0) for slip in (0.0, 0.1))


def verdict(folder: Path, claim: str) -> Verdict:
    return next(verdict for verdict in judge_all(find_runs(folder)) if verdict.id == claim)


def write_search(
    folder: Path, middles: dict[float, float], rate: float = 2e-4, seeds: int = 5, updates: int = 400
) -> None:
    kinds = {
        (CENTRAL, (("lambda", value), ("learning_rate", rate))): spread(middle, seeds)
        for value, middle in middles.items()
    }
    write_method(folder, "a2c", kinds, role=SEARCH, name=f"search-{rate:g}", updates=updates)


class TestCentralOrder:
    def test_holds(self, tmp_path: Path) -> None:
        write_central(tmp_path)
        found = verdict(tmp_path, "K1")
        assert found.status == "holds"
        assert "5 seeds" in found.measured and "ties" not in found.measured
        assert "H-PWR 0.05 M [0.05, 0.05]" in found.measured  # (60 + 20) × 16 × 38 frames
        assert "A2C with λ = 0.5 (no other was tried at its learning rate)" in found.measured
        assert "Meta-PWTD reaches 9.5 in 5 of 5 seeds within 0.24 M frames" in found.measured

    def test_fails_when_meta_pwr_is_slower_than_a2c(self, tmp_path: Path) -> None:
        write_central(tmp_path, meta_pwr=280.0)
        found = verdict(tmp_path, "K1")
        assert found.status == "fails" and "Meta-PWR is slower than A2C" in found.measured

    def test_a_tie_of_meta_pwr_and_a2c_is_no_success_and_is_called_a_tie(self, tmp_path: Path) -> None:
        write_central(tmp_path, meta_pwr=246.0)
        found = verdict(tmp_path, "K1")
        assert found.status == "fails" and "Meta-PWR ties with A2C" in found.measured

    def test_a_tie_of_h_pwr_does_not_contradict(self, tmp_path: Path) -> None:
        write_central(tmp_path, h_pwr=152.0)
        found = verdict(tmp_path, "K1")
        assert found.status == "holds" and "H-PWR ties with Meta-PWR" in found.measured

    def test_fails_when_another_method_is_before_h_pwr(self, tmp_path: Path) -> None:
        write_central(tmp_path)
        write_method(tmp_path, "rgm", {CENTRAL: spread(30.0)})
        found = verdict(tmp_path, "K1")
        assert found.status == "fails" and "H-PWR is slower than RGM" in found.measured

    def test_fails_when_meta_pwtd_does_not_arrive(self, tmp_path: Path) -> None:
        write_central(tmp_path, meta_pwtd=math.inf)
        found = verdict(tmp_path, "K1")
        assert found.status == "fails" and "reaches 9.5 in 0 of 5 seeds" in found.measured
        assert "Meta-PWTD not reached" in found.measured

    def test_a2c_is_taken_with_its_best_lambda_at_its_learning_rate(self, tmp_path: Path) -> None:
        write_central(tmp_path)
        write_search(tmp_path, {0.0: 300.0, 0.5: 20.0, 0.8: 220.0, 1.0: math.inf})  # of 0.5 the main run is taken
        write_search(tmp_path, {0.9: 20.0}, rate=1e-3)
        found = verdict(tmp_path, "K1")
        assert found.status == "holds" and "A2C with λ = 0.8 (the best of 4 tried)" in found.measured
        write_search(tmp_path / "more", {0.95: 90.0})
        found = verdict(tmp_path, "K1")
        assert found.status == "fails" and "λ = 0.95" in found.measured

    def test_a_lambda_that_was_stopped_early_is_not_called_worse(self, tmp_path: Path) -> None:
        write_central(tmp_path)
        write_search(tmp_path, {0.0: math.inf, 0.8: math.inf}, updates=100)
        found = verdict(tmp_path, "K1")
        assert "λ = 0.5 (the best of 1 tried; 2 more were stopped after 0.06 M frames" in found.measured

    def test_is_left_open_with_few_seeds(self, tmp_path: Path) -> None:
        write_central(tmp_path)
        write_search(tmp_path, {0.8: 220.0}, seeds=3)
        assert verdict(tmp_path, "K1").status == "not judged"
        assert "λ = 0.8" in verdict(tmp_path, "K1").measured

    def test_is_left_open_without_a_method(self, tmp_path: Path) -> None:
        for label in ("h-pwr", "meta-pwr"):
            write_method(tmp_path, label, {CENTRAL: spread(100.0)})
        assert verdict(tmp_path, "K1").status == "not judged"
        assert "A2C, Meta-PWTD" in verdict(tmp_path, "K1").measured

    def test_is_left_open_when_training_was_too_short(self, tmp_path: Path) -> None:
        write_central(tmp_path / "all", h_pwr=math.inf)
        assert "Not even H-PWR" in verdict(tmp_path / "all", "K1").measured
        write_central(tmp_path / "two", meta_pwr=math.inf, a2c=math.inf)
        found = verdict(tmp_path / "two", "K1")
        assert found.status == "not judged" and "train longer" in found.measured


class TestOrderEverywhere:
    def write(self, folder: Path, changes: dict[Setting, tuple[float, float, float]], seeds: int = 5) -> None:
        times = dict.fromkeys(SETTINGS, (60.0, 150.0, 250.0)) | changes
        for place, label in enumerate(("h-pwr", "meta-pwr", "a2c")):
            write_method(folder, label, {setting: spread(middles[place], seeds) for setting, middles in times.items()})

    def test_holds(self, tmp_path: Path) -> None:
        self.write(tmp_path, {})
        found = verdict(tmp_path, "K3")
        assert found.status == "holds" and "holds in 6 of 6 settings, ties in 0, is contradicted in 0" in found.measured

    def test_holds_with_some_ties(self, tmp_path: Path) -> None:
        self.write(tmp_path, {SETTINGS[0]: (60.0, 252.0, 250.0), SETTINGS[1]: (60.0, 150.0, 148.0)})
        found = verdict(tmp_path, "K3")
        assert found.status == "holds" and "holds in 4 of 6 settings, ties in 2" in found.measured
        assert "μ = 1, σ² = 25; μ = 1, σ² = 25, 10 % random actions" in found.measured

    def test_mostly_ties_are_no_success(self, tmp_path: Path) -> None:
        self.write(tmp_path, dict.fromkeys(SETTINGS[:3], (60.0, 252.0, 250.0)))
        assert verdict(tmp_path, "K3").status == "fails"

    @pytest.mark.parametrize("times", [(60.0, 300.0, 250.0), (200.0, 150.0, 250.0)])
    def test_fails_when_one_setting_contradicts(self, tmp_path: Path, times: tuple[float, float, float]) -> None:
        self.write(tmp_path, {SETTINGS[-1]: times})
        found = verdict(tmp_path, "K3")
        assert found.status == "fails" and "contradicted in 1 (μ = 10, σ² = 25, 10 % random actions)" in found.measured

    def test_settings_that_nobody_but_h_pwr_learns_are_not_counted(self, tmp_path: Path) -> None:
        self.write(tmp_path, dict.fromkeys(SETTINGS[:3], (60.0, math.inf, math.inf)))
        found = verdict(tmp_path, "K3")
        assert found.status == "holds" and "3 of 3" in found.measured and "open in 3 more" in found.measured
        self.write(tmp_path / "most", dict.fromkeys(SETTINGS[:4], (60.0, math.inf, math.inf)))
        assert verdict(tmp_path / "most", "K3").status == "not judged"

    def test_is_left_open_with_few_settings_or_seeds(self, tmp_path: Path) -> None:
        write_central(tmp_path / "one")
        assert verdict(tmp_path / "one", "K3").status == "not judged"
        self.write(tmp_path / "seeds", {}, seeds=4)
        assert verdict(tmp_path / "seeds", "K3").status == "not judged"


class TestWeights:
    def write(self, folder: Path, seeds: int = 5, phases: Phases = SMALL, noise: float = 0.0, **changes: float) -> None:
        named = {name.replace("_to_", " → ").replace("_", ", "): value for name, value in changes.items()}
        matrices = weights(LIKE_HANDCRAFTED | named, seeds, phases, spread=0.02)
        generator = np.random.default_rng(0)
        matrices[:, : phases.key, phases.door_start :] += noise * generator.normal(size=(seeds, 1, 1))
        write_method(
            folder, "meta-pwr", {CENTRAL: spread(5.0, seeds)}, updates=40, phases=phases, arrays={"weights": matrices}
        )

    def test_holds(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        found = verdict(tmp_path, "K4")
        assert found.status == "holds"
        assert "door 0.500 [0.500, 0.500] more than apples (0.70 against 0.20)" in found.measured
        assert "lags up to 5 weigh 0.700 [0.700, 0.700] more than lags from 30" in found.measured
        assert "Not judged: apple rows weigh the door 0.30 (handcrafted 0.00), door rows 0.80" in found.measured
        assert "correlation with the handcrafted weights over all pairs 0." in found.measured

    @pytest.mark.parametrize("changes", [{"key_to_door": 0.1}, {"apple_to_apple_far": 0.9}])
    def test_fails(self, tmp_path: Path, changes: dict[str, float]) -> None:
        self.write(tmp_path, **changes)
        assert verdict(tmp_path, "K4").status == "fails"

    def test_what_seeds_do_not_agree_on_is_not_shown(self, tmp_path: Path) -> None:
        self.write(tmp_path, noise=0.5, key_to_door=0.3)
        found = verdict(tmp_path, "K4")
        assert found.status == "fails" and "[-" in found.measured

    def test_is_left_open(self, tmp_path: Path) -> None:
        write_method(tmp_path / "none", "meta-pwr", {CENTRAL: spread(5.0)}, updates=40)
        assert "no runs with learned weights" in verdict(tmp_path / "none", "K4").measured
        self.write(tmp_path / "seeds", seeds=4)
        assert "fewer than 5 seeds" in verdict(tmp_path / "seeds", "K4").measured
        self.write(tmp_path / "short", phases=Phases(6, 8, 6))
        assert "8 steps" in verdict(tmp_path / "short", "K4").measured
        for name in ("none", "seeds", "short"):
            assert verdict(tmp_path / name, "K4").status == "not judged"


class TestOtherMethods:
    """K2; door rewards jump from 0 to 10, so that who jumps earlier has more of it at a given time."""

    def write(self, folder: Path, seeds: int = 5, **middles: float) -> None:
        write_central(folder, **{"a2c": 360.0, "h_pwr": 60.0, "meta_pwr": 150.0, "meta_pwtd": 370.0})
        for label, middle in ({"rgm": 300.0, "tvt": math.inf, "a2c_rr": math.inf} | middles).items():
            write_method(folder, label.replace("_", "-"), {CENTRAL: spread(middle, seeds)}, less_apples=label == "rgm")

    def test_holds(self, tmp_path: Path) -> None:
        self.write(tmp_path)
        found = verdict(tmp_path, "K2")
        assert found.status == "holds" and "RGM is 3 of 7" in found.measured
        assert "TVT is slower than A2C" in found.measured

    def test_fails_when_tvt_learns_fast(self, tmp_path: Path) -> None:
        self.write(tmp_path, tvt=100.0)
        found = verdict(tmp_path, "K2")
        assert found.status == "fails" and "TVT is faster than A2C" in found.measured

    def test_fails_when_rgm_is_behind_another(self, tmp_path: Path) -> None:
        self.write(tmp_path, rgm=math.inf)
        found = verdict(tmp_path, "K2")
        assert found.status == "fails" and "not third" in found.measured

    def test_fails_when_rgm_is_before_meta_pwr(self, tmp_path: Path) -> None:
        write_central(tmp_path, a2c=380.0, h_pwr=60.0, meta_pwr=399.0, meta_pwtd=390.0)
        for label, middle in {"rgm": 300.0, "tvt": math.inf, "a2c-rr": math.inf}.items():
            write_method(tmp_path, label, {CENTRAL: spread(middle)}, less_apples=label == "rgm")
        found = verdict(tmp_path, "K2")
        assert found.status == "fails" and "RGM is 2 of 7" in found.measured

    def test_fails_when_rgm_is_good_overall(self, tmp_path: Path) -> None:
        write_central(tmp_path, a2c=380.0)
        for label, middle in {"rgm": 300.0, "tvt": math.inf, "a2c-rr": math.inf}.items():
            write_method(tmp_path, label, {CENTRAL: spread(middle)})
        assert verdict(tmp_path, "K2").status == "fails"

    def test_is_left_open(self, tmp_path: Path) -> None:
        write_central(tmp_path)
        assert "no runs of RGM, TVT, A2C-RR" in verdict(tmp_path, "K2").measured
        self_made = tmp_path / "few"
        self.write(self_made, seeds=3)
        found = verdict(self_made, "K2")
        assert found.status == "not judged" and "RGM, TVT, A2C-RR with fewer than 5 seeds" in found.measured


def test_nothing_is_judged_without_runs() -> None:
    assert {found.status for found in judge_all([]) if found.id.startswith("K")} == {"not judged"}
