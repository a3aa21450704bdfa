"""`spark.read.format("skidway")` and `spark.readStream.format("skidway")`: topics as a table.

docs/spark.md explains every option and column to people who write queries. This docstring is for
people who change the code.

A query reads all records of the log, including repeats. Neither a batch query nor a stream commits
offsets at the brokers: a stream's position is in Spark's checkpoint. No jar has to be added,
because Spark runs this package in Python processes:

    Spark's driver                  a planning process                  Python workers, one per core

    load() ------------------>  SkidwaySource.schema
    the query begins -------->  BatchReader.partitions  -- ranges -->   BatchReader.read
    the stream begins ------->  StreamReader.initialOffset
    every trigger ----------->  StreamReader.latestOffset,
                                StreamReader.partitions -- ranges -->   StreamReader.read

A range is the offsets of one partition that one task reads. Spark keeps the ranges that the first
query of a DataFrame gets, and uses them for all later queries of the DataFrame.

Spark pickles the reader for the workers before it asks the reader for ranges. So a range has
everything that a worker must know: topic and topic id, offsets, and the Avro schema of the rows. If
no records have expired, a worker that reads a range again gets the same rows. Therefore, with
Spark's checkpoint, a file sink gets each row of a stream once.

A query fails if rows may be missing from its result. If `failOnDataLoss` is false, the query logs a
warning instead, and returns the rows of the records that are left. Rows may be missing if offsets
have expired or do not exist yet, or if a topic was deleted (and perhaps created again). A stream's
positions contain each topic's id, so that the stream notices a topic that was created again. If the
id has changed and `failOnDataLoss` is false, the stream reads the new topic from its start.

These are the modules, in reading order. `positions`, `ranges`, `progress` and `columns` do no I/O.

    options        the options of a query, checked
    positions      offsets by topic and partition, as JSON
    subscription   asks the brokers for the topics of a query
    ranges         the offsets that each task reads
    losses         fails, or warns, if records are missing
    progress       where a stream's next batch ends
    columns        the columns of a query, over all its topics
    schemas        asks the registry for the schemas of topics
    announcements  finds host and path of log files, in announcements on the audit topic
    rows           turns a record batch into rows
    range_read     reads one range, in a worker
    spark_types    columns in Arrow's and in Spark's types
    batch_reader   the object that Spark calls to read a batch query
    stream_reader  the object that Spark calls to read a stream
    source         the object that Spark calls first, and that makes the readers
    registration   makes the source known to a session: `skidway.register`
"""
