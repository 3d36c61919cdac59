"""The Check Motion panel: how good the active Action is, and where it is worst."""

from __future__ import annotations

from bpy.types import Context, Panel, UILayout

from ..ops import check as operators
from ..props import MotionReport
from .sidebar import Sidebar, draw_progress, rig_or_sentence
from .text import draw_text


class LIMBER_PT_check(Sidebar, Panel):
    bl_label = "Check Motion"
    bl_order = 3
    bl_options = {'DEFAULT_CLOSED'}

    def draw(self, context: Context) -> None:
        layout = self.layout
        if rig_or_sentence(layout, context) is None:
            return
        row = layout.row(align=True)
        if not draw_progress(row, *operators.CLASSES):
            row.operator("limber.check_motion", icon='VIEWZOOM')
            row.operator("limber.clear_check", text="", icon='X')
        report = context.scene.limber.report
        if report.action:
            layout.label(text=f"{report.action}, {report.frames} frames", icon='ACTION')
            _draw_figures(layout, report)


class LIMBER_PT_check_flaws(Sidebar, Panel):
    bl_label = "Worst Frames"
    bl_parent_id = "LIMBER_PT_check"

    @classmethod
    def poll(cls, context: Context) -> bool:
        return bool(context.scene.limber.report.action)

    def draw(self, context: Context) -> None:
        layout = self.layout
        flaws = context.scene.limber.report.flaws
        if not len(flaws):
            layout.label(text="Nothing to complain about", icon='CHECKMARK')
        for flaw in flaws:
            row = layout.row()
            show = row.column()
            show.operator("limber.show_flaw", text=str(flaw.frame)).frame = flaw.frame
            show.ui_units_x = 2.5
            draw_text(row, context, flaw.text, margin=90.0)


def _draw_figures(layout: UILayout, report: MotionReport) -> None:
    column = layout.column(align=True)
    if report.has_feet:
        _draw_figure(column, "Foot Skate", f"{report.foot_skate:.2f} cm/frame")
        _draw_figure(column, "Longest Slide", f"{report.slide:.1f} cm")
        _draw_figure(column, "Penetration", f"{report.penetration:.0f} mm")
    _draw_figure(column, "Mean Jerk", f"{report.jerk:,.0f} m/s³")
    _draw_figure(column, "Worst Jerk", f"{report.jerk_worst:,.0f} m/s³")
    _draw_figure(column, "Joint Speed", f"{report.joint_speed:.1f} rad/s")


def _draw_figure(layout: UILayout, name: str, value: str) -> None:
    split = layout.split(factor=0.45)
    left = split.row()
    left.alignment = 'RIGHT'
    left.label(text=name)
    split.label(text=value)


CLASSES = (LIMBER_PT_check, LIMBER_PT_check_flaws)
