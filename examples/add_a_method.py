"""A method of your own: Meta-lag, pairwise weighted TD errors with one learned weight per delay."""

import equinox as eqx
import jax
import jax.numpy as jnp
from paircredit.methods.acting import logits_of_policy, no_memory, nothing_to_remember

from paircredit.envs import make_environment
from paircredit.estimators import td_errors
from paircredit.metagradient import MetaProblem
from paircredit.methods import InnerData, InnerLoop, OuterLoop, Trained, make_method, register_method
from paircredit.networks import NetworkSpec, policy_for, value_for
from paircredit.training import Plan, check_method, train


class LagWeights(eqx.Module):
    """f = sigmoid(η[k−t]): one weight per delay, whatever the states."""

    eta: jax.Array

    def __call__(self, inputs):
        """`weights[t, k]` for the T steps of one trajectory, whatever was seen on it."""
        steps = jnp.arange(self.eta.shape[0])
        return self.matrix()[jnp.maximum(steps[None, :] - steps[:, None], 0)]

    def matrix(self):
        """The weight of every delay; a run folder stores what this returns."""
        return jax.nn.sigmoid(self.eta)


class MetaLagLearner(eqx.Module):
    """All that changes in training; the loop knows the names `policy` and `weights`."""

    policy: Trained
    value: Trained
    weights: Trained


class MetaLag(eqx.Module):
    """Ψ_t = Σ_k f_η(k−t) δ_k: the λ-estimator, with a learned curve in place of (γλ)^lag."""

    inner: InnerLoop = InnerLoop()
    outer: OuterLoop = OuterLoop()
    network: NetworkSpec = eqx.field(static=True, default=NetworkSpec())
    episodes = property(lambda self: self.inner.episodes)
    initial_carry = no_memory
    policy = logits_of_policy
    remember = nothing_to_remember

    def init(self, key, env):
        """A nearly uniform policy and a fresh value function, tables or networks as it fits; weights of ½."""
        policy_key, value_key = jax.random.split(key)
        policy = policy_for(policy_key, env.spec, self.network, self.inner.initial_scale)
        value = value_for(value_key, env.spec, self.network)
        weights = self.outer.trained_weights(LagWeights(jnp.zeros(env.spec.horizon)))
        return MetaLagLearner(self.inner.trained_policy(policy), self.inner.trained_value(value), weights)

    def learn(self, learner, trajectory):
        """The inner update: the new learner, and what a metagradient through the update needs."""
        values = jax.vmap(jax.vmap(learner.value.parameters))(trajectory.observations)
        errors = jax.vmap(td_errors)(trajectory.rewards, values, self.inner.discounts(trajectory), trajectory.valid)
        kept = InnerData(learner.policy, trajectory, signal=errors, baseline=jnp.zeros_like(errors), features=None)
        advantages = self.advantages(learner.weights.parameters, kept)
        returns = self.inner.regular_returns(values, trajectory)
        policy = self.inner.improve_policy(learner.policy, trajectory, advantages)
        value = self.inner.improve_value(learner.value, trajectory, returns)
        return MetaLagLearner(policy, value, learner.weights), kept

    def advantages(self, f, data, fixed=None):
        """Σ_k f(k−t) δ_k of a batch; the statistics of a standardisation are taken at `fixed` where it is given."""
        source = None if fixed is None else data.weighted_sums(fixed)
        return self.inner.prepare(data.weighted_sums(f), data.trajectory, statistics_of=source)

    def inner_loss(self, policy, data, advantages):
        """What the inner update descends."""
        return self.inner.policy_loss(policy, data.trajectory, advantages)

    def problem(self):
        """The pieces of the metagradient; η enters through the advantages and nowhere else."""
        return MetaProblem(self.advantages, self.inner_loss, self.inner.policy_optimiser, self.outer.loss)

    def outer_data(self, learner, trajectory):
        """Regular advantages of a batch collected with the learner's policy."""
        return self.outer.data(self.inner, learner.value.parameters, trajectory)

    def improve_weights(self, learner, gradient):
        """The outer update of η."""
        return MetaLagLearner(learner.policy, learner.value, learner.weights.step(self.outer.optimiser, gradient))


def main():
    """Check the metagradient, then train five seeds side by side."""
    register_method("meta-lag", MetaLag, "pairwise weighted TD errors, a learned weight per delay")
    method, env, chunks = make_method("meta-lag"), make_environment("dag", depth=4), []
    with jax.enable_x64(True):
        check = check_method(method, make_environment("dag", depth=4))
        print(f"error of the metagradient: {check.relative_error:.1e}")
    state = train([method] * 5, [env] * 5, range(5), Plan("online", updates=500), 500, on_chunk=chunks.append)
    print(f"mean return of the last 50 batches: {chunks[-1].summaries['episode_return'][:, -50:].mean():.2f} of 2")
    curve = state.learner.weights.parameters.matrix().mean(axis=0)
    print("weights of delays 0 to 3:", ", ".join(f"{weight:.2f}" for weight in curve))


if __name__ == "__main__":
    main()
