"""Where should emulators live, and how many pools should step at a time? A rehearsal of training without a device.

    python -m tools.benchmarks.emulator_turns [--groups 4] [--emulators 16] [--hold 0.5] [--act 1]
        [--learn 4] [--json FILE]

Every group steps its pool, then holds Python's lock for this many milliseconds, as one does that hands programs to a
device, and waits until the device, which works for one group at a time, has acted; after every twentieth step it learns
as well. Steps a second: of all emulators in one pool, which is what a vector of them does by itself; and of the groups'
pools, for every number of them that may step at a time, once in threads of this process and once in processes of their
own, as in training. Medians over rounds, so that whatever else the machine does slows all of them down. Needs the extra
`atari`, and a system that hands open files to other processes (POSIX).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import itertools
import json
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from paircredit.envs import make_environment
from paircredit.envs.hosted import Pool, Turns, pools_at_a_time
from paircredit.runs.manifest import provenance

WARM_UP = 0.3
"""Seconds that do not count."""
SEGMENT = 20
"""Steps between two updates."""
_HOLDING = ctypes.PyDLL(None)
"""The C library, called without letting go of Python's lock."""


@dataclasses.dataclass(frozen=True)
class Pretended:
    """What is done for a group instead of computing, in seconds.

    Attributes:
        hold: handing a program over, with Python's lock.
        act: of the device, after every step.
        learn: of the device, after every twentieth.
    """

    hold: float
    act: float
    learn: float


def rehearse(
    pools: Sequence[Pool], size: int, seconds: float, turns: Turns | None = None, pretended: Pretended | None = None
) -> float:
    """Steps a second of pools that are driven side by side; with turns if they take none by themselves."""
    actions = np.zeros(size, dtype=np.int32)
    begin = time.perf_counter() + WARM_UP
    end = begin + seconds

    def drive(pool: Pool) -> int:
        counted = 0
        for step in itertools.count(1):
            if (now := time.perf_counter()) >= end:
                break
            with turns.taken() if turns else contextlib.nullcontext():
                pool.send(actions)
                pool.receive()
            if pretended:
                learns = step % SEGMENT == 0
                _HOLDING.usleep(round(1e6 * pretended.hold))
                device.submit(time.sleep, pretended.act + learns * pretended.learn).result()
            counted += now >= begin
        return counted

    with ThreadPoolExecutor(1) as device, ThreadPoolExecutor(len(pools)) as executor:
        return size * sum(executor.map(drive, pools)) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="pong")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--emulators", type=int, default=16, help="of every group")
    parser.add_argument("--hold", type=float, default=0.5, help="milliseconds with Python's lock, a step")
    parser.add_argument("--act", type=float, default=1.0, help="milliseconds of the device, a step")
    parser.add_argument("--learn", type=float, default=4.0, help="milliseconds of the device, an update")
    parser.add_argument("--seconds", type=float, default=2.0, help="of every measurement")
    parser.add_argument("--rounds", type=int, default=3, help="in each of which everything is measured once")
    parser.add_argument("--niceness", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    env: Any = make_environment(f"atari/{options.game}", niceness=options.niceness, rollouts="host")
    groups, size = options.groups, options.emulators
    found: dict[tuple[str, int], list[float]] = {}
    with contextlib.ExitStack() as stack:

        def opened(seeds: np.ndarray, turns: Turns | None = None) -> Pool:
            pool: Pool = stack.enter_context(contextlib.closing(env.open(seeds, turns)))
            return pool

        here, there = (stack.enter_context(contextlib.closing(Turns(1))) for _ in range(2))
        seeds = np.arange(groups * size).reshape(groups, size)
        processes, threads = [opened(own, there) for own in seeds], [opened(own) for own in seeds]
        together = [opened(seeds.reshape(-1))]
        for pool in (*processes, *threads, *together):
            pool.reset()
        pretended = Pretended(options.hold / 1e3, options.act / 1e3, options.learn / 1e3)
        for _ in range(options.rounds):
            found.setdefault(("one pool", 1), []).append(rehearse(together, seeds.size, options.seconds))
            for count in range(1, groups + 1):
                rates = {
                    "threads": rehearse(threads, size, options.seconds, here, pretended),
                    "processes": rehearse(processes, size, options.seconds, None, pretended),
                }
                for where, rate in rates.items():
                    found.setdefault((where, count), []).append(rate)
                for turns in (here, there):
                    turns.pass_on()  # one more at a time
            for turns in (here, there):
                for _ in range(groups):
                    os.read(turns.ends[0], 1)
    rows = []
    for (where, count), rates in found.items():
        share = statistics.median(own / one for own, one in zip(rates, found["one pool", 1], strict=True))
        rate = statistics.median(rates)
        rows.append(
            {"where": where, "at_a_time": count, "steps_per_second": round(rate), "share_of_one_pool": round(share, 3)}
        )
        training = where == "processes" and count == pools_at_a_time(groups)
        print(f"{where:<10} {count:2} at a time {rate:8,.0f} steps/s {share:6.0%}{'  as in training' * training}")
    if options.json:
        chosen = {name: value for name, value in vars(options).items() if name != "json"}
        options.json.write_text(
            json.dumps({"provenance": provenance(), "options": chosen, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
