"""Asks the registry for the schema that a load's rows follow, and checks that this schema can
become columns.
"""

from __future__ import annotations

from skidway.errors import SkidwayError
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.reading.columns import RESERVED
from skidway.loader.reading.decoder import check_reader
from skidway.schemas.client import (
    SUBJECT_UNKNOWN,
    Registered,
    RegistryClient,
    RegistryRefused,
)


def newest_schema(registry: RegistryClient, topic: SourceTopic) -> Registered:
    """Returns the newest schema of the topic's subject. Raises SkidwayError if the subject has no
    schema, or if the schema cannot become columns.
    """
    subject = topic.subject
    try:
        schema = registry.latest(subject)
    except RegistryRefused as error:
        # Only this error code proves that the topic has no schema. An answer with any other code
        # may come from a proxy in front of the registry.
        if error.error_code != SUBJECT_UNKNOWN:
            raise
        raise SkidwayError(
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
