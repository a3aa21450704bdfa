"""The kernel: what every Skidway program stands on, and nothing that only one of them needs.

Reading order: errors, clock, log, settings (what a program may be told), files (state that survives
a crash), service (signals and exit status), telemetry (/metrics and /health), coordination
(ZooKeeper through kazoo), java and zookeeper (a real ZooKeeper from the jars of pyspark), cli (the
command line and its output), kafka (protocol, record batch, client).

Nothing here imports a higher package, and nothing but `skidway.kafka.columns` imports numpy or
pyarrow. Imports stay light on purpose: an idle broker is mostly what it imports.
"""
