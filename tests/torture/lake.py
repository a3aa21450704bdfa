"""The loader's outputs: which one is loaded into, what lies aside, and the lines in all of them."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from loader import layout

_NUMBER = re.compile(rb"(?<!\d)(\d{10})(?!\d)")
"""Of a line, also within an Avro record: see torture.hosts."""


class Lake:
    """Outputs in one folder. It owns which is the one of now, and which rows were set aside."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._chance = folder, random.Random(f"{seed} lake")
        self._begun = 1
        self._changes = 0
        self._kept: list[Path] = []

    @property
    def output(self) -> Path:
        """The one that is loaded into."""
        return self._folder / f"rows-{self._begun}"

    def move(self) -> Path:
        """Another output is loaded into from now on; the one before."""
        before = self.output
        self._begun += 1
        return before

    def set_aside(self, topic: str, *, keep: bool) -> None:
        """A topic's rows and what the loader knows of it; `keep`: they count as rows still."""
        aside = self._folder / f"aside-{self._changes}"
        for name in (topic, layout.state(topic)):
            if (self.output / name).exists():
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                (self.output / name).rename(aside / name)
        self._changes += 1
        if keep:
            self._kept.append(aside)

    def delete(self, topic: str) -> Callable[[], None]:
        """One file of rows is gone; the answer brings it back, if its output is still the one."""
        files = sorted((self.output / topic).rglob("*.parquet"))
        if not files:
            return lambda: None
        changes, begun, file = self._changes, self._begun, self._chance.choice(files)
        hidden = self._folder / "deleted"
        with suppress(FileNotFoundError):
            file.rename(hidden)

        def back() -> None:
            if (self._changes, self._begun) == (changes, begun) and hidden.exists():
                hidden.rename(file)

        return back

    def rows(self, topic: str) -> list[int]:
        """The numbers of the lines in the topic's rows."""
        folders = [each / topic for each in (self.output, *self._kept)]
        return [int(x) for folder in folders for x in _cells(folder, "number")]

    def rejects(self, topic: str) -> list[int]:
        """Of what the agents set apart, and of what the loader did."""
        folders = [each / f"{topic}.rejected" for each in (self.output, *self._kept)]
        found = [x for folder in folders for x in _cells(folder, "line")]
        for each in (self.output, *self._kept):
            for name in (topic, f"{topic}.rejected"):
                found += _cells(each / layout.state(name) / "rejects", "value")
        return [int(number[1]) for x in found if (number := _NUMBER.search(_bytes(x)))]


def _cells(folder: Path, column: str) -> Iterator[object]:
    for path in sorted(folder.rglob("*.parquet")):
        table: pa.Table = pq.ParquetFile(path).read(columns=[column])
        yield from table.column(0).to_pylist()


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def copied(source: Path, target: Path) -> None:
    """All below a folder, in the place of what lies below another one."""
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    shutil.copytree(source, target, dirs_exist_ok=True)
