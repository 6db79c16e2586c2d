"""`paircredit figures`, `claims`, `report`, `digest` and `export`: what runs have to say."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any

import tyro

from paircredit.commands import parse_options
from paircredit.errors import PaircreditError, unknown_name

Folder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="Folder with runs.")]
Finished = Annotated[
    bool,
    tyro.conf.arg(help="Leave out runs that are not finished and name them. Otherwise an unfinished run is refused."),
]
SoFar = Annotated[
    bool,
    tyro.conf.arg(
        help="Show unfinished runs as far as they got, and name them. Claims are judged by finished runs alone."
    ),
]


@dataclasses.dataclass(frozen=True)
class FiguresOptions:
    """Draw every figure and table that the runs in a folder allow, as SVG, PNG and CSV."""

    folder: Folder
    out: Path | None = None
    """New folder for the figures (default: FOLDER/figures)."""
    finished: Finished = False
    so_far: SoFar = False


@dataclasses.dataclass(frozen=True)
class ClaimsOptions:
    """Judge the paper's claims by the runs in a folder: a verdict a line, exit code 1 when one fails."""

    folder: Folder
    finished: Finished = False


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Write one self-contained HTML page: verdicts, figures, tables, provenance."""

    folder: Folder
    out: Path
    """The page; must not exist."""
    finished: Finished = False
    so_far: SoFar = False


@dataclasses.dataclass(frozen=True)
class DigestOptions:
    """Write a small folder with all that is worth keeping of the runs in a large one."""

    folder: Folder
    out: Path
    """Folder of the digest; must not exist."""
    finished: Finished = False
    so_far: SoFar = False


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """Write the runs in a folder in the format of another program."""

    format: Annotated[str, tyro.conf.Positional]
    """bsuite: its CSV logs, which its own analysis reads; a folder per method and repetition."""
    folder: Annotated[Path, tyro.conf.Positional]
    """A run, or a folder with runs; those on other environments are passed over."""
    out: Path
    """Folder for the files; must not exist."""


def _runs(folder: Path, finished_only: bool, so_far: bool = False) -> list[Any]:
    """The runs of a folder; those that are left out, or count as far as they got, are named."""
    from paircredit.experiments.spec import refuse_misshapen
    from paircredit.runs import find_runs
    from paircredit.runs.read import run_folders

    if finished_only and so_far:
        raise PaircreditError("--finished leaves out what --so-far would take; say one of them.")
    runs = find_runs(folder, finished_only, so_far)
    refuse_misshapen(runs)
    taken = {run.path for run in runs}
    left_out = [path for path in run_folders(folder) if path not in taken] if finished_only or so_far else []
    for text, paths in (
        ("Left out, because not finished", left_out),
        ("Not finished, and looked at as far as they got", [run.path for run in runs if not run.finished]),
    ):
        if paths:
            names = (path.resolve().name if path == folder else str(path.relative_to(folder)) for path in paths)
            print(f"{text}: {', '.join(names)}.", file=sys.stderr)
    return runs


def _judged(runs: list[Any]) -> list[Any]:
    """Verdicts by those of the runs that are finished."""
    from paircredit.studies import judge_all

    return judge_all([run for run in runs if run.finished])


def figures(words: list[str]) -> int:
    options = parse_options(FiguresOptions, words, "paircredit figures")
    from paircredit.report import save_figures

    runs = _runs(options.folder, options.finished, options.so_far)
    for path in save_figures(runs, options.out or options.folder / "figures"):
        print(path)
    return 0


def claims(words: list[str]) -> int:
    options = parse_options(ClaimsOptions, words, "paircredit claims")
    verdicts = _judged(_runs(options.folder, options.finished))
    for verdict in verdicts:
        print(f"{verdict.id}  {verdict.status:<10}  {verdict.measured}")
    return 1 if any(verdict.status == "fails" for verdict in verdicts) else 0


def report(words: list[str]) -> int:
    options = parse_options(ReportOptions, words, "paircredit report")
    from paircredit.report import build_report
    from paircredit.runs.files import refuse_file, write_file

    refuse_file(options.out)
    runs = _runs(options.folder, options.finished, options.so_far)
    write_file(options.out, build_report(runs, _judged(runs)).encode())
    print(f"The report is {options.out}")
    return 0


def digest(words: list[str]) -> int:
    options = parse_options(DigestOptions, words, "paircredit digest")
    from paircredit.report import write_digest

    runs = _runs(options.folder, options.finished, options.so_far)
    for path in write_digest(runs, _judged(runs), options.out):
        print(path)
    return 0


def export(words: list[str]) -> int:
    options = parse_options(ExportOptions, words, "paircredit export")
    if options.format != "bsuite":
        raise unknown_name("export format", options.format, ("bsuite",))
    from paircredit.studies.bsuite.log import write_bsuite_logs

    paths = write_bsuite_logs(_runs(options.folder, finished_only=False), options.out)
    print(f"{len(paths)} logs are in {options.out}, a folder per method and repetition.")
    return 0
