"""Operators of the Walk panel: walks that are baked, and playing in the viewport."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import bpy
from bpy.props import StringProperty
from bpy.types import Action, Context, Event, Object, Operator
from bpy_extras import view3d_utils
from mathutils import Vector

from ...backend.errors import UserError
from .. import session, work
from ..rig import read_rig, require_rig
from ..vae import live, models, walking
from ..vae.live import Player, Recording
from ..vae.props import WalkOptions, WalkSettings
from ..vae.walking import Walked
from ..vae.world import RATE
from ..work import WorkOperator, redraw_panels, require_idle
from .bake import fill_in
from .base import NeedsRig, OwnRig
from .in_view import ViewOperator
from .jobs import look_soon

_KEYS = {
    'UP_ARROW': (0, 1),
    'W': (0, 1),
    'DOWN_ARROW': (0, -1),
    'S': (0, -1),
    'LEFT_ARROW': (-1, 0),
    'A': (-1, 0),
    'RIGHT_ARROW': (1, 0),
    'D': (1, 0),
}
"""Where keys lead, to the right and away from the viewer."""
_NUMBERS = ('ONE', 'TWO', 'THREE', 'FOUR', 'FIVE', 'SIX', 'SEVEN', 'EIGHT', 'NINE')
"""Keys that switch to motion types."""
_HINT = "Arrow keys or WASD, or the mouse on the floor: steer   Enter, click: record   Esc: stop"


class LIMBER_OT_bake_walk(OwnRig, WorkOperator, WalkOptions, Operator):
    """Have the active Motion VAE walk from where the character stands, as the Walk panel says, \
and bake the walk as a new Action; one for each character if there are several"""

    bl_idname = "limber.bake_walk"
    bl_label = "Bake Walk"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Walking"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        models.require_model(require_rig(context))

    def invoke(self, context: Context, event: Event) -> set[str]:
        # A button walks with the panel's settings; a script just with what it is given.
        fill_in(self, context.scene.limber.walk)
        return WorkOperator.invoke(self, context, event)

    def start(self: Any, context: Context) -> Generator[float, None, Walked]:
        obj, walk = require_rig(context), context.scene.limber.walk
        walking.require_ready(obj, walk, self)
        look_soon()  # the Jobs panel shows the job, and sees to it that a cancelled one ends
        return walking.making(obj, walk, self)

    def finish(self: Any, context: Context, result: Walked) -> None:
        names = ", ".join(action.name for action in result.actions[:3])
        more = f" and {len(result.actions) - 3} more" if len(result.actions) > 3 else ""
        said = filter(None, [f"Baked {names}{more}", result.outcome, result.sentence])
        kind = {'WARNING'} if result.sentence else {'INFO'}
        self.report(kind, ". ".join(text.rstrip(".") for text in said))


class LIMBER_OT_play_walk(OwnRig, ViewOperator, Operator):
    """Walk in the viewport. Steer with the arrow keys or WASD, or with the mouse on the floor; \
