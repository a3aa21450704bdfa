"""Defines Confluent's modes, which say what clients may change in a subject or in all subjects."""

from __future__ import annotations

from enum import Enum


class Mode(Enum):
    """A subject's mode, or the mode of all subjects that have no mode of their own."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """If this mode is set for all subjects (as the global mode), every subject is READONLY,
    whatever its own mode is."""
    IMPORT = "IMPORT"
    """In this mode, clients import schemas from another registry, with the ids and version numbers
    that the schemas have there."""
    FORWARD = "FORWARD"
    """Has the same rules as IMPORT. Operators use this mode for a registry into which another
    registry continuously copies its schemas."""

    @property
    def is_read_only(self) -> bool:
        """Returns whether the registry refuses all changes except changes of modes."""
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def takes_ids(self) -> bool:
        """Returns whether a client chooses the id of a schema that it registers."""
        return self in (Mode.IMPORT, Mode.FORWARD)
