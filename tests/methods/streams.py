"""Streams of episodes made by chance, and a plain recorder that says what their sequences are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paircredit.types import PixelObservation, Trajectory

STATES, ACTIONS = 6, 3
Observe = Callable[[np.random.Generator], Any]


def state(rng: np.random.Generator) -> np.ndarray:
    """An observation that is a number."""
    return rng.integers(0, STATES, dtype=np.int32)


def picture(rng: np.random.Generator, height: int = 4, width: int = 5, channels: int = 4) -> PixelObservation:
    """An observation that is a picture, with two flags."""
    pixels = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
    return PixelObservation(jnp.asarray(pixels), jnp.asarray(rng.random(2) < 0.5))


@dataclasses.dataclass
class Step:
    """One step of one actor, and how its episode ended there, if it did."""

    observation: Any
    action: int
    reward: float
    end: str  # "", "terminated", "truncated", or "life": an end that no step to start again follows
    valid: bool = True


def live(rng: np.random.Generator, steps: int, longest: int, observe: Observe, garbage: bool) -> list[Step]:
    """One actor's stream; between episodes lie steps that are not valid, with anything in them."""
    made: list[Step] = []
    while len(made) < steps:
        length = int(rng.integers(1, longest + 1))
        end = str(rng.choice(["terminated", "truncated", "life"]))
        made += [
            Step(observe(rng), int(rng.integers(ACTIONS)), float(np.round(rng.normal(), 2)), end if last else "")
            for last in [False] * (length - 1) + [True]
        ]
        if end != "life":
            reward, action = (np.nan, ACTIONS - 1) if garbage else (0.0, 0)
            made.append(Step(observe(rng), action, reward, "", valid=False))
    return made[:steps]


@dataclasses.dataclass
class Stream:
    """Segments of T steps of B actors."""

    lives: list[list[Step]]
    steps: int

    def segments(self) -> list[Trajectory]:
        """As `training.rollout` would have collected them."""
        count = len(self.lives[0]) // self.steps
        return [self._segment(slice(k * self.steps, (k + 1) * self.steps)) for k in range(count - 1)]

    def _segment(self, part: slice) -> Trajectory:
        def each(get: Callable[[Step], Any]) -> np.ndarray:
            return np.array([[get(step) for step in life[part]] for life in self.lives])

        seen = [[step.observation for step in life[part.start : part.stop + 1]] for life in self.lives]
        valid = each(lambda s: s.valid)
        ends = each(lambda s: s.end != "")
        terminated = each(lambda s: s.end in ("terminated", "life"))
        truncated = each(lambda s: s.end == "truncated")
        truncated[:, -1] |= valid[:, -1] & ~terminated[:, -1]
        return Trajectory(
            observations=jax.tree.map(lambda *x: _stacked(x, len(self.lives)), *(o for row in seen for o in row)),
            legal=jnp.ones((*valid.shape, ACTIONS), dtype=bool),
            actions=jnp.asarray(each(lambda s: s.action), dtype=jnp.int32),
            rewards=jnp.asarray(each(lambda s: s.reward), dtype=float),
            terminated=jnp.asarray(terminated),
            truncated=jnp.asarray(truncated),
            valid=jnp.asarray(valid),
            episode=jnp.asarray(np.cumsum(ends, axis=1) - ends, dtype=jnp.int32),
        )


def _stacked(leaves: tuple, actors: int) -> jax.Array:
    return jnp.asarray(np.stack(leaves).reshape(actors, -1, *np.shape(leaves[0])))


def make_stream(
    seed: int, actors: int, segments: int, steps: int, longest: int, observe: Observe = state, garbage: bool = True
) -> Stream:
    """This many segments of episodes of at most `longest` steps."""
    rng = np.random.default_rng(seed)
    return Stream([live(rng, (segments + 1) * steps, longest, observe, garbage) for _ in range(actors)], steps)


@dataclasses.dataclass
class Sequence:
    """Steps of one actor by their numbers in its stream; `late` if the segment that it ended with did not show it."""

    actor: int
    numbers: list[int]
    late: bool = False


def recorded(stream: Stream, most: int) -> list[list[Sequence]]:
    """For every segment, the sequences that it completes, in the order in which they are stored."""
    running: list[list[int]] = [[] for _ in stream.lives]
    by_segment = []
    for k in range(len(stream.segments())):
        complete = []
        for number in range(k * stream.steps, (k + 1) * stream.steps):
            for actor, life in enumerate(stream.lives):
                step = life[number]
                if not step.valid:
                    if running[actor]:
                        complete.append(Sequence(actor, running[actor], late=True))
                    running[actor] = []
                    continue
                running[actor].append(number)
                unseen = step.end == "truncated" and number % stream.steps == stream.steps - 1
                if len(running[actor]) == most or (step.end and not unseen):
                    complete.append(Sequence(actor, running[actor]))
                    running[actor] = []
        by_segment.append(complete)
    return by_segment
