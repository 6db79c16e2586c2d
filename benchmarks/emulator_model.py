"""How many pools of emulators should step at a time? A model of a machine with many cores, for those without one.

    python benchmarks/emulator_model.py [--cores 16] [--members 16] [--groups 4 5] [--games pong] [--measure]

Emulators of a pool are due together; each of its threads takes the next one as soon as it has a core, and those without
a core queue up. A group whose emulators are all done needs Python's lock, then the device, which acts for one group at
a time and learns for it after every twentieth step. Printed is the share of the rate that one pool of all emulators has
by itself in the same model. Times of the device are those measured on an H200 (results/speed); `--measure` plays at
random on this machine (which needs the extra `atari`) to see how much longer beginning a game takes than a step, and
how often that happens.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import random
import statistics
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from paircredit.envs import make_environment
from paircredit.envs.turns import pools_at_a_time
from paircredit.runs.provenance import provenance

PIECE, ACTORS = 20, 16
"""Steps between two updates, and emulators of a member."""
TOUCH = 0.05
"""Milliseconds for which Python's lock is held at least."""
BEGINS = {"pong": 1 / 923, "breakout": 1 / 174}
"""How often a step begins a game, in random play; as `--measure` has found."""
DEVICE = {"a2c": (4.0, 0.0), "meta-pwtd": (4.5, 7.2)}
"""Milliseconds of learning and of the metagradient, of four members (results/speed/h200-atari-turns.json)."""


@dataclass(frozen=True)
class Machine:
    """All times are milliseconds.

    Attributes:
        cores: for emulators.
        step: of an emulator, on average; it varies by `spread` of it in both directions.
        spread: see `step`.
        begin: of a game.
        begins: how often a step is one that begins a game.
        wake: until a thread that has slept runs.
        hold: of Python's lock, to hand over what follows a step.
        act: of the device, for a step of four members.
        learn: of the device, for an update of four members.
    """

    cores: int = 16
    step: float = 0.5
    spread: float = 0.3
    begin: float = 5.5
    begins: float = 0.0
    wake: float = 0.1
    hold: float = 0.8
    act: float = 1.0
    learn: float = 4.0


class Clock:
    """What happens when."""

    def __init__(self) -> None:
        self.now, self._due, self._order = 0.0, [], itertools.count()

    def after(self, time: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + time, next(self._order), what))

    def run(self, until: float) -> None:
        while self._due[0][0] < until:
            self.now, _, what = heapq.heappop(self._due)
            what()


class Servers:
    """Some that do one thing at a time each; who finds none free queues up."""

    def __init__(self, clock: Clock, count: int) -> None:
        self._clock, self._free, self._queue = clock, count, deque()

    def serve(self, time: float, then: Callable[[], None]) -> None:
        self._queue.append((time, then))
        self._go()

    def _go(self) -> None:
        while self._free and self._queue:
            self._free -= 1
            time, then = self._queue.popleft()
            self._clock.after(time, lambda then=then: self._done(then))

    def _done(self, then: Callable[[], None]) -> None:
        self._free += 1
        then()
        self._go()


