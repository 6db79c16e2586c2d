"""`paircredit train`, `reproduce` and `resume`: what makes runs, and goes on with those that were stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np
import tyro

from paircredit.commands import parse_options
from paircredit.errors import PaircreditError
from paircredit.interrupts import at_work

MOST_FRAMES, MOST_SEEDS = 10**15, 10**6
"""What nobody trains in a lifetime, and what no list of seeds should be longer than."""


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


@dataclasses.dataclass(frozen=True)
class ReproduceOptions:
    """Make the runs of an experiment of the paper, in one folder; the same command again goes on where it stopped."""

    experiment: tyro.conf.Positional[str]
    """Name of the experiment: see `paircredit list`."""
    out: Path
    """Folder for the runs: a new one, or that of the same experiment, left unfinished."""
    scale: str = "short"
    """How much of it: smoke (seconds), short (minutes, for neural networks on a GPU), paper (as published)."""
    only: tuple[str, ...] | None = None
    """Names of runs, or patterns like 'catch*'; others are left for later, or for other processes and machines."""
    workers: int = 1
    """How many runs are made at a time, each in a process of its own: one run seldom fills a GPU."""


@dataclasses.dataclass(frozen=True)
class ResumeOptions:
    """Go on with what was stopped: a run, an experiment, or all of them in a folder."""

    folder: tyro.conf.Positional[Path]
    """A run folder, the folder of an experiment, or a folder with some of them."""


def train(words: list[str]) -> int:
    from paircredit.console import ProgressBars
    from paircredit.experiments.reproduce import run_one
    from paircredit.experiments.spec import TrainingSpec
    from paircredit.results.exhibits import environment_name

    if len(words) < 2 or any(word.startswith("-") for word in words[:2]):
        if "-h" in words or "--help" in words:
            print("usage: paircredit train ENV METHOD [OPTIONS]\n")
            print("Names: `paircredit list`. Options: `paircredit train ENV METHOD --help`.")
            return 0
        raise PaircreditError("`paircredit train` needs an environment and a method: paircredit train dag meta-pwr.")
    env_name, method_name = words[:2]
    options, usual = _parsed(env_name, method_name, words[2:])
    env = options.env.build()
    refuse_another_game(env_name, vars(options.env).get("game"), f"paircredit train {{}} {method_name}")
    batches = 1 if options.protocol == "online" else options.inner_updates + 1
    per_update = options.method.inner.episodes * batches * env.spec.horizon * env.spec.frames_per_step
    told = environment_name(env_name, dataclasses.asdict(options.env))
    run_name = f"{told}-{method_name}-{time.strftime('%Y%m%d-%H%M%S')}".replace("/", "-")
    out = options.out or Path("runs") / run_name
    spec = TrainingSpec(
        name=out.name,
        env=env_name,
        method=method_name,
        updates=-(-options.frames // per_update),
        seeds=tuple(range(options.first_seed, options.first_seed + options.seeds)),
        env_settings=dataclasses.asdict(options.env),
        method_settings=_changes(options.method, usual),
        preset=options.preset,
        protocol=options.protocol,
        inner_updates=options.inner_updates,
        weights_from=None if options.weights is None else str(options.weights.resolve()),
        learn_weights=not options.freeze_weights,
        tags={"role": "train"},
    )
    with resumable(out), ProgressBars(f"{spec.method} on {spec.env}", 1) as bars:
        run_one(spec, out.parent, bars)
    return say_return(spec, out)


def reproduce(words: list[str]) -> int:
    if sum(word.split("=")[0] == "--only" for word in words) > 1:
        raise PaircreditError("--only is given more than once; give all names and patterns after one: --only A B.")
    options = parse_options(ReproduceOptions, words, "paircredit reproduce")
    from paircredit.console import ProgressBars
    from paircredit.experiments import reproduce as make_runs
    from paircredit.experiments.reproduce import choose_runs, reproduce_side_by_side
    from paircredit.studies import make_experiment

    if options.only == ():
        raise PaircreditError("--only needs the name of a run, or a pattern such as 'catch*'.")
    experiment, only = make_experiment(options.experiment, options.scale), options.only or ()
    chosen, title = choose_runs(experiment, only), f"{experiment.name}, scale {experiment.scale}"
    if options.workers < 1:
        raise PaircreditError(f"--workers is {options.workers}, but must be at least 1.")
    with resumable(options.out), ProgressBars(title, len(chosen)) as bars:
        if options.workers == 1:
            make_runs(experiment, options.out, bars, only)
        else:
            reproduce_side_by_side(experiment, options.out, options.workers, bars, only)
    if len(chosen) < len(experiment.runs):
        print(f"Finished in {options.out}: {len(chosen)} of {len(experiment.runs)} runs, those that were asked for.")
        return 0
    print(f"The runs are in {options.out}. Next: paircredit claims {options.out} or paircredit figures {options.out}")
    return 0


def resume(words: list[str]) -> int:
    options = parse_options(ResumeOptions, words, "paircredit resume")
    from paircredit.console import ProgressBars
    from paircredit.experiments.reproduce import run_one, runs_to_resume
    from paircredit.experiments.spec import TrainingSpec

    jobs = runs_to_resume(options.folder)
    with resumable(options.folder), ProgressBars(str(options.folder), len(jobs)) as bars:
        for spec, folder in jobs:
            run_one(spec, folder, bars)
    spec, folder = jobs[0]
    if len(jobs) == 1 and isinstance(spec, TrainingSpec):
        return say_return(spec, folder / spec.name)
    print(f"All runs in {options.folder} are finished.")
    return 0


def _parsed(env_name: str, method_name: str, flags: list[str]) -> tuple[Any, Any]:
    """The options, and those of the method as they are where none is given."""
    from paircredit.envs import environment_config
    from paircredit.methods import make_method
    from paircredit.methods.presets import preset_environment, preset_training

    preset = _value_of("--preset", flags) or "default"
    env = environment_config(env_name, **preset_environment(preset, env_name))
    method: Any = make_method(method_name, preset, env_name)
    usual = as_options(method)
    fields = [("env", type(env)), ("method", type(usual))]
    typed = dataclasses.make_dataclass("TrainOptions", fields, bases=(TrainOptions,), frozen=True)
    typed.__doc__ = TrainOptions.__doc__
    default = typed(env=env, method=usual, **preset_training(preset, env_name))
    options = parse_options(typed, _shorten(flags, method), f"paircredit train {env_name} {method_name}", default)
    for name, number, most in (
        ("frames", options.frames, MOST_FRAMES),
        ("seeds", options.seeds, MOST_SEEDS),
        ("inner-updates", options.inner_updates, MOST_FRAMES),
        ("method.inner.episodes", options.method.inner.episodes, MOST_FRAMES),
    ):
        if not 1 <= number <= most:
            bound = "at least 1" if number < 1 else f"at most {most:,}"
            raise PaircreditError(f"--{name} is {number}, but must be {bound}.")
    if options.weights is not None and not options.weights.exists():
        raise PaircreditError(f"There is no file or folder {options.weights} to take pair weights from.")
    return options, usual


def as_options(group: Any) -> Any:
    """A method as the parser takes it: a dataclass with a line of help per setting, groups of settings within it."""
    from paircredit.settings import RULE, about, fields_of, values_of

    hints = get_type_hints(type(group)) | (get_type_hints(type(group.rule)) if RULE in vars(group) else {})
    kinds, values = [], {}
    for name, value in values_of(group).items():
        values[name] = as_options(value) if dataclasses.is_dataclass(value) else value
        kind = type(values[name]) if dataclasses.is_dataclass(value) else hints[name]
        kinds.append(
            (name, Annotated[kind, tyro.conf.arg(name=name.replace("_", "-"), help=about(fields_of(group)[name]).help)])
        )
    made = dataclasses.make_dataclass(type(group).__name__, kinds, frozen=True)
    made.__doc__ = type(group).__doc__
    return made(**values)


def _changes(options: Any, usual: Any, prefix: str = "") -> dict[str, Any]:
    """The options in which two such dataclasses differ, by dotted name."""
    changed: dict[str, Any] = {}
    for name, new in vars(options).items():
        old = vars(usual)[name]
        if dataclasses.is_dataclass(new):
            changed |= _changes(new, old, f"{prefix}{name}.")
        elif new is not old and new != old:
            if isinstance(new, float) and not math.isfinite(new):
                raise PaircreditError(f"The setting {prefix}{name} is {new}; a finite number is needed.")
            changed[f"{prefix}{name}"] = new
    return changed


@contextlib.contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Whoever interrupts is told how to go on."""
    try:
        with at_work():
            yield
    except KeyboardInterrupt:
        if not folder.exists():
            raise
        raise KeyboardInterrupt(f"go on with `paircredit resume {shlex.quote(str(folder))}`") from None


