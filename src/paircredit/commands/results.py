"""`paircredit figures`, `claims`, `report` and `digest`: what runs have to say."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import tyro

from paircredit.commands.options import parse_options
from paircredit.errors import PaircreditError


@dataclasses.dataclass(frozen=True)
class FiguresOptions:
    """Draw every figure and table that the runs in a folder allow, as SVG, PNG and CSV."""

    folder: tyro.conf.Positional[Path]
    """Folder with runs."""
    out: Path | None = None
    """New folder for the figures (default: FOLDER/figures)."""
    finished: bool = False
    """Leave out runs that are not finished and name them. Otherwise an unfinished run is refused."""
    so_far: bool = False
    """Show unfinished runs as far as they got, and name them. Claims are judged by finished runs alone."""


@dataclasses.dataclass(frozen=True)
class ClaimsOptions:
    """Judge the paper's claims by the runs in a folder: a verdict a line, exit code 1 when one fails."""

    folder: tyro.conf.Positional[Path]
    """Folder with runs."""
    finished: bool = False
    """Leave out runs that are not finished and name them. Otherwise an unfinished run is refused."""


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Write one self-contained HTML page: verdicts, figures, tables, provenance."""

    folder: tyro.conf.Positional[Path]
    """Folder with runs."""
    out: Path
    """The page; must not exist."""
    finished: bool = False
    """Leave out runs that are not finished and name them. Otherwise an unfinished run is refused."""
    so_far: bool = False
    """Show unfinished runs as far as they got, and name them. Claims are judged by finished runs alone."""


@dataclasses.dataclass(frozen=True)
class DigestOptions:
    """Write a small folder with all that is worth keeping of the runs in a large one."""

    folder: tyro.conf.Positional[Path]
    """Folder with runs."""
    out: Path
    """Folder of the digest; must not exist."""
    finished: bool = False
    """Leave out runs that are not finished and name them. Otherwise an unfinished run is refused."""
    so_far: bool = False
    """Show unfinished runs as far as they got, and name them. Claims are judged by finished runs alone."""


def _runs(folder: Path, finished_only: bool, so_far: bool = False) -> list[Any]:
    """The runs of a folder; those that are left out, or count as far as they got, are named."""
    from paircredit.experiments.spec import refuse_misshapen
    from paircredit.runs import find_runs, run_folders

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
    """`paircredit figures`."""
    options = parse_options(FiguresOptions, words, "paircredit figures")
    from paircredit.report import save_figures

    runs = _runs(options.folder, options.finished, options.so_far)
    for path in save_figures(runs, options.out or options.folder / "figures"):
        print(path)
    return 0


def claims(words: list[str]) -> int:
    """`paircredit claims`."""
    options = parse_options(ClaimsOptions, words, "paircredit claims")
    verdicts = _judged(_runs(options.folder, options.finished))
    for verdict in verdicts:
        print(f"{verdict.id}  {verdict.status:<10}  {verdict.measured}")
    return 1 if any(verdict.status == "fails" for verdict in verdicts) else 0


def report(words: list[str]) -> int:
    """`paircredit report`."""
    options = parse_options(ReportOptions, words, "paircredit report")
    from paircredit.report import build_report
    from paircredit.runs import write_file
    from paircredit.runs.files import refuse_file

    refuse_file(options.out)
    runs = _runs(options.folder, options.finished, options.so_far)
    write_file(options.out, build_report(runs, _judged(runs)).encode())
    print(f"The report is {options.out}")
    return 0


def digest(words: list[str]) -> int:
    """`paircredit digest`."""
    options = parse_options(DigestOptions, words, "paircredit digest")
    from paircredit.report import write_digest

    runs = _runs(options.folder, options.finished, options.so_far)
    for path in write_digest(runs, _judged(runs), options.out):
        print(path)
    return 0
