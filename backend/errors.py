"""The one exception that a user can cause."""

from __future__ import annotations


class UserError(Exception):
    """Something that the user can put right; its text is one sentence that says how.

    Panels, the command line and job folders show the sentence as it is. Every other exception is a
    bug of ours and keeps its traceback in the log.
    """
