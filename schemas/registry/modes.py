"""Confluent's modes, which say what may be changed in a subject or in all subjects."""

from __future__ import annotations

from enum import Enum


class Mode(Enum):
    """A subject's mode, or the mode of all subjects that have no mode of their own."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """READONLY for every subject, whatever the subject's own mode is. The mode overrides the
    subjects' own modes only when it is set for all subjects."""
    IMPORT = "IMPORT"
    """Clients import schemas from another registry, with their ids and versions."""
    FORWARD = "FORWARD"
    """Like IMPORT, with the same rules, but for a registry that another registry feeds
    continuously."""

    @property
    def is_read_only(self) -> bool:
        """Whether all changes are refused."""
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def takes_ids(self) -> bool:
        """Whether the client chooses the id of a schema that it registers."""
        return self in (Mode.IMPORT, Mode.FORWARD)
