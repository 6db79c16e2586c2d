"""Key-to-Door at smoke scale: every method trains, in one program per method, and everything downstream can read it."""

from __future__ import annotations

import numpy as np
import pytest

from paircredit.experiments import reproduce
from paircredit.runs import find_runs
from paircredit.studies import judge_all, make_experiment
from paircredit.studies.key_to_door.runs import LAMBDAS, LEARNING_RATES, OWN
from paircredit.training.loop import chunk_program
from tests.exhibits import FIGURES, figure_of

TRAINED = ("meta-pwr",)
"""With weights; the tests of the methods train all of them."""


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The runs of some methods, and how many programs they needed."""
    folder, before = tmp_path_factory.mktemp("key-to-door") / "runs", chunk_program()._cache_size()
    reproduce(make_experiment("key-to-door", "smoke"), folder, only=[f"key-to-door-{method}" for method in TRAINED])
    return find_runs(folder), chunk_program()._cache_size() - before


@pytest.mark.nightly
def test_one_program_per_method_trains_all_settings(smoke):
    runs, programs = smoke
    assert programs == len(TRAINED) == len(runs)


@pytest.mark.nightly
def test_rows_say_which_setting_they_are_of(smoke):
    for run in smoke[0]:
        rows = run.metrics()
        assert {(row["mean"], row["variance"], row["slip"]) for row in rows} == {(5.0, 25.0, 0.0), (5.0, 25.0, 0.1)}
        assert len({row["member"] for row in rows}) == 4
        for row in rows:
            assert row["episode_return"] == pytest.approx(row["apple_reward"] + row["door_reward"], rel=1e-5)
            assert 0 <= row["key_rate"] <= 1


@pytest.mark.nightly
def test_learned_weights_are_kept_as_tables_over_time(smoke):
    for run in smoke[0]:
        arrays = run.arrays()
        if run.spec["method"].startswith("meta"):
            weights = np.triu(arrays["weights"])
            assert weights.shape == (4, 20, 20) and arrays["snapshots"].shape[1:] == (4, 20, 20)
            assert ((weights[np.broadcast_to(np.triu(np.ones((20, 20), bool)), weights.shape)] - 0.5) ** 2 < 0.01).all()
        else:
            assert "weights" not in arrays


@pytest.mark.nightly
def test_figures_and_claims_can_read_them(smoke):
    runs = smoke[0]
    verdicts = {verdict.id: verdict for verdict in judge_all(runs)}
    assert {verdicts[claim].status for claim in ("K1", "K3", "K4")} <= {"not judged", "fails", "holds"}
    drawn = [name for name in FIGURES if name.startswith("key-to-door") and figure_of(name, runs)]
    assert {"key-to-door-central", "key-to-door-door", "key-to-door-weights"} <= set(drawn)


def test_the_order_is_looked_at_in_all_settings():
    whole = make_experiment("key-to-door", "paper")
    runs = make_experiment("key-to-door-settings", "paper").runs
    members = [(run.method, *variant.labels.values()) for run in runs for variant in run.variants]
    wanted = {(run.method, *variant.labels.values()) for run in whole.runs for variant in run.variants}
    assert set(members) == {member for member in wanted if member[0] != "meta-pwtd"}
    assert len(members) == len(set(members)) == 3 * 18 and len({run.name for run in runs}) == len(runs) == 6
    short = make_experiment("key-to-door-settings", "short").runs
    assert [len(run.variants) * len(run.seeds) for run in short] == [45] * 3


def test_the_specs_are_those_of_the_paper():
    full = make_experiment("key-to-door", "paper")
    assert [run.method for run in full.runs] == list(OWN)
    for run in full.runs:
        settings = {(v.labels["mean"], v.labels["variance"], v.labels["slip"]) for v in run.variants}
        assert len(settings) == len(run.variants) == 18 and len(run.seeds) == 10
        assert run.updates == round(50e6 / (16 * 120))
    (search,) = make_experiment("key-to-door-search", "paper").runs
    tried = {(v.labels["lambda"], v.labels["learning_rate"]) for v in search.variants}
    assert tried == {(a, b) for a in LAMBDAS for b in LEARNING_RATES} and len(tried) == 32 and len(search.seeds) == 3
