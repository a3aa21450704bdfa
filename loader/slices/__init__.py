"""The work of tasks: one offset range of one partition each, and how ranges become one again.

    job            what a task gets, and what it reports
    chunk          records of several batches as columns
    slice_load     one attempt at one slice: batches in, files and what is in them out
    locations      host and path of records, from announcements
    hour_writer    rows to Parquet files, one per hour of event time
    join           slices of a partition in offset order; those that overlap run again

What a slice decides depends only on its range and what the task gets: a second attempt gives the
same result.
"""
