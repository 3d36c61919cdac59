"""Questions to the backend as workers: Blender goes on while the answer is awaited."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ...backend.runtime.client import Reply
from ...backend.runtime.messages import Arrays, Message
from .. import session
from ..work import TICK


def asking(
    name: str,
    values: dict[str, Any] | None = None,
    arrays: Arrays | None = None,
    fraction: float = 0.0,
) -> Generator[float, None, Message]:
    """Asks the live session; a `UserError` where there is no answer."""
    found: list[Reply] = []
    ticket = session.post(name, values, arrays, then=found.append)
    while not found and not session.wait(ticket, TICK):
        yield fraction
    return found[0].checked()
