"""Settings of jobs and requests: plain values from elsewhere, that must be of the right kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from ..errors import UserError

Told = TypeVar("Told")


def from_told(kind: type[Told], values: Mapping[str, Any]) -> Told:
    """A dataclass of plain values; a `UserError` for one that is unknown, missing or of another
    kind."""
    try:
        return exact(kind, values)
    except (TypeError, ValueError) as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error


def exact(kind: type[Told], values: Mapping[str, Any]) -> Told:
    """The same; what does not fit gives a `TypeError` or a `ValueError`."""
    made = kind(**values)
    for each in fields(made):  # type: ignore[arg-type]
        value, wanted = getattr(made, each.name), _WANTED.get(str(each.type).partition("[")[0])
        if wanted is not None and (not isinstance(value, wanted) or _odd(value, wanted)):
            raise TypeError(f"{each.name} is {value!r}")
    return made


_WANTED: dict[str, tuple[type, ...]] = {
    "float": (float, int),
    "int": (int,),
    "bool": (bool,),
    "str": (str,),
    "list": (list,),
    "dict": (dict,),
}
"""What may stand for the plain kinds of fields."""


def _odd(value: Any, wanted: tuple[type, ...]) -> bool:
    """Whether a number is a yes or no, which Python takes for one."""
    return isinstance(value, bool) and bool not in wanted
