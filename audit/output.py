"""The loader's output as a reader sees it: a directory of this machine, or a folder of HDFS."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import IO, Any, Protocol, cast
from urllib.parse import urlsplit

from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable

HDFS_SCHEME = "hdfs://"

RETRIES = {"dfs.client.failover.max.attempts": "8", "dfs.client.failover.sleep.max.millis": "3000"}
"""About 20 s without an answer before a read fails; the client's own default is 3 minutes."""


class OutputUnreadable(SkidwayError):
    """A file or directory of the output cannot be read; the sentence says which and why."""


class Output(Protocol):
    """Paths are relative to the root, parts joined by `/`."""

    def names(self, path: str) -> list[str]:
        """Names in a directory, sorted; none where there is no such directory."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        ...

    def read(self, path: str) -> bytes:
        """A small file. Raises OutputUnreadable."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """A file to be read in pieces. Raises OutputUnreadable."""
        ...


def open_output(url: str) -> Output:
    """The output at `hdfs://host:port/folder` or in a directory. Raises ConfigurationRefused."""
    if url.startswith(HDFS_SCHEME):
        return HdfsOutput(url)
    if "://" in url:
        raise ConfigurationRefused(f"--output {url}: only directories and hdfs:// can be read")
    if not Path(url).is_dir():
        raise ConfigurationRefused(f"--output {url}: there is no such directory")
    return LocalOutput(Path(url))


class LocalOutput:
    """A directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, path: str) -> list[str]:
        """See Output."""
        try:
            return sorted(entry.name for entry in (self._root / path).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise OutputUnreadable(f"cannot list {self._root / path}: {error}") from error

    def exists(self, path: str) -> bool:
        """See Output."""
        return (self._root / path).is_file()

    def read(self, path: str) -> bytes:
        """See Output."""
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise OutputUnreadable(f"cannot read {self._root / path}: {error}") from error

    def open(self, path: str) -> IO[bytes]:
        """See Output."""
        try:
            return (self._root / path).open("rb")
        except OSError as error:
            raise OutputUnreadable(f"cannot read {self._root / path}: {error}") from error


class HdfsOutput:
    """A folder of HDFS, through hdfs-native."""

    def __init__(self, url: str) -> None:
        import hdfs_native

        parts = urlsplit(url)
        if not parts.netloc:
            raise ConfigurationRefused(
                f"--output {url}: name the NameNode, hdfs://host:port/folder"
            )
        self._server = HDFS_SCHEME + parts.netloc
        self._root = "/" + parts.path.strip("/")
        self._client: Any = hdfs_native.Client(self._server, RETRIES)

    def names(self, path: str) -> list[str]:
        """See Output."""
        try:
            found = list(self._client.list_status(self._at(path), recursive=False))
        except FileNotFoundError:
            return []
        except Exception as error:
            raise self._unreachable(path, error) from error
        return sorted(posixpath.basename(status.path) for status in found)

    def exists(self, path: str) -> bool:
        """See Output."""
        try:
            return not self._client.get_file_info(self._at(path)).isdir
        except FileNotFoundError:
            return False
        except Exception as error:
            raise self._unreachable(path, error) from error

    def read(self, path: str) -> bytes:
        """See Output."""
        with self.open(path) as file:
            return file.read()

    def open(self, path: str) -> IO[bytes]:
        """See Output."""
        try:
            return cast("IO[bytes]", self._client.read(self._at(path)))
        except FileNotFoundError as error:
            raise OutputUnreadable(f"{self._server}{self._at(path)} is not there") from error
        except Exception as error:
            raise self._unreachable(path, error) from error

    def _at(self, path: str) -> str:
        return posixpath.join(self._root, path) if path else self._root

    def _unreachable(self, path: str, error: Exception) -> Unreachable:
        return Unreachable(f"cannot read {self._server}{self._at(path)}: {error}")
