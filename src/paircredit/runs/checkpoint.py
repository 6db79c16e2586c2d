"""Checkpoints: all that is needed to go on, as plain arrays in an npz file that notices its own damage.

A file holds the leaves of a PyTree under their key paths, further arrays that a run gathers on its way, and a header
in JSON with the position in the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np

from paircredit.runs.files import open_regular, whole_file
from paircredit.runs.shape import Count
from paircredit.runs.trees import DamagedFile, flatten, plain, read_archive, typed, unflatten, write_archive
from paircredit.types import PyTree

FORMAT = 1
STATE, KEPT = "state", "kept."
"""What the names of the tree's leaves and of the further arrays begin with."""
SECONDS_BETWEEN = 10.0
LARGEST_SHARE = 0.02
"""Checkpoints are to take no more than this part of a run's time."""
ASSUMED_BYTES_PER_SECOND = 2e8
"""Of writing, until it has been measured."""


@dataclasses.dataclass(frozen=True)
class Position:
    """Where in a run a checkpoint was made, and by what: the spec, and what the program is given beside its state.

    Checkpoints are counted with this one (older versions did not), their seconds without it.
    """

    updates: Count
    seconds: float
    metrics_bytes: Count
    metrics_sha256: str
    spec_sha256: str
    inputs_sha256: str
    checkpoints: Count = 0
    checkpoint_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A position, the state there, and the arrays that were gathered on the way to it."""

    position: Position
    state: PyTree
    kept: dict[str, np.ndarray]


def checkpoint_files(folder: Path) -> list[tuple[int, Path]]:
    """Updates and file of every checkpoint in a folder, newest first."""
    found = [(re.fullmatch(r"checkpoint-(\d+)\.npz", path.name), path) for path in folder.glob("checkpoint-*.npz")]
    return sorted(((int(match[1]), path) for match, path in found if match), reverse=True)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint whole or not at all, and keep one older than it."""
    arrays, dtypes = flatten(STATE, checkpoint.state)
    for name, array in checkpoint.kept.items():
        arrays[KEPT + name], dtypes[KEPT + name] = plain(name, array)
    path = folder / f"checkpoint-{checkpoint.position.updates}.npz"
    with whole_file(path) as file:
        write_archive(file, {"format": FORMAT, **dataclasses.asdict(checkpoint.position), "dtypes": dtypes}, arrays)
    existing = checkpoint_files(folder)
    older = [other for updates, other in existing if updates < checkpoint.position.updates]
    for _, other in existing:
        if other not in (path, *older[:1]):
            with contextlib.suppress(OSError):  # no file of ours; it does no harm
                other.unlink()
    return path


def read_checkpoint(path: Path, like: PyTree) -> Checkpoint:
    """Read a checkpoint of a state like the given one; a `DamagedFile` error says that an older one may be whole."""
    try:
        with open_regular(path) as file:
            header, arrays = read_archive(file, path, FORMAT, Position)
    except OSError as error:
        raise DamagedFile(f"{path} is damaged: {error.strerror}.") from error
    dtypes = header["dtypes"]
    kept = {name: arrays.pop(name) for name in list(arrays) if name.startswith(KEPT)}
    advice = "go on with the version that began the run, or remove its folder and start it anew"
    return Checkpoint(
        Position(**{field.name: header[field.name] for field in dataclasses.fields(Position) if field.name in header}),
        unflatten(STATE, like, arrays, dtypes, path, advice),
        {name.removeprefix(KEPT): typed(array, dtypes[name], path) for name, array in kept.items()},
    )


class Schedule:
    """When the next checkpoint is due: some seconds after the last, or more where they cost much; 0: always."""

    def __init__(self, seconds: float = SECONDS_BETWEEN, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._now = seconds, now
        self._last, self._cost = now(), 0.0

    def due(self, state: PyTree) -> bool:
        """Whether it is time for a checkpoint of this state; the first one's cost is guessed from its size."""
        if not self.seconds:
            return True
        cost = self._cost or sum(leaf.nbytes for leaf in jax.tree.leaves(state)) / ASSUMED_BYTES_PER_SECOND
        return self._now() - self._last >= max(self.seconds, cost * (1 / LARGEST_SHARE - 1))

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Around the making of a checkpoint: the dearer it was, the later the next."""
        began = self._now()
        yield
        self._last = self._now()
        self._cost = self._last - began
