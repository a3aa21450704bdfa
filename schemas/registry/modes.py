"""What may be changed in a subject, or in all: Confluent's modes."""

from __future__ import annotations

from enum import Enum


class Mode(Enum):
    """A subject's mode, or the mode of all subjects without their own."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    """READONLY for every subject, whatever its own mode; has this meaning only when set for all."""
    IMPORT = "IMPORT"
    """Schemas come with their ids and versions, from another registry."""
    FORWARD = "FORWARD"
    """IMPORT for a registry that another one keeps feeding; the same rules here."""

    @property
    def is_read_only(self) -> bool:
        """Whether nothing changes."""
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def takes_ids(self) -> bool:
        """Whether schemas bring their ids."""
        return self in (Mode.IMPORT, Mode.FORWARD)
