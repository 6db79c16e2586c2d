"""bsuite as an experiment: members are trainings of their own, no regret is lost, and the original reads our logs."""

from __future__ import annotations

import dataclasses
import warnings

import jax
import matplotlib
import numpy as np
import pytest

from paircredit.envs.bsuite.sweep import DOMAINS, SWEEP, domain_sweep, logged_episodes
from paircredit.experiments import reproduce, training_run
from paircredit.experiments.spec import variants_of
from paircredit.experiments.training_run import row_edges
from paircredit.methods.registry import make_method
from paircredit.runs import find_runs
from paircredit.settings import replace_dotted
from paircredit.studies import make_experiment
from paircredit.studies.bsuite.log import bsuite_logs
from paircredit.studies.bsuite.measures import PAPER_EPISODES, all_regrets, episodes, totals
from paircredit.studies.bsuite.runs import BASELINES, METHODS
from tests.envs.bsuite.original import bsuite_module
from tests.made_up import write_episodes, write_regrets
from tests.sentences import refused

with warnings.catch_warnings():  # of the package and what it imports
    warnings.simplefilter("ignore")
    import pandas


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One run at smoke scale: with a row per update, and with rows over several; the same programs make both."""
    folder = tmp_path_factory.mktemp("bsuite")
    whole = make_experiment("bsuite", "smoke")
    experiment = dataclasses.replace(whole, runs=tuple(run for run in whole.runs if run.name == "umbrella_length-a2c"))
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, rows in (("every", 60), ("few", 3)):
                patch.setattr(training_run, "METRIC_ROWS", rows)
                reproduce(experiment, folder / name)
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    return folder


class TestTraining:
    def test_total_regret_does_not_depend_on_the_rows(self, trained):
        every, few = (all_regrets(find_runs(trained / name)) for name in ("every", "few"))
        for exact, thinned in zip(every, few, strict=True):
            assert exact.values["regret"].shape[1] == 60 > thinned.values["regret"].shape[1]
            assert episodes(exact) == episodes(thinned) == 60
            assert (totals(exact) % 2 == 0).all() and 0 < totals(exact).min() <= totals(exact).max() < 120
            np.testing.assert_allclose(totals(thinned), totals(exact), rtol=1e-6)
            assert (thinned.marks["bsuite_id"] == exact.marks["bsuite_id"]).all() and len(set(exact.seeds)) == len(
                exact.seeds
            ) == 4

    def test_members_that_are_alike_are_other_trainings(self, trained):
        (run,) = find_runs(trained / "every" / "umbrella_length-a2c")
        curves = {tuple(row["regret"] for row in run.metrics() if row["member"] == member) for member in range(4)}
        assert len(curves) == 4

    def test_logs_do_not_depend_on_the_rows(self, trained):
        logs = [bsuite_logs(*find_runs(trained / kind)) for kind in ("every", "few")]
        assert logs[0] == logs[1] and len(logs[0]) == 4

    def test_the_command_writes_them_and_overwrites_nothing(self, trained, tmp_path, run_cli):
        code, said, _ = run_cli("export", "bsuite", trained / "few", "--out", tmp_path / "logs")
        files = sorted(path.relative_to(tmp_path / "logs").as_posix() for path in tmp_path.rglob("*.csv"))
        assert code == 0 and "4 logs" in said and len(files) == 4
        assert files[0] == "a2c/0/bsuite_id_-_umbrella_length-0.csv" and files[-1].startswith("a2c/1/")
        assert run_cli("export", "bsuite", trained / "few", "--out", tmp_path / "logs")[0] == 2
        code, _, error = run_cli("export", "bsuit", trained / "few", "--out", tmp_path / "other")
        assert code == 2 and "Did you mean 'bsuite'?" in error and not (tmp_path / "other").exists()

    def test_the_same_again_makes_nothing_again(self, trained):
        """Also where settings and seeds are tuples, which come back from a file as lists."""
        whole = make_experiment("bsuite", "smoke")
        same = dataclasses.replace(whole, runs=tuple(run for run in whole.runs if run.name == "umbrella_length-a2c"))
        before = (trained / "few" / "umbrella_length-a2c" / "manifest.json").stat().st_mtime_ns
        reproduce(same, trained / "few")
        assert (trained / "few" / "umbrella_length-a2c" / "manifest.json").stat().st_mtime_ns == before


class TestScales:
    def test_paper_is_the_papers(self):
        runs = [*make_experiment("bsuite", "paper").runs, *make_experiment("bsuite-baselines", "paper").runs]
        assert [(run.method, run.tags["domain"]) for run in runs[-3:]] == [(name, "cartpole") for name in BASELINES]
        assert {run.method for run in runs} == {*METHODS, *BASELINES} and len({run.name for run in runs}) == 7 * 6
        for run in runs:
            members = [(variant, seed) for variant in variants_of(run) for seed in variant.seeds or ()]
            assert [variant.labels["bsuite_id"] for variant, _ in members[::3]] == list(
                domain_sweep(run.tags["domain"])
            )
            assert len({seed for _, seed in members}) == len(members) == 3 * len(DOMAINS[run.tags["domain"]].settings)
            assert run.updates == PAPER_EPISODES[run.tags["domain"]]

    def test_the_bonus_is_balanced_as_in_a2c_where_weights_start_at_a_half(self):
        """And with the switches every method has three costs."""

        def costs(runs, preset="default"):
            settings = [(run, make_method(run.method, preset, run.env)) for run in runs]
            return {
                run.tags["label"]: replace_dotted(made, run.method_settings, run.method).inner.entropy_cost
                for run, made in settings
            }

        whole = make_experiment("bsuite", "paper").runs
        assert costs(whole) == {"a2c": 0.05, "meta-pwtd": 0.025, "meta-pwr": 0.025}
        assert set(costs(whole, "paper").values()) == {0.05}  # as printed
        switches = make_experiment("bsuite-switches", "paper").runs
        found = costs(whole) | costs(switches)
        assert sorted(found.values()) == [0.0125] * 3 + [0.025] * 3 + [0.05] * 3
        assert all(label.endswith(f", entropy {cost:g}") for label, cost in costs(switches).items())
        assert len({run.name for run in [*whole, *switches]}) == 3 * len(whole)
        assert [run.updates for run in switches[::2]] == [run.updates for run in whole]

    def test_cartpole_alone_is_a_part_of_the_whole(self):
        whole = [run for run in make_experiment("bsuite", "paper").runs if run.tags["domain"] == "cartpole"]
        assert list(make_experiment("bsuite-cartpole", "paper").runs) == whole
        assert {run.updates for run in make_experiment("bsuite-cartpole", "short").runs} == {5_000}

    @pytest.mark.parametrize("scale", ["smoke", "short", "paper"])
    def test_variants_are_those_of_their_ids_but_for_padding(self, scale):
        padding = {"max_length": 0, "max_distractors": 0}
        for run in make_experiment("bsuite", scale).runs:
            base = DOMAINS[run.tags["domain"]].config
            for variant in variants_of(run):
                config = dataclasses.replace(base, **run.env_settings, **variant.env_settings)
                config.build()
                theirs = SWEEP[variant.labels["bsuite_id"]]
                own = {name: value for name, value in padding.items() if hasattr(config, name)}
                assert dataclasses.replace(config, **own) == dataclasses.replace(theirs, **own)


def test_rows_end_where_logged_episodes_begin_and_end():
    assert row_edges(0, 30, 10, 1) == [*range(15), 16, 17, 19, 20, 24, 25, 29, 30]
    assert row_edges(100, 100, 40, 1) == [0, 19, 20, 39, 40, 69, 70, 80, 99, 100]
    assert row_edges(0, 30, 10, 16) == [0, 10, 20, 30]


def test_logged_episodes_are_the_originals():
    bsuite_module()
    from bsuite.utils.wrappers import _logarithmic_logging

    assert logged_episodes(3000) == [episode for episode in range(1, 3001) if _logarithmic_logging(episode)]
    assert len(logged_episodes(100_000)) == 62 and logged_episodes(100_000)[-1] == 100_000


@pytest.mark.parametrize(
    "bsuite_id", ["catch/3", "catch_noise/9", "umbrella_length/2", "cartpole/1", "discounting_chain/4"]
)
def test_a_log_is_what_the_original_writes_of_the_same_episodes(bsuite_id, tmp_path):
    """Random play through the original's logger; our rows are made of the same episodes."""
    played = play_with_logger(bsuite_id, tmp_path / "theirs", 47)
    domain, _, number = bsuite_id.partition("/")
    write_episodes(tmp_path / "ours", "a2c", domain, [int(number)], played)
    ((name, content),) = bsuite_logs(*find_runs(tmp_path / "ours")).items()
    path = tmp_path / name.rpartition("/")[2]
    path.write_bytes(content)
    ours, theirs = pandas.read_csv(path), pandas.read_csv(tmp_path / "theirs" / path.name)
    assert set(ours.columns) == set(theirs.columns) and ours.columns[:5].tolist() == theirs.columns[:5].tolist()
    for column in theirs:
        np.testing.assert_allclose(ours[column], theirs[column], rtol=1e-6, atol=1e-6, err_msg=column)


