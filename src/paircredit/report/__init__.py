"""Verdicts, figures, numbers and provenance of some runs, in one HTML file."""

from paircredit.report.html import build_report

__all__ = ["build_report"]
