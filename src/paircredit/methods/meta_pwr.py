"""Meta-PWR: learned pairwise weighted rewards."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Key

from paircredit.envs.protocol import Environment
from paircredit.estimators import pairwise_sum, pwr
from paircredit.methods.agent import ActorCritic
from paircredit.methods.rule import Credit, Experience, Needs, within_episodes
from paircredit.weights import PairWeights, weights_for

TO_THE_END = "its weights reach to the end of the episode and nothing stands in for rewards after a cut"
"""Why segments of episodes are refused."""


class MetaPWR(eqx.Module):
    """Ψ_t = Σ_k f_η(S_t, S_k, k−t) R_k − v(S_t), where v predicts the weighted return."""

    needs: ClassVar[Needs] = Needs(values="both", features=True, whole_episodes=TO_THE_END)

    def weights(self, agent: ActorCritic, key: Key[Array, ""], env: Environment) -> Any:
        """Weights near ½: a table over pairs of states, or a network that does not see the rewards."""
        return weights_for(key, env.spec, agent.network, agent.weight_scale, sees_signal=False)

    def credit(self, weights: PairWeights, experience: Experience) -> Credit:
        """`value` predicts the regular return and evaluates the weights; `weighted_value` is the baseline."""
        return weighted_rewards(weights, experience)


def weighted_rewards(weights: PairWeights, experience: Experience) -> Credit:
    seen, rewards, values = experience.trajectory, experience.trajectory.rewards, experience.weighted_values
    pairs = experience.pairs(weights, rewards)
    return Credit(
        advantages=pwr(pairs, rewards, values, seen.valid, seen.episode),
        weights=within_episodes(pairs, seen),
        signal=rewards,
        baseline=values[:-1],
        weighted_return=pairwise_sum(pairs, rewards, seen.valid, seen.episode),
        regular_return=experience.regular_returns,
    )