def say_return(spec: Any, out: Path) -> int:
    """Print what a training ended with, and where it is."""
    from paircredit.experiments.spec import variants_of
    from paircredit.results.curves import last_returns
    from paircredit.results.intervals import mean_interval
    from paircredit.runs import read_run

    returns = last_returns(read_run(out))
    for variant in variants_of(spec):
        means = np.array([value for row, value in returns if row.items() >= variant.all_labels.items()])
        whose = "".join(f", {name} {value}" for name, value in variant.all_labels.items())
        if len(means) == 0:
            said = ": not known, no episode has ended"
        elif len(means) == 1:  # of which nobody can say how far others would lie from it
            said = f", one seed: {means[0]:{_form(means)}}"
        else:
            interval = mean_interval(means).text(_form(means))
            said = f", mean over {len(means)} seeds with 95 % interval: {interval}"
        print(f"Return over the last tenth{whose}{said}")
    print(f"The run is in {out}")
    return 0


def _form(numbers: np.ndarray) -> str:
    """Three decimals where that says enough, or five digits."""
    largest = float(np.abs(numbers).max())
    return ".3f" if largest == 0 or 0.1 <= largest < 1e6 else ".5g"


def _value_of(flag: str, words: list[str]) -> str | None:
    """The last value of a flag, before anything is parsed."""
    found = None
    for word, following in zip(words, [*words[1:], None], strict=False):
        name, equals, value = word.partition("=")
        if name == flag:
            found = value if equals else following
    return found


def _shorten(words: list[str], method: Any) -> list[str]:
    """Let --method.learning-rate stand for --method.inner.learning-rate, and so on for the inner loop."""
    from paircredit.settings import fields_of

    inner = fields_of(method.inner).keys() - fields_of(method).keys()
    result = []
    for word in words:
        name = word.removeprefix("--method.").split("=")[0].replace("-", "_").removeprefix("no_")
        short = word.startswith("--method.") and name in inner
        result.append(word.replace("--method.", "--method.inner.", 1) if short else word)
    return result


def refuse_another_game(env: str, game: object, command: str) -> None:
    """Refuse a game that has an environment of its own, whose name takes the place of {} in the right command."""
    from paircredit.envs import environment_config, environments

    own = vars(environment_config(env)).get("game")
    right = f"{env.split('/')[0]}/{game}"
    if own is not None and game not in (None, own) and right in environments():
        raise PaircreditError(f"The game is a part of the name: {command.format(right)}.")
