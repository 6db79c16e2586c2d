"""B1 on made-up runs, and the numbers after it: the total regret is that of all episodes, intervals are by setting."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from paircredit.envs.bsuite.sweep import SWEEP
from paircredit.runs import Run, find_runs
from paircredit.studies.bsuite import measures
from paircredit.studies.bsuite.measures import (
    CLAIMS,
    PAPER,
    all_regrets,
    groups,
    regret_difference,
    setting_of,
    settings,
    total_regret,
    totals,
)
from paircredit.studies.bsuite.measures import episodes as episodes_of
from tests.exhibits import table_of
from tests.made_up import write_episodes, write_regrets
from tests.sentences import refused

FEW = {"umbrella_length": range(3), "umbrella_distract": range(3)}
OTHERS = ("a2c", "a2c-rr", "rgm", "meta-pwtd", "meta-pwr")


@pytest.fixture(autouse=True)
def short_trainings(monkeypatch):
    """The paper's length is 100 episodes, so that runs of it can be made up in no time."""
    monkeypatch.setattr(measures, "PAPER_EPISODES", dict.fromkeys(PAPER, 100))


def write_paper(folder: Path, domain: str, label: str, factor: float = 1.0) -> None:
    """A run with a number of the paper, multiplied."""
    write_regrets(folder, label, domain, factor * PAPER[domain][label], numbers=FEW.get(domain, range(5)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Run]:
    """The paper's numbers."""
    folder = tmp_path_factory.mktemp("paper")
    for domain in PAPER:
        for label in OTHERS:
            write_paper(folder, domain, label)
    return find_runs(folder)


@pytest.fixture
def changed(runs, tmp_path):
    """The same, some of the numbers multiplied."""

    def change(**factors: float) -> list[Run]:
        for name, factor in factors.items():
            write_paper(tmp_path, *name.split("__"), factor)
        others = find_runs(tmp_path)
        return [run for run in runs if run.name not in {other.name for other in others}] + others

    return change


def verdict(runs: list[Run]) -> tuple[str, str]:
    (claim,) = CLAIMS
    return claim.judge(runs)


def test_b1_holds_with_the_papers_numbers(runs):
    status, text = verdict(runs)
    assert status == "holds" and "umbrella length: A2C 38,050 [" in text
    assert "in 6 of 6 domains" in text and "37,973" in text and "(a tie" in text


def test_b1_fails_where_another_method_is_lower(changed):
    status, text = verdict(changed(catch_scale__a2c=0.7))
    assert status == "fails" and text.count("(the best of the others is lower)") == 1
    assert "5 of 6 domains, −30 % in catch scale" in text


@pytest.mark.parametrize("method, status", [("a2c", "fails"), ("meta-pwr", "holds")])
def test_other_entropy_costs_count_for_both_sides(runs, tmp_path, method, status):
    tags = {"role": "bsuite", "label": f"{method}, entropy 0.025", "domain": "catch_scale"}
    low = 0.7 * PAPER["catch_scale"]["meta-pwtd"]
    write_regrets(tmp_path, method, "catch_scale", low, numbers=range(5), name="changed", tags=tags)
    found, text = verdict([*runs, *find_runs(tmp_path)])
    assert found == status and f"{'A2C' if method == 'a2c' else 'Meta-PWR'}, entropy 0.025 33,739 [" in text


def test_catch_does_not_count(changed):
    assert verdict(changed(catch__a2c=0.5))[0] == "holds"


def test_b1_fails_without_a_gain_in_the_chain(runs, tmp_path):
    write_regrets(tmp_path, "meta-pwr", "discounting_chain", 3554.0, numbers=range(5))
    write_regrets(tmp_path, "meta-pwtd", "discounting_chain", 3554.0, numbers=range(5))
    others = [run for run in runs if run.name not in {f"discounting_chain-{name}" for name in OTHERS[2:]}]
    assert verdict([*others, *find_runs(tmp_path)])[0] == "fails"


def test_b1_fails_without_a_gain_in_the_chain_whatever_is_missing(changed):
    chain = {"discounting_chain__meta-pwr": 3554 / 161, "discounting_chain__meta-pwtd": 3554 / 1040}
    without = [run for run in changed(**chain) if not run.name.startswith("cartpole")]
    assert verdict(without)[0] == "fails"


def test_short_runs_of_others_do_not_take_a_domain_away(runs, tmp_path):
    for label in ("meta-lambda", "rgm"):
        write_regrets(tmp_path, label, "catch_noise", 1.0, numbers=range(5), episodes=50)
    others = [run for run in runs if run.name != "catch_noise-rgm"]
    status, text = verdict([*others, *find_runs(tmp_path)])
    assert status == "holds" and "catch noise: A2C 42,221" in text and "RGM 1 " not in text


def test_b1_is_not_judged_without_cartpole(runs):
    status, text = verdict([run for run in runs if not run.name.startswith("cartpole")])
    assert status == "not judged" and text.endswith("not judged: cartpole.")


def test_b1_is_not_judged_by_other_lengths_or_methods(runs, tmp_path):
    for label in OTHERS:
        write_regrets(tmp_path / "short", label, "catch_noise", 100.0, numbers=range(3), episodes=50)
    assert "these runs 50" in verdict(find_runs(tmp_path / "short"))[1]
    status, text = verdict([run for run in runs if run.spec["method"] == "a2c"])
    assert status == "not judged" and "A2C, Meta-PWTD, Meta-PWR" in text


def test_total_regret_is_the_sum_over_all_episodes_whatever_the_rows(tmp_path):
    regret = np.random.default_rng(0).integers(0, 2, (4, 53)) * 2.0
    episodes = {"regret": regret, "episode_return": 1 - regret, "episode_length": np.full_like(regret, 9)}
    write_episodes(tmp_path, "a2c", "catch_noise", [0, 4], episodes, seeds=2, stride=20)
    (found,) = all_regrets(find_runs(tmp_path))
    assert found.values["regret"].shape[1] < 53 and episodes_of(found) == 53
    np.testing.assert_allclose(totals(found), regret.sum(axis=1))
    assert [setting.text for setting in settings(found)] == ["noise 0.1", "noise 0.3"]
    np.testing.assert_allclose(groups(found), totals(found).reshape(2, 2))


def test_intervals_do_not_count_the_settings_as_chance(tmp_path):
    """Settings differ a hundredfold, seeds by 2 per cent: so does the mean."""
    regret = np.repeat([1.0, 100.0], 3)[:, None] * np.tile([0.98, 1.0, 1.02], 2)[:, None] * np.ones((6, 20))
    episodes = {"regret": regret, "episode_return": -regret, "episode_length": np.full_like(regret, 9)}
    write_episodes(tmp_path, "a2c", "catch_noise", [0, 4], episodes, seeds=3)
    write_episodes(tmp_path, "rgm", "catch_noise", [0, 4], {**episodes, "regret": 1.1 * regret}, seeds=3)
    first, second = all_regrets(find_runs(tmp_path))
    interval = total_regret(first)
    assert interval.estimate == pytest.approx(1010) and 985 < interval.low < 1000 < 1020 < interval.high < 1035
    difference = regret_difference(second, first)
    assert difference.estimate == pytest.approx(101) and difference.low > 60 and difference.high < 142


def test_settings_are_what_tells_variants_apart():
    assert len({(name.partition("/")[0], setting_of(name)) for name in SWEEP}) == 1 + 5 + 5 + 23 + 23 + 1 + 5
    assert setting_of("discounting_chain/9") == setting_of("discounting_chain/4") == (100, "bonus after 100 steps")


def test_the_table_stands_beside_the_papers(changed):
    table = table_of("bsuite-regret", changed(catch__a2c=1.02))
    rows = {(row["domain"], row["method"]): row for row in csv.DictReader(io.StringIO(table.csv()))}
    assert float(rows["catch", "A2C"]["of_paper"]) == pytest.approx(1.02)
    assert float(rows["catch", "Meta-PWR"]["of_a2c"]) == pytest.approx(5967 / 5975 / 1.02)
    assert rows["cartpole", "Meta-PWR"]["of_paper"] == ""
    assert float(rows["cartpole", "Meta-PWR"]["of_a2c_paper"]) == pytest.approx(61752 / 76874)


def test_two_runs_of_the_same_are_refused(runs, tmp_path):
    write_paper(tmp_path, "catch", "a2c")
    with refused("A2C on bsuite's catch", "name a folder with one"):
        all_regrets([*runs, *find_runs(tmp_path)])
