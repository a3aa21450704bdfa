"""Defines the class of all decisions, and the checks of a subject that several decisions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from skidway.schemas.registry.changes import Change
from skidway.schemas.registry.refusals import invalid_subject, not_permitted
from skidway.schemas.registry.state import RegistryState

SUBJECT_CHARACTERS_MAX: Final = 1000
_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})
_OTHER_CONTEXT: Final = ":."
"""The name of a subject in another context begins with these characters. This registry has only one
context."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a request, and the change that must be in the log before the client gets the
    answer. The change is None if nothing has to change."""

    answer: Any
    change: Change | None


def check_subject(subject: str) -> None:
    """Raises a refusal if `subject` is not a valid name of a subject."""
    good = 0 < len(subject) <= SUBJECT_CHARACTERS_MAX and subject.isprintable()
    if not good or subject in _RESERVED or subject.startswith(_OTHER_CONTEXT):
        raise invalid_subject(subject)


def check_writable(state: RegistryState, subject: str | None) -> None:
    """Raises a refusal if the subject's mode is read-only. If `subject` is None, checks the global
    mode."""
    if state.mode(subject).is_read_only:
        which = "The registry" if subject is None else f"Subject {subject}"
        raise not_permitted(f"{which} is in read-only mode")
