"""Prints the lines of one topic on HDFS as JSON {host: [line]}. Runs on the test fleet's server,
with the loader's Python.

The lines of each log file are in the order of the file. The arguments are the output's URL and the
topic.
"""

import json
import sys
from collections import defaultdict
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from hdfs_native.fsspec import HdfsFileSystem

url, topic = sys.argv[1:]
files = HdfsFileSystem(host=urlsplit(url).hostname, port=urlsplit(url).port)
rows = defaultdict(list)
for path in files.find(f"{urlsplit(url).path}/{topic}"):
    if path.endswith(".parquet"):
        with files.open(path) as opened:
            table = pq.ParquetFile(opened).read(["_host", "_file_id", "_offset", "line"])
        for host, *row in zip(*table.to_pydict().values(), strict=True):
            rows[host].append(row)
print(json.dumps({host: [row[-1] for row in sorted(each)] for host, each in rows.items()}))
