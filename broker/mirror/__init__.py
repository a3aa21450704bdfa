"""Mirroring is following: topics of another cluster, byte for byte, offset for offset.

    selection   which source topics are mirrored, and under which name         (pure)
    rounds      what a look at the source's topics means for ours              (pure)
    follower    one partition: checked, followed, interrupted, stopped         (pure)
    partition   one partition: its follower, the log that it fills, its trouble
    surroundings  what a source needs around it: a client there, and this broker
    topics      one source cluster: its topics, made and extended here         (loop)
    bounds      where a partition of the source begins and ends: asked for     (loop)
    progress    how far we are, told to the source as a group's offsets        (pure)
    source      one source cluster: its partitions and fetches                 (loop)
    resolver    names of source brokers, looked up away from the loop
    mirrors     all sources of this broker, the loop's turns and timers        (loop)
    status      what all this looks like from outside: /health, command, metrics
    cli         `skidway mirror status`

A mirror topic `<cluster>.<topic>` is read-only for producers. There is no checkpoint: the position
of a mirror partition is its log end offset. Batches keep base offset and leader epoch; they are
fetched as a consumer fetches, so only what is durable in the source is ever copied, and a consumer
here sees it once it is durable here too.

Before a partition goes on after any interruption (a start, another connection, a refused fetch, a
refused write) the source's batch just below our log end is read again, and its CRC and leader epoch
are compared:

    same        go on behind it
    different   diverged: the partition stops, by name, until an operator decides
    gone        expired in the source: named as unverifiable, then on
    gap         the source begins above our log end: the first batch there is looked at, what is
                missing is written into ZooKeeper (topic config `mirror.gaps`), then copied from
                there on

A gap between batches is treated likewise. Nothing is ever passed over in silence: counters read the
gaps from the topic's configs, and recovery takes every other hole in a mirror's log for damage.

What passes (a full disk, ZooKeeper away, a damaged transfer, no permission yet) is tried again
after a wait that grows, and named in the status meanwhile. What does not pass stops the partition:

    diverged, ends below us, epochs that go back        another history: compare, then delete the
                                                        mirror topic here, or mend the source
    the source's topic or cluster was made again        another topic: likewise
    too many gaps                                       the source loses faster than we copy

State: everything here is memory of the loop and made anew at a start; what must last is the log,
and the topic's configs in ZooKeeper.
"""
