"""Reads the agent's settings from its configuration file and the files in `sources.dir`, and
replaces names of formats by the settings of these formats."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from skidway import log, settings
from skidway.agent.formats import catalog
from skidway.agent.good_files import last_good
from skidway.agent.named_files import read_any, with_named
from skidway.agent.settings import (
    LINE_BYTES_MAX,
    AgentSettings,
    ReplaySource,
    SourceSettings,
)
from skidway.agent.sources_dir import files_in, read_file, read_version
from skidway.agent.values.path_texts import literal
from skidway.agent.values.source_files import RefusedFile
from skidway.cli.options import load_settings
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable

REPLAY_SUFFIX = ".replay"

_log = log.get(__name__)

T = TypeVar("T")


class SourcesRefused(ConfigurationRefused):
    """Raised if sources of files of `sources.dir` cannot work. files: by file, why."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__("; ".join(files.values()))
        self.files = dict(files)

    @property
    def public(self) -> str:
        """The refusal without a word of the content of files."""
        return f"refused, and `skidway agent reload` says why: {', '.join(sorted(self.files))}"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Where a running agent's settings come from, so that the agent can read them again. options:
    the options of the command. uses_state: see `load`."""

    options: argparse.Namespace
    program: str
    uses_state: bool = True

    def read(self, set_aside: Mapping[str, str] = MappingProxyType({})) -> AgentSettings:
        """Reads the settings again. set_aside: see `load`. Raises ConfigurationRefused."""
        return load(self.options, self.program, set_aside, uses_state=self.uses_state)

    def taken(
        self,
        use: Callable[[AgentSettings], T],
        set_aside: Mapping[str, str] = MappingProxyType({}),
    ) -> T:
        """Reads the settings again, and returns what `use` makes of them. If `use` raises
        SourcesRefused, these files are set aside, and the others are used. Raises SourcesRefused
        if a file's last good version is refused, too."""
        aside = dict(set_aside)
        while True:
            try:
                return use(self.read(aside))
            except SourcesRefused as error:
                if error.files.keys() <= aside.keys():
                    raise
                aside = error.files | aside

    def files(self, sources_dir: Path | None) -> list[Path]:
        """Returns the files and the directory from which the settings are read. Some of them may
        not exist."""
        own = self.options.config or settings.DEFAULT_DIRECTORY / f"{self.program}.yml"
        further = [] if sources_dir is None else [sources_dir, *sorted(sources_dir.glob("*.yml"))]
        return [Path(own), *further]


class Faults:
    """Gathers what is wrong with sources. Only the files that have them are refused for it."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}

    @contextmanager
    def of(self, source: SourceSettings) -> Iterator[None]:
        """Runs a `with` block that may refuse the source. Raises what the block raises, unless the
        source is that of a file of `sources.dir`."""
        try:
            yield
        except Unreachable:
            raise
        except Exception as error:
            if source.file is None:
                raise
            self._files.setdefault(source.file, _reason(source.file, error))

    def check(self) -> None:
        """Raises SourcesRefused if sources of files were refused."""
        if self._files:
            raise SourcesRefused(self._files)


def load(
    args: argparse.Namespace,
    program: str,
    set_aside: Mapping[str, str] = MappingProxyType({}),
    *,
    uses_state: bool = True,
) -> AgentSettings:
    """Reads the settings that the options of a command name. A file of `sources.dir` that cannot be
    used is refused alone, and its last good version counts, if there is one. Raises
    ConfigurationRefused, and SourcesRefused if that cannot be used either.

    set_aside: files of `sources.dir` that are refused for these reasons. uses_state: whether last
    good versions count; they are in the agent's state.
    """
    given = load_own(args, program)
    file = _file_of_sources(args, program)
    folder = Path.cwd() if file is None else file.absolute().parent
    sources = [catalog.of_source(_completed(each, folder)) for each in given.sources]
    refused, versions = [], []
    for each in [] if given.sources_dir is None else files_in(given.sources_dir):
        version, fault = None, set_aside.get(str(each))
        if fault is None:
            try:
                version, found = read_file(each, given.sources_dir_rules)
            except Exception as error:  # noqa: BLE001 - no file of a team may end the agent
                fault = _reason(str(each), error)
        if version is not None:
            versions.append(version)
            sources += found
            continue
        assert fault is not None
        good = last_good(given.state_dir, str(each)) if uses_state else None
        refused.append(RefusedFile(str(each), fault, good is not None))
        if good is not None:
            try:
                sources += read_version(good, given.sources_dir_rules)
            except ConfigurationRefused as error:
                words = f"{refused[-1].words}; but that is refused, too: {error}"
                raise SourcesRefused({str(each): words}) from error
    complete = replace(given, sources=sources, refused=tuple(refused), versions=tuple(versions))
    return with_replays(complete)


def load_own(args: argparse.Namespace, program: str) -> AgentSettings:
    """Reads the settings without the files of `sources.dir`, and no file that they name. Raises
    ConfigurationRefused."""
    return load_settings(AgentSettings, args, program)


def _completed(source: SourceSettings, folder: Path) -> SourceSettings:
    try:
        return with_named(source, folder, read_any)
    except ConfigurationRefused as error:
        raise ConfigurationRefused(f"source of topic {source.topic}: {error}") from error


def _reason(file: str, error: Exception) -> str:
    if isinstance(error, SkidwayError):
        return str(error)
    _log.error("unexpected_failure", file=file, exc=error)
    return f"unexpected: {type(error).__name__}"


def with_replays(given: AgentSettings) -> AgentSettings:
    """For each source with `replay: true`, adds a source that reads the files that `skidway agent
    replay` makes. Raises ConfigurationRefused if two sources of a topic have `replay: true`.
    """
    replays = [replay_source(each, given.state_dir) for each in given.sources if each.replay]
    count = Counter(each.topic for each in replays)
    twice = [each for each in replays if count[each.topic] > 1]
    if twice:
        words = (
            f"replay: two sources of the topic {twice[0].topic} have it, so nobody knows whose"
            " parser reads repaired lines; keep it in one of them"
        )
        raise refusal_of(twice, words)
    return replace(given, sources=[*given.sources, *replays])


def refusal_of(sources: Iterable[SourceSettings], reason: str) -> ConfigurationRefused:
    """Returns the refusal of these sources together: of the files of `sources.dir` that have them,
    or of the agent's own configuration if only this one has them."""
    files = {each.file: reason for each in sources if each.file is not None}
    return SourcesRefused(files) if files else ConfigurationRefused(reason)


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


def _file_of_sources(args: argparse.Namespace, program: str) -> Path | None:
    """Returns the configuration file that has the setting `sources`; None if `--set sources=...`
    gives the sources, or if there is no file.
    """
    if any(each.partition("=")[0].strip() == "sources" for each in args.set):
        return None
    return settings.path_of(args.config, program)
