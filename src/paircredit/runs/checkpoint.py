"""Checkpoints: all that is needed to go on, as plain arrays in an npz file that notices its own damage.

A file holds the leaves of a PyTree under their key paths, further arrays that a run gathers on its way, and a header
in JSON: format, position in the run, types, and a SHA-256 sum of everything. There is no pickle in it: the structure
comes from the program that reads it. Random keys are stored as their data, types that numpy does not know (bfloat16)
as unsigned integers of the same width.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.errors import PaircreditError
from paircredit.runs.files import whole_file
from paircredit.types import PyTree

FORMAT = 1
HEADER = "header"
STATE, KEPT = "state", "kept."
"""What the names of the tree's leaves and of the further arrays begin with."""
SECONDS_BETWEEN = 10.0
LARGEST_SHARE = 0.02
"""Checkpoints are to take no more than this part of a run's time."""
ASSUMED_BYTES_PER_SECOND = 2e8
"""Of writing, until it has been measured."""

_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    RuntimeError,
    MemoryError,
    OverflowError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""All that a damaged zip file can raise."""


@dataclasses.dataclass(frozen=True)
class Position:
    """Where in a run a checkpoint was made.

    Attributes:
        updates: made so far.
        seconds: they took.
        metrics_bytes: length of the metrics file at that moment.
        metrics_sha256: its sum.
        spec_sha256: sum of the spec of the run.
        inputs_sha256: sum of what the program is given beside its state.
    """

    updates: int
    seconds: float
    metrics_bytes: int
    metrics_sha256: str
    spec_sha256: str
    inputs_sha256: str


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A position, the state there, and the arrays that were gathered on the way to it."""

    position: Position
    state: PyTree
    kept: dict[str, np.ndarray]


class DamagedCheckpoint(PaircreditError):
    """The file is not what was written; an older one may be."""


def checkpoint_path(folder: Path, updates: int) -> Path:
    """The file of a checkpoint after so many updates."""
    return folder / f"checkpoint-{updates}.npz"


def checkpoint_files(folder: Path) -> list[tuple[int, Path]]:
    """Updates and file of every checkpoint in a folder, newest first."""
    found = [(re.fullmatch(r"checkpoint-(\d+)\.npz", path.name), path) for path in folder.glob("checkpoint-*.npz")]
    return sorted(((int(match[1]), path) for match, path in found if match), reverse=True)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint whole or not at all, and keep one older than it."""
    arrays, dtypes = _flatten(STATE, checkpoint.state)
    for name, array in checkpoint.kept.items():
        arrays[KEPT + name], dtypes[KEPT + name] = _plain(name, array)
    header = {
        "format": FORMAT,
        **dataclasses.asdict(checkpoint.position),
        "dtypes": dtypes,
        "arrays_sha256": array_sum(arrays),
    }
    header["sha256"] = _json_sum(header)
    path = checkpoint_path(folder, checkpoint.position.updates)
    arrays[HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    existing = checkpoint_files(folder)
    older = [other for updates, other in existing if updates < checkpoint.position.updates]
    for _, other in existing:
        if other not in (path, *older[:1]):
            other.unlink(missing_ok=True)
    return path


def read_checkpoint(path: Path, like: PyTree) -> Checkpoint:
    """Read a checkpoint back.

    Args:
        path: the file.
        like: a tree of the structure, shapes and types that are expected; arrays or `jax.ShapeDtypeStruct`s.

    Raises:
        DamagedCheckpoint: the file is not as it was written.
        PaircreditError: it is whole, but of another format or for another structure.
    """
    header, arrays = _read_file(path)
    if header.get("format") != FORMAT:
        raise PaircreditError(f"{path} has format {header.get('format')!r}; this version reads format {FORMAT}.")
    if header["arrays_sha256"] != array_sum(arrays):
        raise DamagedCheckpoint(f"{path} is damaged: its arrays do not match their SHA-256 sum.")
    dtypes = header["dtypes"]
    state = {name: array for name, array in arrays.items() if not name.startswith(KEPT)}
    kept = {name: array for name, array in arrays.items() if name.startswith(KEPT)}
    return Checkpoint(
        Position(**{field.name: header[field.name] for field in dataclasses.fields(Position)}),
        _unflatten(like, state, dtypes, path),
        {name.removeprefix(KEPT): _typed(array, dtypes[name]) for name, array in kept.items()},
    )


def tree_sum(tree: PyTree) -> str:
    """A SHA-256 sum of all leaves of a tree: names, types, shapes and content."""
    return array_sum(_flatten("", tree)[0])


def array_sum(arrays: Mapping[str, np.ndarray]) -> str:
    """A SHA-256 sum of named arrays: names, types, shapes and content."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


