"""Who is told how far a run has come."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about long work while it goes on."""

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """A run of `total` steps begins, or goes on after the first `done` of them."""
        return

    def advance(self, steps: int) -> None:
        """Some of its steps are done."""
        return

    def tell(self, numbers: str) -> None:
        """How the run is doing at the moment; where none has begun, the whole."""
        return

    def end(self, note: str) -> None:
        """The run is done; the note says what came out."""
        return

    def skip(self, name: str) -> None:
        """A run was finished before and is not made again."""
        return

    def made(self, note: str) -> None:
        """A run is done that another process has made."""
        return

    def say(self, sentence: str) -> None:
        """Something that a person should know."""
        return


class Silent(Progress):
    """Tells nobody: it does what the protocol's own methods do, which is nothing."""
