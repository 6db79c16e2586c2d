"""Compiled programs on disk, which the workers of a test session share and the next session finds.

What tests start as processes of their own compiles for itself: JAX writes a program in place, so a process that is
killed meanwhile leaves half of it, which JAX would never write anew. Here a program is renamed into place when it is
whole.
"""

from __future__ import annotations

import os
import shutil
import threading
from os import replace  # as it is now: some tests watch or stop changes of the disk, and mean those of the package
from pathlib import Path

import jax
from jax._src.lru_cache import LRUCache

MOST_BYTES = 2**30


def keep(folder: Path) -> None:
    """Look programs up in the folder, and put there what was compiled; one that has grown too large begins anew."""
    first = "PYTEST_XDIST_WORKER" not in os.environ
    if first and folder.is_dir() and sum(entry.stat().st_size for entry in os.scandir(folder)) > MOST_BYTES:
        shutil.rmtree(folder, ignore_errors=True)
    LRUCache.put = _put
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)  # tiny ones cost more to keep than to compile
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")  # else the folder is a part of every key


def _put(self: LRUCache, key: str, value: bytes) -> None:
    place = self.path / f"{key}-cache"  # JAX's name for it
    if not place.exists():
        new = self.path / f"{key}.{os.getpid()}-{threading.get_ident()}"
        new.write_bytes(value)
        replace(new, place)
