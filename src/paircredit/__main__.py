"""`python -m paircredit`."""

from paircredit.cli import entry

entry()
