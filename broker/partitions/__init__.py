"""The partitions that this broker hosts. Each has a log and a high watermark.

    replica        high watermark and leader epoch of one partition
    flush_policy   decides when a log is flushed (pure)
    hosted         all partitions: the writes and flushes of a turn of the loop; failures and
                   offline directories

Consumers may read a log up to its high watermark. Each replica has an offset up to which it has
*flushed* its log. The high watermark is the lowest of these offsets among the in-sync replicas,
including this broker's own replica. So consumers cannot read records that are written but not
flushed. If there is only one replica, the high watermark is this broker's flushed offset. The high
watermark never decreases.
"""
