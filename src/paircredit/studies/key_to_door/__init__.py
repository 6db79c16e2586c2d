"""Key-to-Door, the paper's central experiment: a key is found early, a door pays for it late, apples lie between."""

from paircredit.studies.key_to_door.exhibits import FIGURES, TABLES, digest
from paircredit.studies.key_to_door.measures import CLAIMS
from paircredit.studies.key_to_door.runs import EXPERIMENTS
from paircredit.studies.key_to_door.weights import WEIGHT_CLAIMS, kept_weights
from paircredit.studies.study import Study

KEY_TO_DOOR = Study(EXPERIMENTS, FIGURES, TABLES, CLAIMS + WEIGHT_CLAIMS, digest, kept_weights)
