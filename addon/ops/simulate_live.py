"""Operators that play simulations in the viewport, with pushes by dragging, and bake them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import bpy
from bpy.types import Context, Event, Operator
from bpy_extras import view3d_utils
from mathutils import Vector

from ...backend.errors import UserError
from .. import session, work
from ..physics import live, simulating, surroundings
from ..physics.live import Clock, Play, Recording
from ..physics.simulating import WANDER, Simulated
from ..vae.world import RATE
from ..work import WorkOperator, redraw_panels, require_idle
from .base import NeedsRig, OwnRig
from .in_view import ViewOperator
from .picture_marks import draw_line, draw_ring
from .simulate import tell

FORCE = 400.0
"""Newtons for each metre that is dragged."""
MOST = 3000.0
"""Newtons of a push by dragging."""
CLICK = 6
"""Pixels below which a drag is a click."""
_HINT = "Drag: push   Enter: stop and bake   Esc: stop"
_KEYS = ('ONE', 'TWO', 'THREE', 'FOUR', 'FIVE', 'SIX', 'SEVEN', 'EIGHT', 'NINE')
"""Keys that choose controllers; zero has the characters wander."""
_PUSH = (1.0, 0.35, 0.2, 0.9)


class Playing:
    """What is played now, of which there is one at a time."""

    play: ClassVar[Play | None] = None


class LIMBER_OT_play_simulation(OwnRig, ViewOperator, Operator):
    """Simulate in the viewport. Drag with the left mouse button to push the nearest character; \
