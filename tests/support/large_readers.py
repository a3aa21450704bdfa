"""Tries programs that read outputs, but are too large for `make foreign`: Spark 3.3 and 3.5, and
Trino.

`make readers` runs this program by hand. It fetches the programs into .cache/peers, and prints for
each whether it reads the rows of `every_type`. The result goes into the table in docs/loader.md,
with the date. Spark 3 needs Java 8, 11 or 17, and Trino needs Java 24 or later. The words
`spark-3.3`, `spark-3.5` and `trino` choose some of the programs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import foreign, reading, trino_reader
from support.every_type import EXPECTED, written

SPARKS = ("spark-3.3", "spark-3.5")
TRINO = "trino"


def main() -> int:
    """Tries all programs. Returns 1 if one of them reads other rows, and otherwise 0."""
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        rows = written(Path(scratch))
        for name in sys.argv[1:] or (*SPARKS, TRINO):
            if name == TRINO:
                found = trino_reader.read(rows, Path(scratch) / TRINO)
            else:
                found = reading.spark(rows, packages=foreign.packages(name))
            differences = list(_differences(found))
            wrong += len(differences)
            print(f"{name}: {'; '.join(differences) or 'every type'}")
    return int(wrong > 0)


def _differences(found: list[dict[str, Any]]) -> Iterator[str]:
    if len(found) != len(EXPECTED):
        yield f"{len(found)} rows of {len(EXPECTED)}"
        return
    for name in EXPECTED[0]:
        pairs = [(row[name], right[name]) for row, right in zip(found, EXPECTED, strict=True)]
        wrong = [each for each in pairs if each[0] != each[1]]
        if wrong:
            yield f"{name}: {wrong[0][0]!r} instead of {wrong[0][1]!r}"


if __name__ == "__main__":
    sys.exit(main())
