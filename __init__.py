"""Limber: learns how a character moves from a few of its Actions, then poses and steers it."""

from . import addon


def register() -> None:
    addon.register()


def unregister() -> None:
    addon.unregister()
