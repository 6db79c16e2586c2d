"""One writer per run folder: a lock that dies with the process that holds it."""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path

from paircredit.errors import PaircreditError

if os.name == "posix":
    import fcntl

LOCK = "lock"


class FolderLock:
    """Held from its making until `release`, or until the process ends in whatever way.

    On Windows, which has no `flock`, two writers are not kept apart.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            PaircreditError: another process has it.
        """
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
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise PaircreditError(f"{self._path} cannot be written: {error.strerror}.") from error
            if os.name != "posix":
                return descriptor
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.read(descriptor, 20).decode(errors="replace") or "unknown"
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
