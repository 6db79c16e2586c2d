"""Training: the one loop, rollouts, members."""

from paircredit.training.check import check_method
from paircredit.training.loop import LoopState, Plan
from paircredit.training.rollout import collect_episodes
from paircredit.training.train import Chunk, train

__all__ = ["Chunk", "LoopState", "Plan", "check_method", "collect_episodes", "train"]
