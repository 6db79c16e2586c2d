"""The commands; options from words: words that cannot be understood are answered with one sentence.

Tyro says what is wrong in a box, which is read back here; its hook for errors is in a module that calls itself private.
A box that is drawn otherwise still ends up in the sentence, as a whole.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from typing import Any

import tyro

from paircredit.errors import PaircreditError


def parse_options(options: Any, words: Sequence[str], prog: str, default: Any = None) -> Any:
    """Options of a dataclass from the words after a command, starting from the default; others are refused."""
    given = {} if default is None else {"default": default}
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = tyro.cli(options, args=list(words), prog=prog, **given)
    except SystemExit as stop:
        if not stop.code:  # help was asked for, and given
            raise
        raise PaircreditError(_sentence(said.getvalue(), prog)) from None
    print(said.getvalue(), end="", file=sys.stderr)
    return parsed


def _sentence(box: str, prog: str) -> str:
    """What a box of tyro's says: a title, then paragraphs between rules; names are indented by 4 and help by 8."""
    lines = [re.sub(r"\x1b\[[\d;]*m|[│╭╮╰╯]", "", line).rstrip() for line in box.splitlines()][1:]
    text = "\n".join(line for line in lines if not line.startswith(" " * 9))
    paragraphs = [_text_and_names(part) for part in re.split(r"(?m)^\s*[-─]{4,}$", text) if part.strip()]
    if not paragraphs:
        return f"{' '.join(box.split()).rstrip('.')}; see `{prog} --help`."
    message, names = paragraphs[0]
    message = message.replace(". Expected", "; expected")
    message = re.sub(r"could not convert string to float: ('.*?')", r"\1 is not a number", message)
    message = re.sub(r"invalid literal for int\(\) with base 10: '(.*?)'", _about_a_whole_number, message)
    if message.startswith("Missing from "):
        message = f"{message} {names}"
    for title, others in paragraphs:
        if title.startswith("Perhaps you meant") and others:
            message = f"{message} (did you mean {others}?)"
    return f"{message[:1].upper()}{message[1:].rstrip('.')}; see `{prog} --help`."


def _text_and_names(paragraph: str) -> tuple[str, str]:
    lines = [line for line in paragraph.splitlines() if line.strip()]
    names = [line.strip() for line in lines if line.startswith(" " * 5)]
    return " ".join(line.strip() for line in lines if not line.startswith(" " * 5)), ", ".join(dict.fromkeys(names))


def _about_a_whole_number(found: re.Match[str]) -> str:
    word = found[1]
    with contextlib.suppress(ValueError, OverflowError):
        if (number := float(word)) == int(number):
            return f"'{word}' is to be written as {int(number)}"
    return f"'{word}' is not a whole number"
