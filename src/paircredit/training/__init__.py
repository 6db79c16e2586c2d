"""Training: the one loop, rollouts, members."""

from paircredit.training.loop import LoopState, Plan, learns_weights, run_chunk, start, start_members
from paircredit.training.members import member_keys, stack_members
from paircredit.training.rollout import collect_episodes
from paircredit.training.train import Chunk, even_chunks, train

__all__ = [
    "Chunk",
    "LoopState",
    "Plan",
    "collect_episodes",
    "even_chunks",
    "learns_weights",
    "member_keys",
    "run_chunk",
    "stack_members",
    "start",
    "start_members",
    "train",
]
