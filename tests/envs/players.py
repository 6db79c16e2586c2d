"""An agent for tests of environments: it acts by logits that it is given, whatever it sees."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float


class Player(eqx.Module):
    """What a rollout asks of a method; the learner is the logits."""

    episodes: int = eqx.field(static=True)

    def initial_carry(self, learner: Float[Array, " A"]) -> tuple[()]:
        return ()

    def policy(self, learner: Float[Array, " A"], carry: tuple[()], observation: object) -> tuple:
        return learner, carry

    def remember(self, carry: tuple[()], action: object, reward: object) -> tuple[()]:
        return carry
