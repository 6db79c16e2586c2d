"""A whole (small) reproduction: what is compiled, what is written, what it says."""

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paircredit.envs import make_environment
from paircredit.errors import PaircreditError
from paircredit.experiments import TrainingSpec, reproduce
from paircredit.experiments.learners import load_weights
from paircredit.experiments.reproduce import read_experiment
from paircredit.experiments.spec import SCALES
from paircredit.experiments.training_run import Silent, masked_optimal_values, run_training
from paircredit.methods import make_method
from paircredit.runs import find_runs, read_run
from paircredit.settings import replace_dotted
from paircredit.studies import judge_all, make_experiment
from paircredit.studies.dag.measures import (
    episodes,
    evaluation_times,
    evaluations,
    finished_run,
    mean_weight,
    pair_sets,
)
from tests.sentences import refused

making = importlib.import_module("paircredit.experiments.reproduce")  # the package has a function of this name


def test_one_program_per_method_and_protocol_and_not_one_per_run(reproduction) -> None:
    """Six training runs: handcrafted and learned tables share a program."""
    assert reproduction.new_programs == (5, 5)


def test_the_same_experiment_again_compiles_nothing(reproduction, tmp_path: Path) -> None:
    for name in ("once", "again"):  # once, because programs may have been forgotten since the fixture made them
        before = reproduction.programs()
        reproduce(make_experiment("dag", "smoke"), tmp_path / name)
    assert reproduction.programs() == before


def test_the_same_experiment_again_gives_the_same_numbers(reproduction, tmp_path: Path) -> None:
    name = "dag4-reset-meta-pwr"
    spec = next(run for run in make_experiment("dag", "smoke").runs if run.name == name)
    run_training(spec, tmp_path, Silent())
    assert read_run(tmp_path / name).metrics() == read_run(reproduction.folder / "dag" / name).metrics()


def test_only_some_runs(tmp_path: Path, monkeypatch) -> None:
    """Patterns choose, the order stays, and two processes that begin together share the folder."""
    made: list[str] = []
    monkeypatch.setattr(making, "run_one", lambda spec, folder, progress: made.append(spec.name))
    experiment = make_experiment("bsuite", "short")
    reproduce(experiment, tmp_path / "some", only=["umbrella*a2c", "catch-meta-pwr"])
    assert made == ["catch-meta-pwr", "umbrella_length-a2c", "umbrella_distract-a2c"]
    faster = making.make_folder

    def slower(path: Path, files: Any) -> None:
        faster(path, files)
        faster(path, files)

    monkeypatch.setattr(making, "make_folder", slower)
    reproduce(experiment, tmp_path / "together")
    assert len(made) == 3 + len(experiment.runs) and read_experiment(tmp_path / "together") == experiment
    with refused("no run of bsuite at scale short called 'nothing*'"):
        reproduce(experiment, tmp_path / "none", only=["catch-a2c", "nothing*"])
    assert not (tmp_path / "none").exists()


def test_weights_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    experiment = make_experiment("dag", "smoke")
    with refused("dag4-train-meta-pwr uses the weights of dag4-reset-meta-pwr; make that run first, or name both."):
        reproduce(experiment, tmp_path / "dag", only=["dag4-train-meta-pwr"])
    assert not (tmp_path / "dag").exists()


def test_progress_was_told_everything(reproduction) -> None:
    progress = reproduction.progress
    assert progress.begun == progress.advanced
    assert len(progress.ended) == len(make_experiment("dag", "smoke").runs)


def test_rows_are_complete(reproduction) -> None:
    runs = find_runs(reproduction.folder)
    curve = next(curve for curve in evaluations(runs) if (curve.place, curve.label) == (4, "regular"))
    assert curve.values["expected_return"].shape == (2, 250)
    np.testing.assert_array_equal(np.diff(episodes(curve)), 8)
    assert np.abs(curve.values["expected_return"] - curve.values["episode_return"]).mean() < 1.0
    rows = curve.run.metrics()
    assert {row["frames"] / row["episodes"] for row in rows if row["episodes"]} == {4.0}


