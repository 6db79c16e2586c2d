"""Key-to-Door for people: the 7×11 pixels that an agent sees, drawn large, with a key, apples, a door and a walker."""

from __future__ import annotations

import functools

import numpy as np

from paircredit.envs import key_to_door as rules
from paircredit.errors import PaircreditError
from paircredit.types import PixelObservation

SMALLEST_SCALE = 4
_FINE = 4  # points per pixel and direction, averaged: smooth edges

_FLOOR, _FLOOR_EDGE = (240, 232, 216), (226, 216, 197)
_WALL, _WALL_TOP, _JOINT = (66, 75, 92), (84, 95, 115), (50, 57, 71)
_SKIN, _SKIN_SHADE, _EYE = (247, 146, 86), (222, 116, 58), (52, 38, 34)
_GOLD, _GOLD_SHADE = (244, 190, 52), (196, 139, 22)
_RED, _RED_SHADE, _SHINE, _STEM, _LEAF = (217, 62, 58), (170, 38, 42), (248, 168, 158), (104, 70, 44), (98, 158, 62)
_PANEL, _PANEL_SHADE, _FRAME = (58, 142, 186), (40, 110, 150), (206, 226, 236)


def render(observation: PixelObservation, scale: int = 32) -> np.ndarray:
    """Draw one observation (without batch axes), a cell `scale` pixels wide and high, as an RGB picture of bytes.

    An agent that has the key is drawn carrying it.
    """
    if scale < SMALLEST_SCALE:
        raise PaircreditError(f"The scale is {scale}, but a cell needs at least {SMALLEST_SCALE} pixels a side.")
    pixels = np.asarray(observation.pixels)
    agent = "carrier" if bool(np.asarray(observation.flags)[0]) else "agent"
    kinds = ("floor", "wall", agent, "key", "apple", "door")
    meaning = {colour: kind for palette in rules.PALETTES.values() for colour, kind in zip(palette, kinds, strict=True)}
    height, width, _ = pixels.shape
    picture = np.zeros((height * scale, width * scale, 3), dtype=np.uint8)
    for row in range(height):
        for column in range(width):
            colour = tuple(pixels[row, column].tolist())
            if colour not in meaning:
                raise PaircreditError(
                    f"The pixel in row {row}, column {column} has the colour {colour}, which is none of Key-to-Door's."
                )
            cell = slice(row * scale, (row + 1) * scale), slice(column * scale, (column + 1) * scale)
            picture[cell] = _tile(meaning[colour], scale)
    return picture


@functools.cache
def _tile(kind: str, scale: int) -> np.ndarray:
    """One cell, painted from back to front; coordinates run from −1 to 1, y downwards."""
    points = (np.arange(scale * _FINE) + 0.5) / (scale * _FINE) * 2 - 1
    y, x = np.meshgrid(points, points, indexing="ij")
    canvas = np.empty((*x.shape, 3))
    layers = _wall(x, y) if kind in ("wall", "door") else _floor(x, y)
    if kind in ("agent", "carrier"):
        layers += _walker(x, y)
    if kind == "carrier":
        layers += _key((x - 0.5) / 0.52, (y - 0.5) / 0.52, outline=_EYE)
    if kind == "key":
        layers += _key(x, y)
    if kind == "apple":
        layers += _apple(x, y)
    if kind == "door":
        layers += _door(x, y)
    for mask, colour in layers:
        canvas[mask] = colour
    fine = canvas.reshape(scale, _FINE, scale, _FINE, 3).mean(axis=(1, 3))
    return np.round(fine).astype(np.uint8)


_Layers = list[tuple[np.ndarray, tuple[int, int, int]]]


def _floor(x: np.ndarray, y: np.ndarray) -> _Layers:
    edge = np.maximum(np.abs(x), np.abs(y)) > 0.95
    return [(np.ones_like(edge), _FLOOR), (edge, _FLOOR_EDGE)]


