"""Mirroring: copies topics of another cluster (the source) byte for byte and offset for offset.

    selection     which topics of the source are mirrored, and under which names  (pure)
    rounds        compares both clusters: which mirror topics to create or extend (pure)
    follower      decides for one partition when to compare, copy or stop         (pure)
    partition     one partition: its follower, its log, and the reason if copying waits
    surroundings  the interfaces that a source needs: a client of its cluster, and this broker
    topics        one source cluster: has its topics created and extended here    (loop)
    bounds        has the source asked where its partitions begin and end         (loop)
    progress      commits to the source, as offsets of a consumer group, how far  (loop)
                  the mirror has copied
    positions     from which offsets partitions are fetched, and which wait       (loop)
    followed      the followed partitions: what arrives for them, and the counts  (loop)
    source        one source cluster: asks it what the parts want to know, and    (loop)
                  passes each answer to the part that has asked
    resolver      looks up the host names of source brokers, outside the loop
    mirrors       all sources of this broker; the loop's turns and timers         (loop)
    status        the mirrors' state for /health and the command
    cli           `skidway mirror status`

Code marked (pure) does no I/O. Code marked (loop) runs on the broker's loop.

A mirror topic `<cluster>.<topic>` is read-only for producers. The mirror stores no position of its
own: it continues at the log end offset of the mirror partition. Batches keep their base offset and
leader epoch. The mirror fetches like a consumer, so it copies a batch only after the batch is
durable in the source. A consumer of the mirror gets the batch only after the batch is durable in
the mirror too.

The copying of a partition can be interrupted by a start of the broker, a new connection, a refused
fetch or a refused write. Before copying continues, the mirror reads from the source the batch that
ends at the log end offset of the mirror partition. It compares the CRC and the leader epoch of the
source's batch with those of the last batch in its own log:

    same        copying continues after this batch
    different   the logs have diverged: the partition stops until an operator decides what to do,
                and the status reports the stop
    gone        the batch has expired in the source: the mirror reports that it cannot compare the
                batch, and copying continues
    gap         the source's log begins above the mirror's log end: the partition reads the source's
                first batch, writes the missing offsets into ZooKeeper (topic config `mirror.gaps`),
                and copies from this batch on

If offsets are missing between two batches of the source, the mirror records this gap in the same
way. Every gap is in the config for two reasons: the audit and the loader read the gaps from the
topic's config, and recovery treats all other missing offsets in a mirror's log as damage.

Some failures may pass: the disk is full, ZooKeeper cannot be reached, a transfer was damaged, or a
permission is missing. After such a failure, the mirror tries the partition again after a wait,
which becomes longer each time. The status reports the failure meanwhile. Any other failure stops
the partition until an operator acts:

    the source diverged, ends below the mirror's        its log has another history: compare the
    log end, or its leader epochs decrease              logs, then delete the mirror topic here, or
                                                        repair the source
    the source's topic or cluster was recreated         the topic is now another topic: compare the
                                                        logs, then delete the mirror topic here
    too many gaps                                       the source deletes records faster than they
                                                        are copied

The state of this package is in the memory of the loop. The broker builds it again at each start.
Only the log and the topic's configs in ZooKeeper are durable.
"""
