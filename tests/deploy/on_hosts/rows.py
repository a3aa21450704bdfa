"""Prints one column of the loader's rows (for each topic, the column in COLUMNS) as JSON {topic:
{host: [value, ...]}}. Runs on the test fleet's server.

The values of each log file are in the order of the file.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

COLUMNS = {"nginx": "request", "auth": "line", "journal": "line"}

found: dict[str, dict[str, list[str]]] = {}
for topic, column in COLUMNS.items():
    rows = defaultdict(list)
    for path in (Path(sys.argv[1]) / topic).glob("dt=*/hour=*/*.parquet"):
        table = pq.ParquetFile(path).read(["_host", "_file_id", "_offset", column])
        for host, file, position, value in zip(*table.to_pydict().values(), strict=True):
            rows[host].append((file, position, value))
    found[topic] = {host: [row[2] for row in sorted(each)] for host, each in rows.items()}
print(json.dumps(found))
