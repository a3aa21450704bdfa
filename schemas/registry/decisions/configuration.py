"""Makes decisions about compatibility levels and modes. If `subject` is None, the functions read or
change the global level or mode, which applies to all subjects without a level or mode of their
own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from skidway.schemas.compatibility import Level
from skidway.schemas.registry.changes import LevelSet, ModeSet
from skidway.schemas.registry.decisions.decision import Decision, check_subject, check_writable
from skidway.schemas.registry.modes import Mode
from skidway.schemas.registry.refusals import (
    config_not_found,
    invalid_level,
    invalid_mode,
    mode_not_found,
    not_permitted,
    subject_not_found,
)
from skidway.schemas.registry.state import RegistryState

_NOT_HERE: Final = (
    "alias",
    "normalize",
    "validateFields",
    "compatibilityGroup",
    "compatibilityPolicy",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)
"""Further keys that Confluent's registry accepts in a request that sets a compatibility level. Our
registry refuses these keys, so that no client believes that they have an effect."""


def level_set_for(state: RegistryState, subject: str) -> Level:
    """Returns the subject's own compatibility level. Raises `NotFound` if the subject has none."""
    if subject not in state.levels:
        raise config_not_found(subject)
    return state.levels[subject]


def set_level(state: RegistryState, subject: str | None, body: Mapping[str, Any]) -> Decision:
    """Returns the decision to set a compatibility level. The answer for the client contains this
    level.

    As in Confluent's registry, a request body without `compatibility` changes nothing, and the
    answer contains the level that is set already. If `compatibility` is null, the level is removed,
    so that the global level or the program's default applies, and the answer is {}.
    """
    for key in _NOT_HERE:
        if body.get(key):
            raise not_permitted(f"This registry has no configuration '{key}'")
    before = state.levels.get(subject)
    level = _level(body["compatibility"]) if "compatibility" in body else before
    if subject is not None:
        check_subject(subject)
    check_writable(state, subject)
    answer = {} if level is None else {"compatibility": level.value}
    return Decision(answer, None if level is before else LevelSet(subject, level))


def reset_level(state: RegistryState, subject: str | None) -> Decision:
    """Returns the decision to remove the compatibility level of a subject, or the global level if
    `subject` is None. The global level or the program's default then applies. The answer for the
    client is the level that was set before; if there was no global level to remove, it is the
    program's default."""
    check_writable(state, subject)
    before = state.levels.get(subject)
    if before is None and subject is not None:
        raise subject_not_found(subject)
    answer = {"compatibilityLevel": (before or state.default_level).value}
    return Decision(answer, None if before is None else LevelSet(subject, None))


def mode_set_for(state: RegistryState, subject: str) -> Mode:
    """Returns the subject's own mode, or READONLY_OVERRIDE if this mode is set for all subjects.
    Raises `NotFound` if neither of the two is set."""
    if state.mode(None) is Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    if subject not in state.modes:
        raise mode_not_found(subject)
    return state.modes[subject]


def set_mode(
    state: RegistryState, subject: str | None, body: Mapping[str, Any], *, force: bool
) -> Decision:
    """Returns the decision to set a mode. The answer for the client contains this mode.

    Without `force`, the modes IMPORT and FORWARD are allowed only in two cases. Either one of these
    two modes applies already, or every version of the subject is deleted (if `subject` is None,
    every version of every subject). The reason is that imported schemas keep their ids, and the
    schema of a live version could already have one of these ids.
    """
    asked = body.get("mode")
    try:
        mode = Mode(str(asked).upper())
    except ValueError:
        raise invalid_mode(asked) from None
    if subject is not None:
        check_subject(subject)
    if mode.takes_ids and not state.mode(subject).takes_ids and not force:
        live = state.subject_names() if subject is None else state.live(subject)
        if live:
            raise not_permitted("Cannot import since found existing subjects")
    done = state.modes.get(subject) is mode
    return Decision({"mode": mode.value}, None if done else ModeSet(subject, mode))


def reset_mode(state: RegistryState, subject: str | None, *, recursive: bool) -> Decision:
    """Returns the decision to remove the mode of a subject, or the global mode if `subject` is
    None. The global mode or READWRITE then applies. The answer for the client is the mode that was
    set before; if there was no global mode to remove, it is READWRITE.

    If `recursive` is true and `subject` is None, also removes the subjects' own modes.
    """
    everything = recursive and subject is None
    before = state.modes.get(subject)
    if before is None and subject is not None:
        raise subject_not_found(subject)
    nothing = before is None and not (everything and state.modes)
    answer = {"mode": (before or Mode.READWRITE).value}
    return Decision(answer, None if nothing else ModeSet(subject, None, everything))


def _level(asked: object) -> Level | None:
    if asked is None:
        return None
    try:
        return Level(str(asked).upper())
    except ValueError:
        raise invalid_level(asked) from None
