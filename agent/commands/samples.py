"""Reads the first lines of a file for `guess`, and finds out their encoding.

`guess` looks at texts in UTF-8. If the file's lines are in another encoding, this module converts
them to UTF-8, and every proposal gets the setting `encoding`. In two cases every proposal gets
`on_error: replace`, so that no line is rejected: some lines are not UTF-8 and the text does not
look like windows-1252 either; or some lines are not in the encoding that the user names.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.agent.parsing import containers
from skidway.agent.parsing.byte_order import (
    UTF_8,
    UTF_16,
    UTF_16BE,
    UTF_16LE,
    WIDE,
    mark_of,
    order_of,
)
from skidway.agent.parsing.framing import READ_BYTES, LineFramer
from skidway.agent.parsing.lines import cut
from skidway.agent.parsing.runtimes import CRI, DOCKER
from skidway.agent.settings import SourceSettings
from skidway.agent.values import terminals
from skidway.agent.values.path_texts import literal
from skidway.errors import SkidwayError, UsageError
from skidway.settings.spec import specs

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

WINDOWS: Final = "windows-1252"
CONTAINER_LEAST: Final = 0.5
"""A file is a container's log if more than this share of its lines is in the format of a container
runtime.
"""

FOREIGN_MOST: Final = 0.35
"""In a text in a western language, at most this share of the letters is not ASCII. In other
languages, hardly any letter is ASCII.
"""

MIXED_MOST: Final = 0.1
"""Suppose that some lines of a file are not UTF-8. If, of the lines that are not ASCII, more than
this share is UTF-8, the file has lines in two encodings.
"""

TOPIC_CHARACTERS_MAX: Final = 100

_POD = re.compile(
    r"(?P<root>.*/pods)/(?P<namespace>[^/_]+)_[^/_]+_[^/]*/(?P<container>[A-Za-z0-9._-]+)/[^/]+$"
)
_LINK = re.compile(
    r"(?P<root>.*/containers)/[^/_]+_(?P<namespace>[^/_]+)_(?P<container>[A-Za-z0-9.-]+)"
    r"-[0-9a-f]{64}\.log$"
)
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"(\xb5/\xfd")
_NOT_OF_A_TOPIC = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Sample:
    """The first lines of a file. data: the bytes of these lines. texts: the same lines in UTF-8 and
    without codes for terminals, as the source's parser reads them. further: the following lines in
    the same form, up to the end of the file's first MiB. more: settings that every proposal for
    this file has.
    """

    path: Path
    data: bytes
    texts: list[bytes]
    further: list[bytes] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def strings(self) -> list[str]:
        """The texts of the first lines."""
        return strings(self.texts)

    @property
    def filled(self) -> list[bytes]:
        """The texts of the first lines that are not blank. Parsers of JSON, csv and logfmt leave
        out blank lines."""
        return [text for text in self.texts if text.strip()] or self.texts

    @property
    def topic(self) -> str:
        """A name for the topic: the name of the container or of the file."""
        if self.pod is not None:
            return self.pod["container"]
        name = _NOT_OF_A_TOPIC.sub("-", self.path.name.split(".")[0]).strip("-._")
        return name[:TOPIC_CHARACTERS_MAX] or "logs"

    @property
    def pod(self) -> re.Match[str] | None:
        """The match of the file's path, with the groups `namespace` and `container`; None if the
        file is no container's log, or if kubelet gives its path neither to a log nor to a link to a
        log.
        """
        if self.more.get("container") != CRI:
            return None
        return _POD.search(str(self.path)) or _LINK.search(str(self.path))

    @property
    def paths(self) -> list[str]:
        """The patterns for the setting `paths`. For a container's log, the pattern matches the logs
        of this container in all pods of its namespace.
        """
        pod = self.pod
        if pod is None:
            return [literal(str(self.path))]
        root = literal(pod["root"])
        if pod.re is _LINK:
            return [f"{root}/*_{pod['namespace']}_{pod['container']}-*.log"]
        return [f"{root}/{pod['namespace']}_*/{pod['container']}/*.log"]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of a proposal should know about `paths`."""
        pod = self.pod
        if pod is None or pod.re is not _LINK:
            return ()
        return (
            f"`paths` matches the logs of this container in all pods, but also those of containers "
            f"whose names begin with {pod['container']}-.",
        )

    def source(self, **settings: Any) -> SourceSettings:
        """Returns a source for this file, with these settings."""
        return SourceSettings(topic=self.topic, paths=self.paths, **self.more, **settings)

    def block(self, **settings: Any) -> dict[str, Any]:
        """Returns a source for this file, with these settings, in the form of agent.yml."""
        return {"topic": self.topic, "paths": self.paths, **self.more, **settings}


def strings(texts: Sequence[bytes]) -> list[str]:
    """Returns the texts as strings."""
    return [text.decode("utf-8", "replace") for text in texts]