def test_learned_weights_moved_the_right_way_even_at_this_size(reproduction) -> None:
    weights = finished_run(find_runs(reproduction.folder), "reset", 4, "meta-pwr").arrays()["weights"]
    pairs = pair_sets(4)
    assert (mean_weight(weights, pairs.credited) > 0.55).all()
    assert (mean_weight(weights, pairs.uncredited) < 0.45).all()
    untouched = weights[:, pairs.first_phase]
    assert np.abs(untouched - 0.5).max() < 0.0026, "columns without a reward get no signal"


def test_weights_are_kept_over_training(reproduction) -> None:
    arrays = finished_run(find_runs(reproduction.folder), "reset", 4, "meta-pwr").arrays()
    assert arrays["snapshot_updates"][-1] == 200
    np.testing.assert_allclose(arrays["snapshots"][-1], arrays["weights"], atol=1e-3)


def test_snapshots_follow_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paircredit.experiments.training_run.LARGEST_CHUNK", 10)
    spec = TrainingSpec("run", "dag", "meta-pwr", 60, (0,), {"depth": 4}, protocol="reset", inner_updates=2)
    run_training(spec, tmp_path, Silent())
    arrays, pairs = read_run(tmp_path / "run").arrays(), pair_sets(4)
    np.testing.assert_array_equal(arrays["snapshot_updates"], [10, 20, 30, 40, 50, 60])
    moved = np.abs(arrays["snapshots"][:, 0].astype(float) - 0.5)[:, pairs.second_phase].mean(axis=1)
    assert moved[-1] > 2 * moved[0]
    np.testing.assert_allclose(arrays["snapshots"][-1], arrays["weights"], atol=1e-3)


def test_claims_on_a_smoke_run_fail_none(reproduction) -> None:
    verdicts = {verdict.id: verdict.status for verdict in judge_all(find_runs(reproduction.folder))}
    assert verdicts["U1"] == verdicts["D1"] == verdicts["D3"] == "holds"
    assert verdicts["D2"] == verdicts["D4"] == verdicts["D5"] == "not judged"


def test_evaluation_times_come_from_the_exact_return(reproduction) -> None:
    curve = next(c for c in evaluations(find_runs(reproduction.folder)) if (c.place, c.label) == (4, "meta-pwtd"))
    by_hand = [
        next((e for e, r in zip(episodes(curve), member, strict=True) if r >= 1.9), np.inf)
        for member in curve.values["expected_return"]
    ]
    np.testing.assert_array_equal(evaluation_times(curve), by_hand)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["dag", "dag-switches", "umbrella"])
def test_specs_are_consistent(name: str, scale: str) -> None:
    experiment = make_experiment(name, scale)
    names = [run.name for run in experiment.runs]
    assert len(set(names)) == len(names)
    for index, run in enumerate(experiment.runs):
        for field in ("weights_from", "pwr_weights_from", "pwtd_weights_from"):
            source = getattr(run, field, None)
            assert source is None or source in names[:index], "weights must be learned before they are used"


def test_an_existing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PaircreditError, match="exists already"):
        reproduce(make_experiment("umbrella", "smoke"), tmp_path)


def test_masked_values_are_zero_up_to_the_mask_and_optimal_after_it() -> None:
    env = make_environment("dag", depth=8)
    whole, half, none = (np.asarray(masked_optimal_values(env, mask)) for mask in (0, 4, 8))
    assert whole[0] == 4.0
    assert (half[:15] == 0).all()
    np.testing.assert_array_equal(half[15:], whole[15:])
    assert (none == 0).all()


