"""The partitions that this broker hosts: a log each, and how much of it may be shown.

    replica        high watermark and leader epoch of one partition
    flush_policy   when a log is flushed: pure
    hosted         all of them: the writes and flushes of a loop turn, failures, offline directories

A replica counts with its *flushed* offset. The high watermark is the least flushed offset of the
in-sync replicas: with one replica our own, with followers the least of all. It never goes back.
"""
