"""What an animator does with Limber, from end to end, without a window.

    python tools/demo.py [--out build/demo]

It runs on Blender as a module: installs the extension as a user would, opens the human, reads its
Actions as clips, has the backend analyse them, bakes the spin kick mirrored, and leaves the .blend
and a picture of the new motion.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

RESOURCES = tempfile.mkdtemp(prefix="limber-demo-")
os.environ["BLENDER_USER_RESOURCES"] = RESOURCES

import bpy  # noqa: E402
import contact_sheet  # noqa: E402
import package  # noqa: E402

PROJECT = Path(__file__).parents[1]
NAME = "bl_ext.user_default.limber"
ACTION = "Spin Kick"


def demonstrate(out: Path) -> None:
    """All steps, each with a line that tells what came of it."""
    with step("Install the extension"), hushed():
        install()
    clips, clip_list, jobs, bake = map(part, ("clips", "clip_list", "jobs", "bake"))
    with step("Check the backend"):
        bpy.context.preferences.addons[NAME].preferences.python_path = sys.executable
        bpy.ops.limber.check_backend()
    rig = open_human()
    with step("Read its Actions as clips"):
        for action in clips.suitable_actions(rig):
            clip_list.add(rig, action)
        found = clip_list.read(rig)
    with step("Analyse them in the backend"):
        job = jobs.create(out / "jobs", "analyse", clips=found, label="Demo")
        jobs.start(job, Path(sys.executable))
        status = jobs.wait(job, lambda status: print(f"  {status.progress or status.state}"))
    if status.state != "done":
        sys.exit(status.sentence)
    print((job / "report.txt").read_text("utf-8"))
    with step(f"Bake {ACTION} mirrored"):
        (clip,) = (clip for clip in found if clip.label == ACTION)
        mirrored = import_module(f"{NAME}.backend.motion.mirroring").mirror_clip(clip)
        action = bake.bake_clip(rig, mirrored, bake.BakeSettings(name=f"{ACTION} Mirrored"))
    with step("Render it"), hushed():
        contact_sheet.render_sheet(rig, action, out / "demo.png")
    bpy.ops.wm.save_as_mainfile(filepath=str(out / "demo.blend"), check_existing=False)
    bpy.ops.preferences.addon_disable(module=NAME)
    print(f"\nOpen {out / 'demo.blend'} and look at {out / 'demo.png'}.")


def part(name: str) -> ModuleType:
    """A module of the installed add-on."""
    return import_module(f"{NAME}.addon.{name}")


def install() -> None:
    """As a user does: build the package, install it from the file, enable it."""
    blender = Path(bpy.utils.resource_path('LOCAL')).parents[1]
    bpy.ops.extensions.package_install_files(
        filepath=str(package.build(blender, Path(RESOURCES))),
        repo='user_default',
        enable_on_install=True,
    )


def open_human() -> bpy.types.Object:
    """The sample character."""
    bpy.ops.wm.open_mainfile(filepath=str(PROJECT / "sample_rigs" / "human.blend"))
    return bpy.data.objects["Human"]


@contextmanager
def step(title: str) -> Iterator[None]:
    """Says what is being done, and how long it took."""
    print(f"{title} …", flush=True)
    began = time.perf_counter()
    yield
    print(f"{title}: {time.perf_counter() - began:.1f} s\n", flush=True)


@contextmanager
def hushed() -> Iterator[None]:
    """Keeps Blender's own chatter out of the terminal; an exception is still told in full."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        sys.stdout.flush()
        for number, old in enumerate(kept, start=1):
            os.dup2(old, number)
        for old in (*kept, nowhere):
            os.close(old)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run Limber from end to end on the human.")
    parser.add_argument("--out", type=Path, default=PROJECT / "build" / "demo", help="the folder")
    out = parser.parse_args().out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    demonstrate(out)


if __name__ == "__main__":
    code = 1
    try:
        main()
        code = 0
    finally:
        shutil.rmtree(RESOURCES, ignore_errors=True)
        sys.stdout.flush()
        if code == 0:
            os._exit(0)  # Blender as a module can crash while it shuts down
