"""Counts the rejects of each (agent, bucket) of the audit in a file of rejects. A bucket is an
interval of event time.

The audit counts each reject as a record, too. If a reload turns rejects into rows, or rows into
rejects, the number of records stays the same, and only the number of rejects changes.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.counts import bucket
from skidway.audit.output import StoreFailed
from skidway.loader.state.bucket_rows import BucketKey
from skidway.loader.state.manifest import DataFile
from skidway.loader.store import Store

_UNREADABLE: Final = (StoreFailed, pa.ArrowException, OSError, ValueError, KeyError)


def rejects_in(store: Store, file: DataFile, bucket_ms: int) -> Counter[BucketKey] | None:
    """Returns, for each (agent, bucket), how many rejects a file has. Returns None if the file is
    gone or damaged, or if its number of rows is not the number that was committed."""
    found = Counter[BucketKey]()
    try:
        opened = store.open(file.path)
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
    return found if found.total() == file.rows else None
