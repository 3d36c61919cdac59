"""`python -m backend`: all that the backend does, without Blender."""

import sys

from .runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
