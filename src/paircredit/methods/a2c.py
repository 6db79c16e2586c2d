"""A2C: the λ-estimator with a fixed λ; λ = 1 is the paper's "regular return"."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx

from paircredit.methods.rule import Credit, Experience, Needs, lambda_credit
from paircredit.settings import setting


class A2C(eqx.Module):
    """Ψ_t = Σ_k (γλ)^(k−t) δ_k, the λ-estimator."""

    lambda_: float = setting(
        1.0,
        "λ",
        "paper, DAG appendix: 1 is best there; here it is not, see docs/reproduction.md#the-search",
        at_least=0,
        at_most=1,
    )

    needs: ClassVar[Needs] = Needs(sharing=True)

    def weights(self, agent: Any, key: Any, env: Any) -> None:
        """Nothing is weighed that could learn."""

    def credit(self, weights: None, experience: Experience) -> Credit:
        """TD errors, weighed by (γλ)^(k−t); the value function follows the λ-return."""
        return lambda_credit(experience.trajectory, experience.values, experience.discounts, self.lambda_)
