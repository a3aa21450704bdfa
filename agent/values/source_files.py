"""The files of `sources.dir`, as they were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from skidway.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A file of `sources.dir` as it was at one time. named: by path, the bytes of the schemas and
    keys that its sources name."""

    path: str
    text: bytes = field(repr=False)
    named: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file of `sources.dir` that the agent refuses, and why. is_replaced: whether the sources of
    the file's last good version are in use; if not, the agent reads none of its sources."""

    path: str
    reason: str
    is_replaced: bool

    @property
    def instead(self) -> str:
        """What the agent does instead. Has nothing of the content of files."""
        return "its last good version is in use" if self.is_replaced else "its sources are not read"

    @property
    def words(self) -> str:
        """A sentence of one line, for those who may read the file."""
        text = f"{self.path} is refused, and {self.instead}: {self.reason}"
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
