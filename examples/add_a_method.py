"""A method of your own: Meta-lag, pairwise weighted rewards with one learned weight per delay."""

import sys
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from paircredit import cli
from paircredit.envs import make_environment
from paircredit.estimators import pairwise_sum, pwr
from paircredit.methods import ActorCritic, Credit, Needs, OuterLoop, make_method, register_method
from paircredit.settings import setting
from paircredit.training import check_method

RUNS = {"dag": "--env.depth 4 --frames 16000 --seeds 5", "key-to-door": "--preset small --frames 10000 --seeds 2"}


class MetaLag(eqx.Module):
    """Ψ_t = Σ_k sigmoid(η_{k−t}) R_k − v(S_t), where v predicts the weighted return."""

    initial: float = setting(0.5, "Weight of every delay at the start", "our choice", above=0, below=1)
    needs: ClassVar[Needs] = Needs(values="both", whole_episodes="its weights reach to the end of the episode")

    def weights(self, agent, key, env):
        """η, a number per delay; it is learned if the agent has an outer loop."""
        return jnp.full(env.spec.horizon, jax.scipy.special.logit(self.initial))

    def credit(self, eta, experience):
        """The credit of one trajectory, and what the two value functions are to predict."""
        seen, values = experience.trajectory, experience.weighted_values
        steps = jnp.arange(len(eta))
        weights = jax.nn.sigmoid(eta)[jnp.abs(steps[None, :] - steps[:, None])]
        return Credit(
            advantages=pwr(weights, seen.rewards, values, seen.valid),
            weights=weights,
            signal=seen.rewards,
            baseline=values[:-1],
            weighted_return=pairwise_sum(weights, seen.rewards, seen.valid),
            regular_return=experience.regular_returns,
        )


def main(words):
    """The command line of paircredit with one method more; without words, the walk-through."""
    register_method("meta-lag", ActorCritic(MetaLag(), outer=OuterLoop()), "weighted rewards, a weight per delay")
    if words:
        return cli.main(words)
    with jax.enable_x64(True):
        check = check_method(make_method("meta-lag"), make_environment("dag", depth=4))
    print(f"error of the metagradient: {check.relative_error:.1e}")
    for env, options in RUNS.items():
        for name in ("meta-pwr", "meta-lag"):
            cli.main(["train", env, name, "--out", f"runs/lag/{env}-{name}", *options.split()])
    return cli.main(["figures", "runs/lag"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
