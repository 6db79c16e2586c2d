"""`paircredit export`: runs in the format of another program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from paircredit.commands.options import parse_options
from paircredit.errors import unknown_name

FORMATS = ("bsuite",)


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """Write the runs in a folder in the format of another program."""

    format: Annotated[str, tyro.conf.Positional]
    """bsuite: its CSV logs, which its own analysis reads; a folder per method and repetition."""
    folder: Annotated[Path, tyro.conf.Positional]
    """A run, or a folder with runs; those on other environments are passed over."""
    out: Path
    """Folder for the files; must not exist."""


def run(words: Sequence[str]) -> int:
    """The command."""
    options = parse_options(ExportOptions, words, "paircredit export")
    if options.format not in FORMATS:
        raise unknown_name("export format", options.format, FORMATS)
    from paircredit.experiments.spec import refuse_misshapen
    from paircredit.runs import find_runs
    from paircredit.studies.bsuite.log import write_bsuite_logs

    runs = find_runs(options.folder)
    refuse_misshapen(runs)
    paths = write_bsuite_logs(runs, options.out)
    print(f"{len(paths)} logs are in {options.out}, a folder per method and repetition.")
    return 0
