"""The one exception of extraction: why a release could not be observed, in a user's words."""

from __future__ import annotations


class ExtractionError(Exception):
    """A release could not be observed; the message says why and what can be done."""
