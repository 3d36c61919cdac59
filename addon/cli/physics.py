"""`make-physical`, `learn-skill`, `learn-graph`, `simulate` and `export-body`."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import bpy
from bpy.types import NodeTree, Object, PropertyGroup

from ...backend.errors import UserError
from .. import jobs, settings, work
from ..model_list import copy_result
from ..ops.jobs import see_through
from ..physics import bodies, graphs, learning, models, physical, simulating
from ..rig import read_rig
from ..vae.walking import report
from .common import (
    FINE,
    add_character,
    add_file,
    add_force,
    add_target,
    amount,
    character,
    chosen_sources,
    finish,
    keep_existing,
    number,
    read_clips,
    save_file,
    say,
    show,
    target_file,
)

PUSH = 0.1
"""Seconds of a push."""


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Tells the parser of these commands."""
    _add_make_physical(
        commands.add_parser("make-physical", help="make Actions that obey physics of others")
    )
    _add_learn_skill(commands.add_parser("learn-skill", help="learn to keep doing a cyclic Action"))
    _add_learn_graph(commands.add_parser("learn-graph", help="learn all of a control graph"))
    _add_simulate(commands.add_parser("simulate", help="bake a simulation of what was learned"))
    _add_export_body(
        commands.add_parser("export-body", help="write a character's body as MJCF or URDF")
    )


def _make_physical(options: argparse.Namespace) -> int:
    python = settings.backend_python()
    obj = character(options)
    target = target_file(options)
    read = read_clips(obj, chosen_sources(obj, options))
    asked = _untouched(bpy.context.scene.limber.physical)
    asked.root_motion, asked.engine = options.root_motion.upper(), options.engine.upper()
    asked.ray_address = options.ray_address
    _choose(asked, options, "samples", "passes", "rounds", "spread")
    labels = [clip.label for clip in read]
    label = f"{physical.named(labels)} for {obj.name}"
    with _corrected(obj, options):
        told = work.run(physical.asking(obj, read_rig(obj), asked))
    root = settings.jobs_folder()
    folder = jobs.create(root, physical.KIND, told, read, label=label, seed=options.seed)
    say(f"Job {folder.name}")
    jobs.start(folder, python)
    see_through(folder, say)
    made = work.run(physical.baking(obj, folder, asked))
    save_file(target)
    rows = [
        {
            "clip": each.label,
            "action": each.action.name if each.action is not None else None,
            "deviation_cm": each.deviation,
            "worst_cm": each.worst,
            "fell": each.fell,
            "note": each.note,
        }
        for each in made
    ]
    show({"file": str(target), "clips": rows}, options.json, [each.sentence for each in made])
    return FINE


def _untouched(panel: PropertyGroup) -> SimpleNamespace:
    """A panel's settings as they are at first, to be changed without changing those of the file."""
    empty = {'COLLECTION': list, 'POINTER': lambda: None}
    return SimpleNamespace(
        **{
            each.identifier: empty[each.type]() if each.type in empty else each.default
            for each in panel.bl_rna.properties
        }
    )


def _choose(asked: SimpleNamespace, options: argparse.Namespace, *names: str) -> None:
    """Takes over the options that were given."""
    for name in names:
        if getattr(options, name) is not None:
            setattr(asked, name, getattr(options, name))


def _learn_skill(options: argparse.Namespace) -> int:
    python = settings.backend_python()
    keep_existing(options.out, options.force)
    obj = character(options)
    sources = chosen_sources(obj, options)
    if len(sources) != 1:
        raise UserError("One skill is learned at a time; name its Action with --action.")
    read = [replace(clip, loop=True) for clip in read_clips(obj, sources)]
    _correct(obj, options)
    chosen = _learning(bpy.context.scene.limber.skill_learning, options)
    chosen.symmetric = not options.uneven
    rig = read_rig(obj)
    asked = work.run(learning.asking_skill(obj, rig, chosen, _earlier(options)))
    label = f"{read[0].label} for {obj.name}"
    folder = jobs.create(
        settings.jobs_folder(),
        learning.KIND,
        asked | {"clip": read[0].label},
        read + work.run(bodies.reading_others(obj, rig, read)),
        label=label,
        seed=options.seed,
    )
    return _learn(folder, python, options)


def _learn_graph(options: argparse.Namespace) -> int:
    python = settings.backend_python()
    keep_existing(options.out, options.force)
    obj = character(options)
    tree = _tree(obj, options)
    _correct(obj, options)
    chosen = _learning(bpy.context.scene.limber.graph_learning, options)
    say("Reading clips")
    earlier = _earlier(options)
    folder = work.run(learning.preparing_graph(tree, obj, chosen, earlier, options.seed))
    return _learn(folder, python, options)


def _tree(obj: Object, options: argparse.Namespace) -> NodeTree:
    """The graph that was named, else the character's own."""
    if options.graph is None:
        return graphs.require_graph(obj)
    found = {tree.name: tree for tree in graphs.trees()}
    if options.graph not in found:
        names = ", ".join(found) or "none"
        raise UserError(f"There is no control graph {options.graph!r} in the file; it has {names}.")
    return found[options.graph]


