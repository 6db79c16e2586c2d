"""Files and folders that are there complete or not at all, also after a power cut; locks; the one way to open a file.

Only regular files are opened: a pipe or a device in the place of one would be waited for without end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from paircredit.errors import PaircreditError

if os.name == "posix":
    import fcntl

PARTIAL = ".partial"
"""What the name of a file or folder ends with while it is being written."""
LOCK = "lock"
_AT_ONCE, _NO_LINK = (os.O_NONBLOCK | os.O_NOCTTY, os.O_NOFOLLOW) if os.name == "posix" else (0, 0)
"""Opening a pipe does not wait for somebody at its other end; a link is not followed."""


def regular_descriptor(path: str | Path, flags: int, follow: bool = True) -> int:
    """Open a regular file as `os.open` does, without waiting for anybody; `follow` allows a link to one."""
    descriptor = os.open(path, flags | _AT_ONCE | (0 if follow else _NO_LINK), 0o666)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    what = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or the like"
    raise OSError(errno.EINVAL, f"it is {what} and not a file")


def open_regular(path: Path, how: str = "rb", follow: bool = True) -> BinaryIO:
    """Open a regular file as `open` does in a binary mode; arguments and errors as for `regular_descriptor`."""
    return open(path, how, opener=lambda name, flags: regular_descriptor(name, flags, follow))  # type: ignore[return-value]


@contextlib.contextmanager
def told_as_sentence(path: Path, done: str) -> Iterator[None]:
    """What the system refuses inside the block becomes a `PaircreditError`: PATH cannot be DONE."""
    try:
        yield
    except OSError as error:
        raise PaircreditError(f"{path} cannot be {done}: {error.strerror or error}.") from error


def read_file(path: Path) -> bytes:
    """The content of a regular file; one that cannot be read is refused."""
    with told_as_sentence(path, "read"), open_regular(path) as file:
        return file.read()


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write into; when the block ends without an error it replaces what was at `path`, on the disk too."""
    temporary = path.with_name(path.name + PARTIAL)
    with told_as_sentence(path, "written"):
        file = open_regular(temporary, "wb", follow=False)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file so that it is there complete or not at all."""
    with whole_file(path) as file:
        file.write(content)


def refuse_file(path: Path) -> None:
    """Refuse to write a file that is there already, or into a folder that is not: before the work, not after it."""
    if os.path.lexists(path):  # also a link that leads nowhere
        raise PaircreditError(f"{path} exists already; choose another file or remove it first.")
    if not path.parent.is_dir():
        raise PaircreditError(f"{path} cannot be written: there is no folder {path.parent}.")


def make_folder(path: Path, files: Mapping[str, bytes] | None = None) -> None:
    """Make a new folder, with files in it from the first moment; one that exists is never written into."""
    if os.path.lexists(path):  # also a link that leads nowhere
        raise exists_already(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir(exist_ok=True)
        for name, content in (files or {}).items():
            (temporary / name).parent.mkdir(exist_ok=True)
            write_file(temporary / name, content)
        os.rename(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        if os.path.lexists(path):
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


class FolderLock:
    """The lock of a folder, held until `release` or until the process ends in whatever way.

    On Windows, which has no `flock`, two writers are not kept apart. The package `filelock` is not used: it empties the
    file of whoever holds the lock, so nobody could be told which process that is.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        descriptor = self._take(folder)
        self._close = weakref.finalize(self, os.close, descriptor)
        with contextlib.suppress(OSError):  # who holds it is a help to others and no more
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Let others in, and leave nothing behind."""
        if self._close.alive:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._close()

    def _take(self, folder: Path) -> int:
        while True:
            with told_as_sentence(self._path, "written"):
                descriptor = regular_descriptor(self._path, os.O_RDWR | os.O_CREAT, follow=False)
            if os.name != "posix":
                return descriptor
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                content = os.read(descriptor, 20)
                holder = content.decode() if content.isdigit() else "unknown"
                os.close(descriptor)
                raise PaircreditError(
                    f"{folder} is being written by another process (number {holder}); wait until it ends, or stop it."
                ) from error
            except OSError as error:
                os.close(descriptor)
                raise PaircreditError(
                    f"{folder} cannot be locked ({error.strerror}); choose a folder on a file system with locks."
                ) from error
            # The one who had it may have removed the file between our opening and our locking it.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self._path)):
                    return descriptor
            os.close(descriptor)
