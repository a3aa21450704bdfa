"""Reads the files of `sources.dir`, which several teams may write, and limits what they may say.

As with sudoers.d, the directory and each file must belong to root or to the agent's user, and
nobody else may write them; a rule of `sources.dir.rules` may name another owner of its files. With
rules, a file may name only the topics, paths and further files that its rule allows. The schemas
and keys that it names must belong to its owner (see `named_files`).
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from skidway import settings
from skidway.agent.formats import catalog
from skidway.agent.named_files import (
    Read,
    open_by_owner,
    read_named,
    trusted_owners,
    with_named,
)
from skidway.agent.parsers.settings import NAMES_MAX
from skidway.agent.settings import SourceSettings, SourcesRule
from skidway.agent.values.path_texts import expanded, lies_within, matcher
from skidway.agent.values.source_files import Version
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.settings import setting

FILE_BYTES_MAX = 256 << 10
"""With as many, reading a file takes at most about a second. The agent reads changed files while it
reads logs."""
PATTERNS_CHARACTERS_MAX = 200_000

_OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesFile:
    """A file of `sources.dir`."""

    sources: list[SourceSettings] = setting(
        "sources", help="What to tail.", at_least=1, at_most=NAMES_MAX
    )

    def check(self) -> None:
        """Refuses patterns with which a look would take long."""
        texts = [each for one in self.sources for each in (*one.paths, *one.exclude)]
        patterns = [each for text in texts for each in expanded(text)]
        if len(patterns) > NAMES_MAX or sum(map(len, patterns)) > PATTERNS_CHARACTERS_MAX:
            raise ConfigurationRefused(
                f"the paths of a file in sources.dir have at most {NAMES_MAX:,} patterns, each"
                f" alternative of braces counted, and {PATTERNS_CHARACTERS_MAX:,} characters"
            )


def files_in(directory: Path) -> list[Path]:
    """Returns the files of the directory. Raises ConfigurationRefused."""
    try:
        names, status = os.listdir(directory), directory.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigurationRefused(f"sources.dir: {directory} is no directory") from error
    except OSError as error:
        raise ConfigurationRefused(
            f"sources.dir: cannot list {directory}: {error.strerror}"
        ) from error
    _check_owner(directory, status, None)
    return sorted(directory.absolute() / each for each in names if each.endswith(".yml"))


def read_file(file: Path, rules: Sequence[SourcesRule]) -> tuple[Version, list[SourceSettings]]:
    """Reads a file, and the files that it names. Raises ConfigurationRefused."""
    rule = _rule_of(file, rules)
    try:
        with open_by_owner(file) as opened:
            status = os.fstat(opened.fileno())
            _check_owner(file, status, None if rule is None else rule.owner)
            text = opened.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationRefused(f"cannot read {file}: {reason}") from error
    if len(text) > FILE_BYTES_MAX:
        raise ConfigurationRefused(f"{file}: a file in sources.dir has at most 256 KiB")
    owners, named = trusted_owners(status.st_uid), dict[str, bytes]()

    def read(path: Path, bytes_max: int) -> bytes:
        if str(path) not in named:
            named[str(path)] = read_named(path, owners, bytes_max)
        return named[str(path)]

    sources = _sources(file, text, rule, read)
    return Version(str(file), text, named), sources


def read_version(version: Version, rules: Sequence[SourcesRule]) -> list[SourceSettings]:
    """Returns the sources of an earlier version of a file. Raises ConfigurationRefused, also if the
    rules do not allow it today."""
    file = Path(version.path)

    def read(path: Path, _bytes_max: int) -> bytes:
        return version.named[str(path)]

    return _sources(file, version.text, _rule_of(file, rules), read)


def _sources(file: Path, text: bytes, rule: SourcesRule | None, read: Read) -> list[SourceSettings]:
    sources = settings.load_data(SourcesFile, text, str(file)).sources
    if rule is not None:
        for source in sources:
            _check_allowed(file, source, rule, file.parent)
    found = []
    for source in sources:
        try:
            complete = with_named(source, file.parent, read)
        except ConfigurationRefused as error:
            raise ConfigurationRefused(f"source of topic {source.topic}: {error}") from error
        found.append(replace(catalog.of_source(complete), file=str(file)))
    return found


def _rule_of(file: Path, rules: Sequence[SourcesRule]) -> SourcesRule | None:
    rule = next((each for each in rules if _means(each, file)), None)
    if rule is None and rules:
        raise ConfigurationRefused(f"{file}: no rule of sources.dir.rules is for this file")
    return rule


def _means(rule: SourcesRule, file: Path) -> bool:
    return any(fnmatchcase(file.name, each) for each in rule.files)


def _check_owner(path: Path, status: os.stat_result, owner: str | None) -> None:
    """Refuses a file or directory that somebody else could write: the agent reads as its own
    settings what stands there."""
    try:
        allowed = {0, os.geteuid()} if owner is None else {0, pwd.getpwnam(owner).pw_uid}
    except KeyError:
        raise ConfigurationRefused(f"sources.dir.rules: there is no user {owner}") from None
    if status.st_uid not in allowed:
        whose = "root or the agent's user" if owner is None else f"root or {owner}"
        raise ConfigurationRefused(
            f"{path} belongs to user {status.st_uid}; what is in sources.dir must belong to {whose}"
        )
    if status.st_mode & _OF_OTHERS:
        raise ConfigurationRefused(
            f"{path} can be written by others than its owner; run chmod go-w {path}"
        )


def _check_allowed(file: Path, source: SourceSettings, rule: SourcesRule, folder: Path) -> None:
    """Refuses a source that names what its file's rule does not allow."""
    if not any(fnmatchcase(source.topic, each) for each in rule.topics):
        raise _not_allowed(file, "topic", source.topic)
    further = {
        "schema": source.schema_file,
        "hash.key.location": source.hash_key_location,
        "labels.location": None if source.labels is None else source.labels.location,
    }
    allowed = [each for one in rule.paths for each in expanded(one)]
    for text in source.paths:
        if not all(any(lies_within(each, one) for one in allowed) for each in expanded(text)):
            raise _not_allowed(file, "paths", text)
    own = f"{folder.absolute()}/"
    for key, path in further.items():
        text = "" if path is None else os.path.normpath(folder.absolute() / path)
        if text and not (
            text.startswith(own) or any(matcher(each).fullmatch(text) for each in allowed)
        ):
            raise _not_allowed(file, key, text)


def _not_allowed(file: Path, key: str, text: str) -> ConfigurationRefused:
    return ConfigurationRefused(f"{file}: sources.dir.rules does not allow this file {key} {text}")
