"""The DAG of decisions: weights that are learned with resets, and fresh policies that are trained with them."""

from paircredit.studies.dag.exhibits import FIGURES, TABLES, digest, kept_weights
from paircredit.studies.dag.measures import CLAIMS
from paircredit.studies.dag.runs import EXPERIMENTS
from paircredit.studies.study import Study

DAG = Study(EXPERIMENTS, FIGURES, TABLES, CLAIMS, digest, kept_weights)
