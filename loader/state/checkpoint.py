"""Writes and reads checkpoints. A checkpoint lists the files of rows and of rejects that an output
has after a load. The checkpoint replaces the manifests up to this load, so that nobody has to read
all manifests since the first one.

    _skidway/<topic>/checkpoints/<load as 20 digits>-<oldest as 20 digits>.jsonl

    {"format": 1, "topic": "dc1.hdfs-logs", "load": 1300, "files": 2, "crc32c": of the other lines}
    {"file": {... as in a manifest ...}, "load": 7, "schema_id": 12, "bucket_ms": 60000}
    {"file": {...}, "load": 1299, "schema_id": 12, "bucket_ms": 60000}

`<oldest>` is the number of the oldest load whose manifest is kept; manifests with lower numbers may
be gone (chain.py). This number is in the name of the file, so that a program that lists the
directory knows the number without reading the file. Only manifests commit loads. A checkpoint
contains only facts from the manifests up to its load. So it does not matter which loader writes the
checkpoint, or whether two loaders write it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import google_crc32c

from skidway.errors import StateRefused
from skidway.loader.state import layout
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import DataFile
from skidway.loader.state.operations import Names, Read, Steps

FORMAT: Final = 1


class Checkpoint(NamedTuple):
    """The numbers `load` and `oldest` in the name of a checkpoint (see the module's docstring)."""

    load: int
    oldest: int


def checkpoints(topic: str) -> Steps[list[Checkpoint]]:
    """Returns all checkpoints of a topic, in the order of their loads."""
    names: list[str] = yield Names(layout.checkpoints(topic))
    found = map(layout.checkpoint_numbers, names)
    return sorted(Checkpoint(*each) for each in found if each)


def read(topic: str, checkpoint: Checkpoint) -> Steps[dict[str, LiveFile] | None]:
    """Returns the files that a checkpoint lists, by path, or None if the checkpoint is gone. Raises
    StateRefused if the checkpoint is damaged."""
    path = layout.checkpoint(topic, *checkpoint)
    data: bytes | None = yield Read(path)
    if data is None:
        return None
    try:
        return decode(data, checkpoint.load)
    except (ValueError, TypeError, KeyError) as error:
        raise StateRefused(f"the checkpoint {path} is damaged: {error}") from error


def encode(topic: str, load: int, files: Mapping[str, LiveFile]) -> bytes:
    """Returns the content of a checkpoint. The same files always result in the same bytes."""
    lines = b"".join(_line(asdict(files[path])) for path in sorted(files))
    head = {"format": FORMAT, "topic": topic, "load": load, "files": len(files)}
    return _line(head | {"crc32c": google_crc32c.value(lines)}) + lines


def decode(data: bytes, load: int) -> dict[str, LiveFile]:
    """Returns the files that the checkpoint `data` lists, by path. Raises ValueError, TypeError or
    KeyError if `data` is no checkpoint of this load."""
    first, _, lines = data.partition(b"\n")
    head = json.loads(first)
    if head["format"] != FORMAT or head["load"] != load:
        raise ValueError(f"it is no checkpoint of load {load} in format {FORMAT}")
    if google_crc32c.value(lines) != head["crc32c"]:
        raise ValueError("its CRC-32C is another one")
    files = {each.file.path: each for each in _files(lines.splitlines())}
    if len(files) != head["files"]:
        raise ValueError(f"it has {len(files)} files instead of {head['files']}")
    return files


def _files(lines: Iterable[bytes]) -> Iterable[LiveFile]:
    for line in lines:
        content: dict[str, Any] = json.loads(line)
        yield LiveFile(**{**content, "file": DataFile(**content["file"])})


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
