"""The Rig panel: what Limber sees in the armature, to be looked at and corrected."""

from __future__ import annotations

from bpy.types import Context, Object, Panel, UILayout

from .. import guesses
from ..guesses import Seen
from .sidebar import Sidebar, has_rig, narrow, rig_or_sentence
from .text import draw_text


class LIMBER_PT_rig(Sidebar, Panel):
    bl_label = "Rig"
    bl_order = 0

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        if obj is None:
            return
        seen = guesses.seen(obj)
        layout.label(text=obj.name, icon='ARMATURE_DATA')
        if seen.problem:
            draw_text(layout, context, seen.problem, icon='ERROR')
        column = narrow(layout)
        draw_guess(column, obj, "profile")
        if not len(obj.data.bones):
            return
        draw_guess(column, obj, "hips", bones=True)
        draw_guess(column, obj, "root", bones=True)
        draw_guess(column, obj, "forward")
        draw_guess(column, obj, "up")
        draw_guess(column, obj, "height")
        _draw_counts(layout, context, seen)


class LIMBER_PT_rig_feet(Sidebar, Panel):
    bl_label = "Feet"
    bl_parent_id = "LIMBER_PT_rig"

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw_header_preset(self, context: Context) -> None:
        _draw_reset(self.layout, context, "feet")

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        summary = guesses.seen(obj).summary
        column = layout.column(align=True)
        for name in summary.feet if summary is not None else ():
            row = column.row(align=True)
            row.label(text=name, icon='BONE_DATA')
            row.operator("limber.remove_foot", text="", icon='X', emboss=False).bone = name
        if summary is not None and not summary.feet:
            layout.label(text="None")
        column.separator()
        column.prop_search(obj.limber, "add_foot", obj.data, "bones", text="", icon='ADD')


class LIMBER_PT_rig_pairs(Sidebar, Panel):
    bl_label = "Left and Right"
    bl_parent_id = "LIMBER_PT_rig"
    bl_options = {'DEFAULT_CLOSED'}

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context)

    def draw_header_preset(self, context: Context) -> None:
        _draw_reset(self.layout, context, "pairs")

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        summary = guesses.seen(obj).summary
        column = layout.column(align=True)
        for left, right in summary.pairs if summary is not None else ():
            row = column.row(align=True)
            row.label(text=left, icon='BONE_DATA')
            row.label(text=right)
            row.operator("limber.remove_pair", text="", icon='X', emboss=False).bone = left
        if summary is not None and not summary.pairs:
            layout.label(text="None")
        column.separator()
        row = column.row(align=True)
        row.prop_search(obj.limber, "new_left", obj.data, "bones", text="")
        row.prop_search(obj.limber, "new_right", obj.data, "bones", text="")
        add = row.operator("limber.add_pair", text="", icon='ADD')
        add.left, add.right = obj.limber.new_left, obj.limber.new_right


def _draw_reset(layout: UILayout, context: Context, name: str) -> None:
    """In the header of a list, a button that drops the user's own."""
    obj = rig_or_sentence(layout, context)
    row = layout.row(align=True)
    row.enabled = bool(len(getattr(obj.limber, name)))
    row.operator("limber.guess_again", text="", icon='LOOP_BACK', emboss=False).what = name


def draw_guess(layout: UILayout, obj: Object, name: str, *, bones: bool = False) -> None:
    """What is used, and beside it a button that drops a choice of the user's."""
    settings = obj.limber
    row = layout.row(align=True)
    if bones:
        row.prop_search(settings, f"{name}_used", obj.data, "bones")
    else:
        row.prop(settings, f"{name}_used")
    reset = row.row(align=True)
    reset.enabled = getattr(settings, name) not in {'AUTO', "", 0.0}
    reset.operator("limber.guess_again", text="", icon='LOOP_BACK').what = name


def _draw_counts(layout: UILayout, context: Context, seen: Seen) -> None:
    summary = seen.summary
    if summary is None:
        return
    text = f"{summary.joints} joints, {len(summary.pairs)} left and right pairs"
    if summary.keyed != summary.joints:
        text += f", {summary.keyed} bones to key"
    draw_text(layout, context, text)
    if summary.between_axes:
        draw_text(layout, context, "At rest it faces between two axes.", icon='INFO')


CLASSES = (LIMBER_PT_rig, LIMBER_PT_rig_feet, LIMBER_PT_rig_pairs)
