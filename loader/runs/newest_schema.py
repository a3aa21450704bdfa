"""Asks the registry for the schema that a load's rows follow, and checks that this schema can
become columns. Also asks for the schemas of older files.
"""

from __future__ import annotations

from skidway.errors import SkidwayError
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.reading.columns import RESERVED
from skidway.loader.reading.decoder import check_reader
from skidway.schemas.client import (
    SCHEMA_UNKNOWN,
    SUBJECT_UNKNOWN,
    Registered,
    RegistryClient,
    RegistryRefused,
)


def foreign(registry: RegistryClient, topic: SourceTopic) -> str:
    """Returns a sentence if a topic is foreign: it has records and no schema, so these are probably
    another program's, and no rows. Agents register a schema before they send the first record. Else
    returns "". The caller asks only about topics that were never loaded, and that a pattern chose,
    which chooses whatever else the brokers carry.
    """
    if all(each.log_start == each.high_watermark for each in topic.bounds):
        return ""
    try:
        newest_schema(registry, topic)
    except NoSchema as error:
        return (
            f"not loaded: {error}; if these are no rows, leave the topic out of the patterns in "
            "topics, and name it in the audit's exempt.hdfs"
        )
    return ""


class NoSchema(SkidwayError):
    """Raised if the registry has no schema for a topic that has records."""


def newest_schema(registry: RegistryClient, topic: SourceTopic) -> Registered:
    """Returns the newest schema of the topic's subject. Raises NoSchema if the subject has no
    schema, and SkidwayError if the schema cannot become columns.
    """
    subject = topic.subject
    try:
        schema = registry.latest(subject)
    except RegistryRefused as error:
        # Only this error code proves that the topic has no schema. An answer with any other code
        # may come from a proxy in front of the registry.
        if error.error_code != SUBJECT_UNKNOWN:
            raise
        raise NoSchema(
            f"{topic.name} has records, but no schema is registered under {subject}; "
            "register it: skidway schemas register"
        ) from error
    try:
        check_reader(schema.schema, RESERVED)
    except SkidwayError as error:
        raise SkidwayError(
            f"{topic.name} cannot be loaded with version {schema.version} of {subject}: {error}"
        ) from error
    return schema


def schema_text(registry: RegistryClient, schema_id: int) -> str | None:
    """Returns the text of a schema that older files follow, or None if the registry no longer has
    it. Raises RegistryRefused, Unreachable."""
    try:
        return registry.schema(schema_id)
    except RegistryRefused as error:
        if error.error_code != SCHEMA_UNKNOWN:
            raise error.about(schema_id) from error
        return None
