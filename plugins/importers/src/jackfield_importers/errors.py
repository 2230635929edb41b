"""The error that every step of an import raises for a source it cannot use."""

from __future__ import annotations


class SourceError(Exception):
    """A source cannot be imported; the message is one sentence that says why, and how to fix it."""
