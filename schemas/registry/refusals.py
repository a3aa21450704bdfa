"""Makes all refusals of the registry, with the status and code that Confluent's clients expect.

The codes are those of Confluent's REST API reference. If a retry of the request cannot succeed, the
refusal never has a status 5xx, because clients would retry the request for seconds. The messages
are Skidway's own, except where clients are known to parse Confluent's messages.
"""

from __future__ import annotations

from skidway.errors import SkidwayError


class Refusal(SkidwayError):
    """Raised if a request is refused. Has the HTTP status of the answer, the registry's error code,
    and one sentence."""

    def __init__(self, status: int, error_code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


class NotFound(Refusal):
    """Raised if something does not exist, as far as this process has read the registry's log in
    ZooKeeper."""

    def __init__(self, error_code: int, message: str, *, status: int = 404) -> None:
        super().__init__(status, error_code, message)


def subject_not_found(subject: str) -> Refusal:
    """Returns the refusal of a request for a subject that does not exist. If all versions of a
    subject are soft-deleted, the subject exists only for requests that ask for deleted versions."""
    return NotFound(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> Refusal:
    """Returns the refusal of a request for a version that the subject does not have."""
    return NotFound(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | str | None = None) -> Refusal:
    """Returns the refusal of a request for a schema id that no schema has. If `schema_id` is None,
    returns the refusal of a request for a schema that the subject does not have."""
    which = "Schema" if schema_id is None else f"Schema {schema_id}"
    return NotFound(40403, f"{which} not found")


def subject_was_deleted(subject: str) -> Refusal:
    """Returns the refusal of a request to soft-delete a subject that is soft-deleted already."""
    return NotFound(
        40404,
        f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently",
    )


def subject_not_deleted(subject: str) -> Refusal:
    """Returns the refusal of a request to delete permanently a subject that is not soft-deleted
    yet."""
    return NotFound(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_was_deleted(subject: str, version: int) -> Refusal:
    """Returns the refusal of a request to soft-delete a version that is soft-deleted already."""
    return NotFound(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted. "
        "Set permanent=true to delete permanently",
    )


def version_not_deleted(subject: str, version: int) -> Refusal:
    """Returns the refusal of a request to delete permanently a version that is not soft-deleted
    yet."""
    return NotFound(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first "
        "before being permanently deleted",
    )


def config_not_found(subject: str) -> Refusal:
    """Returns the refusal of a request for the compatibility level of a subject that has no level
    of its own."""
    return NotFound(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def mode_not_found(subject: str) -> Refusal:
    """Returns the refusal of a request for the mode of a subject that has no mode of its own."""
    return NotFound(40409, f"Subject '{subject}' does not have subject-level mode configured")


def reference_not_found(name: str, subject: str, version: int | None) -> Refusal:
    """Returns the refusal of a schema that references a version that does not exist."""
    which = "latest version" if version is None else f"version {version}"
    return NotFound(
        42201,
        f"Invalid schema: its reference '{name}' names {which} of subject '{subject}', "
        "which is not there",
        status=422,
    )


def incompatible(subject: str, messages: list[str]) -> Refusal:
    """Returns the refusal of a schema that is incompatible with earlier schemas of the subject."""
    return Refusal(
        409,
        409,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
        f"details: [{', '.join(messages)}]",
    )


def invalid_schema(why: str) -> Refusal:
    """Returns the refusal of a text that is no schema, or of a schema that the registry cannot
    store."""
    return Refusal(422, 42201, f"Invalid schema: {why}")


def invalid_version(version: str) -> Refusal:
    """Returns the refusal of a version that is neither a number from 1 on nor `latest`."""
    return Refusal(
        422,
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def invalid_level(level: object) -> Refusal:
    """Returns the refusal of a text that is no compatibility level."""
    return Refusal(
        422,
        42203,
        f"Invalid compatibility level {level!r}. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode(mode: object) -> Refusal:
    """Returns the refusal of a text that is no mode."""
    return Refusal(
        422,
        42204,
        f"Invalid mode {mode!r}. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, "
        "and FORWARD",
    )


def not_permitted(what: str) -> Refusal:
    """Returns the refusal of an operation that the mode, or this registry, does not allow."""
    return Refusal(422, 42205, what)


def reference_exists(subject: str, version: int) -> Refusal:
    """Returns the refusal of a request to delete or replace a version that another schema
    references."""
    return Refusal(
        422,
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def id_does_not_match(known: int, given: int) -> Refusal:
    """Returns the refusal of a request to import a schema under an id, although the subject already
    has this schema under another id."""
    return Refusal(
        422, 42207, f"The subject has this schema with id {known}, not with the given id {given}"
    )


def invalid_subject(subject: str) -> Refusal:
    """Returns the refusal of a name that no subject can have."""
    return Refusal(422, 42208, f"The specified subject '{subject}' is not a valid subject")


def too_large(size_bytes: int, limit_bytes: int) -> Refusal:
    """Returns the refusal of a schema that is too large for one node of ZooKeeper."""
    return Refusal(
        422, 42209, f"The schema takes {size_bytes} bytes, more than the {limit_bytes} allowed"
    )


def malformed(why: str) -> Refusal:
    """Returns the refusal of a request whose path, query or body does not have the form that the
    API demands."""
    return Refusal(400, 400, why)


def unsupported_media_type() -> Refusal:
    """Returns the refusal of a request whose body has a media type that the registry does not
    read."""
    return Refusal(415, 415, "HTTP 415 Unsupported Media Type")


def not_acceptable() -> Refusal:
    """Returns the refusal of a request whose client accepts none of the media types in which the
    registry can answer."""
    return Refusal(406, 406, "HTTP 406 Not Acceptable")


def foreign_origin(origin: str) -> Refusal:
    """Returns the refusal of a change that a web page of another site requests."""
    return Refusal(403, 403, f"A page of {origin} may not change this registry")


def unauthorized() -> Refusal:
    """Returns the refusal of a request without a user, or with a wrong password."""
    return Refusal(401, 401, "HTTP 401 Unauthorized")


def too_busy() -> Refusal:
    """Returns the refusal of a request that arrives while the registry already checks as many
    passwords as it may at once. The client may try again."""
    return Refusal(503, 503, "The registry has too many requests at once, try again later")


def store_away(why: str) -> Refusal:
    """Returns the refusal of a request that needs the registry's log, if ZooKeeper is unreachable
    or slow, or if the log is invalid. The registry still answers reads, and the client may try its
    request again later."""
    return Refusal(503, 503, f"The registry's store does not answer, try again later: {why}")
