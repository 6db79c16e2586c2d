"""bsuite's seven credit-assignment domains: the total regret of the paper's methods beside that of others."""

from paircredit.studies.bsuite.exhibits import FIGURES, TABLES, digest
from paircredit.studies.bsuite.measures import CLAIMS
from paircredit.studies.bsuite.runs import EXPERIMENTS
from paircredit.studies.study import Study

BSUITE = Study(EXPERIMENTS, FIGURES, TABLES, CLAIMS, digest)
