"""The loader copies every record of the topics exactly once into hourly Parquet files. The steps of
a load:

    plan          checks that topic and log are the same as in the last load, and divides the
      |           offsets from the end of that load to the high watermark into slices
    slices        one task for each slice (on Spark, or for a small load in the loader's process)
      |           fetches and decodes records, drops repeats, and writes Parquet files into a
      |           staging directory
      |
    join          joins the slices in offset order; a slice that may repeat records of earlier
      |           slices runs again
      |
    commit        creates the next manifest (fails if another load has created it), moves the files
      |           into place, and deletes the staging directory
      |
    audit         publishes the audit delta (the counts of the load) from the manifest

The manifests and checkpoints under `<output>/_skidway/<topic>/`, and the files that they list, are
the loader's only state. If a load is killed at any point, the next load begins again after the
newest manifest. If two loads run at once, the load that first creates the next manifest is
committed, and the other load begins again. docs/delivery.md, section 5, has the loader's promises
and their reasons.

The following list of packages and modules is in reading order. Each of them comes after those that
it imports:

    store          a file tree with the few operations that a commit needs
    reading        reads the log, and turns values into columns
    state          the loader's state in that tree (manifests and tables), and how a load commits
    planning       decides which offsets a load reads
    settings       the settings that an operator can change
    slices         the work of a load's tasks
    rewriting      the work of tasks that join files, or convert them to newer columns, and the
                   proof that new files have the same records
    reloading      chooses the offsets that a reload reads again
    complete_hours asks the audit's collector which hours are complete
    audit_topic    the audit messages that the loader publishes, and those that it reads
    spark          runs one task for each slice or group of files, on Spark or in the loader's own
                   process
    runs           one run of the program, which makes the loads of each topic
    cli            the command `skidway load`
    table          `skidway.table`: the rows of an output as a DataFrame; no load uses it
    datasource     `format("skidway")`: queries and streams of topics, decoded by the same code as
                   in loads; no load uses it
"""
