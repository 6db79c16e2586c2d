"""What an error message must be: one sentence that a user can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from paircredit.errors import PaircreditError


@contextmanager
def refused(*mentions: str) -> Iterator[None]:
    """The body raises a `PaircreditError` on one line, ending in a full stop, that holds all the given strings."""
    with pytest.raises(PaircreditError) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message and message.endswith("."), message
    for mention in mentions:
        assert mention in message, f"{mention!r} is not in: {message}"
