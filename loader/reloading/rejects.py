"""Counts how many rejects each (agent, bucket) of the audit has before a reload. A bucket is an
interval of event time.

The audit counts each reject as a record, too. If a reload turns rejects into rows, or rows into
rejects, the number of records stays the same, and only the number of rejects changes.

The numbers come from the files of rejects. Each file has rejects of one load and one hour. If a
file is gone or damaged, the loader uses the manifest of the load that wrote the file. The manifest
says how many rejects this load counted in the hour. From this number the loader subtracts the
rejects in the load's other files of the hour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.counts import bucket
from skidway.audit.output import StoreFailed
from skidway.loader.state import layout
from skidway.loader.state.bucket_rows import BucketKey
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import Manifest
from skidway.loader.store import Store

_UNREADABLE: Final = (StoreFailed, pa.ArrowException, OSError, ValueError, KeyError)


def rejects_before(
    store: Store, files: Iterable[LiveFile], manifests: Mapping[int, Manifest], bucket_ms: int
) -> tuple[Counter[BucketKey], list[str]]:
    """Returns, for each (agent, bucket), how many rejects these files have together. Also returns
    the paths of the files whose numbers of rejects cannot be found any more. manifests: the
    manifests of the loads that wrote the files, by the load's number."""
    total, lost = Counter[BucketKey](), list[LiveFile]()
    read: dict[tuple[int, str], Counter[BucketKey]] = {}
    for each in files:
        found = _in_file(store, each, bucket_ms)
        if found is None:
            lost.append(each)
            continue
        total.update(found)
        read.setdefault(_key(each), Counter()).update(found)
    unknown = []
    for key in dict.fromkeys(map(_key, lost)):
        manifest = manifests[key[0]]
        if manifest.removed:  # the manifest does not say how many rejects the new files have
            unknown += [each.file.path for each in lost if _key(each) == key]
            continue
        counted = _counted(manifest, key[1])
        counted.subtract(read.get(key, Counter()))
        total.update(counted)
    return total, unknown


def _key(each: LiveFile) -> tuple[int, str]:
    return each.load, layout.hour_of(each.file.path)


def _in_file(store: Store, file: LiveFile, bucket_ms: int) -> Counter[BucketKey] | None:
    """Returns, for each (agent, bucket), how many rejects one file has. Returns None if the file is
    gone or damaged, or if its number of rows is not the number that was committed."""
    found = Counter[BucketKey]()
    try:
        opened = store.open(file.file.path)
        if opened is None:
            return None
        with opened:
            # Arrow's threads are not used here, because they would call Python to read the file,
            # and might still run when Python ends.
            columns = ["_agent", "timestamp_ms"]
            for batch in pq.ParquetFile(opened).iter_batches(columns=columns, use_threads=False):
                agents = batch.column("_agent").to_numpy(zero_copy_only=False)
                times = batch.column("timestamp_ms").to_numpy(zero_copy_only=False)
                starts = bucket.start(times, bucket_ms)
                pairs, counts = np.unique(np.stack([agents, starts]), axis=1, return_counts=True)
                for agent, start, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
                    found[agent, start] += count
    except _UNREADABLE:
        return None
    return found if found.total() == file.file.rows else None


def _counted(manifest: Manifest, hour: str) -> Counter[BucketKey]:
    """Returns, for each (agent, bucket) of an hour, how many rejects a load counted."""
    number = layout.hour_number(hour)
    return Counter(
        {
            (each["agent"], each["bucket"]): each["rejects"]
            for delta in manifest.audit["deltas"]
            for each in delta["counts"]
            if each["bucket"] // layout.HOUR_MS == number
        }
    )
