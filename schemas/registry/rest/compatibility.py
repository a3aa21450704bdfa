"""Answers the routes of /compatibility, which say whether a schema is compatible, and, if it is
not, why."""

from __future__ import annotations

from typing import Any

from skidway.schemas.registry.answering import Registry
from skidway.schemas.registry.decisions import comparison
from skidway.schemas.registry.decisions.comparison import Comparison
from skidway.schemas.registry.rest.call import Call
from skidway.schemas.registry.rest.schemas import submitted


def with_version(registry: Registry, call: Call) -> Any:
    """Answers POST /compatibility/subjects/{subject}/versions/{version}."""
    number = call.version
    if number is None:
        found = registry.read(lambda state: comparison.with_latest(state, call.subject))
    else:
        found = registry.read(lambda state: comparison.with_version(state, call.subject, number))
    return _verdict(registry, call, found)


def with_all(registry: Registry, call: Call) -> Any:
    """Answers POST /compatibility/subjects/{subject}/versions."""
    found = registry.read(lambda state: comparison.with_all(state, call.subject))
    return _verdict(registry, call, found)


def _verdict(registry: Registry, call: Call, found: Comparison) -> Any:
    messages = found.messages(submitted(registry, call))
    answer: dict[str, Any] = {"is_compatible": not messages}
    return answer | ({"messages": messages} if call.flag("verbose") else {})
