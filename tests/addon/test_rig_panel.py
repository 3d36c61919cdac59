"""Guesses about a rig are shown, can be corrected and dropped, and are made once, not each draw."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from bl_ext.user_default.limber.addon import guesses
from bl_ext.user_default.limber.addon.rig import read_rig
from drawing import draw_all
from rigs import chain_bones, make_armature


@pytest.fixture
def looks(monkeypatch) -> list[str]:
    """The armatures that were looked at closely, in order."""
    seen = []

    def look(obj):
        seen.append(obj.name)
        return read_rig(obj)

    guesses.forget()
    monkeypatch.setattr(guesses, "read_rig", look)
    return seen


def test_guesses():
    settings = make_armature().limber
    assert settings.profile_used == 'DEFORM'
    assert (settings.hips_used, settings.root_used) == ("hips", "root")
    assert (settings.forward_used, settings.up_used) == ('-Y', 'Z')
    assert settings.height_used == pytest.approx(1.75)
    assert settings.hips == settings.root == "" and settings.profile == settings.up == 'AUTO'


def test_corrections_are_used_and_can_be_dropped():
    obj = make_armature()
    settings = obj.limber
    settings.hips_used, settings.forward_used, settings.height_used = "spine", 'X', 3.5
    assert (settings.hips, settings.forward, settings.height) == ("spine", 'X', 3.5)
    rig = read_rig(obj)
    assert rig.skeleton.names[0] == "spine" and rig.skeleton.height == pytest.approx(3.5)
    assert rig.skeleton.forward == pytest.approx([1, 0, 0])
    bpy.ops.limber.guess_again(what='hips')
    assert settings.hips_used == "hips" and settings.forward_used == 'X'
    bpy.ops.limber.guess_again()
    assert settings.forward_used == '-Y' and settings.height_used == pytest.approx(1.75)


def test_profile_can_be_changed():
    settings = make_armature().limber
    settings.profile_used = 'ALL'
    assert settings.profile == 'ALL' and guesses.seen(settings.id_data).summary.joints == 13
    settings.hips_used = "root"
    assert guesses.seen(settings.id_data).summary.joints == 14


def test_feet_begin_with_the_guess():
    obj = make_armature()
    obj.limber.add_foot = "hand.L"
    assert [foot.name for foot in obj.limber.feet] == ["foot.L", "foot.R", "hand.L"]
    bpy.ops.limber.remove_foot(bone="foot.R")
    assert {obj.limber.feet[0].name, obj.limber.feet[1].name} == {"foot.L", "hand.L"}
    names = read_rig(obj).skeleton.names
    assert {names[foot] for foot in read_rig(obj).skeleton.feet} == {"foot.L", "hand.L"}
    bpy.ops.limber.remove_foot(bone="hand.L")
    with pytest.raises(RuntimeError, match="One foot must stay"):
        bpy.ops.limber.remove_foot(bone="foot.L")
    bpy.ops.limber.guess_again(what='feet')
    assert guesses.seen(obj).summary.feet == ("foot.L", "foot.R")


def test_pairs_begin_with_the_guess_and_can_be_corrected():
    obj = make_armature()
    guessed = guesses.seen(obj).summary.pairs
    assert set(guessed) == {
        (f"{name}.L", f"{name}.R") for name in ("arm", "hand", "thigh", "shin", "foot")
    }
    # A rig whose hands are crossed, and whose thighs are not each other's mirror images.
    bpy.ops.limber.add_pair(left="hand.R", right="arm.L")
    bpy.ops.limber.remove_pair(bone="thigh.R")
    skeleton = read_rig(obj).skeleton
    partner = {name: skeleton.names[other] for name, other in zip(skeleton.names, skeleton.mirror)}
    assert (partner["hand.R"], partner["arm.L"]) == ("arm.L", "hand.R")
    assert (partner["hand.L"], partner["thigh.L"]) == ("hand.L", "thigh.L")
    assert (partner["foot.L"], partner["shin.R"]) == ("foot.R", "shin.L")
    shown = " ".join(draw_all()["LIMBER_PT_rig_pairs"])
    assert "arm.L" in shown and "thigh.L" not in shown
    bpy.ops.limber.guess_again(what='pairs')
    assert guesses.seen(obj).summary.pairs == guessed


def test_pairs_that_cannot_be():
    obj = make_armature()
    for left, right, sentence in (
        ("", "hand.R", "Choose a left and a right bone"),
        ("hand.L", "hand.L", "two different ones"),
        ("hand.L", "tail", "tail is no joint of Human; choose another"),
    ):
        with pytest.raises(RuntimeError, match=sentence):
            bpy.ops.limber.add_pair(left=left, right=right)
    with pytest.raises(RuntimeError, match="spine has no partner"):
        bpy.ops.limber.remove_pair(bone="spine")
    for name in ("arm", "hand", "thigh", "shin"):
        bpy.ops.limber.remove_pair(bone=f"{name}.R")
    with pytest.raises(RuntimeError, match="One pair must stay"):
        bpy.ops.limber.remove_pair(bone="foot.L")
    # A bone that was renamed since is left out.
    obj.data.bones["foot.L"].name = "paw"
    assert read_rig(obj).skeleton.mirror == tuple(range(len(read_rig(obj).skeleton)))


def test_height_is_shown_in_the_units_of_the_scene():
    bpy.context.scene.unit_settings.scale_length = 0.01
    obj = make_armature({"hips": (None, (0, 0, 0), (0, 0, 170))})
    assert obj.limber.height_used == pytest.approx(170)
    assert guesses.seen(obj).summary.height == pytest.approx(1.7)
    obj.limber.height_used = 180
    assert obj.limber.height == pytest.approx(1.8)


def test_up_and_forward_are_the_armatures_own_axes():
    # As FBX files come in: the armature lies on its back and the object is turned upright.
    turned = {"hips": (None, (0, 1, 0), (0, 1.2, 0)), "root": (None, (0, 0, 0), (0, 0, 0.1))}
    for side, x in (("L", 0.1), ("R", -0.1)):
        turned[f"leg.{side}"] = ("hips", (x, 1, 0), (x, 0.1, 0))
        turned[f"foot.{side}"] = (f"leg.{side}", (x, 0.1, 0), (x, 0, 0.2))
    obj = make_armature(turned)
    obj.rotation_euler = (np.pi / 2, 0, 0)
    bpy.context.view_layer.update()
    assert (obj.limber.up_used, obj.limber.forward_used) == ('Y', 'Z')


def test_a_bone_that_is_gone_gives_a_sentence():
    obj = make_armature()
    obj.limber.hips = "pelvis"
    assert "has no bone named pelvis; choose another" in guesses.seen(obj).problem
    assert "pelvis" in " ".join(draw_all()["LIMBER_PT_rig"])
    obj.limber.hips_used = ""
    assert guesses.seen(obj).problem == ""


def test_a_root_that_is_not_above_the_hips_gives_a_sentence():
    obj = make_armature()
    obj.limber.root_used = "hand.L"
    assert "not above hips" in guesses.seen(obj).problem


def test_redrawing_does_not_look_again(looks):
    obj = make_armature(chain_bones(700))
    for _ in range(3):
        draw_all()
    assert looks == [obj.name]


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: setattr(obj.data.bones["arm.L"], "name", "arm.X"),
        lambda obj: setattr(obj.data.bones["head"], "use_deform", False),
        lambda obj: obj.pose.bones["head"].constraints.new('COPY_ROTATION'),
        lambda obj: setattr(obj, "scale", (2, 2, 2)),
        lambda obj: setattr(obj, "rotation_euler", (3, 0, 0)),
        lambda obj: setattr(obj.limber, "hips", "spine"),
        lambda obj: bpy.ops.limber.remove_pair(bone="hand.L"),
        lambda obj: setattr(bpy.context.scene.unit_settings, "scale_length", 0.1),
    ],
)
def test_what_matters_is_seen(looks, change):
    obj = make_armature()
    draw_all()
    change(obj)
    bpy.context.view_layer.update()
    draw_all()
    assert len(looks) == 2


def test_edited_bones_are_seen(looks):
    obj = make_armature()
    before = guesses.seen(obj).summary.height
    bpy.ops.object.mode_set(mode='EDIT')
    obj.data.edit_bones["head"].tail.z += 1
    bpy.ops.object.mode_set(mode='OBJECT')
    assert guesses.seen(obj).summary.height == pytest.approx(before + 1)


def test_an_object_that_moves_does_not_make_it_look_again(looks):
    obj = make_armature()
    for frame in range(5):
        obj.location.x, obj.rotation_euler.z = frame, 0.3 * frame
        bpy.context.view_layer.update()
        draw_all()
    assert len(looks) == 1
