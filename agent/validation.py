"""`skidway agent validate`: what can be said of a configuration without broker and registry."""

from __future__ import annotations

from pathlib import Path

from agent.connection import read_schema_file
from agent.delivery.press import Press
from agent.delivery.recipe import Schema, Topic, derived_schema, recipe_of
from agent.parsing.regex import groups_of
from agent.parsing.timestamps import TimeFormat
from agent.settings import AgentSettings, SourceSettings
from schemas.single_object import schema_text
from skidway.errors import ConfigurationRefused, SkidwayError


def check_settings(settings: AgentSettings) -> None:
    """Raises ConfigurationRefused. A schema that only the registry knows is not looked at."""
    for source in settings.sources:
        try:
            _check_source(source, settings.batch_size)
        except SkidwayError as error:
            which = f"source of topic {source.topic}: "
            raise ConfigurationRefused(which + str(error).removeprefix(which)) from error


def _check_source(source: SourceSettings, batch_bytes: int) -> None:
    if source.parser.pattern is not None:
        groups_of(source.parser.pattern)
    if source.timestamp is not None:
        TimeFormat(source.timestamp.format, source.timestamp.timezone)
    text = _schema_text(source)
    if text is None:
        return
    Press(
        recipe_of(
            source,
            Topic(source.topic, 1, batch_bytes),
            Topic(source.rejected_topic, 1, batch_bytes),
            Schema(0, text),
            Schema(0, schema_text("Rejected")),
            batch_bytes,
        )
    )


def _schema_text(source: SourceSettings) -> str | None:
    if source.schema is None:
        return derived_schema(source)
    if source.schema.endswith(".avsc"):
        return read_schema_file(Path(source.schema))
    return None
