"""One smoke-sized reproduction, made once and looked at by many tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paircredit.experiments import reproduce
from paircredit.studies import make_experiment
from paircredit.training.loop import chunk_program, start_program


class Counted:
    """A progress that remembers what it was told."""

    def __init__(self) -> None:
        self.begun: dict[str, int] = {}
        self.advanced: dict[str, int] = {}
        self.started: dict[str, int] = {}
        self.ended: list[str] = []
        self.skipped: list[str] = []
        self.said: list[str] = []

    def begin(self, name: str, total: int, done: int = 0) -> None:
        self.begun[name], self.advanced[name], self.current = total, done, name
        self.started[name] = done

    def advance(self, steps: int) -> None:
        self.advanced[self.current] += steps

    def tell(self, numbers: str) -> None:
        self.told = numbers

    def end(self, note: str) -> None:
        self.ended.append(note)

    def skip(self, name: str) -> None:
        self.skipped.append(name)

    def made(self, note: str) -> None:
        self.ended.append(note)

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


class Reproduction:
    def __init__(self, folder: Path) -> None:
        self.folder, self.progress = folder, Counted()
        programs = self.programs()
        reproduce(make_experiment("dag", "smoke"), folder / "dag", self.progress)
        self.new_programs = tuple(after - before for before, after in zip(programs, self.programs(), strict=True))
        reproduce(make_experiment("umbrella", "smoke"), folder / "umbrella")

    @staticmethod
    def programs() -> tuple[int, int]:
        return start_program()._cache_size(), chunk_program()._cache_size()


@pytest.fixture(scope="session")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    return Reproduction(tmp_path_factory.mktemp("reproduction"))


@pytest.fixture
def run_cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Call the command line in this process: exit code, standard output, standard error."""
    from paircredit.cli import main

    def call(*words: object) -> tuple[int, str, str]:
        try:
            code = main([str(word) for word in words])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
