"""The report: one HTML file that holds everything it shows and asks the network for nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from paircredit.results.charts import to_svg
from paircredit.results.exhibits import Verdict
from paircredit.runs.read import Run
from paircredit.studies import STUDIES


def build_report(runs: Sequence[Run], verdicts: Sequence[Verdict]) -> str:
    """The report as HTML; the same runs and verdicts give the same text."""
    figures, missing, tables = [], [], []
    for study in STUDIES:
        for exhibit in study.figures:
            figure = exhibit.make(runs)
            if figure is None:
                missing.append(exhibit.title)
            else:
                figures.append((exhibit, inline_svg(to_svg(figure), exhibit.name, exhibit.title)))
        tables += [(exhibit, table) for exhibit in study.tables if (table := exhibit.make(runs)) is not None]
    rows, versions = sources(runs)
    days = sorted(run.manifest["started"][:10] for run in runs)
    loader = PackageLoader("paircredit", "report")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return pages.get_template("report.html.j2").render(
        verdicts=verdicts,
        counts=Counter(verdict.status for verdict in verdicts),
        figures=figures,
        missing=missing,
        tables=tables,
        sources=rows,
        versions=versions,
        days=(days[0], days[-1]) if days else None,
    )


def inline_svg(svg: str, name: str, label: str) -> Markup:
    """An SVG of matplotlib as an element of an HTML page, in which the name is unique; screen readers say the label.

    Ids are global to a page, and so are style sheets: both are tied to this figure, and ids that nothing refers to are
    left out. The size is left to the page.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    wanted = set(re.findall(r'href="#([^"]+)"', element)) | set(re.findall(r"url\(#([^)]+)\)", element))
    element = re.sub(r'\sid="([^"]+)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in wanted else "", element)
    element = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', element)
    element = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", element)
    element = element.replace('<style type="text/css">*{', f'<style type="text/css">#{name}-svg *{{')
    opening, rest = element.split(">", 1)
    opening = re.sub(r'\s(?:width|height)="[^"]*"', "", opening)
    return Markup(f'{opening} id="{name}-svg" role="img" aria-label="{escape(label)}">{rest}')


def sources(runs: Sequence[Run]) -> tuple[list[dict[str, Any]], list[str]]:
    """A row per run, with None where nothing is trained, or it is not finished; and the distinct sets of versions."""
    sets: dict[str, int] = {}
    rows = []
    for run in runs:
        origin = run.manifest["provenance"]
        rows.append(
            {
                "name": run.name,
                "what": run.spec.get("method", run.kind),
                "seeds": _seeds(run.spec),
                "updates": run.spec.get("updates"),
                "seconds": float(run.manifest["seconds"]) if run.finished else None,
                "device": _device(origin["device"]),
                "commit": origin["commit"],
                "versions": sets.setdefault(_versions(origin), len(sets) + 1),
            }
        )
    return rows, list(sets)


def _seeds(spec: dict[str, Any]) -> str:
    seeds = spec.get("seeds") or ([spec["seed"]] if "seed" in spec else [])
    if not seeds:
        return "–"
    first, last = min(seeds), max(seeds)
    whole = len(seeds) > 1 and sorted(seeds) == list(range(first, last + 1))
    text = f"{first}–{last}" if whole else ", ".join(str(seed) for seed in seeds)
    masks = spec.get("value_masks")
    return f"{text}, for each of the masks {', '.join(str(mask) for mask in masks)}" if masks else text


def _device(device: dict[str, Any]) -> str:
    if device["platform"] == "cpu":
        return f"CPU, {device['cpu_cores']} cores, {device['machine']}"
    return f"{device['count']} × {device['kind']}"


def _versions(origin: dict[str, Any]) -> str:
    """With the whole commit, which is too long for a row."""
    packages = {"paircredit": origin["paircredit"], "Python": origin["python"], **origin["versions"]}
    return ", ".join(f"{name} {version}" for name, version in packages.items()) + f"; commit {origin['commit']}"
