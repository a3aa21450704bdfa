"""Keeps the last good version of each file of `sources.dir` in the agent's state.

    <state.dir>/sources/<hash of the path>   JSON: the file, and the schemas and keys that it names

A file that a team has broken is no wish to stop reading: without its sources, an agent that starts
would declare their unread lines lost, and seal their topics. So the last good version is used
instead, and it needs nothing that the team could take away. It may have a key, so only the agent's
user may read it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from skidway.agent.settings import AgentSettings
from skidway.agent.values.source_files import Version
from skidway.errors import SkidwayError, StateRefused
from skidway.files import fsync_directory, make_directory, write_atomically
from skidway.regular_file import read_regular

FOLDER: Final = "sources"
_EVERY_BYTE: Final = "latin-1"


def last_good(state_dir: Path, path: str) -> Version | None:
    """Returns the last good version of the file at a path; None if there was none. Raises
    StateRefused."""
    kept = _place(state_dir, path)
    try:
        document = json.loads(read_regular(kept))
        named = {name: text.encode(_EVERY_BYTE) for name, text in document["named"].items()}
        text = document["text"].encode(_EVERY_BYTE)
        return Version(document["path"], text, named)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StateRefused(f"cannot read {kept}: {error.strerror}") from error
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise StateRefused(f"{kept} is damaged; mend {path}, and remove this file") from error


def keep(settings: AgentSettings) -> None:
    """Makes the files of these settings the last good versions, durably, and forgets files that are
    gone. Raises SkidwayError."""
    folder = settings.state_dir / FOLDER
    if not settings.versions and not folder.exists():
        return
    make_directory(folder)
    try:
        for version in settings.versions:
            _write(_place(settings.state_dir, version.path), version)
        paths = {each.path for each in settings.versions} | {x.path for x in settings.refused}
        _forget_others(folder, {_place(settings.state_dir, each) for each in paths})
    except OSError as error:
        raise SkidwayError(f"cannot write into {folder}: {error.strerror}") from error


def _place(state_dir: Path, path: str) -> Path:
    name = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
    return state_dir / FOLDER / name[:32]


def _write(place: Path, version: Version) -> None:
    named = {name: data.decode(_EVERY_BYTE) for name, data in version.named.items()}
    text = version.text.decode(_EVERY_BYTE)
    document = {"path": version.path, "text": text, "named": named}
    data = json.dumps(document).encode()
    if not place.exists() or read_regular(place) != data:
        write_atomically(place, data, mode=0o600)


def _forget_others(folder: Path, kept: Iterable[Path]) -> None:
    gone = set(folder.iterdir()) - set(kept)
    for each in gone:
        each.unlink()
    if gone:
        fsync_directory(folder)
