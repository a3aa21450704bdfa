"""Reads the manifests of a topic: JSON files that say which files of rows are committed.

    <root>/_skidway/<topic>/<load as 20 digits>.json    a manifest: one committed load
    files[].path      the path of a file
    files[].staged    the path of the file until the loader moves it to `path`
    removed           paths of files of earlier loads that this load replaces; this load's files
                      have the same records
    <root>/_skidway/<topic>/checkpoints/<load>-<oldest>.jsonl    a checkpoint, which replaces old
                      manifests (checkpoints.py). Manifests of loads before `oldest` may be deleted.
                      If such a manifest exists, the recount ignores it, because a loader that was
                      delayed may have created it again

The output consists of the files that a manifest adds and that no later manifest removes. The
recount relies on the loader for only two facts: which files belong to the output, and which length,
CRC-32C, number of rows and checksum each file must have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from skidway.audit.output import Output
from skidway.audit.recount.named_files import OF_A_FILE, NamedFile
from skidway.errors import SkidwayError
from skidway.kafka.source import Source

FORMAT: Final = 1
STATE: Final = "_skidway"
_MANIFEST = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})-(\d{20})\.jsonl")
_NEEDED: Final = {"number", "source", "producer", "files", "removed", "audit", "partitions"}


class ManifestUnreadable(SkidwayError):
    """A manifest or a checkpoint cannot be understood, or vanished while it was read. The recount
    stops, because it would have to guess which files belong to the output, and its result would
    prove nothing."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A topic of the output. source: the source topic; None if the output has rows of the topic but
    no manifest."""

    topic: str
    source: Source | None
    producer: str = ""


def loads(output: Output, topic: str) -> list[int]:
    """The numbers of the loads that have a manifest, in ascending order. Leaves out manifests that
    a checkpoint has replaced, because they no longer count.
    """
    found = [_MANIFEST.fullmatch(name) for name in output.names(f"{STATE}/{topic}")]
    # A checkpoint may replace some manifests after their names were listed. `oldest` is read after
    # the names, so that such manifests are left out.
    oldest = oldest_kept(output, topic)
    return [load for match in found if match and (load := int(match[1])) >= oldest]


def loads_after(output: Output, topic: str, last: int) -> list[int]:
    """The numbers of the loads after load `last`. Raises ManifestUnreadable if a checkpoint has
    already replaced some of their manifests."""
    known = loads(output, topic)
    if oldest_kept(output, topic) > last + 1:
        raise ManifestUnreadable(
            f"{topic}: the manifest of load {last + 1} came while the recount ran, and is folded "
            "into a checkpoint already; recount a shorter time (--since)"
        )
    return [load for load in known if load > last]


class Checkpoint(NamedTuple):
    """A checkpoint of the loader: the two numbers in its name (see the module's docstring), and its
    path."""

    load: int
    oldest: int
    path: str


def checkpoints(output: Output, topic: str) -> list[Checkpoint]:
    """All checkpoints of a topic, oldest first."""
    folder = f"{STATE}/{topic}/checkpoints"
    found = filter(None, map(_CHECKPOINT.fullmatch, output.names(folder)))
    return sorted(Checkpoint(int(x[1]), int(x[2]), f"{folder}/{x[0]}") for x in found)


def oldest_kept(output: Output, topic: str) -> int:
    """The number of the oldest load whose manifest is certainly kept. Manifests of earlier loads
    may have been deleted already."""
    return max((each.oldest for each in checkpoints(output, topic)), default=1)


def read(output: Output, topic: str, load: int) -> Mapping[str, Any]:
    """Returns the manifest of a load. Raises ManifestUnreadable."""
    path = f"{STATE}/{topic}/{load:020}.json"
    data = output.read(path)
    if data is None:
        raise ManifestUnreadable(f"{path} vanished while it was read")
    try:
        manifest = json.loads(data)
        if not isinstance(manifest, dict) or manifest["format"] != FORMAT:
            raise ManifestUnreadable(f"{path} is no manifest of format {FORMAT}")
    except (ValueError, KeyError) as error:
        raise ManifestUnreadable(f"{path} is no manifest: {error!r}") from error
    missing = _NEEDED - set(manifest)
    if missing:
        raise ManifestUnreadable(f"{path} lacks {', '.join(sorted(missing))}")
    if manifest["number"] != load:
        raise ManifestUnreadable(f"{path} is the manifest of load {manifest['number']}")
    return manifest


def head(output: Output, topic: str) -> Committed:
    """Reads the newest manifest of a topic of the output. Returns the source topic from which this
    topic was loaded, and the loader's name in the audit (`producer`). If the topic has no manifest,
    the result has neither source topic nor name. Raises ManifestUnreadable.
    """
    known = loads(output, topic)
    if not known:
        return Committed(topic, None)
    manifest = read(output, topic, known[-1])
    try:
        source = Source(**{each: manifest["source"][each] for each in Source.__slots__})
    except (KeyError, TypeError) as error:
        raise ManifestUnreadable(
            f"the manifest of load {known[-1]} of {topic} lacks {error}"
        ) from error
    return Committed(topic, source, manifest["producer"])


def files_of(manifest: Mapping[str, Any]) -> Iterator[NamedFile]:
    """The files that a manifest adds. Raises ManifestUnreadable."""
    load = manifest["number"]
    try:
        bucket_ms = manifest["audit"]["bucket_ms"]
        for each in manifest["files"]:
            known = {name: each[name] for name in OF_A_FILE}
            yield NamedFile(**known, load=load, bucket_ms=bucket_ms)
    except (KeyError, TypeError) as error:
        raise ManifestUnreadable(f"the manifest of load {load} lacks {error}") from error


def removed_by(manifest: Mapping[str, Any]) -> list[str]:
    """The paths of the files that a load removes. Raises ManifestUnreadable."""
    removed = manifest["removed"]
    if not isinstance(removed, list) or not all(isinstance(each, str) for each in removed):
        raise ManifestUnreadable(
            f"the manifest of load {manifest['number']} has no list of paths under removed"
        )
    return removed


def buckets_of(manifest: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """Yields (agent, bucket, bucket_ms) for every count in a load's manifest. Raises
    ManifestUnreadable."""
    try:
        audit = manifest["audit"]
        for delta in audit["deltas"]:
            for each in delta["counts"]:
                yield each["agent"], each["bucket"], audit["bucket_ms"]
    except (KeyError, TypeError) as error:
        raise ManifestUnreadable(
            f"the manifest of load {manifest['number']} lacks {error}"
        ) from error
