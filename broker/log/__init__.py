"""The log of a partition: record batches in files, and what is derived from them.

    <log.dirs>/
        meta.properties                     broker.id, cluster.id, directory.id
        recovery-point-offset-checkpoint    per partition: all records below this offset are on disk
        log-start-offset-checkpoint         per partition: retention removed all below this offset
        .kafka_cleanshutdown                exists only after a clean stop
        <topic>-<partition>/
            partition.metadata              topic id
            leader-epoch-checkpoint         where each leader epoch began
            <base offset, 20 digits>.log            record batches, one after the other: the truth
            <base offset, 20 digits>.index          offset -> position, sparse
            <base offset, 20 digits>.timeindex      event time -> offset, sparse
            <base offset, 20 digits>.producers      producers as they were before that offset
            <base offset, 20 digits>.<position>.cut what recovery cut off behind a position
            *.deleted                               an expired file that readers may still hold
        <topic>-<partition>.<32 hex digits>-delete/ a partition of a deleted topic
        <topic>-<partition>.<32 hex digits>-stray/  a directory that belongs to no known topic

The layout is Kafka's, so that Kafka's tools can read it. Only the `.producers` file is not Kafka's,
because Kafka's `.snapshot` has no room for the checksums of a producer's last five batches.

An *offset* counts records, a *position* counts bytes in one segment's file; a `LogPosition` has
both. Every read and write names its position; nothing relies on a file's cursor.

Layers, each of which imports only those above it in this list::

    names            file and directory names, in one place
    descriptors      how many segments are open at a time
    files            descriptors that live as long as their last reader; errors of the disk
    scan             batches of a file one by one, checked
    sparse_file      entries in ascending order, the newest still in memory
    offset_index     sparse: offset of a batch's last record -> position of the batch
    time_index       sparse: largest event time so far -> offset
    segment          one .log with its indexes
    config           the settings of a topic that its logs act on
    producer_state   what each idempotent producer sent last: its last five batches
    validation       what a batch from a producer must look like
    leader_epochs    where each leader epoch began
    offset_lookup    from an offset to whole batches: segment, position, bytes
    undo             the state of a log before appends, which is restored if their write fails
    partition_log    segments in order: append, write, roll, flush, delete
    timestamps       from an event time to an offset
    opening          how to open a log, and what was done and found when it was opened
    state_recovery   producers and leader epochs from files
    recovery         from files to a PartitionLog, after a stop of any kind
    retention        decides which segments have expired (pure functions)
    retention_clock  the clock for deletion by age; it makes no jumps forward
    checkpoints      Kafka's checkpoint files, meta.properties
    flusher          the threads that wait for the disk
    log_directory    one of log.dirs: lock, marks, in use or offline
    checkpoint_writer   checkpoints of all directories, in the background
    expiration       carries out what retention decides
    log_manager      all logs of all log directories
    dump, cli        shows people what lies in the files

Ownership: only the broker's loop calls anything that changes a log. Flusher threads get descriptors
and paths, and hand back results.

Durability: bytes are appended with one `pwritev` per partition and loop turn, and *flushed* (fsync)
when a request waits for the flush, or after `flush.messages` or `flush.ms`. The offset that a flush
will make durable is read before its fsync begins. The flush covers every file written since the
last flush, and the directory if a file in it got a new name. Consumers are shown only flushed
records, so no crash takes back what anybody saw. A failed fsync takes the whole log directory
offline: the kernel may have dropped the pages, so a second fsync could succeed without the data.

Time is append time everywhere. When a segment is rolled, when a segment expires and when a producer
is forgotten depends on the moment of appending, never on the event times of records. So records
with event times of ten years ago count as new when they are appended. A closed segment's append
time is the modification time of its file; the time of an active segment's first append is in its
`.producers` file.
"""
