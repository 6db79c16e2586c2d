"""Runs on disk."""

from paircredit.runs.folder import RunWriter, make_folder, write_file
from paircredit.runs.read import Run, find_runs, read_arrays, read_run

__all__ = ["Run", "RunWriter", "find_runs", "make_folder", "read_arrays", "read_run", "write_file"]
