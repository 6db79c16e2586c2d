"""What a person is told while a run goes on."""

from __future__ import annotations

import dataclasses

import pytest

from paircredit.envs import make_environment, register_environment, registry
from paircredit.envs.protocol import InSegments
from paircredit.experiments import TrainingSpec, training_run
from paircredit.runs import read_run
from tests.experiments.conftest import Counted


@dataclasses.dataclass(frozen=True)
class CutConfig:
    """Episodes that pay 1 in each of 4 steps, in segments of 2."""

    def build(self) -> InSegments:
        return InSegments(make_environment("probe-truncation"), 2)


class Listener(Counted):
    """Keeps all numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def tell(self, numbers: str) -> None:
        self.heard.append(numbers)


@pytest.mark.parametrize(
    ("chunk", "heard"),
    [
        (1, ["return –", "return 4.00", "return 4.00", "return 4.00"]),
        (2, ["return 4.00", "return 4.00"]),  # what nobody knows is no part of a mean
    ],
)
def test_no_return_is_told_before_an_episode_has_ended(tmp_path, monkeypatch, chunk: int, heard: list[str]) -> None:
    monkeypatch.setattr(registry, "_CONFIGS", dict(registry._CONFIGS))
    monkeypatch.setattr(training_run, "LARGEST_CHUNK", chunk)
    register_environment("cut", CutConfig, "cut in segments")
    listener = Listener()
    training_run.run_training(TrainingSpec("run", "cut", "a2c", 4, (0, 1), preset="probe"), tmp_path, listener)
    assert listener.heard == heard


def test_rewards_as_large_as_can_be_are_averaged_and_told_in_few_digits(tmp_path, monkeypatch) -> None:
    """Sums of four of them are no numbers in single precision, and every warning is an error here."""
    monkeypatch.setattr(training_run, "METRIC_ROWS", 2)
    sizes = {"network.trunk": (4, 4), "inner.episodes": 2}
    spec = TrainingSpec("run", "bsuite/catch_scale", "a2c", 8, (0, 1, 2), {"reward_scale": 1e38}, sizes)
    listener = Listener()
    training_run.run_training(spec, tmp_path, listener)
    paid = [row["episode_return"] for row in read_run(tmp_path / "run").metrics()]
    assert len(paid) == 6 and min(paid) == -1e38, "some row is a mean over four updates that paid as little"
    (heard,) = listener.heard
    assert heard.startswith("return -") and "e+37, regret" in heard and len(heard) < 40
