"""The one exception that is meant for the person at the keyboard."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence


class PaircreditError(ValueError):
    """Something the user gave cannot be used; the message is one sentence that says what to do.

    The command line prints the message without a traceback and exits with code 2. Library users can catch it as
    the `ValueError` that it is.
    """


class NotEnoughMemoryError(PaircreditError):
    """What was asked for does not fit into the memory of the device."""


LARGEST_FAMILY = 10


def unknown_name(kind: str, name: object, known: Iterable[str]) -> PaircreditError:
    """The error for a name nobody knows: it offers the nearest known one and the whole list, large families folded."""
    known = sorted(known)
    nearest = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return PaircreditError(f"There is no {kind} called {name!r}.{hint} Known: {', '.join(_folded(known))}.")


def refuse_unknown(kind: str, name: object, known: Iterable[str]) -> None:
    """Refuse a name that is none of the known ones."""
    if name not in (known := tuple(known)):
        raise unknown_name(kind, name, known)


def _folded(names: Sequence[str]) -> list[str]:
    """Names with one for a whole family (atari/…) where that has more members than anybody reads."""
    families = Counter(name.partition("/")[0] for name in names if "/" in name)
    large = {family for family, members in families.items() if members > LARGEST_FAMILY}
    folded = (f"{name.partition('/')[0]}/…" if name.partition("/")[0] in large else name for name in names)
    return list(dict.fromkeys(folded))
