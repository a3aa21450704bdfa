"""Hours that are complete: the loader marks them with the file `_SUCCESS`, as Hadoop's jobs expect.

    choice         which hours the loader asks about in one run
    collector      asks the audit's collector, over HTTP
    success_file   the content of `_SUCCESS`

The verdict is the audit's alone, and it must cover every row of the output. So the loader marks
hours only if the collector has heard the output's newest message. The files are put into place by a
load (loader/runs/hour_marking), so the order of manifests decides: a load that adds rows to an hour
deletes the hour's file first, and a loader that asked before that load cannot commit after it.

An hour loses its file when rows come, or when the collector says that records of the hour are
missing somewhere, or were declared lost. A doubt about the whole topic, such as a silent cluster,
keeps hours from being marked, but takes no mark away.
"""
