"""Messages on real pipes, in the ways of Linux and macOS and of Windows."""

from __future__ import annotations

import os
import threading
from typing import IO

import numpy as np
import pytest

from backend.runtime.messages import BrokenStream, Message, encode, receive, send
from backend.runtime.pipes import Ended, Link, PolledLink, ThreadedLink

PATIENCE = 60.0
LARGE = np.arange(2_000_000.0)

Ends = tuple[Link, IO[bytes], IO[bytes]]


@pytest.fixture(params=[PolledLink, ThreadedLink])
def kind(request: pytest.FixtureRequest) -> type[PolledLink] | type[ThreadedLink]:
    return request.param


def pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")


@pytest.fixture
def ends(kind: type[PolledLink] | type[ThreadedLink]):
    """A link, what the other side reads from and what it writes to."""
    theirs, out = pipe()
    into, theirs_out = pipe()
    link = kind(into, out)
    yield link, theirs, theirs_out
    link.close()
    theirs_out.close()


def test_messages_come_in_their_order_and_then_the_end(ends: Ends) -> None:
    link, _, other = ends
    assert link.take(0.0) is None
    for number in range(3):
        send(other, Message({"number": number}))
    assert [link.take(PATIENCE).values["number"] for _ in range(3)] == [0, 1, 2]
    assert link.take(0.0) is None
    send(other, Message({"last": True}, {"large": LARGE[:2000]}))
    other.close()
    np.testing.assert_array_equal(link.take(None).arrays["large"], LARGE[:2000])
    for _ in range(2):
        with pytest.raises(Ended):
            link.take(PATIENCE)


@pytest.mark.parametrize("cut", [1, 15, 20, -1])
def test_end_within_a_message_is_noticed(ends: Ends, cut: int) -> None:
    link, _, other = ends
    other.write(b"".join(encode(Message({"a": 1}, {"b": np.arange(3.0)})))[:cut])
    other.close()
    with pytest.raises(BrokenStream, match="ended within"):
        link.take(PATIENCE)


def test_what_is_no_message_is_noticed(ends: Ends) -> None:
    link, _, other = ends
    other.write(b"GET / HTTP/1.1\r\n\r\n")
    other.flush()
    with pytest.raises(BrokenStream, match="does not begin a message"):
        link.take(PATIENCE)


def test_sending_does_not_wait_for_who_does_not_read(ends: Ends) -> None:
    link, theirs, other = ends
    for number in range(3):
        link.send(encode(Message({"number": number}, {"large": LARGE})))
    found: list[Message | None] = []

    def read() -> None:
        found.extend(receive(theirs) for _ in range(3))
        send(other, Message({"all": "read"}))

    threading.Thread(target=read, daemon=True).start()
    # Waiting for an answer sends the rest.
    assert link.take(PATIENCE).values == {"all": "read"}
    assert [message.values["number"] for message in found] == [0, 1, 2]
    np.testing.assert_array_equal(found[2].arrays["large"], LARGE)


def test_both_sides_may_send_much_at_once(ends: Ends) -> None:
    link, theirs, other = ends

    def answer_late() -> None:
        # Writes all of its own before it reads: two that did so would wait for ever.
        send(other, Message({}, {"large": LARGE}))
        send(other, receive(theirs))

    threading.Thread(target=answer_late, daemon=True).start()
    link.send(encode(Message({"ours": True}, {"large": -LARGE})))
    np.testing.assert_array_equal(link.take(PATIENCE).arrays["large"], LARGE)
    answer = link.take(PATIENCE)
    assert answer.values == {"ours": True}
    np.testing.assert_array_equal(answer.arrays["large"], -LARGE)


def test_sending_to_nobody_is_found_out_by_reading(ends: Ends) -> None:
    link, theirs, other = ends
    theirs.close()
    other.close()
    for _ in range(3):
        link.send(encode(Message({"anyone": "there"})))
    with pytest.raises(Ended):
        link.take(PATIENCE)


def test_closing_ends_the_other_side_after_what_was_sent(ends: Ends) -> None:
    link, theirs, _ = ends
    link.send(encode(Message({"last": True})))
    link.close()
    assert receive(theirs).values == {"last": True}
    assert receive(theirs) is None


def test_end_is_told_while_nobody_takes(kind: type[PolledLink] | type[ThreadedLink]) -> None:
    into, other = pipe()
    ended = threading.Event()
    link = kind(into, on_end=ended.set)
    send(other, Message({"not": "taken yet"}))
    other.close()
    assert ended.wait(PATIENCE)
    assert link.take(PATIENCE).values == {"not": "taken yet"}


def test_waiting_for_several(kind: type[PolledLink] | type[ThreadedLink]) -> None:
    pairs = [pipe() for _ in range(3)]
    links = [kind(into) for into, _ in pairs]
    timer = threading.Timer(0.01, send, (pairs[1][1], Message({"here": True})))
    timer.start()
    kind.wait(links)
    timer.join()
    assert [link.take(0.0) is not None for link in links] == [False, True, False]
    pairs[2][1].close()
    kind.wait(links)
    with pytest.raises(Ended):
        links[2].take(0.0)
