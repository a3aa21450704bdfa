"""The broker: takes record batches, keeps them in segment logs, and hands them out again.

It speaks the Kafka protocol, so stock clients work unmodified, and treats a batch as opaque:
header, CRC and limits are checked, base offset and leader epoch stamped (both outside the CRC), and
the same bytes go out with sendfile. It keeps no cache: the page cache is the cache. It imports
neither numpy nor pyarrow.

Packages, low to high::

    log            batches in files: append, flush, read, recover, expire
    catalog        brokers and topics of the cluster: an immutable picture of ZooKeeper's
    counts         what the broker counts
    kept_answers   answers that many clients ask for alike
    coordination   ZooKeeper, on a thread of its own
    network        the epoll loop, connections, timers
    purgatory      requests that cannot be answered yet
    partitions     the partitions led here: high watermarks, flushes
    groups         consumer groups of stock clients, and their committed offsets
    settings       all settings of the program
    topics         creating, deleting and hosting topics
    expiry         what has expired, and who holds it back
    broker         all of it together, as handlers see it
    handover       a partition goes to another broker or disk while nobody serves it
    metrics        the counts, as Prometheus reads them
    api            one file per Kafka API
    mirror         topics of other clusters, followed
    program, cli   `skidway broker run|validate|dump-log|hand-over|take-over`

Who owns which state:

    ======================================  =============================  =====================
    state                                   owner                          truth
    ======================================  =============================  =====================
    batches                                 loop                           `.log` files
    indexes, producers, offsets, watermark  loop                           made from the log
    parked requests, connections            loop                           memory
    answers that are kept (Metadata,        loop                           made from topics, and
    ApiVersions)                                                           from what is registered
    topics, their ids and settings          whoever serves the request,    ZooKeeper
                                            by conditional writes
    who leads a partition                   the leader                     ZooKeeper
    blocks of producer ids                  the broker that took it        ZooKeeper
    members, generations of groups          loop                           stored in ZooKeeper
    committed offsets                       loop, or consumers themselves  ZooKeeper
    ======================================  =============================  =====================

Threads: the loop; those of the flusher, which wait for the disk; the session's and kazoo's, which
wait for ZooKeeper; the resolver's, which look up names of mirrors' sources; the metrics endpoint's,
which only reads numbers. The flusher's, the session's and
the resolver's hand their results to the loop by `Loop.post`; no other state is shared.

What is promised (the tests that keep it are in tests/crash/broker and tests/conformance/broker):

1. acks=all is answered when the batch is on disk, acks=1 when it is in the file.
2. Consumers see only what is on disk; what was seen never changes and never goes away, but by
   retention.
3. A retry of an idempotent producer is stored once, also across a crash, and is told the original
   offset only if the original is what was sent and is on disk.
4. After any crash a log is a prefix of what was appended, holding all that was flushed; what else
   is found in its files is cut off and kept aside, or, if it lies in front of good data, stops the
   partition by name.
5. While ZooKeeper is away, produce and fetch go on, and so do groups that have their assignment.
6. A committed offset that was answered is in ZooKeeper, and no older generation's replaces it.
"""
