"""The loader copies topics into hourly Parquet files with Spark, every record exactly once.

    plan          checks that topic and log are still those of the last load; takes the offsets from
      |           the end of that load to the high watermark, and cuts them into slices
    slices        Spark runs one task per slice: fetch, decode, dedupe, Parquet into staging
      |
    join          joins the slices in offset order; a slice that may repeat records of earlier
      |           slices runs again
      |
    commit        creates manifest n if it does not exist; moves files into place; deletes staging
      |
    audit         publishes the audit delta (the counts of the load) from the manifest

The chain of manifests under `<output>/_skidway/<topic>/` is the loader's only state. If a load is
killed at any point, the next load begins again after the newest manifest. If two loads run at once,
the load that creates the next manifest wins, and the other load starts over. docs/delivery.md,
section 5, has the loader's promises and their reasons.

In reading order; each package comes after the packages that it imports:

    store          a file tree with the few operations that a commit needs
    state          what the loader keeps there: manifests, tables, and the commit (the heart)
    planning       which offsets a load takes
    reading        reads the log, and turns values into columns
    settings       what an operator sets
    slices         the work of tasks that load
    rewriting      the work of tasks that put files together, or give them newer columns
    reloading      which offsets a reload reads again, with which marks, and the check of the result
    complete_hours asks the audit's collector which hours are complete
    audit_topic    the audit messages that the loader publishes, and those that it reads
    spark          one session per run, one task per slice or group of files
    runs           one run: session, topics, loads
    cli            `skidway load`
    table          separate: `skidway.table`, the rows of an output as a DataFrame
    datasource     separate: queries and streams of topics, `format("skidway")`, with the same
                   decoder
"""
