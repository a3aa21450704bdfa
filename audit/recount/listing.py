"""Finds files in the directories of a topic that do not belong to the output: no manifest names
them, or a manifest removed them.

The module lists the directories whose files other programs read as rows: `<topic>`, and the
directory of the loader's rejects. Like these programs, the module skips names that begin with `.`,
and names that begin with `_` and have no `=`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import IO, Final

from skidway.audit.output import Output, StoreFailed, row_file
from skidway.audit.recount import row_files
from skidway.audit.recount.faults import Fault, Kind, Whereabouts, by_name
from skidway.audit.recount.manifests import STATE
from skidway.audit.recount.named_files import NamedFile, NamedFiles

LIKE_MAX: Final = 10
"""A file that no manifest names may be a copy of a file that a manifest names. To find this out,
the recount compares the file with at most this many named files of the same length.
"""

_UNFINISHED: Final = "._COPYING_"
"""While Hadoop's own tools copy a file, the name of the copy has this ending."""

_ROWS = re.compile(r"/dt=[^/]+/hour=[^/]+/(?:part-\d+-\d+-\d+|rows-\d+-\d+)\.parquet$")


def has_rows(output: Output, topic: str) -> bool:
    """Whether a loader has put rows into the topic's directory."""
    return any(_ROWS.search(entry.path) for entry in output.files(topic))


def look(output: Output, topic: str, named: NamedFiles) -> None:
    """Lists every file of the topic that programs read as rows, and stores in `named` which of
    these files do not belong to the output.
    """
    for folder in (topic, f"{STATE}/{topic}/rejects"):
        for entry in output.files(folder):
            if _is_read(entry.path.removeprefix(folder)):
                named.found(entry)


def faults(output: Output, named: NamedFiles) -> Iterator[Fault]:
    """Yields a fault for each file that `look` has found and that does not belong to the output,
    with one exception: while a load is still moving its new files to their final paths, an old file
    that the load replaces is no fault, because the loader deletes the old files before it moves the
    last new file. Raises StoreFailed and StoreUnreachable.
    """
    is_moving = cache(lambda load: _is_staged(output, named, load))
    for entry in named.surplus():
        known = named.named(entry.path)
        if known and is_moving(known[0].removed):
            continue
        fault = _left_over(known[0]) if known else _unnamed(entry.path)
        try:
            opened = output.open(entry.path)
            if opened is None:
                continue  # the file was deleted meanwhile
            with opened:
                yield _with_details(fault, opened, named)
        except StoreFailed:
            yield fault


def _left_over(file: NamedFile) -> Fault:
    words = f"load {file.removed} removed {file.path}, but the file is still there; its rows are "
    words += "there twice for who reads the directory"
    return Fault(Kind.TWICE, file.path, words, by_name(file.path))


def _unnamed(path: str) -> Fault:
    words = f"{path} is named by no manifest, but who reads the directory takes it"
    return Fault(Kind.UNNAMED, path, words, by_name(path))


def _is_staged(output: Output, named: NamedFiles, load: int | None) -> bool:
    """Whether files of a load are still in the staging directory. When a load moves its last file
    out of the staging directory, it has already deleted all files that it replaces. If such a file
    still exists afterwards, this is a fault. So a caller must call this function first, and then
    check whether the files exist.
    """
    return any(output.length(path) is not None for path in named.staged(load))


def _with_details(fault: Fault, opened: IO[bytes], named: NamedFiles) -> Fault:
    if fault.kind is Kind.UNNAMED:
        fault = _compared(fault, row_files.measure(opened), named)
    return replace(fault, place=_place(opened, fault.place))


def _compared(fault: Fault, has: row_files.Bytes, named: NamedFiles) -> Fault:
    kind, words = fault.kind, fault.what
    for like in named.of_length(has.length, LIKE_MAX):
        if like.crc32c == has.crc32c:
            kind = Kind.TWICE
            words = f"{fault.path} is named by no manifest; it is a copy of {like.path}, whose "
            words += f"{like.rows} rows are there twice for who reads the directory"
    return replace(fault, kind=kind, what=words)


def _place(opened: IO[bytes], place: Whereabouts) -> Whereabouts:
    opened.seek(0)
    try:
        return row_files.whereabouts(opened, place.hour)
    except row_file.UNREADABLE:
        return place


def _is_read(path: str) -> bool:
    parts = [part for part in path.split("/") if part]
    hidden = (part.startswith(".") or (part[:1] == "_" and "=" not in part) for part in parts)
    return not any(hidden) and not path.endswith(_UNFINISHED)
