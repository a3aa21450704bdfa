"""Asks the registry for the schemas of topics."""

from __future__ import annotations

from collections.abc import Iterable

from skidway.errors import SkidwayError
from skidway.loader.datasource.columns import value_columns
from skidway.loader.datasource.options import Options
from skidway.loader.planning.topic import SourceTopic
from skidway.schemas.client import SUBJECT_UNKNOWN, RegistryClient, RegistryRefused


def registry_of(options: Options) -> RegistryClient:
    """Returns a client of the registry that the query's options name."""
    return options.registry.client()


def schemas_of(options: Options, topics: Iterable[SourceTopic]) -> dict[str, str]:
    """Returns the newest Avro schema of each topic's values, as text. If the query's options name
    no registry, the text is empty for each topic. Raises SkidwayError if a topic has no schema, or
    if its schema cannot become columns."""
    if not options.registry.urls:
        return {each.name: "" for each in topics}
    registry = registry_of(options)
    by_subject: dict[str, str] = {}
    found = {}
    for topic in topics:
        if topic.subject not in by_subject:
            by_subject[topic.subject] = _newest(registry, topic)
        found[topic.name] = by_subject[topic.subject]
    return found


def _newest(registry: RegistryClient, topic: SourceTopic) -> str:
    try:
        schema = registry.latest(topic.subject)
    except RegistryRefused as error:
        # Only this error code proves that the topic has no schema. An answer with any other code
        # may come from a proxy in front of the registry.
        if error.error_code != SUBJECT_UNKNOWN:
            raise
        raise SkidwayError(
            f"the registry has no schema {topic.subject} for the topic {topic.name}; without "
            "schema.registry.url the query gives key and value as bytes"
        ) from error
    try:
        value_columns(schema.schema)
    except SkidwayError as error:
        raise SkidwayError(
            f"{topic.name} cannot be read with version {schema.version} of {topic.subject}: {error}"
        ) from error
    return schema.schema
