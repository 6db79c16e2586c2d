"""The command line: finds the command and turns problems into sentences and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import paircredit
from paircredit.errors import PaircreditError, unknown_name
from paircredit.interrupts import INTERRUPTED, answered

USAGE = """usage: paircredit COMMAND ...

Learned pairwise weights for temporal credit assignment.

  list                        environments, methods, presets and experiments
  train ENV METHOD            train a method on an environment
  reproduce EXPERIMENT        make the runs of an experiment of the paper
  queue                       what the reproduction still asks of a GPU; --minutes makes it from the top
  resume DIR                  go on with a run or an experiment that was stopped
  figures DIR                 draw the figures that the runs in DIR allow
  claims DIR                  judge the paper's claims by the runs in DIR
  report DIR --out FILE       write one self-contained HTML page about them
  watch RUN                   an episode of Key-to-Door as an animated GIF, with the credit of every action
  digest DIR --out FOLDER     keep what is worth keeping: tables, curves, weights, figures, provenance
  export bsuite DIR --out FOLDER    write bsuite's own CSV logs of the runs on its domains

`paircredit COMMAND --help` tells more. Exit codes: 0 all well, 1 a claim fails, 2 the input cannot be used."""

COMMANDS = {
    "list": ("listing", "run"),
    "train": ("runs", "train"),
    "reproduce": ("runs", "reproduce"),
    "queue": ("queue", "run"),
    "resume": ("runs", "resume"),
    "figures": ("results", "figures"),
    "claims": ("results", "claims"),
    "report": ("results", "report"),
    "digest": ("results", "digest"),
    "export": ("results", "export"),
    "watch": ("watch", "run"),
}
"""Where in `paircredit.commands` each is; a module is imported when its command is given."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; problems with the input become one sentence and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(words)
    except PaircreditError as error:
        print(f"paircredit: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        reason = str(error).rstrip(".")
        print(
            f"paircredit: There is not enough memory{': ' * bool(reason)}{reason}. Fewer members, episodes or steps "
            "need less.",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"paircredit: interrupted{'; ' * bool(str(interrupt))}{interrupt}.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"paircredit {paircredit.__version__}")
        return 0
    if words[0] not in COMMANDS:
        raise unknown_name("command", words[0], COMMANDS)
    module, function = COMMANDS[words[0]]
    command: Callable[[list[str]], int] = getattr(import_module(f"paircredit.commands.{module}"), function)
    return command(words[1:])


def entry() -> None:
    """Run the console script. Whoever asks it to end is answered as one who presses Ctrl-C: nothing is lost."""
    with answered():
        code = main()
    sys.exit(code)
