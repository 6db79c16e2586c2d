"""Is this metagradient right? Finite differences judge a method of the library and an objective written from scratch."""

import jax
import jax.numpy as jnp
import optax

from paircredit import pwr, standardise
from paircredit.envs import make_environment
from paircredit.metagradient import (
    adam,
    autodiff_one_step,
    check_metagradient,
    explicit_one_step,
    global_norm,
    unrolled_objective,
)
from paircredit.methods import InnerLoop, make_method
from paircredit.training import collect_episodes


def own_objective(eta, tape):
    """One policy update on six steps of made-up data, credited by weights sigmoid(η), judged on the same steps.

    The mean and deviation of a standardisation are held fixed by the derivative. Finite differences would move them,
    so the objective returns the advantages as its tape and takes the statistics from the tape that it is given.
    """
    rewards, actions = jnp.array([0.0, 1.0, -2.0, 0.5, 1.5, -1.0]), jnp.array([0, 1, 1, 0, 1, 0])

    def loss(logits, advantages):
        log_probs = jax.nn.log_softmax(logits)
        return -jnp.mean(advantages * log_probs[jnp.arange(6) % 3, actions])

    psi = pwr(jax.nn.sigmoid(eta), rewards, jnp.zeros(6))
    logits = jnp.array([[0.1, -0.2], [0.3, 0.0], [-0.1, 0.2]])
    updated = logits - 0.5 * jax.grad(loss)(logits, standardise(psi, statistics_of=tape))
    return loss(updated, jnp.array([1.0, -1.0, 2.0, 0.0, 1.0, -0.5])), psi


def replay(method, env, updates):
    """A fresh learner, and the inner and outer data of some updates, as the reset protocol collects them."""
    fresh = method.init(jax.random.key(0), env)

    def update(learner, key):
        trajectory = collect_episodes(method, learner, env, key)
        improved, kept = method.learn(learner, trajectory)
        return improved, (kept, method.outer_data(learner, trajectory))

    _, (kept, judged) = jax.lax.scan(update, fresh, jax.random.split(jax.random.key(1), updates + 1))
    return fresh, jax.tree.map(lambda x: x[:-1], kept), jax.tree.map(lambda x: x[1:], judged)


def check_own_code():
    """With the tape the check passes, without it right looks wrong, and a gradient that is off by 1 % is caught."""
    eta = jax.random.normal(jax.random.key(0), (6, 6))
    gradient = jax.grad(lambda e: own_objective(e, None)[0])(eta)
    taped = check_metagradient(own_objective, eta, has_tape=True)
    untaped = check_metagradient(lambda e: own_objective(e, None)[0], eta)
    wrong = check_metagradient(own_objective, eta, gradient=1.01 * gradient, has_tape=True)
    print(f"own objective: error {taped.relative_error:.0e}")
    print(f"  compared with differences that move the statistics: {untaped.relative_error:.0e}")
    print(f"  with a gradient that is 1 % too long: {wrong.relative_error:.0e}")


def check_meta_pwr(differentiate):
    """The metagradient through four Adam steps, and how much of it the first step lets through."""
    method = make_method("meta-pwr", inner=InnerLoop(differentiate=differentiate))
    learner, inner, outer = replay(method, make_environment("dag", depth=4), updates=4)
    problem, eta, policy = method.problem(), learner.weights.parameters, learner.policy

    def objective(eta, tape):
        return unrolled_objective(problem, eta, policy.parameters, policy.state, inner, outer, tape)

    check = check_metagradient(objective, eta, has_tape=True)
    first = (eta, policy.parameters, policy.state, *(jax.tree.map(lambda x: x[0], data) for data in (inner, outer)))
    by_hand, by_jax = explicit_one_step(problem, *first).gradient, autodiff_one_step(problem, *first).gradient
    print(f"Meta-PWR, differentiate={differentiate!r}: error {check.relative_error:.0e}")
    print(f"  metagradient through the first step alone: norm {global_norm(by_hand):.1e}")
    print(f"  chain rule by hand and by JAX differ by {jnp.abs(by_hand.eta - by_jax.eta).max():.0e}")


def slope_at_zero(optimiser):
    """The derivative of an optimiser step where the gradient is exactly 0, as in every unvisited row of a table."""
    zero = jnp.zeros(())
    return jax.grad(lambda gradient: optimiser.update(gradient, optimiser.init(zero))[0])(zero)


def main():
    """Run all checks in float64."""
    with jax.enable_x64(True):
        check_own_code()
        for differentiate in ("everything", "numerator"):
            check_meta_pwr(differentiate)
        print(f"slope of a first Adam step at gradient 0: optax {slope_at_zero(optax.adam(0.01, b1=0.0))}, ", end="")
        print(
            f"paircredit {slope_at_zero(adam(0.01)):.0e}, with eps_root {slope_at_zero(adam(0.01, eps_root=1e-4)):.0e}"
        )


if __name__ == "__main__":
    main()
