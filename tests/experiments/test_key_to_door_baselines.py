"""The other methods as an experiment: every one trains at smoke scale, and the searches are the appendix'."""

from __future__ import annotations

import dataclasses

import pytest

from paircredit.experiments import reproduce
from paircredit.methods import make_method, replace_dotted
from paircredit.runs import find_runs
from paircredit.studies import judge_all, make_experiment
from paircredit.studies.key_to_door.runs import BASELINES, SEARCHED, combinations
from tests.exhibits import FIGURES, figure_of

TRAINED = ("meta-lambda", "synthetic-returns")
"""One that learns by metagradient and one that does not; the tests of the methods train all of them."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("baselines") / "runs"
    whole = make_experiment("key-to-door-baselines", "smoke")
    chosen = tuple(run for run in whole.runs if run.method in TRAINED)
    reproduce(dataclasses.replace(whole, runs=chosen), folder)
    return find_runs(folder)


@pytest.mark.nightly
def test_methods_train(runs):
    assert {run.spec["method"] for run in runs} == set(TRAINED)
    for run in runs:
        rows = run.metrics()
        assert [row["update"] for row in rows] == [0, 1] and all(0 <= row["key_rate"] <= 1 for row in rows)


@pytest.mark.nightly
def test_figures_and_claims_can_read_them(runs):
    verdicts = {verdict.id: verdict for verdict in judge_all(runs)}
    assert verdicts["K2"].status == "not judged" and "no runs of A2C" in verdicts["K2"].measured
    drawn = [name for name in FIGURES if name.startswith("key-to-door") and figure_of(name, runs)]
    assert "key-to-door-central" in drawn


@pytest.mark.nightly
def test_what_is_kept_of_learned_weights(runs):
    """Whatever learns by metagradient keeps its weights of pairs; the rest has none."""
    kept = {run.spec["method"] for run in runs if "weights" in run.arrays()}
    assert kept == {"meta-lambda"}


def test_the_experiment_trains_ten_million_frames():
    full = make_experiment("key-to-door-baselines", "paper")
    assert [run.method for run in full.runs] == list(BASELINES)
    assert all(run.updates * 16 * 120 >= 10e6 and len(run.seeds) >= 5 for run in full.runs)


def test_the_searches_are_those_of_the_appendix():
    full = {run.method: run for run in make_experiment("key-to-door-searches", "paper").runs}
    assert {name: len(run.variants) for name, run in full.items()} == {
        "meta-lambda": 4,
        "rgm": 4,
        "tvt": 8,
        "a2c-rr": 24,
    }
    assert all(len(run.seeds) == 3 and run.updates == round(50e6 / (16 * 120)) for run in full.values())


@pytest.mark.parametrize("name", SEARCHED)
def test_every_combination_is_one_of_the_method(name):
    """The paper's best is among them, and is what the preset `paper` has."""
    method = make_method(name, "paper", "key-to-door")
    tried = [replace_dotted(method, variant.method_settings, name) for variant in combinations(SEARCHED[name])]
    assert method in tried
