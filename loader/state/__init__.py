"""The state that the loader keeps under its output. Each load changes this state by one commit.

    layout          the names of all files
    manifest        the JSON file whose creation commits a load
    parquet_file    writes one Parquet file of a load, and computes its length and checksums
    chain           which manifests exist, and which of them are valid
    checkpoint      a file that lists the files of an output after a load
    folding         writes a checkpoint, and deletes the old manifests that it replaces
    tables          tables in files beside the manifests, for example with marks (how far each
                    file is loaded), announced files and closed files
    file_check      checks whether a committed file has its length and its number of rows
    table_file      writes and reads one file of a table
    closures        decides when the loader may forget a closed log file; no I/O
    bucket_spans    the table `buckets`, which has for each agent and bucket the number of the last
                    audit delta that counted the bucket
    bucket_rows     sorted rows of the table of `bucket_spans`
    operations      operations on a store, as values, and the functions that execute them
    commit          the commit step by step; only decisions, no I/O
    moves           the moves of committed files into place; only decisions, no I/O
    success_files   the files that mark hours as complete
    live            the files that an output consists of
    live_file       one file of an output, and facts from the manifest that added it
    waiting         notes that say since when the announcement of a file has been missing
    run_notes       notes about the runs that work on the output now
    process         identifies the process of a run, and says whether it still runs

The manifests, the checkpoints and the files that they list are the loader's only state. Notes are
not part of a commit. The notes of `waiting` only decide how long records wait, and the notes of
`run_notes` are only shown to people.
"""
