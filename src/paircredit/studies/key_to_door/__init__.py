"""Key-to-Door, the paper's central experiment: a key is found early, a door pays for it late, apples lie between."""

from paircredit.studies.key_to_door import exhibits, measures, runs, weights
from paircredit.studies.study import Study

KEY_TO_DOOR = Study(
    runs.EXPERIMENTS,
    exhibits.FIGURES,
    exhibits.TABLES,
    measures.CLAIMS + weights.CLAIMS,
    exhibits.digest,
    weights.kept_weights,
)
