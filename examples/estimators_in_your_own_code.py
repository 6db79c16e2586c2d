"""The estimators in training code that takes nothing else from paircredit: own environment, networks and weights.

The first action of a day (take the umbrella or not) decides its last reward (+1 or -1); every step in between pays
noise. Days have 4 to 8 steps and are padded with NaN, which no estimator reads. Credit is given by λ-advantages, by
weights written by hand, and by weights that are learned by differentiating through the policy update.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from paircredit import discounted_returns, lambda_advantages, pairwise_sum

STEPS, BATCH, NOISE, UPDATES, POLICY_RATE, VALUE_RATE = 8, 16, 3.0, 100, 0.5, 0.05
NOTHING = jnp.zeros((3, 3))  # logits of the weights: all weights are 0.5
HANDWRITTEN = jnp.full((3, 3), -20.0).at[0, 2].set(20.0)  # the morning earns the evening's reward and nothing else


def play(key, logit):
    """A batch of days; the umbrella is taken with probability sigmoid(logit)."""
    action_key, length_key, noise_key = jax.random.split(key, 3)
    taken = jax.random.bernoulli(action_key, jax.nn.sigmoid(logit), (BATCH, 1))
    lengths = jax.random.randint(length_key, (BATCH, 1), STEPS // 2, STEPS + 1)
    time = jnp.broadcast_to(jnp.arange(STEPS + 1), (BATCH, STEPS + 1))
    noise = NOISE * jax.random.normal(noise_key, (BATCH, STEPS))
    paid = jnp.where(time[:, 1:] == lengths, jnp.where(taken, 1.0, -1.0), noise)
    return {
        "states": jnp.where(time == 0, 0, jnp.where(time < lengths, 1, 2)),  # [B, T+1]: morning, day, evening
        "taken": taken[:, 0],
        "rewards": jnp.where(time[:, :-1] < lengths, paid, jnp.nan),
        "discounts": jnp.where(time[:, 1:] < lengths, 1.0, 0.0),  # 0 where the day is over: nothing is bootstrapped
        "valid": time[:, :-1] < lengths,
    }


def values_of(network, states):
    """Your value network, on a whole batch: [B, T+1]."""
    return jnp.tanh(network["in"][states] + network["bias"]) @ network["out"]


def weighted_returns(eta, batch):
    """Σ_k f(S_t, S_k) R_k, with a weight of your own for every pair: f = sigmoid(η[S_t, S_k])."""
    states = batch["states"]
    weights = jax.nn.sigmoid(eta[states[:, :-1, None], states[:, None, 1:]])
    return jax.vmap(pairwise_sum)(weights, batch["rewards"], batch["valid"])


def pairwise_advantages(eta, networks, batch):
    """Ψ^PWR: weighted returns minus the baseline of weighted returns."""
    return weighted_returns(eta, batch) - values_of(networks["weighted"], batch["states"])[:, :-1]


def regular_advantages(networks, batch, lambda_=1.0):
    """λ-advantages: an estimator takes one trajectory, and `vmap` makes a batch of it."""
    values = values_of(networks["regular"], batch["states"])
    estimate = partial(lambda_advantages, lambda_=lambda_)
    return jax.vmap(estimate)(batch["rewards"], values, batch["discounts"], valid=batch["valid"])


def value_loss(networks, eta, batch):
    """Squared errors of both value functions towards their own returns."""
    states, valid = batch["states"][:, :-1], batch["valid"]
    returns = jax.vmap(discounted_returns)(batch["rewards"], batch["discounts"], valid)
    regular = values_of(networks["regular"], states) - returns
    weighted = values_of(networks["weighted"], states) - weighted_returns(eta, batch)
    return jnp.mean(jnp.where(valid, regular**2 + weighted**2, 0.0))


def policy_loss(logit, batch, advantages):
    """The policy gradient loss of the one decision there is: the first action of every day."""
    log_probs = jnp.where(batch["taken"], jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit))
    return -jnp.mean(advantages[:, 0] * log_probs)


def outer_loss(eta, logit, networks, batch, next_batch):
    """What evaluates η: the regular loss on the next batch, after the update that η has shaped."""
    slope = jax.grad(policy_loss)(logit, batch, pairwise_advantages(eta, networks, batch))
    return policy_loss(logit - POLICY_RATE * slope, next_batch, regular_advantages(networks, next_batch))


def train(key, eta, pairwise, weight_rate):
    """One policy from start to end, credited by λ-advantages (pairwise = 0) or by pairwise weights (pairwise = 1)."""

    def update(state, update_key):
        logit, eta, networks, batch = state
        weighted, regular = pairwise_advantages(eta, networks, batch), regular_advantages(networks, batch)
        advantages = pairwise * weighted + (1.0 - pairwise) * regular
        new_logit = logit - POLICY_RATE * jax.grad(policy_loss)(logit, batch, advantages)
        next_batch = play(update_key, new_logit)
        eta = eta - weight_rate * jax.grad(outer_loss)(eta, logit, networks, batch, next_batch)
        slopes = jax.grad(value_loss)(networks, eta, batch)
        networks = jax.tree.map(lambda x, slope: x - VALUE_RATE * slope, networks, slopes)
        return (new_logit, eta, networks, next_batch), jnp.var(advantages[:, 0])

    network = {"in": jax.random.normal(key, (3, 8)), "bias": jnp.zeros(8), "out": jnp.zeros(8)}
    start = (jnp.zeros(()), eta, {"regular": network, "weighted": network}, play(key, jnp.zeros(())))
    (logit, eta, _, _), variances = jax.lax.scan(update, start, jax.random.split(key, UPDATES))
    return jax.nn.sigmoid(logit), jax.nn.sigmoid(eta), variances[-UPDATES // 4 :].mean()


def main():
    """Train 20 policies with each kind of credit, all 60 as one program."""
    kinds = {"λ = 1": (NOTHING, 0.0, 0.0), "handwritten": (HANDWRITTEN, 1.0, 0.0), "learned": (NOTHING, 1.0, 20.0)}
    settings = jax.tree.map(lambda *leaves: jnp.stack(jnp.broadcast_arrays(*leaves)), *kinds.values())
    seeds = jax.random.split(jax.random.key(1), 20)
    program = jax.jit(jax.vmap(jax.vmap(train, in_axes=(0, None, None, None)), in_axes=(None, 0, 0, 0)))
    taken, weights, variances = program(seeds, *settings)
    for kind, chance, variance in zip(kinds, taken.mean(axis=1), variances.mean(axis=1), strict=True):
        print(f"{kind:<11} takes the umbrella with probability {chance:.3f}, variance of its credit {variance:.2f}")
    _, day, evening = weights[-1].mean(axis=0)[0]
    print(f"learned weights of the morning: {day:.2f} for rewards of the day, {evening:.2f} for the evening's")


if __name__ == "__main__":
    main()
