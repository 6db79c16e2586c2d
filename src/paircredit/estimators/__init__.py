"""Advantage estimators: pure functions of one trajectory, differentiable, padding-aware."""

from paircredit.estimators.pairwise import pairwise_sum, pwr, pwtd
from paircredit.estimators.returns import discounted_returns, lambda_advantages, td_errors
from paircredit.estimators.standardise import standardise
from paircredit.estimators.synthetic import associated_rewards, synthetic_rewards

__all__ = [
    "associated_rewards",
    "discounted_returns",
    "lambda_advantages",
    "pairwise_sum",
    "pwr",
    "pwtd",
    "standardise",
    "synthetic_rewards",
    "td_errors",
]
