"""The command line: list, train, reproduce, resume, figures, claims, report, digest, export, watch, bench."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

import paircredit
from paircredit.errors import PaircreditError, unknown_name

USAGE = """usage: paircredit COMMAND ...

Learned pairwise weights for temporal credit assignment.

  list                        environments, methods, presets and experiments
  train ENV METHOD            train a method on an environment
  reproduce EXPERIMENT        make the runs of an experiment of the paper
  resume DIR                  go on with a run or an experiment that was stopped
  figures DIR                 draw the figures that the runs in DIR allow
  claims DIR                  judge the paper's claims by the runs in DIR
  report DIR --out FILE       write one self-contained HTML page about them
  watch RUN                   an episode of Key-to-Door as an animated GIF, with the credit of every action
  bench                       time training on this machine
  digest DIR --out FOLDER     keep what is worth keeping: tables, curves, weights, figures, provenance
  export bsuite DIR --out FOLDER    write bsuite's own CSV logs of the runs on its domains

`paircredit COMMAND --help` tells more. Exit codes: 0 all well, 1 a claim fails, 2 the input cannot be used."""

PositionalPath = Annotated[Path, tyro.conf.Positional]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; problems with the input become one sentence and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _dispatch(words)
    except PaircreditError as error:
        print(f"paircredit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"paircredit: interrupted{'; ' * bool(str(interrupt))}{interrupt}.", file=sys.stderr)
        return 130
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
    return COMMANDS[words[0]](words[1:])


@dataclasses.dataclass(frozen=True)
class ReproduceOptions:
    """Make the runs of an experiment of the paper, in one folder; the same command again goes on where it stopped."""

    experiment: tyro.conf.Positional[str]
    """Name of the experiment: see `paircredit list`."""
    out: Path
    """Folder for the runs: a new one, or that of the same experiment, left unfinished."""
    scale: str = "short"
    """How much of it: smoke (seconds), short (minutes), paper (as published)."""


@dataclasses.dataclass(frozen=True)
class ResumeOptions:
    """Go on with what was stopped: a run, an experiment, or all of them in a folder."""

    folder: PositionalPath
    """A run folder, the folder of an experiment, or a folder with some of them."""


@dataclasses.dataclass(frozen=True)
class FiguresOptions:
    """Draw every figure and table that the runs in a folder allow, as SVG, PNG and CSV."""

    folder: PositionalPath
    """Folder with runs."""
    out: Path | None = None
    """New folder for the figures (default: FOLDER/figures)."""


@dataclasses.dataclass(frozen=True)
class ClaimsOptions:
    """Judge the paper's claims by the runs in a folder: a verdict a line, exit code 1 when one fails."""

    folder: PositionalPath
    """Folder with runs."""


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Write one self-contained HTML page: verdicts, figures, tables, provenance."""

    folder: PositionalPath
    """Folder with runs."""
    out: Path
    """The page; must not exist."""


@dataclasses.dataclass(frozen=True)
class DigestOptions:
    """Write a small folder with all that is worth keeping of the runs in a large one."""

    folder: PositionalPath
    """Folder with runs."""
    out: Path
    """Folder of the digest; must not exist."""


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """Train a method on an environment; several seeds as one program."""

    env: Any
    method: Any
    preset: str = "default"
    """Hyperparameters to start from: see `paircredit list`."""
    frames: int = 100_000
    """Environment steps per seed, rounded up to whole updates."""
    seeds: int = 5
    """Number of seeds, trained side by side."""
    first_seed: int = 0
    """The first of them."""
    protocol: Literal["online", "reset"] = "online"
    """Online, or with resets of policy and values (frames then count all inner batches)."""
    inner_updates: int = 16
    """Inner updates per reset."""
    weights: Path | None = None
    """Start from these pair weights: a run folder, or an npz or npy file with a table |S|×|S|."""
    freeze_weights: bool = False
    """Do not learn the weights further."""
    out: Path | None = None
    """Folder of the run: a new one, or that of the same run, left unfinished (default: a new one below runs/)."""


def _list(words: list[str]) -> int:
    if words:
        raise PaircreditError(f"`paircredit list` takes no further words, but was given {' '.join(words)!r}.")
    from paircredit.envs import environments
    from paircredit.experiments import experiments
    from paircredit.experiments.spec import SCALES
    from paircredit.methods import methods, presets

    for title, entries in (
        ("Environments", environments()),
        ("Methods", methods()),
        ("Presets", presets()),
        (f"Experiments (scales {', '.join(SCALES)})", experiments()),
    ):
        print(title)
        width = max(len(name) for name in entries)
        for name, summary in entries.items():
            print(f"  {name:<{width}} {summary}")
        print()
    return 0


def _reproduce(words: list[str]) -> int:
    options = tyro.cli(ReproduceOptions, args=words, prog="paircredit reproduce")
    from paircredit.console import ProgressBars
    from paircredit.experiments import make_experiment, reproduce

    experiment = make_experiment(options.experiment, options.scale)
    title = f"{experiment.name}, scale {experiment.scale}"
    with _resumable(options.out), ProgressBars(title, len(experiment.runs)) as bars:
        reproduce(experiment, options.out, bars)
    print(f"The runs are in {options.out}. Next: paircredit claims {options.out} or paircredit figures {options.out}")
    return 0


def _resume(words: list[str]) -> int:
    options = tyro.cli(ResumeOptions, args=words, prog="paircredit resume")
    from paircredit.console import ProgressBars
    from paircredit.experiments.reproduce import run_one, runs_to_resume
    from paircredit.experiments.spec import TrainingSpec

    jobs = runs_to_resume(options.folder)
    with _resumable(options.folder), ProgressBars(str(options.folder), len(jobs)) as bars:
        for spec, folder in jobs:
            run_one(spec, folder, bars)
    spec, folder = jobs[0]
    if len(jobs) == 1 and isinstance(spec, TrainingSpec):
        return _say_return(spec, folder / spec.name)
    print(f"All runs in {options.folder} are finished.")
    return 0


@contextlib.contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Whoever interrupts is told how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if not folder.exists():
            raise
        raise KeyboardInterrupt(f"go on with `paircredit resume {shlex.quote(str(folder))}`") from None


def _figures(words: list[str]) -> int:
    options = tyro.cli(FiguresOptions, args=words, prog="paircredit figures")
    from paircredit.figures.save import save_figures
    from paircredit.runs import find_runs

    for path in save_figures(find_runs(options.folder), options.out or options.folder / "figures"):
        print(path)
    return 0


def _claims(words: list[str]) -> int:
    options = tyro.cli(ClaimsOptions, args=words, prog="paircredit claims")
    from paircredit.analysis.claims import judge_all
    from paircredit.runs import find_runs

    verdicts = judge_all(find_runs(options.folder))
    for verdict in verdicts:
        print(f"{verdict.id}  {verdict.status:<10}  {verdict.measured}")
    return 1 if any(verdict.status == "fails" for verdict in verdicts) else 0


def _report(words: list[str]) -> int:
    options = tyro.cli(ReportOptions, args=words, prog="paircredit report")
    from paircredit.analysis.claims import judge_all
    from paircredit.report import build_report
    from paircredit.runs import find_runs, write_file

    if options.out.exists():
        raise PaircreditError(f"{options.out} exists already; choose another file or remove it first.")
    runs = find_runs(options.folder)
    write_file(options.out, build_report(runs, judge_all(runs)).encode())
    print(f"The report is {options.out}")
    return 0


def _digest(words: list[str]) -> int:
    options = tyro.cli(DigestOptions, args=words, prog="paircredit digest")
    from paircredit.analysis.claims import judge_all
    from paircredit.report.digest import write_digest
    from paircredit.runs import find_runs

    runs = find_runs(options.folder)
    for path in write_digest(runs, judge_all(runs), options.out):
        print(path)
    return 0


def _train(words: list[str]) -> int:
    from paircredit.envs import environment_config
    from paircredit.experiments.spec import TrainingSpec
    from paircredit.methods import make_method, preset_environment, preset_training

    if words[:1] in (["-h"], ["--help"], []) or len(words) < 2 or words[1].startswith("-"):
        if "-h" in words or "--help" in words:
            print("usage: paircredit train ENV METHOD [OPTIONS]\n")
            print("Names: `paircredit list`. Options: `paircredit train ENV METHOD --help`.")
            return 0
        raise PaircreditError("`paircredit train` needs an environment and a method: paircredit train dag meta-pwr.")
    env_name, method_name, flags = words[0], words[1], words[2:]
    preset = _value_of("--preset", flags) or "default"
    default_env = environment_config(env_name, **preset_environment(preset, env_name))
    default_method: Any = make_method(method_name, preset, env_name)
    typed = dataclasses.make_dataclass(
        "TrainOptions",
        [("env", type(default_env)), ("method", type(default_method))],
        bases=(TrainOptions,),
        frozen=True,
    )
    typed.__doc__ = TrainOptions.__doc__
    options = tyro.cli(
        typed,
        args=_shorten(flags, default_method),
        prog=f"paircredit train {env_name} {method_name}",
        default=typed(env=default_env, method=default_method, **preset_training(preset, env_name)),
    )
    for name, number in (
        ("frames", options.frames),
        ("seeds", options.seeds),
        ("inner-updates", options.inner_updates),
        ("method.inner.episodes", options.method.inner.episodes),
    ):
        if number < 1:
            raise PaircreditError(f"--{name} is {number}, but must be at least 1.")
    env = options.env.build()
    batches = 1 if options.protocol == "online" else options.inner_updates + 1
    per_update = options.method.inner.episodes * batches * env.spec.horizon
    run_name = f"{env_name}-{method_name}-{time.strftime('%Y%m%d-%H%M%S')}".replace("/", "-")
    out = options.out or Path("runs") / run_name
    spec = TrainingSpec(
        name=out.name,
        env=env_name,
        method=method_name,
        updates=-(-options.frames // per_update),
        seeds=tuple(range(options.first_seed, options.first_seed + options.seeds)),
        env_settings=dataclasses.asdict(options.env),
        method_settings=_differences(options.method, default_method),
        preset=options.preset,
        protocol=options.protocol,
        inner_updates=options.inner_updates,
        weights_from=None if options.weights is None else str(options.weights.resolve()),
        learn_weights=not options.freeze_weights,
        tags={"role": "train"},
    )
    return _run_training(spec, out)


def _run_training(spec: Any, out: Path) -> int:
    from paircredit.console import ProgressBars
    from paircredit.experiments.reproduce import run_one

    with _resumable(out), ProgressBars(f"{spec.method} on {spec.env}", 1) as bars:
        run_one(spec, out.parent, bars)
    return _say_return(spec, out)


def _say_return(spec: Any, out: Path) -> int:
    from paircredit.analysis.statistics import mean_interval
    from paircredit.experiments.variants import variants_of
    from paircredit.runs import read_run

    rows = read_run(out).metrics()
    late = [row for row in rows if row["update"] >= 0.9 * spec.updates or row["update"] == rows[-1]["update"]]
    for variant in variants_of(spec):
        own = [row for row in late if all(row[name] == value for name, value in variant.labels.items())]
        by_seed = [[row["episode_return"] for row in own if row["seed"] == seed] for seed in variant.seeds]
        means = np.array([np.mean(returns) for returns in by_seed])
        whose = "".join(f", {name} {value}" for name, value in variant.labels.items())
        if len(means) == 1:  # of which nobody can say how far others would lie from it
            print(f"Return over the last tenth{whose}, one seed: {means[0]:.3f}")
            continue
        interval = mean_interval(means).text(".3f")
        print(f"Return over the last tenth{whose}, mean over {len(means)} seeds with 95 % interval: {interval}")
    print(f"The run is in {out}")
    return 0


def _value_of(flag: str, words: list[str]) -> str | None:
    """The value of a flag, before anything is parsed."""
    for index, word in enumerate(words):
        if word.startswith(flag + "="):
            return word.removeprefix(flag + "=")
        if word == flag and index + 1 < len(words):
            return words[index + 1]
    return None


def _shorten(words: list[str], method: Any) -> list[str]:
    """Let --method.learning-rate stand for --method.inner.learning-rate, and so on for the inner loop."""
    own = {field.name for field in dataclasses.fields(method)}
    inner = {field.name for field in dataclasses.fields(method.inner)}
    result = []
    for word in words:
        prefix, _, rest = word.partition("--method.")
        name = rest.split("=")[0].replace("-", "_")
        negated = name.removeprefix("no_")
        short = not prefix and word.startswith("--method.") and {name, negated} & inner and name not in own
        result.append("--method.inner." + rest if short else word)
    return result


def _differences(method: Any, default: Any, prefix: str = "") -> dict[str, Any]:
    """The fields in which a method differs from its default, by dotted name."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(method):
        new, old = getattr(method, field.name), getattr(default, field.name)
        if dataclasses.is_dataclass(new):
            changed |= _differences(new, old, f"{prefix}{field.name}.")
        elif new is not old and new != old:
            if isinstance(new, float) and not math.isfinite(new):
                raise PaircreditError(f"The setting {prefix}{field.name} is {new}; a finite number is needed.")
            changed[f"{prefix}{field.name}"] = new
    return changed


def _bench(words: list[str]) -> int:
    from paircredit.commands.bench import run

    return run(words)


def _watch(words: list[str]) -> int:
    from paircredit.commands.watch import run

    return run(words)


def _export(words: list[str]) -> int:
    from paircredit.commands.export import run

    return run(words)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "list": _list,
    "train": _train,
    "reproduce": _reproduce,
    "resume": _resume,
    "figures": _figures,
    "claims": _claims,
    "report": _report,
    "digest": _digest,
    "export": _export,
    "watch": _watch,
    "bench": _bench,
}


def entry() -> None:
    """The console script."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
