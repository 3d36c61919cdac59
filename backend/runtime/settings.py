"""Settings that come from outside: plain values that become a dataclass, or a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Kind = TypeVar("Kind", bound=DataclassInstance)
else:
    Kind = TypeVar("Kind")


def settings_of(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    """The dataclass with these values for its fields; a `UserError` where they do not fit.

    Fields whose default is a number must be given one.
    """
    try:
        found = kind(**values)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    for each in fields(found):
        if each.default is MISSING or not _is_number(each.default):
            continue
        value = getattr(found, each.name)
        if not _is_number(value):
            raise UserError(f"The setting {each.name!r} is {value!r}; give a number instead.")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
