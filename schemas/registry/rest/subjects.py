"""Answers the routes of /subjects: versions, registration, lookup and deletion."""

from __future__ import annotations

from typing import Any

from skidway.schemas.registry.answering import Registry
from skidway.schemas.registry.decisions import deletion, registration, submission
from skidway.schemas.registry.refusals import schema_not_found
from skidway.schemas.registry.rest.answers import Text
from skidway.schemas.registry.rest.call import Call
from skidway.schemas.registry.rest.schemas import described, submitted
from skidway.schemas.registry.state import RegistryState, Version


def subjects(registry: Registry, call: Call) -> Any:
    """Answers GET /subjects."""
    only = call.flag("deletedOnly") or call.flag("deleted_only")
    deleted = only or call.flag("deleted")
    names = registry.read(lambda state: state.subject_names(deleted=deleted, live=not only))
    return call.page([each for each in names if each.startswith(call.prefix)])


def lookup(registry: Registry, call: Call) -> Any:
    """Answers POST /subjects/{subject}.

    If the request has no schema, the answer is 404, as in Confluent's registry.
    """
    deleted = call.flag("deleted")
    if submission.is_empty(call.body):
        registry.read(lambda state: state.versions(call.subject, deleted=deleted))
        raise schema_not_found()
    wanted = submitted(registry, call)

    def question(state: RegistryState) -> Any:
        found = registration.lookup(state, call.subject, wanted, deleted=deleted)
        return described(state, call, call.subject, found)

    return registry.read(question)


def delete_subject(registry: Registry, call: Call) -> Any:
    """Answers DELETE /subjects/{subject}."""
    permanent = call.flag("permanent")
    return registry.write(
        lambda state: deletion.delete_subject(state, call.subject, permanent=permanent)
    )


def versions(registry: Registry, call: Call) -> Any:
    """Answers GET /subjects/{subject}/versions."""
    only = call.flag("deletedOnly") or call.flag("deleted_only")
    deleted = only or call.flag("deleted")

    def question(state: RegistryState) -> list[int]:
        found = state.versions(call.subject, deleted=deleted)
        return [each.version for each in found if each.deleted or not only]

    return call.page(registry.read(question))


def register(registry: Registry, call: Call) -> Any:
    """Answers POST /subjects/{subject}/versions.

    If the subject already has the schema, the registry answers the request from memory. Every
    producer sends this request when it starts. So if a producer's schema is already registered, the
    producer can start even while ZooKeeper is unreachable.
    """
    wanted = submitted(registry, call)
    version = registry.read(lambda state: registration.already_there(state, call.subject, wanted))
    if version is None:
        version = registry.write(
            lambda state: registration.register(state, call.subject, wanted),
            ahead=lambda: registry.read(
                lambda state: registration.comparison(state, call.subject, wanted)
            ).prepare(wanted),
        )
    return registry.read(lambda state: _registered(state, call, version))


def version(registry: Registry, call: Call) -> Any:
    """Answers GET /subjects/{subject}/versions/{version}."""
    number, deleted = call.version, call.flag("deleted")

    def question(state: RegistryState) -> Any:
        found = state.version(call.subject, number, deleted=deleted)
        return described(state, call, call.subject, found)

    return registry.read(question)


def version_schema(registry: Registry, call: Call) -> Any:
    """Answers GET /subjects/{subject}/versions/{version}/schema."""
    return Text(version(registry, call)["schema"])


def referenced_by(registry: Registry, call: Call) -> Any:
    """Answers GET /subjects/{subject}/versions/{version}/referencedby."""
    number = call.version

    def question(state: RegistryState) -> Any:
        found = state.version(call.subject, number, deleted=call.flag("deleted"))
        return state.referenced_by(call.subject, found.version)

    return call.page(registry.read(question))


def delete_version(registry: Registry, call: Call) -> Any:
    """Answers DELETE /subjects/{subject}/versions/{version}."""
    number, permanent = call.version, call.flag("permanent")
    return registry.write(
        lambda state: deletion.delete_version(state, call.subject, number, permanent=permanent)
    )


def _registered(state: RegistryState, call: Call, version: Version) -> dict[str, Any]:
    answer: dict[str, Any] = {"id": version.id}
    kept = state.kept(version.id)
    if kept is None:
        raise schema_not_found(version.id)
    if call.accepts_unknown:
        answer |= {"version": version.version, "guid": kept.guid}
    return answer
