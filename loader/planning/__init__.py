"""Decides which offsets a load reads.

    topics         which of the cluster's topics a configuration lists
    bounds         asks each leader for log start and high watermark of its partitions
    topic          a topic of the cluster, as it was when the run began
    plan           the offset range of each partition, cut into slices
    topic_plan     the offset ranges of one topic, which begin where its newest manifest ended
    batch_below    checks that a partition still has the log that was loaded

Only `bounds` and `batch_below` send requests to brokers; the other modules do no I/O.
"""
