"""The loop over members as it is, compiled without its compiler options: for programs that run for milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from paircredit.training import Plan
from paircredit.training.loop import chunk, start
from paircredit.training.members import member_keys, stack_members


def learners_after(updates: int, methods: Sequence[Any], env: Any) -> Any:
    """The members' learners, stacked."""
    plan = Plan(updates=updates)
    stacked, envs = stack_members(methods), stack_members([env] * len(methods))
    keys = member_keys([0] * len(methods))
    state = jax.jit(jax.vmap(lambda method, place, key: start(method, place, plan, key)))(stacked, envs, keys)
    return jax.jit(lambda *members: chunk(*members[:2], plan, members[2]))(stacked, envs, state)[0].learner
