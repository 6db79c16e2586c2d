"""Options from words; words that cannot be understood are answered with one sentence.

Tyro says what is wrong in a box, which is read back here. It can also hand the error over as data
(`tyro._errors.on_parse_error`), but that module calls itself private and liable to change in any release, and does not
exist before 1.0.16; a box that is drawn otherwise still ends up in the sentence, as a whole.
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

_NOT_WHOLE = re.compile(r"invalid literal for int\(\) with base 10: '(.*?)'")
_NO_NUMBER = re.compile(r"could not convert string to float: '(.*?)'")
_LISTS = ("Missing from ", "Perhaps you meant")
"""What the headings of lists of options begin with."""


def parse_options(options: Any, words: Sequence[str], prog: str, default: Any = None) -> Any:
    """Options of a dataclass from the words after a command.

    Args:
        options: the dataclass.
        words: what was typed.
        prog: the command.
        default: options to start from.

    Raises:
        PaircreditError: the words are not such options.
    """
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
    """What a box of tyro's says: a title, then paragraphs between rules; names in lists are indented by four."""
    lines = [re.sub(r"\x1b\[[\d;]*m|[│╭╮╰╯]", "", line).rstrip() for line in box.splitlines()]
    paragraphs: list[list[str]] = [[]]
    for line in lines[1:]:
        if re.fullmatch(r"\s*[-─]{4,}", line):
            paragraphs.append([])
        elif line.strip():
            paragraphs[-1].append(line)
    paragraphs = [paragraph for paragraph in paragraphs if paragraph]
    if not paragraphs:
        return f"{' '.join(box.split()).rstrip('.')}; see `{prog} --help`."
    message = _outermost(paragraphs[0]).replace(". Expected", "; expected")
    message = _NO_NUMBER.sub(r"'\1' is not a number", _NOT_WHOLE.sub(_about_a_whole_number, message))
    for paragraph in paragraphs:
        if _outermost(paragraph).startswith(_LISTS) and (names := _names(paragraph)):
            listed = ", ".join(names)
            message = f"{message} {listed}" if paragraph is paragraphs[0] else f"{message} (did you mean {listed}?)"
    return f"{message[:1].upper()}{message[1:].rstrip('.')}; see `{prog} --help`."


def _about_a_whole_number(found: re.Match[str]) -> str:
    word = found[1]
    with contextlib.suppress(ValueError, OverflowError):
        if (number := float(word)) == int(number):
            return f"'{word}' is to be written as {int(number)}"
    return f"'{word}' is not a whole number"


def _outermost(paragraph: list[str]) -> str:
    """The lines that are indented least, as one."""
    least = min(map(_indent, paragraph))
    return " ".join(line.strip() for line in paragraph if _indent(line) == least)


def _names(paragraph: list[str]) -> list[str]:
    least = min(map(_indent, paragraph))
    return list(dict.fromkeys(line.strip() for line in paragraph if _indent(line) == least + 4))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
