"""Every example runs as a script would, and what it prints says that it worked."""

from __future__ import annotations

import csv
import math
import re
import runpy
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from paircredit.envs import registry as environment_registry
from paircredit.methods import registry as method_registry
from paircredit.runs import read_run

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?|nan)"


@pytest.fixture
def run_example(monkeypatch, capsys):
    """Run an example in this process and return what it printed; what it registers is forgotten afterwards."""

    def run(name: str, *words: str) -> str:
        with monkeypatch.context() as patch, jax.numpy_dtype_promotion("standard"):  # as users have it
            patch.setattr(method_registry, "_METHODS", dict(method_registry._METHODS))
            patch.setattr(environment_registry, "_CONFIGS", dict(environment_registry._CONFIGS))
            patch.setattr(sys, "argv", [name, *words])
            try:
                runpy.run_path(str(EXAMPLES / name), run_name="__main__")
            except SystemExit as end:
                assert not end.code, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def numbers_after(text: str, output: str) -> list[float]:
    """All numbers between a piece of text and the end of its line."""
    line = next(line for line in output.splitlines() if text in line)
    return [float(number) for number in re.findall(NUMBER, line.split(text, 1)[1])]


@pytest.mark.slow
def test_estimators_in_your_own_code(run_example):
    output = run_example("estimators_in_your_own_code.py")
    noisy, handwritten, learned = (
        numbers_after(kind, output) for kind in ("λ = 1", "handwritten", "learned     takes")
    )
    assert min(noisy[0], handwritten[0], learned[0]) > 0.95
    assert handwritten[1] < 0.5 < learned[1] < 0.5 * noisy[1]
    day, evening = numbers_after("weights of the morning:", output)
    assert day < 0.45 and evening > 0.8


@pytest.mark.slow
def test_a_method_of_ones_own_trains(run_example, tmp_path, monkeypatch):
    """Its weights depend on the lag alone, and have been learned."""
    monkeypatch.chdir(tmp_path)
    run_example("add_a_method.py", "train", "dag", "meta-lag", "--env.depth=4", "--frames=1600", "--out=runs/own")
    expect_weights_of_lags(read_run(Path("runs/own")).arrays()["weights"], 4)


def expect_weights_of_lags(weights, steps):
    """Learned weights that are the same wherever the lag is."""
    assert weights.shape[1:] == (steps, steps)
    for lag in range(steps):
        of_lag = np.diagonal(weights, lag, axis1=1, axis2=2)
        np.testing.assert_allclose(of_lag, of_lag[:, :1].repeat(steps - lag, axis=1), rtol=1e-6)
    assert 0 < np.abs(weights - 0.5).max() < 0.5


@pytest.mark.nightly
@pytest.mark.slow
def test_add_a_method(run_example, tmp_path, monkeypatch):
    """Its runs, figures and table are those of a method of the library, and its weights depend on the lag alone."""
    monkeypatch.chdir(tmp_path)
    output = run_example("add_a_method.py")
    assert numbers_after("error of the metagradient:", output)[0] < 1e-6
    runs = [f"{env}-{name}" for env in ("dag", "key-to-door") for name in ("meta-pwr", "meta-lag")]
    assert [path.name for path in find_paths(output)] == [
        *runs,
        *(f"training-{of}.{kind}" for of in ("curves", "weights") for kind in ("svg", "png")),
        "training-runs.csv",
    ]
    assert all(path.exists() for path in find_paths(output))
    with (tmp_path / "runs/lag/figures/training-runs.csv").open() as file:
        rows = {row["run"]: row for row in csv.DictReader(file)}
    assert list(rows) == runs
    assert all(float(rows[f"dag-{name}"]["episode_return"]) > 0.9 * 2 for name in ("meta-pwr", "meta-lag"))
    for env, steps in (("dag", 4), ("key-to-door", 120)):
        expect_weights_of_lags(read_run(tmp_path / f"runs/lag/{env}-meta-lag").arrays()["weights"], steps)


def find_paths(output: str) -> list[Path]:
    """The files and folders that an output names, in its order."""
    return [Path(path) for path in re.findall(r"(?:The run is in )?(runs/\S+)", output)]


def test_a_method_of_ones_own_has_options_like_any_other(run_example):
    helped = run_example("add_a_method.py", "train", "dag", "meta-lag", "--help")
    assert "--method.initial" in helped and "Weight of every delay at the start (our choice)" in helped
    assert "--method.outer.learning-rate" in helped
    assert "meta-lag          weighted rewards, a weight per delay" in run_example("add_a_method.py", "list")


@pytest.mark.slow
@pytest.mark.nightly
def test_add_an_environment(run_example):
    output = run_example("add_an_environment.py")
    sampled, exact = numbers_after("untrained policy:", output)
    assert sampled == pytest.approx(exact, abs=0.05)
    *solved, best = numbers_after("h-pwr after 50 updates:", output)
    assert best == 1 and len(solved) == 4 and min(solved) > 0.95
    *learning, _ = numbers_after("a2c after 50 updates:", output)
    assert min(learning) > exact


@pytest.mark.nightly
@pytest.mark.slow
def test_check_a_metagradient(run_example):
    output = run_example("check_a_metagradient.py")
    assert numbers_after("own objective: error", output)[0] < 1e-6
    assert numbers_after("move the statistics:", output)[0] > 0.1
    assert numbers_after("too long:", output)[0] == pytest.approx(0.01, rel=0.1)
    assert numbers_after("'everything': error", output)[0] < 1e-5
    assert numbers_after("'numerator': error", output)[0] < 1e-6
    plain, safe, bounded = numbers_after("step at 0:", output)
    assert math.isnan(plain) and safe == pytest.approx(-1e6) and bounded == pytest.approx(-1.0)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_is_short_and_can_be_imported(path):
    assert len(path.read_text().splitlines()) <= (60 if path.name == "add_a_method.py" else 119)
    module = runpy.run_path(str(path), run_name="example")
    assert callable(module["main"])
