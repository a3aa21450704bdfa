"""The state that the loader keeps under its output. Each load changes this state by one commit.

    layout          the names of all files
    manifest        the JSON file whose creation commits a load
    parquet_file    writes one Parquet file of a load, and measures it
    tables          how far each file is loaded (marks), announced files and closed files; these
                    tables are in files beside the manifests
    table_file      writes and reads one file of a table
    closures        when a closed file can be forgotten; only decisions, no I/O
    bucket_spans    the table of the buckets' deltas, cut by time
    bucket_rows     rows of that table, in order
    operations      operations on a store, as values, and their execution
    commit          the commit step by step; only decisions, no I/O
    success_files   the files that mark hours as complete
    live            the files that an output consists of
    waiting         notes that say since when the announcement of a file has been missing

The manifests and the files that they name are the loader's only state. The notes of `waiting` only
decide how long records wait, so they are not part of the commit.
"""
