"""What a load takes.

    topics         which topics a configuration means
    bounds         log start and high watermark of partitions, leader by leader
    topic          a topic of the cluster, as it was when the run began
    plan           the offset range of each partition, cut into slices
    topic_plan     the ranges of one topic after its newest manifest
    batch_below    whether a partition is still the log that was loaded

Only `bounds` and `batch_below` ask brokers; the rest is pure.
"""