def play_with_logger(bsuite_id, folder, episodes):
    """What random play was paid, how long it took and what it cost, episode by episode."""
    bsuite = bsuite_module()
    from paircredit.envs.bsuite import cartpole, discounting_chain

    env = bsuite.load_and_record_to_csv(bsuite_id, str(folder))
    chance, found, before = np.random.default_rng(0), [], 0.0
    for _ in range(episodes):
        now, rewards = env.reset(), []
        while not now.last():
            now = env.step(int(chance.integers(env.action_spec().num_values)))
            rewards.append(now.reward)
        best = {"cartpole": cartpole.BEST_RETURN, "discounting_chain": discounting_chain.BEST_RETURN}.get(
            bsuite_id.partition("/")[0]
        )
        so_far = env.bsuite_info().get("total_regret", 0.0)
        regret = so_far - before if best is None else best - sum(rewards)
        found.append((regret, sum(rewards), len(rewards)))
        before = so_far
    names = ("regret", "episode_return", "episode_length")
    return {name: np.array([values], dtype=float) for name, values in zip(names, zip(*found, strict=True), strict=True)}


def test_the_originals_scores_accept_our_logs(tmp_path, run_cli):
    """All seven domains, by its own reader; agents that are always right score 1, random ones (almost) 0."""
    bsuite_module()
    with warnings.catch_warnings(), matplotlib.rc_context():  # it changes the style of all figures
        warnings.simplefilter("ignore")
        from bsuite.experiments import summary_analysis
        from bsuite.logging import csv_load

        for domain in DOMAINS:
            variants = range(len(DOMAINS[domain].settings))
            paid = {"cartpole": 1001.0, "discounting_chain": 1.1}.get(domain, 1.0)
            lost = {"cartpole": 80.0, "discounting_chain": 1.0}.get(domain, -1.0)
            for label, reward, cost in (("a2c", paid, 0.0), ("meta-pwr", lost, 2.0)):
                all_alike = np.ones((len(variants), 50))
                episodes = {"regret": cost, "episode_return": reward, "episode_length": 9.0}
                made_up = {name: value * all_alike for name, value in episodes.items()}
                write_episodes(tmp_path / "runs", label, domain, variants, made_up)
        assert run_cli("export", "bsuite", tmp_path / "runs", "--out", tmp_path / "logs")[0] == 0
        folders = {name: str(tmp_path / "logs" / name / "0") for name in ("a2c", "meta-pwr")}
        logs, names = csv_load.load_bsuite(folders)
        scores = summary_analysis.bsuite_score(logs, names).set_index(["agent_name", "bsuite_env"]).score
    assert set(scores.loc["a2c"].index) == set(DOMAINS)
    np.testing.assert_allclose(scores.loc["a2c"], 1.0, atol=1e-5)
    assert scores.loc["meta-pwr"].max() < 0.05


