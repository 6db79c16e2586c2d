"""An agent for tests of environments and rollouts: it acts by logits that it is given, whatever it sees."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx


class Player(eqx.Module):
    """A method whose learner is the logits of its actions; it learns nothing."""

    episodes: int = eqx.field(static=True)
    whole_episodes: ClassVar[str] = ""
    learns_weights: ClassVar[bool] = False
    setting_of_memory: ClassVar[str] = ""

    def init(self, key: Any, env: Any) -> Any:
        raise NotImplementedError("The logits are the test's own.")

    def initial_carry(self, learner: Any) -> Any:
        return ()

    def policy(self, learner: Any, carry: Any, observation: Any) -> tuple[Any, Any]:
        return learner, carry

    def remember(self, carry: Any, action: Any, reward: Any) -> Any:
        return carry

    def learn(self, learner: Any, trajectory: Any) -> tuple[Any, tuple[()]]:
        return learner, ()

    def credit(self, learner: Any, trajectory: Any) -> Any:
        raise NotImplementedError("It credits nothing.")