def rate(
    machine: Machine, groups: int, emulators: int, at_a_time: int, alone: bool = False, threads: bool = False
) -> float:
    """Steps a second of groups.

    Args:
        machine: where they are.
        groups: how many.
        emulators: of each.
        at_a_time: pools that may step.
        alone: nobody acts or learns, the next step follows at once.
        threads: emulators are in threads of the training's process, where Python's lock is needed to begin a step and
            to pass a turn on; and not in processes of their own.
    """
    draw, clock = random.Random(0), Clock()
    cores, lock, device = Servers(clock, machine.cores), Servers(clock, 1), Servers(clock, 1)
    free, waiting, done, share = at_a_time, deque(), [0] * groups, emulators / (4 * ACTORS)

    def duration() -> float:
        if draw.random() < machine.begins:
            return machine.begin
        return machine.step * (1 + machine.spread * (2 * draw.random() - 1))

    def with_lock(then: Callable[[], None]) -> None:
        if threads:
            clock.after(machine.wake, lambda: lock.serve(TOUCH, then))
        else:
            then()

    def ask(group: int) -> None:
        nonlocal free
        if free:
            free -= 1
            with_lock(lambda: clock.after(machine.wake, lambda: step(group)))
        else:
            waiting.append(group)

    def step(group: int) -> None:
        left = {"due": emulators, "running": emulators}

        def thread() -> None:
            if left["due"]:
                left["due"] -= 1
                cores.serve(duration(), lambda: (emulated(), thread()))

        def emulated() -> None:
            left["running"] -= 1
            if not left["running"]:
                with_lock(lambda: stepped(group))

        for _ in range(min(machine.cores, emulators)):
            clock.after(machine.wake, thread)

    def stepped(group: int) -> None:
        nonlocal free
        free += 1
        done[group] += 1
        if waiting:
            ask(waiting.popleft())
        if alone:
            ask(group)
        else:
            lock.serve(machine.hold, lambda: device.serve(device_time(group), lambda: ask(group)))

    def device_time(group: int) -> float:
        learns = done[group] % PIECE == 0
        return machine.wake + share * (machine.act + learns * machine.learn)

    for group in range(groups):
        ask(group)
    clock.run(500.0)  # milliseconds that do not count
    before = sum(done)
    clock.run(8500.0)
    return emulators * (sum(done) - before) / 8.0


def measured(game: str, steps: int = 12_000) -> dict[str, float]:
    """Milliseconds of a step and of one that begins a game, and how often the second happens, in random play."""
    env, draw, taken = make_environment(f"atari/{game}", rollouts="host"), np.random.default_rng(0), ([], [])
    with closing(env.open(np.zeros(1, dtype=np.int64))) as pool:
        raw = pool.reset()
        for _ in range(steps):
            begins = bool(raw.terminated[0] | raw.truncated[0])
            began = time.perf_counter()
            pool.send(draw.integers(env.spec.num_actions, size=1))
            raw = pool.receive()
            taken[begins].append(1e3 * (time.perf_counter() - began))
    step, begin = (statistics.median(own) for own in taken)
    return {"step": step, "begin": begin, "begins": len(taken[1]) / steps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--groups", type=int, nargs="+", default=[4, 5])
    parser.add_argument("--games", choices=BEGINS, nargs="+", default=list(BEGINS))
    parser.add_argument("--hold", type=float, nargs="+", default=[0.8, 1.6], help="milliseconds")
    parser.add_argument("--wake", type=float, default=0.1, help="milliseconds")
    parser.add_argument("--measure", action="store_true", help="what beginning a game takes, on this machine")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, seen = [], {game: measured(game) for game in options.games if options.measure}
    for game, own in seen.items():
        often = f"every {1 / own['begins']:.0f} steps"
        print(f"{game}: a step takes {own['step']:.2f} ms, beginning a game {own['begin']:.2f}, {often}")
    for game, (method, device) in itertools.product(options.games, DEVICE.items()):
        machine = Machine(cores=options.cores, begins=BEGINS[game], wake=options.wake, learn=sum(device))
        emulators = ACTORS * options.members
        one = rate(machine, 1, emulators, 1, alone=True)
        print(f"{game}, {method}: one pool of {emulators} makes {one:,.0f} steps/s by itself")
        for groups, hold, threads in itertools.product(options.groups, options.hold, (False, True)):
            own = replace(machine, hold=hold)
            found = {
                count: rate(own, groups, emulators // groups, count, threads=threads) / one
                for count in range(1, groups + 1)
            }
            where = "threads" if threads else "processes"
            chosen = pools_at_a_time(groups)
            shares = "  ".join(f"{count}{'*' * (count == chosen)}: {share:4.0%}" for count, share in found.items())
            print(f"  {groups} groups, lock held for {hold} ms, {where:<9}  {shares}")
            rows.append(
                {"game": game, "method": method, "groups": groups, "where": where, "machine": asdict(own)}
                | {"shares": found}
            )
    print("Shares by pools that step at a time; *: as many as in training.")
    if options.json:
        written = {"provenance": provenance(), "measured": seen, "rows": rows}
        options.json.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
