"""Ctrl-C and a request to end, from a command's first moment to its last: a sentence and exit code 130."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

INTERRUPTED = 130
"""The exit code."""
_IMPORTING = "<frozen importlib._bootstrap>"
_at_work: list[bool] = []


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Inside the block both signals raise `KeyboardInterrupt`; after it nothing is left to do, and they end at once.

    In the midst of an import they end at once, too. Nothing has been begun there, and an exception would come out
    changed, with a traceback, or not at all: some packages catch whatever goes wrong while they are imported.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody wants it to be ignored
        signal.signal(signal.SIGINT, _raise)
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is _raise:
                signal.signal(number, _end)


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """Inside the block there is something to put down properly, also in the midst of an import."""
    _at_work.append(True)
    try:
        yield
    finally:
        _at_work.pop()


def _raise(number: int, frame: FrameType | None) -> None:
    while frame is not None and not _at_work:
        if frame.f_code.co_filename == _IMPORTING:
            with contextlib.suppress(OSError):
                os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"paircredit: interrupted.\n")
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
