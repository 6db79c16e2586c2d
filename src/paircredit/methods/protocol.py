"""What a method is: a frozen dataclass of hyperparameters with pure functions.

Floats among the hyperparameters are traced, so that a sweep compiles once and members with different settings train
in one program; what shapes the program (a number of episodes, a choice of optimiser) is static.
"""

from __future__ import annotations

from typing import Any, Protocol

from jaxtyping import Array, Float, Int, Key

from paircredit.envs.protocol import Environment
from paircredit.metagradient.problem import MetaProblem
from paircredit.methods.rule import Credit
from paircredit.types import PyTree, Trajectory


class Method(Protocol):
    """Anything with these members trains in the shared loop; `ActorCritic` is one, for any credit rule."""

    @property
    def episodes(self) -> int:
        """How many episodes each update learns from."""
        ...

    @property
    def whole_episodes(self) -> str:
        """Why it cannot learn from segments of episodes (it is then refused where rollouts are); empty if it can."""
        ...

    @property
    def learns_weights(self) -> bool:
        """Whether it is a `MetaMethod`, whose weights learn by metagradient."""
        ...

    @property
    def setting_of_memory(self) -> str:
        """The setting that decides how much it stores, for advice where memory is short; empty if it stores nothing."""
        ...

    def init(self, key: Key[Array, ""], env: Environment) -> Any:
        """A fresh learner: parameters and optimiser states."""
        ...

    def initial_carry(self, learner: Any) -> PyTree:
        """What an agent with memory carries into the first step; () for one without."""
        ...

    def policy(self, learner: Any, carry: PyTree, observation: PyTree) -> tuple[Float[Array, " A"], PyTree]:
        """Logits of the actions, and the carry for the next step. The rollout does the sampling."""
        ...

    def remember(self, carry: PyTree, action: Int[Array, ""], reward: Float[Array, ""]) -> PyTree:
        """The carry after an action was taken and its reward came, for an agent that sees them at its next step."""
        ...

    def learn(self, learner: Any, trajectory: Trajectory) -> tuple[Any, PyTree]:
        """One update of policy and value functions on a batch of episodes.

        Returns the new learner and what a metagradient through this update needs (() where there is none).
        """
        ...

    def credit(self, learner: Any, trajectory: Trajectory) -> Credit:
        """What the actions of a batch are credited with."""
        ...


class MetaMethod(Method, Protocol):
    """A method whose learner has `weights` that are learned by metagradient."""

    def problem(self) -> MetaProblem:
        """The pieces of the metagradient."""
        ...

    def outer_data(self, learner: Any, trajectory: Trajectory) -> PyTree:
        """What the outer loss needs from a batch collected with the learner's policy."""
        ...

    def improve_weights(self, learner: Any, gradient: PyTree) -> Any:
        """The learner after one outer update."""
        ...
