"""The loader copies topics into hourly Parquet files with Spark, every record exactly once.

    plan          checks that topic and log are still those of the last load; takes the offsets from
      |           the end of that load to the high watermark, and cuts them into slices
    slices        Spark runs one task per slice: it fetches and decodes records, drops repeats, and
      |           writes Parquet files into a staging directory
      |
    join          joins the slices in offset order; a slice that may repeat records of earlier
      |           slices runs again
      |
    commit        creates manifest n if it does not exist; moves the files into place; deletes the
      |           staging directory
      |
    audit         publishes the audit delta (the counts of the load) from the manifest

The chain of manifests under `<output>/_skidway/<topic>/` is the loader's only state. If a load is
killed at any point, the next load begins again after the newest manifest. If two loads run at once,
the load that creates the next manifest wins, and the other load starts over. docs/delivery.md,
section 5, has the loader's promises and their reasons.

In reading order; each package comes after the packages that it imports:

    store          a file tree with the few operations that a commit needs
    state          the loader's state in that tree (manifests and tables), and how a load commits;
                   this package is the heart of the loader
    planning       which offsets a load takes
    reading        reads the log, and turns values into columns
    settings       the settings that an operator can change
    slices         the work of Spark's tasks in a load
    rewriting      the work of Spark's tasks that put files together, or give them newer columns
    reloading      chooses the offsets that a reload reads again, and checks the result
    complete_hours asks the audit's collector which hours are complete
    audit_topic    the audit messages that the loader publishes, and those that it reads
    spark          starts one Spark session per run, and one task per slice or group of files
    runs           one run of the program: starts Spark, and makes the loads of each topic
    cli            the command `skidway load`
    table          `skidway.table`: the rows of an output as a DataFrame; no load uses it
    datasource     `format("skidway")`: queries and streams of topics, decoded by the same code as
                   in loads; no load uses it
"""