def test_masked_value_members_train_in_one_program_and_leave_the_rest_alone(tmp_path: Path) -> None:
    spec = TrainingSpec(
        "masks", "dag", "meta-pwtd", 60, (0, 1), {"depth": 4}, protocol="reset", value_masks=(0, 2, 4),
        tags={"role": "masked-values", "depth": 4},
    )  # fmt: skip
    run_training(spec, tmp_path, Silent())
    arrays, pairs = read_run(tmp_path / "masks").arrays(), pair_sets(4)
    moved = np.abs(arrays["weights"] - 0.5)
    for mask in (0, 2):
        of_mask = moved[arrays["label_mask"] == mask]
        assert of_mask[:, pairs.second_phase].max() < 0.0026, "exact values leave no TD error after the middle layer"
        assert of_mask[:, pairs.first_phase].max() > 0.05
    assert moved[arrays["label_mask"] == 4][:, pairs.second_phase].max() > 0.05


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 3)), "shape"),
        (np.full((10, 10), np.nan), "finite"),
        (np.zeros((10, 10), dtype=int), "floating-point"),
        (np.full((10, 10), 1e300), "float32"),
        (np.zeros((0, 10, 10)), "shape"),
    ],
)
def test_weights_of_the_wrong_kind_are_refused(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "weights.npy", array)
    with pytest.raises(PaircreditError, match=message):
        load_weights(tmp_path / "weights.npy", 10)


def test_a_damaged_file_of_weights_is_refused_whatever_byte_is_wrong(tmp_path: Path) -> None:
    file, table = tmp_path / "weights.npz", np.random.default_rng(0).uniform(size=(10, 10)).astype(np.float32)
    np.savez_compressed(file, weights=table)
    whole = file.read_bytes()
    for index in range(len(whole)):
        file.write_bytes(whole[:index] + bytes([whole[index] ^ 0xFF]) + whole[index + 1 :])
        try:
            found = load_weights(file, 10)
        except PaircreditError as error:
            assert "\n" not in str(error)
        else:  # a byte that nothing depends on, such as the time of writing
            np.testing.assert_array_equal(found, table[None])


def test_a_file_of_weights_that_claims_to_be_enormous_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 10, 10), }"
    (tmp_path / "weights.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header.ljust(117) + b"\n")
    with refused("weights.npy is not a readable npy or npz file"):
        load_weights(tmp_path / "weights.npy", 10)


def test_what_a_file_of_weights_is_says_its_content(tmp_path: Path) -> None:
    table = np.full((10, 10), 0.5, dtype=np.float32)
    np.save(tmp_path / "a.npy", table)
    np.savez(tmp_path / "b.npz", weights=table)
    (tmp_path / "a.npy").rename(tmp_path / "c.npz")
    (tmp_path / "b.npz").rename(tmp_path / "d.npy")
    for name in ("c.npz", "d.npy"):
        np.testing.assert_array_equal(load_weights(tmp_path / name, 10), table[None])


def test_weights_are_found_in_files_and_run_folders(reproduction, tmp_path: Path) -> None:
    table = np.random.default_rng(0).uniform(size=(10, 10)).astype(np.float32)
    np.save(tmp_path / "weights.npy", table)
    np.savez(tmp_path / "weights.npz", weights=table)
    for name in ("weights.npy", "weights.npz"):
        np.testing.assert_array_equal(load_weights(tmp_path / name, 10), table[None])
    assert load_weights(reproduction.folder / "dag" / "dag4-reset-meta-pwr", 10).shape == (2, 10, 10)
    with pytest.raises(PaircreditError, match="no array called 'weights'"):
        np.savez(tmp_path / "other.npz", other=table)
        load_weights(tmp_path / "other.npz", 10)
    with pytest.raises(PaircreditError, match="cannot be read"):
        load_weights(tmp_path / "nowhere.npz", 10)


def test_dotted_settings_reach_the_field_and_unknown_ones_are_refused() -> None:
    method = replace_dotted(make_method("meta-pwr"), {"outer.learning_rate": 0.5, "inner.episodes": 2}, "meta-pwr")
    assert (method.outer.learning_rate, method.inner.episodes) == (0.5, 2)
    assert dataclasses.replace(method, outer=make_method("meta-pwr").outer).outer.learning_rate == 0.01
    with pytest.raises(PaircreditError, match="learning_rate"):
        replace_dotted(method, {"inner.learnin_rate": 1.0}, "meta-pwr")
