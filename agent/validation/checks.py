"""`skidway agent validate`: the checks of a configuration that are possible before the agent runs.

`check_settings` needs neither broker nor registry. `agent run` also begins with `check_settings`.
`try_sources` parses lines of the files on this host. If a schema is only in the registry,
`try_sources` asks the registry.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.cluster.connection import compiled, schema_of_file
from skidway.agent.configuration import Faults
from skidway.agent.files.host import Host
from skidway.agent.parsing.byte_order import UTF_16, UTF_16BE
from skidway.agent.parsing.regex import groups_of
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.agent.recipe import Schema
from skidway.agent.settings import AgentSettings, ReplaySource, SourceSettings
from skidway.agent.values.found import FileKey
from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable
from skidway.schemas.client import RegistryClient, RegistryRefused

if TYPE_CHECKING:  # `agent run` tries no lines, and so does not load the module `trial`
    from skidway.agent.validation.trial import Trial


def check_settings(settings: AgentSettings) -> None:
    """Raises ConfigurationRefused if a source cannot work, and SourcesRefused if only sources of
    files of `sources.dir` cannot. Does not check a schema that is only in the registry.
    """
    faults = Faults()
    for source in settings.sources:
        with faults.of(source):
            try:
                _check_source(source, settings.batch_size)
            except SkidwayError as error:
                raise _refused(source, error) from error
    faults.check()


def checked(settings: AgentSettings) -> AgentSettings:
    """Returns these settings, after `check_settings`."""
    check_settings(settings)
    return settings


def try_sources(
    settings: AgentSettings, host: Host, registry: RegistryClient, lines_max: int
) -> list[Trial]:
    """Tries each source's parser on lines of the source's files. Raises ConfigurationRefused if a
    source cannot work."""
    found: list[Trial] = []
    owners: dict[FileKey, str] = {}
    for source in settings.sources:
        if isinstance(source, ReplaySource):
            continue  # `agent replay` tried the source's lines when it made the source's files
        try:
            found.append(_try(source, settings.batch_size, host, registry, lines_max, owners))
        except SkidwayError as error:
            raise _refused(source, error) from error
    return found


def schema_text(source: SourceSettings, registry: RegistryClient) -> str:
    """Returns the schema of a source's rows: a derived schema, the schema in a file, or the newest
    schema of a subject in the registry. Raises ConfigurationRefused if there is no usable schema,
    and Unreachable if the registry does not answer.
    """
    text = _schema_text(source)
    if text is None:
        assert source.schema is not None
        try:
            text = registry.latest(source.schema).schema
        except RegistryRefused as error:
            raise ConfigurationRefused(f"schema: {source.schema}: {error}") from error
    return text


def reserved_fields(schema: str) -> list[str]:
    """Returns the fields of a record's schema whose names the loader needs for its own columns."""
    from skidway.schemas.inference.naming import RESERVED

    names = [each["name"] for each in json.loads(schema)["fields"]]
    return [name for name in names if name.lower() in RESERVED]


def _try(
    source: SourceSettings,
    batch_bytes: int,
    host: Host,
    registry: RegistryClient,
    lines_max: int,
    owners: dict[FileKey, str],
) -> Trial:
    from skidway.agent.validation import trial
    from skidway.schemas.logical_types import ignored

    files, tried = trial.find(source, host, owners)
    known = _schema_text(source)
    tried.ignored = [] if known is None else ignored(known)
    if not lines_max:
        tried.untried = "as --lines 0 says"
        return tried
    try:
        text = schema_text(source, registry)
    except Unreachable as error:
        tried.untried = f"its schema {source.schema} is the registry's: {error}"
        return tried
    schema, other = Schema(0, text), None
    if source.encoding == UTF_16:
        other = compiled(replace(source, encoding=UTF_16BE), schema, batch_bytes)
    press = compiled(source, schema, batch_bytes)  # raises an error if the schema is not a record
    tried.reserved, tried.ignored = reserved_fields(text), ignored(text)
    trial.run(press, files, tried, host, lines_max, other)
    return tried


def _check_source(source: SourceSettings, batch_bytes: int) -> None:
    if source.parser.pattern is not None:
        groups_of(source.parser.pattern)
    if source.timestamp is not None:
        TimeFormat(source.timestamp.format, source.timestamp.timezone)
    text = _schema_text(source)
    if text is not None:
        compiled(source, Schema(0, text), batch_bytes)


def _schema_text(source: SourceSettings) -> str | None:
    if source.schema is None:
        return derived_schema(source)
    return None if source.schema_file is None else schema_of_file(source)


def _refused(source: SourceSettings, error: SkidwayError) -> ConfigurationRefused:
    which = f"source of topic {source.topic}: "
    return ConfigurationRefused(which + str(error).removeprefix(which))
