"""The loader: topics into hourly Parquet files on Spark, every record exactly once.

    plan          offsets [where the last load ended, the watermark now), cut into slices
      |           checked first: is it still the same topic, is the batch below still the same
    slices        Spark runs one task per slice: fetch, decode, dedupe, Parquet into staging
      |
    join          slices in offset order; those that overlap what came before run again
      |
    commit        manifest n only if absent; files moved into place; staging deleted
      |
    audit         the delta that the manifest holds is published

State is the chain of manifests under `<output>/_skidway/<topic>/` and nothing else: a load that
dies anywhere begins again from the newest manifest, and if two run at once, the one that creates
the next manifest wins. docs/delivery.md, section 5, has the loader's promises and their reasons.

In reading order, each package after what it imports:

    store          a file tree with the few operations that a commit needs
    state          what lies there: manifests, tables, and the commit (the heart)
    planning       what a load takes
    reading        from the log to columns
    settings       what an operator sets
    slices         the work of tasks
    audit_topic    what the loader tells the audit, and what it reads from it
    spark          one session per run, one task per slice
    runs           one run: session, topics, loads
    cli            `skidway load`
    datasource     apart: ad-hoc queries by `spark.read.format("skidway")`, with the same reader
"""
