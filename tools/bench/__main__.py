"""How fast training is on this machine, as a table and as JSON.

Call it from the repository's root: python -m tools.bench --help
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paircredit.commands import parse_options
from paircredit.commands.runs import refuse_another_game
from paircredit.errors import PaircreditError

PROGRAM = "python -m tools.bench"
USUAL = ("a2c", "h-pwr", "meta-pwr", "meta-pwtd")
"""Methods that are timed where none is named, as far as they can be trained there."""
GROWTH = {
    "members": (1, 2, 5, 10, 20, 40),
    "episodes": (4, 8, 16, 32),
    "apple_steps": (30, 90, 210),
    "pair_width": (64, 128, 256, 512),
}
"""Sizes that `--growth` tries, one at a time."""
_SHOWN_OPERATIONS = 12


@dataclasses.dataclass(frozen=True)
class BenchOptions:
    """Time training: frames per second, parts of an update, memory, compilation."""

    methods: tuple[str, ...] | None = None
    """Methods to time; the first is what the others are compared with. Left out: those of a2c, h-pwr, meta-pwr and
    meta-pwtd that can be trained there."""
    env: str = "key-to-door"
    """Name of the environment."""
    preset: str = "default"
    """Preset of the methods."""
    members: int = 10
    """Members trained side by side."""
    updates: int = 5
    """Updates per timed call."""
    repeats: int = 10
    """Timed calls; medians are shown."""
    settings: tuple[str, ...] = ()
    """Changes, as NAME=VALUE: env.apple_steps=970 network.pair_width=64 inner.episodes=1."""
    parts: bool = True
    """Also time the parts of an update one by one."""
    profile: bool = False
    """Also watch updates with a profiler: device time and launches by part, and the longest operations."""
    growth: bool = False
    """Also time the last method with more and fewer members, episodes, steps and channels."""
    json: Path | None = None
    """Write all numbers to this new file, with commit and device."""


def run(words: Sequence[str]) -> int:
    """Time what the words ask for."""
    options = parse_options(BenchOptions, words, PROGRAM)
    if options.json is not None:
        from paircredit.runs.files import refuse_file

        refuse_file(options.json)
    if options.methods == ():
        raise PaircreditError("Name at least one method to time.")
    from paircredit.envs import make_environment
    from paircredit.envs.hosted import HostedEnvironment
    from tools.bench import BenchSpec, refuse_what_cannot_be_timed

    env_settings, method_settings = _settings(options.settings)
    refuse_another_game(options.env, env_settings.get("game"), PROGRAM + " --env {}")
    specs = [
        BenchSpec(
            options.env,
            method,
            options.preset,
            options.members,
            options.updates,
            options.repeats,
            env_settings,
            method_settings,
        )
        for method in options.methods or USUAL
    ]
    if options.methods is None:
        specs = [spec for spec in specs if _can_be_timed(spec)] or specs
    for spec in specs:  # all of them before the first is timed
        refuse_what_cannot_be_timed(spec)
    if isinstance(make_environment(options.env, **env_settings), HostedEnvironment):
        return _on_the_host(options, specs)
    return _on_the_device(options, specs)


def main(words: Sequence[str]) -> int:
    """The same, with problems as one sentence and exit code 2, as `paircredit` does."""
    try:
        return run(words)
    except (PaircreditError, MemoryError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted.", file=sys.stderr)
        return 130


def _can_be_timed(spec: Any) -> bool:
    from tools.bench import refuse_what_cannot_be_timed

    try:
        refuse_what_cannot_be_timed(spec)
    except PaircreditError:
        return False
    return True


def _on_the_device(options: BenchOptions, specs: Sequence[Any]) -> int:
    from tools.bench import bench, growth

    rows: list[dict[str, Any]] = []
    print("method      members  ms/update  frames/s  × first  compile s  temporary GiB")
    for spec in specs:
        rows.append(bench(spec, options.parts, options.profile))
        _keep(options.json, {"rows": rows, "growth": []})
        _print_row(rows[-1], rows[0]["seconds_per_update"])
    if options.parts:
        _print_parts(rows)
    if options.profile:
        for row in rows:
            _print_profile(row)
    grown = []
    if options.growth:
        print(
            f"\n{specs[-1].method}, one size changed at a time\nsize               ms/update  frames/s  temporary GiB"
        )
        for row in growth(specs[-1], GROWTH):
            grown.append(row)
            _keep(options.json, {"rows": rows, "growth": grown})
            print(
                f"{row['axis']:<12} {row['value']:>5} {1e3 * row['seconds_per_update']:10.2f} "
                f"{_millions(row['frames_per_second'])} {row['temporary_bytes'] / 2**30:14.2f}",
                flush=True,
            )
    _say_where(options.json)
    return 0


def _on_the_host(options: BenchOptions, specs: Sequence[Any]) -> int:
    """How busy the emulators are, and the device."""
    from tools.bench import bench_hosted

    if options.profile or options.growth:
        raise PaircreditError(f"--profile and --growth are for environments on the device; {options.env} is not.")
    rows: list[dict[str, Any]] = []
    print("method      members groups  ms/update    steps/s     one pool  share  groups' pools  share  device busy")
    for row in bench_hosted(specs):
        rows.append(row)
        _keep(options.json, {"rows": rows})
        print(
            f"{row['method']:<11} {row['members']:>7} {row['groups']:>6} {1e3 * row['seconds_per_update']:10.1f} "
            f"{row['steps_per_second']:10,.0f} "
            f"{row['one_pool_steps_per_second']:12,.0f} {row['share_of_one_pool']:6.0%} "
            f"{row['emulators_alone_steps_per_second']:14,.0f} {row['emulators_busy']:6.0%} "
            + ("           –" if row["device_busy"] is None else f"{row['device_busy']:12.0%}"),
            flush=True,
        )
    print("One pool, groups' pools: the emulators alone, all in one pool or in those of the groups.")
    print(f"A step is {rows[0]['frames_per_second'] / rows[0]['steps_per_second']:.0f} frames.")
    print("\nthe device, ms per update of all groups, each program by itself")
    for row in rows:
        parts = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in row["device_seconds"].items())
        print(f"{row['method']:<11} {parts}")
    print("\nthe groups' threads, shares of their time")
    for row in rows:
        parts = ", ".join(f"{what} {row[name]:.0%}" for name, what in _OF_THREADS.items())
        print(f"{row['method']:<11} {parts}")
    if rows[0]["cores_while_training"]:
        print(f"\nof {rows[0]['cores']} cores, emulators and other threads had")
        for row in rows:
            parts = ", ".join(f"{what} {_cores(row[name])}" for name, what in _CORES.items())
            print(f"{row['method']:<11} {parts}")
    _say_where(options.json)
    return 0


def _cores(found: dict[str, float]) -> str:
    emulators = found.get("emulators", 0.0)
    return f"{emulators:.1f} + {sum(found.values()) - emulators:.1f}"


_CORES = {"cores_while_training": "training", "cores_in_one_pool": "one pool", "cores_alone": "groups' pools"}
_OF_THREADS = {
    "threads_wait_for_emulators": "waiting for emulators",
    "threads_wait_for_device": "for actions",
    "threads_wait_for_other_groups": "for other groups",
    "threads_hand_over_steps": "handing over steps",
    "threads_hand_over_learning": "handing over learning",
    "threads_have_a_core": "of all, with a core",
    "groups_wait_at_the_end": "beside, waiting at the ends of calls",
}


def _keep(path: Path | None, numbers: dict[str, Any]) -> None:
    """In a file, where one was named: written anew with every row, so that a command that is stopped loses none."""
    from paircredit.runs.files import write_file
    from paircredit.runs.manifest import provenance
    from tools.bench.training_speed import peak_device_bytes

    if path is None:
        return
    kept = {"provenance": provenance(), **numbers, "peak_device_bytes": peak_device_bytes()}
    write_file(path, (json.dumps(kept, indent=1) + "\n").encode())


def _say_where(path: Path | None) -> None:
    if path is not None:
        print(f"\nThe numbers are in {path}")


def _settings(words: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Changes of the environment, and of the methods."""
    env: dict[str, Any] = {}
    method: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise PaircreditError(f"A setting is NAME=VALUE (inner.episodes=8), not {word!r}.")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        owner = env if name.startswith("env.") else method
        owner[name.removeprefix("env.")] = value
    return env, method


