"""Verdicts, figures, numbers and provenance of some runs: as files, and as one HTML page."""

from paircredit.report.files import save_figures, write_digest
from paircredit.report.page import build_report

__all__ = ["build_report", "save_figures", "write_digest"]
