"""The loop beside the inner one: a network learns to predict returns from stored episodes."""

from __future__ import annotations

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Environment
from paircredit.errors import PaircreditError, refuse_unknown
from paircredit.estimators.redistribution import prediction_quality
from paircredit.metagradient.optimisers import Optimiser, adam, apply_updates
from paircredit.methods.loops import Trained, mean_over_valid
from paircredit.methods.replay import EpisodeBuffer, Episodes
from paircredit.networks import NetworkSpec
from paircredit.networks.return_predictor import CellStart, FirstChange, Inputs, ReturnPredictor
from paircredit.settings import check_all, setting
from paircredit.types import PyTree, Trajectory

Scaling = Literal["none", "largest", "ten"]
SCALED_RETURN = 10.0
"""What the largest return becomes where returns are scaled (paper, Atari appendix)."""
RECENT = 40
"""The quality is that of this many episodes, the last that were learned from (paper, Atari appendix)."""


class PredictionState(eqx.Module):
    """What the training of a predictor goes on from; the key is that of the draws."""

    optimiser: PyTree
    buffer: EpisodeBuffer
    key: Key[Array, ""]


class ReturnPrediction(eqx.Module):
    """Hyperparameters of the return predictor and of its training."""

    learning_rate: float = setting(1e-4, "Step size", "paper, KtD appendix", at_least=0)
    second_moment_decay: float = setting(0.999, "β2 of Adam", "paper, KtD appendix", at_least=0, below=1)
    epsilon: float = setting(1e-8, "ε of Adam", "paper, Atari appendix", at_least=0)
    l2: float = setting(
        1e-7, "Weight of the sum of all squared parameters in the loss", "paper, KtD appendix", at_least=0
    )
    auxiliary: float = setting(
        0.0,
        "Weight of the error of the predictions at all steps",
        "paper, KtD appendix: 0 is better than 0.5",
        at_least=0,
    )
    clip_norm: float | None = setting(
        None, "Largest global norm of a gradient; none in Key-to-Door", "paper: 0.5 on Atari", above=0
    )
    first_moment_decay: float = setting(0.9, "β1 of Adam", "paper, KtD appendix", static=True, at_least=0, below=1)
    batches: int = setting(
        10, "Steps of the predictor per update of the policy, on whole episodes", "paper, KtD appendix", at_least=1
    )
    batch_size: int = setting(8, "Episodes per step, drawn uniformly", "paper, KtD appendix", at_least=1)
    capacity: int = setting(128, "Episodes that are kept, the last ones", "paper, KtD appendix")
    warm_up: int = setting(0, "No step before this many episodes were seen", "paper: 32 on Atari", at_least=0)
    width: int = setting(512, "Units of the dense layer below the cell", "paper, KtD appendix", at_least=1)
    cells: int = setting(64, "Width of the cell", "paper, KtD appendix", at_least=1)
    start: CellStart = setting("closed", "How the cell starts", "the paper does not say; as in RUDDER's demonstration")
    inputs: Inputs = setting(
        "both",
        "What it sees beside the action: frame and change of frame (paper, KtD), or the `change` alone",
        "paper, Atari",
    )
    one_module: bool = setting(
        False, "Whether one perception module looks at frame and change, or each has its own", "the paper does not say"
    )
    first_change: FirstChange = setting(
        "zero", "What has changed at the first step: nothing, or all of the frame", "the paper does not say"
    )
    scaling: Scaling = setting(
        "none",
        "Whether returns are learned as they are, with the largest seen as 10 (paper, Atari), or as tenths",
        "RUDDER's demonstration",
    )
    chunk: int | None = setting(
        None,
        "No gradient passes from one segment of this many steps to the one before",
        "paper: 128 on Atari",
        static=True,
        at_least=1,
    )
    steps: int = setting(
        512,
        "In a stream of episodes, the most steps of a sequence whose return is predicted",
        "paper, Atari appendix",
        at_least=1,
    )
    every: int = setting(
        100,
        "In a stream, the predictor learns once in this many updates of the policy",
        "paper, Atari appendix",
        at_least=1,
    )
    epochs: int = setting(
        100,
        "In a stream, the most epochs it then learns, of capacity / batch_size steps each",
        "paper, Atari appendix",
        at_least=1,
    )

    def check(self, episodes: int) -> None:
        """Refuse numbers that nothing can be learned with, given the episodes of one update."""
        check_all(self, "prediction")
        if self.capacity < episodes:
            raise PaircreditError(
                f"A replay buffer of {self.capacity} episodes (prediction.capacity) cannot hold the {episodes} of one "
                "update (inner.episodes); make it at least as large."
            )
        refuse_unknown("scaling of returns", self.scaling, get_args(Scaling))

    @property
    def optimiser(self) -> Optimiser:
        return adam(
            self.learning_rate,
            b1=self.first_moment_decay,
            b2=self.second_moment_decay,
            eps=self.epsilon,
            clip_norm=self.clip_norm,
        )

    def predictor(self, key: Key[Array, ""], env: Environment, network: NetworkSpec) -> ReturnPredictor:
        return ReturnPredictor.random(
            key, env.spec, network, self.width, self.cells, self.start, self.first_change, self.inputs, self.one_module
        )

    def init(self, key: Key[Array, ""], env: Environment, network: NetworkSpec) -> Trained:
        below, draws = jax.random.split(key)
        predictor = self.predictor(below, env, network)
        state = PredictionState(self.optimiser.init(predictor), EpisodeBuffer.empty(env, self.capacity), draws)
        return Trained(predictor, state)

    def factor(self, largest: Float[Array, ""]) -> Float[Array, ""]:
        """What returns are multiplied by for the predictor, given the largest that was seen."""
        if self.scaling == "none":
            return jnp.ones_like(largest)
        if self.scaling == "ten":
            return jnp.full_like(largest, 0.1)
        return SCALED_RETURN / jnp.where(largest > 0, largest, SCALED_RETURN)

    def predictions(
        self, predictor: ReturnPredictor, trajectory: Trajectory, largest: Float[Array, ""]
    ) -> Float[Array, "B T"]:
        """All g of a batch of episodes, in the units of the rewards."""
        episodes = Episodes.of(trajectory)
        return jax.vmap(predictor)(episodes.observations, episodes.actions, episodes.valid) / self.factor(largest)

    def loss(
        self, predictor: ReturnPredictor, episodes: Episodes, targets: Float[Array, " B"]
    ) -> tuple[Float[Array, ""], Float[Array, " B"]]:
        """(g_T − G)², the auxiliary error and the L2 penalty, in the mean over episodes; and the predictions g_T."""

        def read(observations: PyTree, actions: Array, valid: Array) -> Array:
            return predictor(observations, actions, valid, self.chunk)

        predictions = jax.vmap(read)(episodes.observations, episodes.actions, episodes.valid)
        squares = jnp.square(predictions - targets[:, None])
        everywhere = jnp.mean(jax.vmap(mean_over_valid)(squares, episodes.valid))
        penalty = sum((jnp.sum(jnp.square(x)) for x in jax.tree.leaves(predictor)), start=jnp.zeros((), dtype=float))
        final, last = squares[:, -1], predictions[:, -1]
        if self.chunk is not None:  # after the end the same numbers stand, but no gradient may reach back from there
            ends = jnp.maximum(jnp.sum(episodes.valid, axis=1, keepdims=True) - 1, 0)
            final, last = (jnp.take_along_axis(x, ends, axis=1)[:, 0] for x in (squares, predictions))
        return jnp.mean(final) + self.auxiliary * everywhere + self.l2 * penalty, last

    def step(
        self, predictor: ReturnPredictor, optimiser: PyTree, episodes: Episodes, factor: Float[Array, ""]
    ) -> tuple[ReturnPredictor, PyTree, Float[Array, " B"], Float[Array, " B"]]:
        """One step of predictor and optimiser on some episodes; their predictions before it, and scaled returns."""
        targets = factor * episodes.returns
        gradients, last = jax.grad(self.loss, has_aux=True)(predictor, episodes, targets)
        updates, optimiser = self.optimiser.update(gradients, optimiser)
        return apply_updates(predictor, updates), optimiser, last, targets

    def improve(
        self, trained: Trained, trajectory: Trajectory, largest: Float[Array, ""]
    ) -> tuple[Trained, Float[Array, ""]]:
        """Store a batch of episodes, then learn from what is stored.

        `largest` is the largest |return| so far, this batch included. Returns the predictor afterwards, and the quality
        of its predictions on the last episodes that it learned from, as they were before it did.
        """
        state: PredictionState = trained.state
        buffer, factor = state.buffer.insert(Episodes.of(trajectory)), self.factor(largest)
        key, draws = jax.random.split(state.key)
        learning = buffer.stored >= self.warm_up

        def step(before: tuple[ReturnPredictor, PyTree], draw: Array) -> tuple[tuple, tuple[Array, Array]]:
            *new, last, targets = self.step(*before, buffer.sample(draw, self.batch_size), factor)
            after = tuple(new)
            if self.warm_up > 0:
                after = jax.tree.map(lambda new, old: jnp.where(learning, new, old), after, before)
            return after, (last, targets)

        start = (trained.parameters, state.optimiser)
        (predictor, optimiser), evaluated = jax.lax.scan(step, start, jax.random.split(draws, self.batches))
        last, targets = (x.reshape(-1)[-RECENT:] for x in evaluated)
        quality = jnp.where(learning, prediction_quality(last, targets, factor * largest), 0.0)
        return Trained(predictor, PredictionState(optimiser, buffer, key)), quality
