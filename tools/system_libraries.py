"""Sees to the system libraries that Blender as a module loads and pip cannot bring, on Linux.

    python tools/system_libraries.py

As root on a system with apt, what is missing is installed; anyone else is told what to install.
Where all is there, nothing happens.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

LIBRARIES = {
    "libX11.so.6": "libx11-6",
    "libXext.so.6": "libxext6",
    "libXi.so.6": "libxi6",
    "libXfixes.so.3": "libxfixes3",
    "libXrender.so.1": "libxrender1",
    "libXxf86vm.so.1": "libxxf86vm1",
    "libSM.so.6": "libsm6",
    "libICE.so.6": "libice6",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libgomp.so.1": "libgomp1",
}
"""Debian's package for each library."""
DRIVERS = ("libEGL_mesa.so.0", "libEGL_nvidia.so.0")
"""Any of these renders without a display."""
SOFTWARE_DRIVER = ("libegl-mesa0", "libgl1-mesa-dri")


def lacking() -> list[str]:
    """Debian's packages for what cannot be loaded here."""
    if not sys.platform.startswith("linux"):
        return []
    found = [package for library, package in LIBRARIES.items() if not _loads(library)]
    if not any(map(_loads, DRIVERS)):
        found += SOFTWARE_DRIVER
    return found


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def main() -> None:
    packages = lacking()
    if not packages:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit(f"Blender needs system libraries that are missing; run: sudo {' '.join(command)}")
    print(f"Installing the system libraries that Blender needs: {', '.join(packages)}", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=quiet, check=True)
    subprocess.run([*command, "-qq"], env=quiet, check=True)


if __name__ == "__main__":
    main()
