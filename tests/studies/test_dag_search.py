"""The search in the DAG: what is shown of it, and the two claims that are judged by it."""

from __future__ import annotations

import numpy as np
import pytest

from paircredit.results.curves import Curve
from paircredit.studies import make_experiment
from paircredit.studies.dag import search
from paircredit.studies.dag.measures import evaluation_times
from paircredit.studies.dag.runs import SEARCH

EVERY = 8
POINTS = 100


def curve(label: str, times: list[float], lambda_: float = 1.0, rate: float = 0.01, start: float = 0.0) -> Curve:
    """Policies at depth 4 that arrive when they are told to."""
    edges = EVERY * np.arange(POINTS + 1)
    values = np.where(edges[None, :-1] >= np.asarray(times)[:, None], 2.0, 0.0)
    at = {"episodes": edges, "frames": 4 * edges}
    return Curve(label, 4, (lambda_, rate, start), np.arange(len(times)), at, {"expected_return": values})


@pytest.fixture
def found(monkeypatch):
    """Puts curves where those of runs would be."""

    def put(*curves: Curve) -> list:
        monkeypatch.setattr(search, "searched", lambda runs: list(curves))
        return []

    return put


SLOW, QUICK, NEVER = [400.0, 408, 416, 424, 432], [200.0, 208, 216, 224, 232], [np.inf] * 5


def judge(claim: str, runs: list) -> tuple[str, str]:
    return next(one for one in search.CLAIMS if one.id == claim).judge(runs)


def test_the_times_are_those_that_were_told():
    assert evaluation_times(curve("regular", [200.0, np.inf])).tolist() == [200, np.inf]


def test_a_smaller_lambda_that_is_faster_contradicts_the_best_of_1(found):
    learned = curve("meta-pwr", SLOW)
    runs = found(curve("regular", SLOW), curve("regular", QUICK, 0.8), learned)
    status, text = judge("D6", runs)
    assert status == "fails" and "faster than 1 in 1 of 1 cases" in text and "216 with λ = 0.8" in text
    runs = found(curve("regular", QUICK), curve("regular", SLOW, 0.8), learned)
    assert judge("D6", runs)[0] == "holds"


def test_a_lambda_with_which_not_all_arrive_is_no_best_one(found):
    unreliable = curve("regular", [*QUICK[:4], np.inf], 0.5)
    runs = found(curve("regular", SLOW), unreliable, curve("meta-pwr", QUICK))
    assert judge("D6", runs)[0] == "holds"
    status, text = judge("D7", runs)
    assert status == "holds" and "clearly faster in 1 of 1 cases and clearly slower in 0" in text


def test_learned_weights_are_held_against_the_best_lambda(found):
    runs = found(curve("regular", SLOW), curve("regular", QUICK, 0.8), curve("meta-pwr", SLOW))
    status, text = judge("D7", runs)
    assert status == "fails" and "clearly slower in 1" in text and "Meta-PWR 416, λ = 0.8 216" in text


@pytest.mark.parametrize("claim", ["D6", "D7"])
def test_nothing_is_judged_where_nobody_arrives_or_seeds_are_few(found, claim):
    assert judge(claim, found())[0] == "not judged"
    assert judge(claim, found(curve("regular", NEVER), curve("meta-pwr", NEVER)))[0] == "not judged"
    assert judge(claim, found(curve("regular", QUICK[:4]), curve("meta-pwr", QUICK[:4])))[0] == "not judged"


def test_the_figure_shows_what_more_than_half_reach_and_how_many_did(found):
    some = curve("regular", [*QUICK[:3], np.inf, np.inf], 0.5)
    runs = found(curve("regular", SLOW), some, curve("regular", NEVER, 0.0), curve("meta-pwr", QUICK))
    (axes,) = next(one for one in search.FIGURES).make(runs).axes
    dots = {float(line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "o"}
    assert dots == {416.0, 216.0} and [text.get_text() for text in axes.texts] == ["3/5"]
    assert search.FIGURES[0].make(found(curve("regular", NEVER))) is None


def test_every_policy_is_kept(found):
    kept = search.digest(found(curve("regular", [200.0, np.inf], 0.5)))["dag-search-members.csv"]
    assert kept.rows == ((4, "regular", 0.5, 0.01, 0.0, 0, 200), (4, "regular", 0.5, 0.01, 0.0, 1, ""))


def test_it_is_searched_as_the_paper_did_and_with_more():
    runs = [run for run in make_experiment("dag-search", "paper").runs if run.tags["role"] == SEARCH]
    assert {run.env_settings["depth"] for run in runs} == {4, 8, 16} and all(len(run.seeds) == 20 for run in runs)
    for run in runs:
        tried = {(v.labels["rate"], v.labels["start"]) for v in run.variants}
        assert tried == {(rate, start) for rate in (0.1, 0.01, 0.001) for start in (0.0, 1.0)}
        assert len(run.variants) == (42 if run.method == "a2c" else 6)
