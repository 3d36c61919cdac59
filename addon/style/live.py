"""Pose Live: while it is on, a character follows its handles, whatever moves these.

Blender says when something in the scene has changed. Where that concerns a handle, the backend is
asked for a pose; it mostly answers within the few milliseconds that are waited here, so that the
same picture shows handle and body. What comes later is written when it comes. Writing a pose
changes the scene too, and handles that hang on the character with it: that alone asks for nothing,
so that nothing goes round in circles.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import bpy
import numpy as np
from bpy.app.handlers import persistent
from bpy.types import Depsgraph, Object, Scene

from ...backend.errors import UserError
from ...backend.motion.rig import Rig
from ...backend.runtime.client import Reply
from ...backend.runtime.messages import Arrays
from .. import guesses, session
from ..guesses import Seen
from ..rig import read_rig
from ..work import redraw_panels
from . import handles, models, pose, solving
from .pose import Poser
from .solving import Solved

PATIENCE = 0.006
"""Seconds that Blender waits for an answer at once: a solve takes 2 to 4 ms."""
STEADY = 1e-3
"""A pose that changes by less than this has come to rest, radians and metres."""
MOST_STEPS = 20
"""Solves after which a pose counts as at rest, however it goes on."""


class Character:
    """One character that is posed live."""

    def __init__(self, obj: Object, rig: Rig) -> None:
        self.uid = obj.session_uid
        self.name = obj.name
        self.seen: Seen = guesses.seen(obj)
        self.poser = Poser(obj, rig)
        self.opened: Any = None
        """The styles that the backend has opened, and how."""
        self.pid: int | None = None
        """The process that has opened them; after a restart it is another."""
        self.asked: Any = None
        """What the last pose was asked for; None asks again."""
        self.resume = True
        """Whether the backend must go on from the pose that the character is in."""
        self.place: tuple[int, tuple[float, float]] | None = None
        """A style, and a point of its latent map that is kept."""
        self.steps = 0
        """Solves since a handle last moved."""
        self.sentence = ""
        """What the user should know."""
        self.solved: Solved | None = None

    @property
    def key(self) -> str:
        """What the backend calls it."""
        return f"live {self.uid}"

    def find(self) -> Object | None:
        """Its object; undo and renaming make others of it."""
        obj = bpy.data.objects.get(self.name)
        if obj is None or obj.session_uid != self.uid:
            obj = next((each for each in bpy.data.objects if each.session_uid == self.uid), None)
        if obj is not None:
            self.name = obj.name
        return obj


_characters: dict[int, Character] = {}
_last_words: dict[int, str] = {}
"""Why posing ended by itself, by character."""
_inside = False
"""Whether Blender is just telling what has changed, or is made to: it must not be asked again."""


def start(obj: Object, place: tuple[int, tuple[float, float]] | None = None) -> None:
    """Poses a character from now on, beginning with the pose that it is in.

    It may have no handles as long as it is kept at a place on a latent map, as with `keep_at`.
    """
    rig = read_rig(obj)
    solving.require_ready(obj, rig)
    if place is None:
        handles.require_used(obj)
    session.ensure()
    stop(obj)
    pose.switch(obj, rig)
    character = _characters[obj.session_uid] = Character(obj, rig)
    character.place = place
    _listen()
    with quiet():
        bpy.context.view_layer.update()
        _look(character, bpy.context.scene)
        bpy.context.view_layer.update()


def stop(obj: Object) -> None:
    """Leaves a character in its pose, for good."""
    _last_words.pop(obj.session_uid, None)
    if obj.session_uid in _characters:
        _end(_characters[obj.session_uid], "")


def of(obj: Object) -> Character | None:
    """The character, if it is posed live."""
    return _characters.get(obj.session_uid)


def sentence(obj: Object) -> str:
    """What the user should know about the posing of a character; empty if all is well."""
    character = of(obj)
    return character.sentence if character else _last_words.get(obj.session_uid, "")


def afresh(obj: Object) -> None:
    """Looks for the best pose from several starts, rather than from the last pose."""
    _again(obj, fresh=True)


def keep_at(obj: Object, style: int, place: tuple[float, float] | None) -> None:
    """Poses at a point of a style's latent map, as well as the handles allow; None lets go."""
    character = of(obj)
    if character is not None:
        character.place = None if place is None else (style, place)
        _again(obj)


