"""How many pools of emulators should step at a time? A rehearsal of training without a device and without learning.

    python benchmarks/emulator_turns.py [--groups 5] [--emulators 64] [--pause 3] [--seconds 3] [--json FILE]

Every group steps its pool and then pauses for so many milliseconds, as one does that hands what it has seen to a device
and waits for its actions. Steps a second: of all emulators in one pool, which is what a vector of them does by itself;
of the groups' pools without pauses; and with pauses, for every number of pools that may step at a time. Cores are those
that the program had. Needs the extra `atari`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.envs import make_environment
from paircredit.envs.hosted import Pool
from paircredit.runs.provenance import provenance
from paircredit.training.turns import Turns, pools_at_a_time

WARM_UP = 0.5
"""Seconds that do not count."""


def rehearse(
    pools: Sequence[Pool], size: int, num_actions: int, at_a_time: int, pause: float, seconds: float
) -> dict[str, float]:
    """Steps a second and cores of pools that take turns."""
    turns, actions = Turns(at_a_time), np.random.default_rng(0).integers(num_actions, size=size, dtype=np.int32)
    begin = time.perf_counter() + WARM_UP
    end = begin + seconds

    def drive(pool: Pool) -> int:
        counted = 0
        while (now := time.perf_counter()) < end:
            with turns.taken():
                pool.send(actions)
                pool.receive()
            time.sleep(pause)
            counted += now >= begin
        return counted

    with ThreadPoolExecutor(len(pools)) as executor:
        driven = [executor.submit(drive, pool) for pool in pools]
        time.sleep(WARM_UP)
        worked, watched = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        cores = (time.process_time() - worked) / (time.perf_counter() - watched)
        steps = size * sum(future.result() for future in driven)
    return {"steps_per_second": round(steps / seconds), "cores": round(cores, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="pong")
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--emulators", type=int, default=64, help="of every group")
    parser.add_argument("--pause", type=float, default=3.0, help="milliseconds")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--niceness", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    env: Any = make_environment(f"atari/{options.game}", niceness=options.niceness)
    groups, size = options.groups, options.emulators
    rows: list[dict[str, Any]] = []

    def measure(what: str, pools: Sequence[Pool], count: int, at_a_time: int, pause: float) -> None:
        found = rehearse(pools, count, env.spec.num_actions, at_a_time, pause, options.seconds)
        rows.append({"what": what, "at_a_time": at_a_time, "pause": pause, **found})
        share = found["steps_per_second"] / rows[0]["steps_per_second"]
        print(
            f"{what:<28} {found['steps_per_second']:>8,} steps/s {share:6.0%} {found['cores']:6.2f} cores", flush=True
        )

    with contextlib.closing(env.open(np.arange(groups * size))) as pool:
        pool.reset()
        measure("one pool", [pool], groups * size, 1, 0.0)
    with contextlib.ExitStack() as stack:
        opened = [env.open(size * group + np.arange(size)) for group in range(groups)]
        for own in opened:
            stack.callback(own.close)
            own.reset()
        measure("groups, no pause", opened, size, groups, 0.0)
        chosen = pools_at_a_time([size] * groups)
        for count in range(1, groups + 1):
            note = " (chosen)" if count == chosen else ""
            measure(f"{count} at a time{note}", opened, size, count, options.pause / 1e3)
    if options.json:
        given = {name: value for name, value in vars(options).items() if name != "json"}
        options.json.write_text(
            json.dumps({"provenance": provenance(), "options": given, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
