"""Finds the hours that are complete. The loader marks them with the file `_SUCCESS`, as Hadoop's
jobs expect.

    choice         which hours the loader asks about in one run
    collector      asks the audit's collector, over HTTP
    success_file   the content of `_SUCCESS`

Only the audit decides whether an hour is complete, and the audit must have counted every row of the
output. So the loader marks hours only if the collector has read the newest audit message of the
output. The loader creates the files `_SUCCESS` by committing a manifest (loader/runs/hour_marking).
So these files cannot contradict the rows. A load that adds rows to an hour first deletes the hour's
`_SUCCESS`. Suppose that another loader asked the collector before such a load, and wants to write
`_SUCCESS` after the load. The other loader cannot commit its manifest, because the manifest of the
load already has the same number.

An hour loses its `_SUCCESS` when a load adds rows to it, or when a reload changes its rows. It also
loses its `_SUCCESS` when the collector says that records of the hour are missing somewhere, or were
declared lost. If the collector doubts the whole topic, for example because a cluster sends no
counts, the loader marks no hours of the topic, but deletes no `_SUCCESS`.
"""
