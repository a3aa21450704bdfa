"""Answers the routes of /config, which read and change the global compatibility level and the
level of one subject."""

from __future__ import annotations

from typing import Any

from skidway.schemas.registry.answering import Registry
from skidway.schemas.registry.decisions import configuration
from skidway.schemas.registry.rest.call import Call
from skidway.schemas.registry.state import RegistryState


def level(registry: Registry, call: Call) -> Any:
    """Answers GET /config and GET /config/{subject}."""
    subject = call.subject_or_all

    def question(state: RegistryState) -> Any:
        if subject is None or call.flag("defaultToGlobal"):
            return state.level(subject)
        return configuration.level_set_for(state, subject)

    return {"compatibilityLevel": registry.read(question).value}


def set_level(registry: Registry, call: Call) -> Any:
    """Answers PUT /config and PUT /config/{subject}."""
    return registry.write(
        lambda state: configuration.set_level(state, call.subject_or_all, call.body)
    )


def reset_level(registry: Registry, call: Call) -> Any:
    """Answers DELETE /config and DELETE /config/{subject}."""
    return registry.write(lambda state: configuration.reset_level(state, call.subject_or_all))
