"""Advantage estimators: pure functions of one trajectory, differentiable, padding-aware."""

from paircredit.estimators.pairwise import pairwise_sum, pwr, pwtd
from paircredit.estimators.redistribution import redistribute
from paircredit.estimators.returns import discounted_returns, lambda_advantages, standardise, td_errors
from paircredit.estimators.transport import associated_rewards, synthetic_rewards, transported_values

__all__ = [
    "associated_rewards",
    "discounted_returns",
    "lambda_advantages",
    "pairwise_sum",
    "pwr",
    "pwtd",
    "redistribute",
    "standardise",
    "synthetic_rewards",
    "td_errors",
    "transported_values",
]
