"""Does the work of tasks, which run on Spark, or in the loader's own process if the load is small.
Each task reads one slice, which is an offset range of one partition. Then the loader joins the
results of the slices.

    job            what a task receives, and what it reports
    chunk          records of several batches as columns
    slice_load     one attempt at one slice: reads batches, writes files, counts
    locations      host and path of records, from announcements
    hour_writer    writes rows to Parquet files, one per hour of event time
    join           joins the slices of a partition in offset order, after some slices ran again

The result of a task depends only on what the task receives, on the log, and on the schemas in the
registry. So a second attempt gives the same result, unless a missing schema was registered in the
meantime.
"""