def read(path: Path, lines_max: int, encoding: str | None = None) -> Sample:
    """Reads the first MiB of a file. lines_max: the sample has at most this many lines. encoding:
    how the lines are encoded; None if this function has to find it out. Raises SkidwayError if the
    file cannot be read, is empty or compressed, and UsageError if the encoding is unknown.
    """
    known = specs(SourceSettings)["encoding"].shape.choices
    if encoding is not None and encoding not in known:
        raise UsageError(f"--encoding: {encoding!r} is none of {', '.join(map(str, known))}.")
    data = _some_bytes(path)
    if encoding is None and data.startswith((mark_of(UTF_16LE), mark_of(UTF_16BE))):
        encoding = UTF_16
    order = order_of(data) if encoding == UTF_16 else encoding or UTF_8
    framer = LineFramer(order)
    if len(data) == READ_BYTES:
        data = data[: framer.whole_records_end(data)] or data
    data = data[: framer.first_lines_end(data)]
    frames = framer.frame(data, np.array([len(data)]))
    lines = cut(data, frames)
    kind = None if encoding in WIDE else _container(lines[:lines_max])
    texts, further = (_texts(part, kind) for part in (lines[:lines_max], lines[lines_max:]))
    if kind is None:
        texts[0] = texts[0].removeprefix(mark_of(order))
    more: dict[str, Any] = {} if kind is None else {"container": kind}
    if encoding is None:
        more |= _guessed_encoding(texts, is_json=kind == DOCKER)
        order = more.get("encoding", UTF_8)
    else:
        more["encoding"] = encoding
        if any(_decoded(text, order) is None for text in (*texts, *further)):
            more["on_error"] = "replace"
    end = int(frames.end[min(lines_max, len(frames)) - 1])
    return Sample(path, data[:end], _as_utf8(texts, order), _as_utf8(further, order), more)


def first_bytes(path: Path, most: int) -> bytes:
    """Returns at most this many of a file's first bytes. Raises SkidwayError if it cannot be read,
    or is no regular file: nobody may ever write into a FIFO."""
    try:
        with open(os.open(path, _FLAGS), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SkidwayError(f"cannot read {path}: it is no regular file")
            return file.read(most)
    except OSError as error:
        raise SkidwayError(f"cannot read {path}: {error.strerror}") from error


def _some_bytes(path: Path) -> bytes:
    data = first_bytes(path, READ_BYTES)
    if not data:
        raise SkidwayError(f"{path} is empty; guess needs some lines")
    if data.startswith(_COMPRESSED):
        raise SkidwayError(f"{path} is compressed; decompress it for guess")
    return data


def _container(lines: pa.BinaryArray) -> str | None:
    for kind in (CRI, DOCKER):
        if containers.unwrap(kind, lines).is_good.mean() > CONTAINER_LEAST:
            return kind
    return None


def _texts(lines: pa.BinaryArray, kind: str | None) -> list[bytes]:
    if kind is None or not len(lines):
        found: list[bytes] = lines.to_pylist()
        return found
    texts: list[bytes] = containers.whole_texts(containers.unwrap(kind, lines)).to_pylist()
    return texts


def _decoded(text: bytes, encoding: str) -> bytes | None:
    try:
        return text.decode(encoding).encode()
    except ValueError:
        return None


def _as_utf8(texts: Sequence[bytes], encoding: str) -> list[bytes]:
    found = [
        text.decode(encoding, "replace").encode("utf-8", "replace") if known is None else known
        for text, known in ((text, _decoded(text, encoding)) for text in texts)
    ]
    plain, changed = terminals.plain(pa.array(found, pa.binary()).view(pa.string()))
    return found if changed is None else plain.view(pa.binary()).to_pylist()


def _guessed_encoding(texts: Sequence[bytes], *, is_json: bool) -> dict[str, str]:
    """Returns the settings for the encoding of texts (`encoding` or `on_error`); empty if all texts
    are UTF-8. is_json: whether a container runtime wrote the texts as JSON, which is always UTF-8.
    """
    foreign = [text for text in texts if not text.isascii()]
    odd = [text for text in foreign if _decoded(text, UTF_8) is None]
    if not odd:
        return {}
    is_mixed = len(foreign) - len(odd) > MIXED_MOST * len(foreign)
    if not is_json and not is_mixed and _is_western(odd):
        return {"encoding": WINDOWS}
    return {"on_error": "replace"}


def _is_western(texts: Sequence[bytes]) -> bool:
    try:
        whole = b"\n".join(texts).decode(WINDOWS)
    except UnicodeDecodeError:
        return False
    letters = [char for char in whole if char.isalpha()]
    foreign = sum(not char.isascii() for char in letters)
    has_controls = any(not char.isprintable() and char not in "\n\t\r\xa0" for char in whole)
    return bool(letters) and foreign <= FOREIGN_MOST * len(letters) and not has_controls
