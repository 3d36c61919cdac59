"""`python -m backend`: all that the backend does, without Blender."""

import os
import sys

# Limber's matrices are small: BLAS threads that wait for one another make them ten times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from .runtime.cli import main

if __name__ == "__main__":
    sys.exit(main())
