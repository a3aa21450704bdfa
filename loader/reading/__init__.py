"""From the log to columns: what loads and queries (`skidway.loader.datasource`) read with.

    batches       whole record batches of a partition, in order
    decoder       values to columns: schema id, writer's schema, Avro
    projection    from the writer's columns to those of the subject's latest schema
    columns       the columns that the loader adds, and those of its rejects

A value that has no columns is set apart, with a reason. Nothing is dropped here, and nothing is
deduplicated.
"""