Enter or a click bakes what was played as a new Action, Esc or a right click puts the pose back"""

    bl_idname = "limber.play_walk"
    bl_label = "Play"
    bl_options = {'UNDO'}
    doing = "Reading the world"

    _player: Player | None = None

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        models.require_model(require_rig(context))

    def execute(self, context: Context) -> set[str]:
        """Without a window nobody steers: plays and records as many frames as the panel says."""
        try:
            require_idle()
            player = self._player = work.run(_making_player(context))
            try:
                work.run(live.play_for(player, context.scene.limber.walk.frames))
                _keep(player, context)
            finally:
                player.stop()
        except UserError as error:
            return self._refuse(error)
        self.doing = "Baking"
        return WorkOperator.execute(self, context)

    def start(self, context: Context) -> Generator[float, None, Any]:
        return _making_player(context) if self._player is None else _baking(context)

    def finish(self, context: Context, result: Action) -> None:
        _baked(self, result)

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        if bpy.app.background or context.window is None:
            return self.execute(context)
        try:
            require_idle()
            self._look(context)
            if Playing.player is not None:
                raise UserError("A character is being played already; press Esc there.")
        except UserError as error:
            return self._refuse(error)
        self._held: set[str] = set()
        return WorkOperator.invoke(self, context, event)

    def _end(self: Any, context: Context, result: Any) -> set[str]:
        if self._player is not None:
            return WorkOperator._end(self, context, result)
        self._player, self._work = result, None
        Playing.player = result
        manager = context.window_manager
        self._timer = manager.event_timer_add(1.0 / RATE, window=context.window)
        redraw_panels(context)
        return {'RUNNING_MODAL'}

    def _handle(self: Any, context: Context, event: Event) -> set[str]:
        player, kind, pressed = self._player, event.type, event.value == 'PRESS'
        if not self._there(context) or Playing.player is not player:
            return self._stop(context)
        if player.problem:
            raise UserError(player.problem)
        if kind == 'TIMER':
            self._steer(context)
            player.update()
            context.workspace.status_text_set(
                f"{len(player.frames) / RATE:.1f} s   {player.sentence or _hint(player)}"
            )
            self._area.tag_redraw()
        elif kind in {'ESC', 'RIGHTMOUSE'} and pressed:
            return self._stop(context)
        elif kind in {'RET', 'NUMPAD_ENTER', 'LEFTMOUSE'} and pressed:
            if kind == 'LEFTMOUSE' and not self._inside(event):
                return {'PASS_THROUGH'}
            return self._record(context)
        elif kind in _NUMBERS:
            if pressed:
                player.switch(_NUMBERS.index(kind))
        elif kind in _KEYS:
            (self._held.add if event.value != 'RELEASE' else self._held.discard)(kind)
        elif kind == 'MOUSEMOVE' and self._inside(event):
            place = self._on_floor(event)
            if place is not None and not self._held:
                player.aim(place.x, place.y, context.scene.limber.walk.speed)
        else:
            return {'PASS_THROUGH'}
        return {'RUNNING_MODAL'}

    def _steer(self: Any, context: Context) -> None:
        """What the held keys say, as seen by the viewer."""
        if not self._held:
            if self._was_held:
                self._player.steer(None, 0.0)
            self._was_held = False
            return
        self._was_held = True
        right = sum(_KEYS[key][0] for key in self._held)
        ahead = sum(_KEYS[key][1] for key in self._held)
        across = self._view.view_rotation @ Vector((1.0, 0.0, 0.0))
        turn = math.atan2(across.y, across.x)  # the viewer's right, on the floor
        heading = turn + math.atan2(ahead, right) if right or ahead else None
        self._player.steer(heading, context.scene.limber.walk.speed)

    _was_held = False

    def _on_floor(self: Any, event: Event) -> Vector | None:
        """The place on the floor under the pointer; None above the horizon."""
        at = self._at(event)
        origin = view3d_utils.region_2d_to_origin_3d(self._region, self._view, at)
        way = view3d_utils.region_2d_to_vector_3d(self._region, self._view, at)
        above = origin.z - self._player.floor / self._player.metres
        if abs(way.z) < 1e-6 or above / -way.z < 0.0:
            return None
        return origin + way * (above / -way.z)

    def _record(self: Any, context: Context) -> set[str]:
        _keep(self._player, context)
        self._stop(context)
        self.doing = "Baking"
        # The recording stays, with its button, if something else is under way.
        return self._begin(context)

    def _stop(self: Any, context: Context) -> set[str]:
        if Playing.player is self._player:
            Playing.player = None
        if self._timer is not None:
            context.window_manager.event_timer_remove(self._timer)
            self._timer = None
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        try:
            self._player.stop()
            if self._there(context):
                self._area.tag_redraw()
        except ReferenceError:
            pass  # another file was opened
        redraw_panels(context)
        return {'CANCELLED'}


def _hint(player: Player) -> str:
    """What keys do now."""
    kinds = [f"{number}: {name or walking.OTHER}" for number, name in enumerate(player.types, 1)]
    return "   ".join([_HINT, *kinds[: len(_NUMBERS)]])


class Playing:
    """Who is played now, of whom there is one at a time."""

    player: Player | None = None


def _making_player(context: Context) -> Generator[float, None, Player]:
    """A worker that reads the world and begins to play."""
    obj, walk = require_rig(context), context.scene.limber.walk
    walking.require_playable(obj, walk)
    session.ensure()
    return _played(obj, walk)


def _played(obj: Object, walk: WalkSettings) -> Generator[float, None, Player]:
    rig = read_rig(obj)
    asked, clip = yield from walking.playing(obj, rig, walk)
    player = Player(obj, rig, {**asked, "seed": walk.seed}, clip)
    if walk.task == 'JOYSTICK':
        player.command = {"heading": walk.heading, "speed": walk.speed}
    return player


def _keep(player: Player, context: Context) -> None:
    Recording.keep(player, context.scene.limber.walk.name or f"{player.name} Played")


def _baking(context: Context) -> Generator[float, None, Action]:
    """A worker that bakes the recording."""
    obj = Recording.character()
    look_soon()
    return walking.baking_recording(obj, Recording.clip, Recording.floor, context.scene.limber.walk)


def _baked(operator: Operator, action: Action) -> None:
    Recording.clip = None
    operator.report({'INFO'}, f"Baked {action.name}")


class LIMBER_OT_bake_recording(NeedsRig, WorkOperator, Operator):
    """Bake what was last played in the viewport as a new Action"""

    bl_idname = "limber.bake_recording"
    bl_label = "Bake Recording"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Baking"

    name: StringProperty(
        name="Name", description="Name of the Action; the recording's own if this is empty"
    )

    @classmethod
    def require(cls, context: Context) -> None:
        # Whoever is selected by now: it is baked on who was played.
        if Recording.clip is None:
            raise UserError("Nothing was played yet; press Play first.")

    def start(self, context: Context) -> Generator[float, None, Action]:
        return _baking(context)

    def finish(self: Any, context: Context, result: Action) -> None:
        if self.name:
            result.name = self.name
        _baked(self, result)


CLASSES = (LIMBER_OT_bake_walk, LIMBER_OT_play_walk, LIMBER_OT_bake_recording)


def unregister() -> None:
    if Playing.player is not None:
        Playing.player.stop()
    Playing.player = Recording.clip = None
