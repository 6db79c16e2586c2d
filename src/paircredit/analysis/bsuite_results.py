"""What figures, claims and exports want to know about the runs of the bsuite experiment."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paircredit.analysis.shown import in_order, runs_of, title
from paircredit.analysis.statistics import Interval, bootstrap
from paircredit.envs.bsuite import DOMAINS, bsuite_config
from paircredit.envs.bsuite.discounting_chain import PAYDAYS, DiscountingChainConfig
from paircredit.errors import PaircreditError
from paircredit.runs.query import query_metrics
from paircredit.runs.read import Run, read_run

ROLE = "bsuite"
PAPER: dict[str, dict[str, int]] = {
    "catch": {"a2c": 5975, "a2c-rr": 5950, "rgm": 7849, "meta-pwtd": 6096, "meta-pwr": 5967},
    "catch_noise": {"a2c": 42221, "a2c-rr": 42295, "rgm": 48268, "meta-pwtd": 41106, "meta-pwr": 43076},
    "catch_scale": {"a2c": 56800, "a2c-rr": 57033, "rgm": 54421, "meta-pwtd": 48199, "meta-pwr": 49361},
    "umbrella_length": {"a2c": 38050, "a2c-rr": 38083, "rgm": 40397, "meta-pwtd": 37973, "meta-pwr": 38168},
    "umbrella_distract": {"a2c": 37524, "a2c-rr": 37433, "rgm": 40159, "meta-pwtd": 37226, "meta-pwr": 36554},
    "cartpole": {"a2c": 76874, "a2c-rr": 71506, "rgm": 119102, "meta-pwtd": 65945, "meta-pwr": 61752},
    "discounting_chain": {"a2c": 3554, "a2c-rr": 3548, "rgm": 2444, "meta-pwtd": 1040, "meta-pwr": 161},
}
"""Total regrets of the paper's table, after `PAPER_EPISODES`."""
PAPER_EPISODES = {domain: 50_000 if domain == "cartpole" else 100_000 for domain in PAPER}
OTHER_SCALE = ("cartpole",)
"""Where the paper's numbers cannot be bsuite's total regret (docs/reproduction.md): only ratios are compared."""
RANDOM_PLAY = {
    "catch": 1.6,
    "catch_noise": 1.6,
    "catch_scale": 1.6,
    "umbrella_length": 1.0,
    "umbrella_distract": 1.0,
    "cartpole": 920.4,
    "discounting_chain": 0.08,
}
"""What an episode of random play costs; exact but for cartpole, which was measured."""
_VARIES = {
    "catch_noise": ("noise", "noise_scale"),
    "catch_scale": ("scale", "reward_scale"),
    "umbrella_length": ("length", "length"),
    "umbrella_distract": ("distractors", "distractors"),
}
"""What tells the variants of a domain apart, in words and as a setting."""


class Setting(NamedTuple):
    """What several variants of a domain have in common that are alike but for the seed.

    Attributes:
        value: what varies in the domain, or 0.
        text: for readers.
    """

    value: float
    text: str


def setting_of(bsuite_id: str) -> Setting:
    """What a variant is, whatever its number."""
    config = bsuite_config(bsuite_id)
    domain = bsuite_id.partition("/")[0]
    if isinstance(config, DiscountingChainConfig):
        payday = PAYDAYS[config.mapping_seed % len(PAYDAYS)]
        return Setting(payday, f"bonus after {payday} step{'s' * (payday > 1)}")
    if domain not in _VARIES:
        return Setting(0, "")
    word, name = _VARIES[domain]
    value = getattr(config, name)
    return Setting(value, f"{word} {value:g}")


@dataclasses.dataclass(frozen=True)
class Regrets:
    """The regret of one method in one domain: a row per member, a column per recorded point.

    A point is the mean over the episodes between two edges, so that nothing that was paid is missing in the sum.

    Attributes:
        label: of the method.
        domain: bsuite's name.
        ids: bsuite id of every member, [N].
        seeds: of every member, [N].
        edges: episodes before each point and after the last, [P + 1].
        values: mean regret of an episode, [N, P].
    """

    label: str
    domain: str
    ids: tuple[str, ...]
    seeds: np.ndarray
    edges: np.ndarray
    values: np.ndarray

    @property
    def episodes(self) -> int:
        """Of every member."""
        return int(self.edges[-1])

    @property
    def totals(self) -> np.ndarray:
        """The total regret of every member, [N]."""
        return np.asarray(self.values @ np.diff(self.edges))

    @property
    def settings(self) -> list[Setting]:
        """What there is, in order."""
        return sorted({setting_of(bsuite_id) for bsuite_id in self.ids})

    def members(self, setting: Setting) -> np.ndarray:
        """Which members have it, [N]."""
        return np.array([setting_of(bsuite_id) == setting for bsuite_id in self.ids])

    def groups(self) -> list[np.ndarray]:
        """The total regrets, by setting."""
        return [self.totals[self.members(setting)] for setting in self.settings]


