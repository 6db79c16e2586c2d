"""What people type and what they are told."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from paircredit.envs import register_environment
from paircredit.envs.dag import Dag, DagConfig
from paircredit.runs import read_run


def test_list_names_everything(run_cli) -> None:
    code, out, _ = run_cli("list")
    assert code == 0
    for name in ("dag", "umbrella", "probe-delay", "a2c", "h-pwr", "meta-pwr", "meta-pwtd", "paper", "short"):
        assert name in out


@pytest.mark.parametrize(
    "words", [["--help"], ["train", "--help"], ["reproduce", "--help"], ["train", "dag", "meta-pwr", "-h"]]
)
def test_help_is_help(run_cli, words: list[str]) -> None:
    code, out, _ = run_cli(*words)
    assert code == 0
    assert "paircredit" in out


def test_train_writes_a_run_and_says_where(run_cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, _ = run_cli(
        "train", "dag", "meta-pwr", "--frames", 1600, "--seeds", 2, "--out", out, "--env.depth", 4,
        "--method.learning-rate", 0.03, "--method.outer.clip_norm", 0.25,
    )  # fmt: skip
    assert code == 0
    assert str(out) in said
    run = read_run(out)
    assert run.spec["method_settings"] == {"inner.learning_rate": 0.03, "outer.clip_norm": 0.25}
    assert run.spec["updates"] == 50
    settings = run.manifest["settings"]
    assert settings["env"]["depth"] == 4 and settings["method"]["inner"]["learning_rate"] == 0.03
    assert settings["method"]["outer"]["lambda_"] == 1.0, "defaults are on record as well"
    assert {row["seed"] for row in run.metrics()} == {0, 1}
    assert run.arrays()["weights"].shape == (2, 10, 10)


def test_train_with_given_weights_frozen(run_cli, tmp_path: Path) -> None:
    np.save(tmp_path / "ones.npy", np.ones((10, 10), dtype=np.float32))
    code, _, err = run_cli(
        "train", "dag", "meta-pwtd", "--frames", 320, "--seeds", 1, "--env.depth", 4,
        "--weights", tmp_path / "ones.npy", "--freeze-weights", "--out", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, err
    assert read_run(tmp_path / "run").spec["learn_weights"] is False


def test_given_weights_are_learned_further_and_kept(run_cli, tmp_path: Path) -> None:
    start = np.full((10, 10), 0.9, dtype=np.float32)
    np.save(tmp_path / "start.npy", start)
    code, _, err = run_cli(
        "train", "dag", "meta-pwr", "--frames", 1700, "--seeds", 1, "--env.depth", 4, "--protocol", "reset",
        "--inner-updates", 3, "--weights", tmp_path / "start.npy", "--out", tmp_path / "run",
    )  # fmt: skip
    assert code == 0, err
    run = read_run(tmp_path / "run")
    assert run.spec["updates"] == -(-1700 // (4 * 8 * 4))
    moved = np.abs(run.arrays()["weights"][0] - start)
    assert 0.001 < moved.max() < 0.1
    assert (moved[3:] < 1e-6).all(), "rows of states without a choice do not move"


@pytest.mark.parametrize(
    "method, sentence",
    [("a2c", "a2c has no pair weights"), ("meta-lambda", "meta-lambda has no table of pair weights on dag")],
)
def test_weights_for_a_method_without_any_are_refused(run_cli, tmp_path: Path, method: str, sentence: str) -> None:
    np.save(tmp_path / "ones.npy", np.ones((10, 10), dtype=np.float32))
    code, _, err = run_cli(
        "train", "dag", method, "--env.depth", 4, "--weights", tmp_path / "ones.npy", "--out", tmp_path / "run"
    )
    assert code == 2
    assert sentence in err
    assert not (tmp_path / "run").exists()


BAD = [
    (["train", "dag", "a2c", "--method.inner.episodes", "10000000000"], "too much for the memory .* lower M"),
    (["train", "minatar/breakout", "h-pwr"], "h-pwr needs whole episodes"),
    (["train", "key-to-door", "meta-pwr", "--weights", "nowhere.npz"], "There is no file or folder"),
    (
        ["train", "key-to-door", "meta-pwr", "--method.network.backend", "kernel"],
        "kernels of the pair network need a GPU",
    ),
    (["train", "dag", "meta-pw"], r"no method called 'meta-pw'. Did you mean 'meta-pwr'\? Known: a2c"),
    (["train", "dog", "a2c"], r"no environment called 'dog'. Did you mean 'dag'\?"),
    (["train", "dag"], "needs an environment and a method"),
    (["train", "dag", "a2c", "--preset", "papr"], "no preset called 'papr'. Did you mean 'paper'"),
    (["train", "dag", "a2c", "--env.depth", "5"], "depth is 5, but must be an even number of at least 4"),
    (["train", "dag", "a2c", "--env.depth", "2"], "depth is 2, but must be an even number of at least 4"),
    (["train", "dag", "a2c", "--env.depth", "100"], "depth is 100; 40 is the largest"),
    (["train", "dag", "meta-pwr", "--env.depth", "36"], "table of pair weights"),
    (["train", "umbrella", "a2c", "--env.length", "0"], "length must be at least 1"),
    (["train", "umbrella", "a2c", "--env.variance", "-1"], "variance is -1.0, but must be at least 0"),
    (["train", "umbrella", "a2c", "--env.mean", "nan"], "a finite number is needed"),
    (["train", "dag", "a2c", "--method.learning-rate", "nan"], "learning_rate is nan; a finite number"),
    (["train", "dag", "a2c", "--seeds", "0"], "--seeds is 0, but must be at least 1"),
    (["train", "dag", "a2c", "--frames", "-5"], "--frames is -5"),
    (["train", "dag", "a2c", "--frames", "1" + 40 * "0"], "--frames is 1.*, but must be at most 1,000,000,000,000,000"),
    (["train", "dag", "a2c", "--seeds", "1000000000000"], "--seeds is 1000000000000, but must be at most 1,000,000"),
    (["train", "dag", "a2c", "--first-seed", "4294967296"], "seed 4294967296 is too large"),
    (["watch", "key-to-door", "--seed", "99999999999999999999"], "seed 99999999999999999999 is too large"),
    (["train", "dag", "a2c", "--method.episodes", "0"], "episodes is 0"),
    (["train", "dag", "a2c", "--env.depht", "8"], "env.depth"),
    (["train", "dag", "a2c", "--frames", "many"], "--frames: 'many' is not a whole number"),
    (["train", "dag", "a2c", "--frames", "1e5"], "--frames: '1e5' is to be written as 100000"),
    (["train", "dag", "a2c", "--seeds", "1e400"], "--seeds: '1e400' is not a whole number"),
    (["train", "dag", "tvt", "--method.clip", "-1"], "clip is -1.0, but must be above 0"),
    (["train", "dag", "tvt", "--method.value-cost", "-1"], "value_cost is -1.0, but must be at least 0"),
    (["train", "dag", "a2c-rr", "--method.prediction.warm-up", "-1"], "warm_up is -1, but must be at least 0"),
    (["train", "dag", "a2c", "--preset", "small", "--preset", "papr"], "no preset called 'papr'"),
    (["reproduce", "dag", "--only", "a", "--only=b", "--out", "new"], "--only is given more than once; give all names"),
    (["train", "minatar/breakout", "a2c", "--env.game", "freeway"], "paircredit train minatar/freeway a2c"),
    (["train", "minatar/breakout", "a2c", "--env.game", "freewy"], "Invalid choice 'freewy'"),
    (
        ["train", "key-to-door", "a2c", "--env.mean", "five"],
        "--env.mean: 'five' is not a number; see `paircredit train key-to-door a2c -",
    ),
    (["train", "key-to-door", "a2c", "--env.layout", "round"], "Invalid choice 'round'.*'open', 'walled'"),
    (["train", "dag", "a2c", "stray"], "Unrecognized options: stray"),
    (["watch"], "Missing from paircredit watch"),
    (["report"], "Missing from paircredit report: PATH, --out PATH; see"),
    (["train", "probe-value", "h-pwr"], "Nobody has handcrafted pair weights for probe-value"),
    (["train", "dag", "h-pwr", "--weights", "nowhere.npz"], "There is no file or folder .*nowhere.npz"),
    (["reproduce", "dga", "--out", "x"], "no experiment called 'dga'. Did you mean 'dag'"),
    (["reproduce", "dag", "--scale", "papper", "--out", "x"], "no scale of dag called 'papper'. Did you mean 'paper'"),
    (["reproduce", "bsuite", "--only", "--out", "x"], "--only needs the name of a run, or a pattern"),
    (
        ["train", "bsuite/umbrella_length/7", "a2c", "--out", "x"],
        "a variant of bsuite/umbrella_length; write bsuite/umbrella_length with --env.length 8.",
    ),
    (
        ["train", "bsuite/catch/3", "a2c", "--out", "x"],
        "a variant of bsuite/catch; write bsuite/catch with its defaults",
    ),
    (["reproduce", "bsuite", "--out", "x", "--only", "catch-a2"], "no run of bsuite at scale short called 'catch-a2'"),
    (["claims", "nowhere"], "no folder nowhere"),
    (["claims", "."], "no runs"),
    (["report", ".", "--out", "x.html"], "no runs"),
    (["report", "nowhere", "--out", "there/x.html"], "cannot be written: there is no folder there"),
    (["figures", "nowhere"], "no folder nowhere"),
    (["frobnicate"], "no command called 'frobnicate'"),
    (["list", "all"], "There is no method called 'all'"),
    (["list", "a2c", "dag", "all"], "Unrecognized options: all"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_answered_with_a_sentence_and_leaves_nothing_after(
    run_cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run_cli(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("paircredit: ") and err.endswith(".\n") and err.count("\n") == 1
    assert re.search(message, err)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_folder_is_not_touched(run_cli, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    for words in (["train", "dag", "a2c", "--out", tmp_path], ["reproduce", "umbrella", "--out", tmp_path]):
        code, _, err = run_cli(*words)
        assert code == 2
        assert "exists already" in err
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert (tmp_path / "precious").read_text() == "mine"


def test_an_unwritable_place_is_refused(run_cli) -> None:
    code, _, err = run_cli("train", "dag", "a2c", "--out", "/proc/nowhere/run")
    assert code == 2
    assert "cannot be made" in err


@dataclasses.dataclass(frozen=True)
class BrokenConfig:
    """A DAG whose last reward is NaN."""

    depth: int = 4

    def build(self) -> Dag:
        dag = DagConfig(self.depth).build()
        return dataclasses.replace(dag, rewards=dag.rewards.at[-2].set(jnp.nan))


def test_a_slash_in_a_name_makes_no_folder_of_its_own(run_cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    register_environment("suite/dag", DagConfig, "an environment of a family")
    code, _, _ = run_cli("train", "suite/dag", "a2c", "--frames", "64", "--seeds", "1", "--env.depth", 4)
    assert code == 0
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("suite-dag-a2c-")
    assert read_run(folder).spec["env"] == "suite/dag"


def test_nan_rewards_stop_training_with_a_sentence_and_are_on_record(run_cli, tmp_path: Path) -> None:
    register_environment("broken", BrokenConfig, "pays NaN")
    code, _, err = run_cli("train", "broken", "a2c", "--frames", "640", "--out", tmp_path / "x")
    assert code == 2
    assert "became NaN at update" in err
    code, _, err = run_cli("claims", tmp_path)
    assert code == 2
    assert "failed" in err
    assert "became NaN" in err


def test_claims_report_and_figures_on_a_reproduction(run_cli, reproduction, tmp_path: Path) -> None:
    code, out, _ = run_cli("claims", reproduction.folder)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [
        "U1",
        "D1",
        "D2",
        "D3",
        "D4",
        "D5",
        "D6",
        "D7",
        "K1",
        "K2",
        "K3",
        "K4",
        "B1",
        "A1",
        "M1",
    ]
    page = tmp_path / "report.html"
    assert run_cli("report", reproduction.folder, "--out", page)[0] == 0
    text = page.read_text()
    for word in ("U1", "D5", "<svg", "Meta-PWTD"):
        assert word in text
    code, _, err = run_cli("report", reproduction.folder, "--out", page)
    assert code == 2
    assert "exists already" in err
    assert page.read_text() == text
    code, out, _ = run_cli("figures", reproduction.folder, "--out", tmp_path / "figures")
    assert code == 0
    assert all(Path(line).stat().st_size > 0 for line in out.splitlines())
    assert run_cli("figures", reproduction.folder, "--out", tmp_path / "figures")[0] == 2


def test_a_digest_is_small_and_complete(run_cli, reproduction, tmp_path: Path) -> None:
    code, out, _ = run_cli("digest", reproduction.folder, "--out", tmp_path / "digest")
    assert code == 0
    names = {Path(line).name for line in out.splitlines()}
    assert {"verdicts.csv", "provenance.json", "curves.csv", "weights.npz", "dag-episodes.csv"} <= names
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.*")) < 2_000_000
    weights = np.load(tmp_path / "digest" / "weights.npz")
    original = read_run(reproduction.folder / "dag" / "dag4-reset-meta-pwr").arrays()["weights"][:, :3].mean(axis=0)
    np.testing.assert_allclose(weights["dag4-reset-meta-pwr-mean"], original, atol=1e-3)
    assert run_cli("digest", reproduction.folder, "--out", tmp_path / "digest")[0] == 2


def test_a_failing_claim_gives_exit_code_1(run_cli, tmp_path: Path) -> None:
    from tests.studies.test_tabular_claims import write_umbrella

    write_umbrella(tmp_path, pwr_variance=1.0)
    code, out, _ = run_cli("claims", tmp_path)
    assert code == 1
    assert re.search(r"^U1 +fails", out, re.MULTILINE)


def test_a_damaged_run_is_refused_by_every_reader(run_cli, reproduction, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(reproduction.folder, tmp_path / "copy")
    metrics = tmp_path / "copy" / "umbrella" / "umbrella-variance" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace("Monte Carlo", "Monte Karlo", 1))
    for words in (["claims"], ["figures"], ["report", "--out", tmp_path / "page.html"]):
        code, _, err = run_cli(words[0], tmp_path / "copy", *words[1:])
        assert code == 2, words
        assert "is damaged" in err
    assert not (tmp_path / "page.html").exists()


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "paircredit", "train", "dag", "mta-pwr"],
        capture_output=True, text=True, env=os.environ | {"JAX_PLATFORMS": "cpu"}, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Did you mean 'meta-pwr'?" in done.stderr
