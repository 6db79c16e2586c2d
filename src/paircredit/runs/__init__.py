"""Runs on disk."""

from paircredit.runs.files import make_folder, write_file
from paircredit.runs.folder import RunWriter, finished_already
from paircredit.runs.read import Run, find_runs, read_arrays, read_run, run_folders

__all__ = [
    "Run",
    "RunWriter",
    "find_runs",
    "finished_already",
    "make_folder",
    "read_arrays",
    "read_run",
    "run_folders",
    "write_file",
]
