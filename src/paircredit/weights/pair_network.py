"""The paper's meta-network: a weight for every pair of steps from what the two states look like and how far apart.

`weights_for` chooses between this network and a table over pairs of states, by what an environment shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from paircredit.envs.protocol import Discrete, EnvSpec, Vector
from paircredit.errors import PaircreditError, refuse_unknown, unknown_name
from paircredit.networks.layers import Dense, LagEncoding, NetworkSpec, PairPerception
from paircredit.networks.perception import PerceptionModule, perception_of
from paircredit.weights.pairs import PairParameters, dense_pair_logits, whole_pair_logits
from paircredit.weights.pairs.kernel import kernel_pair_logits
from paircredit.weights.pairs.tiled import tiled_pair_logits
from paircredit.weights.tables import PairInputs, SigmoidTable

OUTPUT_SCALE = 0.01
"""Factor on the initial weights of the last layer, so that all pairs start near ½ (paper, KtD appendix)."""
LONGEST_FOR_KERNELS = 1024
"""Steps of an episode up to which `auto` takes the kernels: nobody has timed them on longer ones."""
LONGEST_AT_ONCE = 16
"""Steps of an episode up to which `auto` computes all pairs at once on a CPU; longer ones leave its caches."""
SINUSOIDS = 32
"""Pairs of sine and cosine of the sinusoidal encoding."""


class PairNetwork(eqx.Module):
    """w_tk = sigmoid(out · relu(norm((row_t + 1)(column_k + 1)(lag_{k−t} + 1))) + bias) (paper, KtD appendix)."""

    row: Dense
    column: Dense
    lag: Dense
    scale: Float[Array, " D"]
    shift: Float[Array, " D"]
    out: Float[Array, " D"]
    bias: Float[Array, ""]
    perception: PerceptionModule | None
    horizon: int = eqx.field(static=True)
    sees_signal: bool = eqx.field(static=True)
    spec: NetworkSpec = eqx.field(static=True)

    @classmethod
    def random(
        cls,
        key: Key[Array, ""],
        horizon: int,
        spec: NetworkSpec,
        sees_signal: bool,
        perception: PerceptionModule | None = None,
    ) -> PairNetwork:
        """Fan-in normal weights, biases of 0, all pairs near ½, for episodes of T = `horizon` steps.

        With `sees_signal` columns also see what arrives with them, clipped to ±1 (Meta-PWTD). Without a perception
        module of its own it sees the features of a value network.
        """
        pair_backend(spec.backend, jax.dtypes.canonicalize_dtype(float), horizon)  # refuse a bad name here, not later
        keys = jax.random.split(key, 4)
        features, width = spec.trunk[1], spec.pair_width
        inputs = lag_encoding(horizon, spec.lag).shape[1]
        return cls(
            row=Dense.random(keys[0], features, width),
            column=Dense.random(keys[1], features + int(sees_signal), width),
            lag=Dense.random(keys[2], inputs, width),
            scale=jnp.ones((width,), dtype=float),
            shift=jnp.zeros((width,), dtype=float),
            out=Dense.random(keys[3], width, 1, OUTPUT_SCALE).weight[:, 0],
            bias=jnp.zeros((), dtype=float),
            perception=perception,
            horizon=horizon,
            sees_signal=sees_signal,
            spec=spec,
        )

    def __call__(self, inputs: PairInputs) -> Float[Array, "T T"]:
        """The weights of all pairs of one episode, or of each episode of one segment."""
        features = inputs.features if self.perception is None else jax.vmap(self.perception)(inputs.observations)
        if features is None or inputs.valid is None:
            raise PaircreditError("A pair network needs the features of a value network and which steps are valid.")
        columns = features[1:]
        if self.sees_signal:
            if inputs.signal is None:
                raise PaircreditError("This pair network needs to see what it weighs; give it the signal.")
            columns = jnp.concatenate([columns, jnp.clip(inputs.signal, -1.0, 1.0)[:, None]], axis=1)
        encoded = jnp.asarray(lag_encoding(self.horizon, self.spec.lag), dtype=self.out.dtype)
        parameters = PairParameters(
            rows=jax.nn.relu(self.row(features[:-1])) + 1.0,
            columns=jax.nn.relu(self.column(columns)) + 1.0,
            lags=self.lag(encoded) + 1.0,
            scale=self.scale,
            shift=self.shift,
            out=self.out,
        )
        if inputs.episode is not None:
            return jax.nn.sigmoid(dense_pair_logits(parameters, inputs.valid, inputs.episode) + self.bias)
        logits = pair_backend(self.spec.backend, self.out.dtype, self.horizon)
        return jax.nn.sigmoid(logits(parameters, inputs.valid) + self.bias)


def weights_for(
    key: Key[Array, ""], spec: EnvSpec, network: NetworkSpec, scale: float, sees_signal: bool
) -> SigmoidTable | PairNetwork:
    """Learned weights that start near ½: a table of parameters uniform in ± `scale`, or the pair network."""
    if isinstance(spec.observation, Discrete):
        return SigmoidTable.random(key, spec.observation.size, scale)
    refuse_unknown("perception of the pair network", network.pair_perception, get_args(PairPerception))
    own = network.pair_perception == "own" or (
        network.pair_perception == "auto" and isinstance(spec.observation, Vector)
    )
    perception = perception_of(jax.random.fold_in(key, 1), spec.observation, network) if own else None
    return PairNetwork.random(key, spec.horizon, network, sees_signal, perception)


def lag_encoding(horizon: int, kind: LagEncoding) -> np.ndarray:
    """One row of inputs for each of the time differences 1 … T."""
    lags = np.arange(1, horizon + 1)
    if kind == "scalar":
        return lags[:, None] / horizon
    if kind == "one-hot":  # times √T: the entries of the embedding then start with deviation 1
        return np.sqrt(horizon) * np.eye(horizon)
    if kind != "sinusoidal":
        raise unknown_name("lag encoding", kind, get_args(LagEncoding))
    angles = lags[:, None] / (2.0 * horizon) ** (np.arange(SINUSOIDS)[None, :] / SINUSOIDS)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def pair_backend(name: str, dtype: jnp.dtype, steps: int) -> Callable[[PairParameters, Array], Array]:
    """The function that computes the logits of all pairs of an episode of `steps` steps."""
    backends: dict[str, Callable[[PairParameters, Array], Array]] = {
        "dense": dense_pair_logits,
        "tiled": tiled_pair_logits,
        "whole": whole_pair_logits,
        "kernel": kernel_pair_logits,
    }
    if name == "auto":
        fit = jax.default_backend() == "gpu" and dtype == jnp.float32 and steps <= LONGEST_FOR_KERNELS
        short = jax.default_backend() == "cpu" and steps <= LONGEST_AT_ONCE
        name = "kernel" if fit else "whole" if short else "tiled"
    if name not in backends:
        raise unknown_name("pair back end", name, ("auto", *backends))
    if name == "kernel" and (jax.default_backend() != "gpu" or dtype != jnp.float32):
        raise PaircreditError(
            f"The kernels of the pair network need a GPU and float32; this is {dtype} on a {jax.default_backend()}. "
            "Choose the back end 'auto', 'tiled' or 'dense'."
        )
    return backends[name]
