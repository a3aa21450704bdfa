"""Hours that are complete: the loader marks them with the file `_SUCCESS`, as Hadoop's jobs expect.

    choice         which hours the loader asks about in one run
    collector      asks the audit's collector, over HTTP
    success_file   the content of `_SUCCESS`

Only the audit decides whether an hour is complete, and its verdict must cover every row of the
output. So the loader marks hours only if the collector has read the newest audit message of the
output. The loader puts the files `_SUCCESS` into place by committing a manifest
(loader/runs/hour_marking). So these files cannot contradict the rows: a load that adds rows to an
hour deletes the hour's `_SUCCESS` first, and a loader that asked the collector before that load
cannot commit the collector's answer after that load.

An hour loses its `_SUCCESS` when new rows come, or when the collector says that records of the hour
are missing somewhere, or were declared lost. A doubt about the whole topic, such as a silent
cluster, keeps hours from being marked, but does not delete existing marks.
"""