def let_go(obj: Object) -> None:
    """Ends `keep_at`; the pose stays as it is until a handle moves."""
    character = of(obj)
    if character is not None and character.place is not None:
        character.place = None
        with contextlib.suppress(UserError):
            character.asked = _question(character, obj)


def stop_all(why: str = "") -> None:
    """Ends all posing."""
    for character in list(_characters.values()):
        _end(character, why)


def _again(obj: Object, *, fresh: bool = False) -> None:
    character = of(obj)
    if character is not None:
        character.asked = None
        with quiet():
            _look(character, bpy.context.scene, fresh=fresh)
            bpy.context.view_layer.update()


def _end(character: Character, why: str) -> None:
    _characters.pop(character.uid, None)
    if why:
        _last_words[character.uid] = why
    if session.running():
        session.post("style.close", {"name": character.key})
    if not _characters:
        _listen(False)
    redraw_panels(bpy.context)


# What Blender tells


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """While this lasts, what changes in the scene asks for nothing."""
    global _inside
    before, _inside = _inside, True
    try:
        yield
    finally:
        _inside = before


@persistent
def _on_update(scene: Scene, depsgraph: Depsgraph) -> None:
    _told(scene, depsgraph)


@persistent
def _on_frame(scene: Scene, depsgraph: Depsgraph) -> None:
    # Curves have moved the bones, so the pose must be written anew whatever the handles do.
    for character in _characters.values():
        character.asked = None
    _told(scene, depsgraph, frame=True)


@persistent
def _on_undo(*_: object) -> None:
    # All data are others now; the next update poses by where the handles are, but stays near the
    # pose that has come back.
    for character in _characters.values():
        character.asked, character.resume = None, True


@persistent
def _on_load(*_: object) -> None:
    stop_all()
    _last_words.clear()


def _told(scene: Scene, depsgraph: Depsgraph, *, frame: bool = False) -> None:
    if _inside or depsgraph.mode != 'VIEWPORT':
        return
    edited = depsgraph.id_type_updated('ARMATURE')
    with quiet():
        for character in list(_characters.values()):
            obj = character.find()
            if obj is None:
                _end(character, "The character was deleted.")
            elif obj.mode != 'EDIT' and _changed(character, obj, edited):
                _end(character, f"The rig of {obj.name} has changed; switch Pose Live on again.")
            else:
                if frame:
                    pose.switch(obj, character.poser.rig)
                    _write(character, obj)  # until the answer is there
                _look(character, scene)


def _changed(character: Character, obj: Object, edited: bool) -> bool:
    """Whether the rig is no longer what it was; its bones are looked at if they were `edited`."""
    if edited and guesses.seen(obj) is not character.seen:
        return True
    return not character.poser.fits(obj)


_HANDLERS = {
    "depsgraph_update_post": _on_update,
    "frame_change_post": _on_frame,
    "undo_post": _on_undo,
    "redo_post": _on_undo,
    "load_pre": _on_load,
}


def _listen(wanted: bool = True) -> None:
    for name, function in _HANDLERS.items():
        listeners = getattr(bpy.app.handlers, name)
        if wanted and function not in listeners:
            listeners.append(function)
        elif not wanted and function in listeners:
            listeners.remove(function)


# Asking and answering


def _look(character: Character, scene: Scene, *, fresh: bool = False) -> None:
    """Asks for a pose if anything that it depends on has changed."""
    obj = character.find()
    if obj is None or obj.mode == 'EDIT' or scene.objects.get(obj.name) != obj:
        return
    try:
        asked = _question(character, obj)
        if asked != character.asked:
            character.asked, character.steps = asked, 0
            _ask(character, obj, fresh=fresh)
    except UserError as error:
        _complain(character, str(error))


def _question(character: Character, obj: Object) -> dict[str, Any]:
    """All that a pose depends on."""
    blend = solving.blend(obj)
    if not any(blend):
        models.require_trained(obj)  # which says why
    if character.place is None:
        handles.require_used(obj)
    style, place = character.place or (0, None)
    return {
        "handles": handles.collect(obj, character.poser.rig),
        "blend": solving.blend(obj) if place is None else solving.alone(obj, style),
        "opened": ([e.filepath for e in models.trained(obj)], obj.limber.style.use_limits),
        "object": [list(row) for row in obj.matrix_world],
        "style": style,
        "place": place,
    }