def _earlier(options: argparse.Namespace) -> list[Path]:
    return [path.absolute() for path in options.earlier or ()]


def _learning(panel: PropertyGroup, options: argparse.Namespace) -> SimpleNamespace:
    """How to learn, as a panel has it."""
    chosen = _untouched(panel)
    chosen.ray_address, chosen.engine = options.ray_address, options.engine.upper()
    _choose(chosen, options, "updates", "iterations", "enough")
    return chosen


def _learn(folder: Path, python: Path, options: argparse.Namespace) -> int:
    """Sees a job that learns through, and keeps a copy of what it has learned."""
    say(f"Job {folder.name}")
    jobs.start(folder, python)
    see_through(folder, say)
    copy_result(folder, options.out)
    show({"graph": str(options.out), **report(folder)}, options.json, [str(options.out)])
    return FINE


def _simulate(options: argparse.Namespace) -> int:
    settings.backend_python()
    obj = character(options)
    target = target_file(options)
    asked = _untouched(bpy.context.scene.limber.simulation)
    asked.frames, asked.frame_start = options.frames, options.start
    asked.controller, asked.name = options.controller, options.name
    asked.seed, asked.engine = options.seed, options.engine.upper()
    asked.root_motion = options.root_motion.upper()
    if options.want:
        wander = options.want == simulating.WANDER
        asked.then, asked.want = 'WANDER' if wander else 'CONTROLLER', options.want
    _steer(asked, options)
    for frame, *force in options.push or ():
        push = SimpleNamespace(character=obj, frame=round(frame), force=force, seconds=PUSH)
        asked.pushes.append(push)
    asked.throws += [_throw(*told) for told in options.throw or ()]
    with _with_graph(obj, options.graph):
        found = [obj, *_others(obj)] if options.every else [obj]
        made = work.run(simulating.making(found, asked, asked))
    save_file(target)
    rows = []
    for action in made.actions:
        first, last = (round(frame) for frame in action.frame_range)
        rows.append({"action": action.name, "start": first, "end": last})
    lines = [f"{row['action']}: frames {row['start']} to {row['end']}" for row in rows]
    data = {"file": str(target), "actions": rows, "sentence": made.sentence}
    show(data, options.json, [*lines, *filter(None, [made.sentence])])
    return FINE


def _others(obj: Object) -> list[Object]:
    """All other characters that have learned something."""
    rigs = (each for each in bpy.context.view_layer.objects if each.type == 'ARMATURE')
    return [each for each in rigs if each != obj and models.active(each) is not None]


@contextlib.contextmanager
def _with_graph(obj: Object, path: Path | None) -> Iterator[None]:
    """Has a character use the learned graph in a file for a while."""
    if path is None:
        yield
        return
    models.check(path.absolute(), read_rig(obj).skeleton)
    body = obj.limber.body
    before, count = body.learned_index, len(body.learned)
    models.add_file(obj, path.absolute())
    try:
        yield
    finally:
        if len(body.learned) > count:
            models.remove(obj, count)
        body.learned_index = before


def _throw(frame: str, name: str, speed: str) -> SimpleNamespace:
    """A ball as the Balls panel has them."""
    try:
        when, fast = round(number(frame)), number(speed)
    except ValueError as error:
        raise UserError(
            "Give balls as a frame, an object and metres per second, such as --throw 30 Empty 8."
        ) from error
    source = _object(name, "object")
    return SimpleNamespace(source=source, frame=when, speed=fast, radius=0.15, mass=3.0)


def _object(name: str, what: str) -> Object:
    """An object of the scene."""
    found = bpy.context.scene.objects.get(name)
    if found is None or (what == "Curve" and found.type != 'CURVE'):
        raise UserError(f"There is no {what} named {name!r} in the scene; check its name.")
    return found


def _steer(asked: SimpleNamespace, options: argparse.Namespace) -> None:
    """Says where characters are to go."""
    if options.target is not None:
        asked.target, asked.goal = _object(options.target, "object"), 'TARGET'
    if options.path is not None:
        asked.path, asked.goal = _object(options.path, "Curve"), 'PATH'
    if options.heading is not None:
        asked.heading, asked.goal = math.radians(options.heading), 'HEADING'
    if options.each_other:
        asked.goal = 'OTHERS'


def _export_body(options: argparse.Namespace) -> int:
    settings.backend_python()
    bodies.format_of(options.out)
    keep_existing(options.out, options.force)
    obj = character(options)
    if not options.listed:
        obj.limber.body.use_clips = False
    _correct(obj, options)
    path = work.run(bodies.exporting(obj, options.out.absolute()))
    show({"body": str(path)}, options.json, [str(path)])
    return FINE


def _correct(obj: Object, options: argparse.Namespace) -> None:
    """Says of the body what the Body panel would; the file is not saved."""
    body = obj.limber.body
    if options.mass is not None:
        body.mass = options.mass
    if options.strength is not None:
        body.strength = options.strength
    if options.strong:
        body.strong = True


