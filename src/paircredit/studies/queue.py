"""The queue: what the reproduction still asks of a GPU, in order of value; each entry decides something."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from paircredit.errors import PaircreditError
from paircredit.experiments.reproduce import choose_runs, is_finished
from paircredit.experiments.spec import Experiment, RunSpec, as_json
from paircredit.runs.files import read_file
from paircredit.runs.manifest import first_difference
from paircredit.studies import make_experiment


@dataclasses.dataclass(frozen=True)
class Entry:
    """Some runs of an experiment, small enough to be made in one go.

    Attributes:
        name: of its folder of runs, and of its digest.
        experiment: whose runs they are.
        minutes: of one H200, measured, or estimated from the frames per second of similar runs.
        decides: the claims that it is about.
        question: what will be known afterwards.
        only: names of runs, or patterns; all of them where there are none.
        side_by_side: how many of the runs share the GPU.
    """

    name: str
    experiment: str
    minutes: int
    decides: str
    question: str
    only: tuple[str, ...] = ()
    side_by_side: int = 1

    def make(self, scale: str) -> Experiment:
        """The experiment, at a scale."""
        return make_experiment(self.experiment, scale)

    def runs(self, scale: str) -> list[RunSpec]:
        """Its runs at a scale."""
        return choose_runs(self.make(scale), self.only)


QUEUE: tuple[Entry, ...] = (
    Entry(
        "key-to-door-printed",
        "key-to-door-printed",
        24,
        "K1, K4 as printed",
        "How fast are the paper's methods with its hyperparameters in their plainest reading?",
        side_by_side=2,
    ),
    Entry(
        "key-to-door-readings-lag",
        "key-to-door-readings",
        22,
        "K1 as printed",
        "Does another reading of the lag make the printed hyperparameters give the printed curves?",
        only=("reading-*-lag-*",),
    ),
    Entry(
        "key-to-door-readings-rest",
        "key-to-door-readings",
        22,
        "K1 as printed",
        "Does another reading of the statistics, the optimiser or the key room do so?",
        only=("reading-statistics-*", "reading-moment-*", "reading-walled-*"),
    ),
    Entry(
        "key-to-door-slips",
        "key-to-door-settings",
        17,
        "K3",
        "Are H-PWR and A2C in the paper's order where 10 % of the actions are random?",
        only=("settings-slips-a2c", "settings-slips-h-pwr"),
        side_by_side=2,
    ),
    Entry(
        "key-to-door-slips-meta-pwr",
        "key-to-door-settings",
        21,
        "K3",
        "Where does Meta-PWR stand among them?",
        only=("settings-slips-meta-pwr",),
    ),
    Entry(
        "key-to-door-settings-ten-seeds",
        "key-to-door-settings",
        17,
        "K3",
        "Do ten seeds tell apart what five could not, without slips?",
        only=("settings-a2c", "settings-h-pwr"),
        side_by_side=2,
    ),
    Entry(
        "key-to-door-settings-ten-seeds-meta-pwr",
        "key-to-door-settings",
        21,
        "K3",
        "The same for Meta-PWR.",
        only=("settings-meta-pwr",),
    ),
    Entry(
        "key-to-door-search",
        "key-to-door-search",
        24,
        "K1 as tuned",
        "Does A2C with the best of eight λ and four learning rates catch up with Meta-PWR?",
    ),
    Entry(
        "key-to-door-members",
        "key-to-door-central",
        9,
        "K1, K4 as tuned",
        "The default once more, with every seed on record.",
        side_by_side=2,
    ),
    Entry(
        "key-to-door-searches-meta-lambda",
        "key-to-door-searches",
        9,
        "K2",
        "Is Meta-λ(s) better with another outer learning rate of the paper's search?",
        only=("searches-meta-lambda",),
    ),
    Entry(
        "key-to-door-searches-rgm",
        "key-to-door-searches",
        12,
        "K2",
        "Is RGM third in the door phase with any outer learning rate of the paper's search?",
        only=("searches-rgm",),
    ),
    Entry(
        "bsuite-cartpole-a2c",
        "bsuite-cartpole",
        10,
        "B1",
        "A2C's regret in cartpole after the paper's 50,000 episodes.",
        only=("cartpole-a2c",),
    ),
    Entry(
        "bsuite-cartpole-meta-pwr",
        "bsuite-cartpole",
        26,
        "B1",
        "The same for Meta-PWR.",
        only=("cartpole-meta-pwr",),
    ),
    Entry(
        "bsuite-cartpole-meta-pwtd",
        "bsuite-cartpole",
        25,
        "B1",
        "The same for Meta-PWTD.",
        only=("cartpole-meta-pwtd",),
    ),
    Entry(
        "bsuite-baselines-rgm",
        "bsuite-baselines",
        20,
        "B1",
        "A row of the paper's table that was never run: RGM on the umbrella domains.",
        only=("umbrella*-rgm",),
        side_by_side=2,
    ),
)
"""From the top: what decides most for its minutes comes first."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """How far an entry is.

    Attributes:
        entry: the one.
        kept: the folder of its digest, if there is one.
        made: how many of its runs are finished.
        runs: how many it has.
    """

    entry: Entry
    kept: Path | None
    made: int
    runs: int


def standing(entry: Entry, scale: str, folder: Path, kept: Path) -> Standing:
    """How far an entry is: by its digest among those that are kept, or by its finished runs in a folder.

    Raises:
        PaircreditError: the digest of that name is of other runs.
    """
    runs = entry.runs(scale)
    digest = next((place / entry.name for place in (kept, folder / "digests") if (place / entry.name).exists()), None)
    if digest is not None:
        refuse_other_runs(digest, entry, runs)
        return Standing(entry, digest, len(runs), len(runs))
    made = sum(is_finished(spec, folder / "runs" / entry.name) for spec in runs)
    return Standing(entry, None, made, len(runs))


def refuse_other_runs(digest: Path, entry: Entry, runs: Sequence[RunSpec]) -> None:
    """Refuse a digest that is not of these runs, by what it says about where they come from."""
    origin = digest / "provenance.json"
    try:
        there = {run["name"]: run["spec"] for run in json.loads(read_file(origin))}
    except (ValueError, TypeError, KeyError) as error:
        raise PaircreditError(f"{origin} is no provenance of a digest.") from error
    here = json.loads(json.dumps({spec.name: as_json(spec) for spec in runs}))
    if difference := first_difference(there, here):
        raise PaircreditError(
            f"{digest} has the name of an entry of the queue, but holds other runs than {entry.name} ({difference}); "
            "move it, or name another folder of digests."
        )
