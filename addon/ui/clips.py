"""The Clips panel: the list of Actions and strips to learn from."""

from __future__ import annotations

from typing import Any

from bpy.types import Context, Menu, Panel, PropertyGroup, UILayout, UIList

from .. import clip_list
from ..ops import clips as operators
from ..rig import require_rig
from .sidebar import Sidebar, draw_progress, has_rig, narrow, rig_or_sentence
from .text import draw_text


class LIMBER_UL_clips(UIList):
    """Clips with their length, whether they loop, and whether something is wrong with them."""

    def draw_item(
        self,
        context: Context,
        layout: UILayout,
        data: Any,
        item: PropertyGroup,
        icon: int,
        active_data: Any,
        active_property: str,
    ) -> None:
        row = layout.row(align=True)
        row.prop(item, "use", text="")
        name = row.row(align=True)
        name.active = item.use
        if item.action is None:
            name.label(text="(deleted)", icon='ERROR')
            return
        if clip_list.warnings(item):
            name.label(text="", icon='ERROR')
        name.label(text=clip_list.label(item), icon='NLA' if item.strip else 'NONE')
        # As narrow as it goes: a sidebar is, and the name is what one looks for.
        length = row.row(align=True)
        length.alignment = 'RIGHT'
        length.active = item.use
        length.label(text=f"{item.frames}  {item.seconds:.1f} s")
        loop = row.row()
        loop.active = item.loop  # dim where the clip does not loop
        loop.prop(item, "loop", text="", icon='FILE_REFRESH', emboss=False)

    def filter_items(
        self, context: Context, data: Any, property: str
    ) -> tuple[list[int], list[int]]:
        # By the names that are shown, which follow renamed Actions.
        entries = getattr(data, property)
        wanted = self.filter_name.lower()
        shown = [
            self.bitflag_filter_item if wanted in clip_list.label(entry).lower() else 0
            for entry in entries
        ]
        order: list[int] = []
        if self.use_filter_sort_alpha:
            names = [clip_list.label(entry).lower() for entry in entries]
            ranked = sorted(range(len(names)), key=lambda place: names[place])
            order = [ranked.index(place) for place in range(len(names))]
        return shown, order


class LIMBER_MT_clips(Menu):
    bl_label = "Clip List"

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.operator("limber.add_all_actions", icon='ACTION')
        layout.operator("limber.add_strips", icon='NLA')
        layout.operator("limber.import_bvh", icon='IMPORT')
        layout.separator()
        layout.operator("limber.mirror_clip", icon='MOD_MIRROR')
        layout.operator("limber.refresh_clips", icon='FILE_REFRESH')
        layout.separator()
        layout.operator("limber.tick_clips", icon='CHECKBOX_HLT').use = True
        layout.operator(
            "limber.tick_clips", text="Untick All Clips", icon='CHECKBOX_DEHLT'
        ).use = False
        layout.operator("limber.clear_clips", icon='X')


class LIMBER_PT_clips(Sidebar, Panel):
    bl_label = "Clips"
    bl_order = 1

    def draw(self, context: Context) -> None:
        layout = self.layout
        obj = rig_or_sentence(layout, context)
        if obj is None:
            if not draw_progress(layout, *operators.CLASSES):
                layout.operator("limber.import_bvh", icon='IMPORT')
            return
        settings = obj.limber
        row = layout.row()
        row.template_list("LIMBER_UL_clips", "", settings, "clips", settings, "clip_index", rows=5)
        column = row.column(align=True)
        column.operator("limber.add_action", text="", icon='ADD')
        column.operator("limber.remove_clip", text="", icon='REMOVE')
        column.separator()
        column.menu("LIMBER_MT_clips", text="", icon='DOWNARROW_HLT')
        if draw_progress(layout, *operators.CLASSES):
            return
        if not len(settings.clips):
            column = layout.column(align=True)
            column.operator("limber.add_all_actions", icon='ACTION')
            column.operator("limber.import_bvh", icon='IMPORT')
            return
        used = [entry for entry in settings.clips if entry.use and entry.action is not None]
        seconds = sum(entry.seconds for entry in used)
        layout.label(text=f"{len(used)} of {len(settings.clips)} clips ticked, {seconds:.1f} s")


class LIMBER_PT_active_clip(Sidebar, Panel):
    bl_label = "Active Clip"
    bl_parent_id = "LIMBER_PT_clips"

    @classmethod
    def poll(cls, context: Context) -> bool:
        return has_rig(context) and clip_list.active(require_rig(context)) is not None

    def draw(self, context: Context) -> None:
        layout = self.layout
        entry = clip_list.active(require_rig(context))
        for sentence in clip_list.warnings(entry):
            draw_text(layout, context, sentence, icon='ERROR')
        if entry.action is None:
            layout.operator("limber.remove_clip", icon='REMOVE')
            return
        column = narrow(layout)
        column.prop(entry, "loop")
        column.prop(entry, "use_range")
        part = column.column(align=True)
        part.active = entry.use_range
        part.prop(entry, "start")
        part.prop(entry, "end")
        row = layout.row(align=True)
        row.operator("limber.set_clip_range", text="From Scene").source = 'SCENE'
        row.operator("limber.set_clip_range", text="From Markers").source = 'MARKERS'
        layout.operator("limber.mirror_clip", icon='MOD_MIRROR')


CLASSES = (LIMBER_UL_clips, LIMBER_MT_clips, LIMBER_PT_clips, LIMBER_PT_active_clip)
