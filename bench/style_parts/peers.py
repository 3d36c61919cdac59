"""Peers that run in a Python of their own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).resolve().parents[2]
PEERS = PROJECT / ".venv" / "peers" / "bin" / "python"
BPY = PROJECT / ".venv" / "blender" / "5.0"


def peer(python: Path, script: str, arrays: dict[str, Any], path: Path | None = None) -> Any:
    """What a script beside this file makes of arrays; None where its Python is not there."""
    if not python.exists() or (path is not None and not path.exists()):
        return None
    variables = dict(os.environ)
    if path is not None:
        variables["PYTHONPATH"] = str(path)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **arrays)
        command = [str(python), str(Path(__file__).with_name(script)), str(source), str(target)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if not target.exists():
            print(f"{script} failed: {done.stderr[-500:]}")
            return None
        return dict(np.load(target))
