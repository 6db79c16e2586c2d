"""An episode of Key-to-Door as an animation: the map, what was paid, and what each action is credited with.

Frames are drawn with Pillow, not with Matplotlib: a hundred and twenty of them take a few seconds.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from paircredit.envs.key_to_door_render import render
from paircredit.errors import PaircreditError
from paircredit.types import PixelObservation

SCALES = 16, 64
"""Smallest and largest side of a cell of the map: text must be readable, a file not huge."""
RATES = 1, 50
"""Frames per second that programs show as they are asked to."""
LAST_SECONDS = 3.0
"""How long the last frame stays."""

_Colour = tuple[int, int, int]
_Number = float | int
_Box = tuple[_Number, _Number, _Number, _Number]

_PAPER, _INK, _QUIET, _LINE = (255, 255, 255), (34, 34, 34), (118, 118, 118), (200, 200, 200)
_PAID, _TO_COME, _CREDITED = (0, 158, 115), (205, 205, 205), (230, 159, 0)
_UP, _DOWN = (0, 114, 178), (213, 94, 0)
_UNSEEN = (238, 238, 238)
_SHADES = ((253, 246, 222), (252, 235, 231), (228, 240, 249))
_BANDS = ((244, 214, 118), (238, 178, 166), (158, 202, 232))
_COLOURS = (_PAPER, _INK, _QUIET, _LINE, _PAID, _TO_COME, _CREDITED, _UP, _DOWN, _UNSEEN)
_FREQUENT = 48
"""This many of the colours that fill most are kept as they are."""
_NAMES = ("key", "apples", "door")
_PHASES = ("Key phase", "Apple phase", "Door phase")
_ACTIONS = ("↑ up", "↓ down", "← left", "→ right")

_UNIT = 24.0
"""The scale at which the numbers below are pixels."""
_WIDTH, _HEIGHT = 680, 494
_MAP = 20.0, 46.0
_TEXT = 312.0, 52.0
_LEFT, _RIGHT = 60.0, 660.0
_BAND = 228.0, 246.0
_REWARDS, _CREDIT, _WEIGHTS = (270.0, 322.0), (346.0, 408.0), (440.0, 464.0)


@dataclasses.dataclass(frozen=True)
class Episode:
    """What is shown of T steps: T+1 observations, and [T] of what was done, paid and credited at each.

    Weights [T, T] are of every action and what arrived at the same step or later: rewards, or else TD errors. The
    apple and the door phase have their first steps in `starts`.
    """

    observations: PixelObservation
    actions: np.ndarray
    rewards: np.ndarray
    advantages: np.ndarray
    weights: np.ndarray
    of_rewards: bool
    starts: tuple[int, int]
    title: str

    @property
    def edges(self) -> tuple[int, int, int, int]:
        """Where the phases begin, and the end."""
        return 0, *self.starts, len(self.actions)


def animation(episode: Episode, scale: int, frames_per_second: int) -> bytes:
    """The episode as a GIF, a frame for every observation; the scale is the side of a cell of the map in pixels."""
    check_speed_and_scale(scale, frames_per_second)
    still = _still(episode, scale)
    phases = [np.linspace(begin, end - 1, 4).round() for begin, end in itertools.pairwise(episode.edges)]
    some = np.unique([*np.concatenate(phases), episode.edges[-1]]).astype(int).tolist()  # of every phase, and the end
    palette = _Palette([_moving(still.copy(), episode, time, scale) for time in some])
    pictures = [palette.paint(_moving(still.copy(), episode, time, scale)) for time in range(len(episode.actions) + 1)]
    # A GIF counts hundredths of a second: ends are rounded, not durations, so that the speed is right on average.
    ends = [round(100 * number / frames_per_second) for number in range(len(pictures) + 1)]
    durations = [10 * (after - before) for before, after in itertools.pairwise(ends)]
    durations[-1] = round(1000 * LAST_SECONDS)
    buffer = io.BytesIO()
    pictures[0].save(
        buffer, "GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True
    )
    return buffer.getvalue()


def check_speed_and_scale(scale: int, frames_per_second: int) -> None:
    """Refuse what `animation` cannot do, before anything is computed."""
    for name, value, (least, most) in (
        ("scale", scale, SCALES),
        ("number of frames per second", frames_per_second, RATES),
    ):
        if not least <= value <= most:
            raise PaircreditError(f"The {name} is {value}, but must be between {least} and {most}.")


def frame(episode: Episode, time: int, scale: int) -> Image.Image:
    """What is seen after this many steps: the map, the action that is taken there, and its credit."""
    return _moving(_still(episode, scale), episode, time, scale)


class _Canvas:
    """Draws in units of which `_UNIT` are a cell of the map."""

    def __init__(self, picture: Image.Image, scale: int, steps: int) -> None:
        self._draw = ImageDraw.Draw(picture)
        self._factor, self._steps = scale / _UNIT, steps

    def box(self, box: _Box, colour: _Colour) -> None:
        """A filled rectangle, at least a pixel wide and high."""
        left, top, right, bottom = (round(value * self._factor) for value in box)
        self._draw.rectangle((left, top, max(right - 1, left), max(bottom - 1, top)), fill=colour)

    def mark(self, x: _Number, y: _Number, colour: _Colour) -> None:
        """A small triangle that points down to a place."""
        x, y, side = x * self._factor, y * self._factor, 3.6 * self._factor
        self._draw.polygon(((x - side, y - 1.6 * side), (x + side, y - 1.6 * side), (x, y)), fill=colour)

    def text(
        self,
        x: _Number,
        y: _Number,
        words: str,
        size: _Number = 12,
        colour: _Colour = _INK,
        anchor: str = "ls",
        bold: bool = False,
    ) -> float:
        """A line of text whose baseline is at y; returns where it ends."""
        font = _font(round(size * self._factor), bold)
        self._draw.text((x * self._factor, y * self._factor), words, fill=colour, font=font, anchor=anchor)
        return x + font.getlength(words) / self._factor

    def x(self, step: _Number) -> float:
        """Where a step begins on the time line."""
        return _LEFT + (_RIGHT - _LEFT) * step / self._steps


class _Axis(NamedTuple):
    """Heights of bars: `low` is at the bottom, `high` at the top."""

    low: float
    high: float
    top: float
    bottom: float

    @classmethod
    def of(cls, values: np.ndarray, place: tuple[float, float]) -> _Axis:
        low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
        return cls(low, high if high > low else low + 1.0, *place)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low)

    def bar(self, canvas: _Canvas, step: int, value: float, colour: _Colour) -> None:
        if value:
            y, zero = self.y(value), self.y(0.0)
            canvas.box((canvas.x(step), min(y, zero), canvas.x(step + 1), max(y, zero)), colour)

    def draw(self, canvas: _Canvas) -> None:
        canvas.box((_LEFT, self.y(0.0), _RIGHT, self.y(0.0)), _LINE)
        for value in {self.low, self.high, 0.0}:
            crowded = value == 0.0 and min(self.y(0.0) - self.top, self.bottom - self.y(0.0)) < 9
            if not crowded or value in (self.low, self.high):
                canvas.text(_LEFT - 5, self.y(value), f"{value:.3g}".replace("-", "−"), 10.5, _QUIET, "rm")


def _still(episode: Episode, scale: int) -> Image.Image:
    """What all frames share."""
    size = round(_WIDTH * scale / _UNIT), round(_HEIGHT * scale / _UNIT)
    picture = Image.new("RGB", size, _PAPER)
    canvas = _Canvas(picture, scale, len(episode.actions))
    canvas.text(20, 30, episode.title, 15, bold=True)
    for begin, end, shade, band, name in zip(episode.edges, episode.edges[1:], _SHADES, _BANDS, _NAMES, strict=False):
        left, right = canvas.x(begin), canvas.x(end)
        canvas.box((left, _BAND[0], right, _BAND[1]), band)
        for top, bottom in (_REWARDS, _CREDIT):
            canvas.box((left, top, right, bottom), shade)
        if right - left > 8 * len(name):
            canvas.text((left + right) / 2, sum(_BAND) / 2, name, 11.5, anchor="mm")
    for step in episode.edges:
        canvas.text(canvas.x(step), _WEIGHTS[1] + 8, str(step), 10.5, _QUIET, "mt")
    _Axis.of(episode.rewards, _REWARDS).draw(canvas)
    _Axis.of(episode.advantages, _CREDIT).draw(canvas)
    y = _REWARDS[0] - 7
    parts = [("paid", _PAID), ("to come", _TO_COME)]
    parts += [("of these, credited to the action", _CREDITED)] if episode.of_rewards else []
    _legend(canvas, canvas.text(_LEFT, y, "rewards: ") + 4, y, parts)
    canvas.text(_LEFT, _CREDIT[0] - 7, "credit Ψ of the actions so far")
    y = _WEIGHTS[0] - 16
    words = f"the action's weights of later {'rewards' if episode.of_rewards else 'TD errors'} "
    _legend(canvas, canvas.text(_LEFT, y, words) + 4, y, [("a reward", _PAID)], marks=True)
    _colour_bar(canvas)
    return picture


def _moving(picture: Image.Image, episode: Episode, time: int, scale: int) -> Image.Image:
    """What changes from frame to frame."""
    canvas, steps = _Canvas(picture, scale, len(episode.actions)), len(episode.actions)
    observation = jax.tree.map(lambda x: x[time], episode.observations)
    corner = round(_MAP[0] * scale / _UNIT), round(_MAP[1] * scale / _UNIT)
    picture.paste(Image.fromarray(render(observation, scale)), corner)
    _draw_text(canvas, episode, time)
    over = time == steps
    weights = np.zeros(steps) if over else np.where(np.arange(steps) >= time, episode.weights[time], 0.0)

    axis = _Axis.of(episode.rewards, _REWARDS)
    for step in np.flatnonzero(episode.rewards).tolist():
        reward = float(episode.rewards[step])
        axis.bar(canvas, step, reward, _PAID if step < time else _TO_COME)
        if episode.of_rewards and step >= time:
            axis.bar(canvas, step, reward * float(np.clip(weights[step], 0, 1)), _CREDITED)
    axis = _Axis.of(episode.advantages, _CREDIT)
    for step in range(min(time + 1, steps)):
        value = float(episode.advantages[step])
        axis.bar(canvas, step, value, _UP if value > 0 else _DOWN)

    canvas.box((_LEFT, _WEIGHTS[0], canvas.x(time), _WEIGHTS[1]), _UNSEEN)
    for step in range(time, steps):
        canvas.box((canvas.x(step), _WEIGHTS[0], canvas.x(step + 1), _WEIGHTS[1]), _heat(float(weights[step])))
    for step in np.flatnonzero(episode.rewards[time:]).tolist():
        canvas.mark(canvas.x(time + step + 0.5), _WEIGHTS[0] - 2, _PAID)
    if not over:
        middle = canvas.x(time + 0.5)
        for top, bottom in ((_BAND[0] - 5, _BAND[1]), _REWARDS, _CREDIT, (_WEIGHTS[0], _WEIGHTS[1] + 5)):
            canvas.box((middle - 0.7, top, middle + 0.7, bottom), _INK)
    return picture


def _draw_text(canvas: _Canvas, episode: Episode, time: int) -> None:
    steps, (x, y) = len(episode.actions), _TEXT
    over = time == steps
    phase = 2 if over else sum(time >= start for start in episode.starts)
    canvas.box((x, y + 2, x + 5, y + 24), _BANDS[phase])
    canvas.text(x + 14, y + 20, "The end" if over else _PHASES[phase], 20, bold=True)
    has_key = bool(np.asarray(episode.observations.flags[time])[0])
    lines = [
        ("step", f"{time} of {steps}"),
        ("action", "–" if over else _ACTIONS[int(episode.actions[time])]),
        ("key", "in hand" if has_key else "not found"),
        ("paid so far", f"{float(episode.rewards[:time].sum()):g}"),
        ("credit Ψ", "–" if over else f"{float(episode.advantages[time]):+.2f}".replace("-", "−")),
    ]
    for number, (name, value) in enumerate(lines):
        line = y + 56 + 25 * number
        canvas.text(x, line, name, 14, _QUIET)
        canvas.text(x + 104, line, value, 14, bold=True)


def _legend(canvas: _Canvas, x: float, y: float, parts: Sequence[tuple[str, _Colour]], *, marks: bool = False) -> None:
    for name, colour in parts:
        if marks:
            canvas.mark(x + 5, y - 1, colour)
        else:
            canvas.box((x, y - 9, x + 9, y), colour)
        x = canvas.text(x + 13, y, name, 12, _QUIET) + 12


def _colour_bar(canvas: _Canvas) -> None:
    left, right, y = _RIGHT - 96.0, _RIGHT - 14.0, _WEIGHTS[0] - 16
    for number in range(41):
        width = (right - left) / 41
        canvas.box((left + number * width, y - 9, left + (number + 1) * width, y), _heat(number / 40))
    canvas.text(left - 4, y, "0", 11, _QUIET, "rs")
    canvas.text(right + 4, y, "1", 11, _QUIET)


@functools.cache
def _heat_colours() -> list[_Colour]:
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 1, 41))[:, :3]
    return [(red, green, blue) for red, green, blue in np.round(255 * colours).astype(int).tolist()]


def _heat(weight: float) -> _Colour:
    return _heat_colours()[round(40 * min(max(weight, 0.0), 1.0))]


@functools.cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    """The font of the figures, which comes with Matplotlib."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


