"""Exact answers where an environment has a model, and the quality of estimators beside them."""

from paircredit.analysis.credit import compare_estimators, estimator_quality
from paircredit.analysis.exact import expected_return, optimal_values, policy_gradient

__all__ = [
    "compare_estimators",
    "estimator_quality",
    "expected_return",
    "optimal_values",
    "policy_gradient",
]
