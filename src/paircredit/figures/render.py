"""From a figure to bytes: the same figure gives the same file."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

DOTS_PER_INCH = 150
_DETERMINISTIC: dict[Any, Any] = {"svg.hashsalt": "paircredit", "svg.fonttype": "path", "image.composite_image": False}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def to_svg(figure: Figure) -> str:
    """The figure as SVG, with outlines instead of fonts and without a date."""
    buffer = io.StringIO()
    with rc_context(_DETERMINISTIC):
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return buffer.getvalue()


def to_png(figure: Figure) -> bytes:
    """The figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()
