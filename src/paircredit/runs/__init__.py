"""Runs on disk."""

from paircredit.runs.folder import RunWriter
from paircredit.runs.read import Run, find_runs, query_metrics, read_run

__all__ = ["Run", "RunWriter", "find_runs", "query_metrics", "read_run"]
