"""The log of a partition: record batches in files, and what is derived from them.

    <log.dirs>/
        meta.properties                     broker.id, cluster.id, directory.id
        recovery-point-offset-checkpoint    per partition: everything below is on disk
        log-start-offset-checkpoint         per partition: everything below is gone, by retention
        .kafka_cleanshutdown                there only after a clean stop
        <topic>-<partition>/
            partition.metadata              topic id
            leader-epoch-checkpoint         where each leader epoch began
            <base offset, 20 digits>.log            record batches, one after the other: the truth
            <base offset, 20 digits>.index          offset -> position, sparse
            <base offset, 20 digits>.timeindex      event time -> offset, sparse
            <base offset, 20 digits>.producers      producers as they were before that offset
            <base offset, 20 digits>.<position>.cut what recovery cut off behind a position
            *.deleted                               expired, readers may still hold it
        <topic>-<partition>.<32 hex digits>-delete/ a deleted topic's
        <topic>-<partition>.<32 hex digits>-stray/  a directory that belongs to no topic known

The layout is Kafka's, so that its tools read it (`.producers` is ours: Kafka's `.snapshot` has no
room for the window of five and its checksums).

An *offset* counts records, a *position* counts bytes in one segment's file; a `LogPosition` is
both. All I/O is positional; nothing relies on a file's cursor.

Layers, none looks up::

    names            file and directory names, in one place
    descriptors      how many segments are open at a time
    files            descriptors that live as long as their last reader; errors of the disk
    scan             batches of a file one by one, checked
    sparse_file      entries in ascending order, the newest still in memory
    offset_index     sparse: offset of a batch's last record -> position of the batch
    time_index       sparse: largest event time so far -> offset
    segment          one .log with its indexes
    timestamps       from an event time to an offset
    config           the settings of a topic that its logs act on
    producer_state   what each idempotent producer sent last: its window of five
    validation       what a batch from a producer must look like
    leader_epochs    where each leader epoch began
    offset_lookup    from an offset to whole batches: segment, position, bytes
    undo             what a log was before appends that could not be written
    partition_log    segments in order: append, write, roll, flush, delete
    opening          how a log is to be opened, and what that took
    state_recovery   producers and leader epochs from files
    recovery         from files to a PartitionLog, after a stop of any kind
    retention        which segments are expired: pure
    retention_clock  the time for whoever deletes by age: without jumps forward
    checkpoints      Kafka's checkpoint files, meta.properties
    flusher          the threads that wait for the disk
    log_directory    one of log.dirs: lock, marks, in use or offline
    checkpoint_writer   checkpoints of all directories, in the background
    expiration       what retention says, carried out
    log_manager      all logs of all log directories
    dump, cli        what lies in the files, for people

Who owns it: the broker's loop alone calls anything that changes a log. Flusher threads get
descriptors and paths, and hand back results.

What is durable: bytes are appended with one `pwritev` per partition and loop turn, and *flushed*
(fsync) when somebody waits, or after `flush.messages` or `flush.ms`. The flushed offset is read
before the fsync begins, and an fsync covers every file written since the last one, and the
directory if it got a new name. Only flushed records are shown to consumers, so no crash takes back
what anybody saw. A failed fsync takes the whole log directory offline: the kernel may have dropped
the pages, so trying again could succeed without the data.

Time is append time everywhere: rolling, retention and forgetting producers go by the moment of
appending, never by the event times that records carry; a log of ten years ago is as new as any.
A closed segment's append time is the modification time of its file; an active segment's first is
written in its `.producers` file.
"""
