"""SVG files made fit to stand beside each other inside one HTML page."""

from __future__ import annotations

import re

from markupsafe import Markup, escape


def inline_svg(svg: str, name: str, label: str) -> Markup:
    """An SVG of matplotlib as an element of an HTML page.

    Ids are global to a page, and so are style sheets: both are tied to this figure, and ids that nothing refers to are
    left out. The size is left to the page.

    Args:
        svg: the file's content.
        name: of the figure, unique in the page.
        label: what screen readers say.
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
