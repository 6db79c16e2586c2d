"""Where numbers come from: versions, device, commit."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import jax

import paircredit

PACKAGES = ("jax", "jaxlib", "numpy", "equinox")
OF_ENVIRONMENTS = {"ale_py": "ale-py", "gymnasium": "gymnasium", "bsuite": "bsuite"}
"""Modules that some environments are made of, and what their packages are called."""


def provenance() -> dict[str, object]:
    """What somebody needs to know to get the same numbers; versions also of what environments have imported so far."""
    device, imported = jax.devices()[0], [name for module, name in OF_ENVIRONMENTS.items() if module in sys.modules]
    return {
        "paircredit": paircredit.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {package: metadata.version(package) for package in (*PACKAGES, *imported)},
        "device": {
            "platform": device.platform,
            "kind": device.device_kind,
            "count": jax.device_count(),
            "cpu_cores": os.cpu_count(),
            "machine": platform.machine(),
        },
    }


@functools.cache
def _commit() -> str:
    """The commit the package runs from, with `+changes` where the tree differs from it.

    A copy that was taken to another machine without its history says it in the variable PAIRCREDIT_COMMIT, which is
    believed. Where there is neither, it is `unknown`.
    """
    if told := os.environ.get("PAIRCREDIT_COMMIT"):
        return told

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(Path(paircredit.__file__).parent), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
