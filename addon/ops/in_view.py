"""Operators that play in a 3D View until they are stopped, and then bake as other work does."""

from __future__ import annotations

from typing import Any

from bpy.types import Context, Event
from mathutils import Vector

from ...backend.errors import UserError
from ..work import WorkOperator


class ViewOperator(WorkOperator):
    """A subclass handles events while it plays and stops when it is told to, also twice."""

    _work: Any = None
    """Work before or after playing, whose turns are taken meanwhile."""

    def _handle(self, context: Context, event: Event) -> set[str]:
        raise AssertionError("an operator that plays has a _handle() of its own")

    def _stop(self, context: Context) -> set[str]:
        raise AssertionError("an operator that plays has a _stop() of its own")

    def _look(self: Any, context: Context) -> None:
        """Keeps the view that it was called in."""
        if context.area is None or context.area.type != 'VIEW_3D':
            raise UserError("Press this in a 3D View.")
        self._area = context.area
        self._region = next(r for r in context.area.regions if r.type == 'WINDOW')
        self._view = context.space_data.region_3d

    def modal(self: Any, context: Context, event: Event) -> set[str]:
        if self._work is not None:
            return WorkOperator.modal(self, context, event)
        try:
            return self._handle(context, event)
        except UserError as error:
            self.report({'ERROR'}, str(error))
            return self._stop(context)
        except ReferenceError:
            return self._stop(context)
        except BaseException:
            self._stop(context)
            raise

    def cancel(self: Any, context: Context) -> None:
        # Blender calls this when the window closes or another file is opened.
        if self._work is not None:
            WorkOperator.cancel(self, context)
        else:
            self._stop(context)

    def _at(self: Any, event: Event) -> Vector:
        """The pointer's place in the view."""
        return Vector((event.mouse_x - self._region.x, event.mouse_y - self._region.y))

    def _inside(self: Any, event: Event) -> bool:
        for region in self._area.regions:
            within_x = region.x <= event.mouse_x < region.x + region.width
            within_y = region.y <= event.mouse_y < region.y + region.height
            if within_x and within_y and region.type != 'WINDOW':
                return False  # the sidebar and the toolbar may lie over the view
        x, y = self._at(event)
        return 0 <= x < self._region.width and 0 <= y < self._region.height

    def _there(self: Any, context: Context) -> bool:
        """Whether the view is still on the screen: nothing may be asked of one that is gone."""
        window = context.window
        return window is not None and any(area == self._area for area in window.screen.areas)