class Schedule:
    """When the next checkpoint is due: not too often, and so that all together cost little.

    Attributes:
        seconds: at least so many between two; 0 for one at every opportunity, whatever it costs.
    """

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


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays; every member's CRC is checked before anything is made of its bytes."""
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                content = io.BytesIO(archive.read(name))
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
        header = json.loads(arrays.pop(HEADER).tobytes())
    except _UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedCheckpoint(f"{path} is damaged: {reason.rstrip('.')}.") from error
    if not isinstance(header, dict) or header.get("sha256") != _json_sum(header):
        raise DamagedCheckpoint(f"{path} is damaged: its header does not match its own SHA-256 sum.")
    return header, arrays


def _json_sum(header: Mapping[str, Any]) -> str:
    body = {key: value for key, value in header.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _flatten(prefix: str, tree: PyTree) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The leaves of a tree as plain arrays under their key paths, and their types."""
    leaves = {prefix + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
    keys = {name: str(jax.random.key_impl(leaf)) for name, leaf in leaves.items() if _is_key(leaf)}
    fetched = jax.device_get({n: jax.random.key_data(leaf) if n in keys else leaf for n, leaf in leaves.items()})
    arrays, dtypes = {}, {}
    for name, leaf in fetched.items():
        arrays[name], dtypes[name] = _plain(name, leaf)
        if name in keys:
            dtypes[name] = f"key {keys[name]}"
    return arrays, dtypes


def _plain(name: str, leaf: Any) -> tuple[np.ndarray, str]:
    """A leaf as an array of a type that every numpy knows, and the name of its own type."""
    array = np.asarray(leaf)
    if array.dtype.hasobject:
        raise PaircreditError(f"{name} is a {type(leaf).__name__}; only arrays and numbers go into a checkpoint.")
    if array.dtype.kind == "V":
        return array.view(f"u{array.dtype.itemsize}"), array.dtype.name
    return array, array.dtype.name if array.dtype.kind in "biufc" else array.dtype.str


def _typed(array: np.ndarray, dtype: str) -> np.ndarray:
    return array.view(jnp.dtype(dtype))


def _unflatten(like: PyTree, arrays: Mapping[str, np.ndarray], dtypes: Mapping[str, str], path: Path) -> PyTree:
    """The tree that the arrays were made of, if it is like the given one."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    expected = {STATE + jax.tree_util.keystr(where): leaf for where, leaf in leaves}
    if difference := sorted(set(expected) ^ set(arrays)):
        who = "only the checkpoint has" if difference[0] in arrays else "the checkpoint lacks"
        raise _other_program(path, f"{who} {difference[0]}")
    restored = []
    for name, leaf in expected.items():
        new = _like(leaf, arrays[name], dtypes[name])
        if new is None:
            kind = f"{dtypes[name]}{list(arrays[name].shape)}"
            wanted = f"{getattr(leaf, 'dtype', type(leaf).__name__)}{list(jnp.shape(leaf))}"
            raise _other_program(path, f"{name} is {kind} there and {wanted} here")
        restored.append(new)
    return jax.tree_util.tree_unflatten(structure, restored)


def _like(leaf: Any, array: np.ndarray, dtype: str) -> Any:
    """The array as a leaf of the same kind as the given one; None if it is of another type or shape."""
    if type(leaf) in (bool, int, float, complex):
        value = array.item() if array.ndim == 0 else None
        return value if type(value) is type(leaf) else None
    if dtype.startswith("key "):
        key = jax.random.wrap_key_data(jax.device_put(array, may_alias=False), impl=dtype.removeprefix("key "))
        return key if (key.dtype, key.shape) == (leaf.dtype, leaf.shape) else None
    array = _typed(array, dtype)
    if (array.dtype, array.shape) != (leaf.dtype, leaf.shape):
        return None
    if isinstance(leaf, np.generic):
        return array[()]
    return array if isinstance(leaf, np.ndarray) else jax.device_put(array, may_alias=False)


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _other_program(path: Path, difference: str) -> PaircreditError:
    return PaircreditError(
        f"{path} was made by a program with another state ({difference}); go on with the version that began the run, "
        "or remove its folder and start it anew."
    )
