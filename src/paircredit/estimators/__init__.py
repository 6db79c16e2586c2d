"""Advantage estimators: pure functions of one trajectory, differentiable, padding-aware."""

from paircredit.estimators.pairwise import pairwise_sum, pwr, pwtd
from paircredit.estimators.redistribution import (
    SequenceMarks,
    mark_sequences,
    mix_advantages,
    prediction_differences,
    prediction_quality,
    redistribute,
    redistribute_stream,
)
from paircredit.estimators.returns import discounted_returns, lambda_advantages, standardise, td_errors
from paircredit.estimators.transport import (
    associated_rewards,
    recency_window,
    synthetic_rewards,
    transported_values,
)

__all__ = [
    "SequenceMarks",
    "associated_rewards",
    "discounted_returns",
    "lambda_advantages",
    "mark_sequences",
    "mix_advantages",
    "pairwise_sum",
    "prediction_differences",
    "prediction_quality",
    "pwr",
    "pwtd",
    "recency_window",
    "redistribute",
    "redistribute_stream",
    "standardise",
    "synthetic_rewards",
    "td_errors",
    "transported_values",
]
