"""Files and folders that are there complete or not at all, also after a power cut."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from paircredit.errors import PaircreditError

PARTIAL = ".partial"
"""What the name of a file or folder ends with while it is being written."""


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write into; when the block ends without an error it replaces what was at `path`, on the disk too."""
    temporary = path.with_name(path.name + PARTIAL)
    try:
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise PaircreditError(f"{path} cannot be written: {error.strerror}.") from error


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file so that it is there complete or not at all."""
    with whole_file(path) as file:
        file.write(content)


def refuse_file(path: Path) -> None:
    """Refuse to write a file that is there already, or into a folder that is not: before the work, not after it."""
    if path.exists():
        raise PaircreditError(f"{path} exists already; choose another file or remove it first.")
    if not path.parent.is_dir():
        raise PaircreditError(f"{path} cannot be written: there is no folder {path.parent}.")


def make_folder(path: Path, files: Mapping[str, bytes] | None = None) -> None:
    """Make a new folder, with files in it from the first moment; one that exists is never written into."""
    if path.exists():
        raise exists_already(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir(exist_ok=True)
        for name, content in (files or {}).items():
            write_file(temporary / name, content)
        os.rename(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        if path.exists():
            raise exists_already(path) from error
        raise PaircreditError(f"{path} cannot be made: {error.strerror}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def exists_already(path: Path) -> PaircreditError:
    """The error for a place that is taken."""
    return PaircreditError(f"{path} exists already; choose another folder or remove it first.")


def sync_folder(path: Path) -> None:
    """Make names in a folder last, where the system knows how."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