def test_what_has_no_single_episodes_cannot_be_logged(tmp_path):
    write_regrets(tmp_path, "a2c", "catch", 10.0, numbers=[0])
    (run,) = find_runs(tmp_path)
    other = dataclasses.replace(run, manifest=run.manifest | {"spec": run.spec | {"updates": 120}})
    with refused("no record of single episodes", "--method.inner.episodes 1"):
        bsuite_logs(other)


def test_what_was_made_with_resets_cannot_be_logged(tmp_path):
    write_regrets(tmp_path, "a2c", "catch", 10.0, numbers=[0])
    (run,) = find_runs(tmp_path)
    with refused("made with resets", "online protocol"):
        bsuite_logs(dataclasses.replace(run, manifest=run.manifest | {"spec": run.spec | {"protocol": "reset"}}))


def test_a_shorter_task_has_no_place_in_the_logs_and_padding_makes_no_other(tmp_path):
    write_regrets(tmp_path, "a2c", "umbrella_length", 10.0, numbers=[13])
    (run,) = find_runs(tmp_path)

    def changed(**settings):
        spec = run.spec | {"env_settings": settings}
        return dataclasses.replace(run, manifest=run.manifest | {"spec": spec})

    assert bsuite_logs(changed(max_length=20)) == bsuite_logs(run)
    with refused("none of the 146 variants"):
        bsuite_logs(changed(distractors=3))
    alone = run.spec | {"variants": [], "env_settings": {"length": 20, "max_length": 0}, "seeds": [39, 40, 41]}
    names = list(bsuite_logs(dataclasses.replace(run, manifest=run.manifest | {"spec": alone})))
    assert names[0] == "a2c/0/bsuite_id_-_umbrella_length-13.csv"


def test_a_method_with_a_change_has_logs_of_its_own(tmp_path, run_cli):
    tags = {"role": "bsuite", "label": "a2c, entropy 0.025", "domain": "catch"}
    for folder, more in (("usual", {}), ("changed", {"tags": tags})):
        write_regrets(tmp_path / "runs" / folder, "a2c", "catch", 10.0, numbers=[0], seeds=1, **more)
    assert run_cli("export", "bsuite", tmp_path / "runs", "--out", tmp_path / "logs")[0] == 0
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {"a2c", "a2c-entropy-0.025"}
