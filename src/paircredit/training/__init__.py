"""Training: the one loop, rollouts, members."""

from paircredit.training.check import check_method
from paircredit.training.loop import (
    LoopState,
    Plan,
    inner_updates,
    run_chunk,
    start,
    start_members,
)
from paircredit.training.members import member_keys, stack_members
from paircredit.training.rollout import collect_episodes
from paircredit.training.train import Chunk, even_chunks, states_like, train

__all__ = [
    "Chunk",
    "LoopState",
    "Plan",
    "check_method",
    "collect_episodes",
    "even_chunks",
    "inner_updates",
    "member_keys",
    "run_chunk",
    "stack_members",
    "start",
    "start_members",
    "states_like",
    "train",
]
