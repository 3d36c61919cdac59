"""What Limber's operators on a character have in common."""

from __future__ import annotations

from typing import Any

from bpy.types import Context

from ...backend.errors import UserError
from ..clip_list import require_own
from ..rig import require_rig
from ..work import require_idle


class NeedsRig:
    """For operators that need a character; says why the button is grey."""

    @classmethod
    def poll(cls: Any, context: Context) -> bool:
        try:
            require_idle()
            cls.require(context)
        except UserError as error:
            cls.poll_message_set(str(error).rstrip("."))
            return False
        return True

    @classmethod
    def require(cls, context: Context) -> None:
        """A `UserError` that says what is missing; quick enough for every redraw."""
        require_rig(context)


class OwnRig(NeedsRig):
    """For operators that keep something on the character."""

    @classmethod
    def require(cls, context: Context) -> None:
        require_own(require_rig(context))
