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
dies anywhere is begun again from the newest one, and of two at once the one that creates the next
manifest wins. What it promises, and why, is docs/delivery.md, 5.

Reading order: settings, layout, manifest, store, commit (the heart); bounds, plan, slices, fetch,
decode, columns, projection, write; side, names, feed, waiting; join, delta, publish, topic_load,
group_offsets, topic_run, run, status; textfile, spark, properties, scratch and cli around it.
`datasource` is apart: ad-hoc queries by `spark.read.format("skidway")`, with the same reader.
"""