def _ask(character: Character, obj: Object, *, fresh: bool = False) -> None:
    """Asks for the pose of `character.asked`, and waits a moment for it."""
    asked = character.asked
    session.ensure()
    if asked["opened"] != character.opened or character.pid != session.pid():
        _open(character, obj)
    if character.resume:
        _ask_first(character, "style.start", {}, solving.starting(obj, character.poser.rig))
        character.resume = False
    values = {name: asked[name] for name in ("handles", "blend", "style", "place")}
    ticket = session.post(
        "style.solve",
        {"name": character.key, "fresh": fresh, **values},
        channel=character.key,
        then=partial(_answered, character.uid),
    )
    if not bpy.app.background:
        session.wait(ticket, PATIENCE)


def _open(character: Character, obj: Object) -> None:
    rig = character.poser.rig
    solving.require_ready(obj, rig)
    _ask_first(character, "style.open", *solving.opening(obj, rig))
    character.opened, character.pid = character.asked["opened"], session.pid()
    character.resume = True


def _ask_first(
    character: Character, name: str, values: dict[str, Any], arrays: Arrays | None = None
) -> None:
    """Asks for what a pose needs; without it, posing is over."""
    refused = partial(_refused, character.uid)
    session.post(name, {"name": character.key, **values}, arrays, then=refused)


def _refused(uid: int, reply: Reply) -> None:
    """Ends the posing of a character whose styles cannot be opened."""
    character = _characters.get(uid)
    if character is not None and (reply.error or reply.bug):
        _end(character, _complaint(reply))


def _answered(uid: int, reply: Reply) -> None:
    """Writes the pose that the backend found."""
    character = _characters.get(uid)
    obj = character.find() if character is not None else None
    if character is None or obj is None or reply.dropped:
        return
    if reply.error or reply.bug:
        _complain(character, _complaint(reply))
        return
    before, character.solved = character.solved, Solved.of(reply.checked())
    _say(character, character.solved.sentence)
    if _inside:  # Blender goes on to bring the scene up to date by itself
        _write(character, obj)
    else:
        _write_late(character, obj)
    _settle(character, before)


def _write_late(character: Character, obj: Object) -> None:
    """Writes a pose between two updates of Blender's."""
    with quiet():
        # What the user has moved since must still count as moved afterwards.
        bpy.context.view_layer.update()
        _look(character, bpy.context.scene)
        _write(character, obj)  # by now perhaps a newer one
        bpy.context.view_layer.update()
        # Handles that hang on the character have moved with it: nobody else has moved them.
        with contextlib.suppress(UserError):
            character.asked = _question(character, obj)


def _write(character: Character, obj: Object) -> None:
    if character.solved is not None:
        character.poser.write(obj, character.solved.pose)


def _settle(character: Character, before: Solved | None) -> None:
    """Asks once more while the pose is still on its way: a solve makes a few steps only."""
    character.steps += 1
    if character.steps >= MOST_STEPS or before is None or not _moved(before, character.solved):
        return
    step = partial(_step, character.uid, character.steps)
    if bpy.app.background:
        step()
    else:
        bpy.app.timers.register(step)


def _step(uid: int, steps: int) -> None:
    character = _characters.get(uid)
    obj = character.find() if character is not None else None
    if character is not None and obj is not None and character.steps == steps:
        with contextlib.suppress(UserError):
            _ask(character, obj)


def _moved(before: Solved, after: Solved) -> bool:
    one, other = before.pose, after.pose
    turned = np.abs(np.abs(one.rotations) - np.abs(other.rotations)).max()
    return max(2.0 * turned, np.abs(one.root_position - other.root_position).max()) > STEADY


def _complaint(reply: Reply) -> str:
    try:
        reply.checked()
    except UserError as error:
        return str(error)
    return ""


def _complain(character: Character, text: str) -> None:
    """Says what is wrong; without a backend it is over."""
    if session.problem():
        _end(character, text)
    else:
        _say(character, text)


def _say(character: Character, text: str) -> None:
    if character.sentence != text:
        character.sentence = text
        redraw_panels(bpy.context)


CLASSES = ()


def unregister() -> None:
    stop_all()
    _last_words.clear()
    _listen(False)
