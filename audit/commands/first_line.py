"""For each cause why a bucket is not complete, reads the first line that is missing, doubled or
different, if this line can still be read. If the command runs on the file's host, it reads the line
from the file. Otherwise it reads the line from the log of the brokers.
"""

from __future__ import annotations

import argparse
import os
import socket
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skidway.audit.commands import options
from skidway.audit.explanation.explanation import Explanation
from skidway.audit.judgement.cause import Cause
from skidway.audit.settings import AuditSettings
from skidway.audit.topic.messages import Tier
from skidway.errors import SkidwayError
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.asking import registry
from skidway.schemas.consuming.values import Values
from skidway.schemas.topic_reading import read_ranges

TEXT_BYTES_MAX = 4_096
NAMES_MAX = 10_000
READ_MAX = 3
"""The command reads lines from brokers for at most this many explanations, because each read may
have to wait for the brokers.
"""

_KINDS = {
    Cause.READ_TWICE: "doubled",
    Cause.RECORDS_DOUBLED: "doubled",
    Cause.CONTENT_DIFFERS: "differing",
}
"""The kind of the line for some causes. For all other causes, the line is missing."""
_RECORD_COLUMN = "line"


@dataclass(frozen=True, slots=True)
class FirstLine:
    """A line. kind: missing, doubled or differing. where: in words, path and byte, or topic,
    partition and offset.
    """

    kind: str
    where: str
    text: str

    def document(self) -> dict[str, Any]:
        """The line for programs."""
        return {"kind": self.kind, "where": self.where, "text": self.text}


class FirstLines:
    """Reads the first line of each explanation, and at most READ_MAX lines from brokers. inodes:
    the inodes of the files that have losses or lines that differ, by agent and file id.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        settings: AuditSettings | None,
        inodes: dict[tuple[int, int], int],
    ) -> None:
        self._args, self._settings, self._inodes = args, settings, inodes
        self._here = socket.gethostname()
        self._left = READ_MAX

    def of(self, source: Source, found: Explanation) -> FirstLine | None:
        """Returns the first line of one explanation, or None if the command cannot read it on this
        host.
        """
        kind = _KINDS.get(found.cause, "missing")
        if found.path and found.ranges and found.host == self._here:
            inode = self._inodes.get((found.agent or 0, found.file or 0))
            text = line_of_file(Path(found.path), found.ranges[0].first, inode)
            if text is not None:
                where = f"{found.path} at byte {found.ranges[0].first}"
                return FirstLine(kind, where, text)
        if not found.offsets or self._left == 0 or found.cause in (Cause.RETENTION, Cause.GAP):
            return None
        self._left -= 1
        try:
            return self._of_log(source, found, kind)
        except (SkidwayError, OSError) as error:
            print(f"note: the first missing line cannot be read: {error}", file=sys.stderr)
            return None

    def _of_log(self, source: Source, found: Explanation, kind: str) -> FirstLine | None:
        """Returns the record at the first offset of the explanation, from the topic or from its
        mirror.
        """
        wanted = found.offsets[0]
        with options.client_of(self._args, self._settings) as client:
            names = [f"{source.cluster}.{source.topic}", source.topic]
            known = client.metadata(names).topics
            topic = next((x for x in names if x in known and not known[x].error), None)
            if topic is None or found.tier is Tier.MIRROR:
                return None  # the mirror lacks the record, so its log cannot have it
            tp = TopicPartition(topic, wanted.partition)
            value = _value_at(client, tp, wanted.first)
        if value is None:
            return None
        client_of_registry, is_named = registry(self._args)
        said = Values(client_of_registry, lambda _: None, is_named=is_named).read(value)[0]
        text = said.line.decode("utf-8", "replace")
        if isinstance(said.decoded, dict) and isinstance(said.decoded.get(_RECORD_COLUMN), str):
            text = said.decoded[_RECORD_COLUMN]
        return FirstLine(kind, f"{tp} at offset {wanted.first}", text[:TEXT_BYTES_MAX])


def line_of_file(path: Path, position: int, inode: int | None) -> str | None:
    """The line that begins at a position of a file; None if the file is gone. If the inode is
    known, the function reads only a file with this inode: at the path or, after a rename, in the
    same directory."""
    for each in _candidates(path, inode):
        try:
            with each.open("rb") as file:
                known = os.fstat(file.fileno())
                if inode not in (None, known.st_ino) or not stat.S_ISREG(known.st_mode):
                    continue
                file.seek(position)
                data = file.read(TEXT_BYTES_MAX)
        except OSError:
            continue
        if data:
            return data.partition(b"\n")[0].decode("utf-8", "replace")
    return None


def _candidates(path: Path, inode: int | None) -> Iterator[Path]:
    yield path
    if inode is None:
        return
    try:
        with os.scandir(path.parent) as entries:
            for _, entry in zip(range(NAMES_MAX), entries, strict=False):
                if entry.inode() == inode and entry.name != path.name:
                    yield Path(entry.path)
    except OSError:
        return


def _value_at(client: Client, tp: TopicPartition, offset: int) -> Any:
    """The value of the first record from an offset on, as an array of one value; None if the log
    has no such record.
    """
    first = client.list_offsets({tp: EARLIEST})[tp].offset
    end = client.list_offsets({tp: LATEST})[tp].offset
    begin = max(first, offset)
    if begin >= end:
        return None
    for _, batch in read_ranges(client, {tp: (begin, begin + 1)}):
        for at, each in enumerate(batch.offsets.tolist()):
            if each >= begin:
                return batch.values.slice(at, 1)
    return None
