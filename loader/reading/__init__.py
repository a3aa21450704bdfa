"""Turns records of the log into columns, for loads and for queries (`skidway.loader.datasource`).

    batches       reads whole record batches of a partition, in order
    decoder       finds the schema of each value, and decodes its Avro data into columns
    projection    turns the writer's columns into those of the subject's latest schema
    column_types  column types that Spark can read, and that no compatible schema change alters;
                  converts the codec's columns to these types, and back
    columns       the columns that the loader adds, and the columns of the files of rejects

If a value cannot be turned into columns, its record becomes a reject: a record that the loader
writes into a separate file, with a reason. This package drops no record, not even a repeated
record.
"""
