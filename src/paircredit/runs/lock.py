"""One writer per run folder: a lock that dies with the process that holds it.

The package `filelock` is not used: whoever is turned away there has emptied the file first (it opens it with O_TRUNC),
so nobody could be told which process holds the lock.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path

from paircredit.errors import PaircreditError
from paircredit.runs.files import regular_descriptor, told_as_sentence

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
