"""The state that the loader keeps under its output. Each load changes this state by one commit.

    layout          the names of all files
    manifest        the JSON file whose creation commits a load
    parquet_file    writes one Parquet file of a load, and measures it
    chain           which manifests exist, and which of them count
    checkpoint      the files of an output after a load, in one file
    folding         writes a checkpoint, and deletes the manifests that it stands for
    tables          how far each file is loaded (marks), announced files and closed files; these
                    tables are in files beside the manifests
    file_check      looks whether a committed file is there
    table_file      writes and reads one file of a table
    closures        when a closed file can be forgotten; only decisions, no I/O
    bucket_spans    the table of the buckets' deltas, cut by time
    bucket_rows     rows of that table, in order
    operations      operations on a store, as values, and their execution
    commit          the commit step by step; only decisions, no I/O
    moves           the moves of committed files into place; only decisions, no I/O
    success_files   the files that mark hours as complete
    live            the files that an output consists of
    live_file       one of these files
    waiting         notes that say since when the announcement of a file has been missing
    run_notes       notes about the runs that work on the output now
    process         identifies the process of a run, and says whether it still runs

The manifests and the files that they name are the loader's only state. The notes of `waiting` only
decide how long records wait, and those of `run_notes` are only shown, so they are not part of the
commit.
"""