1 to 9 have the characters get to a controller, 0 has them wander about; Enter bakes what was \
played as new Actions, Esc or a right click puts the poses back"""

    bl_idname = "limber.play_simulation"
    bl_label = "Play"
    bl_options = {'UNDO'}
    doing = "Baking"

    @classmethod
    def require(cls, context: Context) -> None:
        super().require(context)
        panel = context.scene.limber.simulation
        simulating.require_ready(simulating.rigs(context, panel), panel, panel)

    def execute(self, context: Context) -> set[str]:
        """Without a window nobody pushes: plays and bakes as many frames as the panel says."""
        try:
            require_idle()
            play = begin(context)
            try:
                work.run(live.play_for(play, context.scene.limber.simulation.frames))
                Recording.keep(play)
            finally:
                play.stop()
        except UserError as error:
            return self._refuse(error)
        return WorkOperator.execute(self, context)

    def start(self, context: Context) -> Generator[float, None, Simulated]:
        return live.baking(context.scene.limber.simulation)

    def finish(self, context: Context, result: Simulated) -> None:
        tell(self, result)

    def invoke(self: Any, context: Context, event: Event) -> set[str]:
        if bpy.app.background or context.window is None:
            return self.execute(context)
        try:
            require_idle()
            self._look(context)
            if Playing.play is not None:
                raise UserError("A simulation is being played already; press Esc there.")
            self._play = Playing.play = begin(context)
        except UserError as error:
            return self._refuse(error)
        self._drag: tuple[Vector, Vector] | None = None
        self._clock: Clock | None = None
        self._told: tuple[str | None, str] = (None, "")
        manager = context.window_manager
        self._timer = manager.event_timer_add(1.0 / RATE, window=context.window)
        view = bpy.types.SpaceView3D
        self._drawing = view.draw_handler_add(self._draw, (), 'WINDOW', 'POST_PIXEL')
        manager.modal_handler_add(self)
        redraw_panels(context)
        return {'RUNNING_MODAL'}

    def _handle(self: Any, context: Context, event: Event) -> set[str]:
        play, kind, pressed = self._play, event.type, event.value == 'PRESS'
        if not self._there(context) or Playing.play is not play:
            return self._stop(context)
        if play.problem:
            raise UserError(play.problem)
        at = self._at(event)
        if kind == 'TIMER':
            self._go_on(context)
        elif kind in {'ESC', 'RIGHTMOUSE'} and pressed:
            return self._stop(context)
        elif kind in {'RET', 'NUMPAD_ENTER'} and pressed:
            return self._record(context)
        elif kind in _KEYS or kind == 'ZERO':
            if pressed:
                choose(play, _KEYS.index(kind) if kind in _KEYS else None)
        elif kind == 'LEFTMOUSE' and pressed and self._inside(event):
            self._drag = (at, at)
        elif kind == 'LEFTMOUSE' and self._drag is not None:
            self._push()
        elif kind == 'MOUSEMOVE' and self._drag is not None:
            self._drag = (self._drag[0], at)
        else:
            return {'PASS_THROUGH'}
        return {'RUNNING_MODAL'}

    def _go_on(self: Any, context: Context) -> None:
        """Shows what has come, asks for what is due, and says how it stands."""
        play = self._play
        if play.frames and self._clock is None:
            self._clock = Clock()  # the time that the backend needed to begin does not count
        play.update(self._clock.due(play.frames) if self._clock is not None else 0)
        context.workspace.status_text_set(status(play, self._said()))
        self._region.tag_redraw()
        told = keys_hint(play), play.sentence
        # The sidebar is drawn just when it says something else: it takes longer than a frame.
        if told != self._told:
            self._told = told
            self._area.header_text_set(told[0])
            self._area.tag_redraw()

    def _push(self: Any) -> None:
        number, force = self._aimed()
        if (self._drag[1] - self._drag[0]).length >= CLICK and number >= 0:
            self._play.push(number, force)
        self._drag = None

    def _aimed(self: Any) -> tuple[int, Vector]:
        """The character that a drag began nearest to, and the force that it means."""
        best, nearest = -1, 0.0
        depth = Vector()
        for number, actor in enumerate(self._play.actors):
            if not actor.frames:
                continue
            place = Vector(actor.frames[-1].root_position) / actor.metres
            seen = view3d_utils.location_3d_to_region_2d(self._region, self._view, place)
            if seen is None:
                continue
            apart = (seen - self._drag[0]).length
            if best < 0 or apart < nearest:
                best, nearest, depth = number, apart, place
        if best < 0:
            return best, Vector()
        start, stop = (
            view3d_utils.region_2d_to_location_3d(self._region, self._view, at, depth)
            for at in self._drag
        )
        force = (stop - start) * self._play.actors[best].metres * FORCE
        return best, force if force.length <= MOST else force.normalized() * MOST

    def _said(self: Any) -> str:
        if self._drag is None:
            return ""
        number, force = self._aimed()
        return f"Push {force.length:.0f} N" if number >= 0 else ""

    def _draw(self: Any) -> None:
        """Blender calls this after it has drawn the view."""
        try:
            for radius, place in self._play.flying:
                self._draw_ball(radius, place)
            if self._drag is not None:
                draw_line(*self._drag, _PUSH)
        except ReferenceError:
            return  # the operator is about to notice

    def _draw_ball(self: Any, radius: float, place: Any) -> None:
        metres = self._play.actors[0].metres
        middle = Vector(place) / metres
        edge = middle + self._view.view_rotation @ Vector((radius / metres, 0.0, 0.0))
        seen = [
            view3d_utils.location_3d_to_region_2d(self._region, self._view, place)
            for place in (middle, edge)
        ]
        if None not in seen:
            draw_ring(seen[0], (seen[1] - seen[0]).length)

    def _record(self: Any, context: Context) -> set[str]:
        Recording.keep(self._play)
        self._stop(context)
        # What was played stays, with its button, if something else is under way.
        return self._begin(context)

    def _stop(self: Any, context: Context) -> set[str]:
        """Ends playing; again does nothing."""
        if Playing.play is self._play:
            Playing.play = None
        if self._timer is None:
            return {'CANCELLED'}
        bpy.types.SpaceView3D.draw_handler_remove(self._drawing, 'WINDOW')
        context.window_manager.event_timer_remove(self._timer)
        self._timer = self._drawing = None
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        try:
            self._play.stop()
            if self._there(context):
                self._area.header_text_set(None)
                self._area.tag_redraw()
        except ReferenceError:
            pass  # another file was opened
        redraw_panels(context)
        return {'CANCELLED'}


def choose(play: Play, number: int | None) -> None:
    """Has the characters get to the controller of that number, if there is one; None: wander."""
    if number is None:
        play.want(WANDER)
    elif number < len(play.choices):
        play.want(play.choices[number])


def status(play: Play, said: str) -> str:
    """A line for the status bar: how long, who does what, what can be done."""
    doing = ", ".join(actor.doing for actor in play.actors if actor.doing)
    return "   ".join(filter(None, [f"{play.frames / RATE:.1f} s", doing, said or _HINT]))


def keys_hint(play: Play) -> str | None:
    """What keys choose; None where there is just one thing to do."""
    if len(play.choices) < 2:
        return None
    kinds = [f"{number}: {name}" for number, name in enumerate(play.choices[: len(_KEYS)], 1)]
    return "   ".join([*kinds, "0: wander"])


def begin(context: Context) -> Play:
    """Starts to play what the panel says; what was played before is forgotten."""
    simulation = context.scene.limber.simulation
    found = simulating.rigs(context, simulation)
    simulating.require_ready(found, simulation, simulation)
    session.ensure()
    asked = work.run(simulating.asking(found, simulation, simulation, ahead=False))
    target = surroundings.target_of(found, simulation, simulation)
    play = Play(found, asked, target)
    Recording.play = None
    return play


class LIMBER_OT_bake_simulated(NeedsRig, WorkOperator, Operator):
    """Bake the simulation that was last played in the viewport as new Actions"""

    bl_idname = "limber.bake_simulated"
    bl_label = "Bake Played Simulation"
    bl_options = {'REGISTER', 'UNDO'}
    doing = "Baking"

    @classmethod
    def require(cls, context: Context) -> None:
        # Whoever is selected by now: it is baked on who was played.
        live.require_played()

    def start(self, context: Context) -> Generator[float, None, Simulated]:
        return live.baking(context.scene.limber.simulation)

    def finish(self, context: Context, result: Simulated) -> None:
        tell(self, result)


CLASSES = (LIMBER_OT_play_simulation, LIMBER_OT_bake_simulated)


def unregister() -> None:
    if Playing.play is not None:
        Playing.play.stop()
    Playing.play = Recording.play = None
