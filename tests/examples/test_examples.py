"""Every example runs as a script would, and what it prints says that it worked."""

from __future__ import annotations

import math
import re
import runpy
from pathlib import Path

import jax
import pytest

from paircredit.envs import registry as environment_registry
from paircredit.methods import registry as method_registry

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?|nan)"


@pytest.fixture
def run_example(monkeypatch, capsys):
    """Run an example in this process and return what it printed; what it registers is forgotten afterwards."""
    monkeypatch.setattr(method_registry, "_METHODS", dict(method_registry._METHODS))
    monkeypatch.setattr(environment_registry, "_CONFIGS", dict(environment_registry._CONFIGS))

    def run(name: str) -> str:
        with jax.numpy_dtype_promotion("standard"):  # as users have it
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
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
def test_add_a_method(run_example):
    output = run_example("add_a_method.py")
    assert numbers_after("error of the metagradient:", output)[0] < 1e-6
    reached, best = numbers_after("last 50 batches:", output)
    assert reached > 0.9 * best
    weights = numbers_after("delays 0 to 3:", output)
    assert len(weights) == 4 and max(weights) > 0.6


@pytest.mark.slow
def test_add_an_environment(run_example):
    output = run_example("add_an_environment.py")
    sampled, exact = numbers_after("untrained policy:", output)
    assert sampled == pytest.approx(exact, abs=0.05)
    *solved, best = numbers_after("h-pwr after 50 updates:", output)
    assert best == 1 and len(solved) == 4 and min(solved) > 0.95
    *learning, _ = numbers_after("a2c after 50 updates:", output)
    assert min(learning) > exact


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
    assert len(path.read_text().splitlines()) < 120
    module = runpy.run_path(str(path), run_name="example")
    assert callable(module["main"])
