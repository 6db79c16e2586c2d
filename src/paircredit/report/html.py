"""The report: one HTML file that holds everything it shows and asks the network for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from paircredit.analysis.claims import Verdict
from paircredit.figures.registry import FIGURES
from paircredit.figures.render import to_svg
from paircredit.figures.table_registry import TABLES
from paircredit.report.inline_svg import inline_svg
from paircredit.report.provenance import first_and_last_day, sources
from paircredit.runs.read import Run


def build_report(runs: Sequence[Run], verdicts: Sequence[Verdict]) -> str:
    """The report as HTML.

    The same runs and verdicts give the same text.

    Args:
        runs: what figures, tables and provenance are of.
        verdicts: what became of the paper's claims.

    Raises:
        PaircreditError: a run is damaged.
    """
    figures, missing = [], []
    for spec in FIGURES:
        figure = spec.draw(runs)
        if figure is None:
            missing.append(spec.title)
        else:
            figures.append((spec, inline_svg(to_svg(figure), spec.name, spec.title)))
    tables = [(spec, table) for spec in TABLES if (table := spec.build(runs)) is not None]
    rows, versions = sources(runs)
    return (
        _template_environment()
        .get_template("report.html.j2")
        .render(
            verdicts=verdicts,
            counts=Counter(verdict.status for verdict in verdicts),
            figures=figures,
            missing=missing,
            tables=tables,
            sources=rows,
            versions=versions,
            days=first_and_last_day(runs) if runs else None,
        )
    )


def _template_environment() -> Environment:
    loader = PackageLoader("paircredit", "report")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