@contextlib.contextmanager
def _corrected(obj: Object, options: argparse.Namespace) -> Iterator[None]:
    """The same for a while, where the file is saved afterwards."""
    body = obj.limber.body
    before = body.mass, body.strength, body.strong
    _correct(obj, options)
    try:
        yield
    finally:
        body.mass, body.strength, body.strong = before


def _add_make_physical(command: argparse.ArgumentParser) -> None:
    add_character(command)
    _add_body(command)
    _add_engine(command)
    command.add_argument("--ray-address", default="", metavar="ADDRESS", help="of a Ray cluster")
    command.add_argument("--samples", type=int, metavar="N", help="more for hard motion")
    command.add_argument("--passes", type=int, metavar="N", help="how often to try at each pace")
    command.add_argument("--spread", type=amount, metavar="RAD", help="how far joints may be moved")
    command.add_argument("--rounds", type=int, metavar="N", help="how often to go through loops")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="try other corrections")
    _add_root_motion(command)
    add_target(command)
    finish(command, _make_physical)


def _add_learn_skill(command: argparse.ArgumentParser) -> None:
    add_character(command)
    command.add_argument("--uneven", action="store_true", help="both steps are not alike")
    _add_learning(command)
    finish(command, _learn_skill)


def _add_learn_graph(command: argparse.ArgumentParser) -> None:
    add_file(command, "teach")
    command.add_argument(
        "--graph", metavar="NAME", help="control graph of the file, the armature's own if left out"
    )
    _add_learning(command)
    finish(command, _learn_graph)


def _add_learning(command: argparse.ArgumentParser) -> None:
    """What learning skills and graphs takes."""
    _add_body(command)
    command.add_argument(
        "--earlier",
        type=Path,
        action="append",
        metavar="FILE",
        help="learned graph to begin with; can be repeated",
    )
    _add_engine(command)
    command.add_argument("--updates", type=int, metavar="N", help="how long to practise")
    command.add_argument("--iterations", type=int, metavar="N", help="of learning from samples")
    command.add_argument("--enough", type=number, metavar="N", help="newtons to survive")
    command.add_argument("--ray-address", default="", metavar="ADDRESS", help="of a Ray cluster")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="another try")
    command.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".limber file to write"
    )
    add_force(command)


def _add_simulate(command: argparse.ArgumentParser) -> None:
    add_file(command, "simulate")
    command.add_argument(
        "--graph", type=Path, metavar="FILE", help="learned graph instead of the active one"
    )
    command.add_argument("--controller", default="", metavar="NAME", help="to begin with")
    command.add_argument(
        "--want", default="", metavar="NAME", help="to get to and repeat; '*' to wander about"
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="wander otherwise")
    goal = command.add_mutually_exclusive_group()
    goal.add_argument("--heading", type=number, metavar="DEGREES", help="direction, 0 along X")
    goal.add_argument("--target", metavar="NAME", help="object to go to")
    goal.add_argument("--path", metavar="NAME", help="Curve to follow")
    goal.add_argument(
        "--each-other", action="store_true", help="each goes to the nearest of the others"
    )
    command.add_argument(
        "--every", action="store_true", help="all armatures with learned graphs, together"
    )
    _add_engine(command)
    command.add_argument("--frames", type=int, default=250, metavar="N", help="length")
    command.add_argument("--start", type=int, default=1, metavar="N", help="first frame")
    command.add_argument(
        "--push",
        nargs=4,
        type=number,
        action="append",
        metavar=("FRAME", "X", "Y", "Z"),
        help="force on the trunk, in newtons; can be repeated",
    )
    command.add_argument(
        "--throw",
        nargs=3,
        action="append",
        metavar=("FRAME", "OBJECT", "SPEED"),
        help="ball along the object's Z axis, in metres per second; can be repeated",
    )
    _add_root_motion(command)
    command.add_argument("--name", default="", help="name of the Action")
    add_target(command)
    finish(command, _simulate)


def _add_export_body(command: argparse.ArgumentParser) -> None:
    add_file(command, "export")
    command.add_argument(
        "--listed", action="store_true", help="take joints from what is ticked in its clip list"
    )
    _add_body(command)
    command.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".xml or .urdf file to write"
    )
    add_force(command)
    finish(command, _export_body)


def _add_engine(command: argparse.ArgumentParser) -> None:
    command.add_argument("--engine", choices=("mujoco", "bullet"), default="mujoco")


def _add_root_motion(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--root-motion",
        choices=("hips", "root", "object", "in_place"),
        default="hips",
        help="what carries the character",
    )


def _add_body(command: argparse.ArgumentParser) -> None:
    command.add_argument("--mass", type=amount, metavar="KG", help="mass of the body")
    command.add_argument("--strength", type=amount, metavar="X", help="factor of all torques")
    command.add_argument("--strong", action="store_true", help="stiffer waist and legs")
