"""Pictures of curves and fields with axes, as PNG files; just numpy, since Blender has it too."""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .motion.rotations import Array
from .pixel_font import rendered
from .runtime.files import aside

Colour = tuple[float, float, float]
Box = tuple[int, int, int, int]
"""Left, top, right and lower edge in pixels."""

BACK: Colour = (0.11, 0.11, 0.12)
FRAME: Colour = (0.16, 0.16, 0.18)
GRID: Colour = (0.24, 0.24, 0.27)
INK: Colour = (0.86, 0.86, 0.86)
LETTER = 2
"""Pixels to a side of a letter's pixel."""


class Canvas:
    """Pixels to draw on, from the upper left."""

    def __init__(self, width: int, height: int, colour: Colour = BACK) -> None:
        self.pixels = np.empty((height, width, 3))
        """`(height, width, 3)` from 0 to 1."""
        self.pixels[:] = colour

    @property
    def box(self) -> Box:
        """The whole canvas."""
        return 0, 0, self.pixels.shape[1], self.pixels.shape[0]

    def fill(self, box: Box, colour: Colour) -> None:
        """A rectangle."""
        left, top, right, low = box
        self.pixels[top:low, left:right] = colour

    def image(self, left: int, top: int, colours: Array) -> None:
        """Colours `(height, width, 3)`, the upper row first."""
        self.pixels[top : top + len(colours), left : left + colours.shape[1]] = colours

    def line(
        self,
        points: Array,
        colour: Colour,
        width: float = 1.5,
        opacity: float = 1.0,
        within: Box | None = None,
    ) -> None:
        """A smooth line through points `(N, 2)` in pixels, cut off outside the box."""
        left, top, right, low = within or self.box
        cover = np.zeros((low - top, right - left))
        points = _spaced(np.asarray(points, dtype=np.float64)) - [left, top]
        for a, b in itertools.pairwise(points):
            _cover(cover, a, b, 0.5 * width)
        self._blend((left, top, right, low), opacity * cover, colour)

    def dot(self, point: Array, radius: float, colour: Colour) -> None:
        """A round spot."""
        self.line(np.array([point, point]), colour, 2.0 * radius)

    def text(self, x: float, y: float, text: str, colour: Colour = INK, align: float = 0.0) -> None:
        """Text whose middle line is at `y`; `align` 0 begins at `x`, 1 ends there."""
        mask = np.kron(rendered(text)[:, :-1], np.ones((LETTER, LETTER), dtype=bool))
        left, top = round(x - align * mask.shape[1]), round(y - 3.5 * LETTER)
        rows, columns = np.nonzero(mask)
        rows, columns = rows + top, columns + left
        width, height = self.box[2:]
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        self.pixels[rows[inside], columns[inside]] = colour

    def save(self, path: Path) -> None:
        """Writes a PNG file."""
        with aside(path) as stream:
            stream.write(png(self.pixels))

    def _blend(self, box: Box, cover: Array, colour: Colour) -> None:
        left, top, right, low = box
        part = self.pixels[top:low, left:right]
        part += cover[..., None] * (np.asarray(colour) - part)


@dataclass(frozen=True)
class Chart:
    """A part of a canvas with axes."""

    canvas: Canvas
    box: Box
    low: tuple[float, float]
    """What is at the left and lower edges."""
    high: tuple[float, float]
    """What is at the right and upper edges."""

    def at(self, points: Array) -> Array:
        """Pixels `(…, 2)` of places on the axes."""
        left, top, right, low = self.box
        part = (np.asarray(points) - self.low) / (np.asarray(self.high) - self.low)
        return np.stack(
            [left + part[..., 0] * (right - left), low - part[..., 1] * (low - top)], axis=-1
        )

    def frame(self, title: str, across: str, up: str, fill: bool = True) -> None:
        """Background, grid, numbers and names of the axes; `fill` False leaves what is there."""
        left, top, right, low = self.box
        if fill:
            self.canvas.fill(self.box, FRAME)
        for value in ticks(self.low[0], self.high[0]):
            x = float(self.at(np.array([value, self.low[1]]))[0])
            self._tick(np.array([[x, top], [x, low]]), np.array([[x, low], [x, low + 5]]), fill)
            self.canvas.text(x, low + 16, _number(value), align=0.5)
        for value in ticks(self.low[1], self.high[1]):
            y = float(self.at(np.array([self.low[0], value]))[1])
            self._tick(
                np.array([[left, y], [right, y]]), np.array([[left - 5, y], [left, y]]), fill
            )
            self.canvas.text(left - 9, y, _number(value), align=1.0)
        self.canvas.text(left, top - 14, title)
        self.canvas.text(right, low + 36, across, align=1.0)
        self.canvas.text(right, top - 14, up, align=1.0)

    def line(self, points: Array, colour: Colour, width: float = 1.5, opacity: float = 1.0) -> None:
        """A line through places `(N, 2)`."""
        self.canvas.line(self.at(points), colour, width, opacity, self.box)

    def dot(self, place: Array, radius: float, colour: Colour) -> None:
        """A spot at a place, its radius in pixels."""
        self.canvas.dot(self.at(place), radius, colour)

    def _tick(self, across: Array, mark: Array, grid: bool) -> None:
        if grid:
            self.canvas.line(across, GRID, 1.0)
        self.canvas.line(mark, INK, 1.0)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two, some `about` of them."""
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = min((unit * factor for factor in (1, 2, 5, 10)), key=lambda size: abs(size - rough))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def isolines(values: Array, levels: Array) -> Array:
    """How much `(h, w)` each pixel of a field is on a line of equal value, from 0 to 1."""
    slope = np.hypot(*np.gradient(values)) + 1e-9
    cover = np.zeros(values.shape)
    for level in levels:
        cover = np.maximum(cover, np.clip(1.2 - np.abs(values - level) / slope, 0.0, 1.0))
    return cover


def png(colours: Array) -> bytes:
    """A PNG file of colours `(height, width, 3)` from 0 to 1, the upper row first."""
    height, width = colours.shape[:2]
    body = np.round(255.0 * np.clip(colours, 0.0, 1.0)).astype(np.uint8).reshape(height, -1)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), body], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _spaced(points: Array) -> Array:
    """Without points that are nearer than a pixel to the last one kept; both ends stay."""
    kept = [points[0]]
    for point in points[1:-1]:
        if abs(point[0] - kept[-1][0]) + abs(point[1] - kept[-1][1]) > 1.0:
            kept.append(point)
    return np.array([*kept, points[-1]])


def _cover(cover: Array, a: Array, b: Array, half: float) -> None:
    """How much of each pixel a stroke covers, by its distance from the pixel's middle."""
    height, width = cover.shape
    reach = half + 1.0
    x0, y0 = np.maximum(np.floor(np.minimum(a, b) - reach).astype(int), 0)
    x1, y1 = np.ceil(np.maximum(a, b) + reach).astype(int)
    x1, y1 = min(int(x1), width), min(int(y1), height)
    if x0 >= x1 or y0 >= y1:
        return
    dx = np.arange(x0, x1) + 0.5 - a[0]
    dy = (np.arange(y0, y1) + 0.5 - a[1])[:, None]
    along = b - a
    part = np.clip((dx * along[0] + dy * along[1]) / max(float(along @ along), 1e-12), 0.0, 1.0)
    far = np.hypot(dx - part * along[0], dy - part * along[1])
    spot = cover[y0:y1, x0:x1]
    np.maximum(spot, np.clip(half + 0.5 - far, 0.0, 1.0), out=spot)


def _number(value: float) -> str:
    return f"{value:.4g}" if value else "0"
