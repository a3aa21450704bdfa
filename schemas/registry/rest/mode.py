"""Answers the routes of /mode, which read and change the global mode and the mode of one subject.
A mode says what clients may change."""

from __future__ import annotations

from typing import Any

from skidway.schemas.registry.answering import Registry
from skidway.schemas.registry.decisions import configuration
from skidway.schemas.registry.refusals import not_permitted
from skidway.schemas.registry.rest.call import Call
from skidway.schemas.registry.state import RegistryState


def mode(registry: Registry, call: Call) -> Any:
    """Answers GET /mode and GET /mode/{subject}."""
    subject = call.subject_or_all

    def question(state: RegistryState) -> Any:
        if subject is None or call.flag("defaultToGlobal"):
            return state.mode(subject)
        return configuration.mode_set_for(state, subject)

    return {"mode": registry.read(question).value}


def set_mode(registry: Registry, call: Call) -> Any:
    """Answers PUT /mode and PUT /mode/{subject}."""
    force = call.flag("force")
    return registry.write(
        lambda state: configuration.set_mode(state, call.subject_or_all, call.body, force=force)
    )


def reset_mode(registry: Registry, call: Call) -> Any:
    """Answers DELETE /mode and DELETE /mode/{subject}."""
    recursive = call.flag("recursive")
    return registry.write(
        lambda state: configuration.reset_mode(state, call.subject_or_all, recursive=recursive)
    )


def fixed(_registry: Registry, _call: Call) -> Any:
    """Answers PUT and DELETE of /mode and /mode/{subject} with a refusal, if the setting
    mode.mutability is false."""
    raise not_permitted("Mode changes are not allowed")
