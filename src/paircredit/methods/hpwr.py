"""H-PWR: pairwise weighted rewards with weights that are given."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Discrete, Environment
from paircredit.estimators.shapes import expect_shape
from paircredit.methods.agent import ActorCritic
from paircredit.methods.meta_pwr import TO_THE_END, weighted_rewards
from paircredit.methods.rule import Credit, Experience, Needs
from paircredit.networks.state_functions import num_states
from paircredit.settings import setting
from paircredit.weights import FixedPairs, FixedTable, PairWeights, handcrafted_weights


class HPWR(eqx.Module):
    """Ψ_t = Σ_k w(S_t, S_k) R_k − v(S_t) with fixed weights w, where v predicts the weighted return."""

    table: Float[Array, "S S"] | None = setting(
        None, "The weights, over pairs of states or of times; left out, the handcrafted ones of the environment"
    )

    needs: ClassVar[Needs] = Needs(values="weighted", whole_episodes=TO_THE_END)

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Any:
        """The table, or what is handcrafted for the environment."""
        if self.table is None:
            return handcrafted_weights(env)
        tabular = isinstance(env.spec.observation, Discrete)
        size = num_states(env.spec) if tabular else env.spec.horizon
        expect_shape(f"The table of weights for {env.spec.name}", self.table, (size, size))
        return FixedTable(self.table) if tabular else FixedPairs(self.table)

    def credit(self, weights: PairWeights, experience: Experience) -> Credit:
        """As in Meta-PWR, but there is no regular return and nothing evaluates the weights."""
        return weighted_rewards(weights, experience)
