"""Advantage estimators: pure functions of one trajectory, differentiable, padding-aware."""

from paircredit.estimators.pairwise import pairwise_sum, pwr, pwtd
from paircredit.estimators.redistribution import (
    mix_advantages,
    prediction_differences,
    prediction_quality,
    redistribute,
)
from paircredit.estimators.returns import discounted_returns, lambda_advantages, td_errors
from paircredit.estimators.standardise import standardise

__all__ = [
    "discounted_returns",
    "lambda_advantages",
    "mix_advantages",
    "pairwise_sum",
    "prediction_differences",
    "prediction_quality",
    "pwr",
    "pwtd",
    "redistribute",
    "standardise",
    "td_errors",
]
