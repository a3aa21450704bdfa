"""Counts the rejects of each (agent, bucket) of the audit in a file of rejects. A bucket is an
interval of event time.

The audit counts each reject as a record, too. If a reload turns rejects into rows, or rows into
rejects, the number of records stays the same, and only the number of rejects changes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from skidway.audit.counts import bucket
from skidway.audit.output import StoreFailed
from skidway.audit.output.row_file import REJECT_TIME, UNREADABLE, RowFile, int64s
from skidway.loader.state.bucket_rows import BucketKey
from skidway.loader.state.manifest import DataFile
from skidway.loader.store import Store
from skidway.row_columns import AGENT


def rejects_in(store: Store, file: DataFile, bucket_ms: int) -> Counter[BucketKey] | None:
    """Returns, for each (agent, bucket), how many rejects a file has. Returns None if the file is
    gone or damaged, or if its number of rows is not the number that was committed."""
    found = Counter[BucketKey]()
    try:
        opened = store.open(file.path)
        if opened is None:
            return None
        with opened:
            for batch in RowFile(opened).batches((AGENT.name, REJECT_TIME)):
                agents = int64s(batch, AGENT.name)
                starts = bucket.start(int64s(batch, REJECT_TIME), bucket_ms)
                pairs, counts = np.unique(np.stack([agents, starts]), axis=1, return_counts=True)
                for agent, start, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
                    found[agent, start] += count
    except (StoreFailed, *UNREADABLE):
        return None
    return found if found.total() == file.rows else None
