"""The DAG of decisions: weights that are learned with resets, and fresh policies that are trained with them."""

from paircredit.studies.dag import exhibits, measures, search
from paircredit.studies.dag.runs import EXPERIMENTS
from paircredit.studies.study import Study

DAG = Study(
    EXPERIMENTS,
    (*exhibits.FIGURES, *search.FIGURES),
    (*exhibits.TABLES, *search.TABLES),
    (*measures.CLAIMS, *search.CLAIMS),
    lambda runs: {**exhibits.digest(runs), **search.digest(runs)},
    exhibits.kept_weights,
)
