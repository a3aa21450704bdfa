"""Defines the table of all routes: for each method and path, the function that answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from skidway.schemas.registry.answering import Registry
from skidway.schemas.registry.rest import compatibility, config, metadata, mode, schemas, subjects
from skidway.schemas.registry.rest.call import Call


class Answering(NamedTuple):
    """A route. `waits` says whether its requests always need the registry's log in ZooKeeper, so
    that an attempt to answer them from memory would be useless."""

    method: str
    path: str
    answer: Callable[[Registry, Call], Any]
    waits: bool = False


_VERSIONS: Final = "/subjects/{subject}/versions"

ROUTES: Final = (
    Answering("GET", "/", metadata.root),
    Answering("GET", "/subjects", subjects.subjects),
    Answering("POST", "/subjects/{subject}", subjects.lookup),
    Answering("DELETE", "/subjects/{subject}", subjects.delete_subject, waits=True),
    Answering("GET", _VERSIONS, subjects.versions),
    Answering("POST", _VERSIONS, subjects.register),
    Answering("GET", f"{_VERSIONS}/{{version}}", subjects.version),
    Answering("DELETE", f"{_VERSIONS}/{{version}}", subjects.delete_version, waits=True),
    Answering("GET", f"{_VERSIONS}/{{version}}/schema", subjects.version_schema),
    Answering("GET", f"{_VERSIONS}/{{version}}/referencedby", subjects.referenced_by),
    Answering("GET", "/schemas", schemas.schemas),
    Answering("GET", "/schemas/types", schemas.types),
    Answering("GET", "/schemas/ids/{id}", schemas.schema),
    Answering("GET", "/schemas/ids/{id}/schema", schemas.schema_text),
    Answering("GET", "/schemas/ids/{id}/subjects", schemas.schema_subjects),
    Answering("GET", "/schemas/ids/{id}/versions", schemas.schema_versions),
    Answering("GET", "/schemas/guids/{guid}", schemas.by_guid),
    Answering("GET", "/schemas/guids/{guid}/ids", schemas.guid_ids),
    Answering("POST", f"/compatibility{_VERSIONS}", compatibility.with_all),
    Answering("POST", f"/compatibility{_VERSIONS}/{{version}}", compatibility.with_version),
    Answering("GET", "/config", config.level),
    Answering("PUT", "/config", config.set_level, waits=True),
    Answering("DELETE", "/config", config.reset_level, waits=True),
    Answering("GET", "/config/{subject}", config.level),
    Answering("PUT", "/config/{subject}", config.set_level, waits=True),
    Answering("DELETE", "/config/{subject}", config.reset_level, waits=True),
    Answering("GET", "/mode", mode.mode),
    Answering("PUT", "/mode", mode.set_mode, waits=True),
    Answering("DELETE", "/mode", mode.reset_mode, waits=True),
    Answering("GET", "/mode/{subject}", mode.mode),
    Answering("PUT", "/mode/{subject}", mode.set_mode, waits=True),
    Answering("DELETE", "/mode/{subject}", mode.reset_mode, waits=True),
    Answering("GET", "/contexts", metadata.contexts),
    Answering("GET", "/v1/metadata/id", metadata.cluster),
    Answering("GET", "/v1/metadata/version", metadata.version),
)


def with_fixed_mode(route: Answering) -> Answering:
    """Returns the route for a registry in which no request may change a mode. A route that would
    change a mode becomes a route that refuses."""
    changes = route.answer in (mode.set_mode, mode.reset_mode)
    return route._replace(answer=mode.fixed) if changes else route
