"""PyTrees as plain arrays in an npz file that notices its own damage.

A file holds the leaves of a PyTree under their key paths and a header in JSON: types, and a SHA-256 sum of everything.
There is no pickle in it: the structure comes from the program that reads it. Random keys are stored as their data,
types that numpy does not know (bfloat16) as unsigned integers of the same width. The same leaves give the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.errors import PaircreditError
from paircredit.runs.shape import has_its_sum, json_sum, misfit, parse_json
from paircredit.types import PyTree, is_key

HEADER = "header"
PLAIN = (bool, int, float, complex)
"""Leaves that are no arrays."""


@dataclasses.dataclass(frozen=True)
class ArchiveHeader:
    """The fields of every header."""

    dtypes: Mapping[str, str]
    arrays_sha256: str


class DamagedFile(PaircreditError):
    """The file is not what was written; an older one may be."""


def tree_sum(tree: PyTree) -> str:
    """A SHA-256 sum of all leaves of a tree: names, types, shapes and content."""
    return array_sum(flatten("", tree)[0])


def array_sum(arrays: Mapping[str, np.ndarray]) -> str:
    """A SHA-256 sum of named arrays: names, types, shapes and content."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_archive(file: BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write plain arrays and a header, to which their sum and its own are added."""
    header = {**header, "arrays_sha256": array_sum(arrays)}
    header["sha256"] = json_sum(header)
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in {**arrays, HEADER: np.frombuffer(json.dumps(header).encode(), np.uint8)}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_archive(
    file: BinaryIO | io.BytesIO, path: Path, format_: int, shape: type = ArchiveHeader
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of what `write_archive` wrote; `path` names the file, `shape` the fields of its header.

    Every member's CRC is checked before anything is made of its bytes.
    """
    arrays = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                content = io.BytesIO(archive.read(name))
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
        header = parse_json(arrays.pop(HEADER).tobytes())
    except Exception as error:  # whatever NumPy and zip make of bytes that are none of theirs
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFile(f"{path} is damaged: {reason.rstrip('.')}.") from error
    if not has_its_sum(header):
        raise DamagedFile(f"{path} is damaged: its header does not match its own SHA-256 sum.")
    if header.get("format") != format_:
        raise PaircreditError(f"{path} has format {header.get('format')!r}; this version reads format {format_}.")
    for one in (ArchiveHeader, shape):
        if (found := misfit(header, one)) is not None:
            raise DamagedFile(f"{path} is damaged: in its header {found}.")
    if header["arrays_sha256"] != array_sum(arrays):
        raise DamagedFile(f"{path} is damaged: its arrays do not match their SHA-256 sum.")
    if header["dtypes"].keys() != arrays.keys():
        raise DamagedFile(f"{path} is damaged: its header gives types of other arrays than it has.")
    return header, arrays


def flatten(prefix: str, tree: PyTree) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The leaves of a tree as plain arrays under their key paths, and their types."""
    leaves = {prefix + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
    keys = {name: str(jax.random.key_impl(leaf)) for name, leaf in leaves.items() if is_key(leaf)}
    fetched = jax.device_get({n: jax.random.key_data(leaf) if n in keys else leaf for n, leaf in leaves.items()})
    arrays, dtypes = {}, {}
    for name, leaf in fetched.items():
        arrays[name], dtypes[name] = plain(name, leaf)
        if name in keys:
            dtypes[name] = f"key {keys[name]}"
    return arrays, dtypes


def plain(name: str, leaf: Any) -> tuple[np.ndarray, str]:
    """A leaf as an array of a type that every numpy knows, and the name of its own type."""
    array = np.asarray(leaf)
    if array.dtype.hasobject:
        raise PaircreditError(f"{name} is a {type(leaf).__name__}; only arrays and numbers go into a file.")
    if array.dtype.kind == "V":
        return array.view(f"u{array.dtype.itemsize}"), array.dtype.name
    return array, array.dtype.name if array.dtype.kind in "biufc" else array.dtype.str


def typed(array: np.ndarray, dtype: str, path: Path) -> np.ndarray:
    """A plain array as what it was made of; the path is that of the file it comes from."""
    try:
        return array.view(jnp.dtype(dtype))
    except (TypeError, ValueError) as error:
        raise DamagedFile(f"{path} is damaged: an array of {array.dtype} in it cannot be of type {dtype!r}.") from error


def unflatten(
    prefix: str, like: PyTree, arrays: Mapping[str, np.ndarray], dtypes: Mapping[str, str], path: Path, advice: str
) -> PyTree:
    """The tree that `flatten` made the arrays and types of, if it is like the given one in structure, shapes and types.

    `path` is the file that they come from, and `advice` the end of the sentence for whoever has another tree.
    """

    def of_another(difference: str) -> PaircreditError:
        return PaircreditError(f"{path} was made by a program with another state ({difference}); {advice}.")

    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    expected = {prefix + jax.tree_util.keystr(where): leaf for where, leaf in leaves}
    if difference := sorted(set(expected) ^ set(arrays)):
        who = "only the file has" if difference[0] in arrays else "the file lacks"
        raise of_another(f"{who} {difference[0]}")
    restored = []
    for name, leaf in expected.items():
        new = _like(leaf, arrays[name], dtypes[name], path)
        if new is None:
            kind = f"{dtypes[name]}{list(arrays[name].shape)}"
            own = type(leaf).__name__ if type(leaf) in PLAIN else leaf.dtype
            wanted = f"{own}{list(jnp.shape(leaf))}"
            raise of_another(f"{name} is {kind} there and {wanted} here")
        restored.append(new)
    return jax.tree_util.tree_unflatten(structure, restored)


def _like(leaf: Any, array: np.ndarray, dtype: str, path: Path) -> Any:
    """The array as a leaf of the same kind as the given one; None if it is of another type or shape."""
    if type(leaf) in PLAIN:
        value = array.item() if array.ndim == 0 else None
        return value if type(value) is type(leaf) else None
    if dtype.startswith("key "):
        try:
            key = jax.random.wrap_key_data(jax.device_put(array, may_alias=False), impl=dtype.removeprefix("key "))
        except (TypeError, ValueError):  # it is no key's data
            return None
        return key if (key.dtype, key.shape) == (leaf.dtype, leaf.shape) else None
    array = typed(array, dtype, path)
    if (array.dtype, array.shape) != (leaf.dtype, leaf.shape):
        return None
    if isinstance(leaf, np.generic):
        return array[()]
    return array if isinstance(leaf, np.ndarray) else jax.device_put(array, may_alias=False)
