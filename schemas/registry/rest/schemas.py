"""Answers the routes of /schemas, which return a schema by its id or guid, or all schemas. The
modules of other routes use `submitted` and `described`."""

from __future__ import annotations

from typing import Any

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.registry.answering import Registry
from skidway.schemas.registry.decisions import submission
from skidway.schemas.registry.decisions.submission import Submitted
from skidway.schemas.registry.kept import Kept
from skidway.schemas.registry.rest.answers import Text
from skidway.schemas.registry.rest.call import Call
from skidway.schemas.registry.state import RegistryState, Version


def submitted(registry: Registry, call: Call) -> Submitted:
    """Returns the schema in the request's body, parsed with the schemas that it references."""
    asked = submission.asked(call.body, normalize=call.flag("normalize"))
    (references, needs), schemas = registry.read(
        lambda state: (submission.resolved(state, asked), state.parsed)
    )
    return submission.submitted(schemas, asked, references, needs)


def described(state: RegistryState, call: Call, subject: str, version: Version) -> dict[str, Any]:
    """Returns the JSON object with which an answer describes a version of a subject and its
    schema."""
    kept = state.schema(version.id)
    answer = {"subject": subject, "version": version.version, "id": version.id}
    return answer | _content(state, call, kept)


def schemas(registry: Registry, call: Call) -> Any:
    """Answers GET /schemas."""
    deleted = call.flag("deleted")

    def question(state: RegistryState) -> Any:
        found = []
        for name in state.subject_names(deleted=deleted):
            if name.startswith(call.prefix):
                versions = state.versions(name, deleted=deleted)
                chosen = versions[-1:] if call.flag("latestOnly") else versions
                found += [(name, each) for each in chosen]
        return [described(state, call, name, each) for name, each in call.page(found)]

    return registry.read(question)


def schema(registry: Registry, call: Call) -> Any:
    """Answers GET /schemas/ids/{id}."""

    def question(state: RegistryState) -> Any:
        answer = _content(state, call, state.schema(call.schema_id))
        return answer | ({"maxId": state.last_id} if call.flag("fetchMaxId") else {})

    return registry.read(question)


def schema_text(registry: Registry, call: Call) -> Any:
    """Answers GET /schemas/ids/{id}/schema."""
    return Text(schema(registry, call)["schema"])


def schema_subjects(registry: Registry, call: Call) -> Any:
    """Answers GET /schemas/ids/{id}/subjects."""
    return call.page(sorted({subject for subject, _ in _uses(registry, call)}))


def schema_versions(registry: Registry, call: Call) -> Any:
    """Answers GET /schemas/ids/{id}/versions."""
    uses = _uses(registry, call)
    return call.page([{"subject": subject, "version": version} for subject, version in uses])


def by_guid(registry: Registry, call: Call) -> Any:
    """Answers GET /schemas/guids/{guid}."""

    def question(state: RegistryState) -> Any:
        ids = state.ids_of_guid(call.names["guid"])
        return _content(state, call, state.schema(ids[-1]))

    return registry.read(question)


def guid_ids(registry: Registry, call: Call) -> Any:
    """Answers GET /schemas/guids/{guid}/ids."""
    ids = registry.read(lambda state: state.ids_of_guid(call.names["guid"]))
    return [{"context": ".", "id": each} for each in ids]


def types(_registry: Registry, _call: Call) -> Any:
    """Answers GET /schemas/types."""
    return ["AVRO"]


def _uses(registry: Registry, call: Call) -> list[tuple[str, int]]:
    schema_id, deleted = call.schema_id, call.flag("deleted")
    wanted = call.query.get("subject")
    uses = registry.read(lambda state: state.uses(schema_id, deleted=deleted))
    return [each for each in uses if wanted in (None, "", each[0])]


def _content(state: RegistryState, call: Call, kept: Kept) -> dict[str, Any]:
    """Returns the part of an answer that has the schema's text. With the query parameter
    format=resolved, the text itself declares the types of referenced schemas."""
    if call.query.get("format") == "resolved" and kept.references:
        try:
            return {"schema": state.parsed.of(kept).inlined()}
        except SchemaInvalid:
            # this version of the program cannot read the schema, so the answer has the stored text
            pass
    answer: dict[str, Any] = {"schema": kept.text}
    if kept.references:
        answer["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in kept.references
        ]
    return answer | ({"guid": kept.guid} if call.accepts_unknown else {})
