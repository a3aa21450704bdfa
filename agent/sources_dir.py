"""Reads the files of `sources.dir`, which several teams may write, and limits what they may say.

As with sudoers.d, the directory and each file must belong to root or to the agent's user, and
nobody else may write them; a rule of `sources.dir.rules` may name another owner of its files. With
rules, a file may name only the topics, paths and further files that its rule allows.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from skidway import settings
from skidway.agent.settings import NAMES_MAX, SourceSettings, SourcesRule
from skidway.agent.values.path_texts import expanded, lies_within, matcher
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


def sources_in(
    directory: Path, rules: Sequence[SourcesRule]
) -> Iterator[tuple[Path, list[SourceSettings]]]:
    """Yields each file in a directory, in the order of the files' names, with its sources. Raises
    ConfigurationRefused."""
    if not directory.is_dir():
        raise ConfigurationRefused(f"sources.dir: {directory} is no directory")
    _check_owner(directory, None)
    for file in sorted(directory.glob("*.yml")):
        rule = next((each for each in rules if _means(each, file)), None)
        if rule is None and rules:
            raise ConfigurationRefused(f"{file}: no rule of sources.dir.rules is for this file")
        _check_owner(file, None if rule is None else rule.owner)
        sources = settings.load(SourcesFile, file).sources
        if rule is not None:
            for source in sources:
                _check_allowed(file, source, rule, directory)
        yield file, sources


def _means(rule: SourcesRule, file: Path) -> bool:
    return any(fnmatchcase(file.name, each) for each in rule.files)


def _check_owner(path: Path, owner: str | None) -> None:
    """Refuses a file or directory that somebody else could write: the agent reads as its own
    settings what stands there."""
    try:
        status = path.stat()
        allowed = {0, os.geteuid()} if owner is None else {0, pwd.getpwnam(owner).pw_uid}
    except OSError as error:
        raise ConfigurationRefused(f"cannot read {path}: {error.strerror}") from error
    except KeyError:
        raise ConfigurationRefused(f"sources.dir.rules: there is no user {owner}") from None
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise ConfigurationRefused(f"{path} is no regular file")
    if stat.S_ISREG(status.st_mode) and status.st_size > FILE_BYTES_MAX:
        raise ConfigurationRefused(f"{path}: a file in sources.dir has at most 256 KiB")
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
