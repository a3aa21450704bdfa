"""Mirroring is following: topics of another cluster, byte for byte, offset for offset.

    selection   which source topics are mirrored, and under which name      (pure)
    follower    one partition: checked, followed, interrupted, stopped      (pure)
    source      one source cluster: its topics, its followers, its fetches   (loop)
    mirrors     all sources of this broker, the loop's turns and timers      (loop)

A mirror topic `<cluster>.<topic>` is read-only for producers. There is no checkpoint: the position
of a mirror partition is its log end offset. Batches keep base offset and leader epoch; they are
fetched as a consumer fetches, so only what is durable in the source is ever copied, and a consumer
here sees it once it is durable here too.

Before a partition goes on after any interruption (a start, a lost connection, a refused write) the
source's batch just below our log end is read again and its CRC and leader epoch are compared:

    same        go on behind it
    different   diverged: the partition stops, by name, until an operator decides
    gone        expired in the source: named as unverifiable, then on
    gap         the source begins above our log end: written into ZooKeeper (topic config
                `mirror.gaps`) first, then on at the source's log start

A gap between batches is treated likewise. Nothing is ever passed over in silence; counters and
loaders read the gaps from the topic's configs (skidway.kafka.gaps).

State: everything here is memory of the loop and made anew at a start; what must last is the log,
and the topic's configs in ZooKeeper.
"""
