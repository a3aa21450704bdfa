"""The loader's outputs, and the lines in all of them. Before the loader loads a topic again, the
simulated operator moves the topic's old rows out of the output ("sets them aside")."""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from skidway.loader.state import layout
from torture.disks import FILLER
from torture.hosts import COPY, END

_NUMBER = re.compile(rb"(?<!\d)(\d{10})(?=\D|\d?x* \.)")
"""Finds the number of a line in the text of a rejected line, or in an Avro datum. In a datum, the
length byte of the field `text` follows the number, and this byte may look like a digit."""


class Row(NamedTuple):
    """A row in the outputs: the number of its line, whether the row has the end of the line, and
    whether the agent read the line from a copy of a log."""

    number: int
    is_whole: bool
    is_copy: bool


class Lake:
    """All outputs of the loader, in one folder. Knows the current output and the folders with rows
    that were set aside."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._chance = folder, random.Random(f"{seed} lake")
        self._begun = 1
        self._changes = 0
        self._kept: list[Path] = []
        self._gone: dict[Path, set[int]] = {}

    @property
    def output(self) -> Path:
        """The output into which the loader loads now."""
        return self._folder / f"rows-{self._begun}"

    def move(self) -> Path:
        """Begins a new output for all later loads. Returns the previous output."""
        before = self.output
        self._begun += 1
        self._gone.clear()
        return before

    def set_aside(self, topic: str, *, keep: bool) -> None:
        """Moves a topic's rows and the loader's state of the topic out of the current output. If
        `keep` is true, the method `rows` still returns these rows."""
        aside = self._folder / f"aside-{self._changes}"
        for name in (topic, layout.state(topic)):
            if (self.output / name).exists():
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                (self.output / name).rename(aside / name)
        self._changes += 1
        below = self.output / topic
        self._gone = {x: y for x, y in self._gone.items() if below not in x.parents}
        if keep:
            self._kept.append(aside)

    def delete(self, topic: str) -> Callable[[], bool]:
        """Moves one of the topic's Parquet files out of the output. The returned function moves the
        file back. It returns False if the file system does not allow the move now. If rows were set
        aside, a new output was begun, or the loader replaced the file in the meantime, the function
        moves nothing and returns True."""
        hidden = self._folder / f"deleted-{time.time_ns()}"
        files = sorted((self.output / topic).rglob("*.parquet"))
        changes, begun, file = self._changes, self._begun, self._chance.choice([*files, hidden])
        # The loader may be moving the file at this moment, or the file system may be read-only.
        with suppress(OSError):
            numbers = {int(str(x)) for x in _cells(file, "number")}
            file.rename(hidden)
            self._gone[file] = numbers

        def back() -> bool:
            with suppress(OSError):
                if (self._changes, self._begun) == (changes, begun) and hidden.exists():
                    if not self._is_removed(topic, file):
                        hidden.rename(file)
                    del self._gone[file]
                return True
            return False

        return back

    @property
    def gone(self) -> set[int]:
        """The numbers of the lines in the Parquet files that the current output lacks because
        `delete` has moved them away."""
        return {number for numbers in self._gone.values() for number in numbers}

    def marked(self, topic: str) -> set[int]:
        """The starts, in ms since 1970, of the topic's hours that have a file `_SUCCESS` in the
        current output."""
        found = (self.output / topic).glob("dt=*/hour=*/_SUCCESS")
        hours = (layout.hour_of(str(path.relative_to(self.output))) for path in found)
        return {layout.hour_number(hour) * layout.HOUR_MS for hour in hours}

    def replaced(self, topic: str) -> int:
        """How many files of the topic the loader has replaced by rewritten files."""
        return sum(map(len, chain(*map(_removed, self._folders(layout.state(topic))))))

    def rows(self, topic: str) -> list[Row]:
        """Returns one Row for each of the topic's rows, and one for each record that the loader
        rejected."""
        found = [Row(number, True, False) for number in self._set_apart(topic)]
        for folder in self._folders(topic):
            columns = (_cells(folder, column) for column in ("number", "text", "_file"))
            for number, text, file in zip(*columns, strict=True):
                found.append(Row(int(number), text.endswith(END), COPY in file))
        return found

    def rejects(self, topic: str) -> list[int]:
        """The numbers of the lines in the topic's loaded rejects (`<topic>.rejected`). Lines from
        copies of logs are left out."""
        name, found = f"{topic}.rejected", self._set_apart(f"{topic}.rejected")
        for folder in self._folders(name):
            for line, path in zip(*(_cells(folder, x) for x in ("line", "path")), strict=True):
                if COPY not in path:
                    found.append(_number(line))
        return found

    def _is_removed(self, topic: str, file: Path) -> bool:
        """Whether a manifest says that the rows of this file are now in another file. This can
        happen if the loader read the file before `delete` moved it away."""
        path = str(file.relative_to(self.output))
        return any(path in removed for removed in _removed(self.output / layout.state(topic)))

    def _folders(self, name: str) -> list[Path]:
        return [each / name for each in (self.output, *self._kept)]

    def _set_apart(self, topic: str) -> list[int]:
        folders = self._folders(f"{layout.state(topic)}/rejects")
        return [_number(x) for folder in folders for x in _cells(folder, "value")]


def _removed(folder: Path) -> list[list[str]]:
    """For each manifest in the folder, the paths of the files that the manifest lists as
    removed."""
    return [json.loads(each.read_bytes()).get("removed", []) for each in folder.glob("*.json")]


def _cells(folder: Path, column: str) -> Iterator[Any]:
    """The values of a column in a Parquet file, or in all Parquet files below a folder."""
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.parquet")):
        table: pa.Table = pq.ParquetFile(path).read(columns=[column])
        yield from table.column(0).to_pylist()


def _number(value: str | bytes) -> int:
    """Returns the line number in a value, or -1 if the value has no line number."""
    found = _NUMBER.search(value if isinstance(value, bytes) else value.encode())
    return int(found[1]) if found else -1


def copied(source: Path, target: Path) -> None:
    """Replaces the content of the target folder by a copy of the source folder's content. Omits
    what fills a disk, because a copy that is put back later would fill the disk for good."""
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(FILLER), dirs_exist_ok=True)
