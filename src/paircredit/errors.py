"""The one exception that is meant for the person at the keyboard."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PaircreditError(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what to do.

    The command line prints the message without a traceback and exits with code 2. Library users can catch it as
    the `ValueError` that it is.
    """


def unknown_name(kind: str, name: str, known: Iterable[str]) -> PaircreditError:
    """The error for a name nobody knows: it offers the nearest known one and the whole list."""
    known = sorted(known)
    nearest = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return PaircreditError(f"There is no {kind} called {name!r}.{hint} Known: {', '.join(known)}.")