class _Palette:
    """At most 255 colours for all frames, so that nothing flickers; one place is left for `unchanged`.

    The colours of bars and shades are in it as they are, and those that fill most of some frames. Of all others there
    a choice is made, in which each counts once, else small things would lose theirs.
    """

    def __init__(self, pictures: Sequence[Image.Image]) -> None:
        own = np.array([*_COLOURS, *_SHADES, *_BANDS, *_heat_colours()], np.uint8)
        seen, counts = np.unique(np.concatenate([_codes(picture).ravel() for picture in pictures]), return_counts=True)
        own = np.concatenate([own, _shades(seen[np.argsort(counts)[-_FREQUENT:]])])
        rest = Image.fromarray(_shades(seen)[None]).quantize(255 - len(own), Image.Quantize.MEDIANCUT, kmeans=2)
        others = np.array(rest.getpalette(), np.uint8).reshape(-1, 3)
        self._colours = np.concatenate([own, others])[:255]
        self._nearest = np.full(2**24, -1, np.int16)

    def paint(self, picture: Image.Image) -> Image.Image:
        """The picture in the nearest of these colours."""
        codes = _codes(picture)
        if len(new := np.unique(codes[self._nearest[codes] < 0])):
            differences = _shades(new).astype(np.int32)[:, None] - self._colours.astype(np.int32)
            self._nearest[new] = np.square(differences).sum(axis=2).argmin(axis=1)
        painted = Image.fromarray(self._nearest[codes].astype(np.uint8))
        painted.putpalette(self._colours.tobytes())
        return painted


def _codes(picture: Image.Image) -> np.ndarray:
    """A number for the colour of every pixel."""
    red, green, blue = np.moveaxis(np.asarray(picture).astype(np.int32), -1, 0)
    return red << 16 | green << 8 | blue


def _shades(codes: np.ndarray) -> np.ndarray:
    """The colours [N, 3] that the numbers stand for."""
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1).astype(np.uint8)
