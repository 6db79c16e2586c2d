"""Learned pairwise weights for temporal credit assignment.

The estimators are here at the top; everything else lives in its room: `paircredit.weights`, `paircredit.metagradient`,
`paircredit.envs`, `paircredit.methods`, `paircredit.training`, `paircredit.analysis`.
"""

from paircredit.errors import PaircreditError
from paircredit.estimators import (
    discounted_returns,
    lambda_advantages,
    pairwise_sum,
    pwr,
    pwtd,
    standardise,
    td_errors,
)
from paircredit.types import TimeStep, Trajectory

__version__ = "0.1.0"

__all__ = [
    "PaircreditError",
    "TimeStep",
    "Trajectory",
    "discounted_returns",
    "lambda_advantages",
    "pairwise_sum",
    "pwr",
    "pwtd",
    "standardise",
    "td_errors",
]
