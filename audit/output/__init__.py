"""Reads the loader's output, which is a tree of files: rows, manifests, and files of the loader's
state.

    Output           the interface of every kind of output; recount and loader read only through
                     this interface
    OutputConnection how a program reaches an output; all outputs are opened here, so whatever a
                     connection needs is added there
    hadoop_client    how a program is known to Hadoop, and the settings that say so
    local            LocalOutput, a directory of this machine
    hdfs             HdfsOutput, a folder of HDFS, through hdfs-native
    row_file         the rows of one Parquet file

Paths are relative to the output's root, with `/` between their parts. A missing file or directory
is not an error: the methods of `Output` return None or an empty result. For every other error of
the file system, they raise `StoreFailed` or `StoreUnreachable`, whose message is one sentence. This
package only reads. The loader writes through loader/store, which is built on this package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from skidway.audit.output.hadoop_client import NO_SETTINGS, HadoopClient
from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable

HADOOP_SCHEMES: Final = ("hdfs://", "viewfs://")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class StoreFailed(SkidwayError):
    """The output refused an operation, or its data is damaged; the message says which operation
    failed, and why."""


class StoreUnreachable(Unreachable):
    """The output's server did not answer, or refused an operation that it may accept later."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file: its path below the root and its length in bytes."""

    path: str
    length: int


class Output(Protocol):
    """A tree of files below a root. Other programs may change the files while this program reads
    them."""

    @property
    def url(self) -> str:
        """The URL or path of the root: absolute, without a trailing slash."""

    def length(self, path: str) -> int | None:
        """The length of a file in bytes; None if the file does not exist."""

    def read(self, path: str) -> bytes | None:
        """The content of a whole file; None if the file does not exist."""

    def open(self, path: str) -> IO[bytes] | None:
        """Opens a file; None if it does not exist. The caller has to close it (a with block)."""

    def files(self, path: str) -> Iterator[FileEntry]:
        """Yields every file below a directory, at every depth; none if the directory does not
        exist."""

    def names(self, path: str) -> list[str]:
        """The names of the files and directories directly in a directory, sorted; empty if the
        directory does not exist."""


@dataclass(frozen=True, slots=True)
class OutputConnection:
    """How a program reaches an output. url: `hdfs://host:port/folder` (see hdfs.address for other
    forms), or a directory, as a path or as `file:///path`. hadoop: how the program is known to the
    cluster."""

    url: str
    hadoop: HadoopClient = NO_SETTINGS

    @property
    def is_hdfs(self) -> bool:
        """Whether the output is on HDFS."""
        return self.url.startswith(HADOOP_SCHEMES)

    @property
    def directory(self) -> Path | None:
        """The directory of this machine; None if the URL names something else, or nothing."""
        if self.url.startswith("file:///"):
            return Path(self.url.removeprefix("file://"))
        return None if not self.url or _SCHEME.match(self.url) else Path(self.url)

    def output(self) -> Output:
        """Opens the output for reading. Raises ConfigurationRefused if the URL has none of these
        forms, if the directory does not exist, or if the settings for HDFS are wrong. Raises
        StoreFailed or StoreUnreachable if the HDFS client cannot be made.
        """
        url = self.url
        if self.is_hdfs:
            from skidway.audit.output.hdfs.output import HdfsOutput

            return HdfsOutput(self)
        from skidway.audit.output.local import LocalOutput

        if not url:
            raise ConfigurationRefused(
                "--output: it has to name a directory, or hdfs://HOST:PORT/DIR"
            )
        if self.directory is None:
            raise ConfigurationRefused(f"--output {url}: only directories and hdfs:// can be read")
        if not self.directory.is_dir():
            raise ConfigurationRefused(f"--output {url}: there is no such directory")
        return LocalOutput(str(self.directory))
