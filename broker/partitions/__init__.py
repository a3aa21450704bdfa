"""The partitions that this broker hosts. Each has a log, and an offset up to which consumers may
see the log.

    replica        high watermark and leader epoch of one partition
    flush_policy   decides when a log is flushed (pure)
    hosted         all partitions: writes and flushes of a loop turn, failures, offline directories

The offset up to which consumers may see a log is its high watermark: the least *flushed* offset of
the in-sync replicas, this broker's included. Records that are written but not flushed do not count.
If there is only one replica, the high watermark is this broker's flushed offset. The high watermark
never goes back.
"""
