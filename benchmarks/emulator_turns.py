"""How many pools of emulators should step at a time? A rehearsal of training without a device and without learning.

    python benchmarks/emulator_turns.py [--groups 5] [--emulators 64] [--pause 3] [--rounds 3] [--json FILE]

Every group steps its pool and then pauses for so many milliseconds, as one does that hands what it has seen to a device
and waits for its actions. Steps a second: of all emulators in one pool, which is what a vector of them does by itself;
of the groups' pools without pauses; and with pauses, for every number of pools that may step at a time. Medians over
rounds, so that whatever else the machine does slows all of them down; cores are those that the program had. Needs the
extra `atari`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
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
) -> tuple[float, float]:
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
    return steps / seconds, cores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="pong")
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--emulators", type=int, default=64, help="of every group")
    parser.add_argument("--pause", type=float, default=3.0, help="milliseconds")
    parser.add_argument("--seconds", type=float, default=2.0, help="of every measurement")
    parser.add_argument("--rounds", type=int, default=3, help="in each of which everything is measured once")
    parser.add_argument("--niceness", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    env: Any = make_environment(f"atari/{options.game}", niceness=options.niceness)
    groups, size, pause = options.groups, options.emulators, options.pause / 1e3
    with contextlib.ExitStack() as stack:

        def opened(seeds: np.ndarray) -> Pool:
            pool: Pool = stack.enter_context(contextlib.closing(env.open(seeds)))
            pool.reset()
            return pool

        alone = [opened(np.arange(groups * size))]
        pools = [opened(size * group + np.arange(size)) for group in range(groups)]
        cases = [("one pool", alone, groups * size, 1, 0.0), ("groups, no pause", pools, size, groups, 0.0)]
        for count in range(1, groups + 1):
            chosen = " (training)" if count == pools_at_a_time([size] * groups) else ""
            cases.append((f"{count} at a time{chosen}", pools, size, count, pause))
        found: dict[str, list[tuple[float, float]]] = {name: [] for name, *_ in cases}
        for _ in range(options.rounds):
            for name, own, count, at_a_time, rest in cases:
                found[name].append(rehearse(own, count, env.spec.num_actions, at_a_time, rest, options.seconds))
    rows = []
    for name, rounds in found.items():
        steps, cores = (statistics.median(numbers) for numbers in zip(*rounds, strict=True))
        share = statistics.median([own / one for (own, _), (one, _) in zip(rounds, found["one pool"], strict=True)])
        rows.append(
            {"what": name, "steps_per_second": round(steps), "share": round(share, 3), "cores": round(cores, 2)}
        )
        print(f"{name:<26} {steps:8,.0f} steps/s {share:6.0%} of one pool {cores:6.2f} cores")
    if options.json:
        given = {name: value for name, value in vars(options).items() if name != "json"}
        options.json.write_text(
            json.dumps({"provenance": provenance(), "options": given, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
