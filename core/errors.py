"""Errors that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. The message says what is wrong, where, and how to mend it; the CLI prints it without a traceback."""
