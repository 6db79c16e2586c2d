"""Studies: what is run, what is shown of it, and which claims are judged; a new one is a room here and a name below."""

from collections.abc import Sequence

from paircredit.errors import unknown_name
from paircredit.experiments.spec import Experiment
from paircredit.results.exhibits import Verdict
from paircredit.runs.read import Run
from paircredit.studies.bsuite import BSUITE
from paircredit.studies.dag import DAG
from paircredit.studies.games import GAMES
from paircredit.studies.key_to_door import KEY_TO_DOOR
from paircredit.studies.own import OWN_RUNS
from paircredit.studies.study import Study
from paircredit.studies.umbrella import UMBRELLA

STUDIES: tuple[Study, ...] = (UMBRELLA, DAG, KEY_TO_DOOR, BSUITE, GAMES, OWN_RUNS)
"""In the order of a report. The command line, figures, claims, the report and the digest all walk this tuple."""


def experiments() -> dict[str, str]:
    """Names and one-line summaries of all experiments."""
    recipes = [recipe for study in STUDIES for recipe in study.experiments]
    return {recipe.name: recipe.summary for recipe in sorted(recipes, key=lambda recipe: recipe.name)}


def make_experiment(name: str, scale: str) -> Experiment:
    """A named experiment at a scale."""
    recipes = {recipe.name: recipe for study in STUDIES for recipe in study.experiments}
    if name not in recipes:
        raise unknown_name("experiment", name, dict.fromkeys(sorted(recipes)))
    return recipes[name].at(scale)


def judge_all(runs: Sequence[Run]) -> list[Verdict]:
    """A verdict for every claim, in order."""
    claims = [claim for study in STUDIES for claim in study.claims]
    return [Verdict(claim.id, claim.statement, claim.where, *claim.judge(runs)) for claim in claims]


__all__ = ["STUDIES", "Study", "experiments", "judge_all", "make_experiment"]
