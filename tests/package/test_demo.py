"""`make demo` runs to its end and leaves a file that newer Blenders open, and a picture."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def run(blender: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(PROJECT / ".venv" / "blender" / blender)},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_demo_leaves_a_file_and_a_picture(tmp_path):
    said = run("4.2", str(PROJECT / "tools" / "demo.py"), "--out", str(tmp_path))
    assert "15 clips" in said
    header = (tmp_path / "demo.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert struct.unpack(">II", header[16:]) == (6 * 240 + 5 * 2, 2 * 264 + 2)
    question = (
        "import bpy, os, sys;"
        f"bpy.ops.wm.open_mainfile(filepath={str(tmp_path / 'demo.blend')!r});"
        "print(bpy.data.objects['Human'].animation_data.action.name);"
        "sys.stdout.flush(); os._exit(0)"
    )
    assert run("5.0", "-c", question).splitlines()[-1] == "Spin Kick Mirrored"
