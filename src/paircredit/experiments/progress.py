"""Who is told how far a run has come."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about long work while it goes on."""

    def begin(self, name: str, total: int) -> None:
        """A run of `total` steps begins."""
        ...

    def advance(self, steps: int) -> None:
        """Some of its steps are done."""
        ...

    def end(self, note: str) -> None:
        """The run is done; the note says what came out."""
        ...


class Silent:
    """Tells nobody."""

    def begin(self, name: str, total: int) -> None:
        """Nothing."""

    def advance(self, steps: int) -> None:
        """Nothing."""

    def end(self, note: str) -> None:
        """Nothing."""
