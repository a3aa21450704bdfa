"""The loader's output, for reading: rows, manifests and side files in a tree of files.

    Output       what every kind offers; recount and loader read through nothing else
    local        LocalOutput, a directory of this machine
    hdfs         HdfsOutput, a folder of HDFS, through hdfs-native

Paths are relative to the root, parts joined by `/`. Absence is an answer: None, or nothing. Every
outside error is raised as `StoreFailed` or `StoreUnreachable` with one sentence. Only the loader
writes (loader/store, built on this package).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable

HDFS_SCHEME: Final = "hdfs://"


class StoreFailed(SkidwayError):
    """The output refused an operation; the sentence says which and why."""


class StoreUnreachable(Unreachable):
    """The output's server did not answer."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file: its path below the root and its length in bytes."""

    path: str
    length: int


class Output(Protocol):
    """A tree of files that others may change meanwhile."""

    @property
    def url(self) -> str:
        """The root, in a form that names it for good: absolute, without a trailing slash."""

    def length(self, path: str) -> int | None:
        """Bytes of a file; None when it is not there."""

    def read(self, path: str) -> bytes | None:
        """A whole file; None when it is not there."""

    def open(self, path: str) -> IO[bytes] | None:
        """A file to be read in pieces, for a with block; None when it is not there."""

    def files(self, path: str) -> Iterator[FileEntry]:
        """Every file below a directory, one by one; none when it is not there."""

    def names(self, path: str) -> list[str]:
        """Names directly in a directory, in order; none when it is not there."""


def open_output(url: str) -> Output:
    """The output at `hdfs://host:port/folder` or in a directory. Raises ConfigurationRefused."""
    if url.startswith(HDFS_SCHEME):
        from skidway.audit.output.hdfs import HdfsOutput

        return HdfsOutput(url)
    from skidway.audit.output.local import LocalOutput

    if not url:
        raise ConfigurationRefused("--output: it has to name a directory, or hdfs://HOST:PORT/DIR")
    if "://" in url:
        raise ConfigurationRefused(f"--output {url}: only directories and hdfs:// can be read")
    if not Path(url).is_dir():
        raise ConfigurationRefused(f"--output {url}: there is no such directory")
    return LocalOutput(url)
