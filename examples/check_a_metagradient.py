"""Is a metagradient right? Finite differences judge an objective written from scratch and a method of the library."""

from functools import partial

import jax
import jax.numpy as jnp

from paircredit import pwr, standardise
from paircredit.envs import make_environment
from paircredit.metagradient import adam, check_metagradient, explicit_one_step, unrolled_objective
from paircredit.metagradient.optimisers import global_norm
from paircredit.methods import InnerLoop, make_method
from paircredit.training.loop import inner_updates


@jax.jit
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
    _, kept, judged, _ = inner_updates(method, env, fresh, jax.random.key(1), updates)
    return fresh, kept, judged


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

    @jax.jit
    def objective(eta, tape):
        return unrolled_objective(problem, eta, policy.parameters, policy.state, inner, outer, tape)

    check = check_metagradient(objective, eta, has_tape=True)
    first = (eta, policy.parameters, policy.state, *(jax.tree.map(lambda x: x[0], data) for data in (inner, outer)))
    through_first = jax.jit(partial(explicit_one_step, problem))(*first).gradient
    print(f"Meta-PWR, differentiate={differentiate!r}: error {check.relative_error:.0e}")
    print(f"  metagradient through the first step alone: norm {global_norm(through_first):.0e}")


def slope_at_zero(step):
    """The derivative of an optimiser step where the gradient is exactly 0, as in every unvisited row of a table."""
    return float(jax.grad(step)(jnp.zeros(())))


def first_step(optimiser):
    """A fresh optimiser's first step as a function of the gradient."""
    return lambda gradient: optimiser.update(gradient, optimiser.init(gradient))[0]


def main():
    """Run all checks in float64."""
    with jax.enable_x64(True):
        check_own_code()
        for differentiate in ("everything", "numerator"):
            check_meta_pwr(differentiate)
        plain = slope_at_zero(lambda gradient: -0.01 * gradient / (jnp.sqrt(gradient**2) + 1e-8))
        safe, bounded = slope_at_zero(first_step(adam(0.01))), slope_at_zero(first_step(adam(0.01, eps_root=1e-4)))
        print(f"slope of Adam's first step at 0: plain root {plain}, safe root {safe:.0e}, eps_root {bounded:.0e}")


if __name__ == "__main__":
    main()
