"""Tests that nobody who reads a file waits for a named pipe in its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skidway import settings, text_file
from skidway.agent.files import nameless
from skidway.agent.reloading.requests import is_stopped
from skidway.agent.shaping.pseudonyms import read_key
from skidway.audit.judgement import roster
from skidway.audit.output.local import LocalOutput
from skidway.broker.log import dump
from skidway.errors import SkidwayError
from skidway.files import LOCK_FILE, DirectoryLock
from skidway.regular_file import open_regular, read_regular
from skidway.zookeeper import ZookeeperSettings

READERS: dict[str, Callable[[Path], Any]] = {
    "a configuration": lambda pipe: settings.load(ZookeeperSettings, pipe),
    "a roster": roster.read_file,
    "a schema": text_file.read_text,
    "a key": read_key,
    "the lock of a program that starts": lambda pipe: DirectoryLock(pipe.parent).acquire(),
    "a part of an output": lambda pipe: LocalOutput(str(pipe.parent)).read(pipe.name),
    "an open part of an output": lambda pipe: LocalOutput(str(pipe.parent)).open(pipe.name),
    "a segment": lambda pipe: list(dump.batches(pipe)),
}


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / LOCK_FILE
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("what", READERS)
def test_a_pipe_in_the_place_of_a_file_is_refused(pipe: Path, what: str) -> None:
    """A named pipe that nobody writes into holds no program up: what reads the file says at once
    that it cannot."""
    with pytest.raises((SkidwayError, OSError), match="not a regular file"):
        READERS[what](pipe)


def test_a_pipe_in_the_place_of_a_lock_says_nothing(pipe: Path) -> None:
    """If a named pipe is in the place of an agent's lock, other commands do not wait for it, and
    take it that an agent runs whose files nobody knows."""
    assert nameless.sizes(pipe.parent) == {}
    assert not is_stopped(pipe.parent)


def test_regular_files_are_read(tmp_path: Path) -> None:
    """A regular file is read, also through a link; a directory is named as such."""
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"content"
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
