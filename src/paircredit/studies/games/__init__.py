"""Atari and MinAtar: Meta-PWTD beside A2C on many games."""

from paircredit.studies.games.exhibits import FIGURES, TABLES, digest
from paircredit.studies.games.measures import CLAIMS
from paircredit.studies.games.runs import EXPERIMENTS
from paircredit.studies.study import Study

GAMES = Study(EXPERIMENTS, FIGURES, TABLES, CLAIMS, digest)