def _print_row(row: dict[str, Any], first: float) -> None:
    print(
        f"{row['method']:<11} {row['members']:>7} {1e3 * row['seconds_per_update']:10.2f} "
        f"{_millions(row['frames_per_second'])} {row['seconds_per_update'] / first:8.2f} "
        f"{row['compile_seconds']:10.1f} {row['temporary_bytes'] / 2**30:14.2f}",
        flush=True,
    )


def _print_parts(rows: Sequence[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row["parts"]))
    print("\nparts, ms, each compiled by itself (in training they share work)")
    print("method      " + "".join(f"{name:>14}" for name in names))
    for row in rows:
        cells = (f"{1e3 * row['parts'][name]:14.2f}" if name in row["parts"] else f"{'–':>14}" for name in names)
        print(f"{row['method']:<12}" + "".join(cells))


def _print_profile(row: dict[str, Any]) -> None:
    found = row["profile"]
    busy = found["busy_seconds"] / found["wall_seconds"]
    total = sum(share["seconds"] for share in found["parts"])
    print(
        f"\n{row['method']}, watched: {1e3 * found['wall_seconds']:.2f} ms per update, the device busy {busy:.0%} of it"
        "\npart                      ms     share  operations"
    )

    def show(share: dict[str, Any], name: str = "") -> None:
        print(
            f"{share['part']:<18} {1e3 * share['seconds']:9.3f} {share['seconds'] / total:9.1%} "
            f"{share['launches']:11.0f}  {name}".rstrip()
        )

    for share in found["parts"]:
        show(share)
    print("longest operations")
    for share in found["operations"][:_SHOWN_OPERATIONS]:
        show(share, share["name"])


def _millions(rate: float) -> str:
    return f"{rate / 1e6:7.3f} M"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
