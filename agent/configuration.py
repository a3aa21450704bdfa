"""Reads the agent's settings from its configuration file and the files in `sources.dir`, and
replaces names of formats by the settings of these formats."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from skidway import settings
from skidway.agent.formats import catalog
from skidway.agent.settings import (
    LINE_BYTES_MAX,
    AgentSettings,
    ReplaySource,
    SourceSettings,
    SourcesRule,
)
from skidway.agent.sources_dir import sources_in
from skidway.agent.values.path_texts import literal
from skidway.cli.options import load_settings
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

REPLAY_SUFFIX = ".replay"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Where a running agent's settings come from, so that the agent can read them again. options:
    the options of the command."""

    options: argparse.Namespace
    program: str

    def read(self) -> AgentSettings:
        """Reads the settings again. Raises ConfigurationRefused."""
        return load(self.options, self.program)

    def files(self, sources_dir: Path | None) -> list[Path]:
        """Returns the files and the directory from which the settings are read. Some of them may
        not exist."""
        own = self.options.config or settings.DEFAULT_DIRECTORY / f"{self.program}.yml"
        further = [] if sources_dir is None else [sources_dir, *sorted(sources_dir.glob("*.yml"))]
        return [Path(own), *further]


def load(args: argparse.Namespace, program: str) -> AgentSettings:
    """Reads the settings that the options of a command name. Raises ConfigurationRefused."""
    given = load_settings(AgentSettings, args, program)
    further = (
        [] if given.sources_dir is None else _sources_in(given.sources_dir, given.sources_dir_rules)
    )
    own = _beside(_file_of_sources(args, program), given.sources)
    return with_replays(catalog.applied(replace(given, sources=[*own, *further])))


def with_replays(given: AgentSettings) -> AgentSettings:
    """For each source with `replay: true`, adds a source that reads the files that `skidway agent
    replay` makes. Raises ConfigurationRefused if two sources of a topic have `replay: true`.
    """
    replays = [replay_source(each, given.state_dir) for each in given.sources if each.replay]
    topics = [each.topic for each in replays]
    twice = next((topic for topic in topics if topics.count(topic) > 1), None)
    if twice is not None:
        raise ConfigurationRefused(
            f"replay: two sources of the topic {twice} have it, so nobody knows whose parser reads"
            " repaired lines; keep it in one of them"
        )
    return replace(given, sources=[*given.sources, *replays])


def replay_source(source: SourceSettings, state_dir: Path) -> ReplaySource:
    """Returns the source that reads the files with repaired lines of `source`. The agent reads
    these files from their beginnings, even if `source` skips old files or begins at the ends of
    files.
    """
    own = {each.name: getattr(source, each.name) for each in fields(source)}
    directory = literal(str(replay_directory(state_dir, source.topic).absolute()))
    paths = [f"{directory}/*{REPLAY_SUFFIX}"]
    other = {
        "paths": paths,
        "exclude": [],
        "optional": True,
        "max_line_bytes": LINE_BYTES_MAX,
        "start_at": "beginning",
        "ignore_older_ms": None,
    }
    return ReplaySource(**{**own, **other})


def replay_directory(state_dir: Path, topic: str) -> Path:
    """Returns the directory of the files with repaired lines of a topic."""
    return state_dir / "replay" / topic


def _sources_in(directory: Path, rules: Sequence[SourcesRule]) -> list[SourceSettings]:
    """Returns the sources of all files in a directory, in the order of the files' names."""
    return [
        source
        for file, sources in sources_in(directory, rules)
        for source in _beside(file, sources)
    ]


def _beside(file: Path | None, sources: Sequence[SourceSettings]) -> list[SourceSettings]:
    """Returns the sources with absolute paths of the files that they name. A relative path starts
    from the directory of the configuration file `file`, or from the current directory if `file` is
    None.
    """
    folder = Path.cwd() if file is None else file.absolute().parent
    return [
        replace(
            each,
            schema=each.schema if each.schema_file is None else str(folder / each.schema_file),
            hash_key_location=each.hash_key_location and folder / each.hash_key_location,
        )
        for each in sources
    ]


def _file_of_sources(args: argparse.Namespace, program: str) -> Path | None:
    """Returns the configuration file that has the setting `sources`; None if `--set sources=...`
    gives the sources, or if there is no file.
    """
    if any(each.partition("=")[0].strip() == "sources" for each in args.set):
        return None
    return settings.path_of(args.config, program)
