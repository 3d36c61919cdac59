"""Functions by name, so that tables can list work whose packages are slow to import."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

_BACKEND = __package__.rpartition(".")[0]


@cache
def resolve(path: str) -> Callable[..., Any]:
    """The function at "module:name"; a module that begins with a dot is one of the backend's."""
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module, _BACKEND), name)
    return function
