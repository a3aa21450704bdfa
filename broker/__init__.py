"""The broker accepts record batches from producers, stores them in segment logs, and sends them to
consumers.

The broker speaks the Kafka protocol, so standard Kafka clients work unmodified. When the broker
stores a batch, it does not look at the records in the batch: the broker checks only the header, the
CRC and the size of the batch. The broker writes base offset and leader epoch into the header; the
CRC does not cover these two fields. (For a topic with LogAppendTime, the broker also writes the
time, and computes the CRC again.) Then the broker stores the batch, and sends the stored bytes to
consumers with sendfile. The broker has no cache of its own for batches, because the kernel's page
cache is enough. The broker imports neither numpy nor pyarrow.

Packages, from the lowest layer to the highest::

    log            batches in files: append, flush, read, recover, expire
    catalog        the cluster's brokers and topics: an immutable snapshot of ZooKeeper
    counts         the numbers that the broker counts, for the metrics
    refusals       requests of APIs and versions that the broker does not offer
    kept_answers   encoded answers, kept in memory because many clients send the same request
    access         who a client is, and what it may do
    coordination   all access to ZooKeeper, on a thread of its own
    network        the epoll loop, connections, timers
    listener_settings  the settings of listeners, and their TLS
    purgatory      requests that cannot be answered yet
    access_control the users and rules of the cluster, in ZooKeeper
    partitions     the partitions that this broker leads: high watermarks, flushes
    groups         consumer groups of standard Kafka clients, and their committed offsets
    settings       all settings of the program
    topics         creating, deleting and hosting topics
    expiry         deletes old segments (retention), unless a group still needs them
    broker         the object that contains all these parts, for the handlers of requests
    own_status     what the broker says about itself: how it was started, what does not answer it
    handover       moves a partition to another broker or disk while no broker serves it
    metrics        the counts in the format of Prometheus
    api            one module per Kafka API, and what these modules share
    mirror         follows topics of other clusters, and copies them
    program, cli   `skidway broker run|validate|dump-log|hand-over|take-over`
    users          `skidway users list|add|remove`

Who owns which state:

    ======================================  =============================  =====================
    state                                   owner                          truth
    ======================================  =============================  =====================
    batches                                 loop                           `.log` files
    indexes, state of producers, log end    loop                           made from the log
    offsets, high watermarks
    parked requests, connections            loop                           memory
    stored answers (Metadata,               loop                           made from topics, and
    ApiVersions)                                                           from the registered APIs
    topics, their ids and settings          whoever serves the request,    ZooKeeper
                                            by conditional writes
    who leads a partition                   the leader                     ZooKeeper
    blocks of producer ids                  the broker that took a block   ZooKeeper
    members, generations of groups          loop                           stored in ZooKeeper
    committed offsets                       loop, or consumers themselves  ZooKeeper
    users, rules of access                  whoever serves the request,    ZooKeeper
                                            by conditional writes
    the logins of a connection              loop                           memory
    ======================================  =============================  =====================

Threads: the loop has one thread. Two threads compute TLS handshakes, one checks passwords. The
flusher's threads wait for the disk. The thread of the session with ZooKeeper and the threads of
kazoo (the ZooKeeper client) wait for ZooKeeper. The resolver's threads look up the host names of
mirrors' sources. The metrics endpoint's thread only reads counts and states. The handshakes, the
flusher, the session and the resolver pass their results to the loop with `Loop.post`. Apart from
these results, they share no state with the loop. The broker makes these promises (their tests are
in tests/crash/broker and tests/conformance/broker): 1. A batch with acks=all is acknowledged when
it is on disk, and a batch with acks=1 when it is written to the file. 2. Consumers get only records
that are on disk. A record that a consumer got never changes. Such a record is removed only by
retention, by DeleteRecords, or with its topic. 3. A batch that an idempotent producer retries is
stored once, also across a crash. The retry gets the offset of the stored batch only if both batches
are equal and the stored batch is on disk. 4. After any crash a log is a prefix of what was
appended, and contains everything that was flushed. Recovery cuts off invalid bytes that a crash can
have left at the end of the log, and keeps a copy of them. If a crash cannot have caused invalid
bytes, the broker does not serve the partition, and reports the damage. 5. While ZooKeeper cannot be
reached, produce and fetch continue to work. Groups whose members already have their assignments
also continue to work. 6. An offset commit is answered when the offset is in ZooKeeper. The broker
accepts commits only from the current generation of a group. So a member of an older generation
cannot replace the offset that a newer generation has committed. There is one exception: a write of
an earlier coordinator may reach ZooKeeper late, and then replaces the newer offset.
"""
