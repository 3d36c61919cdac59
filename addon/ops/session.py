"""Operators that start, restart and stop the live session."""

from __future__ import annotations

from typing import Any

import bpy
from bpy.types import Context, Operator

from ...backend.errors import UserError
from .. import session

_PATIENCE = 60.0
"""Seconds that a first answer may take in background mode, on a cold disk."""


class SessionOperator:
    """For operators that bring the session about: `begin` starts it."""

    def begin(self) -> None:
        raise AssertionError("a session operator has a begin() of its own")

    def execute(self: Any, context: Context) -> set[str]:
        try:
            self.begin()
            if bpy.app.background:
                session.call("versions", timeout=_PATIENCE)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        return {'FINISHED'}


class LIMBER_OT_start_session(SessionOperator, Operator):
    """Start the backend now. It also starts by itself when it is needed"""

    bl_idname = "limber.start_session"
    bl_label = "Start Backend"

    @classmethod
    def poll(cls, context: Context) -> bool:
        if session.running():
            cls.poll_message_set("The backend is running")
            return False
        return True

    def begin(self) -> None:
        session.restart()


class LIMBER_OT_restart_session(SessionOperator, Operator):
    """End the backend, if it still runs, and start it again. Jobs are not affected"""

    bl_idname = "limber.restart_session"
    bl_label = "Restart Backend"

    def begin(self) -> None:
        session.restart()


class LIMBER_OT_stop_session(Operator):
    """End the backend to free its memory. Jobs go on, and it starts again when it is needed"""

    bl_idname = "limber.stop_session"
    bl_label = "Stop Backend"

    @classmethod
    def poll(cls, context: Context) -> bool:
        if not session.running():
            cls.poll_message_set("The backend is not running")
            return False
        return True

    def execute(self, context: Context) -> set[str]:
        session.stop()
        return {'FINISHED'}


CLASSES = (LIMBER_OT_start_session, LIMBER_OT_restart_session, LIMBER_OT_stop_session)
