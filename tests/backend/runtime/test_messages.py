"""Messages arrive as they were sent; anything else is noticed."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest

from backend.runtime.messages import BrokenStream, Message, receive, send


def sent(*messages: Message) -> io.BytesIO:
    stream = io.BytesIO()
    for message in messages:
        send(stream, message)
    stream.seek(0)
    return stream


def raw(header: object, body: bytes = b"") -> io.BytesIO:
    text = json.dumps(header).encode()
    return io.BytesIO(struct.pack("<4sIQ", b"LMB1", len(text), len(body)) + text + body)


def test_messages_follow_one_another() -> None:
    arrays = {
        "odd": np.arange(3, dtype=np.uint8),
        "pose": np.random.default_rng(0).normal(size=(60, 4)),
        "empty": np.zeros((0, 3), dtype=np.float32),
        "flag": np.array(True),
        "strided": np.arange(10)[::2],
        "big": np.arange(4, dtype=">i4"),
        "long": np.zeros(100_000),
    }
    stream = sent(Message({"ticket": 1, "text": "Füße"}, arrays), Message({"ticket": 2}))
    first, second = receive(stream), receive(stream)
    assert first is not None and second is not None
    assert first.values == {"ticket": 1, "text": "Füße"}
    assert list(first.arrays) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(first.arrays[name], array)
        assert first.arrays[name].shape == array.shape
        assert first.arrays[name].flags.writeable and first.arrays[name].flags.aligned
    assert second.values == {"ticket": 2} and not second.arrays
    assert receive(stream) is None


def test_nothing_is_written_of_a_message_that_cannot_be_sent() -> None:
    stream = io.BytesIO()
    for message in (Message({}, {"names": np.array(["hips"])}), Message({"bad": object()})):
        with pytest.raises(TypeError):
            send(stream, message)
    assert stream.getvalue() == b""


def test_every_cut_is_noticed() -> None:
    whole = sent(Message({"a": 1}, {"b": np.arange(4.0)})).getvalue()
    for length in range(1, len(whole)):
        with pytest.raises(BrokenStream):
            receive(io.BytesIO(whole[:length]))


@pytest.mark.parametrize(
    "stream",
    [
        io.BytesIO(b"Hello, I am a stray print\n"),
        io.BytesIO(struct.pack("<4sIQ", b"LMB1", 0xFFFFFFFF, 0)),
        io.BytesIO(struct.pack("<4sIQ", b"LMB1", 2, 1 << 60) + b"{}"),
        raw([]),
        raw({"values": {}}),
        raw({"values": {}, "arrays": [["a", "<f8", [4]]]}, bytes(8)),
        raw({"values": {}, "arrays": [["a", "<f8", [-1]]]}, bytes(8)),
        raw({"values": {}, "arrays": [["a", "<f8", [1 << 62, 8]]]}, bytes(8)),
        raw({"values": {}, "arrays": [["a", "|O8", [1]]]}, bytes(8)),
        raw({"values": {}, "arrays": ["a"]}),
    ],
)
def test_what_is_no_message_is_refused(stream: io.BytesIO) -> None:
    with pytest.raises(BrokenStream):
        receive(stream)