def total_regret(regrets: Regrets) -> Interval:
    """The mean over all members, as the paper has it.

    The bootstrap draws members of each setting separately: settings are what the domain is, chance is in the seeds.
    """
    return bootstrap(regrets.groups(), _mean_of_all)


def regret_difference(first: Regrets, second: Regrets) -> Interval:
    """The first method's mean total regret minus the second's; settings are drawn separately."""
    groups, others = first.groups(), second.groups()

    def difference(*drawn: np.ndarray) -> np.ndarray:
        return np.asarray(_mean_of_all(*drawn[: len(groups)]) - _mean_of_all(*drawn[len(groups) :]))

    return bootstrap([*groups, *others], difference)


def as_long_as_the_papers(regrets: Regrets) -> bool:
    """Whether total regrets can be held against the paper's."""
    return regrets.episodes == PAPER_EPISODES[regrets.domain]


def _mean_of_all(*groups: np.ndarray) -> np.ndarray:
    return np.asarray(np.concatenate(groups, axis=-1).mean(axis=-1))


def all_regrets(runs: Sequence[Run]) -> list[Regrets]:
    """The regrets of all runs of the experiment, by domain and method in the order in which they are shown.

    Raises:
        PaircreditError: two runs are of the same method and domain.
    """
    found: dict[tuple[str, str], tuple[Run, Regrets]] = {}
    for run in runs_of(runs, ROLE):
        regrets = _read(run.path, run.manifest["sha256"])
        place = regrets.domain, regrets.label
        if place in found:
            raise PaircreditError(
                f"Both {found[place][0].path} and {run.path} hold {title(regrets.label)} on bsuite's {regrets.domain}; "
                "name a folder with one."
            )
        found[place] = run, regrets
    domains, labels = list(DOMAINS), method_labels(runs)
    return sorted(
        (regrets for _, regrets in found.values()), key=lambda r: (domains.index(r.domain), labels.index(r.label))
    )


def by_domain(runs: Sequence[Run]) -> dict[str, dict[str, Regrets]]:
    """The same, by domain and then by method."""
    result: dict[str, dict[str, Regrets]] = {}
    for regrets in all_regrets(runs):
        result.setdefault(regrets.domain, {})[regrets.label] = regrets
    return result


def method_labels(runs: Sequence[Run]) -> list[str]:
    """The methods of all bsuite runs, in the order in which they are shown."""
    found = {run.spec["tags"]["label"] for run in runs_of(runs, ROLE)}
    return in_order(found)


@functools.lru_cache(maxsize=64)
def _read(path: Path, manifest_sum: str) -> Regrets:
    """The regrets of a run; kept, because a report asks several times for files that may have 50 MB each."""
    del manifest_sum  # says that it is still the same run
    run = read_run(path)
    rows = member_rows(run, ("bsuite_id", "regret"))
    tags = run.spec["tags"]
    return Regrets(
        label=tags["label"],
        domain=tags["domain"],
        ids=tuple(str(bsuite_id) for bsuite_id in rows["bsuite_id"][:, 0]),
        seeds=rows["seed"][:, 0],
        edges=episode_edges(run, rows),
        values=rows["regret"].astype(float),
    )


def member_rows(run: Run, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of a run's metrics, and `member`, `seed`, `update` and `episodes`: arrays [N, P], by member and update.

    Raises:
        PaircreditError: members have recorded other points.
    """
    columns = ", ".join(f'"{name}"' for name in ("member", "seed", "update", "episodes", *names))
    rows: dict[str, Any] = query_metrics([run], f"SELECT {columns} FROM metrics ORDER BY member, update")
    members = len(np.unique(rows["member"]))
    if len(rows["member"]) % members:
        raise PaircreditError(f"The members of {run.path} have not all recorded the same points.")
    if len(rows["member"]) // members < 2:
        raise PaircreditError(f"The run {run.path} is too short: it has recorded only one point.")
    return {name: np.asarray(column).reshape(members, -1) for name, column in rows.items()}


def episode_edges(run: Run, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Episodes before each point and after the last, [P + 1]."""
    updates, episodes = rows["update"][0], rows["episodes"][0]
    per_update = episodes[-1] // updates[-1]
    return np.append(episodes, run.spec["updates"] * per_update).astype(np.int64)
