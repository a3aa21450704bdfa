"""`spark.read.format("skidway")` and `spark.readStream.format("skidway")`: topics as a table.

docs/spark.md is the page for those who write queries; it explains every option and column. This
page is for those who change the code.

A query reads the log as it is. It drops no repeated record, and commits no offsets at the brokers;
a stream's position is in Spark's checkpoint. No jar has to be added, because Spark runs this
package in Python processes:

    Spark's driver                  a planning process                  Python workers, one per core

    load() ------------------>  SkidwaySource.schema
    the query begins -------->  BatchReader.partitions  -- ranges -->   BatchReader.read
    the stream begins ------->  StreamReader.initialOffset
    every trigger ----------->  StreamReader.latestOffset,
                                StreamReader.partitions -- ranges -->   StreamReader.read

Spark keeps the ranges of a DataFrame's first query for the DataFrame's later queries.

Spark copies readers to the workers (by pickling) before it asks for ranges. So whatever a worker
must know of a plan is in the range: topic and topic id, offsets, and the Avro schema of the rows.
Reading a range again gives the same rows, unless records have expired. That is all that Spark's
checkpoint needs to count each row of a stream once in a file sink.

Where rows could be missing without notice, the query fails, unless `failOnDataLoss` is false: then
a warning is logged, and the query goes on with what is left. This concerns offsets that have
expired or do not exist yet, and topics that were deleted, or deleted and made again. For the latter
the positions of a stream hold each topic's id. If the id has changed, the new topic is read from
its start.

In reading order; `positions`, `ranges`, `progress` and `columns` do no I/O:

    options        the options of a query, checked
    positions      offsets by topic and partition, as JSON
    subscription   asks the brokers for the topics of a query
    ranges         the offsets that each task reads
    losses         fails, or warns, if records are missing
    progress       where a stream's next batch ends
    columns        the columns of a query, over all its topics
    schemas        asks the registry for the schemas of topics
    announcements  host and path of files
    rows           turns a record batch into rows
    range_read     reads one range, in a worker
    spark_types    columns in Arrow's and in Spark's types
    batch_reader   what Spark asks for a query
    stream_reader  what Spark asks for a stream
    source         what Spark asks first
    registration   makes the source known to a session: `skidway.register`
"""
