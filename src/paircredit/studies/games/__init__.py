"""Atari and MinAtar: Meta-PWTD beside A2C on many games."""

from paircredit.results.study import Study
from paircredit.studies.games.claims import CLAIMS
from paircredit.studies.games.exhibits import FIGURES, TABLES, digest
from paircredit.studies.games.runs import EXPERIMENTS

GAMES = Study(EXPERIMENTS, FIGURES, TABLES, CLAIMS, digest)
