"""The report is one file that holds everything and asks for nothing."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import pytest

import paircredit
from paircredit.report import build_report
from paircredit.report.page import inline_svg
from paircredit.results.exhibits import Verdict
from paircredit.runs import find_runs
from tests.exhibits import FIGURES, TABLES
from tests.made_up import write_all, write_evaluation, write_umbrella
from tests.sentences import refused

VERDICTS = [
    Verdict("U1", "Variance is (T−1)σ² & nothing else.", "Section 3", "holds", "It was 1.01 times that."),
    Verdict("D1", "Weights rise.", "Section 5", "fails", "They <i>fell</i> to 0.2."),
    Verdict("D5", "Everything is learned.", "Appendix", "not judged", "There are no runs."),
]
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Collects ids, attributes and text, and checks that elements are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open += [] if tag in VOID else [tag]
        self._note(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self._note(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def _note(self, tag, attrs):
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory):
    return write_all(tmp_path_factory.mktemp("runs") / "all")


@pytest.fixture(scope="module")
def html(runs) -> str:
    return build_report(runs, VERDICTS)


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def test_shows_every_verdict_before_all_figures(html, page):
    for verdict in VERDICTS:
        for text in (verdict.id, verdict.statement, verdict.where, verdict.measured):
            assert escape(text, quote=False) in html
        assert f'class="status {verdict.status.replace(" ", "-")}"' in html
    assert html.index('id="verdicts"') < html.index("<svg")
    text = " ".join(" ".join(page.texts).split())
    assert "Of 3 claims, 1 holds, 1 fails and 1 is not judged" in text


def test_shows_every_figure_with_its_caption_and_every_table(html, page, runs):
    assert html.count("<svg") == len(FIGURES)
    for spec in FIGURES.values():
        assert f'id="{spec.name}-svg"' in html
        assert spec.title in page.texts and spec.caption in page.texts
    for spec in TABLES.values():
        assert f"{spec.name}-numbers" in page.ids
        for row in spec.make(runs).texts():
            assert set(row) <= set(page.texts)


def test_refers_to_nothing_outside_itself(html, page):
    for tag, name, value in page.attributes:
        if name in ("src", "href", "xlink:href", "srcset", "action", "poster", "data"):
            assert value.startswith(("#", "data:")), f"<{tag} {name}={value[:80]}>"
        assert not re.search(r"url\((?!#)", value)
        assert "http" not in value or name.startswith("xmlns"), f"<{tag} {name}={value[:80]}>"
        assert not name.startswith("on")
    styles = re.findall(r"<style[^>]*>(.*?)</style>", html, flags=re.DOTALL)
    assert len(styles) > len(FIGURES)
    for style in styles:
        assert "url(" not in style and "@import" not in style and "http" not in style
    assert "<script" not in html and "<iframe" not in html
    assert "default-src 'none'" in html


def test_ids_are_unique_and_every_reference_within_the_page_has_its_target(html, page):
    assert len(set(page.ids)) == len(page.ids)
    references = set(re.findall(r"url\(#([^)]+)\)", html)) | set(re.findall(r'href="#([^"]+)"', html))
    assert len(references) > 100
    assert references <= set(page.ids)


def test_styles_of_a_figure_stay_in_it(html):
    assert "*{stroke-linejoin" in html
    assert not re.search(r"(?<! )\*\{stroke-linejoin", html)


def test_says_where_numbers_come_from(html, page, runs):
    origin = runs[0].manifest["provenance"]
    text = " ".join(page.texts)
    assert {run.name for run in runs} <= set(page.texts)
    assert f"paircredit {paircredit.__version__}" in text and f"jax {origin['versions']['jax']}" in text
    assert origin["commit"] in text
    assert "0–2" in page.texts and "0–1, for each of the masks 0, 4, 8" in page.texts and "1,500" in page.texts


def test_the_same_runs_give_the_same_report(tmp_path):
    write_umbrella(tmp_path)
    assert build_report(find_runs(tmp_path), VERDICTS) == build_report(find_runs(tmp_path), VERDICTS)


def test_says_what_could_not_be_drawn(tmp_path):
    write_umbrella(tmp_path)
    html = build_report(find_runs(tmp_path), VERDICTS)
    assert html.count("<svg") == 1
    assert "Not drawn" in html and "DAG: learning curves" in html
    assert "Umbrella: variance" not in html[html.index("Not drawn") : html.index('id="numbers"')]


def test_needs_no_runs_and_no_verdicts():
    html = build_report([], [])
    assert "Of 0 claims" in html and "<svg" not in html and "There are no runs for tables." in html


def test_damaged_metrics_are_refused(tmp_path):
    write_evaluation(tmp_path, 4, "regular", (100.0, 200.0))
    found = find_runs(tmp_path)
    (tmp_path / "dag4-train-regular" / "metrics.jsonl").write_bytes(b"{}\n")
    with refused("metrics.jsonl", "damaged"):
        build_report(found, VERDICTS)


def test_inline_svg_is_tied_to_its_figure():
    svg = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg width="9pt" height="8pt" viewBox="0 0 9 8"><metadata>m</metadata>'
        '<style type="text/css">*{a: b}</style><path id="p1"/>'
        '<g id="g1" clip-path="url(#p1)"><use xlink:href="#p1"/></g></svg>'
    )
    assert inline_svg(svg, "fig", 'a "b"') == (
        '<svg viewBox="0 0 9 8" id="fig-svg" role="img" aria-label="a &#34;b&#34;">'
        '<style type="text/css">#fig-svg *{a: b}</style><path id="fig-p1"/>'
        '<g clip-path="url(#fig-p1)"><use xlink:href="#fig-p1"/></g></svg>'
    )
