"""100 L-BFGS iterations of GPy's GPLVM on the features in a file.

Runs in a Python that has GPy and numpy; the arguments are the files to read and to write.
"""

from __future__ import annotations

import sys
import time

import GPy
import numpy as np


def fit(source: str, target: str) -> None:
    data = np.load(source)
    np.random.seed(0)
    model = GPy.models.GPLVM(
        data["y"], int(data["latents"]), kernel=GPy.kern.RBF(int(data["latents"]))
    )
    began = time.process_time()
    model.optimize("lbfgs", max_iters=100, messages=False)
    seconds = time.process_time() - began
    np.savez(
        target,
        seconds=seconds,
        x=np.asarray(model.X),
        variance=float(model.kern.variance[0]),
        lengthscale=float(model.kern.lengthscale[0]),
        noise=float(model.likelihood.variance[0]),
    )


fit(*sys.argv[1:])
