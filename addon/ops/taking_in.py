"""The timer that lists what jobs have learned: styles, Motion VAEs, policies, control graphs."""

from __future__ import annotations

import time
from typing import ClassVar

import bpy
from bpy.app.handlers import persistent
from bpy.types import Object

from ..physics import models as control_graphs
from ..style import models as styles
from ..vae import models as vaes
from ..work import redraw_panels

_EVERY = 0.5
"""Seconds between two looks at jobs that learn something."""
_STALE = 2.0
"""Seconds after which a panel that is drawn asks for a look: a job may have been resumed."""
_LISTS = (styles, vaes, control_graphs)


def take_in_soon() -> None:
    """Has a timer take in what jobs have made when they are done; cheap enough for a draw."""
    if not bpy.app.timers.is_registered(_take_in):
        bpy.app.timers.register(_take_in, persistent=True)


def take_in_soon_if_stale() -> None:
    """As `take_in_soon`, unless it was just done."""
    if time.monotonic() - Waiting.seen > _STALE:
        take_in_soon()


class Waiting:
    """When jobs that learn something were last looked at."""

    seen: ClassVar[float] = 0.0


def _take_in() -> float | None:
    Waiting.seen = time.monotonic()
    waiting = [kind.take_in(obj) for obj in _learning() for kind in _LISTS]
    if waiting:
        redraw_panels(bpy.context)
    return _EVERY if any(waiting) else None


def _learning() -> list[Object]:
    """Characters with something that is still to come from a job."""
    armatures = (obj for obj in bpy.data.objects if obj.type == 'ARMATURE' and not obj.library)
    return [obj for obj in armatures if any(kind.pending(obj) for kind in _LISTS)]


@persistent
def _look_for_jobs(*_: object) -> None:
    """A file that is opened, or what is undone, may wait for something that is ready."""
    if _learning():
        take_in_soon()


CLASSES = ()

_HANDLERS = ("load_post", "undo_post", "redo_post")


def register() -> None:
    for name in _HANDLERS:
        getattr(bpy.app.handlers, name).append(_look_for_jobs)


def unregister() -> None:
    for name in _HANDLERS:
        getattr(bpy.app.handlers, name).remove(_look_for_jobs)
    if bpy.app.timers.is_registered(_take_in):
        bpy.app.timers.unregister(_take_in)
