"""What the loader keeps under its output, and how it is changed: by one commit a load.

    layout          the names of all files
    manifest        the JSON file whose creation is the commit of a load
    parquet_file    one Parquet file of a load, measured while it is written
    tables          marks, announced files and bucket numbers: state that grows, in files of its own
    operations      operations on a store, as values, and their execution
    commit          the commit step by step: the decisions alone
    waiting         since when the announcement of a file has been missing

State is the chain of manifests and nothing else. A note of `waiting` only says how long records
wait, so it is outside of the commit.
"""