def _wall(x: np.ndarray, y: np.ndarray) -> _Layers:
    """Two courses of bricks, half a brick apart."""
    upper = y < 0
    joint = (np.abs(np.abs(y) - 0.5) > 0.44) | np.where(upper, np.abs(x) < 0.06, np.abs(x) > 0.94)
    top = (np.where(upper, y + 1, y) < 0.2) & ~joint
    return [(np.ones_like(upper), _WALL), (top, _WALL_TOP), (joint, _JOINT)]


def _walker(x: np.ndarray, y: np.ndarray) -> _Layers:
    shadow = _ellipse(x, y - 0.72, 0.56, 0.14)
    layers = [
        (shadow, _FLOOR_EDGE),
        (_ellipse(x, y, 0.68, 0.7), _SKIN_SHADE),
        (_ellipse(x, y + 0.06, 0.66, 0.62), _SKIN),
    ]
    for side in (-1, 1):
        layers += [
            (_ellipse(x - 0.26 * side, y + 0.14, 0.17, 0.2), (255, 255, 255)),
            (_ellipse(x - 0.24 * side, y + 0.11, 0.09, 0.11), _EYE),
        ]
    smile = _ellipse(x, y - 0.18, 0.26, 0.2) & ~_ellipse(x, y - 0.1, 0.3, 0.2)
    return [*layers, (smile, _EYE)]


def _key(x: np.ndarray, y: np.ndarray, outline: tuple[int, int, int] | None = None) -> _Layers:
    """A ring, a shaft and two teeth, lying slantwise."""
    x, y = (x + y) / np.sqrt(2), (y - x) / np.sqrt(2)

    def shape(grow: float) -> np.ndarray:
        ring = _ellipse(x + 0.46, y, 0.36 + grow, 0.36 + grow) & ~_ellipse(x + 0.46, y, 0.17 - grow, 0.17 - grow)
        shaft = _box(x - 0.32, y, 0.46 + grow, 0.09 + grow)
        teeth = _box(x - 0.64, y - 0.2, 0.08 + grow, 0.16 + grow) | _box(x - 0.38, y - 0.17, 0.07 + grow, 0.13 + grow)
        return ring | shaft | teeth

    border = shape(0.07) if outline is None else shape(0.14)
    return [(border, _GOLD_SHADE if outline is None else outline), (shape(0.0), _GOLD)]


def _apple(x: np.ndarray, y: np.ndarray) -> _Layers:
    def body(shrink: float) -> np.ndarray:
        halves = [_ellipse(x - 0.2 * side, y - 0.12, 0.42 - shrink, 0.54 - shrink) for side in (-1, 1)]
        return halves[0] | halves[1]

    leaf = _ellipse(x - 0.26 + 0.5 * (y + 0.56), y + 0.56, 0.26, 0.13)
    return [
        (_ellipse(x, y - 0.68, 0.5, 0.12), _FLOOR_EDGE),
        (_box(x - 0.04 - 0.15 * (y + 0.6), y + 0.52, 0.06, 0.24), _STEM),
        (leaf, _LEAF),
        (body(0.0), _RED_SHADE),
        (body(0.07), _RED),
        (_ellipse(x + 0.3, y + 0.1, 0.1, 0.16), _SHINE),
    ]


def _door(x: np.ndarray, y: np.ndarray) -> _Layers:
    def arch(shrink: float) -> np.ndarray:
        return ((np.abs(x) < 0.78 - shrink) & (y > -0.15)) | _ellipse(x, y + 0.15, 0.78 - shrink, 0.78 - shrink)

    planks = (np.abs(np.abs(x) - 0.22) < 0.03) & arch(0.16)
    return [
        (arch(0.0), _FRAME),
        (arch(0.16), _PANEL),
        (planks, _PANEL_SHADE),
        (_ellipse(x - 0.42, y - 0.22, 0.15, 0.15), _GOLD_SHADE),
        (_ellipse(x - 0.42, y - 0.22, 0.1, 0.1), _GOLD),
    ]


def _ellipse(x: np.ndarray, y: np.ndarray, across: float, high: float) -> np.ndarray:
    return (x / across) ** 2 + (y / high) ** 2 < 1


def _box(x: np.ndarray, y: np.ndarray, across: float, high: float) -> np.ndarray:
    return (np.abs(x) < across) & (np.abs(y) < high)
