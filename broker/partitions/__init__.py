"""The partitions that this broker hosts: a log each, and how much of it may be shown.

    replica        high watermark and leader epoch of one partition
    flush_policy   when a log is flushed: pure
    hosted         all of them: the writes and flushes of a loop turn, failures, offline directories

Only the *flushed* offset of a replica counts. The high watermark is the least flushed offset of the
in-sync replicas, ours included; with one replica it is our own. It never goes back.
"""
