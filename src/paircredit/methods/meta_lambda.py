"""Meta-λ(s): the λ-estimator with a λ for every state, learned by metagradient (Xu et al. 2018)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import refuse_unknown
from paircredit.methods.agent import ActorCritic
from paircredit.methods.rule import Credit, Experience, Needs, lambda_credit
from paircredit.networks.state_functions import lambda_for
from paircredit.settings import setting


class MetaLambda(eqx.Module):
    """Ψ_t = G_t − v_w(S_t), where v_w predicts the λ(s)-return G.

    G_t = R_{t+1} + γ[(1 − λ(S_{t+1})) v_w(S_{t+1}) + λ(S_{t+1}) G_{t+1}]; the values in it are constants.
    """

    initial_lambda: float = setting(
        0.5,
        "What λ(s) starts near in all states",
        "our choice: a sigmoid at 0; 0 and 1 could never be left",
        at_least=0,
        at_most=1,
    )
    at: Literal["next", "current"] = setting(
        "next",
        "Whose λ decides about what follows the transition from S_t to S_{t+1}: that of the state that would be "
        "bootstrapped from, S_{t+1}, or that of S_t",
        "the paper does not say",
    )

    needs: ClassVar[Needs] = Needs(values="both")

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Any:
        """A λ(s) that hardly looks at the state."""
        return lambda_for(key, env.spec, agent.network, self.initial_lambda, agent.weight_scale)

    def credit(self, weights: Callable, experience: Experience) -> Credit:
        """TD errors of the weighted values, weighed by products of γλ(s)."""
        refuse_unknown("state whose λ is taken", self.at, ("next", "current"))
        lambdas = jax.vmap(weights)(experience.trajectory.observations)
        lambdas = lambdas[1:] if self.at == "next" else lambdas[:-1]
        credit = lambda_credit(experience.trajectory, experience.weighted_values, experience.discounts, lambdas)
        return dataclasses.replace(
            credit, weighted_return=credit.regular_return, regular_return=experience.regular_returns
        )
