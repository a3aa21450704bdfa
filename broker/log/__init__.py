"""The log of a partition: record batches in files, and data that is derived from the batches.

    <log.dirs>/
        meta.properties                     broker.id, cluster.id, directory.id
        recovery-point-offset-checkpoint    for each partition: all records below this offset are on
                                            disk
        log-start-offset-checkpoint         for each partition: all records below this offset are
                                            deleted
        .kafka_cleanshutdown                exists only after a clean stop
        <topic>-<partition>/
            partition.metadata              topic id
            leader-epoch-checkpoint         where each leader epoch began
            <base offset, 20 digits>.log            record batches; a segment's other files are
                                                    derived from this file
            <base offset, 20 digits>.index          offset -> position, sparse
            <base offset, 20 digits>.timeindex      event time -> offset, sparse
            <base offset, 20 digits>.producers      the state of producers before that offset
            <base offset, 20 digits>.<position>.cut what recovery cut off from this position on
            *.deleted                               an expired file, which readers may still have
                                                    open
        <topic>-<partition>.moved/                  a partition that was handed over to be moved
        <topic>-<partition>.<32 hex digits>-delete/ a partition of a deleted topic
        <topic>-<partition>.<32 hex digits>-stray/  a directory that belongs to no known topic

The layout is Kafka's, so that Kafka's tools can read it. Only `.producers`, `.cut` and `.moved` are
not from Kafka. (Kafka's file for the state of producers, `.snapshot`, has no field for the
checksums of a producer's last five batches.)

An *offset* counts records, and a *position* counts bytes in one segment's file. A `LogPosition` has
both. Every read and write of a segment's `.log` file and indexes names its position; no code relies
on the current offset that the kernel keeps for a descriptor.

Layers, each of which imports only layers that come earlier in this list::

    names            the names of all files and directories
    descriptors      how many segments are open at a time
    files            open files, which stay open until their last reader is done; errors of the disk
    scan             reads and checks the batches of a file one by one
    sparse_file      a file of entries in ascending order; the newest entries are still in memory
    offset_index     sparse: offset of a batch's last record -> position of the batch
    time_index       sparse: largest event time so far -> offset
    segment          one .log with its indexes
    torn_tail        what a crash has left behind the last whole batch
    config           the settings of a topic that apply to its logs
    producer_id      which producer ids there are, and to whom they belong
    producer_state   the last five batches of each idempotent producer
    validation       checks the batches that producers send
    leader_epochs    where each leader epoch began
    offset_lookup    from an offset to whole batches: segment, position, bytes
    undo             remembers a log's state before appends, and restores it if their write fails
    partition_log    segments in order: append, write, roll, flush, delete
    timestamps       from an event time to an offset
    opening          the arguments for opening a log, and the report about what was done and found
                     when the log was opened
    state_recovery   reads producers and leader epochs from files
    recovery         makes a PartitionLog from files, after a stop of any kind
    retention        decides which segments have expired (pure functions)
    retention_clock  the clock for deletion by age; unlike the wall clock, it never jumps forward
    checkpoints      Kafka's checkpoint files, meta.properties
    flusher          the threads that wait for the disk
    log_directory    one of log.dirs: its lock, its small files, and whether it is in use or offline
    checkpoint_writer   checkpoints of all directories, in the background
    expiration       carries out what retention decides
    log_manager      all logs of all log directories
    dump, cli        print the content of the files for people

Ownership: only the broker's loop changes a log. The flusher's threads get descriptors and paths,
and return results.

Durability: bytes are normally appended with one `pwritev` for each partition in each turn of the
loop, and *flushed* (fsync) when a request waits for the flush, or after `flush.messages` or
`flush.ms`. Before an fsync begins, the broker notes the offset up to which it has written. When the
fsync is done, all records below this offset are durable. The flush includes every `.log` file that
was written since the last flush, and the indexes of segments that were closed since then. If a new
segment was begun, the flush also includes the partition's directory. Consumers get only flushed
records, so a crash never removes a record that a consumer got. A failed fsync takes the whole log
directory offline. After such a failure, the kernel may have dropped the unwritten pages, so a
second fsync could succeed although the data is not on disk.

The broker measures every age from the time of the append: when it rolls (closes) a segment after
`segment.ms`, when a segment expires, and when the broker forgets a producer. The broker does not
use the event times of records for these decisions, so records with event times of ten years ago
count as new when they are appended. The append time of a closed segment is the modification time of
its file. The time of the first append to a segment is in its `.producers` file.
"""
