"""Messages between Limber's processes: a JSON header and raw array bytes, length first.

bytes 0-3     "LMB1"
bytes 4-7     length of the header, little-endian
bytes 8-15    length of the body, little-endian
header        UTF-8 JSON: {"values": {…}, "arrays": [[name, dtype, shape], …]}
body          the arrays in that order, C-contiguous, each begun at a multiple of 8 bytes
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAX_HEADER = 64 << 20
MAX_BODY = 4 << 30

Arrays = Mapping[str, NDArray[Any]]

_PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"LMB1"
_ALIGN = 8
_JOINED = 1 << 16
"""Bodies up to this size are sent in one write together with their header."""
_DTYPES = {
    code: np.dtype(code)
    for code in ("|b1", "|u1", "|i1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
}

_CODES = {dtype: code for code, dtype in _DTYPES.items()}


class BrokenStream(Exception):
    """The other side sent what is no message, or ended within one."""


@dataclass(frozen=True)
class Message:
    """Plain values and arrays; what goes in at one end comes out at the other."""

    values: dict[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)


def encode(message: Message) -> list[bytes | memoryview]:
    """The pieces of a message in their order; raises before anything has been written."""
    entries: list[tuple[str, str, tuple[int, ...]]] = []
    parts: list[bytes | memoryview] = []
    length = 0
    for name, array in message.arrays.items():
        dtype, size = array.dtype, array.nbytes
        if dtype not in _CODES:
            dtype = dtype.newbyteorder("<")
            array = array.astype(dtype)
        if dtype not in _CODES:
            raise TypeError(f"arrays of {array.dtype} cannot be sent: {name!r}")
        entries.append((name, _CODES[dtype], array.shape))
        padding = -size % _ALIGN
        parts += (_bytes(array), bytes(padding))
        length += size + padding
    header = json.dumps({"values": message.values, "arrays": entries}).encode()
    if len(header) > MAX_HEADER or length > MAX_BODY:
        raise ValueError("this message is too large to be sent at once")
    start = _PREFIX.pack(_MAGIC, len(header), length) + header
    return [b"".join((start, *parts))] if length <= _JOINED else [start, *parts]


def _bytes(array: NDArray[Any]) -> bytes | memoryview:
    """Small arrays are copied, which is quicker than to look at them in place."""
    if array.nbytes <= _JOINED:
        return array.tobytes()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def send(stream: IO[bytes], message: Message) -> None:
    """Writes one message and flushes."""
    write(stream, encode(message))


def write(stream: IO[bytes], pieces: list[bytes | memoryview]) -> None:
    """Writes what `encode` gave and flushes."""
    for piece in pieces:
        stream.write(piece)
    stream.flush()


def receive(stream: IO[bytes]) -> Message | None:
    """Waits for one message; None when the other side has ended. Arrays are writable."""
    prefix = stream.read(_PREFIX.size)
    if not prefix:
        return None
    if len(prefix) < _PREFIX.size:
        raise BrokenStream("the stream ended within a message")
    header_length, body_length = _lengths(prefix)
    header = _exactly(stream, header_length)
    return _message(header, _exactly(stream, body_length))


def take(buffer: bytearray) -> Message | None:
    """Takes the first message out of what has arrived so far; None while that is not whole."""
    if len(buffer) < _PREFIX.size:
        return None
    header_length, body_length = _lengths(buffer[: _PREFIX.size])
    start = _PREFIX.size + header_length
    end = start + body_length
    if len(buffer) < end:
        return None
    message = _message(buffer[_PREFIX.size : start], buffer[start:end])
    del buffer[:end]
    return message


def _lengths(prefix: bytes | bytearray) -> tuple[int, int]:
    magic, header_length, body_length = _PREFIX.unpack(prefix)
    if magic != _MAGIC or header_length > MAX_HEADER or body_length > MAX_BODY:
        raise BrokenStream(f"{bytes(prefix)!r} does not begin a message")
    return header_length, body_length


def _message(header: bytearray, body: bytearray) -> Message:
    try:
        content = json.loads(header.decode())
        return Message(content["values"], _arrays(content["arrays"], body))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BrokenStream(f"the header of a message is damaged ({error})") from error


def _arrays(entries: list[tuple[str, str, list[int]]], body: bytearray) -> Arrays:
    arrays, offset = {}, 0
    for name, code, shape in entries:
        dtype, count = _DTYPES[code], math.prod(shape)
        # A count of -1 would let numpy take the rest of the body.
        if min(shape, default=0) < 0 or offset + count * dtype.itemsize > len(body):
            raise ValueError(f"{name!r} is larger than the message")
        arrays[name] = np.frombuffer(body, dtype, count, offset).reshape(shape)
        offset += count * dtype.itemsize + -count * dtype.itemsize % _ALIGN
    return arrays


def _exactly(stream: IO[bytes], count: int) -> bytearray:
    """The next `count` bytes; memory grows with what arrives, not with what was announced."""
    buffer = bytearray()
    while len(buffer) < count:
        chunk = stream.read(min(count - len(buffer), 1 << 24))
        if not chunk:
            raise BrokenStream("the stream ended within a message")
        buffer += chunk
    return buffer
