"""Mirroring: follows topics of another cluster, the source, byte for byte and offset for offset.

    selection   which source topics are mirrored, and under which name         (pure)
    rounds      compares the topics of both clusters: what to create, extend   (pure)
    follower    one partition: checked, followed, interrupted, stopped         (pure)
    partition   one partition: its follower, the log that it fills, why it waits
    surroundings  what a source needs around it: a client of its cluster, and this broker
    topics      one source cluster: creates and extends its topics here        (loop)
    bounds      asks the source where a partition begins and ends              (loop)
    progress    the mirror's position as a group's offsets in the source       (loop)
    source      one source cluster: its partitions, fetches and what it copied (loop)
    resolver    looks up the names of source brokers, away from the loop
    mirrors     all sources of this broker, the loop's turns and timers        (loop)
    status      the mirrors' state for /health and the command; metrics: broker/metrics.py
    cli         `skidway mirror status`

A mirror topic `<cluster>.<topic>` is read-only for producers. There is no checkpoint: the position
of a mirror partition is its log end offset. Batches keep their base offset and leader epoch. They
are fetched as a consumer fetches, so a batch is copied only after it is durable in the source. A
consumer of the mirror sees the batch after it is durable in the mirror as well.

A partition can be interrupted by a start, another connection, a refused fetch or a refused write.
Before it goes on, it reads from the source the batch that ends at the mirror's log end, and
compares its CRC and leader epoch with those of the mirror's own last batch:

    same        go on behind it
    different   diverged: the partition stops, and the status names it, until an operator decides
    gone        expired in the source: reported as unverifiable, then go on
    gap         the source begins above the mirror's log end: read the source's first batch, write
                the missing offsets into ZooKeeper (topic config `mirror.gaps`), then copy from this
                batch on

A gap between batches is treated in the same way. Every gap is recorded, because the audit and the
loader read the gaps from the topic's configs, and recovery takes every other hole in a mirror's log
for damage.

After a passing failure (a full disk, ZooKeeper away, a damaged transfer, no permission yet) the
partition tries again after a growing wait, and the status names the failure meanwhile. Any other
failure stops the partition:

    the source diverged, ends below the mirror's        it has another history: compare, then delete
    log end, or its leader epochs go back               the mirror topic here, or mend the source
    the source's topic or cluster was recreated         it is another topic: do the same
    too many gaps                                       the source deletes records faster than they
                                                        are copied

State: everything in this package lives in the loop's memory, and is made anew when the broker
starts. Only the log and the topic's configs in ZooKeeper last.
"""
